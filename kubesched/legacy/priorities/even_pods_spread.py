"""EvenPodsSpreadPriority: few matching pods in the domains that a node belongs to, for constraints that are wishes.

The first release of topology spread: the matching pods of all constraints are added up, however wide their topologies,
and the namespaces are compared, which 1.17 forgot here and did elsewhere.
"""

from __future__ import annotations

import numpy as np

from kubesched.api import matching
from kubesched.cluster import ABSENT, Bools, Ints, PodView, Snapshot
from kubesched.framework import SKIP, State, Status, failed
from kubesched.legacy.priorities.base import Priority
from kubesched.plugins._spread import Constraint, HardCounts


class EvenPodsSpreadPriority(Priority):
    """Prefer nodes whose domains hold few matching pods; a node that lacks a label of any constraint gets nothing."""

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: State) -> Status | None:
        wanted = [c for c in pod.pod.spec.topology_spread_constraints if c.when_unsatisfiable == "ScheduleAnyway"]
        if not wanted:
            return SKIP
        try:
            constraints = tuple(Constraint(
                max_skew=given.max_skew, key=given.topology_key, min_domains=1, honors_affinity=True,
                selector=matching.compile_selector(given.label_selector), honors_taints=False, matches_self=False,
            ) for given in wanted)
        except matching.SelectorError as error:
            return failed(str(error))
        # Constraints of both kinds count the same pods on the same nodes; only what is made of the counts differs.
        state.write(self.name, HardCounts(constraints, pod, nodes, False))
        return None

    def score(self, pod: PodView, nodes: Snapshot, state: State) -> Ints:
        counts: HardCounts = state.read(self.name)
        scores = np.zeros(nodes.n, dtype=np.int64)
        for i, constraint in enumerate(counts.constraints):
            scores += counts.matching(i, nodes)[nodes.codes(constraint.key)]
        return scores

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: State) -> Ints:
        counts: HardCounts = state.read(self.name)
        eligible = feasible.copy()
        for constraint in counts.constraints:
            eligible &= nodes.codes(constraint.key) != ABSENT
        if not eligible.any():
            return np.zeros(nodes.n, dtype=np.int64)
        total, least = int(scores[eligible].sum()), int(scores[eligible].min())
        if total == least:
            return np.full(nodes.n, self.most, dtype=np.int64)
        shares = (float(self.most) * ((total - scores) / float(total - least))).astype(np.int64)
        return np.where(eligible, shares, 0)
