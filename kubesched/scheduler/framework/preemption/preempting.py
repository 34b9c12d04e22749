"""Proposed preemptions, and those that are being carried out.

In: the preemptor, and its last victim. Out: whether the preemptor has to wait. The engine evicts victims in the background.
Meanwhile the preemptor must not be tried again: its victims are still there, so it would choose others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubesched.scheduler.cluster import PodView

StaysOn = Callable[[PodView], bool]
"""Whether a victim is still there and nobody has asked it to go, as far as the API has told."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """PostFilter's proposal: evict these pods of this node, most important first, and nominate the pod to it."""

    node_name: str
    victims: tuple[PodView, ...]
    violations: int = 0
    plugin: str = ""
    disruptions: int = 0
    """How many pod groups that go as one, or pods of other groups, are among those who go."""

    @property
    def to_evict(self) -> tuple[PodView, ...]:
        """Return the victims that are not on their way out already."""
        return tuple(victim for victim in self.victims if victim.pod.metadata.deletion_timestamp is None)


class Preempting:
    """The pods, and pod groups, for which evictions are under way, by uid."""

    __slots__ = ("_last", "stays_on")

    def __init__(self, stays_on: StaysOn = lambda victim: True) -> None:
        self._last: dict[str, PodView | None] = {}
        self.stays_on = stays_on

    def begin(self, uid: str) -> None:
        """Take notice that evictions for a preemptor begin."""
        self._last[uid] = None

    def await_last(self, uid: str, victim: PodView) -> None:
        """Take notice that only one victim is left: once it is on its way, the preemptor may be tried again, even if
        the eviction has not returned yet."""
        if uid in self._last:
            self._last[uid] = victim

    def end(self, uid: str) -> None:
        """Take notice that the evictions for a preemptor are over, one way or the other."""
        self._last.pop(uid, None)

    def is_under_way(self, uid: str) -> bool:
        """Return whether a preemptor has to wait for its victims."""
        if uid not in self._last:
            return False
        last = self._last[uid]
        return last is None or self.stays_on(last)

    def __len__(self) -> int:
        return len(self._last)
