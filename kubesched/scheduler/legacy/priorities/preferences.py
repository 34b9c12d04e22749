"""Priorities by preferences: node affinity, taints, inter-pod affinity, avoided pods, labels."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import numpy as np

from kubesched.kube.api import Node, matching
from kubesched.scheduler.cluster import ABSENT, Bools, Ints, PodView, Snapshot, match_term
from kubesched.scheduler.framework import CycleState, Handle, Input, Status
from kubesched.scheduler.legacy.priorities.base import Priority, scaled
from kubesched.scheduler.legacy.releases import LegacyContext
from kubesched.scheduler.legacy.shared.affinity import counting
from kubesched.scheduler.legacy.shared.nodewise import NodeColumn
from kubesched.scheduler.plugins.taint_toleration import count_soft_taints

AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods"
AVOIDABLE = ("ReplicationController", "ReplicaSet")


class NodeAffinityPriority(Priority):
    """Prefer nodes that match the pod's preferred terms. matchFields are ignored."""

    depends_on = (Input.POD_TEMPLATE, Input.NODE)

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        scores = np.zeros(nodes.n, dtype=np.int64)
        wishes: tuple[matching.PreferredNodeTerm, ...] = pod.template.remember("legacy.wishes", lambda: _wishes(pod))
        for wish in wishes:
            scores += wish.weight * match_term(wish.term, nodes)
        return scores

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return scaled(scores, feasible, self.most)


def _wishes(pod: PodView) -> tuple[matching.PreferredNodeTerm, ...]:
    affinity = pod.pod.spec.affinity
    wanted = affinity.node_affinity if affinity is not None else None
    terms = wanted.preferred or () if wanted is not None else ()
    without_fields = [
        msgspec.structs.replace(term, preference=msgspec.structs.replace(term.preference, match_fields=())) for term in terms
    ]
    return matching.compile_preferred_terms(without_fields)


class TaintTolerationPriority(Priority):
    """Prefer nodes with few PreferNoSchedule taints that the pod does not tolerate."""

    depends_on = (Input.POD_TEMPLATE, Input.NODE)

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return count_soft_taints(pod, nodes, compare=False)

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return scaled(scores, feasible, self.most, reverse=True)


class InterPodAffinityPriority(Priority):
    """The preferred inter-pod affinity of the pod and of placed pods; today's plugin counts.

    Unlike today, the lowest sum is at most 0 and the highest at least 0: sums 2 and 4 give 5 and 10, not 0 and 10.
    """

    def __init__(self, context: LegacyContext, handle: Handle) -> None:
        super().__init__(context, handle)
        self._counting = counting(context, handle)

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        return self._counting.pre_score(pod, nodes, feasible, state)

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return self._counting.score(pod, nodes, state)

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        counted = scores[feasible]
        least, largest = int(counted.min(initial=0)), int(counted.max(initial=0))
        if largest == least:
            return np.zeros(len(scores), dtype=np.int64)
        placed: Ints = (float(self.most) * ((scores - least) / float(largest - least))).astype(np.int64)
        return placed


def _joined(name: str) -> str:
    return name.replace("_", "")


class _Avoided(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class _Signature(msgspec.Struct, frozen=True, rename=_joined):
    pod_controller: _Avoided | None = None


class _Entry(msgspec.Struct, frozen=True, rename=_joined):
    pod_signature: _Signature = _Signature()
    eviction_time: datetime | None = None
    reason: str = ""
    message: str = ""


class _AvoidPods(msgspec.Struct, frozen=True, rename=_joined):
    prefer_avoid_pods: tuple[_Entry, ...] = ()


def _folded(value: Any) -> Any:
    """Return a value with keys in lower case and without nulls, because Go reads keys in any case."""
    if isinstance(value, dict):
        return {key.lower(): _folded(item) for key, item in value.items() if item is not None}
    return [_folded(item) for item in value] if isinstance(value, list) else value


def avoided(node: Node) -> frozenset[tuple[str, str]]:
    """Return the controllers, as (kind, uid), whose pods a node's annotation asks to avoid; none if it cannot be parsed."""
    text = node.metadata.annotations.get(AVOID_PODS)
    if not text:
        return frozenset()
    try:
        entries = msgspec.convert(_folded(msgspec.json.decode(text)), _AvoidPods).prefer_avoid_pods
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return frozenset()
    controllers = [entry.pod_signature.pod_controller for entry in entries]
    return frozenset((controller.kind, controller.uid) for controller in controllers if controller is not None)


class NodePreferAvoidPodsPriority(Priority):
    """Score 0 on a node whose annotation asks to avoid the pods of the pod's controller, the highest score elsewhere."""

    def __init__(self, context: LegacyContext, handle: Handle) -> None:
        super().__init__(context, handle)
        self._choosy = NodeColumn(lambda node: AVOID_PODS in node.metadata.annotations)

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        scores = np.full(nodes.n, self.most, dtype=np.int64)
        owner = pod.pod.metadata.controller()
        if owner is None or owner.kind not in AVOIDABLE:
            return scores
        for row in np.flatnonzero(self._choosy.on(nodes)).tolist():
            if (owner.kind, owner.uid) in avoided(nodes.node(row)):
                scores[row] = 0
        return scores


class NodeLabelPriority(Priority):
    """The highest score on nodes that have (or do not have) a label; several labels are averaged."""

    name = "NodeLabel"
    depends_on = (Input.POD_TEMPLATE, Input.NODE)

    def __init__(self, context: LegacyContext, handle: Handle, present: tuple[str, ...], absent: tuple[str, ...]) -> None:
        super().__init__(context, handle)
        self.present = present
        self.absent = absent

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        met = np.zeros(nodes.n, dtype=np.int64)
        for key in self.present:
            met += nodes.codes(key) != ABSENT
        for key in self.absent:
            met += nodes.codes(key) == ABSENT
        scores: Ints = met * self.most // (len(self.present) + len(self.absent))
        return scores


class EqualPriority(Priority):
    """One for every node."""

    depends_on = (Input.POD_TEMPLATE, Input.NODE)

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return np.ones(nodes.n, dtype=np.int64)
