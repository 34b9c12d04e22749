"""GPU allocation as papers on GPU sharing measure it: when the requests of all pods so far equal the GPUs, and at the end.

In: a finished simulation of pods with the GPU annotations of `kubesched.contrib.gpu_table`. Out: figures in percent of all
GPUs. They are computed afterwards: the record of a pod has the times of its arrival, placement and end, its annotation the
GPUs.
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
    """Return `gpu.unallocatedAt100` and `gpu.fragmentedAt100` at the time when requests reach 100 % of the GPUs, and
    `gpu.allocated` at the end.
    """
    records = sorted(sim.pods.values(), key=lambda record: record.arrived)
    wanted = [request_of(record.pod) for record in records]
    total = sum(map(_gpus_of, sim.nodes.values())) * WHOLE
    if not total or not records:
        return {"gpu": {}}
    reached = bisect_left(list(accumulate(each.count * each.milli for each in wanted)), total)
    figures = {"allocated": 100 * _in_use(sim.now, records, wanted) / total}
    if reached < len(records):
        at = records[reached + 1].arrived if reached + 1 < len(records) else sim.now
        figures["unallocatedAt100"] = 100 - 100 * _in_use(at, records, wanted) / total
        figures["fragmentedAt100"] = 100 * _fragmented(sim, at, records, wanted) / total
    return {"gpu": {name: round(value, 4) for name, value in figures.items()}}


def _gpus_of(node: Node) -> int:
    return quantity.value(quantity.parse(node.status.allocatable.get(COUNT, "0")))


def _is_there(record: PodRecord, at: float) -> bool:
    return bool(record.node) and record.placed is not None and record.placed < at and not (record.ended and record.ended <= at)


def _in_use(at: float, records: list[PodRecord], wanted: list[GpuRequest]) -> int:
    return sum(gpus.count * gpus.milli for record, gpus in zip(records, wanted, strict=True) if _is_there(record, at))


def _fragmented(sim: Simulation, at: float, records: list[PodRecord], wanted: list[GpuRequest]) -> float:
    names = sorted(sim.nodes)
    row_of = {name: row for row, name in enumerate(names)}
    offers = [requests.node_allocatable(sim.nodes[name]) for name in names]
    counts = np.array([_gpus_of(sim.nodes[name]) for name in names])
    left = np.where(np.arange(max(int(counts.max()), 1)) < counts[:, None], WHOLE, 0)
    cpu = np.array([offer["cpu"] for offer in offers])
    for record, gpus in zip(records, wanted, strict=True):
        if _is_there(record, at) and record.node in row_of:
            row = row_of[record.node]
            cpu[row] -= record.cpu_milli
            cards = (record.pod.metadata.annotations or {}).get(INDEX, "")
            for card in filter(None, cards.split("-")):
                left[row, int(card)] -= gpus.milli
    fragmentation = Fragmentation(typical_pods((record.cpu_milli, gpus) for record, gpus in zip(records, wanted, strict=True)))
    models = [(sim.nodes[name].metadata.labels or {}).get(MODEL) for name in names]
    return float(fragmentation.of(left, cpu, fragmentation.access(models)).sum())
