"""The engine's loop: apply what arrived, flush the queue, try up to 16 pods, wait for more.

    inbox --take_in--> intake (objects), bookings (results of bindings), calls from outside
    queue --step-----> attempts: take, decide, act

Only this loop changes the store and the queue, one step after another, so there are no locks. Between two rounds the event
loop runs the binding tasks and the network.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from kubesched.scheduler.engine.acting.attempts import Attempts
from kubesched.scheduler.engine.acting.binding import WaitingPods
from kubesched.scheduler.engine.acting.bookings import Bookings
from kubesched.scheduler.engine.acting.failures import Failures
from kubesched.scheduler.engine.arrivals.inbox import BindFailed, Bound, Changed, LoopCall, PastPermit
from kubesched.scheduler.engine.arrivals.intake import Intake
from kubesched.scheduler.engine.core import Core
from kubesched.scheduler.engine.groups.pod_groups import read_groups
from kubesched.scheduler.framework import Nomination

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

_PODS_A_ROUND = 16
"""How many pods are decided before binding tasks and the network run again."""


class Engine:
    """Applies what arrives, and tries pods one after another. `assembly` builds it."""

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
        """Whether pods are tried. A standby applies all changes too, so that it can take over at once."""
        self.is_draining = False
        """Whether no pods are tried because another engine is about to take over."""

    async def run(self) -> None:
        """Run rounds until `stop`; wait for the inbox or the queue's next deadline when there is nothing to do.

        After each round `asyncio.sleep(0)` lets binding tasks and the network run once. With extenders a round is one pod,
        decided in a thread.

        One round, with 40 pods in the queue and an inbox that is empty at first:

          take_in        nothing
          flush          pods whose backoff is over move to the active queue
          step x 16      each pod is decided and booked; its binding cycle is only created, it has not run yet
          sleep(0)       the 16 binding cycles send their requests; the watch's bytes become arrivals in the inbox
          next round     take_in applies them, and 16 more pods are tried
        """
        while not self._is_stopped:
            if await self._turn_in_thread() if self.attempts.rules.extenders else self.turn():
                await asyncio.sleep(0)
                continue
            deadline = self.queue.next_deadline() if self.is_leading else None
            # A standby (`is_leading` False) sleeps without a deadline: its pods wait in backoff until it leads, and changes
            # still wake it.
            # A millisecond later than the deadline, so that the clock has certainly passed it when we wake.
            seconds = None if deadline is None else max(deadline - self.queue.now(), 0.0) + 0.001
            await self.inbox.wait(seconds)
        self.queue.close()

    def lead(self) -> None:
        """Begin to try pods. The posted call wakes the loop, and marks the moment in the inbox's log."""
        self.is_leading = True
        self.inbox.post(LoopCall(_nothing, begins_lead=True))

    def stop(self) -> None:
        """End the loop. Bindings under way are not waited for."""
        self._is_stopped = True
        self.inbox.post(LoopCall(_nothing))

    async def in_turn(self, ask: Callable[[Engine], Answer]) -> Answer:
        """Call a function with the engine between two decisions, and return its result. An exception goes to the caller. After
        a reload the function gets the new engine."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def run() -> None:
            if answer.done():  # the caller was cancelled
                return
            try:
                answer.set_result(ask(self._latest))
            except Exception as error:  # it goes to the caller and does not stop the loop
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
        """Run one round; return whether there was anything to do."""
        arrived = self.take_in()
        self.flush()
        decided = 0
        # Without a limit, a queue that never runs empty would starve the binding tasks: the pods would all be assumed and none
        # bound. What arrives while a pod is decided is applied before the next one, so that a decision never uses an older
        # cluster than it must.
        while decided < _PODS_A_ROUND and self.is_leading and not (self.is_draining or self._is_stopped) and self.step():
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
        """Run a round of one pod and decide in a thread: an extender may take seconds to answer, and the network must go on
        meanwhile. The inbox is not read before the attempt is over, so the store does not change under it."""
        arrived = self.take_in()
        self.flush()
        may_try = self.is_leading and not (self.is_draining or self._is_stopped)
        # `take` and `act` run in the loop, and only `decide` in the thread. `decide` reads the store, which is safe as long as
        # nothing is applied: this coroutine is the only one that empties the inbox, and it waits for the thread.
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
        """Apply what is in the inbox; return how many arrivals that were."""
        count = 0
        for arrival in self.inbox.take():
            count += 1
            try:
                if isinstance(arrival, Changed):
                    self.intake.apply(arrival.kind, arrival.old, arrival.new)
                # As in kube-scheduler, the attempt is over for the queue after Permit, not after Bind: no later failure names a
                # plugin, so the events kept for this pod since it was popped would not be read any more. `is_released` tells
                # `bind_failed` the same.
                elif isinstance(arrival, PastPermit):
                    arrival.binding.is_released = True
                    self.queue.done(arrival.binding.booked.uid)
                elif isinstance(arrival, Bound):
                    self.bookings.bound(arrival.binding)
                elif isinstance(arrival, BindFailed):
                    self.bookings.bind_failed(arrival.binding, arrival.status)
                else:
                    arrival.run()
            except Exception as error:  # a bug of ours: the arrivals after this one must be applied
                log.exception("an arrival was dropped: %s", error)
        return count

    def flush(self) -> None:
        """Move the pods whose backoff or longest wait is over."""
        deadline = self.queue.next_deadline()
        now = self.queue.now()
        if deadline is not None and deadline <= now:
            self.queue.flush_backoff(now)
            self.queue.flush_leftovers(now)

    async def drain(self, seconds: float) -> None:
        """Try no more pods, and wait until no attempt and no binding is under way, or for so many seconds. Pods that wait at
        Permit are refused: what they wait for may never come, as no other pod is tried."""
        self.is_draining = True
        deadline = self.handle.clock.monotonic() + seconds
        # Both conditions are needed. A binding that was released after Permit is in `bookings` alone; a pod whose evictions in
        # the foreground are under way is in flight alone. Permit is refused in every pass: a binding cycle may reach Permit
        # only after the first one.
        while len(self.bookings) or self.queue.n_in_flight:
            self._refuse_waiting()
            if self.handle.clock.monotonic() >= deadline:
                return
            await self.handle.clock.sleep(0.01)

    def _refuse_waiting(self) -> None:
        for waiting in self.waiting:
            waiting.reject("", "the configuration is being reloaded")

    def take_over(self, old: Engine) -> None:
        """Replace another engine over the same store and inbox: after a reload of the configuration.

        Every pod that was queued there is queued here, with its counters and its nomination. Its gates and wake-ups are those
        of the new profiles. Tasks that are still under way belong to this engine now.
        """
        self.core.tasks = old.core.tasks
        old.attempts.caches.clear()  # free them now: the garbage collector is told to leave old objects alone (gc_tuning)
        old._refuse_waiting()  # the last attempt there may have outlasted `drain`
        self.attempts.gangs.take_over(old.attempts.gangs)
        read_groups(self.core)  # again: the other engine took in pods with its own idea of groups
        for pod in list(old.intake.pending()):
            before, nominated = old.queue.find(pod.key), old.queue.nominations.node_of(pod.uid)
            old.queue.delete(pod)
            self.intake.apply("Pod", None, pod.pod)
            if self.intake.pod(pod.key) is None and not pod.node_name:
                self.store.groups.drop(pod)  # no profile of ours has its schedulerName: we would not hear of its end
            now = self.queue.find(pod.key)
            if now is None:
                continue
            if before is not None:
                now.attempts, now.initial_attempt = before.attempts, before.initial_attempt or now.initial_attempt
                now.has_unseen_nomination = before.has_unseen_nomination
            if nominated:
                self.queue.nominations.add(now.view, Nomination(nominated))
        # Last: from here on, what old tasks post (`core.latest`, `_latest`) reaches this engine. Before, its queue had not all
        # pods yet.
        old.core.successor, old._successor = self.core, self

    async def settle(self) -> None:
        """Run rounds until nothing is under way and no pod can be tried. Tests, dry runs and simulations use this instead of
        `run`."""
        while True:
            self.turn()
            # A finished task has posted its result, so go round again after the first one, and not after all: a gang's member
            # at Permit ends only after a later pod was tried.
            if self.core.tasks:
                await asyncio.wait(self.core.tasks, return_when=asyncio.FIRST_COMPLETED)
            elif not len(self.inbox) and not self.queue.has_next:
                return

    async def abandon(self) -> None:
        """Cancel the bindings, evictions and status writes under way, before the connection is closed."""
        for task in self.core.tasks:
            task.cancel()
        await asyncio.gather(*self.core.tasks, return_exceptions=True)


def _nothing() -> None:
    """Do nothing. The arrival itself wakes the loop."""
