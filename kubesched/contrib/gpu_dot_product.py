"""DotProductScore: prefer nodes where the dot product of the request and the free resources is small.

    request (0.5, 0.25), as shares of the largest node (cpu, GPU)
    node with (1, 1) free:        0.5 * 1 + 0.25 * 1 = 0.75
    node with (0.5, 0.25) free:   0.5 * 0.5 + 0.25 * 0.25 = 0.31, better: 100 * (1 - 0.31 / 2) = 84

Grandl et al., "Multi-resource packing for cluster schedulers" (2014), reversed for GPUs: large nodes are kept for pods that
need them.
"""

from __future__ import annotations

import numpy as np

from kubesched.contrib.gpu_table import request_of, rows_of, table_of
from kubesched.scheduler.cluster import CPU, Ints
from kubesched.scheduler.framework import CycleState, Plugin, PodView, Snapshot

MOST_CPU, MOST_GPU = 128_000, 8_000
"""Of the largest node of the trace, in thousandths."""


class DotProductScore(Plugin):
    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        # Both products are divided by the square of the largest amount: once for the request, once for what is free.
        table, asked = table_of(self.handle.objects, nodes), request_of(pod.pod)
        cpu = nodes.free(CPU) * (dict(pod.requests).get(CPU, 0) / MOST_CPU**2)
        gpu = rows_of(table.left, nodes).sum(axis=1) * (asked.count * asked.milli / MOST_GPU**2)
        scores: Ints = (100 * (1 - (cpu + gpu) / 2)).astype(np.int64)
        return np.clip(scores, 0, 100)
