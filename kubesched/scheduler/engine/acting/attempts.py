"""Attempts: take the next pod, decide where it goes, and act on the decision.

    take      pop a pod; if it belongs to a group, all members of the group with it
    decide    find a node for it; changes nothing, so it may run in a thread (where extenders are called over the network)
    act       book the node, or let the attempt fail: evict victims, park the pod, report why

A plugin that raises ends the attempt of one pod. It arrives here as a `PluginError` that names the plugin
(framework/runtime/blame). The broad `except Exception` are for bugs of our own: they too cost one attempt, and never stop the
scheduler.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
from msgspec import Struct

from kubesched.errors import PluginError
from kubesched.scheduler.cluster import Bools, PodView
from kubesched.scheduler.engine.acting.bookings import Bookings
from kubesched.scheduler.engine.acting.eviction import CarriesOut, Then
from kubesched.scheduler.engine.acting.failures import Failures
from kubesched.scheduler.engine.core import Core
from kubesched.scheduler.engine.deciding.attempt import Rules
from kubesched.scheduler.engine.deciding.cycle import attempt
from kubesched.scheduler.engine.deciding.deferred_resizes import DeferredResizes
from kubesched.scheduler.engine.deciding.failure import Failure, broken, explain, refusal
from kubesched.scheduler.engine.deciding.preemptor import Preemptor
from kubesched.scheduler.engine.groups.group import Rehearsal
from kubesched.scheduler.engine.groups.pod_groups import Gang, Gangs
from kubesched.scheduler.engine.records.decision_recorder import Tried
from kubesched.scheduler.framework import (
    EquivalenceCache,
    Failed,
    GroupTurn,
    Placed,
    Preemption,
    Profile,
    Unschedulable,
)
from kubesched.scheduler.queue import QueuedPod
from kubesched.telemetry.logs import logger

log = logger(__name__)


class PoppedPod(Struct, frozen=True):
    """A pod that was popped at `started`, with its group if it is tried with one."""

    queued: QueuedPod
    profile: Profile
    started: float
    gang: Gang | None


class Attempts:
    """Tries pods, alone and in groups. For groups it is their `GroupActions`."""

    def __init__(
        self,
        core: Core,
        rules: Rules,
        caches: dict[str, EquivalenceCache],
        bookings: Bookings,
        evictions: CarriesOut,
        failures: Failures,
    ) -> None:
        self._core = core
        self._store = core.store
        self._handle = core.handle
        self._observer = core.observer
        self.rules = rules
        self.caches = caches
        """By profile name. A profile whose answers are not cached has none."""
        self._bookings = bookings
        self.evictions = evictions
        self.fail, self.unreserve = failures.end, bookings.unreserve
        self._resizes = DeferredResizes(core.store)
        self.gangs = Gangs(core, self)

    def take(self) -> PoppedPod | None:
        """Pop the next pod that is worth trying, and with it its group; None if there is none.

        While evictions in the foreground are under way no pod is tried: it might take the room that they make.
        """
        # Kept quirk: with SchedulerAsyncPreemption off, kube-scheduler's PostFilter waits for the deletions inside the
        # scheduling cycle, so nothing else is scheduled meanwhile.
        if self.evictions.n_waited_for:
            return None
        while (queued := self._core.queue.pop()) is not None:
            profile = self._core.profiles.get(queued.view.pod.spec.scheduler_name)
            # After a reload no profile may have this pod's schedulerName any more.
            if profile is None or not self.is_worth_trying(queued.view):
                self._core.queue.done(queued.view.uid)
                continue
            started = self._handle.clock.monotonic()
            try:
                # A running pod with a deferred resize is tried alone, even if it was placed with a group: its group is
                # complete.
                is_resize = bool(queued.view.node_name)
                gang = self.gangs.gather(queued, profile) if self._store.groups.are_kept and not is_resize else None
            except PluginError as error:
                self._broke(Tried(queued, profile, started), error)
                continue
            return PoppedPod(queued, profile, started, gang)
        return None

    def is_worth_trying(self, pod: PodView) -> bool:
        """Return whether a pod still needs a node: it is not being deleted and not assumed already."""
        if pod.pod.metadata.deletion_timestamp is not None:
            note = f"skip schedule deleting pod: {pod.namespace}/{pod.name}"
            log.v(3).info("Skip schedule deleting pod", pod=pod.key)
            self._handle.recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", note)
            return False
        # As in kube-scheduler. A pod must not be booked twice, however it came into the queue again.
        return not self._store.is_assumed(pod.uid)

    def decide(self, popped: PoppedPod) -> Tried | Rehearsal | Exception:
        """Decide without changing anything; return the exception if something broke. May run in a thread."""
        try:
            if popped.gang is not None:
                return self.gangs.rehearse(popped.gang)
            return self.try_pod(popped.queued, popped.profile, popped.started)
        except Exception as error:  # see the head of this file
            return error

    def try_pod(
        self,
        queued: QueuedPod,
        profile: Profile,
        started: float,
        within: Bools | None = None,
        turn: GroupTurn | None = None,
    ) -> Tried:
        """Find a node for a pod. `turn` is given for a member of a group, and `within` if only some nodes are allowed.

        A pod that has a node already is here because of a resize that the kubelet deferred; only its own node is tried.
        """
        pod, rules, monotonic = queued.view, self.rules, self._handle.clock.monotonic
        # Only deciding is measured, for scheduling_algorithm_duration; the record is made outside of it.
        if pod.node_name:
            made, seconds, now = self._resizes.attempt(pod, profile, rules), 0.0, monotonic()
        else:
            # A group that is judged as a whole has PodGroupPostFilter instead. A PostFilter of each member would choose victims
            # for members one by one, and the group might still not fit.
            if turn is not None and not turn.asks_post_filter:
                rules = replace(rules, preempts=False)
            began = monotonic()
            # The snapshot is borrowed: its columns change with the next booking. So the record below is made before `act` books
            # anything.
            made = attempt(pod, self._store.snapshot(), profile, rules, self.caches.get(profile.name), within, turn)
            now = monotonic()
            seconds = now - began
            self._observer.decided(seconds)
        record = self._core.decisions.take(made, seconds, now) if self._core.decisions is not None else None
        return Tried(queued, profile, started, made, seconds, record)

    def act(self, popped: PoppedPod, outcome: Tried | Rehearsal | Exception) -> None:
        """Carry out a decision."""
        if popped.gang is not None:
            # The trial's own bookings are gone already: the exception left the `ExitStack` that holds their undo.
            if not isinstance(outcome, Rehearsal):
                assert isinstance(outcome, Exception)
                outcome = self.gangs.broken(explain(outcome, (self.gangs.trying or popped.queued).view, self._observer))
            self.gangs.submit(popped.gang, outcome, popped.started)
            return
        if not isinstance(outcome, Tried):
            assert isinstance(outcome, Exception)
            self._broke(Tried(popped.queued, popped.profile, popped.started), outcome)
            return
        made = outcome.made
        assert made is not None
        decision = made.decision
        try:
            if popped.queued.view.node_name:
                self.follow_up(outcome, self._resizes.conclude(popped.queued.view, made))
            elif isinstance(decision, Placed):
                self._bookings.book(outcome, decision.node_name)
            elif isinstance(decision, Unschedulable):
                self.follow_up(outcome, refusal(decision))
            elif isinstance(decision, Failed):
                self.fail(outcome, broken(decision.message, decision.nomination))
        except Exception as error:  # see the head of this file
            self._broke(outcome, error)

    def follow_up(self, tried: Tried, failure: Failure) -> None:
        """Carry out what PostFilter proposed, and let the attempt fail.

        Evictions begin before the pod is parked, because it must not be tried again while they are under way. With
        SchedulerAsyncPreemption off, the attempt fails only when the evictions are over.

            background   begin (high is gated) -> park high, nominated to a -> v1, v2, v3 are deleted -> high is woken
            foreground   v1, v2, v3 are deleted, no pod is tried -> park high, nominated to a -> the deletions wake high
        """
        made = tried.made
        result = made.post_filtered if made is not None else None
        if result is not None and result.follow_up is not None:
            # A plugin's own work that must not hold up the loop, such as DynamicResources releasing a claim's allocation.
            self._core.spawn(result.follow_up())  # type: ignore[arg-type]
        if made is None or result is None or result.preemption is None:
            self.fail(tried, failure)
            return
        failing = msgspec.structs.replace(failure, preemption=result.preemption)
        self.evict(
            Preemptor.of(made.pod),
            result.preemption,
            lambda problem: self.fail(tried, _not_evicted(failing, problem) if problem else failing),
        )

    def evict(self, preemptor: Preemptor, preemption: Preemption, then: Then) -> None:
        """Evict what PostFilter or PodGroupPostFilter proposed, then call `then` with what went wrong, or an empty text."""
        if self.evictions.in_background:
            self.evictions.carry_out(preemptor, preemption)
            then("")
        else:
            self.evictions.carry_out(preemptor, preemption, then)

    def book(self, tried: Tried, node_name: str) -> None:
        """Book one member of a group. If that breaks, only this member's attempt fails."""
        try:
            self._bookings.book(tried, node_name)
        except Exception as error:  # see the head of this file; the other members go on
            self._broke(tried, error)

    def _broke(self, tried: Tried, error: Exception) -> None:
        """Fail an attempt that a plugin, or a bug of ours, broke."""
        if self._core.decisions is not None and tried.made is None:
            tried = msgspec.structs.replace(tried, record=self._core.decisions.broken(tried, error, self._store.snapshot()))
        self.fail(tried, broken(explain(error, tried.queued.view, self._observer)))


def _not_evicted(failure: Failure, problem: str) -> Failure:
    """Return a failure whose preemption came to nothing, because an eviction failed."""
    diagnosis = failure.diagnosis
    # The diagnosis is kept, so that the pod waits for the events of the plugins that refused it, as if preemption had found no
    # node.
    if diagnosis is None:
        return Failure(f"{failure.message} preemption: {problem}", True, preemption=failure.preemption)
    diagnosis.post_filter_message = f"preemption: {problem}"
    return Failure(diagnosis.message(), True, diagnosis, preemption=failure.preemption)
