"""Preemption at scale: nodes full of pods of low priority, and as many pods that need their place.

Two figures. `decisions`: every preemptor is tried once and finds its victims; nobody is evicted, so that at the end
each node has a pod nominated to it that all later ones have to reckon with. `placed`: the victims go at once, as an API
server without grace would let them, and every preemptor is tried until it is on a node; statuses and deletions go
through the writer and come back through the inbox. `pods_per_cpu_s` does not depend on what else the machine does.

    python bench/preemption.py --nodes 5000 --low 20000 --preemptors 5000
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import time
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from kubesched.kube.api import codec
from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.pod import Container, Pod, PodCondition, PodSpec, PodStatus, ResourceRequirements
from kubesched.scheduler import config
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.arrivals.inbox import AssumedBinding, Changed, Inbox
from kubesched.scheduler.engine.assembly import EngineOptions, Ports, assemble, default_configuration
from kubesched.scheduler.engine.gc_tuning import spare_the_collector
from kubesched.scheduler.engine.handle import NoWriter
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.framework.plugin import Preemption
from kubesched.tools.bench import workloads


def _pod(name: str, cpu: str, priority: int, on: str = "") -> Pod:
    asked = ResourceRequirements(requests={"cpu": cpu, "memory": "500Mi"})
    return Pod(
        metadata=ObjectMeta(name=name, namespace="sched-0", uid=f"uid-{name}"),
        spec=PodSpec(containers=(Container(name="pause", image="pause", resources=asked),), node_name=on, priority=priority),
        status=PodStatus(start_time="2026-01-01T00:00:00Z" if on else None),
    )


class ApiServer(NoWriter):
    """Does what it is told at once, and says so through the inbox."""

    def __init__(self) -> None:
        self.inbox: Inbox | None = None
        self.pods: dict[str, Pod] = {}

    def add(self, pod: Pod) -> None:
        """Know a pod."""
        self.pods[pod.metadata.uid] = pod

    async def patch_pod_status(self, pod: PodView, status: Mapping[str, Any]) -> None:
        """Merge conditions and the nominated node into the pod."""
        old = self.pods.get(pod.uid)
        if old is None or self.inbox is None:
            return
        changed = old.status
        if "nominatedNodeName" in status:
            changed = msgspec.structs.replace(changed, nominated_node_name=status["nominatedNodeName"] or "")
        if "conditions" in status:
            said = [codec.convert({k: v for k, v in c.items() if v is not None}, PodCondition) for c in status["conditions"]]
            types = {condition.type for condition in said}
            kept = [condition for condition in changed.conditions if condition.type not in types]
            changed = msgspec.structs.replace(changed, conditions=(*kept, *said))
        new = self.pods[pod.uid] = msgspec.structs.replace(old, status=changed)
        self.inbox.post(Changed("Pod", old, new))

    async def delete_pod(self, pod: PodView) -> None:
        """Let the pod be gone."""
        old = self.pods.pop(pod.uid, None)
        if old is not None and self.inbox is not None:
            self.inbox.post(Changed("Pod", old, None))


def build(args: argparse.Namespace, server: ApiServer) -> Engine:
    """Return an engine whose cluster is full."""
    gates = config.Gates.defaults()
    engine = assemble(
        default_configuration(gates),
        gates,
        Ports(writer=server, seed=args.seed),
        options=EngineOptions(remembers=not args.no_memory),
    )
    server.inbox = engine.inbox
    for i in range(args.nodes):
        engine.intake.apply("Node", None, workloads.node(i))
    for i in range(args.low):
        pod = _pod(f"low-{i}", "900m", 0, f"node-{i % args.nodes:05d}")
        server.add(pod)
        engine.intake.apply("Pod", None, pod)
    for i in range(args.preemptors):
        pod = _pod(f"high-{i}", args.cpu, 10)
        server.add(pod)
        engine.intake.apply("Pod", None, pod)
    gc.collect()
    spare_the_collector()
    return engine


def measure_decisions(args: argparse.Namespace) -> dict[str, Any]:
    """Try every preemptor once; evict nobody."""
    engine = build(args, ApiServer())
    proposed: list[Preemption] = []
    engine.failures.writes = False
    engine.attempts.evictions.carry_out = lambda pod, preemption, then=None: proposed.append(preemption)  # type: ignore[method-assign]
    seconds = []
    clock = time.perf_counter
    cpu = time.process_time()
    started = clock()
    for _ in range(args.preemptors):
        before = clock()
        engine.step()
        seconds.append(clock() - before)
    elapsed = clock() - started
    cpu = time.process_time() - cpu
    micros = np.array(seconds) * 1e6
    nodes = {preemption.node_name for preemption in proposed}
    return {
        "pods_per_s": round(args.preemptors / elapsed, 1),
        "pods_per_cpu_s": round(args.preemptors / cpu, 1),
        "p50_us": round(float(np.percentile(micros, 50)), 1),
        "p99_us": round(float(np.percentile(micros, 99)), 1),
        "first_us": round(float(micros[0]), 1),
        "preemptions": len(proposed),
        "nodes": len(nodes),
        "victims": sum(len(p.victims) for p in proposed),
    }


async def measure_placed(args: argparse.Namespace) -> dict[str, Any]:
    """Try every preemptor until it is placed; victims go at once."""
    server = ApiServer()
    engine = build(args, server)
    placed: list[AssumedBinding] = []

    def keep(binding: AssumedBinding) -> None:
        placed.append(binding)
        engine.queue.done(binding.booked.uid)

    engine.bookings.hand_over = keep
    started = time.perf_counter()
    while len(placed) < args.preemptors and time.perf_counter() - started < args.limit:
        engine.turn()
        await asyncio.sleep(0)
    elapsed = time.perf_counter() - started
    return {"placed_per_s": round(len(placed) / elapsed, 1), "placed": len(placed), "seconds": round(elapsed, 2)}


def main() -> None:
    """Measure and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--low", type=int, default=20000, help="pods of low priority that fill the nodes, 900m each")
    parser.add_argument("--preemptors", type=int, default=5000)
    parser.add_argument("--cpu", default="3", help="what a preemptor asks for")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds after which `placed` is given up")
    parser.add_argument("--no-memory", action="store_true", help="decide without answers remembered per pod class")
    parser.add_argument("--only", choices=("decisions", "placed"))
    args = parser.parse_args()
    figures: dict[str, Any] = {"nodes": args.nodes, "low": args.low, "preemptors": args.preemptors, "seed": args.seed}
    if args.only != "placed":
        figures["decisions"] = measure_decisions(args)
    if args.only != "decisions":
        figures["placed"] = asyncio.run(measure_placed(args))
    figures["rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
