"""How much of a cluster's GPUs is in use, as the papers on GPU sharing count it: when as many have been asked for as there
are, and at the end.

In: a finished simulation of pods that ask for GPUs as `kubesched.contrib.gpu_table` says. Out: figures in percent of all GPUs.
Nothing was recorded on the way: a pod's record says when it came, was placed and ended, and its annotation on which GPUs.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

import numpy as np

from kubesched.contrib.gpu_fragmentation import Fragmentation, typical_pods
from kubesched.contrib.gpu_table import COUNT, INDEX, MODEL, WHOLE, GpuRequest, request_of
from kubesched.kube.api import Node, requests
from kubesched.kube.values import quantity
from kubesched.tools.simulation.pod_record import PodRecord
from kubesched.tools.simulation.simulation import Simulation


def gpu_allocation(sim: Simulation) -> dict[str, dict[str, float]]:
    """Return `gpu.unallocatedAt100` and `gpu.fragmentedAt100`, of the moment when pods had asked for all GPUs that there are,
    and `gpu.allocated`, at the end."""
    came = sorted(sim.pods.values(), key=lambda record: record.arrived)
    asked = [request_of(record.pod) for record in came]
    total = sum(map(_gpus_of, sim.nodes.values())) * WHOLE
    if not total or not came:
        return {"gpu": {}}
    reached = bisect_left(list(accumulate(each.count * each.milli for each in asked)), total)
    figures = {"allocated": 100 * _in_use(sim.now, came, asked) / total}
    if reached < len(came):
        at = came[reached + 1].arrived if reached + 1 < len(came) else sim.now
        figures["unallocatedAt100"] = 100 - 100 * _in_use(at, came, asked) / total
        figures["fragmentedAt100"] = 100 * _fragmented(sim, at, came, asked) / total
    return {"gpu": {name: round(value, 4) for name, value in figures.items()}}


def _gpus_of(node: Node) -> int:
    return quantity.value(quantity.parse(node.status.allocatable.get(COUNT, "0")))


def _is_there(record: PodRecord, at: float) -> bool:
    return bool(record.node) and record.placed is not None and record.placed < at and not (record.ended and record.ended <= at)


def _in_use(at: float, came: list[PodRecord], asked: list[GpuRequest]) -> int:
    return sum(gpus.count * gpus.milli for record, gpus in zip(came, asked, strict=True) if _is_there(record, at))


def _fragmented(sim: Simulation, at: float, came: list[PodRecord], asked: list[GpuRequest]) -> float:
    names = sorted(sim.nodes)
    row_of = {name: row for row, name in enumerate(names)}
    offers = [requests.node_allocatable(sim.nodes[name]) for name in names]
    counts = np.array([_gpus_of(sim.nodes[name]) for name in names])
    left = np.where(np.arange(max(int(counts.max()), 1)) < counts[:, None], WHOLE, 0)
    cpu = np.array([offer["cpu"] for offer in offers])
    for record, gpus in zip(came, asked, strict=True):
        if _is_there(record, at) and record.node in row_of:
            row = row_of[record.node]
            cpu[row] -= record.cpu_milli
            cards = (record.pod.metadata.annotations or {}).get(INDEX, "")
            for card in filter(None, cards.split("-")):
                left[row, int(card)] -= gpus.milli
    fragmentation = Fragmentation(typical_pods((record.cpu_milli, gpus) for record, gpus in zip(came, asked, strict=True)))
    models = [(sim.nodes[name].metadata.labels or {}).get(MODEL) for name in names]
    return float(fragmentation.of(left, cpu, fragmentation.access(models)).sum())
