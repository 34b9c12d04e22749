"""The scheduling queue: who is next.

    add --> active --pop--> in flight --done--> gone: it was placed
             ^  ^              |
             |  |            park: refused -> waiting; failed, or something happened meanwhile -> backoff, active
             |  '--flush-- backoff <--wake--.
             '----------wake----------- waiting         gated pods wait as well, and were never in flight

In: pods from the intake, failed attempts from the loop, cluster events from both. Out: the next pod to try.
The queue has one caller at a time and never sleeps: time is read from the clock it was given, and `next_deadline` says
when a flush is due. It calls nobody but the plugins' gates, sort and hints, and lets nothing out that they raise: a
gate that breaks keeps its pod waiting, a hint that breaks wakes it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from kubesched.errors import SchedulerError
from kubesched.kube.api import Pod
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.framework import (
    FORCE_ACTIVATE,
    UNSCHEDULABLE_POD,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    Profile,
)
from kubesched.scheduler.queue.backoff import Pauses
from kubesched.scheduler.queue.hints import Hints
from kubesched.scheduler.queue.inflight import InFlight
from kubesched.scheduler.queue.nominated import Nominated
from kubesched.scheduler.queue.observer import QueueObserver
from kubesched.scheduler.queue.queued import QueuedPod
from kubesched.scheduler.queue.requeue_judge import AFTER_BACKOFF, IMMEDIATELY, SKIP, RequeueJudge, Strategy
from kubesched.scheduler.queue.sub_queues import SubQueues

ATTEMPT_FAILED = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"
LEFTOVERS_EVERY_SECONDS = 30.0

log = logging.getLogger(__name__)


class QueueError(SchedulerError):
    """A pod that cannot be taken in; nothing was changed."""


class Now(Protocol):
    """What the queue needs of a clock."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        ...


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """How the queue keeps time, and which features change it."""

    initial_backoff_seconds: float = 1.0
    max_backoff_seconds: float = 10.0
    max_waiting_seconds: float = 300.0
    pops_from_backoff: bool = True
    has_extenders: bool = False
    has_pod_groups: bool = False
    asks_hints: bool = True
    """Whether plugins look closer at an event that they wait for, and at a pod's own changes; otherwise whatever they wait for
    wakes whom they refused, unasked, as does every change of a pod's spec or metadata."""
    taints_announce_nodes: bool = False
    """Whether who waits for new nodes is woken by changed taints too, as before 1.37."""
    pending_pod: str = UNSCHEDULABLE_POD
    """What metrics call a pod without a node that comes."""
    nominates_gated: bool = True
    """Whether a nominated pod holds its place while a gate keeps it back; before 1.37 it does not."""
    waits_for_events: bool = True
    """Whether a pod that was refused waits until something happens; otherwise it is tried again after its pause alone."""
    heeds_own_status: bool = True
    """Whether any change of a pod is an event for it; otherwise a changed status is none, and another change ends its pause."""


class Queue:
    """Pods in the order in which they are to be tried, and pods that wait."""

    def __init__(
        self,
        profiles: Sequence[Profile],
        clock: Now,
        options: QueueOptions | None = None,
        observer: QueueObserver | None = None,
    ) -> None:
        self.options = given = options or QueueOptions()
        self._clock = clock
        self._observer = observer
        self._hints = Hints(
            profiles,
            has_extenders=given.has_extenders,
            has_pod_groups=given.has_pod_groups,
            asks_hints=given.asks_hints,
            taints_announce_nodes=given.taints_announce_nodes,
        )
        self._judge = RequeueJudge(self._hints, observer)
        self._sorter = profiles[0].sorter if profiles else None
        self.nominations = Nominated(self._queued)
        """Who is nominated where."""
        self._aside: dict[str, QueuedPod] = {}
        """The pods that were here before `apart`."""
        self._begin(self._new_sub_queues(), InFlight(), 0, -1)
        self._started = clock.now()
        self._is_closed = False

    def _new_sub_queues(self) -> SubQueues:
        given = self.options
        pauses = Pauses(given.initial_backoff_seconds, given.max_backoff_seconds, given.pops_from_backoff)
        return SubQueues(self._sorter, pauses, self._observer, self.nominations, given.pending_pod)

    def _begin(self, sub_queues: SubQueues, in_flight: InFlight, cycle: int, moved_in_cycle: int) -> None:
        self._sub_queues, self._pods = sub_queues, sub_queues.pods
        self._active, self._backoff = sub_queues.active, sub_queues.backoff
        self._unschedulable, self._in_flight = sub_queues.unschedulable, in_flight
        self._cycle, self._moved_in_cycle = cycle, moved_in_cycle

    def _queued(self, key: str) -> PodView | None:
        entry = self._pods.get(key) or self._aside.get(key)
        return entry.view if entry is not None else None

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Begin with an empty queue for as long as the context lasts, then go on as before.

        Nothing that happens meanwhile moves the pods that were here; they still count where they are nominated. Nominations
        made meanwhile stay.
        """
        before = self._sub_queues, self._in_flight, self._cycle, self._moved_in_cycle
        was_aside, self._aside = self._aside, self._aside | self._pods if self._aside else self._pods
        self._begin(self._new_sub_queues(), InFlight(), 0, -1)
        try:
            yield
        finally:
            self._begin(*before)
            self._aside = was_aside

    # Asking

    @property
    def n_active(self) -> int:
        """Return how many pods may be tried now."""
        return len(self._active)

    def active_seconds(self) -> float:
        """Return for how long the oldest of the pods that may be tried now has waited; it goes through all of them."""
        now = self._clock.now()
        return max((now - entry.waiting_since for entry in self._active), default=0.0)

    @property
    def n_backoff(self) -> int:
        """Return how many pods pause."""
        return len(self._backoff)

    @property
    def n_unschedulable(self) -> int:
        """Return how many pods wait for an event after an attempt."""
        return len(self._unschedulable) - self._unschedulable.n_gated

    @property
    def n_gated(self) -> int:
        """Return how many pods a gate keeps back."""
        return self._unschedulable.n_gated

    @property
    def n_in_flight(self) -> int:
        """Return how many pods were popped and are not done."""
        return len(self._in_flight)

    @property
    def has_next(self) -> bool:
        """Return whether `pop` has a pod to give."""
        if self._is_closed:
            return False
        return bool(len(self._active) or (self.options.pops_from_backoff and self._backoff.n_refused))

    @property
    def scheduling_cycle(self) -> int:
        """Return how many pods were popped so far."""
        return self._cycle

    @property
    def is_closed(self) -> bool:
        """Return whether the queue gives out no more pods."""
        return self._is_closed

    def __len__(self) -> int:
        """Return how many pods are in the queue; those in flight are not."""
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield the pods in the queue, in the order in which they came."""
        return iter(self._pods.values())

    def held_back(self) -> Iterator[QueuedPod]:
        """Yield the pods that may not be tried now: those that wait for an event, longest first, and those that pause."""
        yield from self._unschedulable
        yield from self._backoff

    def find(self, key: str) -> QueuedPod | None:
        """Return the pod of that namespace/name, or None."""
        return self._pods.get(key)

    def place_of(self, key: str) -> str:
        """Return where a pod is: active, backoff, unschedulable or gated; empty if it is not in the queue."""
        entry = self._pods.get(key)
        if entry is None or entry.sub_queue is None:
            return ""
        return "gated" if entry.is_gated else entry.sub_queue.name

    def is_in_flight(self, uid: str) -> bool:
        """Return whether a pod was popped and is not done."""
        return uid in self._in_flight

    def in_flight_events(self) -> dict[str, int]:
        """Return how many events are kept for pods in flight, by label, and the pods as PodPopped."""
        return self._in_flight.counts()

    def is_of_interest(self, event: ClusterEvent) -> bool:
        """Return whether an event could wake any pod."""
        return event.is_wildcard or bool(self._hints.interest(event).plugins)

    def watched_resources(self) -> dict[str, int]:
        """Return the resources that plugins wait for, each with the actions that they wait for."""
        return self._hints.resources()

    def now(self) -> float:
        """Return the time by which the queue goes."""
        return self._clock.now()

    def next_deadline(self) -> float | None:
        """Return when a flush next has something to do, or None if time alone changes nothing."""
        deadlines = []
        over = self._backoff.next_over()
        if over is not None:
            deadlines.append(over)
        oldest = self._unschedulable.oldest()
        if oldest is not None:
            ripe = oldest + self.options.max_waiting_seconds - self._started
            turns = max(math.floor(ripe / LEFTOVERS_EVERY_SECONDS) + 1, 0)
            deadlines.append(self._started + turns * LEFTOVERS_EVERY_SECONDS)
        return min(deadlines) if deadlines else None

    # Coming and going

    def add(self, pod: PodView) -> None:
        """Take in a new pod. A pod of the same name that is still here makes room for it."""
        there = self._pods.get(pod.key)
        if there is not None:
            self._sub_queues.forget(there)
        self._admit(pod, self._sub_queues.pod_added)

    def update(self, old: Pod, new: PodView, events: Iterable[ClusterEvent]) -> None:
        """Take in a pod's new version. `events` is what changed, in the words of the plugins that may care."""
        if new.uid in self._in_flight and self.options.asks_hints:
            if not self.options.heeds_own_status and not _is_rewritten(old, new.pod):
                return
            for event in events:
                self._in_flight.record(event, old, new.pod)
            return
        entry = self._pods.get(new.key)
        if entry is None:
            came = self.options.pending_pod != UNSCHEDULABLE_POD  # since 1.37 such a pod is said to have come
            self._admit(new, self._sub_queues.pod_added if came else self._sub_queues.pod_updated)
            return
        self._sub_queues.replace_pod(entry, new)
        self.nominations.update(old, new)
        if not self.options.heeds_own_status:
            if _is_rewritten(old, new.pod):
                self._sub_queues.activate(entry, self._clock.now())
            return
        if entry.sub_queue is self._unschedulable:
            if not self.options.asks_hints:
                if _may_help_itself(old, new.pod, events):
                    self._sub_queues.requeue(entry, AFTER_BACKOFF, self._sub_queues.pod_updated, self._clock.now())
                return
            for event in events:
                strategy = self._judge.strategy(entry, event, old, new.pod)
                if strategy is not SKIP and self._sub_queues.requeue(entry, strategy, event.label, self._clock.now()):
                    break

    def delete(self, pod: PodView) -> None:
        """Remove a pod that is gone or was bound; if it is in flight its attempt goes on."""
        self.nominations.drop(pod.uid)
        entry = self._pods.get(pod.key)
        if entry is not None:
            self._sub_queues.forget(entry)

    def pop(self) -> QueuedPod | None:
        """Take out the pod that is next, or return None; it is in flight until `done` or `park`."""
        if self._is_closed:
            return None
        while True:
            entry = self._active.pop()
            if entry is None:
                entry = self._backoff.pop() if self.options.pops_from_backoff else None
                if entry is None:
                    return None
                if self._observer is not None:
                    self._observer.queue_incoming(self._active.name, POP_FROM_BACKOFF)
            if self._launch(entry):
                return entry

    def take(self, pod: PodView) -> QueuedPod | None:
        """Take out one particular pod, wherever it is, as `pop` would; None if it is not here or a gate keeps it."""
        entry = self._pods.get(pod.key)
        if entry is None or not self._sub_queues.activate(entry, self._clock.now()):
            return None
        self._active.remove(entry)
        return entry if self._launch(entry) else None

    def done(self, uid: str) -> None:
        """End an attempt whose pod does not come back. Ending it twice does no harm."""
        self._in_flight.done(uid)

    def park(
        self,
        entry: QueuedPod,
        unschedulable_plugins: Iterable[str] = (),
        pending_plugins: Iterable[str] = (),
        pod: PodView | None = None,
    ) -> None:
        """Take back a pod whose attempt failed, and end the attempt.

        The plugins are those that refused it; none of them means that something broke. `pod` is the newest version
        that is known, where that is not the one that was tried.
        """
        uid = entry.view.uid
        try:
            self._take_back(entry, frozenset(unschedulable_plugins), frozenset(pending_plugins), pod)
        finally:
            self._in_flight.done(uid)

    def close(self) -> None:
        """End all attempts and give out no more pods."""
        self._in_flight.clear()
        self._is_closed = True

    # Waking

    def wake(
        self, event: ClusterEvent, old: Any = None, new: Any = None, concerns: Callable[[PodView], bool] | None = None
    ) -> int:
        """Let an event move the waiting pods that it may help; return how many left.

        `concerns` narrows down who may be moved. The event is also remembered for the pods in flight, unless no plugin of any
        profile waits for its kind.
        """
        is_wildcard, interest = event.is_wildcard, self._hints.interest(event)
        if not is_wildcard and not interest.plugins:
            return 0
        moved = 0
        if len(self._unschedulable) if is_wildcard else self._unschedulable.is_any_behind(interest):
            label, now = event.label, self._clock.now()
            for entry, strategy in self._awakened(event, old, new).items():
                if concerns is None or concerns(entry.view):
                    self._unschedulable.remove(entry)
                    moved += self._sub_queues.requeue(entry, strategy, label, now)
        self._remember(event, old, new)
        return moved

    def activate(self, pods: Iterable[PodView]) -> None:
        """Move pods to the active queue without waiting for anything but their gates; a pod in flight will at least not
        be left waiting when it comes back."""
        for pod in pods:
            entry = self._pods.get(pod.key)
            is_active = entry is not None and entry.sub_queue is self._active
            if entry is not None and not is_active and self._sub_queues.activate(entry, self._clock.now()):
                continue
            if pod.uid in self._in_flight or not self.options.asks_hints:
                self._remember(FORCE_ACTIVATE, None, pod.pod)

    def ask_gates(self, pods: Iterable[PodView]) -> None:
        """Let pods that a gate kept back pause, as far as it lets them in now."""
        now = self._clock.now()
        for pod in pods:
            entry = self._pods.get(pod.key)
            if entry is not None and entry.is_gated:
                self._sub_queues.requeue(entry, AFTER_BACKOFF, ATTEMPT_FAILED, now)

    def flush_backoff(self, now: float) -> int:
        """Move the pods whose pause is over to the active queue; return how many went."""
        over = list(self._backoff.pop_over(now))
        return sum(self._sub_queues.to_active(entry, BACKOFF_COMPLETE, now, from_backoff=True) for entry in over)

    def flush_leftovers(self, now: float) -> int:
        """Move the pods that waited too long, whatever they wait for; return how many went."""
        flushed = self._unschedulable.pop_older(now - self.options.max_waiting_seconds)
        moved = 0
        for entry in flushed:
            entry.was_flushed = True
            entry.flushed_at = now
            moved += self._sub_queues.requeue(entry, AFTER_BACKOFF, UNSCHEDULABLE_TIMEOUT.label, now)
        if flushed:
            self._remember(UNSCHEDULABLE_TIMEOUT, None, None)
        return moved

    # Inside

    def _admit(self, pod: PodView, label: str) -> None:
        name = pod.pod.spec.scheduler_name
        profile = self._hints.profiles.get(name)
        if profile is None:
            raise QueueError(f"pod {pod.key}: spec.schedulerName {name!r} is none of our profiles")
        now = self._clock.now()
        entry = self._pods[pod.key] = QueuedPod(pod, profile, now)
        self.nominations.touch(pod.uid)
        if self.options.nominates_gated and self.nominations.may_change(pod):
            self.nominations.add(pod)
        self._sub_queues.to_active(entry, label, now)

    def _launch(self, entry: QueuedPod) -> bool:
        """Put an entry that is in no sub-queue in flight; a second entry of a pod in flight is dropped."""
        view = entry.view
        del self._pods[view.key]
        self.nominations.touch(view.uid)
        entry.attempts += 1
        if entry.unschedulable_plugins or entry.pending_plugins:
            self._sub_queues.count_rejectors(entry, -1)
        if not self._in_flight.start(view.uid):
            log.error("pod %s is queued although an attempt for it is under way: dropping the second entry", view.key)
            return False
        self._cycle += 1
        return True

    def _take_back(self, entry: QueuedPod, unschedulable: frozenset[str], pending: frozenset[str], pod: PodView | None) -> None:
        if pod is not None:
            entry.view = pod
        # After a reload it may be the entry of a queue, and of a profile, that are gone.
        entry.profile = self._hints.profiles.get(entry.view.pod.spec.scheduler_name, entry.profile)
        there = self._pods.get(entry.view.key)
        if there is not None:
            where = (
                "in unschedulable queue"
                if there.sub_queue is self._unschedulable
                else "in the active queue"
                if there.sub_queue is self._active
                else "in the backoff queue"
            )
            raise QueueError(f"Pod {entry.view.key} is already present {where}")
        entry.unschedulable_plugins, entry.pending_plugins, entry.gating_plugin = unschedulable, pending, ""
        if unschedulable or pending:
            entry.unschedulable_count += 1
            entry.consecutive_errors = 0
        else:
            entry.consecutive_errors += 1
        entry.timestamp = now = self._clock.now()
        entry.backoff_expiry = None
        entry.was_flushed = False
        entry.flushed_at = 0.0
        # A group's members go to backoff whatever happens. Popped early, as the reference pops them, a group that does
        # not fit would be tried again without a pause for as long as nothing else is active.
        entry.sits_out = self._is_grouped(entry)
        self._sub_queues.count_rejectors(entry, 1)
        strategy = self._judge_in_flight(entry)
        self._pods[entry.view.key] = entry
        self.nominations.touch(entry.view.uid)
        if strategy is SKIP:
            self._sub_queues.to_unschedulable(entry, ATTEMPT_FAILED)
        elif self.options.asks_hints:
            self._sub_queues.requeue(entry, strategy, ATTEMPT_FAILED, now)
        else:
            self._sub_queues.to_backoff(entry, ATTEMPT_FAILED)

    def _is_grouped(self, entry: QueuedPod) -> bool:
        return self.options.has_pod_groups and entry.view.pod.spec.scheduling_group is not None

    def _remember(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep an event for the pods in flight. Without hints it does not matter what it was, only in which cycle."""
        if self.options.asks_hints:
            self._in_flight.record(event, old, new)
        else:
            self._moved_in_cycle = self._cycle

    def _judge_in_flight(self, entry: QueuedPod) -> Strategy:
        """Return what the events since the pod was popped mean for it."""
        if entry.sits_out or not self.options.waits_for_events:
            return AFTER_BACKOFF
        if not entry.unschedulable_plugins and not entry.pending_plugins:
            return AFTER_BACKOFF
        if not self.options.asks_hints:
            # What happened before the last pop is forgotten, also for a pod whose own attempt began earlier.
            return AFTER_BACKOFF if self._moved_in_cycle >= self._cycle else SKIP
        happened = self._in_flight.since_start(entry.view.uid)
        if happened is None:
            return AFTER_BACKOFF
        best = SKIP
        for event, old, new in happened:
            strategy = self._judge.strategy(entry, event, old, new)
            if strategy > best:
                best = strategy
                if best is IMMEDIATELY or not entry.pending_plugins:
                    break
        return best

    def _awakened(self, event: ClusterEvent, old: Any, new: Any) -> dict[QueuedPod, Strategy]:
        if event.is_wildcard:
            found = ((entry, self._judge.strategy(entry, event, old, new)) for entry in self._unschedulable)
            return {entry: strategy for entry, strategy in found if strategy is not SKIP}
        changed = new if new is not None else old
        itself = None
        if isinstance(changed, Pod):
            itself = self._pods.get(f"{changed.metadata.namespace}/{changed.metadata.name}")
            if itself is not None and itself.view.uid != changed.metadata.uid:
                itself = None
        return self._judge.awakened(self._unschedulable, event, old, new, itself)


def _is_rewritten(old: Pod, new: Pod) -> bool:
    """Return whether more than a pod's status changed, and the numbers that change with it."""
    version, generation = new.metadata.resource_version, new.metadata.generation
    same = msgspec.structs.replace(old.metadata, resource_version=version, generation=generation)
    return old.spec != new.spec or same != new.metadata


def _may_help_itself(old: Pod, new: Pod, events: Iterable[ClusterEvent]) -> bool:
    """Return whether a pod changed, finalizers and status left out, or got its claims. A part of its spec that we do not read
    shows in the generation."""
    before = msgspec.structs.replace(old.metadata, finalizers=new.metadata.finalizers)
    return (
        old.metadata.generation != new.metadata.generation
        or _is_rewritten(msgspec.structs.replace(old, metadata=before), new)
        or any(event.action == Action.POD_CLAIMS for event in events)
    )
