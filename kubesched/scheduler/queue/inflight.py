"""Pods in flight, and the events that happen while they are being tried.

A pod is in flight from `pop` until its attempt is done. An event during the attempt can come too late for the attempt and too
early for the pod's wait: a node is added after the filters ran, and the pod is parked as unschedulable a moment later. So
events are kept for as long as a pod in flight might need them. One list serves all pods; each pod marks where its attempt
began:

    pop A, e1, pop B, e2      events [e1, e2], marks A: 0, B: 1
    park B                    B is judged by e2; nothing is dropped, A is older
    park A                    A is judged by e1 and e2; nobody is in flight, so both are dropped

Without SchedulerQueueingHints kube-scheduler asks only *whether* anything happened since the last pop, of whichever pod.
Then no event is kept, just the number of that pop.
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
    """Marks by uid into one list of events, oldest first. `keeps_events` is off where no hints are called."""

    __slots__ = ("_dropped", "_happened", "_keeps_events", "_last_event_after", "_marks", "n_started")

    def __init__(self, *, keeps_events: bool = True) -> None:
        self._keeps_events = keeps_events
        self._marks: OrderedDict[str, int] = OrderedDict()
        self._happened: list[Happening] = []
        self._dropped = 0
        """How many events were dropped so far; marks count from the first event ever."""
        self._last_event_after = -1
        self.n_started = 0
        """How many attempts have begun so far."""

    def __len__(self) -> int:
        return len(self._marks)

    def __contains__(self, uid: str) -> bool:
        return uid in self._marks

    def uids(self) -> Iterable[str]:
        """Return the uids in flight, the longest one first."""
        return self._marks.keys()

    def start(self, uid: str) -> bool:
        """Mark that a pod's attempt begins now; False if one is under way."""
        if uid in self._marks:
            return False
        self._marks[uid] = self._dropped + len(self._happened)
        self.n_started += 1
        return True

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep an event if any pod is in flight."""
        if not self._keeps_events:
            self._last_event_after = self.n_started
        elif self._marks:
            self._happened.append(Happening(event, old, new))

    def since_start(self, uid: str) -> Sequence[Happening] | None:
        """Return the events since a pod's attempt began; None if it is not in flight."""
        mark = self._marks.get(uid)
        return None if mark is None else self._happened[mark - self._dropped :]

    @property
    def has_event_since_last_start(self) -> bool:
        """Return whether anything happened since the newest attempt began; only known where events are not kept."""
        return self._last_event_after >= self.n_started

    def done(self, uid: str) -> None:
        """End a pod's attempt, and drop the events that no pod in flight needs any more. Ending it twice does no harm."""
        if self._marks.pop(uid, None) is None or not self._happened:
            return
        oldest = next(iter(self._marks.values()), self._dropped + len(self._happened))
        if oldest > self._dropped:
            del self._happened[: oldest - self._dropped]
            self._dropped = oldest

    def clear(self) -> None:
        """End all attempts."""
        self._marks.clear()
        self._happened.clear()

    def counts(self) -> dict[str, int]:
        """Return how many entries are kept, by the event's label; pods in flight count as PodPopped."""
        found = Counter(happening.event.label for happening in self._happened)
        if self._marks:
            found[POPPED] = len(self._marks)
        return dict(found)
