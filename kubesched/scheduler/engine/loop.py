"""The loop: take in, let time pass, try a few pods, wait.

In: the inbox. Out: arrivals applied to the store and the queue (`intake`), pods tried (`attempts`), what the binder reports
carried on (`bookings`). Everything that changes the store or the queue happens in the loop's turn, one thing after another, so
there are no locks to reason about.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from kubesched.errors import PluginError
from kubesched.scheduler.cluster import GroupKey, PodView, Store
from kubesched.scheduler.cluster.groups import Reader
from kubesched.scheduler.engine.acting.attempts import Attempts
from kubesched.scheduler.engine.acting.binding import Binder
from kubesched.scheduler.engine.acting.bookings import Bookings
from kubesched.scheduler.engine.acting.eviction import Evictions
from kubesched.scheduler.engine.acting.failures import Failures, explain
from kubesched.scheduler.engine.acting.permits import WaitingPods
from kubesched.scheduler.engine.arrivals.inbox import Arrival, BindFailed, Bound, Changed, Inbox, LoopCall
from kubesched.scheduler.engine.arrivals.intake import Intake
from kubesched.scheduler.engine.deciding.cycle import Rules
from kubesched.scheduler.engine.deciding.extenders import Extenders
from kubesched.scheduler.engine.deciding.sampling import Sampling
from kubesched.scheduler.engine.deciding.ties import SeededTies, Ties
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.engine.observer import EngineObserver, NoObserver
from kubesched.scheduler.engine.records.decision_recorder import DecisionRecorder
from kubesched.scheduler.framework.equivalence_cache.cache import EquivalenceCache
from kubesched.scheduler.framework.grouping import workload_of
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.runtime.profile import Profile
from kubesched.scheduler.framework.verdicts import Nomination
from kubesched.scheduler.queue import Queue

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

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
        decisions: DecisionRecorder | None = None,
    ) -> None:
        self.store = store
        self.profiles = profiles
        self.queue = queue
        self.handle = handle
        self.inbox = inbox if inbox is not None else Inbox()  # an empty one counts as false
        self.options = options or EngineOptions()
        self.observer: EngineObserver = observer or NoObserver()
        self.decisions = decisions
        self.waiting = WaitingPods()
        rules = Rules(
            ties or SeededTies(),
            queue.nominations,
            sampling=Sampling(),
            extenders=extenders,
            percentage_of_nodes=self.options.percentage_of_nodes,
        )
        if decisions is not None:
            decisions.attach(rules, handle.clock)
        self.memos: dict[str, EquivalenceCache] = {}
        if self.options.remembers:
            self.memos = {
                name: EquivalenceCache(profile, waits_for_second=True)
                for name, profile in profiles.items()
                if rules.may_recall(profile)
            }
        self._read_groups()
        self.intake = Intake(
            store,
            queue,
            tuple(profiles),
            gates=handle.gates,
            reject_waiting=self.waiting.reject,
            members=store.groups if store.groups.are_kept else None,
            handled=self.observer.event_handled if observer is not None else None,
            node_changed=decisions.node_changed if decisions is not None else None,
        )
        self.binder = Binder(
            self.inbox,
            self.waiting,
            handle.writer,
            handle.clock,
            self.observer,
            writes_expectation=self.options.announces_expected_node,
            extenders=extenders,
        )
        self.failures = Failures(
            queue,
            self.intake.pod,
            lambda uid: store.pod(uid) is not None,
            handle.writer,
            handle.recorder,
            handle.clock,
            self.observer,
            self._spawn,
            decisions,
        )
        self.bookings = Bookings(
            store,
            queue,
            handle,
            self.inbox,
            self.observer,
            self.waiting,
            self.failures,
            lambda binding: self._spawn(self.binder.carry_out(binding)),
            self.options.assumed_ttl_seconds,
            decisions,
        )
        self.evictions = Evictions(
            handle,
            self.inbox,
            queue,
            self.intake.pod,
            store.pod,
            self.waiting,
            self.binder,
            self._spawn,
            in_background=self.options.evicts_in_background,
            observer=self.observer,
        )
        self.attempts = Attempts(
            store,
            profiles,
            queue,
            handle,
            self.inbox,
            self.observer,
            rules,
            self.memos,
            self.bookings,
            self.evictions,
            self.failures,
            self._spawn,
            decisions,
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopped = False
        self.is_leading = True
        """Whether pods are tried. A standby takes everything in, so that it can go on where the leader stopped."""
        self.is_draining = False
        """Whether no more pods are tried because another engine is about to take over, leading or not."""
        handle.attach(queue.nominations, self.waiting, queue.activate)

    def _read_groups(self) -> None:
        """Let the store know what makes pods a group: what they name themselves, and what plugins say."""
        gatherers = {type(p): (profile, p) for profile in self.profiles.values() for p in profile.gatherers}
        readers: list[Reader] = [partial(self._group_of, profile, plugin) for profile, plugin in gatherers.values()]
        if self.handle.gates.is_enabled("GenericWorkload"):
            readers.insert(0, workload_of)
        placed = (pod for pod in self.store.pods() if not self.store.is_assumed(pod.uid))  # a booking may be taken back
        self.store.groups.read_with(readers, placed)

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
            if await self._turn_in_thread() if self.attempts.rules.extenders else self.turn():
                await asyncio.sleep(0)
                continue
            deadline = self.queue.next_deadline() if self.is_leading else None
            seconds = None if deadline is None else max(deadline - self.queue.now(), 0.0) + 0.001
            await self.inbox.wait(seconds)
        self.queue.close()

    def lead(self) -> None:
        """Begin to try pods."""
        self.is_leading = True
        self.inbox.post(LoopCall(lambda engine: None, begins_lead=True))

    def stop(self) -> None:
        """Let the loop end; bindings under way are not waited for."""
        self._is_stopped = True
        self.inbox.post(LoopCall(lambda engine: None))

    async def in_turn(self, ask: Callable[[Engine], Answer]) -> Answer:
        """Ask the engine, or let it do, something between two decisions; what is raised belongs to who asked."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def run(engine: Engine) -> None:
            if answer.done():  # nobody waits any more
                return
            try:
                answer.set_result(ask(engine))
            except Exception as error:  # whatever a plugin raises, it costs who asked and not the loop
                answer.set_exception(error)

        self.inbox.post(LoopCall(run))
        return await answer

    def turn(self) -> bool:
        """Take in what arrived and decide a few pods; return whether there was anything to do."""
        arrived = self.take_in()
        self.flush()
        decided = 0
        while decided < _TURN and self._may_try and self.step():
            decided += 1
            if len(self.inbox):
                self.take_in()
        return bool(arrived or decided)

    @property
    def _may_try(self) -> bool:
        return self.is_leading and not self.is_draining and not self._is_stopped

    def step(self) -> bool:
        """Try the next pod, with its group if it has one; False if there is none."""
        tried = self.attempts.take()
        if tried is None:
            return False
        self.attempts.act(tried, self.attempts.decide(tried))
        return True

    async def _turn_in_thread(self) -> bool:
        """Do the same for one pod, deciding in a thread: extenders may take seconds to answer, and the network must go on
        meanwhile. Nothing is taken in before the attempt is over, so the store stands still for it."""
        arrived = self.take_in()
        self.flush()
        tried = self.attempts.take() if self._may_try else None
        if tried is not None:
            self.attempts.act(tried, await asyncio.to_thread(self.attempts.decide, tried))
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
        now = self.queue.now()
        if deadline is not None and deadline <= now:
            self.queue.flush_backoff(now)
            self.queue.flush_leftovers(now)

    async def drain(self, seconds: float) -> None:
        """Try no more pods, and wait until no attempt and no binding is under way. Who waits for a permit is refused, as nobody
        may come to allow it, and after so many seconds the rest is not waited for."""
        self.is_draining = True
        deadline = self.handle.clock.monotonic() + seconds
        while len(self.bookings) or self.queue.n_in_flight:
            self._refuse_waiting()
            if self.handle.clock.monotonic() >= deadline:
                return
            await self.handle.clock.sleep(0.01)

    def _refuse_waiting(self) -> None:
        for waiting in self.waiting:
            waiting.reject("", "the configuration is being reloaded")

    def take_over(self, old: Engine) -> None:
        """Go on where another engine over the same store and inbox stopped: every pod that it had is queued here, with what
        is known of it alone there, and what is still under way there is ours to wait for and to give up."""
        self._tasks = old._tasks
        old.memos.clear()  # at once: what was there when the cluster was listed, the collector leaves alone (gc_tuning)
        old._refuse_waiting()  # a last attempt may have taken longer than it was waited for
        self.attempts.gangs.take_over(old.attempts.gangs)
        self._read_groups()  # again: meanwhile the other took in pods, and did not know what we take for a group
        for pod in list(old.intake.pending()):
            before, nominated = old.queue.find(pod.key), old.queue.nominations.node_of(pod.uid)
            old.queue.delete(pod)
            self.intake.apply("Pod", None, pod.pod)
            if self.intake.pod(pod.key) is None and not pod.node_name:
                self.store.groups.drop(pod)  # no profile of ours is responsible: nobody would tell us that it went
            now = self.queue.find(pod.key)
            if now is None:
                continue
            if before is not None:
                now.attempts, now.initial_attempt = before.attempts, before.initial_attempt or now.initial_attempt
                now.has_unseen_nomination = before.has_unseen_nomination
            if nominated:
                self.queue.nominations.add(now.view, Nomination(nominated))

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
            self.bookings.bound(arrival.binding)
        elif isinstance(arrival, BindFailed):
            self.bookings.bind_failed(arrival.binding, arrival.status)
        else:
            arrival.run(self)
