"""DeferredPodScheduling: running pods whose in-place resize was deferred, because their node has too little room.

The engine tries such a pod on its own node (engine/deciding/deferred_resizes); preemption may then make room. Filter refuses
other nodes, and a node whose `spec.podPreemptionPolicy` forbids evictions for a resize. Permit ends the attempt of a pod that
fits: there is nothing to bind, the kubelet resizes it. Other pods pass.
"""

from __future__ import annotations

from kubesched.kube.api import Node, is_resize_deferred
from kubesched.scheduler.framework import (
    NODE,
    SKIP,
    SUCCESS,
    Action,
    CycleState,
    Input,
    NodeView,
    Plugin,
    PodView,
    PreFilterAnswer,
    Reason,
    Snapshot,
    Status,
    on,
    unresolvable,
)

ELSEWHERE = Reason("pod assigned to different node", resolvable=False)
DISABLED = Reason("node had resize preemption disabled", resolvable=False)
FITS = "pod resize fits, waiting for Kubelet actuation"


class DeferredPodScheduling(Plugin):
    wakes_on = (on(NODE, Action.NODE_PREEMPTION_POLICY, "is_allowed_now"), on(NODE, Action.ADD, "is_allowed_now"))
    depends_on = (Input.POD_REQUIREMENTS, Input.POD_NODE_NAME, Input.NODE)

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        return None if is_resize_deferred(pod.pod) else SKIP

    def filter_node(self, pod: PodView, node: NodeView, state: CycleState) -> tuple[Reason, ...] | None:
        # One row at a time is enough: the engine offers such a pod its own node only.
        if pod.node_name and pod.node_name != node.name:
            return (ELSEWHERE,)
        return (DISABLED,) if _keeps_sizes(node.node) else None

    def permit(self, pod: PodView, node_name: str, state: CycleState) -> tuple[Status, float]:
        # A refusal, although the pod fits: there is nothing to bind, and the attempt must end before Bind.
        return (unresolvable(FITS), 0.0) if is_resize_deferred(pod.pod) else (SUCCESS, 0.0)

    def is_allowed_now(self, pod: PodView, old: Node | None, new: Node) -> bool:
        """Return whether the pod's own node is new or changed, and allows evictions for a resize now."""
        if not is_resize_deferred(pod.pod) or new.metadata.name != pod.node_name or _keeps_sizes(new):
            return False
        return old is None or _keeps_sizes(old)


def _keeps_sizes(node: Node) -> bool:
    """Return whether a node forbids evictions for a resize."""
    policy = node.spec.pod_preemption_policy
    return policy is not None and bool(policy.disable_resize_preemption)
