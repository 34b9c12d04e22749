"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet fits only nodes that declare it."""

from __future__ import annotations

import numpy as np

from kubesched.kube.api import Node, Pod
from kubesched.scheduler.framework import (
    NODE,
    POD,
    SKIP,
    Action,
    CycleState,
    Input,
    Plugin,
    PodView,
    PreFilterAnswer,
    Reason,
    Rejections,
    Snapshot,
    on,
)

LACKING = Reason("node(s) didn't match Pod's required features", resolvable=False)

RESTART_ALL = "RestartAllContainersOnContainerExits"
USER_NAMESPACES = "UserNamespacesHostNetworkSupport"


class NodeDeclaredFeatures(Plugin):
    wakes_on = (
        on(NODE, Action.ADD | Action.NODE_FEATURES, "declares_other_features", by_template=True),
        on(POD, Action.UPDATE, "needs_other_features", by_template=True),
    )
    needs = (("filter", "pre_filter", 'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'),)
    depends_on = (Input.POD_NODE_CONSTRAINTS, Input.NODE)

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        return None if required_features(pod.pod) else SKIP

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        required = required_features(pod.pod)
        # By list of features: nodes of one kubelet version mostly declare the same.
        lacking = np.array([not required <= declared for declared in nodes.feature_sets])
        return Rejections.where(lacking[nodes.feature_set], LACKING)

    def declares_other_features(self, pod: PodView, old: Node | None, new: Node) -> bool:
        """Return whether the node is new or declares other features."""
        return old is None or old.status.declared_features != new.status.declared_features

    def needs_other_features(self, pod: PodView, old: Pod | None, new: Pod) -> bool:
        """Return whether the waiting pod itself changed and needs other features now."""
        return new.metadata.uid == pod.uid and (old is None or required_features(old) != required_features(new))


def required_features(pod: Pod) -> frozenset[str]:
    """Return the kubelet features that a pod's spec needs."""
    needed = set()
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    if any(rule.action == "RestartAllContainers" for c in containers for rule in c.restart_policy_rules):
        needed.add(RESTART_ALL)
    if pod.spec.host_network and pod.spec.host_users is False:
        needed.add(USER_NAMESPACES)
    return frozenset(needed)
