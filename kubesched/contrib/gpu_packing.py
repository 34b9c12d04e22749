"""GpuPackingScore: prefer GPUs in use (score 50 to 100), then idle GPUs of nodes in use (33 to 50), then empty nodes (0 to 33).

Weng et al., "MLaaS in the wild" (2022). For a pod without GPUs all nodes score 0.
"""

from __future__ import annotations

import numpy as np

from kubesched.contrib.gpu_table import WHOLE, request_of, rows_of, table_of
from kubesched.scheduler.cluster import Ints
from kubesched.scheduler.framework import CycleState, Plugin, PodView, Snapshot


class GpuPackingScore(Plugin):
    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        """Return the score of each node by the GPUs that the pod would use there."""
        table, asked = table_of(self.handle.objects, nodes), request_of(pod.pod)
        if not asked.count:
            return np.zeros(nodes.n, dtype=np.int64)
        left, count = rows_of(table.left, nodes), rows_of(table.count, nodes)
        is_idle = left == WHOLE
        n_idle = np.count_nonzero(is_idle, axis=1)
        # The pod would use the fullest GPUs that have room.
        # GPUs without room sort behind all others (WHOLE + 1), so the first `count` columns are those that the pod
        # would use.
        usable = np.sort(np.where(left >= asked.milli, left, WHOLE + 1), axis=1)[:, : asked.count]
        n_idle_used = np.count_nonzero(usable == WHOLE, axis=1)
        # In percent of a GPU, summed over the GPUs used. Nothing left gives 100; two GPUs that are half free have 50 + 50
        # percent left and give 100 - 100 // 10 = 90.
        share_left = (usable * 100 // WHOLE).sum(axis=1)
        in_use = np.maximum(100 - share_left // 10, 50)
        with_idle = np.maximum(50 - n_idle_used, 33)
        # Of empty nodes with up to 16 GPUs those with the fewest come first: large nodes stay free for pods that need many.
        empty = np.maximum(33 - n_idle, n_idle)
        scores: Ints = np.where(n_idle == count, empty, np.where(n_idle_used > 0, with_idle, in_use))
        return np.clip(scores, 0, 100)
