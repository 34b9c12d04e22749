"""EvenPodsSpreadPriority: few matching pods in the domains that a node belongs to, for constraints that are wishes.

The first release of topology spread: the matching pods of all constraints are added up, however wide their topologies.
1.17 counted those of all namespaces here, which it did not elsewhere; that is put right, unless asked for.
"""

from __future__ import annotations

import numpy as np

from kubesched.kube.api import matching
from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot
from kubesched.scheduler.framework import SKIP, CycleState, Input, Status, failed
from kubesched.scheduler.legacy.priorities.base import Priority
from kubesched.scheduler.legacy.shared.spread_counts import SpreadCounts, constraints_of, with_all_keys


class EvenPodsSpreadPriority(Priority):
    """Prefer nodes whose domains hold few matching pods; a node that lacks a label of any constraint gets nothing."""

    depends_on = (Input.POD_TEMPLATE, Input.NODE, Input.COUNTED_PODS)

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        try:
            constraints = constraints_of(pod, "ScheduleAnyway")
        except matching.SelectorError as error:
            return failed(str(error))
        if not constraints:
            return SKIP
        namespace = None if self.context.to_the_letter else pod.namespace
        SpreadCounts.of(constraints, pod, nodes, namespace, state, self.name)
        return None

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        counts: SpreadCounts = state.read(self.name)
        scores = np.zeros(nodes.n, dtype=np.int64)
        for i in range(len(counts.constraints)):
            scores += counts.on(i, nodes)
        return scores

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        counts: SpreadCounts = state.read(self.name)
        eligible = feasible & with_all_keys(counts.constraints, nodes)
        if not eligible.any():
            return np.zeros(nodes.n, dtype=np.int64)
        total, least = int(scores[eligible].sum()), int(scores[eligible].min())
        if total == least:
            return np.full(nodes.n, self.most, dtype=np.int64)
        shares = (float(self.most) * ((total - scores) / float(total - least))).astype(np.int64)
        return np.where(eligible, shares, 0)
