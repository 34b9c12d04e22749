"""The plugins that need no arithmetic worth speaking of."""

from __future__ import annotations

from typing import Any

from oracles.cluster import SKIP, Oracle, Status, broken, scaled_to_best, unresolvable, unschedulable
from oracles.selecting import (
    Unreadable,
    check_term,
    has_hard_taint,
    is_empty_term,
    may_go_to,
    node_affinity,
    required_node_terms,
    term_matches,
    tolerates,
    tolerations_of,
)

Raw = dict[str, Any]
COMPARES = "TaintTolerationComparisonOperators"


class NodeName(Oracle):
    name = "NodeName"
    filters = True

    def filter(self, pod: Raw, node: Raw) -> Status | None:
        wanted = pod["spec"].get("nodeName")
        if wanted and wanted != node["metadata"]["name"]:
            return unresolvable("node(s) didn't match the requested node name")
        return None


class NodeUnschedulable(Oracle):
    name = "NodeUnschedulable"
    filters = True

    def filter(self, pod: Raw, node: Raw) -> Status | None:
        cordon = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}
        if not node["spec"].get("unschedulable"):
            return None
        if any(tolerates(toleration, cordon, COMPARES in self.gates) for toleration in tolerations_of(pod)):
            return None
        return unresolvable("node(s) were unschedulable")


class NodePorts(Oracle):
    name = "NodePorts"
    filters = True

    def pre_filter(self, pod: Raw) -> Status | None:
        return None if host_ports(pod) else SKIP

    def filter(self, pod: Raw, node: Raw) -> Status | None:
        taken = [port for other in self.cluster.pods_on(node) for port in host_ports(other)]
        if any(conflict(wanted, held) for wanted in host_ports(pod) for held in taken):
            return unschedulable("node(s) didn't have free ports for the requested pod ports")
        return None


def host_ports(pod: Raw) -> list[tuple[str, str, int]]:
    sidecars = [c for c in pod["spec"].get("initContainers") or [] if c.get("restartPolicy") == "Always"]
    found = []
    for container in [*sidecars, *(pod["spec"].get("containers") or [])]:
        for port in container.get("ports") or []:
            if port.get("hostPort", 0) > 0:
                found.append((port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"]))
    return found


def conflict(a: tuple[str, str, int], b: tuple[str, str, int]) -> bool:
    return a[1:] == b[1:] and (a[0] == b[0] or "0.0.0.0" in (a[0], b[0]))


class TaintToleration(Oracle):
    name = "TaintToleration"
    filters = scores = True

    def filter(self, pod: Raw, node: Raw) -> Status | None:
        if has_hard_taint(pod, node, COMPARES in self.gates):
            return unresolvable("node(s) had untolerated taint(s)")
        return None

    def score(self, pod: Raw, node: Raw) -> int:
        kept = [t for t in tolerations_of(pod) if t.get("effect", "") in ("", "PreferNoSchedule")]
        return sum(
            1
            for taint in node["spec"].get("taints") or []
            if taint["effect"] == "PreferNoSchedule"
            and not any(tolerates(toleration, taint, COMPARES in self.gates) for toleration in kept)
        )

    def normalize(self, pod: Raw, scores: dict[str, int]) -> dict[str, int]:
        return scaled_to_best(scores, reverse=True)


class NodeAffinity(Oracle):
    name = "NodeAffinity"
    filters = scores = True

    def added(self, what: str) -> Any:
        return (self.args.get("addedAffinity") or {}).get(what + "DuringSchedulingIgnoredDuringExecution")

    def pre_filter(self, pod: Raw) -> Status | frozenset[str] | None:
        required = required_node_terms(pod)
        if required is None:
            return SKIP if pod["spec"].get("nodeSelector") is None and self.added("required") is None else None
        union: set[str] = set()
        for term in required.get("nodeSelectorTerms") or []:
            named = [
                set(f.get("values") or [])
                for f in term.get("matchFields") or []
                if f["key"] == "metadata.name" and f["operator"] == "In"
            ]
            if not named:
                return None
            union |= set.intersection(*named)
        if not required.get("nodeSelectorTerms"):
            return None
        return frozenset(union) if union else unresolvable("pod affinity terms conflict")

    def filter(self, pod: Raw, node: Raw) -> Status | None:
        added = self.added("required")
        if added is not None and not any(term_matches(term, node) for term in added.get("nodeSelectorTerms") or []):
            return unresolvable("node(s) didn't match scheduler-enforced node affinity")
        if not may_go_to(pod, node):
            return unresolvable("node(s) didn't match Pod's node affinity/selector")
        return None

    def wishes(self, pod: Raw) -> list[Raw]:
        own = node_affinity(pod).get("preferredDuringSchedulingIgnoredDuringExecution") or []
        return [
            wish
            for wish in [*(self.added("preferred") or []), *own]
            if wish["weight"] and not is_empty_term(wish["preference"])
        ]

    def pre_score(self, pod: Raw, feasible: list[Raw]) -> Status | None:
        own = node_affinity(pod).get("preferredDuringSchedulingIgnoredDuringExecution")
        if own is None and not self.added("preferred"):
            return SKIP
        try:
            for wish in self.wishes(pod):
                check_term(wish["preference"])
        except Unreadable:
            return broken()
        return None

    def score(self, pod: Raw, node: Raw) -> int:
        return sum(wish["weight"] for wish in self.wishes(pod) if term_matches(wish["preference"], node))

    def normalize(self, pod: Raw, scores: dict[str, int]) -> dict[str, int]:
        return scaled_to_best(scores)


class NodeDeclaredFeatures(Oracle):
    name = "NodeDeclaredFeatures"
    filters = True

    def needed(self, pod: Raw) -> set[str]:
        spec, found = pod["spec"], set()
        for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
            if any(rule["action"] == "RestartAllContainers" for rule in container.get("restartPolicyRules") or []):
                found.add("RestartAllContainersOnContainerExits")
        if spec.get("hostNetwork") and spec.get("hostUsers") is False:
            found.add("UserNamespacesHostNetworkSupport")
        return found

    def pre_filter(self, pod: Raw) -> Status | None:
        return None if self.needed(pod) else SKIP

    def filter(self, pod: Raw, node: Raw) -> Status | None:
        if self.needed(pod) - set(node["status"].get("declaredFeatures") or []):
            return unresolvable("node(s) didn't match Pod's required features")
        return None
