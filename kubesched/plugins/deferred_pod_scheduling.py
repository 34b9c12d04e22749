"""DeferredPodScheduling: pods that are to grow in place and have no room for it yet stay where they are.

A running pod whose resize the kubelet has deferred is tried again on its own node (engine/deferred_resizes). This plugin
refuses a node whose spec.podPreemptionPolicy wants no evictions for that, and lets no such pod go on to be bound: if it fits,
the kubelet carries the resize out. All other pods pass.
"""

from __future__ import annotations

from kubesched.api.pod import is_resize_deferred
from kubesched.framework import (
    SKIP,
    SUCCESS,
    CycleState,
    Input,
    NodeView,
    Plugin,
    PodView,
    Reason,
    Snapshot,
    Status,
    unresolvable,
)
from kubesched.framework.plugin import PreFilterAnswer

ELSEWHERE = Reason("pod assigned to different node", resolvable=False)
DISABLED = Reason("node had resize preemption disabled", resolvable=False)
FITS = "pod resize fits, waiting for Kubelet actuation"


class DeferredPodScheduling(Plugin):
    wakes_on = ()
    depends_on = (Input.POD_REQUIREMENTS, Input.POD_NODE_NAME, Input.NODE)

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        return None if is_resize_deferred(pod.pod) else SKIP

    def filter_node(self, pod: PodView, node: NodeView, state: CycleState) -> tuple[Reason, ...] | None:
        if pod.node_name and pod.node_name != node.name:
            return (ELSEWHERE,)
        policy = node.node.spec.pod_preemption_policy
        return (DISABLED,) if policy is not None and policy.disable_resize_preemption else None

    def permit(self, pod: PodView, node_name: str, state: CycleState) -> tuple[Status, float]:
        return (unresolvable(FITS), 0.0) if is_resize_deferred(pod.pod) else (SUCCESS, 0.0)
