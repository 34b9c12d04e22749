"""Attempts: whose turn it is, what becomes of it, and doing that.

In: the queue's next pod, with its group if it is tried with one. Out: a booking, or a failure with what PostFilter
proposed. Deciding changes nothing and may run in a thread; taking and acting belong to the loop's turn. What plugins raise
arrives here as a `PluginError` that names them (framework/runtime/blame); the broad `except`s are for faults of our own,
which cost an attempt and never the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from msgspec import Struct

from kubesched.errors import PluginError
from kubesched.scheduler.cluster import Bools, PodView, Store
from kubesched.scheduler.engine.acting.bookings import Bookings
from kubesched.scheduler.engine.acting.eviction import Evictions, Preemptor, Then
from kubesched.scheduler.engine.acting.failures import Failure, Failures, Spawn, explain, refusal
from kubesched.scheduler.engine.arrivals.deferred_resizes import DeferredResizes
from kubesched.scheduler.engine.arrivals.inbox import Inbox
from kubesched.scheduler.engine.deciding.cycle import Attempt, Rules, attempt
from kubesched.scheduler.engine.groups.group import GroupCycle, Rehearsal
from kubesched.scheduler.engine.groups.pod_groups import Gang, Gangs
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.engine.observer import EngineObserver
from kubesched.scheduler.engine.records.decision_recorder import DecisionRecorder
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.equivalence_cache.cache import EquivalenceCache
from kubesched.scheduler.framework.grouping import GroupTurn
from kubesched.scheduler.framework.preemption.preempting import Preemption
from kubesched.scheduler.framework.runtime.profile import Profile
from kubesched.scheduler.framework.verdicts import CLEAR, Failed, Placed, Unschedulable
from kubesched.scheduler.queue import Queue
from kubesched.scheduler.queue.queued import QueuedPod
from kubesched.telemetry.logs import logger

log = logger(__name__)


class Tried(Struct):
    """Whose turn it is: a pod that was popped when `started`, and its group if it is tried with one."""

    queued: QueuedPod
    profile: Profile
    started: float
    gang: Gang | None


class Attempts:
    """Tries pods, alone and in groups (as `GroupActions`)."""

    def __init__(
        self,
        store: Store,
        profiles: Mapping[str, Profile],
        queue: Queue,
        handle: EngineHandle,
        inbox: Inbox,
        observer: EngineObserver,
        rules: Rules,
        memos: Mapping[str, EquivalenceCache],
        bookings: Bookings,
        evictions: Evictions,
        failures: Failures,
        spawn: Spawn,
        decisions: DecisionRecorder | None = None,
    ) -> None:
        self._decisions = decisions
        self._store = store
        self._profiles = profiles
        self._queue = queue
        self._handle = handle
        self._observer = observer
        self.rules = rules
        self._resizes = DeferredResizes(store)
        self._memos = memos
        self._bookings = bookings
        self._evictions = evictions
        self._failures = failures
        self._spawn = spawn
        cycle = GroupCycle(store, self, handle.clock, handle.random)
        self.gangs = Gangs(store, queue, handle, inbox, observer, cycle, self, spawn)

    def take(self) -> Tried | None:
        """Take the next pod that is worth trying out of the queue, and with it its group."""
        if self._evictions.are_waited_for:
            return None
        while (queued := self._queue.pop()) is not None:
            profile = self._profiles.get(queued.view.pod.spec.scheduler_name)
            if profile is None or not self.is_worth_trying(queued.view):
                self._queue.done(queued.view.uid)
                continue
            started = self._handle.clock.monotonic()
            try:
                is_resize = bool(queued.view.node_name)
                gang = self.gangs.gather(queued, profile) if self._store.groups.are_kept and not is_resize else None
            except PluginError as error:
                self._broke(queued, profile, started, error)
                continue
            return Tried(queued, profile, started, gang)
        return None

    def is_worth_trying(self, pod: PodView) -> bool:
        """Return whether a pod is still to be placed."""
        if pod.pod.metadata.deletion_timestamp is not None:
            note = f"skip schedule deleting pod: {pod.namespace}/{pod.name}"
            log.v(3).info("Skip schedule deleting pod", pod=pod.key)
            self._handle.recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", note)
            return False
        return not self._store.is_assumed(pod.uid)

    def decide(self, tried: Tried) -> Attempt | Rehearsal | Exception:
        """Find out what is to be done, without doing it; what broke is the answer then. May run in a thread."""
        try:
            if tried.gang is not None:
                return self.gangs.rehearse(tried.gang)
            return self._try(tried.queued.view, tried.profile)
        except Exception as error:  # a plugin that broke, or we: it costs this attempt
            return error

    def try_pod(self, pod: PodView, profile: Profile, within: Bools | None, turn: GroupTurn) -> Attempt:
        """Find a node for a member of a group in its turn, on all nodes or on some of them. What it was decided by is taken
        down at once: the members after it change the columns."""
        made = self._try(pod, profile, within, turn)
        if self._decisions is not None and made.record is None:
            self._decisions.capture(made, profile)
        return made

    def _try(self, pod: PodView, profile: Profile, within: Bools | None = None, turn: GroupTurn | None = None) -> Attempt:
        started = self._handle.clock.monotonic()
        if pod.node_name:
            return self._resizes.attempt(pod, profile, self.rules)
        rules = replace(self.rules, preempts=False) if turn is not None and not turn.asks_post_filter else self.rules
        made = attempt(pod, self._store.snapshot(), profile, rules, self._memos.get(profile.name), within, turn)
        ended = self._handle.clock.monotonic()
        made.seconds = ended - started
        self._observer.decided(made.seconds)
        if self._decisions is not None and ended >= self._decisions.idle_until:
            self._decisions.capture_in_full(made, profile)
        return made

    def act(self, tried: Tried, outcome: Attempt | Rehearsal | Exception) -> None:
        """Do what was decided."""
        queued, profile, started, gang = tried.queued, tried.profile, tried.started, tried.gang
        if gang is not None:
            if not isinstance(outcome, Rehearsal):
                assert isinstance(outcome, Exception)
                outcome = self.gangs.broken(explain(outcome, (self.gangs.trying or queued).view, self._observer))
            self.gangs.submit(gang, outcome, started)
            return
        try:
            if not isinstance(outcome, Attempt):
                assert isinstance(outcome, Exception)
                raise outcome
            self._act_on(queued, profile, outcome, started)
        except Exception as error:  # as above
            self._broke(queued, profile, started, error, outcome if isinstance(outcome, Attempt) else None)

    def _act_on(self, queued: QueuedPod, profile: Profile, made: Attempt, started: float) -> None:
        decision = made.decision
        if made.pod.node_name:
            failure = self._resizes.conclude(made.pod, made)
            self.follow_up(made, profile, lambda given: self.fail(queued, profile, given, started, made), failure)
        elif isinstance(decision, Placed):
            self._bookings.book(queued, profile, made, decision.node_name, started)
        elif isinstance(decision, Unschedulable):
            self.follow_up(made, profile, lambda given: self.fail(queued, profile, given, started, made), refusal(decision))
        elif isinstance(decision, Failed):
            self.fail(queued, profile, Failure(decision.message, False, None, decision.nomination), started, made)

    def follow_up(self, made: Attempt, profile: Profile, fail: Callable[[Failure], None], failure: Failure) -> None:
        """Carry out what PostFilter proposed, and let the attempt fail.

        Evictions begin first: the pod must not be tried again while they are under way. Without a background, it does
        not fail before they are over.
        """
        result = made.post_filtered
        if result is not None and result.follow_up is not None:
            self._spawn(result.follow_up())  # type: ignore[arg-type]
        preemption = result.preemption if result is not None else None
        if preemption is not None and self._decisions is not None:
            self._decisions.preempts(made, profile, preemption)
        if preemption is None:
            fail(failure)
        elif self._evictions.in_background:
            self._evictions.carry_out(Preemptor.of(made.pod), preemption)
            fail(failure)
        else:
            self._evictions.carry_out(
                Preemptor.of(made.pod), preemption, lambda problem: fail(_not_evicted(failure, problem) if problem else failure)
            )

    def evict_for_group(self, preemptor: Preemptor, preemption: Preemption, then: Then) -> None:
        """Carry out what PodGroupPostFilter proposed; `then` follows, with what went wrong."""
        if self._evictions.in_background:
            self._evictions.carry_out(preemptor, preemption)
            then("")
        else:
            self._evictions.carry_out(preemptor, preemption, then)

    def book(self, queued: QueuedPod, profile: Profile, made: Attempt, node_name: str, started: float) -> None:
        """Book one member of a group; if that breaks it costs this member's attempt."""
        try:
            self._bookings.book(queued, profile, made, node_name, started)
        except Exception as error:  # a plugin that broke, or we: the other members go on
            self._broke(queued, profile, started, error, made)

    def unreserve(self, profile: Profile, booked: PodView, node_name: str, state: CycleState) -> None:
        """Take back what plugins promised for a member."""
        self._bookings.unreserve(profile, booked, node_name, state)

    def drop_nomination(self, uid: str) -> None:
        """Let a member wait for no node any more."""
        self._queue.nominations.drop(uid)

    def fail(self, queued: QueuedPod, profile: Profile, failure: Failure, started: float, made: Attempt | None = None) -> None:
        """End a pod's attempt."""
        self._failures.end(queued, profile, failure, started, made)

    def _broke(
        self, queued: QueuedPod, profile: Profile, started: float, error: Exception, made: Attempt | None = None
    ) -> None:
        message = explain(error, queued.view, self._observer)
        self.fail(queued, profile, Failure(message, False, None, CLEAR), started, made)


def _not_evicted(failure: Failure, problem: str) -> Failure:
    """Return what a failed eviction makes of a failure that had found a way out: none was found after all."""
    diagnosis = failure.diagnosis
    if diagnosis is None:
        return Failure(f"{failure.message} preemption: {problem}", True)
    diagnosis.post_filter_message = f"preemption: {problem}"
    return Failure(diagnosis.message(), True, diagnosis)
