"""The loop: take, decide, book, hand over.

In: the inbox. Out: bookings in the store, bindings handed to the binder, failures handed to `failures`. Everything that
changes the store or the queue happens here, one thing after another, so there are no locks to reason about. What plugins
raise arrives here as a `PluginError` that names them (framework/blame); the broad `except`s are for faults of our own, which
cost an attempt and never the scheduler.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec import Struct

from kubesched.api.pod import Pod
from kubesched.cluster import Bools, GroupKey, PodView, Store
from kubesched.cluster.groups import Reader
from kubesched.engine.binding import Binder
from kubesched.engine.cycle import Attempt, Rules, attempt
from kubesched.engine.eviction import Evictions
from kubesched.engine.extenders import Extenders
from kubesched.engine.failures import Failure, Failures, explain, refusal, refused_on_node
from kubesched.engine.group import GroupCycle, Rehearsal
from kubesched.engine.handle import EngineHandle
from kubesched.engine.inbox import Arrival, AssumedBinding, BindFailed, Bound, Changed, Inbox, LoopCall
from kubesched.engine.intake import POD_WENT, Intake
from kubesched.engine.observer import EngineObserver, NoObserver
from kubesched.engine.permits import LONGEST_WAIT_SECONDS, WaitingPod, WaitingPods
from kubesched.engine.pod_groups import Gang, Gangs, GroupActions
from kubesched.engine.sampling import Sampling
from kubesched.engine.ties import SeededTies, Ties
from kubesched.errors import PluginError, SchedulerError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.grouping import workload_of
from kubesched.framework.memo import Memo
from kubesched.framework.plugin import Plugin
from kubesched.framework.profile import Profile
from kubesched.framework.verdicts import CLEAR, Failed, Placed, Status, Unschedulable
from kubesched.queue import Queue
from kubesched.queue.queued import QueuedPod

log = logging.getLogger(__name__)

PODS_TO_ACTIVATE = "kubernetes.io/pods-to-activate"
_TURN = 16
"""Pods decided before the binding tasks and the network get a turn."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How the engine runs."""

    remembers: bool = True
    evicts_in_background: bool = True
    announces_expected_node: bool = True
    percentage_of_nodes: int = 0
    assumed_ttl_seconds: float | None = None
    """Forget a booking whose pod was bound but not seen on its node for so long; None, as the reference today, never."""
    scores_bare_nodes: bool = True
    """Score nodes that an extender sent back as if no pod were on them: the reference's quirk, which 1.17 did not have."""


class Tried(Struct):
    """Whose turn it is: a pod that was popped when `started`, and its group if it is tried with one."""

    queued: QueuedPod
    profile: Profile
    started: float
    gang: Gang | None


class Engine:
    """Makes it move."""

    def __init__(
        self,
        store: Store,
        profiles: Mapping[str, Profile],
        queue: Queue,
        handle: EngineHandle,
        *,
        inbox: Inbox | None = None,
        ties: Ties | None = None,
        observer: EngineObserver | None = None,
        options: EngineOptions | None = None,
        extenders: Extenders | None = None,
    ) -> None:
        self.store = store
        self.profiles = profiles
        self.queue = queue
        self.handle = handle
        self.inbox = inbox if inbox is not None else Inbox()  # an empty one counts as false
        self.options = options or EngineOptions()
        self.observer: EngineObserver = observer or NoObserver()
        self.waiting = WaitingPods()
        self.rules = Rules(
            ties or SeededTies(),
            queue.nominations,
            sampling=Sampling(),
            extenders=extenders,
            percentage_of_nodes=self.options.percentage_of_nodes,
        )
        self.memos = {name: Memo(profile) for name, profile in profiles.items()} if self.options.remembers else {}
        self._read_groups()
        self.intake = Intake(
            store,
            queue,
            tuple(profiles),
            gates=handle.gates,
            reject_waiting=self.waiting.reject,
            members=store.groups if store.groups.are_kept else None,
            handled=self.observer.event_handled if observer is not None else None,
        )
        self.binder = Binder(
            self.inbox,
            self.waiting,
            handle.writer,
            handle.clock,
            self.observer,
            self._release,
            writes_expectation=self.options.announces_expected_node,
            extenders=extenders,
        )
        self.failures = Failures(
            queue,
            self.intake.pod,
            handle.writer,
            handle.recorder,
            handle.clock,
            self.observer,
            self._spawn,
        )
        self.evictions = Evictions(
            handle,
            self.inbox,
            queue,
            self.intake.pod,
            self.waiting,
            self.binder,
            self._spawn,
            in_background=self.options.evicts_in_background,
            observer=self.observer,
        )
        self.gangs = Gangs(
            store.groups,
            queue,
            handle,
            self.inbox,
            self.observer,
            GroupCycle(store, self._try, self._unreserve, queue.nominations.drop, handle.clock, handle.random),
            GroupActions(self._is_worth_trying, self._book_or_break, self._fail, self._follow_up, self._spawn),
        )
        self.hand_over: Callable[[AssumedBinding], None] = lambda binding: self._spawn(self.binder.carry_out(binding))
        """What becomes of a booked pod; a benchmark of decisions puts something else here."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._bindings: dict[str, AssumedBinding] = {}
        self._is_stopped = False
        self.is_leading = True
        """Whether pods are tried. A standby takes everything in, so that it can go on where the leader stopped."""
        handle.nominations = queue.nominations
        handle.waiting = self.waiting
        handle.activate = queue.activate
        handle.preempting.stays_on = self._stays_on

    def _read_groups(self) -> None:
        """Let the store know what makes pods a group: what they name themselves, and what plugins say."""
        gatherers = {type(p): (profile, p) for profile in self.profiles.values() for p in profile.gatherers}
        readers: list[Reader] = [partial(self._group_of, profile, plugin) for profile, plugin in gatherers.values()]
        if self.handle.gates.is_enabled("GenericWorkload"):
            readers.insert(0, workload_of)
        self.store.groups.read_with(readers, self.store.pods())

    def _group_of(self, profile: Profile, plugin: Plugin, pod: PodView) -> GroupKey | None:
        """Return the group in which a plugin sees a pod; a plugin that breaks over it sees none."""
        try:
            return profile.group_by(plugin, pod)
        except PluginError as error:
            explain(error, pod, self.observer)
            return None

    # Running

    async def run(self) -> None:
        """Run until `stop`."""
        while not self._is_stopped:
            if await self._turn_in_thread() if self.rules.extenders else self.turn():
                await asyncio.sleep(0)
                continue
            deadline = self.queue.next_deadline() if self.is_leading else None
            seconds = None if deadline is None else max(deadline - self.handle.clock.now(), 0.0) + 0.001
            await self.inbox.wait(seconds)
        self.queue.close()

    def lead(self) -> None:
        """Begin to try pods."""
        self.is_leading = True
        self.inbox.post(LoopCall(lambda: None, begins_lead=True))

    def stop(self) -> None:
        """Let the loop end; bindings under way are not waited for."""
        self._is_stopped = True
        self.inbox.post(LoopCall(lambda: None))

    def turn(self) -> bool:
        """Take in what arrived and decide a few pods; return whether there was anything to do."""
        arrived = self.take_in()
        self.flush()
        decided = 0
        while decided < _TURN and self.is_leading and not self._is_stopped and self.step():
            decided += 1
            if len(self.inbox):
                self.take_in()
        return bool(arrived or decided)

    async def _turn_in_thread(self) -> bool:
        """Do the same for one pod, deciding in a thread: extenders may take seconds to answer, and the network must go on
        meanwhile. Nothing is taken in before the attempt is over, so the store stands still for it."""
        arrived = self.take_in()
        self.flush()
        tried = self._next() if self.is_leading else None
        if tried is not None:
            self._act(tried, await asyncio.to_thread(self._decide, tried))
        return bool(arrived or tried)

    def take_in(self) -> int:
        """Apply what is in the inbox; return how much that was."""
        count = 0
        for arrival in self.inbox.take():
            count += 1
            try:
                self._apply(arrival)
            except Exception as error:  # a fault of ours: one arrival may not keep all that follow from being taken in
                log.exception("an arrival was dropped: %s", error)
        return count

    def flush(self) -> None:
        """Let time pass in the queue."""
        deadline = self.queue.next_deadline()
        now = self.handle.clock.now()
        if deadline is not None and deadline <= now:
            self.queue.flush_backoff(now)
            self.queue.flush_leftovers(now)

    async def drain(self, seconds: float) -> None:
        """Wait until no binding is under way; those that wait for a permit are refused, as nobody may come to allow
        them, and after so many seconds the rest is not waited for."""
        for waiting in self.waiting:
            waiting.reject("", "the configuration is being reloaded")
        deadline = self.handle.clock.monotonic() + seconds
        while self._bindings and self.handle.clock.monotonic() < deadline:
            await self.handle.clock.sleep(0.01)

    def take_over(self, old: Engine) -> None:
        """Go on where another engine over the same store and inbox stopped: every pod that it had is queued here."""
        for pod in list(old.intake.pending()):
            self.intake.apply("Pod", None, pod.pod)
            before, now = old.queue.find(pod.key), self.queue.find(pod.key)
            if before is not None and now is not None:
                now.attempts, now.initial_attempt = before.attempts, before.initial_attempt

    async def settle(self) -> None:
        """Wait until nothing is under way: for tests, dry runs and simulations."""
        while True:
            self.turn()
            if self._tasks:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            elif not len(self.inbox) and not self.queue.has_next:
                return

    async def abandon(self) -> None:
        """Give up the bindings, evictions and status writes under way, for whoever closes the connection next."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a background task failed: %s", task.exception(), exc_info=task.exception())

    def _apply(self, arrival: Arrival) -> None:
        if isinstance(arrival, Changed):
            self.intake.apply(arrival.kind, arrival.old, arrival.new)
        elif isinstance(arrival, Bound):
            self._bound(arrival.binding)
        elif isinstance(arrival, BindFailed):
            self._bind_failed(arrival.binding, arrival.status)
        else:
            arrival.run()

    # Deciding

    def step(self) -> bool:
        """Try the next pod, with its group if it has one; False if there is none."""
        tried = self._next()
        if tried is None:
            return False
        self._act(tried, self._decide(tried))
        return True

    def _next(self) -> Tried | None:
        """Take the next pod that is worth trying out of the queue, and with it its group."""
        while (queued := self.queue.pop()) is not None:
            profile = self.profiles.get(queued.view.pod.spec.scheduler_name)
            if profile is None or not self._is_worth_trying(queued.view):
                self.queue.done(queued.view.uid)
                continue
            started = self.handle.clock.monotonic()
            try:
                gang = self.gangs.gather(queued, profile) if self.store.groups.are_kept else None
            except PluginError as error:
                self._broke(queued, profile, started, error)
                continue
            return Tried(queued, profile, started, gang)
        return None

    def _is_worth_trying(self, pod: PodView) -> bool:
        if pod.pod.metadata.deletion_timestamp is not None:
            note = f"skip schedule deleting pod: {pod.namespace}/{pod.name}"
            self.handle.recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", note)
            return False
        return not self.store.is_assumed(pod.uid)

    def _decide(self, tried: Tried) -> Attempt | Rehearsal | Exception:
        """Find out what is to be done, without doing it; what broke is the answer then. May run in a thread."""
        try:
            if tried.gang is not None:
                return self.gangs.rehearse(tried.gang)
            return self._try(tried.queued.view, tried.profile)
        except Exception as error:  # a plugin that broke, or we: it costs this attempt
            return error

    def _try(self, pod: PodView, profile: Profile, within: Bools | None = None) -> Attempt:
        started = self.handle.clock.monotonic()
        made = attempt(pod, self.store.snapshot(), profile, self.rules, self.memos.get(profile.name), within)
        self.observer.decided(self.handle.clock.monotonic() - started)
        return made

    def _act(self, tried: Tried, outcome: Attempt | Rehearsal | Exception) -> None:
        """Do what was decided."""
        queued, profile, started, gang = tried.queued, tried.profile, tried.started, tried.gang
        if gang is not None:
            if not isinstance(outcome, Rehearsal):
                assert isinstance(outcome, Exception)
                outcome = self.gangs.broken(explain(outcome, (self.gangs.trying or queued).view, self.observer))
            self.gangs.submit(gang, outcome, started)
            return
        try:
            if not isinstance(outcome, Attempt):
                assert isinstance(outcome, Exception)
                raise outcome
            self._act_on(queued, profile, outcome, started)
        except Exception as error:  # as above
            self._broke(queued, profile, started, error)

    def _act_on(self, queued: QueuedPod, profile: Profile, made: Attempt, started: float) -> None:
        decision = made.decision
        if isinstance(decision, Placed):
            self._book(queued, profile, made, decision.node_name, started)
        elif isinstance(decision, Unschedulable):
            self._follow_up(made, lambda given: self._fail(queued, profile, given, started), refusal(decision))
        elif isinstance(decision, Failed):
            self._fail(queued, profile, Failure(decision.message, False, None, decision.nomination), started)

    def _follow_up(self, made: Attempt, fail: Callable[[Failure], None], failure: Failure) -> None:
        """Carry out what PostFilter proposed, and let the attempt fail.

        Evictions begin first: the pod must not be tried again while they are under way. Without a background, it does
        not fail before they are over.
        """
        result = made.post_filtered
        if result is not None and result.follow_up is not None:
            self._spawn(result.follow_up())  # type: ignore[arg-type]
        preemption = result.preemption if result is not None else None
        if preemption is None:
            fail(failure)
        elif self.evictions.in_background:
            self.evictions.carry_out(made.pod, preemption)
            fail(failure)
        else:
            self.evictions.carry_out(
                made.pod, preemption, lambda problem: fail(_not_evicted(failure, problem) if problem else failure)
            )

    def _stays_on(self, victim: PodView) -> bool:
        found = self.store.pod(victim.uid)
        return found is not None and found.pod.metadata.deletion_timestamp is None

    def _book(self, queued: QueuedPod, profile: Profile, made: Attempt, node_name: str, started: float) -> None:
        """Assume, Reserve, Permit, and hand over to the binder."""
        state = made.state
        booked = self.store.assume(queued.view, node_name)
        self.queue.nominations.drop(booked.uid)
        binding = AssumedBinding(queued, booked, node_name, state, profile, started)
        try:
            status = profile.reserve(booked, node_name, state)
            limits: dict[str, float] = {}
            if status.is_success:
                status, limits = profile.permit(booked, node_name, state)
            if status.is_success or limits:
                if limits:
                    limits = {plugin: min(seconds, LONGEST_WAIT_SECONDS) for plugin, seconds in limits.items()}
                    self.waiting.add(WaitingPod(booked, node_name, limits))
                self._activate(state)
                self._bindings[booked.uid] = binding
                self.hand_over(binding)
                return
        except BaseException:  # whatever it is, what is booked goes back first
            self._undo(binding)
            raise
        self._undo(binding)
        self._fail(queued, profile, refused_on_node(node_name, status), started)

    def _book_or_break(self, queued: QueuedPod, profile: Profile, made: Attempt, node_name: str, started: float) -> None:
        """Book one member of a group; if that breaks it costs this member's attempt."""
        try:
            self._book(queued, profile, made, node_name, started)
        except Exception as error:  # a plugin that broke, or we: the other members go on
            self._broke(queued, profile, started, error)

    def _activate(self, state: CycleState) -> None:
        """Move the pods that plugins of this attempt asked to have tried."""
        pods = state.find(PODS_TO_ACTIVATE)
        if pods:
            self.queue.activate(list(pods.values()))
            pods.clear()

    def _undo(self, binding: AssumedBinding) -> bool:
        """Take back a booking and all promises; return whether it was still ours to take back."""
        uid = binding.booked.uid
        self._bindings.pop(uid, None)
        self.waiting.remove(uid)
        self._unreserve(binding.profile, binding.booked, binding.node_name, binding.state)
        try:
            self.store.forget(uid)
        except SchedulerError as error:
            log.warning("%s", error)  # the API server has bound it after all
            return False
        return True

    def _unreserve(self, profile: Profile, booked: PodView, node_name: str, state: CycleState) -> None:
        """Take back all promises; a plugin that breaks over it keeps the others from nothing, and the booking goes too."""
        try:
            profile.unreserve(booked, node_name, state)
        except PluginError as error:
            explain(error, booked, self.observer)

    def _broke(self, queued: QueuedPod, profile: Profile, started: float, error: Exception) -> None:
        message = explain(error, queued.view, self.observer)
        self._fail(queued, profile, Failure(message, False, None, CLEAR), started)

    def _fail(self, queued: QueuedPod, profile: Profile, failure: Failure, started: float) -> None:
        result = "unschedulable" if failure.is_rejection else "error"
        self.observer.attempt_ended(result, profile.name, self.handle.clock.monotonic() - started)
        self.failures.handle(queued, failure)

    # What the binder reports

    def _release(self, binding: AssumedBinding) -> None:
        """The pod is past Permit: whatever happens to it now, no plugin refused it."""
        binding.is_released = True
        self.queue.done(binding.booked.uid)

    def _bound(self, binding: AssumedBinding) -> None:
        self._bindings.pop(binding.booked.uid, None)
        queued, pod, node_name = binding.queued, binding.booked, binding.node_name
        now = self.handle.clock.now()
        self.observer.attempt_ended("scheduled", binding.profile.name, self.handle.clock.monotonic() - binding.started)
        first = queued.initial_attempt if queued.initial_attempt is not None else now
        self.observer.pod_bound(pod, node_name, queued.attempts, now - first, queued.was_flushed)
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node_name}"
        self.handle.recorder.event(pod, "Normal", "Scheduled", "Binding", note)
        try:
            binding.profile.post_bind(pod, node_name, binding.state)
        except PluginError as error:
            explain(error, pod, self.observer)
        self._activate(binding.state)
        if self.options.assumed_ttl_seconds is not None:
            asyncio.get_running_loop().call_later(
                self.options.assumed_ttl_seconds, lambda: self.inbox.post(LoopCall(lambda: self._expire(pod.uid)))
            )

    def _expire(self, uid: str) -> None:
        """Forget a booking that the API server never confirmed."""
        if self.store.is_assumed(uid):
            gone = self.store.forget(uid)
            if gone is not None:
                log.warning("pod %s was bound to %s but never seen there; its booking expired", gone.key, gone.node_name)
                self.queue.wake(POD_WENT, gone.pod, None)

    def _bind_failed(self, binding: AssumedBinding, status: Status) -> None:
        queued, pod = binding.queued, binding.booked
        is_forgotten = self._undo(binding)
        if status.is_rejected and not binding.is_released:
            failure = refused_on_node(binding.node_name, status)
            self._fail(queued, binding.profile, failure, binding.started)
            if is_forgotten:
                self._wake_after(pod.pod, leaving_out=pod.uid)
            return
        if is_forgotten:
            self._wake_after(pod.pod)
        failure = Failure(status.message, status.is_rejected, None, CLEAR, is_silent=not status.message)
        self._fail(queued, binding.profile, failure, binding.started)

    def _wake_after(self, gone: Pod, leaving_out: str = "") -> None:
        concerns = (lambda waiting: waiting.uid != leaving_out) if leaving_out else None
        self.queue.wake(POD_WENT, gone, None, concerns)


def _not_evicted(failure: Failure, problem: str) -> Failure:
    """Return what a failed eviction makes of a failure that had found a way out: none was found after all."""
    diagnosis = failure.diagnosis
    if diagnosis is None:
        return Failure(f"{failure.message} preemption: {problem}", True)
    diagnosis.post_filter_message = f"preemption: {problem}"
    return Failure(diagnosis.message(), True, diagnosis)
