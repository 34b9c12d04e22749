"""The agenda of a simulation: functions to call at virtual times.

In: times and functions. Out: calls in the order of their times; at the same time, in the order in which they were added. So the
same entries always run in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

Act = Callable[[], object]


class Agenda:
    """A heap of calls by virtual seconds."""

    __slots__ = ("_entries", "_n_entered")

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, Act]] = []
        self._n_entered = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def next_time(self) -> float | None:
        """Return the time of the next call; None if there is none."""
        return self._entries[0][0] if self._entries else None

    def add(self, at: float, act: Act) -> None:
        """Add a call; one in the past runs with the next `do_due`."""
        self._n_entered += 1
        heappush(self._entries, (at, self._n_entered, act))

    def do_due(self, now: float) -> bool:
        """Run all calls that are due, with those that they add for now; return whether there were any."""
        entries = self._entries
        if not entries or entries[0][0] > now:
            return False
        while entries and entries[0][0] <= now:
            heappop(entries)[2]()
        return True
