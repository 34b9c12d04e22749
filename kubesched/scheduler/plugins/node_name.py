"""NodeName: a pod that names its node fits that node only."""

from __future__ import annotations

import numpy as np

from kubesched.scheduler.framework import (
    ADD,
    ADMITTED_LATER,
    NODE,
    CycleState,
    Input,
    NodeNames,
    Plugin,
    PodView,
    PreFilterAnswer,
    Reason,
    Rejections,
    Snapshot,
    on,
)

OTHER_NODE = Reason("node(s) didn't match the requested node name", resolvable=False)


class NodeName(Plugin):
    wakes_on = (on(NODE, ADD, without_hints=ADD | ADMITTED_LATER),)

    depends_on = (Input.POD_NODE_NAME, Input.NODE)

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        """Return the node that the pod names. Before 1.37 the plugin was not at PreFilter."""
        wanted = pod.pod.spec.node_name
        return NodeNames(frozenset({wanted})) if wanted else None

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        wanted = pod.pod.spec.node_name
        if not wanted:
            return Rejections.none(nodes)
        # One row is set; a name that no node has refuses all of them.
        other = np.ones(nodes.n, dtype=np.bool_)
        row = nodes.row(wanted)
        if row >= 0:
            other[row] = False
        return Rejections.where(other, OTHER_NODE)
