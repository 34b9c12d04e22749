"""PodTopologySpread."""

from __future__ import annotations

from math import log
from typing import Any

from oracles.cluster import SKIP, Oracle, Status, broken, unresolvable, unschedulable
from oracles.plain import COMPARES
from oracles.quantities import divided, rounded
from oracles.selecting import (
    Unreadable,
    check_selector,
    expressions_of,
    has_hard_taint,
    is_everything,
    labels_of,
    may_go_to,
    selects,
)

Raw = dict[str, Any]
HOSTNAME = "kubernetes.io/hostname"
SYSTEM = [
    {"topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 3},
    {"topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 5},
]
MISSING = "node(s) didn't match pod topology spread constraints (missing required label)"
SKEWED = "node(s) didn't match pod topology spread constraints"


class PodTopologySpread(Oracle):
    name = "PodTopologySpread"
    filters = scores = True

    def constraints(self, pod: Raw, action: str) -> list[Raw]:
        own = pod["spec"].get("topologySpreadConstraints") or []
        if own:
            return [{**c, "labelSelector": with_label_keys(c, pod)} for c in own if c["whenUnsatisfiable"] == action]
        defaults = self.args.get("defaultConstraints") or [] if self.is_list() else SYSTEM
        selector = self.default_selector(pod)
        if is_everything(selector):
            return []
        return [{**c, "labelSelector": selector} for c in defaults if c["whenUnsatisfiable"] == action]

    def is_list(self) -> bool:
        return self.args.get("defaultingType") == "List"

    def default_selector(self, pod: Raw) -> Raw:
        """Return the selector of a pod's siblings, as its services and its controller know them."""
        namespace, labels = pod["metadata"]["namespace"], labels_of(pod)
        merged: dict[str, str] = {}
        more: list[Raw] = []
        for service in self.cluster.others.get("Service", []):
            wanted = service["spec"].get("selector")
            if service["metadata"]["namespace"] != namespace or wanted is None:
                continue
            if all(labels.get(key) == value for key, value in wanted.items()):
                merged.update(wanted)
        for owner in [o for o in pod["metadata"].get("ownerReferences") or [] if o.get("controller")][:1]:
            controller = self.cluster.named(owner["kind"], owner["name"], namespace)
            if controller is None:
                continue
            if (owner["apiVersion"], owner["kind"]) == ("v1", "ReplicationController"):
                merged.update(controller["spec"].get("selector") or {})
            elif owner["apiVersion"] == "apps/v1" and owner["kind"] in ("ReplicaSet", "StatefulSet"):
                try:
                    check_selector(controller["spec"].get("selector"))
                    more = expressions_of(controller["spec"].get("selector"))
                except Unreadable:
                    more = []
        return {"matchLabels": merged, "matchExpressions": more}

    def includes(self, constraint: Raw, pod: Raw, node: Raw) -> bool:
        if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not may_go_to(pod, node):
            return False
        return constraint.get("nodeTaintsPolicy") != "Honor" or not has_hard_taint(pod, node, COMPARES in self.gates)

    def count(self, node: Raw, constraint: Raw, pod: Raw) -> int:
        if is_everything(constraint["labelSelector"]):
            return 0
        return sum(
            1
            for other in self.cluster.pods_on(node)
            if other["metadata"]["namespace"] == pod["metadata"]["namespace"]
            and not other["metadata"].get("deletionTimestamp")
            and selects(constraint["labelSelector"], labels_of(other))
        )

    # Must

    def pre_filter(self, pod: Raw) -> Status | None:
        try:
            self.hard = self.constraints(pod, "DoNotSchedule")
        except Unreadable:
            return broken()
        if not self.hard:
            return SKIP
        self.matching: list[dict[str, int]] = [{} for _ in self.hard]
        for node in self.cluster.nodes.values():
            if self.has_all_keys(self.hard, node):
                for constraint, counts in zip(self.hard, self.matching, strict=True):
                    if self.includes(constraint, pod, node):
                        value = labels_of(node)[constraint["topologyKey"]]
                        counts[value] = counts.get(value, 0) + self.count(node, constraint, pod)
        return None

    def has_all_keys(self, constraints: list[Raw], node: Raw) -> bool:
        return all(constraint["topologyKey"] in labels_of(node) for constraint in constraints)

    def add_pod(self, pod: Raw, other: Raw, node: Raw, sign: int) -> None:
        if other["metadata"]["namespace"] != pod["metadata"]["namespace"] or not self.has_all_keys(self.hard, node):
            return
        for constraint, counts in zip(self.hard, self.matching, strict=True):
            if selects(constraint["labelSelector"], labels_of(other)) and self.includes(constraint, pod, node):
                counts[labels_of(node)[constraint["topologyKey"]]] += sign

    def filter(self, pod: Raw, node: Raw) -> Status | None:
        for constraint, counts in zip(self.hard, self.matching, strict=True):
            if constraint["topologyKey"] not in labels_of(node):
                return unresolvable(MISSING)
            wanted_domains = constraint.get("minDomains") or 1
            least = min(counts.values()) if len(counts) >= wanted_domains else 0
            itself = 1 if selects(constraint["labelSelector"], labels_of(pod)) else 0
            here = counts.get(labels_of(node)[constraint["topologyKey"]], 0)
            if here + itself - least > constraint["maxSkew"]:
                return unschedulable(SKEWED)
        return None

    # Should

    def pre_score(self, pod: Raw, feasible: list[Raw]) -> Status | None:
        try:
            self.soft = self.constraints(pod, "ScheduleAnyway")
        except Unreadable:
            return broken()
        if not self.soft:
            return SKIP
        needs_all = bool(pod["spec"].get("topologySpreadConstraints")) or self.is_list()
        self.ignored = {node["metadata"]["name"] for node in feasible if needs_all and not self.has_all_keys(self.soft, node)}
        scored = [node for node in feasible if node["metadata"]["name"] not in self.ignored]
        self.domains: list[dict[str, int]] = []
        self.weights: list[float] = []
        for constraint in self.soft:
            key = constraint["topologyKey"]
            counts = {} if key == HOSTNAME else {labels_of(node).get(key, ""): 0 for node in scored}
            self.domains.append(counts)
            self.weights.append(log((len(scored) if key == HOSTNAME else len(counts)) + 2))
            for node in self.cluster.nodes.values():
                value = labels_of(node).get(key, "")
                if needs_all and not self.has_all_keys(self.soft, node):
                    continue
                if value in counts and self.includes(constraint, pod, node):
                    counts[value] += self.count(node, constraint, pod)
        return None

    def score(self, pod: Raw, node: Raw) -> int:
        if node["metadata"]["name"] in self.ignored:
            return 0
        total = 0.0
        for constraint, counts, weight in zip(self.soft, self.domains, self.weights, strict=True):
            key = constraint["topologyKey"]
            if key in labels_of(node):
                here = self.count(node, constraint, pod) if key == HOSTNAME else counts[labels_of(node)[key]]
                total += float(here) * weight + float(constraint["maxSkew"] - 1)
        return rounded(total)

    def normalize(self, pod: Raw, scores: dict[str, int]) -> dict[str, int]:
        counted = [score for name, score in scores.items() if name not in self.ignored]
        low, high = min(counted, default=0), max(0, *counted, 0)
        return {
            name: 0 if name in self.ignored else 100 if high == 0 else divided(100 * (high + low - score), high)
            for name, score in scores.items()
        }


def with_label_keys(constraint: Raw, pod: Raw) -> Raw | None:
    """Return a constraint's selector, narrowed to the pod's own values of the labels it names."""
    selector = constraint.get("labelSelector")
    check_selector(selector)
    own = [
        {"key": key, "operator": "In", "values": [labels_of(pod)[key]]}
        for key in constraint.get("matchLabelKeys") or []
        if key in labels_of(pod)
    ]
    if selector is None or not own:
        return selector
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or []), *own]}
