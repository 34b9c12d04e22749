"""How long it takes to find the nodes that pods need, on the pods and nodes of cluster-autoscaler's own benchmark.

In: what the pods ask for beside resources, and how many. Out: how many nodes, and the time. One in 51 pods asks for 95m,
the others for 50m; a node has one core, so that memory and the number of pods bind nobody. One small node is there already.
With spread and affinity there is a group in each of three zones.
"""

from __future__ import annotations

import gc
import time
from typing import Any

import msgspec

from kubesched.kube.api import Container, Pod, ResourceRequirements
from kubesched.kube.values import ZONE
from kubesched.scheduler.engine import spare_the_collector
from kubesched.solver.node_groups import GroupSizes, NodeEstimator, NodeGroup, make_node
from kubesched.tools.bench import workloads
from kubesched.tools.bench.engine import Bench, build_engine

_with = msgspec.structs.replace


def run(kind: str, n_pods: int) -> dict[str, Any]:
    """Find the nodes, and return the figures."""
    engine, n_large = build_engine(Bench()), n_pods // 51
    there = NodeGroup(name="there", capacity={"cpu": "100m", "memory": "100Mi", "pods": 10}, labels={ZONE: "zone-0"})
    engine.intake.apply("Node", None, make_node(there, 0))
    groups = [
        NodeGroup(
            name=f"zone-{zone}",
            capacity={"cpu": "1", "memory": "5000Mi", "pods": 100},
            labels={ZONE: f"zone-{zone}"},
            max=max(n_pods, 1),
        )
        for zone in range(1 if kind == "basic" else 3)
    ]
    pods = [_pod(i, kind, "95m" if i < n_large else "50m") for i in range(n_pods)]
    gc.collect()
    spare_the_collector()
    started, cpu_started = time.perf_counter(), time.process_time()
    found = NodeEstimator(engine, GroupSizes(groups)).estimate(pods)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    return {
        "kind": kind,
        "pods": n_pods,
        "on_new_nodes": sum(len(new.pods) for new in found),
        "new_nodes": len(found),
        "seconds": round(seconds, 3),
        "cpu_s": round(cpu_seconds, 3),
        "pods_per_s": round(n_pods / seconds, 1),
    }


def _pod(i: int, kind: str, cpu: str) -> Pod:
    pod = workloads.pod(i, kind)
    resources = ResourceRequirements(requests={"cpu": cpu, "memory": "100"})
    container = Container(name="pause", image="registry.k8s.io/pause:3.10", resources=resources)
    return _with(pod, spec=_with(pod.spec, containers=(container,)))
