"""The scheduling queue: which pod is tried next.

    add --> active --pop--> in flight --done--> gone: it has a node
             ^  ^              |
             |  |            park: refused -> unschedulable; broke, or an event happened meanwhile -> backoff or active
             |  '--flush-- backoff <--wake--.
             '----------wake----------- unschedulable

A pod that a PreEnqueue plugin gates is among the unschedulable pods too, and was never in flight.

In: pods from the intake, failed attempts from the loop, cluster events from both. Out: the next pod to try. The queue has one
caller at a time and never sleeps: it reads the time from its clock, and `next_deadline` says when a flush is due. It calls
plugins at three points: PreEnqueue, QueueSort and hints. Their exceptions never leave the queue: a pod whose gate or sort
raises waits as if that plugin had gated it, and is tried again with the pods that waited too long; a hint that raises wakes
its pod.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import msgspec

from kubesched.errors import PluginError
from kubesched.kube.api import Pod
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.framework import (
    ADD,
    FORCE_ACTIVATE,
    UNSCHEDULABLE_POD,
    UNSCHEDULABLE_TIMEOUT,
    UPDATE,
    Action,
    ClusterEvent,
    Profile,
    blamed,
)
from kubesched.scheduler.queue.heap import Heap
from kubesched.scheduler.queue.hints import AFTER_BACKOFF, IMMEDIATELY, SKIP, Hints, Strategy
from kubesched.scheduler.queue.inflight import InFlight
from kubesched.scheduler.queue.nominated import Nominated
from kubesched.scheduler.queue.ports import Now, QueueError, QueueObserver, QueueOptions
from kubesched.scheduler.queue.queued import QueuedPod
from kubesched.scheduler.queue.sub_queues import BackoffQueue, UnschedulablePods

ATTEMPT_FAILED = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"
LEFTOVERS_EVERY_SECONDS = 30.0
_FILLED = ("_pods", "_active", "_backoff", "_unschedulable", "_in_flight", "done")
"""The attributes of a queue that its pods fill."""

log = logging.getLogger(__name__)


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
        self._observer = observer
        self._hints = Hints(profiles, given, observer)
        sorter = profiles[0].sorter if profiles else None
        self._sorter = sorter.name if sorter is not None else ""
        self._sort_key: Callable[[PodView, float], Any] = sorter.sort_key if sorter is not None else _first_come
        self._pod_added = ClusterEvent(given.pending_pod, int(ADD)).label
        self._pod_updated = ClusterEvent(given.pending_pod, int(UPDATE)).label
        self.nominations = Nominated(self._view_of)
        """The pods that are nominated to nodes."""
        self._aside: dict[str, QueuedPod] = {}
        """The pods that were here before `apart`."""
        self._begin_empty()
        self.now = clock.now
        """Return the queue's time, in seconds since the epoch."""
        self._started = clock.now()
        self.is_closed = False
        """Whether the queue gives out no more pods."""

    def _begin_empty(self) -> None:
        given = self.options
        self._pods: dict[str, QueuedPod] = {}
        """All pods in the queue, by namespace/name. Each is in exactly one of the next three."""
        self._active = Heap(attrgetter("sort_key"), "active")
        self._backoff = BackoffQueue(
            given.initial_backoff_seconds, given.max_backoff_seconds, whole_seconds=given.pops_from_backoff
        )
        self._unschedulable = UnschedulablePods()
        self._in_flight = InFlight(keeps_events=given.asks_hints)
        self.done = self._in_flight.done
        """End the attempt of a pod that does not come back, by uid. Ending it twice does no harm."""

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Begin with an empty queue for as long as the context lasts, then go on as before.

        Nothing that happens meanwhile moves the pods that were here; they still count where they are nominated. Nominations
        made meanwhile stay.
        """
        before = {name: getattr(self, name) for name in _FILLED}
        was_aside, self._aside = self._aside, self._aside | self._pods if self._aside else self._pods
        self._begin_empty()
        try:
            yield
        finally:
            vars(self).update(before)
            self._aside = was_aside

    # What is in it

    @property
    def n_active(self) -> int:
        """Return how many pods may be tried now."""
        return len(self._active)

    def active_seconds(self) -> float:
        """Return how long the oldest active pod has waited. This looks at all active pods."""
        now = self.now()
        return max((now - entry.waiting_since for entry in self._active), default=0.0)

    @property
    def n_backoff(self) -> int:
        """Return how many pods are in backoff."""
        return len(self._backoff)

    @property
    def n_unschedulable(self) -> int:
        """Return how many pods wait for an event after an attempt."""
        return len(self._unschedulable) - self._unschedulable.n_gated

    @property
    def n_gated(self) -> int:
        """Return how many pods a PreEnqueue plugin gates."""
        return self._unschedulable.n_gated

    @property
    def n_in_flight(self) -> int:
        """Return how many pods were popped and are not done."""
        return len(self._in_flight)

    @property
    def has_next(self) -> bool:
        """Return whether `pop` has a pod to give."""
        if self.is_closed:
            return False
        return bool(len(self._active) or (self.options.pops_from_backoff and len(self._backoff.refused)))

    @property
    def scheduling_cycle(self) -> int:
        """Return how many pods were popped so far."""
        return self._in_flight.n_started

    def __len__(self) -> int:
        """Return how many pods are in the queue; pods in flight are not."""
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield the pods in the queue, in the order in which they came."""
        return iter(self._pods.values())

    def held_back(self) -> Iterator[QueuedPod]:
        """Yield the pods that may not be tried now: those that wait for an event, longest first, and those in backoff."""
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
        """Return how many events are kept for pods in flight, by label, and those pods as PodPopped."""
        return self._in_flight.counts()

    def is_of_interest(self, event: ClusterEvent) -> bool:
        """Return whether an event could wake any pod."""
        return event.is_wildcard or bool(self._hints.interest(event).plugins)

    def watched_resources(self) -> dict[str, int]:
        """Return the resources that plugins wait for, each with the actions that they wait for."""
        return self._hints.resources()

    def next_deadline(self) -> float | None:
        """Return when the next flush has something to do; None if time alone changes nothing.

        A backoff is over at the whole second after its expiry. Pods that waited too long are flushed every 30 seconds, counted
        from the start of the queue: one that came at second 5 and may wait 300 is flushed at second 330, not at 305.
        """
        deadline = math.inf
        for heap in (self._backoff.refused, self._backoff.after_error):
            if (entry := heap.first()) is not None:
                deadline = min(deadline, math.floor(self._backoff.expiry(entry)) + 1.0)
        if (entry := self._unschedulable.by_age.first()) is not None:
            ripe = entry.waiting_since + self.options.max_waiting_seconds - self._started
            rounds = max(math.floor(ripe / LEFTOVERS_EVERY_SECONDS) + 1, 0)
            deadline = min(deadline, self._started + rounds * LEFTOVERS_EVERY_SECONDS)
        return deadline if deadline < math.inf else None

    # Pods come and go

    def add(self, pod: PodView, label: str = "") -> None:
        """Take in a new pod. It replaces a pod of the same name. `label` is the event that the metrics name, by default that
        the pod was added."""
        there = self._pods.get(pod.key)
        if there is not None:
            self._forget(there)
        name = pod.pod.spec.scheduler_name
        profile = self._hints.profiles.get(name)
        if profile is None:
            raise QueueError(f"pod {pod.key}: spec.schedulerName {name!r} is none of our profiles")
        now = self.now()
        entry = self._pods[pod.key] = QueuedPod(pod, profile, now)
        self.nominations.touch(pod.uid)
        if self.options.nominates_gated:
            self.nominations.add(pod)
        self._to_active(entry, label or self._pod_added, now)

    def update(self, old: Pod, new: PodView, events: Iterable[ClusterEvent]) -> None:
        """Take in a pod's new version. `events` is what changed about it, as plugins declare it in their wake-ups."""
        if new.uid in self._in_flight and self.options.asks_hints:
            if not self.options.heeds_own_status and not _is_rewritten(old, new.pod):
                return
            for event in events:
                self._in_flight.record(event, old, new.pod)
            return
        entry = self._pods.get(new.key)
        if entry is None:
            # Since 1.37 the metrics call this an added pod.
            self.add(new, self._pod_added if self.options.pending_pod != UNSCHEDULABLE_POD else self._pod_updated)
            return
        self._replace_pod(entry, new)
        self.nominations.update(old, new)
        if not self.options.heeds_own_status:
            if _is_rewritten(old, new.pod):
                self._activate(entry, self.now())
            return
        if entry.sub_queue is self._unschedulable:
            if not self.options.asks_hints:
                if _may_help_itself(old, new.pod, events):
                    self._requeue(entry, AFTER_BACKOFF, self._pod_updated, self.now())
                return
            for event in events:
                strategy = self._hints.strategy(entry, event, old, new.pod)
                if strategy is not SKIP and self._requeue(entry, strategy, event.label, self.now()):
                    break

    def delete(self, pod: PodView) -> None:
        """Remove a pod that is gone or was bound. If it is in flight its attempt goes on."""
        self.nominations.drop(pod.uid)
        entry = self._pods.get(pod.key)
        if entry is not None:
            self._forget(entry)

    def pop(self) -> QueuedPod | None:
        """Take out the next pod, or return None. It is in flight until `done` or `park`.

        If no pod is active, the refused pod whose backoff ends first is popped before its time: the scheduler has nothing
        better to do.
        """
        if self.is_closed:
            return None
        while True:
            entry = self._active.pop()
            if entry is None:
                entry = self._backoff.refused.pop() if self.options.pops_from_backoff else None
                if entry is None:
                    return None
                if self._observer is not None:
                    self._observer.queue_incoming(self._active.name, POP_FROM_BACKOFF)
            if self._launch(entry):
                return entry

    def take(self, pod: PodView) -> QueuedPod | None:
        """Take out one particular pod, wherever it is, as `pop` would; None if it is not here or a gate keeps it."""
        entry = self._pods.get(pod.key)
        if entry is None or not self._activate(entry, self.now()):
            return None
        self._active.remove(entry)
        return entry if self._launch(entry) else None

    def park(
        self,
        entry: QueuedPod,
        unschedulable_plugins: Iterable[str] = (),
        pending_plugins: Iterable[str] = (),
        pod: PodView | None = None,
    ) -> None:
        """Take back a pod whose attempt failed, and end the attempt.

        The plugins are those that refused it; none means that something broke. `pod` is the newest version of the pod, if that
        is not the version that was tried.
        """
        uid = entry.view.uid
        try:
            self._take_back(entry, frozenset(unschedulable_plugins), frozenset(pending_plugins), pod)
        finally:
            self._in_flight.done(uid)

    def close(self) -> None:
        """End all attempts and give out no more pods."""
        self._in_flight.clear()
        self.is_closed = True

    # Events and time move pods

    def wake(
        self, event: ClusterEvent, old: Any = None, new: Any = None, concerns: Callable[[PodView], bool] | None = None
    ) -> int:
        """Move the unschedulable pods that an event may help; return how many left.

        `concerns` limits which pods may be moved. The event is kept for the pods in flight too, unless no plugin of any profile
        waits for such events.
        """
        interest, waiting, moved = self._hints.interest(event), self._unschedulable, 0
        if interest.is_wildcard:
            found = {entry: self._hints.strategy(entry, event, old, new) for entry in waiting}
        elif not interest.plugins:
            return 0
        elif interest.pairs.isdisjoint(waiting.refused) and waiting.gated.keys().isdisjoint(interest.plugins):
            found = {}
        else:
            changed = new if new is not None else old
            itself = None
            if isinstance(changed, Pod):
                itself = self._pods.get(f"{changed.metadata.namespace}/{changed.metadata.name}")
                if itself is not None and itself.view.uid != changed.metadata.uid:
                    itself = None
            found = self._hints.strategies(waiting, event, old, new, itself)
        if found:
            label, now = event.label, self.now()
            for entry, strategy in found.items():
                if strategy is not SKIP and (concerns is None or concerns(entry.view)):
                    waiting.remove(entry)
                    moved += self._requeue(entry, strategy, label, now)
        self._in_flight.record(event, old, new)
        return moved

    def activate(self, pods: Iterable[PodView]) -> None:
        """Move pods to the active queue at once, if their gates let them in. A pod in flight gets an event instead, so that it
        is not parked as unschedulable."""
        for pod in pods:
            entry = self._pods.get(pod.key)
            is_active = entry is not None and entry.sub_queue is self._active
            if entry is not None and not is_active and self._activate(entry, self.now()):
                continue
            if pod.uid in self._in_flight or not self.options.asks_hints:
                self._in_flight.record(FORCE_ACTIVATE, None, pod.pod)

    def ask_gates(self, pods: Iterable[PodView]) -> None:
        """Call the PreEnqueue plugins for gated pods again. Pods that they let in now go to backoff or to the active queue."""
        now = self.now()
        for pod in pods:
            entry = self._pods.get(pod.key)
            if entry is not None and entry.is_gated:
                self._requeue(entry, AFTER_BACKOFF, ATTEMPT_FAILED, now)

    def flush_backoff(self, now: float) -> int:
        """Move the pods whose backoff is over to the active queue; return how many went."""
        over = list(self._backoff.pop_over(now))
        return sum(self._to_active(entry, BACKOFF_COMPLETE, now, from_backoff=True) for entry in over)

    def flush_leftovers(self, now: float) -> int:
        """Move the pods that waited too long, whatever they wait for; return how many went.

        A hint or a wake-up may be wrong, so kube-scheduler retries every pod after five minutes. This bounds what such a bug
        costs.
        """
        flushed = self._unschedulable.pop_older(now - self.options.max_waiting_seconds)
        moved = 0
        for entry in flushed:
            entry.was_flushed = True
            entry.flushed_at = now
            moved += self._requeue(entry, AFTER_BACKOFF, UNSCHEDULABLE_TIMEOUT.label, now)
        if flushed:
            self._in_flight.record(UNSCHEDULABLE_TIMEOUT, None, None)
        return moved

    # In flight and back

    def _launch(self, entry: QueuedPod) -> bool:
        """Put an entry that is in no sub-queue in flight. A second entry of a pod in flight is dropped."""
        view = entry.view
        del self._pods[view.key]
        self.nominations.touch(view.uid)
        entry.attempts += 1
        if entry.unschedulable_plugins or entry.pending_plugins:
            self._count_rejectors(entry, -1)
        if not self._in_flight.start(view.uid):
            log.error("pod %s is queued although an attempt for it is under way: dropping the second entry", view.key)
            return False
        return True

    def _take_back(self, entry: QueuedPod, unschedulable: frozenset[str], pending: frozenset[str], pod: PodView | None) -> None:
        """Put an entry whose attempt failed where it belongs.

        Example: NodeResourcesFit refused web-1, so web-1 waits for an event. But a node was added while web-1 was in flight,
        and the plugin's hint says that web-1 fits there: web-1 goes to backoff instead, as if it had waited already when the
        node came.
        """
        if pod is not None:
            entry.view = pod
        # After a reload the entry may belong to a queue and a profile that are gone.
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
        if unschedulable or pending or not self.options.counts_errors_apart:
            entry.unschedulable_count += 1
            entry.consecutive_errors = 0
        else:
            entry.consecutive_errors += 1
        entry.timestamp = now = self.now()
        entry.backoff_expiry = None
        entry.was_flushed = False
        entry.flushed_at = 0.0
        # A group's members wait to the end of their backoff. kube-scheduler pops them early too, and would try a group that
        # does not fit again and again, without a pause, for as long as nothing else is active.
        entry.sits_out = self.options.has_pod_groups and entry.view.pod.spec.scheduling_group is not None
        self._count_rejectors(entry, 1)
        strategy = self._strategy_in_flight(entry)
        self._pods[entry.view.key] = entry
        self.nominations.touch(entry.view.uid)
        if strategy is SKIP:
            self._to_unschedulable(entry, ATTEMPT_FAILED)
        elif self.options.asks_hints:
            self._requeue(entry, strategy, ATTEMPT_FAILED, now)
        else:
            self._to_backoff(entry, ATTEMPT_FAILED)

    def _strategy_in_flight(self, entry: QueuedPod) -> Strategy:
        """Return what the events since the pod was popped mean for it."""
        if entry.sits_out or not self.options.waits_for_events:
            return AFTER_BACKOFF
        if not entry.unschedulable_plugins and not entry.pending_plugins:
            return AFTER_BACKOFF
        if not self.options.asks_hints:
            # Events before the last pop do not count, not even for a pod that was popped before that.
            return AFTER_BACKOFF if self._in_flight.has_event_since_last_start else SKIP
        happened = self._in_flight.since_start(entry.view.uid)
        if happened is None:
            return AFTER_BACKOFF
        best = SKIP
        for event, old, new in happened:
            strategy = self._hints.strategy(entry, event, old, new)
            if strategy > best:
                best = strategy
                if best is IMMEDIATELY or not entry.pending_plugins:
                    break
        return best

    # Between the sub-queues

    def _requeue(self, entry: QueuedPod, strategy: Strategy, label: str, now: float) -> bool:
        """Move an entry on, to backoff if it must wait; return False if a gate keeps it."""
        if strategy is AFTER_BACKOFF and self._backoff.is_pausing(entry, now):
            return self._to_backoff(entry, label)
        return self._to_active(entry, label, now)

    def _to_active(self, entry: QueuedPod, label: str, now: float, *, from_backoff: bool = False) -> bool:
        """Make an entry active that is unschedulable or in no sub-queue; return False if a gate keeps it."""
        was_waiting = entry.sub_queue is not None
        if was_waiting:
            self._unschedulable.remove(entry)
        # A pod in backoff passed its gates on the way in, unless popping from backoff is switched off.
        asks_gates = not (from_backoff and self.options.pops_from_backoff)
        if not self._may_enter(entry, asks_gates=asks_gates):
            self._to_unschedulable(entry, label, is_new=not was_waiting)
            return False
        if entry.initial_attempt is None:
            entry.initial_attempt = now
        self._active.add(entry)
        if self._observer is not None:
            self._observer.queue_incoming(self._active.name, label)
        if label in (self._pod_added, self._pod_updated):
            self.nominations.add(entry.view)
        return True

    def _to_backoff(self, entry: QueuedPod, label: str) -> bool:
        """Put an entry into backoff that is unschedulable or in no sub-queue; return False if a gate keeps it."""
        was_waiting = entry.sub_queue is not None
        if was_waiting:
            self._unschedulable.remove(entry)
        if not self._may_enter(entry, asks_gates=self.options.pops_from_backoff):
            self._to_unschedulable(entry, label, is_new=not was_waiting)
            return False
        self._backoff.add(entry)
        if self._observer is not None:
            self._observer.queue_incoming(self._backoff.name, label)
        return True

    def _to_unschedulable(self, entry: QueuedPod, label: str, *, is_new: bool = True) -> None:
        """Let an entry that is in no sub-queue wait for an event."""
        entry.was_flushed = False
        self._unschedulable.add(entry)
        if is_new and self._observer is not None:
            self._observer.queue_incoming(self._unschedulable.name, label)

    def _activate(self, entry: QueuedPod, now: float) -> bool:
        """Make an entry active wherever it is; return False if a gate keeps it."""
        if entry.sub_queue is self._active:
            return True
        from_backoff = entry.sub_queue is self._backoff
        if from_backoff:
            self._backoff.remove(entry)
        return self._to_active(entry, FORCE_ACTIVATE.label, now, from_backoff=from_backoff)

    def _replace_pod(self, entry: QueuedPod, pod: PodView) -> None:
        """Give an entry its pod's new version. The entry stays in its sub-queue."""
        sub_queue = entry.sub_queue
        assert sub_queue is not None
        sub_queue.remove(entry)
        entry.view = pod
        if sub_queue is self._unschedulable or self._may_enter(entry, asks_gates=False):
            sub_queue.add(entry)
        else:
            self._to_unschedulable(entry, self._pod_updated)

    def _forget(self, entry: QueuedPod) -> None:
        """Remove an entry for good.

        kube-scheduler takes only unschedulable pods off the metric unschedulable_pods, so a pod that is deleted during its
        backoff is counted forever. Here every pod is taken off.
        """
        if entry.sub_queue is not None:
            entry.sub_queue.remove(entry)
        del self._pods[entry.view.key]
        self._count_rejectors(entry, -1)

    def _count_rejectors(self, entry: QueuedPod, change: int) -> None:
        if self._observer is not None:
            for plugin in sorted(entry.rejectors):
                self._observer.unschedulable(plugin, entry.profile.name, change)

    def _view_of(self, key: str) -> PodView | None:
        entry = self._pods.get(key) or self._aside.get(key)
        return entry.view if entry is not None else None

    # What plugins say

    def _may_enter(self, entry: QueuedPod, *, asks_gates: bool) -> bool:
        """Call PreEnqueue if wanted, and compute the sort key. If a plugin refuses or raises it becomes the pod's gate: return
        False."""
        if asks_gates:
            try:
                status = entry.profile.profile.pre_enqueue(entry.view, entry.gating_plugin)
            except PluginError as error:
                self._broke(entry, error)
                return False
            if not status.is_success:
                self._gate(entry, status.plugin)
                return False
            entry.gating_plugin = ""
        try:
            entry.sort_key = self._sort_key(entry.view, entry.timestamp)
        except BaseException as error:  # whatever a plugin raises, the pod must not be lost, nor the process end
            self._broke(entry, blamed(error, self._sorter, "QueueSort", entry.view.key))
            return False
        return True

    def _gate(self, entry: QueuedPod, plugin: str) -> None:
        if self._observer is not None and plugin not in entry.rejectors:
            self._observer.unschedulable(plugin, entry.profile.name, 1)
        entry.unschedulable_plugins |= {plugin}
        entry.gating_plugin = plugin

    def _broke(self, entry: QueuedPod, error: PluginError) -> None:
        log.error("plugin %s broke at %s of pod %s: %s", error.plugin, error.point, entry.view.key, error)
        if self._observer is not None:
            self._observer.broke(error.plugin, error.point, entry.view.key, error)
        self._gate(entry, error.plugin)


def _is_rewritten(old: Pod, new: Pod) -> bool:
    """Return whether more changed than a pod's status, resourceVersion and generation."""
    version, generation = new.metadata.resource_version, new.metadata.generation
    same = msgspec.structs.replace(old.metadata, resource_version=version, generation=generation)
    return old.spec != new.spec or same != new.metadata


def _may_help_itself(old: Pod, new: Pod, events: Iterable[ClusterEvent]) -> bool:
    """Return whether a pod changed, without its finalizers and status, or got its claims. A change of a field that our structs
    do not have shows in the generation."""
    before = msgspec.structs.replace(old.metadata, finalizers=new.metadata.finalizers)
    return (
        old.metadata.generation != new.metadata.generation
        or _is_rewritten(msgspec.structs.replace(old, metadata=before), new)
        or any(event.action == Action.POD_CLAIMS for event in events)
    )


def _first_come(pod: PodView, queued_at: float) -> float:
    return queued_at
