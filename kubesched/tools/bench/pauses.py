"""How long the scheduler stops between two decisions in a large cluster with churn.

In: how many nodes and pods there are, and how many pods are replaced. Out: percentiles of the time of a replacement, the pauses
of Python's cycle collector, and the memory before and after. A replacement is what one replaced replica costs the scheduler: a
pod arrives as JSON, it is decided and assumed, its binding arrives, and the oldest pod is deleted.

All of it happens in memory, as fast as the machine allows: an hour at 1,000 pods a second takes some minutes.
"""

from __future__ import annotations

import gc
import resource
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
"""How many applications the pods belong to."""
SMALL = ResourceRequirements(requests={"cpu": "10m", "memory": "20Mi"})


@dataclass(frozen=True, slots=True)
class Pauses:
    """What to measure."""

    nodes: int = 5000
    pods: int = 150_000
    turns: int = 300_000
    seed: int = 0


def run(bench: Pauses, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Fill the cluster, replace pods one by one, and return the figures."""
    engine = build_engine(Bench(nodes=bench.nodes, seed=bench.seed))
    booked: list[AssumedBinding] = []
    engine.bookings.hand_over = booked.append
    engine.failures.writes = False
    await_the_list()
    for i in range(bench.nodes):
        engine.intake.apply("Node", None, workloads.node(i))
    alive: deque[Pod] = deque()
    for i in range(bench.pods):
        alive.append(_as_read(i, f"node-{i % bench.nodes:05d}"))
        engine.intake.apply("Pod", None, alive[-1])
    spare_the_collector()
    collections: list[tuple[int, float]] = []
    began = 0.0

    def on_collection(phase: str, info: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.perf_counter()
        else:
            collections.append((info["generation"], time.perf_counter() - began))

    seconds = np.zeros(bench.turns)
    rss_before, n_decided = resident_bytes() >> 20, 0
    gc.callbacks.append(on_collection)
    try:
        for turn in range(bench.turns):
            pod = _as_read(bench.pods + turn)
            before = time.perf_counter()
            engine.intake.apply("Pod", None, pod)
            engine.step()
            if booked:
                binding = booked.pop()
                engine.bookings.bound(binding)
                engine.queue.done(binding.booked.uid)
                alive.append(_as_read(bench.pods + turn, binding.node_name))
                engine.intake.apply("Pod", pod, alive[-1])
                n_decided += 1
            if len(alive) > bench.pods:
                engine.intake.apply("Pod", alive.popleft(), None)
            seconds[turn] = time.perf_counter() - before
            if progress is not None and turn % 1000 == 999:
                progress(turn + 1)
    finally:
        gc.callbacks.remove(on_collection)
    p50, p99, p999 = np.percentile(seconds, (50, 99, 99.9)) * 1000
    longest = max((pause for _, pause in collections), default=0.0)
    return {
        "nodes": bench.nodes,
        "pods": bench.pods,
        "turns": bench.turns,
        "placed": n_decided,
        "turns_per_s": round(bench.turns / seconds.sum(), 1),
        "p50_ms": round(p50, 3),
        "p99_ms": round(p99, 3),
        "p999_ms": round(p999, 3),
        "longest_ms": round(seconds.max() * 1000, 1),
        "collections": len(collections),
        "longest_collection_ms": round(longest * 1000, 2),
        "rss_begin_mib": rss_before,
        "rss_end_mib": resident_bytes() >> 20,
        "seed": bench.seed,
    }


_read = msgspec.json.Decoder(Pod).decode
_written = msgspec.json.Encoder().encode


def _as_read(i: int, node_name: str = "") -> Pod:
    """Return pod number i decoded from JSON, as the watch delivers it: no string in it is shared with other pods."""
    pod = make_pod(i, {"app": f"app-{i % N_APPS}"}, SMALL, owner=("apps/v1", "ReplicaSet", f"app-{i % N_APPS}"))
    return _read(_written(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))))


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
