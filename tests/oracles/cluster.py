"""The cluster as objects, and what follows from them for one node: counted again at every question."""

from __future__ import annotations

from typing import Any, NamedTuple

from oracles import asking
from oracles.quantities import exact, whole

Raw = dict[str, Any]


class Status(NamedTuple):
    """One answer, in the words that users see."""

    code: str
    reasons: tuple[str, ...] = ()


SKIP = Status("Skip")


def unschedulable(*reasons: str) -> Status:
    return Status("Unschedulable", reasons)


def unresolvable(*reasons: str) -> Status:
    return Status("UnschedulableAndUnresolvable", reasons)


def broken(*reasons: str) -> Status:
    return Status("Error", reasons)


class Cluster:
    """Objects as on the wire; pods with a node run there."""

    def __init__(self, objects: list[Raw]) -> None:
        self.nodes: dict[str, Raw] = {}
        self.pods: list[Raw] = []
        self.others: dict[str, list[Raw]] = {}
        for obj in objects:
            if obj["kind"] == "Node":
                self.nodes[obj["metadata"]["name"]] = obj
            elif obj["kind"] == "Pod":
                if obj["spec"].get("nodeName"):
                    self.pods.append(obj)
            else:
                self.others.setdefault(obj["kind"], []).append(obj)

    def having(self, *more: Raw, without: tuple[str, ...] = ()) -> Cluster:
        """Return the same cluster with some pods more and some, by uid, less."""
        copy = Cluster([])
        copy.nodes, copy.others = self.nodes, self.others
        copy.pods = [pod for pod in self.pods if pod["metadata"]["uid"] not in without] + list(more)
        return copy

    def pods_on(self, node: Raw) -> list[Raw]:
        return [pod for pod in self.pods if pod["spec"]["nodeName"] == node["metadata"]["name"]]

    def placed(self) -> list[tuple[Raw, Raw]]:
        """Return every pod that is on a node of the cluster, with that node."""
        return [(pod, node) for node in self.nodes.values() for pod in self.pods_on(node)]

    def named(self, kind: str, name: str, namespace: str = "") -> Raw | None:
        for obj in self.others.get(kind, []):
            if obj["metadata"]["name"] == name and obj["metadata"].get("namespace", "") == namespace:
                return obj
        return None

    def namespace_labels(self, name: str) -> dict[str, str]:
        found = self.named("Namespace", name)
        return (found["metadata"].get("labels") or {}) if found else {}

    # Numbers of one node

    def offers(self, node: Raw, resource: str) -> int:
        stated = node["status"].get("allocatable") or {}
        if resource == "pods":
            return whole(exact(stated.get("pods", 0)))
        return asking.counted({resource: exact(stated.get(resource, 0))}).get(resource, 0)

    def used(self, node: Raw, resource: str) -> int:
        return sum(asking.counted(asking.requests(pod, use_status=True)).get(resource, 0) for pod in self.pods_on(node))

    def used_non_zero(self, node: Raw, resource: str) -> int:
        if resource in ("cpu", "memory"):
            return sum(asking.non_zero(pod)[resource == "memory"] for pod in self.pods_on(node))
        return self.used(node, resource)

    def image(self, name: str) -> tuple[int, set[str]] | None:
        """Return an image's size, as its first holder says, and the names of its holders."""
        size, holders = 0, set()
        for node in self.nodes.values():
            for image in node["status"].get("images") or []:
                if name in (image.get("names") or []) and node["metadata"]["name"] not in holders:
                    size = size if holders else image.get("sizeBytes", 0)
                    holders.add(node["metadata"]["name"])
        return (size, holders) if holders else None


class Oracle:
    """One plugin, asked about one pod: PreFilter first, then nodes. A fresh one is made for every pod."""

    name = ""
    filters = False
    scores = False

    def __init__(self, cluster: Cluster, args: Raw, gates: frozenset[str] = frozenset()) -> None:
        self.cluster = cluster
        self.args = args
        self.gates = gates

    def pre_filter(self, pod: Raw) -> Status | frozenset[str] | None:
        """Return a refusal, SKIP, the only nodes that come into question, or None."""
        return None

    def filter(self, pod: Raw, node: Raw) -> Status | None:
        """Return why a node is refused, or None."""
        return None

    def add_pod(self, pod: Raw, other: Raw, node: Raw, sign: int) -> None:
        """Take in that another pod came to a node, or left it."""

    def pre_score(self, pod: Raw, feasible: list[Raw]) -> Status | None:
        return None

    def score(self, pod: Raw, node: Raw) -> int:
        return 0

    def normalize(self, pod: Raw, scores: dict[str, int]) -> dict[str, int]:
        return scores


def scaled_to_best(scores: dict[str, int], *, reverse: bool = False) -> dict[str, int]:
    """Give the best 100 and the others their share of it, or turn that round."""
    best = max(0, *scores.values())
    if best == 0:
        return dict.fromkeys(scores, 100) if reverse else scores
    share = {name: 100 * score // best for name, score in scores.items()}
    return {name: 100 - score for name, score in share.items()} if reverse else share
