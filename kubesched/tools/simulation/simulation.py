"""A simulated cluster: the real engine in virtual time, with an API server in memory.

    sim = Simulation(nodes=[...], plugins=[MyPlugin], seed=1)
    sim.submit(pod, at=10, runs=300)
    sim.run(until=3600)
    sim.metrics()

In: nodes, pods and their arrival times, a configuration, plugins. Out: the node and the times of each pod, and figures. The
same calls with the same seed give the same results, in any process. A decision takes no time unless `decision_seconds` is set.
All waiting (backoff, Permit, grace periods, bindings) happens in virtual seconds.
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
_EPSILON = 1e-9
"""The smallest step of the virtual clock; an entry of the agenda that is due within it is due now."""
_PATIENCE_SECONDS = 600.0
"""A run without an end stops after this time in which pods were only retried."""


class Decided(Struct, frozen=True):
    """One decision: the node of a pod, or an empty name and the reason."""

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
        """Create a cluster and its scheduler. Time stands still until `run` or `step`.

        `config` is a configuration, its path or text, or None for the default. `plugins` are enabled in every profile that
        does not name them, with weight 1 or the weight of the pair. `objects` exist from the beginning: priority classes,
        claims, pods. An attempt takes `decision_seconds`; a binding takes `binding_seconds`, and the scheduler goes on
        meanwhile. `journal` is called with each event. `ties` chooses among equally good nodes; by default the seed does.
        `build` makes the engine in another way; then `config` and `plugins` are ignored.
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

    @property
    def now(self) -> float:
        """Return the virtual seconds since the beginning."""
        return self._loop.time()

    @property
    def pods(self) -> dict[str, PodRecord]:
        """Return every pod so far by namespace/name: its state, node and times."""
        return {key: self.world.records[uid] for key, uid in self.world.uids.items()}

    @property
    def nodes(self) -> dict[str, Node]:
        """Return the nodes by name."""
        return dict(self.world.nodes)

    def add(self, obj: TopLevel | Mapping[str, Any]) -> None:
        """Add a node, a pod or another object now."""
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
        """Create a pod at a time; now if it is None.

        It runs for `runs` seconds after its placement; forever if None. It is counted under `workload`; by default under its
        owner. With `restarts` it is replaced when it is evicted or lost with its node; by default if it has a controller.
        """
        made = codec.convert(dict(pod), Pod) if isinstance(pod, Mapping) else pod
        self.at(at, lambda: self.world.arrive(made, workload=workload, runs=runs, restarts=restarts))

    def at(self, seconds: float | None, act: Callable[[], object]) -> None:
        """Call a function at a time; now if it is None: `sim.at(60, lambda: sim.world.drop_node("n1"))`."""
        self._agenda.add(self.now if seconds is None else seconds, act)

    def run(self, until: float | None = None, progress: Callable[[float], None] | None = None) -> dict[str, Any]:
        """Run until a time, or until nothing is left to happen; return the figures."""
        self._wait(self._live(until, progress=progress))
        return self.metrics()

    def step(self) -> Decided | None:
        """Run to the next decision and return it; None if there is none.

        Bindings and evictions proceed after each decision. `run` decides several pods before they do, as the scheduler does.
        """
        self._decided.clear()
        self._wait(self._live(None, (self.engine.step, lambda: bool(self._decided))))
        return self._decided[0] if self._decided else None

    def next_pod(self, until: float | None = None) -> PoppedPod | None:
        """Run until a pod is ready to be tried, and take it out of the queue for `decide`; None if there is none in time."""
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
        """Decide a pod from `next_pod` and act on the decision; None if the pod was neither placed nor refused."""

        async def act() -> None:
            self.engine.attempts.act(tried, self.engine.attempts.decide(tried))

        self._decided.clear()
        self._wait(act())
        return self._decided[-1] if self._decided else None

    def metrics(self) -> dict[str, Any]:
        """Return the figures at this time; docs/reference/scenario.md explains each of them."""
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
        """Record an event: a preemption or a failed attempt."""
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
        """Run the engine and the agenda until a time, or until nothing is left to happen.

        This replaces `Engine.run`. Each round does what is due now. When a round did nothing and no task is ready, the
        clock jumps to the next time at which something is due. `single` is a pair: one step to take in each round instead
        of a whole turn of the engine, and a function that says whether to stop after it.
        """
        engine, agenda, measures = self.engine, self._agenda, self.measures
        while True:
            now, n_before = self._loop.time(), engine.queue.scheduling_cycle
            if progress is not None:
                progress(now)
            measures.advance(now)
            if agenda.do_due(now + _EPSILON):
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
            if worked or self._loop.has_ready_tasks:
                await self._run_ready_tasks()
                continue
            target = self._next_time(until)
            if self._is_over(now, until, target):
                return
            if target is not None:
                await self._loop.pass_time(target)
            else:
                await engine.inbox.wait()

    async def _run_ready_tasks(self) -> None:
        """Run the tasks of bindings and evictions until one posts to the inbox, or all of them wait for time to pass."""
        await asyncio.sleep(0)
        while self._loop.has_ready_tasks and not len(self.engine.inbox):  # noqa: ASYNC110  any task may be next, so there is no event to wait for
            await asyncio.sleep(0)

    def _next_time(self, until: float | None) -> float | None:
        """Return the next time at which something is due; None if the passing of time changes nothing."""
        queue = self.engine.queue
        times = [] if until is None else [until]
        if (entered := self._agenda.next_time) is not None:
            times.append(entered)
        # Unschedulable pods are retried after five minutes. That alone does not keep a simulation running.
        if (times or queue.n_backoff) and (deadline := queue.next_deadline()) is not None:
            times.append(deadline - queue.now() + self._loop.time() + 0.001)
        return min(times) if times else None

    def _is_over(self, now: float, until: float | None, target: float | None) -> bool:
        if until is not None:
            return now >= until - _EPSILON
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
        """Run a coroutine to its end: in a thread of its own if an event loop runs already, as in a notebook."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._loop.run_until_complete(main)
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self._loop.run_until_complete, main).result()
