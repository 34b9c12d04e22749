"""GpuClusteringScore: prefer nodes with tasks of the same GPU shape (a share, one GPU, two GPUs, ...), and full nodes among
them.

    75 to 100   nodes with this shape only          25 to 50   idle nodes
    50 to 75    nodes with this and other shapes     0 to 25   nodes with other shapes

Xiao et al., "Gandiva" (2018). For a pod without GPUs all nodes score 0.
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
        # `shapes` is (row, shape): whether pods of that shape run on the node. Bands by the table above: 3 for this
        # shape only, 2 with others, 1 for idle nodes, 0 for other shapes.
        n_shapes = np.count_nonzero(shapes, axis=1)
        band = np.where(shapes[:, asked.shape], np.where(n_shapes == 1, 3, 2), np.where(n_shapes == 0, 1, 0))
        # Within a band fuller nodes get more: 8 of 8 GPUs of the largest node used gives 25, none 0.
        used = BAND * (MOST_GPU - rows_of(table.left, nodes).sum(axis=1)) // MOST_GPU
        scores: Ints = band * BAND + used
        return np.clip(scores, 0, 100)
