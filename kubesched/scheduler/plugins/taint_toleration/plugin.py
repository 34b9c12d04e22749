"""TaintToleration: keep pods off nodes whose hard taints they do not tolerate, and prefer nodes with few soft ones.

Nodes with equal lists of taints are judged once: the answer for each distinct list is spread over the rows by index.
"""

from __future__ import annotations

import numpy as np

from kubesched.kube.api import PREFER_NO_SCHEDULE, Node, Pod, find_untolerated, is_tolerated
from kubesched.scheduler.cluster import Bools, Ints
from kubesched.scheduler.framework import (
    ADMITTED_LATER,
    NODE,
    POD,
    Action,
    Advice,
    CycleState,
    Input,
    Plugin,
    PodView,
    Reason,
    Refused,
    Rejections,
    Snapshot,
    Status,
    on,
)
from kubesched.scheduler.plugins.shared.normalizing import scale_to_best
from kubesched.scheduler.plugins.taint_toleration.advice import advise_toleration

UNTOLERATED = Reason("node(s) had untolerated taint(s)", resolvable=False)


class TaintToleration(Plugin):
    wakes_on = (
        on(
            NODE,
            Action.ADD | Action.NODE_TAINTS,
            "is_tolerated_now",
            by_template=True,
            without_hints=Action.ADD | ADMITTED_LATER,
        ),
        on(POD, Action.POD_TOLERATIONS, "is_itself", by_template=True, without_hints=0),
    )
    needs = (("score", "pre_score", 'failed to read "PreScoreTaintToleration" from cycleState: not found'),)
    depends_on = (Input.POD_NODE_CONSTRAINTS, Input.NODE)

    def _compares(self) -> bool:
        return self.handle.gates.is_enabled("TaintTolerationComparisonOperators")

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        if len(nodes.taint_sets) == 1:
            return Rejections.none(nodes)
        compare = self._compares()
        refused = np.array(
            [find_untolerated(taints, pod.tolerations, comparison_operators=compare) is not None for taints in nodes.taint_sets]
        )
        if not refused.any():
            return Rejections.none(nodes)
        return Rejections.where(refused[nodes.taint_set], UNTOLERATED)

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        return None

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        if len(nodes.taint_sets) == 1:
            return nodes.uniform(0)
        return count_soft_taints(pod, nodes, self._compares())

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return scale_to_best(scores, feasible, nodes, reverse=True)

    def advise(self, refused: Refused) -> list[Advice]:
        return advise_toleration(refused)

    def is_tolerated_now(self, pod: PodView, old: Node | None, new: Node) -> bool:
        """Return whether a node's hard taints no longer stand in the way."""
        compare = self._compares()

        def stands_in_the_way(node: Node) -> bool:
            return find_untolerated(node.spec.taints, pod.tolerations, comparison_operators=compare) is not None

        return (old is None or stands_in_the_way(old)) and not stands_in_the_way(new)

    def is_itself(self, pod: PodView, old: Pod | None, new: Pod) -> bool:
        """Return whether the pod whose tolerations changed is the one that waits."""
        return new.metadata.uid == pod.uid


def count_soft_taints(pod: PodView, nodes: Snapshot, compare: bool) -> Ints:
    """Return how many soft taints each node has that a pod does not tolerate."""
    soft = tuple(t for t in pod.tolerations if t.effect in ("", PREFER_NO_SCHEDULE))
    disliked = np.array(
        [
            sum(1 for taint in taints if taint.effect == PREFER_NO_SCHEDULE and not is_tolerated(taint, soft, compare))
            for taints in nodes.taint_sets
        ],
        dtype=np.int64,
    )
    counts: Ints = disliked[nodes.taint_set]
    return counts
