"""BestFitScore: prefer the node with the least cpu and GPU left after the pod, each relative to the largest node of the
trace."""

from __future__ import annotations

import numpy as np

from kubesched.contrib.gpu_dot_product import MOST_CPU, MOST_GPU
from kubesched.contrib.gpu_table import request_of, rows_of, table_of
from kubesched.scheduler.cluster import CPU, Ints
from kubesched.scheduler.framework import CycleState, Plugin, PodView, Snapshot


class BestFitScore(Plugin):
    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        # Both parts have the weight 1/2. `gpu_left` is what is left on all GPUs of the node together, in thousandths.
        table, asked = table_of(self.handle.objects, nodes), request_of(pod.pod)
        cpu_left = nodes.free(CPU) - dict(pod.requests).get(CPU, 0)
        gpu_left = rows_of(table.left, nodes).sum(axis=1) - asked.count * asked.milli
        scores: Ints = (100 * (1 - cpu_left / MOST_CPU / 2 - gpu_left / MOST_GPU / 2)).astype(np.int64)
        return np.clip(scores, 0, 100)
