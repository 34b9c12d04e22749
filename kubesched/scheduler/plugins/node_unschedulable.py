"""NodeUnschedulable: keep pods off cordoned nodes, unless they tolerate the cordon."""

from __future__ import annotations

import numpy as np

from kubesched.kube.api import UNSCHEDULABLE_TAINT, Node, Pod, matching
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
    on,
)

CORDONED = Reason("node(s) were unschedulable", resolvable=False)


class NodeUnschedulable(Plugin):
    wakes_on = (
        on(NODE, Action.ADD | Action.NODE_TAINTS, "is_open_now", by_template=True, without_hints=Action.ADD | ADMITTED_LATER),
        on(POD, Action.POD_TOLERATIONS, "tolerates_now", by_template=True, without_hints=0),
    )
    depends_on = (Input.POD_NODE_CONSTRAINTS, Input.NODE)

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        # kube-scheduler reads `spec.unschedulable`, not the taint that the node controller adds; TaintToleration reads
        # the taint.
        cordoned = nodes.is_unschedulable
        if not np.count_nonzero(cordoned) or pod.tolerates(UNSCHEDULABLE_TAINT):
            return Rejections.none(nodes)
        return Rejections.where(cordoned, CORDONED)

    def advise(self, refused: Refused) -> list[Advice]:
        return [refused.advise("uncordon", "uncordoned,", refused.alone)] if refused.alone.any() else []

    def is_open_now(self, pod: PodView, old: Node | None, new: Node) -> bool:
        """Return whether a new node is not cordoned, or a node was uncordoned."""
        was_closed = old is None or old.spec.unschedulable
        return was_closed and not new.spec.unschedulable

    def tolerates_now(self, pod: PodView, old: Pod | None, new: Pod) -> bool:
        """Return whether the waiting pod itself changed and tolerates the cordon now."""
        compare = self.handle.gates.is_enabled("TaintTolerationComparisonOperators")
        return new.metadata.uid == pod.uid and matching.is_tolerated(UNSCHEDULABLE_TAINT, new.spec.tolerations, compare)
