"""Attempts: whose turn it is, what becomes of it, and doing that.

In: the queue's next pod, with its group if it is tried with one. Out: a booking, or a failure with what PostFilter
proposed. Deciding changes nothing and may run in a thread; taking and acting belong to the loop's turn. What plugins raise
arrives here as a `PluginError` that names them (framework/runtime/blame); the broad `except`s are for faults of our own,
which cost an attempt and never the scheduler.
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
from kubesched.scheduler.engine.records.tried import Tried
from kubesched.scheduler.framework import (
    CycleState,
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


class Turn(Struct, frozen=True):
    """Whose turn it is: a pod that was popped when `started`, and its group if it is tried with one."""

    queued: QueuedPod
    profile: Profile
    started: float
    gang: Gang | None


class Attempts:
    """Tries pods, alone and in groups (as `GroupActions`)."""

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
        """By profile; whose answers are not cached has none."""
        self._bookings = bookings
        self.evictions = evictions
        self._failures = failures
        self._resizes = DeferredResizes(core.store)
        self.gangs = Gangs(core, self)

    def take(self) -> Turn | None:
        """Take the next pod that is worth trying out of the queue, and with it its group."""
        if self.evictions.n_waited_for:
            return None
        while (queued := self._core.queue.pop()) is not None:
            profile = self._core.profiles.get(queued.view.pod.spec.scheduler_name)
            if profile is None or not self.is_worth_trying(queued.view):
                self._core.queue.done(queued.view.uid)
                continue
            started = self._handle.clock.monotonic()
            try:
                is_resize = bool(queued.view.node_name)
                gang = self.gangs.gather(queued, profile) if self._store.groups.are_kept and not is_resize else None
            except PluginError as error:
                self._broke(Tried(queued, profile, started), error)
                continue
            return Turn(queued, profile, started, gang)
        return None

    def is_worth_trying(self, pod: PodView) -> bool:
        """Return whether a pod is still to be placed."""
        if pod.pod.metadata.deletion_timestamp is not None:
            note = f"skip schedule deleting pod: {pod.namespace}/{pod.name}"
            log.v(3).info("Skip schedule deleting pod", pod=pod.key)
            self._handle.recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", note)
            return False
        return not self._store.is_assumed(pod.uid)

    def decide(self, turn: Turn) -> Tried | Rehearsal | Exception:
        """Find out what is to be done, without doing it; what broke is the answer then. May run in a thread."""
        try:
            if turn.gang is not None:
                return self.gangs.rehearse(turn.gang)
            return self.try_pod(turn.queued, turn.profile, turn.started)
        except Exception as error:  # a plugin that broke, or we: it costs this attempt
            return error

    def try_pod(
        self,
        queued: QueuedPod,
        profile: Profile,
        started: float,
        within: Bools | None = None,
        turn: GroupTurn | None = None,
    ) -> Tried:
        """Find a node for a pod; for a member of a group in its turn, on all nodes or on some of them."""
        pod, rules, monotonic = queued.view, self.rules, self._handle.clock.monotonic
        if pod.node_name:
            made, seconds, now = self._resizes.attempt(pod, profile, rules), 0.0, monotonic()
        else:
            if turn is not None and not turn.asks_post_filter:
                rules = replace(rules, preempts=False)
            began = monotonic()
            made = attempt(pod, self._store.snapshot(), profile, rules, self.caches.get(profile.name), within, turn)
            now = monotonic()
            seconds = now - began
            self._observer.decided(seconds)
        record = self._core.decisions.take(made, seconds, now) if self._core.decisions is not None else None
        return Tried(queued, profile, started, made, seconds, record)

    def act(self, turn: Turn, outcome: Tried | Rehearsal | Exception) -> None:
        """Do what was decided."""
        if turn.gang is not None:
            if not isinstance(outcome, Rehearsal):
                assert isinstance(outcome, Exception)
                outcome = self.gangs.broken(explain(outcome, (self.gangs.trying or turn.queued).view, self._observer))
            self.gangs.submit(turn.gang, outcome, turn.started)
            return
        if not isinstance(outcome, Tried):
            assert isinstance(outcome, Exception)
            self._broke(Tried(turn.queued, turn.profile, turn.started), outcome)
            return
        made = outcome.made
        assert made is not None
        decision = made.decision
        try:
            if turn.queued.view.node_name:
                self.follow_up(outcome, self._resizes.conclude(turn.queued.view, made))
            elif isinstance(decision, Placed):
                self._bookings.book(outcome, decision.node_name)
            elif isinstance(decision, Unschedulable):
                self.follow_up(outcome, refusal(decision))
            elif isinstance(decision, Failed):
                self.fail(outcome, broken(decision.message, decision.nomination))
        except Exception as error:  # as above
            self._broke(outcome, error)

    def follow_up(self, tried: Tried, failure: Failure) -> None:
        """Carry out what PostFilter proposed, and let the attempt fail.

        Evictions begin first: the pod must not be tried again while they are under way. Without a background, it does
        not fail before they are over.
        """
        made = tried.made
        result = made.post_filtered if made is not None else None
        if result is not None and result.follow_up is not None:
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
        """Carry out what PostFilter or PodGroupPostFilter proposed; `then` follows, with what went wrong."""
        if self.evictions.in_background:
            self.evictions.carry_out(preemptor, preemption)
            then("")
        else:
            self.evictions.carry_out(preemptor, preemption, then)

    def book(self, tried: Tried, node_name: str) -> None:
        """Book one member of a group; if that breaks it costs this member's attempt."""
        try:
            self._bookings.book(tried, node_name)
        except Exception as error:  # a plugin that broke, or we: the other members go on
            self._broke(tried, error)

    def unreserve(self, profile: Profile, booked: PodView, node_name: str, state: CycleState) -> None:
        """Take back what plugins promised for a member."""
        self._bookings.unreserve(profile, booked, node_name, state)

    def fail(self, tried: Tried, failure: Failure) -> None:
        """End a pod's attempt."""
        self._failures.end(tried, failure)

    def _broke(self, tried: Tried, error: Exception) -> None:
        self.fail(tried, broken(explain(error, tried.queued.view, self._observer)))


def _not_evicted(failure: Failure, problem: str) -> Failure:
    """Return what a failed eviction makes of a failure that had found a way out: none was found after all."""
    diagnosis = failure.diagnosis
    if diagnosis is None:
        return Failure(f"{failure.message} preemption: {problem}", True, preemption=failure.preemption)
    diagnosis.post_filter_message = f"preemption: {problem}"
    return Failure(diagnosis.message(), True, diagnosis, preemption=failure.preemption)
