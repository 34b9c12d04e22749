"""GpuClusteringScore: nodes that already hold tasks of the same GPU shape, the fuller the better.

Four bands: nodes with this shape alone, nodes with this shape among others, idle nodes, nodes with other shapes.
Xiao et al., "Gandiva" (2018). A pod without GPUs finds all nodes equal.
"""

from __future__ import annotations

import numpy as np

from kubesched.contrib.gpu_dot_product import MOST_GPU
from kubesched.contrib.gpu_table import request_of, rows_of, table_of
from kubesched.scheduler.cluster import Ints
from kubesched.scheduler.framework import CycleState, Plugin, PodView, Snapshot

BAND = 25


class GpuClusteringScore(Plugin):
    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        table, asked = table_of(self.handle.objects, nodes), request_of(pod.pod)
        shapes = rows_of(table.shapes, nodes) > 0
        if not asked.count or asked.shape >= shapes.shape[1]:
            return np.zeros(nodes.n, dtype=np.int64)
        n_shapes = np.count_nonzero(shapes, axis=1)
        band = np.where(shapes[:, asked.shape], np.where(n_shapes == 1, 3, 2), np.where(n_shapes == 0, 1, 0))
        used = BAND * (MOST_GPU - rows_of(table.left, nodes).sum(axis=1)) // MOST_GPU
        scores: Ints = band * BAND + used
        return np.clip(scores, 0, 100)
