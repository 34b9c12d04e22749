"""The loop: take in, let time pass, try a few pods, wait.

In: the inbox. Out: arrivals applied to the store and the queue (`intake`), pods tried (`attempts`), what the binder reports
carried on (`bookings`). Everything that changes the store or the queue happens in the loop's turn, one thing after another, so
there are no locks to reason about.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from kubesched.scheduler.engine.acting.attempts import Attempts
from kubesched.scheduler.engine.acting.bookings import Bookings
from kubesched.scheduler.engine.acting.failures import Failures
from kubesched.scheduler.engine.acting.permits import WaitingPods
from kubesched.scheduler.engine.arrivals.inbox import BindFailed, Bound, Changed, LoopCall
from kubesched.scheduler.engine.arrivals.intake import Intake
from kubesched.scheduler.engine.core import Core
from kubesched.scheduler.engine.groups.pod_groups import read_groups
from kubesched.scheduler.framework import Nomination

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

_TURN = 16
"""Pods decided before the binding tasks and the network get a turn."""


class Engine:
    """Takes in what arrives, and tries pods one after another. `assembly` builds it."""

    def __init__(
        self,
        core: Core,
        intake: Intake,
        attempts: Attempts,
        bookings: Bookings,
        failures: Failures,
        waiting: WaitingPods,
    ) -> None:
        self.core = core
        self.store, self.profiles, self.queue = core.store, core.profiles, core.queue
        self.handle, self.inbox, self.decisions = core.handle, core.inbox, core.decisions
        self.intake = intake
        self.attempts = attempts
        self.bookings = bookings
        self.failures = failures
        self.waiting = waiting
        self._successor: Engine | None = None
        self._is_stopped = False
        self.is_leading = True
        """Whether pods are tried. A standby takes everything in, so that it can go on where the leader stopped."""
        self.is_draining = False
        """Whether no more pods are tried because another engine is about to take over, leading or not."""

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
        self.inbox.post(LoopCall(_ring, begins_lead=True))

    def stop(self) -> None:
        """Let the loop end; bindings under way are not waited for."""
        self._is_stopped = True
        self.inbox.post(LoopCall(_ring))

    async def in_turn(self, ask: Callable[[Engine], Answer]) -> Answer:
        """Ask the engine, or the one that took over since, something between two decisions, or let it do something; what is
        raised belongs to who asked."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def run() -> None:
            if answer.done():  # nobody waits any more
                return
            try:
                answer.set_result(ask(self._latest))
            except Exception as error:  # whatever a plugin raises, it costs who asked and not the loop
                answer.set_exception(error)

        self.inbox.post(LoopCall(run))
        return await answer

    @property
    def _latest(self) -> Engine:
        engine = self
        while engine._successor is not None:
            engine = engine._successor
        return engine

    def turn(self) -> bool:
        """Take in what arrived and decide a few pods; return whether there was anything to do."""
        arrived = self.take_in()
        self.flush()
        decided = 0
        while decided < _TURN and self.is_leading and not (self.is_draining or self._is_stopped) and self.step():
            decided += 1
            if len(self.inbox):
                self.take_in()
        return bool(arrived or decided)

    def step(self) -> bool:
        """Try the next pod, with its group if it has one; False if there is none."""
        turn = self.attempts.take()
        if turn is None:
            return False
        self.attempts.act(turn, self.attempts.decide(turn))
        return True

    async def _turn_in_thread(self) -> bool:
        """Do the same for one pod, deciding in a thread: extenders may take seconds to answer, and the network must go on
        meanwhile. Nothing is taken in before the attempt is over, so the store stands still for it."""
        arrived = self.take_in()
        self.flush()
        may_try = self.is_leading and not (self.is_draining or self._is_stopped)
        turn = self.attempts.take() if may_try else None
        if turn is not None:
            self.attempts.act(turn, await asyncio.to_thread(self.attempts.decide, turn))
        return bool(arrived or turn)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Begin with no pods in the queue for as long as the context lasts, and forget at its end which pods came meanwhile."""
        with self.queue.apart(), self.intake.apart():
            yield

    def take_in(self) -> int:
        """Apply what is in the inbox; return how much that was."""
        count = 0
        for arrival in self.inbox.take():
            count += 1
            try:
                if isinstance(arrival, Changed):
                    self.intake.apply(arrival.kind, arrival.old, arrival.new)
                elif isinstance(arrival, Bound):
                    self.bookings.bound(arrival.binding)
                elif isinstance(arrival, BindFailed):
                    self.bookings.bind_failed(arrival.binding, arrival.status)
                else:
                    arrival.run()
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
        self.core.tasks = old.core.tasks
        old.attempts.caches.clear()  # at once: the collector leaves alone what was there at the first list (gc_tuning)
        old._refuse_waiting()  # a last attempt may have taken longer than it was waited for
        self.attempts.gangs.take_over(old.attempts.gangs)
        read_groups(self.core)  # again: meanwhile the other took in pods, and did not know what we take for a group
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
        old.core.successor, old._successor = self.core, self

    async def settle(self) -> None:
        """Wait until nothing is under way: for tests, dry runs and simulations."""
        while True:
            self.turn()
            if self.core.tasks:
                await asyncio.wait(self.core.tasks, return_when=asyncio.FIRST_COMPLETED)
            elif not len(self.inbox) and not self.queue.has_next:
                return

    async def abandon(self) -> None:
        """Give up the bindings, evictions and status writes under way, for whoever closes the connection next."""
        for task in self.core.tasks:
            task.cancel()
        await asyncio.gather(*self.core.tasks, return_exceptions=True)


def _ring() -> None:
    """Do nothing: who waits for an arrival has one."""
