"""Decision throughput in memory: pop, schedule and assume, without binding.

In: a kind of workload and its size. Out: pods a second, the time of single decisions, memory. All nodes are evaluated, unless
a configuration says otherwise.
The pods are put into the queue before the clock starts; what is measured is the engine's own step.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kubesched.kube.api import Pod
from kubesched.scheduler import config, kernels
from kubesched.scheduler.cluster import sign
from kubesched.scheduler.engine import (
    AssumedBinding,
    DecisionRecorder,
    Engine,
    Ports,
    assemble,
    default_configuration,
    engine_options,
    spare_the_collector,
)
from kubesched.scheduler.framework import Registry
from kubesched.tools.bench import workloads


@dataclass(frozen=True, slots=True)
class Bench:
    """One measurement to make."""

    kind: str = "basic"
    nodes: int = 5000
    init: int = 1000
    pods: int = 10000
    seed: int = 0
    remembers: bool = True
    classes: int = 0
    """Of kind unlike, how many classes of pods there are; 0 for no two alike."""
    decision_records: int = 0
    """How many decisions are kept on record meanwhile."""
    configuration: config.Configuration | None = None
    """How pods are decided, if not by default; `registry` has the plugins that it names."""
    registry: Registry | None = None


def build_engine(bench: Bench) -> Engine:
    """Return an engine that writes to nobody; for gangs, the gates that they need are on."""
    gates = config.Gates.defaults()
    if bench.kind == "gang":
        gates = config.Gates.of({"GenericWorkload": True, "GangScheduling": True}, emulated=(1, 36))
    ports = Ports(seed=bench.seed, decisions=DecisionRecorder(bench.decision_records) if bench.decision_records else None)
    configuration = bench.configuration or default_configuration(gates)
    options = engine_options(configuration, gates)
    if not bench.remembers:
        options = replace(options, remembers=False)
    return assemble(configuration, gates, ports, registry=bench.registry, options=options)


def run(bench: Bench, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Build the cluster, schedule the pods, and return the figures."""
    return asyncio.run(_run(bench, progress))


class EngineRun:
    """An engine with the cluster of a measurement and its pods in the queue; they are decided one step at a time."""

    def __init__(self, bench: Bench) -> None:
        self.engine = engine = build_engine(bench)
        for obj in workloads.cluster(bench.kind, bench.nodes, bench.init, bench.pods):
            engine.intake.apply(obj.kind, None, obj)
        self.pods = list(workloads.pods(bench.pods, bench.kind, bench.nodes, bench.classes))
        self.placed: list[AssumedBinding] = []
        self.n_steps = 0
        engine.bookings.hand_over = self._keep
        engine.failures.writes = False
        self._churn = _churn(engine, bench, self.placed) if bench.kind == "churn" else None
        gc.collect()
        spare_the_collector()
        for pod in self.pods:
            engine.intake.apply("Pod", None, pod)

    @property
    def percentage_of_nodes(self) -> int:
        """Return how many of a hundred nodes the configuration lets a pod be tried on."""
        profile, *_ = self.engine.profiles.values()
        return self.engine.attempts.rules.percentage_for(profile) or 100

    def _keep(self, binding: AssumedBinding) -> None:
        self.placed.append(binding)
        self.engine.queue.done(binding.booked.uid)

    def step(self) -> float | None:
        """Decide the next pod, then let happen what happens between two; return the seconds of the first, None if all are."""
        before = time.perf_counter()
        if not self.engine.step():
            return None
        seconds = time.perf_counter() - before
        self.n_steps += 1
        if self._churn is not None and self.n_steps % 10 == 0:
            next(self._churn)
        return seconds


async def _run(bench: Bench, progress: Callable[[int], None] | None) -> dict[str, Any]:
    """Measure without waiting for anything: a loop must be there for the pods of a gang to be held in it."""
    run = EngineRun(bench)
    seconds: list[float] = []
    started = time.perf_counter()
    while len(seconds) < bench.pods and (took := run.step()) is not None:
        seconds.append(took)
        if progress is not None and len(seconds) % 500 == 0:
            progress(len(seconds))
    elapsed = time.perf_counter() - started
    micros = np.array(seconds or [0.0]) * 1e6
    firsts = first_of_class(run.pods)
    # Pods of one priority are decided in the order of their numbers; one step decides a whole gang.
    first = micros[firsts[firsts < len(seconds)]] if bench.kind != "gang" else micros[:0]
    return {
        "kind": bench.kind,
        "classes": len(firsts),
        "nodes": bench.nodes,
        "init": bench.init,
        "pods": bench.pods,
        "scheduled": len(run.placed),
        "pods_per_s": round(max(len(seconds), len(run.placed)) / elapsed, 1),  # one step decides a whole gang
        "p50_us": round(float(np.percentile(micros, 50)), 1),
        "p99_us": round(float(np.percentile(micros, 99)), 1),
        "first_p99_us": round(float(np.percentile(first, 99)), 1) if len(first) else None,
        "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "nodes_evaluated_percent": run.percentage_of_nodes,
        "kernels": kernels.form,
        "seed": bench.seed,
    }


def first_of_class(pods: Sequence[Pod]) -> npt.NDArray[np.intp]:
    """Return the numbers of the pods before which there was none of the same equivalence class."""
    seen: dict[bytes, int] = {}
    for i, pod in enumerate(pods):
        seen.setdefault(sign(pod), i)
    return np.fromiter(seen.values(), dtype=np.intp)


def _churn(engine: Engine, bench: Bench, placed: list[AssumedBinding]) -> Iterator[None]:
    """Between every ten pods: change one node's labels and delete one of the pods placed before."""
    turn = 0
    while True:
        turn += 1
        number = turn * 37 % bench.nodes
        engine.intake.apply("Node", engine.store.node(f"node-{number:05d}"), workloads.node(number, turn=turn))
        gone: Pod = placed[turn * 3 % len(placed)].booked.pod
        if engine.store.pod(gone.metadata.uid) is not None:
            engine.intake.apply("Pod", gone, None)
        yield
