"""Decision throughput in memory: pop, schedule and assume, without binding.

In: a kind of pods and how many. Out: pods a second, the time of single decisions, memory. All nodes are evaluated, unless a
configuration limits them. The pods are in the queue before the clock starts, so only the engine's own steps are measured.
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
    """How many equivalence classes the pods of kind unlike have; 0 makes every pod different."""
    decision_records: int = 0
    """How many decision records are kept during the run."""
    configuration: config.Configuration | None = None
    """The scheduler configuration, None for the default; `registry` has the plugins that it names."""
    registry: Registry | None = None


def build_engine(bench: Bench) -> Engine:
    """Return an engine without an API server. For gangs, the feature gates that they need are on."""
    gates = config.Gates.defaults()
    if bench.kind == "gang":
        gates = config.Gates.of({"GenericWorkload": True, "GangScheduling": True}, emulated=(1, 36))
    ports = Ports(seed=bench.seed, decisions=DecisionRecorder(bench.decision_records) if bench.decision_records else None)
    configuration = bench.configuration or default_configuration(gates)
    options = engine_options(configuration, gates)
    if not bench.remembers:
        options = replace(options, remembers=False)
    return assemble(configuration, gates, ports, registry=bench.registry, options=options)


class EngineRun:
    """An engine with the nodes of a benchmark, and its pods in the queue. `step` decides one pod."""

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
        """Return the configured `percentageOfNodesToScore`."""
        profile, *_ = self.engine.profiles.values()
        return self.engine.attempts.rules.percentage_for(profile) or 100

    def _keep(self, binding: AssumedBinding) -> None:
        self.placed.append(binding)
        self.engine.queue.done(binding.booked.uid)

    def step(self) -> float | None:
        """Decide the next pod and return how many seconds it took; None when the queue is empty. Every tenth step churns."""
        before = time.perf_counter()
        if not self.engine.step():
            return None
        seconds = time.perf_counter() - before
        self.n_steps += 1
        if self._churn is not None and self.n_steps % 10 == 0:
            next(self._churn)
        return seconds


def run(bench: Bench, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Build the cluster, schedule the pods, and return the figures."""
    return asyncio.run(_run(bench, progress))


async def _run(bench: Bench, progress: Callable[[int], None] | None) -> dict[str, Any]:
    # A coroutine that awaits nothing: pods of a gang wait at Permit in tasks, and tasks need a running event loop.
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
    # The queue keeps the order of the pods, as all have the same priority. One step decides a whole gang, so it says nothing
    # about single pods.
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
    """Return the indices of the pods that are the first of their equivalence class."""
    seen: dict[bytes, int] = {}
    for i, pod in enumerate(pods):
        seen.setdefault(sign(pod), i)
    return np.fromiter(seen.values(), dtype=np.intp)


def _churn(engine: Engine, bench: Bench, placed: list[AssumedBinding]) -> Iterator[None]:
    """Change the labels of a node and delete a pod that was placed, each time the iterator is advanced."""
    turn = 0
    while True:
        turn += 1
        number = turn * 37 % bench.nodes
        engine.intake.apply("Node", engine.store.node(f"node-{number:05d}"), workloads.node(number, turn=turn))
        gone: Pod = placed[turn * 3 % len(placed)].booked.pod
        if engine.store.pod(gone.metadata.uid) is not None:
            engine.intake.apply("Pod", gone, None)
        yield
