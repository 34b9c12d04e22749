"""A plan: where the pods of manifests would go, as a value.

Made by `planning.py`, printed by the command `plan`, asserted about by the pytest fixture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubesched.errors import SchedulerError
from kubesched.kube.api import Pod


@dataclass(frozen=True, slots=True, repr=False)
class PlannedPod:
    """A pod, and the node that it would go to; without one, why."""

    pod: Pod
    node: str = ""
    why: str = ""

    def __repr__(self) -> str:
        return f"<{self.key} on {self.node}>" if self.node else f"<{self.key} waits: {self.why}>"

    @property
    def key(self) -> str:
        """Return namespace/name."""
        return self.pod.key


@dataclass(slots=True)
class PlannedWorkload:
    """What a manifest stands for, and what would become of its pods."""

    kind: str
    namespace: str
    name: str
    note: str = ""
    scheduler: str = ""
    """The scheduler that its pods are for, if it is not ours: then they are not planned."""
    pods: list[PlannedPod] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Return kind/name."""
        return f"{self.kind}/{self.name}"

    @property
    def placed(self) -> list[PlannedPod]:
        """Return the pods that would have a node."""
        return [pod for pod in self.pods if pod.node]

    @property
    def pending(self) -> list[PlannedPod]:
        """Return the pods that would wait."""
        return [pod for pod in self.pods if not pod.node] if not self.scheduler else []


@dataclass(frozen=True, slots=True, repr=False)
class PlannedVictim:
    """A pod of the cluster, or of the plan, that would have to go."""

    pod: Pod
    by: str
    """The pod that it would go for, namespace/name."""
    by_workload: str

    def __repr__(self) -> str:
        return f"<{self.key} on {self.node} goes for {self.by}>"

    @property
    def key(self) -> str:
        """Return namespace/name."""
        return self.pod.key

    @property
    def node(self) -> str:
        return self.pod.spec.node_name


@dataclass(frozen=True, slots=True)
class AddedNode:
    """A node that a group would grow by, and how many pods it would have, besides those of DaemonSets."""

    name: str
    group: str
    price: float
    zone: str
    n_pods: int


@dataclass(frozen=True, slots=True)
class SparedNode:
    """A node that could go: its pods fit elsewhere, or on a cheaper node that comes instead."""

    name: str
    group: str
    saves: float
    utilisation: float
    """The larger share of its cpu and memory that is asked for."""
    moves: tuple[str, ...]
    """The pods that would have to move, namespace/name."""
    replaced_by: str = ""
    """The group of the node that comes instead, if one has to."""


@dataclass(slots=True)
class Plan:
    """All of it."""

    workloads: list[PlannedWorkload] = field(default_factory=list)
    others: list[PlannedPod] = field(default_factory=list)
    """The pods that waited in the cluster before, and compete."""
    victims: list[PlannedVictim] = field(default_factory=list)
    zones: Mapping[str, str] = field(default_factory=dict)
    """node -> zone, for all nodes; empty where a node has none"""
    warnings: list[str] = field(default_factory=list)
    added: list[AddedNode] | None = None
    """The nodes that groups would grow by; None if there are no groups."""
    spared: list[SparedNode] | None = None
    """Nodes that could go; None if nobody asked."""

    @property
    def placed(self) -> list[PlannedPod]:
        """Return the planned pods that would have a node."""
        return [pod for workload in self.workloads for pod in workload.placed]

    @property
    def pending(self) -> list[PlannedPod]:
        """Return the planned pods that would wait."""
        return [pod for workload in self.workloads for pod in workload.pending]

    @property
    def foreign(self) -> list[PlannedPod]:
        """Return the pods that another scheduler would have to place."""
        return [pod for workload in self.workloads if workload.scheduler for pod in workload.pods]

    def workload(self, title: str) -> PlannedWorkload:
        """Return a workload by `Kind/name` or `Kind/namespace/name`."""
        kind, _, rest = title.partition("/")
        namespace, _, name = rest.rpartition("/")
        found = [
            each
            for each in self.workloads
            if each.kind.lower() == kind.lower() and each.name == name and namespace in ("", each.namespace)
        ]
        if len(found) != 1:
            there = ", ".join(f"{each.kind}/{each.namespace}/{each.name}" for each in found or self.workloads)
            raise SchedulerError(f"{title}: {'more than one' if found else 'not one'} of the planned workloads: {there}")
        return found[0]

    def nodes_of(self, title: str) -> dict[str, int]:
        """Return how many pods of a workload would be on which node."""
        return counted(pod.node for pod in self.workload(title).placed)

    def zones_of(self, title: str) -> dict[str, int]:
        """Return how many pods of a workload would be in which zone; `""` for nodes without one."""
        return counted(self.zones.get(pod.node, "") for pod in self.workload(title).placed)

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as a document with the API's manner of names."""
        return {
            "nodes": len(self.zones),
            "workloads": [self._workload_dict(workload) for workload in self.workloads],
            "otherPods": [_pod_dict(pod, with_namespace=True) for pod in self.others],
            "victims": [
                {
                    "namespace": victim.pod.namespace,
                    "name": victim.pod.name,
                    "node": victim.node,
                    "priority": victim.pod.priority,
                    "by": victim.by,
                    "byWorkload": victim.by_workload,
                }
                for victim in self.victims
            ],
            "summary": {
                "pods": len(self.placed) + len(self.pending),
                "placed": len(self.placed),
                "pending": len(self.pending),
                "ofOtherSchedulers": len(self.foreign),
                "victims": len(self.victims),
            },
            **self._nodes_dict(),
        }

    def _nodes_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = {}
        if self.added is not None:
            told["newNodes"] = [
                {"name": each.name, "group": each.group, "zone": each.zone, "pods": each.n_pods, "price": each.price}
                for each in self.added
            ]
            told["pricePerHour"] = round(sum(each.price for each in self.added), 6)
        if self.spared is not None:
            told["spareNodes"] = [
                {
                    "name": each.name,
                    "group": each.group,
                    "utilisation": round(each.utilisation, 4),
                    "saves": each.saves,
                    "moves": list(each.moves),
                    **({"replacedBy": each.replaced_by} if each.replaced_by else {}),
                }
                for each in self.spared
            ]
        return told

    def _workload_dict(self, workload: PlannedWorkload) -> dict[str, Any]:
        told: dict[str, Any] = {"kind": workload.kind, "namespace": workload.namespace, "name": workload.name}
        if workload.note:
            told["note"] = workload.note
        if workload.scheduler:
            told["schedulerName"] = workload.scheduler
        told["placed"], told["pending"] = len(workload.placed), len(workload.pending)
        told["nodes"] = counted(pod.node for pod in workload.placed)
        told["zones"] = counted(self.zones.get(pod.node, "") for pod in workload.placed if self.zones.get(pod.node))
        told["pods"] = [_pod_dict(pod) for pod in workload.pods]
        return told


def counted(names: Iterable[str]) -> dict[str, int]:
    """Return how often each name comes, in the order of the names."""
    return dict(sorted(Counter(names).items()))


def _pod_dict(planned: PlannedPod, *, with_namespace: bool = False) -> dict[str, Any]:
    told: dict[str, Any] = {"namespace": planned.pod.namespace} if with_namespace else {}
    told["name"] = planned.pod.name
    if planned.node:
        told["node"] = planned.node
    elif planned.why:
        told["message"] = planned.why
    return told
