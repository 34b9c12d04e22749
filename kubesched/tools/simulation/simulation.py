"""A cluster to try policies in: the real engine in virtual time, against an API server kept in memory.

    sim = Simulation(nodes=[...], plugins=[MyPlugin], seed=1)
    sim.submit(pod, at=10, runs=300)
    sim.run(until=3600)
    sim.metrics()

In: nodes, pods and when they come, a configuration, plugins. Out: where every pod went and when, and the figures. The same
calls with the same seed give the same answers, in any process. Decisions take no time unless they are told to; whatever waits
(pauses, permits, grace periods, bindings that take their time) waits in virtual seconds.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from msgspec import Struct

from kubesched.kube.api import Node, Pod, TopLevel, codec
from kubesched.scheduler import config as configs
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine import (
    AssumedBinding,
    Engine,
    EngineOptions,
    PoppedPod,
    Ports,
    Ties,
    assemble,
    engine_options,
    registry_with,
)
from kubesched.scheduler.framework import Plugin, Registry
from kubesched.tools.simulation.agenda import Agenda
from kubesched.tools.simulation.clock import EPOCH, VirtualClock, VirtualLoop
from kubesched.tools.simulation.cluster.fake_api import FakeApi
from kubesched.tools.simulation.cluster.simulated_cluster import LogWriter, SimulatedCluster
from kubesched.tools.simulation.configuration import enable, read_configuration
from kubesched.tools.simulation.measures import Measures
from kubesched.tools.simulation.pod_record import PodRecord

T = TypeVar("T")

DEFAULT_SAMPLE_SECONDS = 60.0
_HAIR = 1e-9
"""The virtual clock's own step: what is due within it is due now."""
_PATIENCE_SECONDS = 600.0
"""How long pods are tried again and again, with nothing else happening, before a run without an end is over."""


class Decided(Struct, frozen=True):
    """One decision: the node that a pod goes to, or none and why."""

    at: float
    pod: str
    node: str
    note: str = ""


class Simulation:
    """Nodes, pods and a scheduler, in virtual time."""

    def __init__(
        self,
        nodes: Iterable[Node | Mapping[str, Any]] = (),
        config: configs.Configuration | str | os.PathLike[str] | None = None,
        plugins: Iterable[type[Plugin] | tuple[type[Plugin], int]] = (),
        seed: int = 0,
        *,
        objects: Iterable[TopLevel | Mapping[str, Any]] = (),
        gates: configs.Gates | None = None,
        registry: Registry | None = None,
        options: EngineOptions | None = None,
        decision_seconds: float = 0.0,
        binding_seconds: float = 0.0,
        sample_seconds: float = DEFAULT_SAMPLE_SECONDS,
        epoch: float = EPOCH,
        journal: LogWriter | None = None,
        ties: Ties | None = None,
        build: Callable[[Ports], Engine] | None = None,
    ) -> None:
        """Build a cluster and its scheduler; nothing happens before `run` or `step`.

        `config` is a configuration, the path or the text of one, or None for the default. `plugins` run in every profile
        that does not name them itself, with weight 1 or the weight given beside them. `objects` are there from the
        beginning: priority classes, claims, pods. An attempt takes `decision_seconds`, a binding `binding_seconds` beside
        it. `journal` is called with everything that happens. `ties` chooses among equally good nodes; by default the seed
        does. Whoever has a way of their own to `build` an engine hands that in, and neither `config` nor `plugins`.
        """
        self._loop = VirtualLoop()
        self._clock = VirtualClock(self._loop, epoch)
        self._agenda = Agenda()
        self.measures = Measures(sample_seconds)
        self.world = SimulatedCluster(self._clock, self._agenda, self.measures, journal)
        self._decision_seconds = decision_seconds
        self.seed = seed
        self.gates = gates or configs.Gates.defaults()
        ports = Ports(clock=self._clock, writer=FakeApi(self.world, binding_seconds), recorder=self, seed=seed, ties=ties)
        self.engine = build(ports) if build is not None else self._assembled(ports, config, plugins, registry, options)
        self.world.inbox = self.engine.inbox
        self._decided: list[Decided] = []
        self._last_news = 0.0
        bookings = self.engine.bookings
        self._carry_out, bookings.hand_over = bookings.hand_over, self._hand_over
        self.measures.look = self._look
        for each in (*nodes, *objects):
            self.add(each)

    def _assembled(
        self,
        ports: Ports,
        config: configs.Configuration | str | os.PathLike[str] | None,
        plugins: Iterable[type[Plugin] | tuple[type[Plugin], int]],
        registry: Registry | None,
        options: EngineOptions | None,
    ) -> Engine:
        wanted = [each if isinstance(each, tuple) else (each, 1) for each in plugins]
        registry = registry.copy() if registry is not None else registry_with(installed=config is not None)
        for cls, _ in wanted:
            registry.register(cls)
        configuration = enable(read_configuration(config, self.gates, registry), wanted)
        options = options or engine_options(configuration, self.gates)
        return assemble(configuration, self.gates, ports, registry=registry, options=options)

    # What is there, and what happens

    @property
    def now(self) -> float:
        """Return the virtual seconds since the beginning."""
        return self._loop.time()

    @property
    def pods(self) -> dict[str, PodRecord]:
        """Return every pod that came so far by its namespace/name: its state, node and times."""
        return {key: self.world.records[uid] for key, uid in self.world.uids.items()}

    @property
    def nodes(self) -> dict[str, Node]:
        """Return the nodes by name."""
        return dict(self.world.nodes)

    def add(self, obj: TopLevel | Mapping[str, Any]) -> None:
        """Take in an object now: a node, a pod, or what plugins read besides."""
        made = codec.decode(dict(obj)) if isinstance(obj, Mapping) else obj
        if isinstance(made, Node):
            self.world.put_node(made)
        elif isinstance(made, Pod):
            self.world.arrive(made)
        else:
            self.world.put(made)

    def submit(
        self,
        pod: Pod | Mapping[str, Any],
        at: float | None = None,
        *,
        runs: float | None = None,
        workload: str = "",
        restarts: bool | None = None,
    ) -> None:
        """Let a pod come at a time (now, if none is given).

        It runs for `runs` seconds once it is placed, forever if None. `workload` is what it is counted under, its owner if
        it is not given. `restarts` says whether another one comes when it is evicted or lost with its node; by default that
        is so if it has a controller.
        """
        made = codec.convert(dict(pod), Pod) if isinstance(pod, Mapping) else pod
        self.at(at, lambda: self.world.arrive(made, workload=workload, runs=runs, restarts=restarts))

    def at(self, seconds: float | None, act: Callable[[], object]) -> None:
        """Have something done at a time (now, if None): `sim.at(60, lambda: sim.world.drop_node("n1"))`."""
        self._agenda.add(self.now if seconds is None else seconds, act)

    # Running

    def run(self, until: float | None = None, progress: Callable[[float], None] | None = None) -> dict[str, Any]:
        """Run to a time, or until nothing happens any more; return the figures."""
        self._wait(self._live(until, progress=progress))
        return self.metrics()

    def step(self) -> Decided | None:
        """Run to the next decision and return it; None if there will be none.

        Bindings and evictions get their turn after every decision; `run`, as a scheduler does, makes a few before it looks.
        """
        self._decided.clear()
        self._wait(self._live(None, (self.engine.step, lambda: bool(self._decided))))
        return self._decided[0] if self._decided else None

    def next_pod(self, until: float | None = None) -> PoppedPod | None:
        """Run until a pod is to be tried and take it out of the queue, for `decide`; None if none will be before that time."""
        self._decided.clear()
        taken: list[PoppedPod] = []

        def take() -> bool:
            tried = self.engine.attempts.take()
            if tried is not None:
                taken.append(tried)
            return tried is not None

        self._wait(self._live(until, (take, lambda: bool(taken))))
        return taken[0] if taken else None

    def decide(self, tried: PoppedPod) -> Decided | None:
        """Decide a pod that `next_pod` took out of the queue, and act on it; None if it was not refused and has no node."""

        async def act() -> None:
            self.engine.attempts.act(tried, self.engine.attempts.decide(tried))

        self._decided.clear()
        self._wait(act())
        return self._decided[-1] if self._decided else None

    def metrics(self) -> dict[str, Any]:
        """Return the figures as they are now; docs/reference/scenario.md says what each of them means."""
        self.measures.advance(self.now)
        return {"seed": self.seed, **self.measures.figures()}

    def close(self) -> None:
        """Cancel the bindings and evictions under way, and close the event loop. A `with` block does it at its end."""
        if not self._loop.is_closed():
            if tasks := asyncio.all_tasks(self._loop):
                for task in tasks:
                    task.cancel()
                self._wait(asyncio.wait(tasks))
            self._loop.close()

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Tasks of bindings under way die together with a simulation that nobody closed. asyncio would log each of them as
        # lost, and they cannot be cancelled here: a destructor may run in the middle of another event loop.
        loop = getattr(self, "_loop", None)
        if loop is not None and not loop.is_closed() and not loop.is_running():
            for task in asyncio.all_tasks(loop):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
            loop.close()

    # The Recorder port

    def event(self, regarding: PodView, kind: str, reason: str, action: str, note: str) -> None:
        """Take what people would be told."""
        record = self.world.records.get(regarding.uid)
        if record is None:
            return
        if reason == "Preempted" and not record.preempted_by:
            uid = note.removeprefix("Preempted by pod ").partition(" on node ")[0]
            record.preempted_by = self.world.records[uid].key
            self.measures.n_preempted += 1
            self.world.tell("preempted", pod=regarding.key, node=regarding.node_name, by=record.preempted_by)
        elif reason == "FailedScheduling":
            self.measures.n_refused += 1
            self._decided.append(Decided(self.now, regarding.key, "", note))
            if record.note != note:
                record.note = note
                self.world.tell("refused", pod=regarding.key, note=note)

    # Inside

    def _hand_over(self, binding: AssumedBinding) -> None:
        self._last_news = self.now
        self._decided.append(Decided(self.now, binding.booked.key, binding.node_name))
        self._carry_out(binding)

    async def _live(
        self,
        until: float | None,
        single: tuple[Callable[[], bool], Callable[[], bool]] | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        """Do what `Engine.run` does, and what the agenda says; stop at a time, or when all is quiet. `single` is one step of
        the engine's, which is made instead of a turn, and whether that is enough."""
        engine, agenda, measures = self.engine, self._agenda, self.measures
        while True:
            now, n_before = self._loop.time(), engine.queue.scheduling_cycle
            if progress is not None:
                progress(now)
            measures.advance(now)
            if agenda.do_due(now + _HAIR):
                self._last_news = now
            if single is not None:
                worked = bool(engine.take_in())
                engine.flush()
                worked = single[0]() or worked
            else:
                self._decided.clear()
                worked = engine.turn()
            if self._decision_seconds and (n_attempts := engine.queue.scheduling_cycle - n_before):
                taken = n_attempts * self._decision_seconds
                self._loop.advance(taken if until is None else min(taken, until - now))
                if until is not None and now + taken >= until:
                    return
            if single is not None and single[1]():
                return
            if worked or self._loop.is_anybody_next:
                await self._give_turns()
                continue
            target = self._next_time(until)
            if self._is_over(now, until, target):
                return
            if target is not None:
                await self._loop.pass_time(target)
            else:
                await engine.inbox.wait()

    async def _give_turns(self) -> None:
        """Let bindings and evictions go on until they have something to say, or wait for time to pass."""
        await asyncio.sleep(0)
        while self._loop.is_anybody_next and not len(self.engine.inbox):  # noqa: ASYNC110  nobody would set an event: whoever is next is any task
            await asyncio.sleep(0)

    def _next_time(self, until: float | None) -> float | None:
        """Return when to look again, whatever else may happen before; None if time alone changes nothing."""
        queue = self.engine.queue
        times = [] if until is None else [until]
        if (entered := self._agenda.next_time) is not None:
            times.append(entered)
        # Pods that wait for an event are tried again after minutes; that alone does not keep a simulation going.
        if (times or queue.n_backoff) and (deadline := queue.next_deadline()) is not None:
            times.append(deadline - queue.now() + self._loop.time() + 0.001)
        return min(times) if times else None

    def _is_over(self, now: float, until: float | None, target: float | None) -> bool:
        if until is not None:
            return now >= until - _HAIR
        if target is not None:
            return not len(self._agenda) and now - self._last_news > _PATIENCE_SECONDS
        return not len(self.engine.inbox) and len(asyncio.all_tasks(self._loop)) <= 1

    def _look(self) -> dict[str, Any]:
        queue = self.engine.queue
        return {
            "active": queue.n_active,
            "backoff": queue.n_backoff,
            "unschedulable": queue.n_unschedulable,
            "gated": queue.n_gated,
            "snapshot": self.engine.store.snapshot(),
            "out": set(self.world.down),
        }

    def _wait(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; beside a loop that runs already, as in a notebook, in a thread of its own."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._loop.run_until_complete(main)
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self._loop.run_until_complete, main).result()
