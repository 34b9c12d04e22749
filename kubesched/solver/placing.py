"""Place pods in a world: the queue, the attempts and the bookings of the engine, and nothing bound.

In: a world, pods. Out: a `Placement`; in the world's undo log, how each booking is taken back. The engine works as in `run`:
it pops by priority, tries groups as a whole, runs Reserve and Permit. A booking goes no further than that. Undoing one is what
the engine does with a binding that failed: Unreserve, then forget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kubesched.kube.api import PersistentVolumeClaim, Pod, ResourceQuota
from kubesched.scheduler.engine import POD_CAME, POD_WENT, AssumedBinding, Preemptor, Sampling, Then
from kubesched.scheduler.framework import Preemption, unschedulable
from kubesched.solver.quotas import PlannedQuotas
from kubesched.solver.results import PlacedPod, Placement, Victim

if TYPE_CHECKING:
    from kubesched.solver.world import World

_GATED = "a scheduling gate keeps the pod"
_NOT_OURS = "for a scheduler that is not configured here"
_FOR_EVER = 1e15
"""Seconds since the epoch when every pause is over."""
_WAITS = "waits at Permit for pods that do not come"


class StillLoop(asyncio.BaseEventLoop):
    """An event loop that never runs and keeps nothing: timers do not expire, and what would be written is dropped."""

    def create_task(self, coro: Any, **_: Any) -> Any:
        """Drop a coroutine, and return a task that is done."""
        coro.close()
        done = self.create_future()
        done.set_result(None)
        return done

    def call_soon(self, callback: Any, *args: Any, **_: Any) -> asyncio.Handle:  # type: ignore[override]
        """Call at once."""
        callback(*args)
        return asyncio.Handle(callback, args, self)

    def call_later(self, delay: float, callback: Any, *args: Any, **_: Any) -> asyncio.TimerHandle:  # type: ignore[override]
        """Return a timer that does not expire."""
        return asyncio.TimerHandle(delay, callback, args, self)

    def __del__(self) -> None:
        """Go without a warning: there is nothing to close."""


@contextmanager
def in_loop(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let the engine find a loop for its timers, also where the caller's thread has a running one (a notebook)."""
    before = asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(before)


class Leaving:
    """Carries out preemptions at once: the victims leave the world. Stands in for the engine's `Evictions`."""

    in_background = True
    n_waited_for = 0

    def __init__(self) -> None:
        self.world: World | None = None
        self.victims: list[Victim] = []

    def carry_out(self, preemptor: Preemptor, preemption: Preemption, then: Then | None = None) -> None:
        """Let the victims leave."""
        assert self.world is not None
        queue = self.world.cluster.engine.queue
        for pod in preemption.to_evict:
            gone = self.world.let_go(pod.uid)
            if gone is None:  # another member of the same group had it leave
                continue
            who = gone.pod
            self.victims.append(Victim(who.namespace, who.name, gone.node_name, gone.priority, preemptor.key))
            queue.wake(POD_WENT, who, None)
        for waiting in list(queue.nominations.on_node(preemption.node_name)):
            if waiting.priority < preemptor.priority:
                queue.nominations.drop(waiting.uid)


class Placing:
    """One call of `World.place`."""

    def __init__(self, world: World, pods: Sequence[Pod], *, preempts: bool = False, copies: bool = False) -> None:
        """`copies`: of one pod; no more of them are tried after the first refusal, and quotas do not count."""
        self._world = world
        self._cluster = world.cluster
        self._engine = world.cluster.engine
        self._pods = pods
        self._preempts = preempts
        self._are_copies = copies
        self._kept: dict[str, AssumedBinding] = {}
        known = [self._engine.intake.pod(pod.key) for pod in pods]
        self._waited = {view.uid for view in known if view is not None}
        """The pods that waited in the cluster before."""

    def run(self) -> Placement:
        """Place the pods; return what became of each."""
        engine, cluster, leaving = self._engine, self._cluster, self._cluster.leaving
        rules = engine.attempts.rules
        leaving.world, leaving.victims = self._world, []
        cluster.refusals.messages.clear()
        self._world.save_nominations()
        engine.bookings.hand_over = self._keep
        engine.attempts.rules = replace(rules, preempts=self._preempts, sampling=Sampling())
        try:
            with engine.apart(), in_loop(cluster.loop):
                for pod in self._admitted():
                    if pod.spec.scheduler_name in engine.profiles:
                        self._world.save_group(pod)
                        engine.intake.apply("Pod", None, pod)
                self._decide()
                for waiting in engine.waiting:  # those that are left were allowed; in `run` the binder goes on with them
                    engine.waiting.remove(waiting.pod.uid)
                told = tuple(map(self._told, self._pods))
                self._forget_waiting()
        finally:
            engine.attempts.rules = rules
            leaving.world = None
            cluster.refusals.messages.clear()
            cluster.drain_inbox()
        new = [name for name in self._world.new_nodes() if any(pod.node == name for pod in told)]
        return Placement(told, tuple(leaving.victims), tuple(new))

    def _admitted(self) -> Iterator[Pod]:
        """Yield the pods that the quotas of their namespaces have room for. Pods that are there already count as they are."""
        objects = self._engine.store.objects
        if self._are_copies or not objects.count(ResourceQuota):
            yield from self._pods
            return
        placed = (view.pod for view in self._engine.store.pods())
        waiting = (view.pod for view in self._engine.intake.pending() if self._engine.store.pod(view.uid) is None)
        quotas = PlannedQuotas([*objects.all(ResourceQuota), *placed, *waiting, *objects.all(PersistentVolumeClaim)])
        for pod in self._pods:
            uid = pod.metadata.uid
            why = quotas.refusal(pod) if uid not in self._waited else ""
            if why:
                self._cluster.refusals.messages[uid] = why
            else:
                yield pod

    def _keep(self, binding: AssumedBinding) -> None:
        """Take a booked pod instead of the binder, and let pods see that it came."""
        engine, pod = self._engine, binding.booked
        self._kept[pod.uid] = binding
        self._world.undo.add(partial(self._take_back, binding))
        self._cluster.know(pod, self._world.undo)
        engine.queue.done(pod.uid)
        engine.queue.wake(POD_CAME, None, pod.pod)

    def _forget_waiting(self) -> None:
        """Let the pods that wait leave the world, but for those that waited before it."""
        engine = self._engine
        for pod in self._pods:
            uid = pod.metadata.uid
            if uid not in self._kept and uid not in self._waited:
                engine.queue.nominations.drop(uid)
                if engine.store.groups.are_kept:
                    engine.store.groups.drop(engine.store.view(pod))

    def _take_back(self, binding: AssumedBinding) -> None:
        if self._engine.bookings.is_under_way(binding):  # otherwise it waited at Permit in vain, and was taken back then
            self._engine.bookings.undo(binding)

    def _decide(self) -> None:
        """Try pods until nothing changes any more. Time stands still, so whoever pauses is tried again when something has
        changed since."""
        engine, timed_out, seen, refused = self._engine, set[str](), -1, self._cluster.refusals.messages
        while True:
            while not (self._are_copies and refused) and engine.step():
                pass
            waiting = [pod for pod in engine.waiting if pod.pod.uid not in timed_out and pod.pending_plugins]
            for pod in waiting:
                timed_out.add(pod.pod.uid)
                binding = self._kept.pop(pod.pod.uid, None)
                if binding is not None:
                    status = unschedulable(_WAITS).by(pod.pending_plugins[0])
                    engine.bookings.bind_failed(binding, status)
            state = len(self._world.undo)
            if (self._are_copies and refused) or state == seen or not (engine.queue.has_next or engine.queue.n_backoff):
                return
            seen = state
            engine.queue.flush_backoff(_FOR_EVER)

    def _told(self, pod: Pod) -> PlacedPod:
        meta, binding = pod.metadata, self._kept.get(pod.metadata.uid)
        if binding is not None:
            return PlacedPod(meta.namespace, meta.name, binding.node_name)
        return PlacedPod(meta.namespace, meta.name, why=self._why(pod))

    def _why(self, pod: Pod) -> str:
        if why := self._cluster.refusals.messages.get(pod.metadata.uid):
            return why
        profile = self._engine.profiles.get(pod.spec.scheduler_name)
        if profile is None:
            return _NOT_OURS
        return profile.pre_enqueue(self._engine.store.view(pod)).message or _GATED
