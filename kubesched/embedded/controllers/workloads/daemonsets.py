"""The DaemonSet controller: one pod on every node that the pods' rules allow.

In: DaemonSets, nodes, pods. Out: a pod for each node, pinned to it by a node affinity, so that the scheduler places it there;
pods of an older template replaced within maxUnavailable and maxSurge; the status.
"""

from __future__ import annotations

from kubesched.embedded.controllers.shared.context import ControllerContext
from kubesched.embedded.controllers.shared.controller import PodController
from kubesched.embedded.controllers.shared.pods import from_template, is_finished, is_ready, template_hash
from kubesched.embedded.controllers.workloads.deployments import whole
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.storage.watch import Change
from kubesched.kube.api import Node, Pod, RequiredNodeAffinity, compile_required_node_affinity, convert, is_tolerated
from kubesched.kube.values import CONTROLLER_REVISION_HASH

_ALWAYS_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class DaemonSets(PodController):
    """Keeps a pod of each DaemonSet on each node."""

    resource_name = "daemonsets.apps"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._judged: dict[tuple[str, int], dict[str, tuple[object, object, bool]]] = {}

    def start(self) -> None:
        super().start()
        self._store.listen("nodes", self._node_changed)

    def _node_changed(self, change: Change) -> None:
        """Queue all DaemonSets if a node comes, goes, or changes in a way that decides who may run there."""

        def place(obj: Object) -> tuple[object, object]:
            return obj["metadata"].get("labels"), (obj.get("spec") or {}).get("taints")

        if change.old is None or change.new is None or place(change.old.obj) != place(change.new.obj):
            self.add_all()

    def changed(self, change: Change) -> None:
        super().changed(change)
        if change.new is None and change.old is not None:
            uid = change.old.obj["metadata"]["uid"]
            self._judged = {key: nodes for key, nodes in self._judged.items() if key[0] != uid}

    def sync(self, obj: Object) -> float | None:
        owner = obj
        revision = template_hash(owner["spec"]["template"])
        nodes = self._eligible_nodes(owner)
        self._place(owner, nodes, revision)
        self._replace_outdated(owner, nodes, revision)
        self._report(owner, nodes, revision)
        return None

    def _eligible_nodes(self, owner: Object) -> list[str]:
        """Return the nodes that a set runs on.

        The verdict about each node is kept until its labels or taints change, or the set's generation: most changes of nodes
        are heartbeats.
        """
        key = (owner["metadata"]["uid"], owner["metadata"]["generation"])
        if key not in self._judged:
            for old in [one for one in self._judged if one[0] == key[0]]:
                del self._judged[old]
        before = self._judged.get(key, {})
        pod = convert(daemon_pod(owner, "", ""), Pod)
        affinity = compile_required_node_affinity(pod)
        after: dict[str, tuple[object, object, bool]] = {}
        for node in self._store.list("nodes").items:
            name = node["metadata"]["name"]
            labels, taints = node["metadata"].get("labels"), (node.get("spec") or {}).get("taints")
            known = before.get(name)
            if known is None or known[0] != labels or known[1] != taints:
                known = (labels, taints, runs_on(pod, affinity, convert(node, Node)))
            after[name] = known
        self._judged[key] = after
        return [name for name, (_, _, allowed) in after.items() if allowed]

    def _by_node(self, owner: Object) -> dict[str, list[Object]]:
        """Return the pods of a set by the node that they are pinned to."""
        found: dict[str, list[Object]] = {}
        for pod in self._pods.of_owner(owner["metadata"]["uid"]):
            found.setdefault(_node_of(pod), []).append(pod)
        return found

    def _place(self, owner: Object, nodes: list[str], revision: str) -> None:
        """Create the pods that are missing, and delete those on nodes that are no longer eligible."""
        held = self._by_node(owner)
        for name in nodes:
            pods = held.get(name, [])
            self.delete_pods(owner, *(pod for pod in pods if is_finished(pod)))
            if not pods:
                self.create_pod(owner, daemon_pod(owner, name, revision))
        allowed = set(nodes)
        for name, pods in held.items():
            if name not in allowed:
                self.delete_pods(owner, *pods)

    def _replace_outdated(self, owner: Object, nodes: list[str], revision: str) -> None:
        """Delete pods of an older template, as many as the strategy allows at once.

        With maxSurge the new pod comes first, and the old one goes when it is ready. Otherwise the old one goes, unless
        maxUnavailable nodes are without a ready pod already.
        """
        strategy = owner["spec"]["updateStrategy"]
        if strategy["type"] != "RollingUpdate":
            return
        rolling = strategy.get("rollingUpdate") or {}
        surge = whole(rolling.get("maxSurge", 0), len(nodes), round_up=True)
        room = whole(rolling.get("maxUnavailable", 1), len(nodes), round_up=True)
        held = self._by_node(owner)
        ready = {name: [pod for pod in held.get(name, ()) if is_ready(pod)] for name in nodes}
        room -= sum(not pods for pods in ready.values())
        surging = sum(len(held.get(name, ())) > 1 for name in nodes)
        for name in nodes:
            pods = held.get(name, [])
            outdated = [pod for pod in pods if pod["metadata"]["labels"].get(CONTROLLER_REVISION_HASH) != revision]
            if not outdated:
                continue
            if surge:
                fresh = [pod for pod in pods if pod not in outdated]
                if any(is_ready(pod) for pod in fresh):
                    self.delete_pods(owner, *outdated)
                elif not fresh and surging < surge:
                    self.create_pod(owner, daemon_pod(owner, name, revision))
                    surging += 1
            elif not ready[name]:  # a node without a ready pod loses nothing
                self.delete_pods(owner, *outdated)
            elif room > 0:
                room -= 1
                self.delete_pods(owner, *outdated)

    def _report(self, owner: Object, nodes: list[str], revision: str) -> None:
        held = self._by_node(owner)
        there = [held[name] for name in nodes if name in held]
        n_ready = sum(any(is_ready(pod) for pod in pods) for pods in there)
        updated = sum(
            any(pod["metadata"]["labels"].get(CONTROLLER_REVISION_HASH) == revision for pod in pods) for pods in there
        )
        status = {
            "currentNumberScheduled": len(there),
            "desiredNumberScheduled": len(nodes),
            "numberAvailable": n_ready,
            "numberMisscheduled": sum(name not in nodes for name in held),
            "numberReady": n_ready,
            "updatedNumberScheduled": updated,
            "numberUnavailable": len(nodes) - n_ready,
            "observedGeneration": owner["metadata"]["generation"],
        }
        needed = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady")
        status = {key: value for key, value in status.items() if value or key in needed}
        self.report(owner, status)


def daemon_pod(owner: Object, node: str, revision: str) -> Object:
    """Return the pod of a set for a node; without a node, a pod to decide with where the set runs."""
    pod = from_template(owner["spec"]["template"], owner, labels={CONTROLLER_REVISION_HASH: revision} if revision else {})
    tolerations = pod["spec"].setdefault("tolerations", [])
    for key, effect in _ALWAYS_TOLERATED:
        tolerations.append({"key": key, "operator": "Exists", "effect": effect})
    if pod["spec"].get("hostNetwork"):
        key = "node.kubernetes.io/network-unavailable"
        tolerations.append({"key": key, "operator": "Exists", "effect": "NoSchedule"})
    if node:
        rules = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
        field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        terms = (rules.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
        rules[_REQUIRED] = {"nodeSelectorTerms": [{**term, **field} for term in terms]}
    else:
        pod["metadata"]["name"] = "any"
    return pod


def runs_on(pod: Pod, affinity: RequiredNodeAffinity, node: Node) -> bool:
    """Return whether a set with such pods runs on a node. Taints without NoSchedule or NoExecute do not matter."""
    if not affinity.matches(node.metadata.name, node.metadata.labels):
        return False
    taints = [one for one in node.spec.taints if one.effect in ("NoSchedule", "NoExecute")]
    return all(is_tolerated(taint, pod.spec.tolerations) for taint in taints)


def _node_of(pod: Object) -> str:
    """Return the node that a pod is on or pinned to."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    rules = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in rules.get("nodeSelectorTerms") or ():
        for one in term.get("matchFields") or ():
            if one.get("key") == "metadata.name" and one.get("values"):
                return str(one["values"][0])
    return ""
