"""What will happen, and when: the appointments of a simulation.

In: times and things to do. Out: the same, in the order of their times; what has the same time happens in the order in which
it was entered. Nothing else decides the order, so the same entries always happen in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

Act = Callable[[], object]


class Agenda:
    """Appointments by virtual seconds."""

    __slots__ = ("_entries", "_n_entered")

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, Act]] = []
        self._n_entered = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def next_time(self) -> float | None:
        """Return when something happens next, or None if nothing will."""
        return self._entries[0][0] if self._entries else None

    def add(self, at: float, act: Act) -> None:
        """Enter something; what lies in the past happens at once."""
        self._n_entered += 1
        heappush(self._entries, (at, self._n_entered, act))

    def do_due(self, now: float) -> bool:
        """Do what is due, also what that enters for now; return whether there was anything."""
        entries = self._entries
        if not entries or entries[0][0] > now:
            return False
        while entries and entries[0][0] <= now:
            heappop(entries)[2]()
        return True
