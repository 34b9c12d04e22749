"""InterPodAffinity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oracles.cluster import SKIP, Cluster, Oracle, Status, broken, unresolvable, unschedulable
from oracles.selecting import Unreadable, check_selector, is_everything, labels_of, selects

Raw = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
GROUPS = {
    "requiredAffinityTerms": ("podAffinity", REQUIRED),
    "requiredAntiAffinityTerms": ("podAntiAffinity", REQUIRED),
    "preferredAffinityTerms": ("podAffinity", PREFERRED),
    "preferredAntiAffinityTerms": ("podAntiAffinity", PREFERRED),
}


class Term:
    """One term of a pod's, with the namespaces it is about."""

    def __init__(self, raw: Raw, owner: Raw, weight: int = 0) -> None:
        check_selector(raw.get("labelSelector"))
        check_selector(raw.get("namespaceSelector"))
        self.selector = raw.get("labelSelector")
        self.namespace_selector = raw.get("namespaceSelector")
        self.key = raw["topologyKey"]
        self.weight = weight
        self.namespaces = set(raw.get("namespaces") or [])
        if not self.namespaces and self.namespace_selector is None:
            self.namespaces = {owner["metadata"]["namespace"]}

    def matches(self, pod: Raw, namespace_labels: dict[str, str]) -> bool:
        is_listed = pod["metadata"]["namespace"] in self.namespaces
        if not is_listed and not selects(self.namespace_selector, namespace_labels):
            return False
        return selects(self.selector, labels_of(pod))

    def expand(self, cluster: Cluster) -> None:
        """Add the namespaces that the selector matches now."""
        if not is_everything(self.namespace_selector):
            for namespace in cluster.others.get("Namespace", []):
                if selects(self.namespace_selector, labels_of(namespace)):
                    self.namespaces.add(namespace["metadata"]["name"])


def terms_of(pod: Raw, group: str) -> list[Term]:
    """Return one group of a pod's terms; raise if one of them cannot be read."""
    kind, when = GROUPS[group]
    raw = ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(when) or []
    if when == REQUIRED:
        return [Term(term, pod) for term in raw]
    return [Term(wish["podAffinityTerm"], pod, wish["weight"]) for wish in raw]


def readable_terms_of(pod: Raw, group: str) -> list[Term]:
    """Return one group of a placed pod's terms; none if one of them cannot be read."""
    try:
        return terms_of(pod, group)
    except Unreadable:
        return []


Counts = dict[tuple[str, str], int]


class InterPodAffinity(Oracle):
    name = "InterPodAffinity"
    filters = scores = True

    def read(self, pod: Raw) -> list[str]:
        """Read the incoming pod's terms; return the groups that cannot be read."""
        self.terms: dict[str, list[Term]] = {}
        unreadable = []
        for group in GROUPS:
            try:
                self.terms[group] = terms_of(pod, group)
            except Unreadable:
                unreadable.append(group)
                continue
            for term in self.terms[group]:
                term.expand(self.cluster)
        return unreadable

    def pre_filter(self, pod: Raw) -> Status | None:
        unreadable = self.read(pod)
        if unreadable:
            return unresolvable("parsing pod: " + ",".join(unreadable))
        self.existing_anti: Counts = {}
        self.near: Counts = {}
        self.away: Counts = {}
        for other, node in self.cluster.placed():
            self.add_pod(pod, other, node, 1)
        if not (self.existing_anti or self.terms["requiredAffinityTerms"] or self.terms["requiredAntiAffinityTerms"]):
            return SKIP
        return None

    def add_pod(self, pod: Raw, other: Raw, node: Raw, sign: int) -> None:
        own_labels = self.cluster.namespace_labels(pod["metadata"]["namespace"])
        for term in readable_terms_of(other, "requiredAntiAffinityTerms"):
            if term.matches(pod, own_labels):
                self.count(self.existing_anti, term.key, node, sign)
        wanted = self.terms["requiredAffinityTerms"]
        if wanted and all(term.matches(other, {}) for term in wanted):
            for term in wanted:
                self.count(self.near, term.key, node, sign)
        for term in self.terms["requiredAntiAffinityTerms"]:
            if term.matches(other, {}):
                self.count(self.away, term.key, node, sign)

    def count(self, counts: Counts, key: str, node: Raw, sign: int) -> None:
        if key in labels_of(node):
            pair = (key, labels_of(node)[key])
            counts[pair] = counts.get(pair, 0) + sign
            if counts[pair] == 0:
                del counts[pair]

    def filter(self, pod: Raw, node: Raw) -> Status | None:
        labels = labels_of(node)
        wanted = self.terms["requiredAffinityTerms"]
        if wanted:
            has_keys = all(term.key in labels for term in wanted)
            is_near = has_keys and all(self.near.get((term.key, labels[term.key]), 0) > 0 for term in wanted)
            is_first = not self.near and all(term.matches(pod, {}) for term in wanted)
            if not (has_keys and (is_near or is_first)):
                return unresolvable("node(s) didn't match pod affinity rules")
        for term in self.terms["requiredAntiAffinityTerms"]:
            if term.key in labels and self.away.get((term.key, labels[term.key]), 0) > 0:
                return unschedulable("node(s) didn't match pod anti-affinity rules")
        if any(self.existing_anti.get(pair, 0) > 0 for pair in labels.items()):
            return unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
        return None

    def pre_score(self, pod: Raw, feasible: list[Raw]) -> Status | None:
        if self.read(pod):
            return broken()
        prefers = bool(self.terms["preferredAffinityTerms"] or self.terms["preferredAntiAffinityTerms"])
        if self.args.get("ignorePreferredTermsOfExistingPods") and not prefers:
            return SKIP
        self.worth: Counts = {}
        for other, node in self.cluster.placed():
            for key, weight in self.says(pod, other):
                if key in labels_of(node):
                    pair = (key, labels_of(node)[key])
                    self.worth[pair] = self.worth.get(pair, 0) + weight
        return None if self.worth else SKIP

    def says(self, pod: Raw, other: Raw) -> Iterator[tuple[str, int]]:
        """Yield what the incoming pod and a placed one say about each other: topology keys and weights."""
        for sign, group in ((1, "preferredAffinityTerms"), (-1, "preferredAntiAffinityTerms")):
            for term in self.terms[group]:
                if term.matches(other, {}):
                    yield term.key, sign * term.weight
        own_labels = self.cluster.namespace_labels(pod["metadata"]["namespace"])
        hard = self.args.get("hardPodAffinityWeight", 1)
        for term in readable_terms_of(other, "requiredAffinityTerms"):
            if hard > 0 and term.matches(pod, own_labels):
                yield term.key, hard
        for sign, group in ((1, "preferredAffinityTerms"), (-1, "preferredAntiAffinityTerms")):
            for term in readable_terms_of(other, group):
                if term.matches(pod, own_labels):
                    yield term.key, sign * term.weight

    def score(self, pod: Raw, node: Raw) -> int:
        return sum(self.worth.get(pair, 0) for pair in labels_of(node).items())

    def normalize(self, pod: Raw, scores: dict[str, int]) -> dict[str, int]:
        low, high = min(scores.values()), max(scores.values())
        if low == high:
            return dict.fromkeys(scores, 0)
        return {name: int(100.0 * (float(score - low) / float(high - low))) for name, score in scores.items()}
