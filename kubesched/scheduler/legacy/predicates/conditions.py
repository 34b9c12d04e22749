"""Predicates about the conditions of a node, from before conditions became taints. They are read from the node objects
(`nodewise`)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from kubesched.kube.api import Node
from kubesched.scheduler.cluster import PodView, Snapshot
from kubesched.scheduler.framework import CycleState, Handle, NodeNames, Plugin, PreFilterAnswer, Rejections
from kubesched.scheduler.legacy.predicates.base import Cases, Predicate
from kubesched.scheduler.legacy.releases import LegacyContext
from kubesched.scheduler.legacy.shared.nodewise import NodeColumn
from kubesched.scheduler.legacy.shared.pod_requests import is_best_effort


def has_status(node: Node, kind: str, *statuses: str) -> bool:
    """Return whether a node reports a condition with one of these statuses."""
    return any(condition.type == kind and condition.status in statuses for condition in node.status.conditions)


def lacks_status(node: Node, kind: str, status: str) -> bool:
    """Return whether a node reports a condition with another status."""
    return any(condition.type == kind and condition.status != status for condition in node.status.conditions)


def is_not_ready(node: Node) -> bool:
    """Return whether a node reports Ready with another status than True."""
    return lacks_status(node, "Ready", "True")


def is_out_of_disk(node: Node) -> bool:
    """Return whether a node reports OutOfDisk as True or Unknown."""
    return lacks_status(node, "OutOfDisk", "False")


def has_no_network(node: Node) -> bool:
    """Return whether a node reports NetworkUnavailable as True or Unknown."""
    return lacks_status(node, "NetworkUnavailable", "False")


class CheckNodeCondition(Predicate):
    """The node must be ready, have disk and network, and not be cordoned."""

    def __init__(self, context: LegacyContext, handle: Handle) -> None:
        super().__init__(context, handle)
        self._questions = [
            (NodeColumn(question), self.reason(text, resolvable=False))
            for question, text in (
                (is_not_ready, "node(s) were not ready"),
                (is_out_of_disk, "node(s) were out of disk space"),
                (has_no_network, "node(s) had unavailable network"),
            )
        ]
        self._cordoned = self.reason("node(s) were unschedulable", resolvable=False)

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        cases: Cases = [(question.on(nodes), reason) for question, reason in self._questions]
        cases.append((nodes.is_unschedulable, self._cordoned))
        return self.refuse(nodes, cases)


class _Pressure(Predicate):
    """The node must not be under one kind of pressure."""

    condition: ClassVar[str]
    sentence: ClassVar[str]

    def __init__(self, context: LegacyContext, handle: Handle) -> None:
        super().__init__(context, handle)
        self._question = NodeColumn(lambda node: has_status(node, self.condition, "True"))

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        return Rejections.where(self._question.on(nodes), self.reason(self.sentence, resolvable=False))


class CheckNodeMemoryPressure(_Pressure):
    """Keep best-effort pods off nodes with memory pressure."""

    failure = "NodeUnderMemoryPressure"
    condition = "MemoryPressure"
    sentence = "node(s) had memory pressure"

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        if not pod.template.remember("legacy.best effort", lambda: is_best_effort(pod.pod)):
            return Rejections.none(nodes)
        return super().filter(pod, nodes, state)


class CheckNodeDiskPressure(_Pressure):
    """Keep pods off nodes with disk pressure."""

    failure = "NodeUnderDiskPressure"
    condition = "DiskPressure"
    sentence = "node(s) had disk pressure"


class CheckNodePIDPressure(_Pressure):
    """Keep pods off nodes with PID pressure."""

    failure = "NodeUnderPIDPressure"
    condition = "PIDPressure"
    sentence = "node(s) had pid pressure"


def is_unlisted(node: Node) -> bool:
    """Return whether a node was not even listed up to 1.6: it is cordoned or not ready."""
    return node.spec.unschedulable or is_not_ready(node) or is_out_of_disk(node) or has_no_network(node)


class ListedNodes(Plugin):
    """Leave out nodes that are cordoned or not ready before any predicate runs, as up to 1.6."""

    def __init__(self, context: LegacyContext, handle: Handle) -> None:
        super().__init__(context, handle)
        self._unlisted = NodeColumn(is_unlisted)

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        unlisted = self._unlisted.on(nodes)
        if not unlisted.any():
            return None
        return NodeNames(frozenset(nodes.name(row) for row in np.flatnonzero(~unlisted).tolist()))
