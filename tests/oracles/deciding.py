"""All plugins together: which node takes a pod, who refuses it, and the text that users see."""

from __future__ import annotations

from typing import Any

from oracles.cluster import SKIP, Cluster, Oracle, Status
from oracles.interpod import InterPodAffinity
from oracles.locality import ImageLocality
from oracles.plain import NodeAffinity, NodeDeclaredFeatures, NodeName, NodePorts, NodeUnschedulable, TaintToleration
from oracles.resources import NodeResourcesBalancedAllocation, NodeResourcesFit
from oracles.spread import PodTopologySpread

Raw = dict[str, Any]


class DynamicResources(Oracle):
    """Has nothing to say about pods without claims, and says so with a score of zero."""

    name = "DynamicResources"
    scores = True


ORDER: tuple[type[Oracle], ...] = (
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    NodeDeclaredFeatures,
)
WEIGHTS = {"TaintToleration": 3, "NodeAffinity": 2, "PodTopologySpread": 2, "InterPodAffinity": 2, "DynamicResources": 2}


class Broken(Exception):
    """The attempt ends in an error."""


class Attempt:
    """One pod, all plugins, one node after the other."""

    def __init__(
        self,
        cluster: Cluster,
        args: dict[str, Raw],
        pod: Raw,
        gates: frozenset[str] = frozenset(),
        nominated: dict[str, list[Raw]] | None = None,
    ) -> None:
        self.cluster = cluster
        self.pod = pod
        self.args = args
        self.gates = gates
        self.nominated = nominated or {}
        self.plugins = self.new_plugins(cluster)
        self.skipped: set[str] = set()
        self.names: frozenset[str] | None = None
        self.narrowed_by: set[str] = set()

    def new_plugins(self, cluster: Cluster) -> list[Oracle]:
        return [cls(cluster, self.args.get(cls.name, {}), self.gates) for cls in ORDER]

    def decide(self) -> Raw:
        """Return the outcome in the words of a golden case."""
        found: Raw = {"pod": f"{self.pod['metadata']['namespace']}/{self.pod['metadata']['name']}"}
        n = len(self.cluster.nodes)
        try:
            refused = self.pre_filter()
            if refused is not None:
                found["preFilter"] = refused
                found["feasible"] = []
                found["fitError"] = f"0/{n} nodes are available: {', '.join(refused['reasons'])}."
                return found
            found["feasible"], found["rejected"] = self.filter_nominated() or self.filter()
            if self.names is not None:
                found["rejected"] = {**self.refused_nominated, **found["rejected"]}
            if self.names is not None:
                others = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(self.narrowed_by))}]"
                found["otherNodes"] = {"code": "UnschedulableAndUnresolvable", "reasons": [others]}
            if not found["feasible"]:
                found["fitError"] = self.fit_error(found, n)
                return found
            found["scores"] = self.score(found["feasible"])
            totals = {name: sum(scores.values()) for name, scores in found["scores"].items()}
            found["decision"] = min(name for name in totals if totals[name] == max(totals.values()))
        except Broken as error:
            return {"pod": found["pod"], "error": str(error)}
        return found

    def pre_filter(self) -> Raw | None:
        """Return who refuses the pod for all nodes, or None."""
        for plugin in self.plugins:
            answer = plugin.pre_filter(self.pod)
            if answer is None:
                continue
            if isinstance(answer, frozenset):
                self.names = answer if self.names is None else self.names & answer
                self.narrowed_by.add(plugin.name)
            elif answer == SKIP:
                self.skipped.add(plugin.name)
            elif answer.code == "Error":
                raise Broken(plugin.name)
            else:
                return {"code": answer.code, "plugin": plugin.name, "reasons": list(answer.reasons)}
        return None

    def filter(self) -> tuple[list[str], dict[str, Raw]]:
        feasible, rejected = [], {}
        for name, node in self.cluster.nodes.items():
            if self.names is not None and name not in self.names:
                continue
            refused = self.refusal_beside_nominated(node) or self.refusal(self.plugins, node)
            if refused is None:
                feasible.append(name)
            else:
                rejected[name] = told(*refused)
        return sorted(feasible), rejected

    def filter_nominated(self) -> tuple[list[str], dict[str, Raw]] | None:
        """Return the node that the pod is nominated to, if it does: then no other is looked at."""
        self.refused_nominated: dict[str, Raw] = {}
        name = (self.pod.get("status") or {}).get("nominatedNodeName")
        node = self.cluster.nodes.get(name or "")
        if node is None:
            return None
        refused = self.refusal_beside_nominated(node) or self.refusal(self.plugins, node)
        if refused is None:
            return [name], {}
        self.refused_nominated[name] = told(*refused)
        if self.narrowed_by:  # whoever refuses it is named beside those that narrowed: the reference has one set for both
            self.narrowed_by.add(refused[0])
        return None

    def refusal(self, plugins: list[Oracle], node: Raw) -> tuple[str, Status] | None:
        for plugin in plugins:
            if plugin.filters and plugin.name not in self.skipped:
                status = plugin.filter(self.pod, node)
                if status is not None:
                    return plugin.name, status
        return None

    def refusal_beside_nominated(self, node: Raw) -> tuple[str, Status] | None:
        """Ask the filters about a node to which the pods nominated to it, of no lower priority, have come."""
        name = node["metadata"]["name"]
        ahead = [
            other
            for other in self.nominated.get(name, [])
            if priority(other) >= priority(self.pod) and other["metadata"]["uid"] != self.pod["metadata"]["uid"]
        ]
        if not ahead:
            return None
        arrived = [{**other, "spec": {**other["spec"], "nodeName": name}} for other in ahead]
        plugins = self.new_plugins(self.cluster)
        for plugin in plugins:
            if plugin.name not in self.skipped:
                plugin.pre_filter(self.pod)
                for other in arrived:
                    plugin.add_pod(self.pod, other, node, 1)
            plugin.cluster = self.cluster.having(*arrived)
        return self.refusal(plugins, node)

    def score(self, feasible: list[str]) -> dict[str, dict[str, int]]:
        nodes = [self.cluster.nodes[name] for name in feasible]
        scores: dict[str, dict[str, int]] = {name: {} for name in feasible}
        active = []
        for plugin in self.plugins:
            status = plugin.pre_score(self.pod, nodes) if plugin.scores else SKIP
            if status is None:
                active.append(plugin)
            elif status != SKIP:
                raise Broken(plugin.name)
        for plugin in active:
            raw = {name: plugin.score(self.pod, node) for name, node in zip(feasible, nodes, strict=True)}
            for name, score in plugin.normalize(self.pod, raw).items():
                assert 0 <= score <= 100, (plugin.name, name, score)
                scores[name][plugin.name] = score * WEIGHTS.get(plugin.name, 1)
        return scores

    def fit_error(self, found: Raw, n: int) -> str:
        counts: dict[str, int] = {}
        for status in found["rejected"].values():
            for reason in status["reasons"]:
                counts[reason] = counts.get(reason, 0) + 1
        left = n - len(found["rejected"])
        for reason in found.get("otherNodes", {}).get("reasons", []) if left else []:
            counts[reason] = counts.get(reason, 0) + left
        lines = sorted(f"{count} {reason}" for reason, count in counts.items())
        return f"0/{n} nodes are available:" + (f" {', '.join(lines)}." if lines else "")


def told(plugin: str, status: Status) -> Raw:
    return {"code": status.code, "plugin": plugin, "reasons": list(status.reasons)}


def priority(pod: Raw) -> int:
    return pod["spec"].get("priority") or 0
