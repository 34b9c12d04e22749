"""Preemptions that are still being carried out.

The policy decides, the engine evicts in the background, and between the two the preemptor must not be tried again: it
would find its victims still there and choose others. This is the one thing both know. In: who preempts, and which
victim is the last to go. Out: whether a pod has to wait.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.cluster import PodView

StaysOn = Callable[[PodView], bool]
"""Whether a victim is still there and nobody has asked it to go, as far as the API has told."""


def _stays(victim: PodView) -> bool:
    return True


class Preempting:
    """The pods for which evictions are under way."""

    __slots__ = ("_last", "stays_on")

    def __init__(self, stays_on: StaysOn = _stays) -> None:
        self._last: dict[str, PodView | None] = {}
        self.stays_on = stays_on

    def begin(self, preemptor: PodView) -> None:
        """Take notice that evictions for a pod begin."""
        self._last[preemptor.uid] = None

    def await_last(self, preemptor: PodView, victim: PodView) -> None:
        """Take notice that only one victim is left: once it is on its way, the preemptor may be tried again, even if
        the eviction has not returned yet."""
        if preemptor.uid in self._last:
            self._last[preemptor.uid] = victim

    def end(self, preemptor: PodView) -> None:
        """Take notice that the evictions for a pod are over, one way or the other."""
        self._last.pop(preemptor.uid, None)

    def is_under_way(self, uid: str) -> bool:
        """Return whether a pod has to wait for its victims."""
        if uid not in self._last:
            return False
        last = self._last[uid]
        return last is None or self.stays_on(last)

    def __len__(self) -> int:
        return len(self._last)
