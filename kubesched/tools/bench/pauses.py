"""How long the scheduler stops between decisions in a large cluster whose pods come and go.

In: how many nodes and pods there are, and how many pods come and leave. Out: percentiles of a turn, the collections of Python's
cycle collector, and the memory at both ends. One turn is what one replaced replica costs the scheduler: a pod arrives as JSON,
it is decided and booked, its binding is seen, and the oldest pod leaves.

Everything happens in memory and at once: the rate is as high as the machine allows, so an hour at 1,000 pods a second takes
some minutes.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from kubesched.kube.api import Pod, ResourceRequirements
from kubesched.scheduler.engine import AssumedBinding, await_the_list, spare_the_collector
from kubesched.tools.bench import workloads
from kubesched.tools.bench.builders import make_pod
from kubesched.tools.bench.engine import Bench, build_engine

N_APPS = 300
"""Pods are replicas of so many applications."""
SMALL = ResourceRequirements(requests={"cpu": "10m", "memory": "20Mi"})
_PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Pauses:
    """One measurement to make."""

    nodes: int = 5000
    pods: int = 150_000
    turns: int = 300_000
    seed: int = 0


def run(asked: Pauses, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Fill the cluster, let pods come and go, and return the figures."""
    engine = build_engine(Bench(nodes=asked.nodes, seed=asked.seed))
    booked: list[AssumedBinding] = []
    engine.bookings.hand_over = booked.append
    engine.failures.writes = False
    await_the_list()
    for i in range(asked.nodes):
        engine.intake.apply("Node", None, workloads.node(i))
    alive: deque[Pod] = deque()
    for i in range(asked.pods):
        alive.append(_as_read(i, f"node-{i % asked.nodes:05d}"))
        engine.intake.apply("Pod", None, alive[-1])
    spare_the_collector()
    collections: list[tuple[int, float]] = []
    began = 0.0

    def note(phase: str, info: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.perf_counter()
        else:
            collections.append((info["generation"], time.perf_counter() - began))

    seconds = np.zeros(asked.turns)
    rss_before, n_decided = _rss_mib(), 0
    gc.callbacks.append(note)
    try:
        for turn in range(asked.turns):
            pod = _as_read(asked.pods + turn)
            before = time.perf_counter()
            engine.intake.apply("Pod", None, pod)
            engine.step()
            if booked:
                binding = booked.pop()
                engine.bookings.bound(binding)
                engine.queue.done(binding.booked.uid)
                alive.append(_as_read(asked.pods + turn, binding.node_name))
                engine.intake.apply("Pod", pod, alive[-1])
                n_decided += 1
            if len(alive) > asked.pods:
                engine.intake.apply("Pod", alive.popleft(), None)
            seconds[turn] = time.perf_counter() - before
            if progress is not None and turn % 1000 == 999:
                progress(turn + 1)
    finally:
        gc.callbacks.remove(note)
    p50, p99, p999 = np.percentile(seconds, (50, 99, 99.9)) * 1000
    longest = max((pause for _, pause in collections), default=0.0)
    return {
        "nodes": asked.nodes,
        "pods": asked.pods,
        "turns": asked.turns,
        "placed": n_decided,
        "turns_per_s": round(asked.turns / seconds.sum(), 1),
        "p50_ms": round(p50, 3),
        "p99_ms": round(p99, 3),
        "p999_ms": round(p999, 3),
        "longest_ms": round(seconds.max() * 1000, 1),
        "collections": len(collections),
        "longest_collection_ms": round(longest * 1000, 2),
        "rss_begin_mib": rss_before,
        "rss_end_mib": _rss_mib(),
        "seed": asked.seed,
    }


_read = msgspec.json.Decoder(Pod).decode
_written = msgspec.json.Encoder().encode


def _as_read(i: int, node_name: str = "") -> Pod:
    """Return pod number i as the watch gives it: every text in it is an object of its own."""
    pod = make_pod(i, {"app": f"app-{i % N_APPS}"}, SMALL, owner=("apps/v1", "ReplicaSet", f"app-{i % N_APPS}"))
    return _read(_written(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))))


def _rss_mib() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * _PAGE_BYTES >> 20
