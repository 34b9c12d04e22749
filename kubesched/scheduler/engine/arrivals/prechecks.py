"""Prechecks: which waiting pods an event may wake without queueing hints (SchedulerQueueingHints=false).

Without hints every new node would wake every pod. So kube-scheduler checks a few fixed things first, and so do we:

    a node came or changed     the pod fits its free resources, labels, taints and host ports
    a placed pod came          the pod has a required affinity term that matches it, or was refused by PodTopologySpread
    a storage class came       its volumes wait for the first consumer

After that the queue still looks whether a plugin that refused the pod waits for such an event. The checks are the same whatever
plugins the profile has, and leave preemption out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.kube.api import HARD_EFFECTS, Namespace, Pod, StorageClass
from kubesched.kube.values import wrapped
from kubesched.scheduler.cluster import Objects, PodTemplate, PodView, Store
from kubesched.scheduler.framework import ADD, ClusterEvent, NodeView
from kubesched.scheduler.queue import Queue

Precheck = Callable[[PodView], bool]
"""waiting pod -> whether the event may wake it"""

_SPREAD = "PodTopologySpread"
_LATE_BINDING = "WaitForFirstConsumer"


def admitted_to(node_name: str, store: Store) -> Precheck:
    """Return a check whether a pod fits a node as it is now. It is valid until the store changes."""
    answers: dict[PodTemplate, bool] = {}

    def check(pod: PodView) -> bool:
        # A pod with a deferred resize can use room on its own node only.
        if pod.node_name not in ("", node_name):
            return False
        # One answer for all pods of a template: with 10,000 identical parked pods a node update costs one check.
        answer = answers.get(pod.template)
        if answer is None:
            nodes = store.snapshot()
            answer = answers[pod.template] = _admits(NodeView(nodes, nodes.row(node_name)), pod)
        return answer

    return check


def _admits(node: NodeView, pod: PodView) -> bool:
    """Return whether a pod fits a node: resources, labels, taints, host ports."""
    if node.free_pods <= 0:
        return False
    for resource, amount in pod.requests:  # also those that NodeResourcesFit is told to ignore
        offered, used = node.usage(resource)
        if amount > 0 and amount > wrapped(offered - used):
            return False
    ports = pod.template.ports
    return (
        pod.template.required_node_affinity.matches(node.name, node.labels)
        and not (ports and node.nodes.port_conflicts(ports)[node.row])
        and all(taint.effect not in HARD_EFFECTS or pod.tolerates(taint) for taint in node.taints)
    )


def counts_pod(placed: Pod, queue: Queue, objects: Objects) -> Precheck:
    """Return a check whether a waiting pod may need a placed pod nearby, or is spread over domains with it."""
    namespace = placed.metadata.namespace
    known = objects.get(Namespace, namespace)
    namespace_labels = known.metadata.labels if known is not None else {}

    def check(pod: PodView) -> bool:
        entry = queue.find(pod.key)
        if entry is not None and _SPREAD in entry.unschedulable_plugins and pod.namespace == namespace:
            return True
        return any(term.matches(namespace, placed.metadata.labels, namespace_labels) for term in pod.template.affinity.required)

    return check


def may_help_volumes(event: ClusterEvent, new: Any) -> bool:
    """Return whether an object that is no pod or node may wake pods. A new storage class may if its volumes wait for a pod."""
    is_new_class = isinstance(new, StorageClass) and event.action == ADD
    return not is_new_class or new.volume_binding_mode == _LATE_BINDING
