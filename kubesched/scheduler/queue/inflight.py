"""Pods in flight, and what happened meanwhile.

A pod that was popped is in flight until its attempt is done. What happens to the cluster in between could make the
attempt's answer wrong, so it is written down for as long as some pod in flight might come back and ask.

    pop A, e1, pop B, e2:   A is judged on e1 and e2, B on e2 alone; when A is done e1 is dropped, when both are e2 too
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kubesched.scheduler.framework import ClusterEvent

POPPED = "PodPopped"


class Happening(NamedTuple):
    """A cluster event with the object before and after."""

    event: ClusterEvent
    old: Any
    new: Any


class InFlight:
    """Markers by uid into one list of happenings, oldest first."""

    __slots__ = ("_dropped", "_happened", "_markers")

    def __init__(self) -> None:
        self._markers: OrderedDict[str, int] = OrderedDict()
        self._happened: list[Happening] = []
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._markers)

    def __contains__(self, uid: str) -> bool:
        return uid in self._markers

    def uids(self) -> Iterable[str]:
        """Return the uids in flight, the longest one first."""
        return self._markers.keys()

    def start(self, uid: str) -> bool:
        """Mark that a pod's attempt begins now; False if one is under way."""
        if uid in self._markers:
            return False
        self._markers[uid] = self._dropped + len(self._happened)
        return True

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Write down what happened, if anybody in flight might ask."""
        if self._markers:
            self._happened.append(Happening(event, old, new))

    def since_start(self, uid: str) -> Sequence[Happening] | None:
        """Return what happened since a pod's attempt began; None if it is not in flight."""
        marker = self._markers.get(uid)
        return None if marker is None else self._happened[marker - self._dropped :]

    def done(self, uid: str) -> None:
        """End a pod's attempt, and drop what nobody can ask for any more. Ending it twice does no harm."""
        if self._markers.pop(uid, None) is None or not self._happened:
            return
        if not self._markers:
            self._dropped += len(self._happened)
            self._happened.clear()
            return
        oldest = next(iter(self._markers.values()))
        if oldest > self._dropped:
            del self._happened[: oldest - self._dropped]
            self._dropped = oldest

    def clear(self) -> None:
        """End all attempts."""
        self._markers.clear()
        self._happened.clear()

    def counts(self) -> dict[str, int]:
        """Return how many entries are kept, by the event's label; pods in flight count as PodPopped."""
        found = Counter(happening.event.label for happening in self._happened)
        if self._markers:
            found[POPPED] = len(self._markers)
        return dict(found)
