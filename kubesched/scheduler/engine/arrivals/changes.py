"""What changed between two versions of a pod or a node, as the cluster events that plugins wait for.

    a node got a label and more memory     NODE_ALLOCATABLE, NODE_LABELS
    a node was cordoned                    nothing: this helps no waiting pod
    a pod lost its last scheduling gate    POD_GATES_GONE
    a pod's annotation changed             UPDATE: it has no name of its own

The order is kube-scheduler's. Two versions of a pod with the same template differ in gates and claims at most, so nothing else
is compared then.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.kube.api import Node, Quantity, requests
from kubesched.kube.values import quantity
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.framework import ASSIGNED_POD, NODE, TARGET_POD, Action, ClusterEvent


def pod_changes(old: PodView, new: PodView, *, pending_as: str = TARGET_POD, tells_scale_up: bool = True) -> list[ClusterEvent]:
    """Return what changed about a pod; a general update if that has no name of its own. `pending_as` is the resource name of a
    pod without a node."""
    before, after = old.pod, new.pod
    actions: list[Action] = []
    if old.template is not new.template:
        if before.metadata.labels != after.metadata.labels:
            actions.append(Action.POD_LABELS)
        if _asks_for_less(old, new):
            actions.append(Action.POD_SCALE_DOWN)
        if tells_scale_up and _asks_for_less(new, old):
            actions.append(Action.POD_SCALE_UP)
    if before.spec.scheduling_gates and not after.spec.scheduling_gates:
        actions.append(Action.POD_GATES_GONE)
    # Tolerations can only be added to a pod, so comparing their number is enough.
    if len(before.spec.tolerations) != len(after.spec.tolerations):
        actions.append(Action.POD_TOLERATIONS)
    was, now = before.status, after.status
    if (was.resource_claim_statuses, was.extended_resource_claim_status) != (
        now.resource_claim_statuses,
        now.extended_resource_claim_status,
    ):
        actions.append(Action.POD_CLAIMS)
    resource = ASSIGNED_POD if new.node_name else pending_as
    return [ClusterEvent(resource, int(action)) for action in actions or (Action.UPDATE,)]


def node_changes(old: Node, new: Node, *, with_features: bool = True) -> list[ClusterEvent]:
    """Return what changed about a node that a decision may read. Cordoning is no event, because it helps no pod."""
    actions: list[Action] = []
    # Kept quirk: uncordoning is reported as a change of taints. It comes first, so a node that is uncordoned and loses a taint
    # is reported twice.
    if old.spec.unschedulable and not new.spec.unschedulable:
        actions.append(Action.NODE_TAINTS)
    if not _are_equal(old.status.allocatable, new.status.allocatable):
        actions.append(Action.NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        actions.append(Action.NODE_LABELS)
    if old.spec.taints != new.spec.taints:
        actions.append(Action.NODE_TAINTS)
    if _condition_statuses(old) != _condition_statuses(new):
        actions.append(Action.NODE_CONDITIONS)
    if old.metadata.annotations != new.metadata.annotations:
        actions.append(Action.NODE_ANNOTATIONS)
    if old.spec.pod_preemption_policy != new.spec.pod_preemption_policy:
        actions.append(Action.NODE_PREEMPTION_POLICY)
    if with_features and old.status.declared_features != new.status.declared_features:
        actions.append(Action.NODE_FEATURES)
    return [ClusterEvent(NODE, int(action)) for action in actions]


def _asks_for_less(old: PodView, new: PodView) -> bool:
    """Return whether some request is gone or smaller, compared in thousandths."""
    after = _requests(new)
    return any(
        name not in after or quantity.milli_value(amount) > quantity.milli_value(after[name])
        for name, amount in _requests(old).items()
    )


def _requests(pod: PodView) -> dict[str, int]:
    gates = pod.template.interners.gates
    return requests.pod_requests(
        pod.pod,
        use_status=gates.in_place_resize,
        in_place_pod_level=gates.in_place_pod_level_resize,
        whole_pod=gates.whole_pod_resize,
    )


def _are_equal(old: Mapping[str, Quantity], new: Mapping[str, Quantity]) -> bool:
    """Return whether two lists of quantities are equal: 1 equals 1000m."""
    if old == new:
        return True
    return old.keys() == new.keys() and all(
        amount == new[name] or quantity.parse(amount) == quantity.parse(new[name]) for name, amount in old.items()
    )


def _condition_statuses(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}
