"""Predicates about the node itself: its name, labels, ports, taints, resources, and whether it is cordoned.

Where an old predicate refuses the same nodes as a plugin of today, it calls that plugin and has only a reason of its own.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from kubesched.kube.api import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    HostPort,
    find_untolerated,
)
from kubesched.scheduler.cluster import ABSENT, PodView, Snapshot, match_required
from kubesched.scheduler.framework import CycleState, Handle, Input, Plugin, Reason, Rejections
from kubesched.scheduler.legacy.predicates.base import Cases, Predicate
from kubesched.scheduler.legacy.releases import LegacyContext
from kubesched.scheduler.legacy.shared.pod_requests import asked, host_ports
from kubesched.scheduler.plugins.node_name import NodeName
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable

GPU = "alpha.kubernetes.io/nvidia-gpu"
OPAQUE_PREFIX = "pod.alpha.kubernetes.io/opaque-int-resource-"
_NAMES_OF_1_3 = {"pods": "PodCount", CPU: "CPU", MEMORY: "Memory", GPU: "NvidiaGpu"}


class _AsToday(Predicate):
    """A predicate that refuses the nodes that a plugin of today refuses, for a reason of its own."""

    plugin: ClassVar[type[Plugin]]
    sentence: ClassVar[str]

    def __init__(self, context: LegacyContext, handle: Handle) -> None:
        super().__init__(context, handle)
        self._plugin = self.plugin(None, handle)

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        refused = self._plugin.filter(pod, nodes, state)
        if refused.bits is None:
            return Rejections.none(nodes)
        return Rejections.where(refused.has(0), self.reason(self.sentence, resolvable=False))


class HostName(_AsToday):
    """A pod that names its node fits that node only."""

    plugin, sentence = NodeName, "node(s) didn't match the requested hostname"
    depends_on = (Input.POD_NODE_NAME, Input.NODE)


class CheckNodeUnschedulable(_AsToday):
    """Keep pods off cordoned nodes, unless they tolerate the cordon."""

    plugin, sentence = NodeUnschedulable, "node(s) were unschedulable"
    depends_on = (Input.POD_TEMPLATE, Input.NODE)


class MatchNodeSelector(Predicate):
    """The pod's node selector and required node affinity must match the node."""

    depends_on = (Input.POD_TEMPLATE, Input.NODE)

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        if not pod.pod.spec.node_selector and pod.pod.spec.affinity is None:
            return Rejections.none(nodes)
        refused = ~match_required(pod.template.required_node_affinity, nodes)
        return Rejections.where(refused, self.reason("node(s) didn't match node selector", resolvable=False))


class PodFitsHostPorts(Predicate):
    """The host ports that the pod's containers want must be free; up to 1.6 a port was its number alone."""

    depends_on = (Input.POD_TEMPLATE, Input.NODE, Input.PODS_ON_NODE)

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        wanted = host_ports(pod)
        if not wanted:
            return Rejections.none(nodes)
        if self.release.minor < 7:
            numbers = {port.port for port in wanted}
            wanted = tuple(
                HostPort("0.0.0.0", protocol, number) for number in sorted(numbers) for protocol in ("TCP", "UDP", "SCTP")
            )
        reason = self.reason("node(s) didn't have free ports for the requested pod ports", failure="PodFitsHostPorts")
        return Rejections.where(nodes.port_conflicts(wanted), reason)


class PodToleratesNodeTaints(Predicate):
    """Every NoSchedule and NoExecute taint must be tolerated."""

    depends_on = (Input.POD_TEMPLATE, Input.NODE)

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        refused = np.array([find_untolerated(taints, pod.tolerations) is not None for taints in nodes.taint_sets])
        if not refused.any():
            return Rejections.none(nodes)
        reason = self.reason("node(s) had taints that the pod didn't tolerate", resolvable=False)
        return Rejections.where(refused[nodes.taint_set], reason)


class CheckNodeLabelPresence(Predicate):
    """The node must have some labels and must not have others, whatever their values."""

    depends_on = (Input.POD_TEMPLATE, Input.NODE)

    def __init__(self, context: LegacyContext, handle: Handle, present: tuple[str, ...], absent: tuple[str, ...]) -> None:
        super().__init__(context, handle)
        self.present = present
        self.absent = absent

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        refused = np.zeros(nodes.n, dtype=np.bool_)
        for key in self.present:
            refused |= nodes.codes(key) == ABSENT
        for key in self.absent:
            refused |= nodes.codes(key) != ABSENT
        reason = self.reason("node(s) didn't have the requested labels", resolvable=False, failure="CheckNodeLabelPresence")
        return Rejections.where(refused, reason)


class PodFitsResources(Predicate):
    """The node must have room for one more pod and for everything that it asks for.

    Unlike today, a pod with any request is compared in cpu, memory and ephemeral storage, also where it requests none: with
    requests of 5 cpu on a node of 4, a pod that requests only memory does not fit.
    """

    depends_on = (Input.POD_TEMPLATE, Input.NODE, Input.PODS_ON_NODE)

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        cases: Cases = [(nodes.pod_count >= nodes.allowed_pods, self._short_of("pods"))]
        fitting = asked(pod, overhead=self.context.gates.pod_overhead).fitting
        native = [name for name in (CPU, MEMORY, EPHEMERAL_STORAGE) if self._counts(name)]
        others = [name for name in fitting if name not in native and self._counts(name)]
        if others or any(fitting.get(name, 0) for name in native):
            for name in native + [name for name in others if name not in self.context.ignored_resources]:
                resource = nodes.resource(name)
                short = nodes.allocatable(resource) < nodes.requested(resource) + fitting.get(name, 0)
                cases.append((short, self._short_of(name)))
        cases = [case for case in cases if case[0].any()]
        return self.refuse(nodes, cases)

    def _counts(self, name: str) -> bool:
        """Return whether the release knew a resource."""
        if self.release.minor >= 8:
            return True
        return name in (CPU, MEMORY, GPU) or (self.release.minor >= 5 and name.startswith(OPAQUE_PREFIX))

    def _short_of(self, name: str) -> Reason:
        shown = _NAMES_OF_1_3.get(name, name) if self.release.minor == 3 else name
        return Reason(f"Insufficient {shown}")
