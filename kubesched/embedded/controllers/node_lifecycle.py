"""The node lifecycle controller: conditions and missing heartbeats become taints, and NoExecute taints evict pods.

In: nodes, their leases, pods. Out: the taints node.kubernetes.io/*; the condition Ready set to Unknown when a lease has
expired; pods deleted that do not tolerate a NoExecute taint, or no longer. Pods on nodes that are gone are deleted too. A pod
that is bound to a node that is gone already is deleted after 40 seconds only: sooner, and a scheduler that has not heard of
the deletion would bind its replacement to the same node, again and again.
"""

from __future__ import annotations

from kubesched.embedded.clock import seconds_of, timestamp
from kubesched.embedded.controllers.kubelets import LEASE_NAMESPACE
from kubesched.embedded.controllers.shared.context import ControllerContext
from kubesched.embedded.controllers.shared.controller import Workers
from kubesched.embedded.controllers.shared.pods import is_finished, key_of, split
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.storage.watch import Change
from kubesched.embedded.verbs.conditions import is_true, with_condition
from kubesched.embedded.verbs.patching import MERGE_PATCH
from kubesched.kube.api import Taint, Toleration, convert, tolerates

_PREFIX = "node.kubernetes.io/"
_CONDITION_TAINTS = {  # condition: {status: taint}
    "Ready": {"False": "not-ready", "Unknown": "unreachable"},
    "MemoryPressure": {"True": "memory-pressure"},
    "DiskPressure": {"True": "disk-pressure"},
    "PIDPressure": {"True": "pid-pressure"},
    "NetworkUnavailable": {"True": "network-unavailable"},
}
_EXECUTING = ("not-ready", "unreachable")
_ORPHAN_SECONDS = 40.0
"""Pod GC's quarantineTime. A watch of nodes may be silent for minutes, and all that time replacements are bound there again."""
OURS = frozenset(_PREFIX + name for names in _CONDITION_TAINTS.values() for name in names.values()) | {
    _PREFIX + "unschedulable"
}


class NodeLifecycle(Workers):
    """Keeps the taints of nodes, and evicts."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._node_work = self.worker("nodes", self._sync_node)
        self._pod_work = self.worker("taint eviction", self._sync_pod)

    def start(self) -> None:
        self._store.listen("nodes", self._node_changed)
        self._store.listen("leases", self._lease_changed)
        self._store.listen("pods", self._pod_changed)
        for node in self._store.list("nodes").items:
            self._node_work.add(node["metadata"]["name"])
        for name in self._pods.nodes():
            self._add_pods_of(name)

    def _node_changed(self, change: Change) -> None:
        """Queue a node; its pods too if it is gone or its taints have changed."""
        self._node_work.add(change.key)
        if change.new is None or change.old is None or _taints(change.new.obj) != _taints(change.old.obj):
            self._add_pods_of(change.key)

    def _lease_changed(self, change: Change) -> None:
        """Queue the node of a new lease: from now on its expiry is checked."""
        if change.namespace == LEASE_NAMESPACE and change.old is None:
            self._node_work.add(split(change.key)[1])

    def _pod_changed(self, change: Change) -> None:
        """Queue a pod that was bound, or whose tolerations have changed."""
        if change.new is None:
            self._pod_work.forget(change.key)
            return
        if not change.new.obj["spec"].get("nodeName"):
            return
        if change.old is None or change.old.obj["spec"] != change.new.obj["spec"]:
            self._pod_work.add(change.key, 0.0 if self._node_of(change.new.obj) is not None else _ORPHAN_SECONDS)

    def _add_pods_of(self, node: str) -> None:
        for pod in self._pods.on_node(node):
            self._pod_work.add(key_of(pod))

    # --- nodes

    def _sync_node(self, name: str) -> float | None:
        """Set the taints that follow from the conditions of a node. Taints that others put there stay."""
        node = self._store.get("nodes", name)
        again = self._check_lease(node)
        node = self._store.get("nodes", name)  # its conditions may have changed
        wanted = _wanted_taints(node)
        held = {(one["key"], one["effect"]) for one in _taints(node) if one["key"] in OURS}
        if held != wanted:
            kept = [one for one in _taints(node) if one["key"] not in OURS or (one["key"], one["effect"]) in wanted]
            now = timestamp(self._clock.now())
            for key, effect in sorted(wanted - held):
                added = {"key": key, "effect": effect}
                kept.append({**added, "timeAdded": now} if effect == "NoExecute" else added)
            self._store.patch("nodes", name, {"spec": {"taints": kept or None}}, patch_type=MERGE_PATCH)
        return again

    def _check_lease(self, node: Object) -> float | None:
        """Set Ready to Unknown if the lease has expired; return when to check again."""
        name = node["metadata"]["name"]
        lease = self._store.find("leases", name, LEASE_NAMESPACE)
        if lease is None or not lease["spec"].get("renewTime"):
            return None
        duration = lease["spec"].get("leaseDurationSeconds", 40)
        silent_at = seconds_of(lease["spec"]["renewTime"]) + duration
        left = float(silent_at - self._clock.now())
        if left > 0:
            return left
        conditions = (node.get("status") or {}).get("conditions") or []
        if is_true(node, "Ready"):
            now = timestamp(self._clock.now())
            text = "Kubelet stopped posting node status."
            more = {"reason": "NodeStatusUnknown", "message": text, "lastHeartbeatTime": now}
            fresh = with_condition(conditions, "Ready", "Unknown", now, **more)
            self._store.patch("nodes", name, {"status": {"conditions": fresh}}, subresource="status")
            self._recorder.record(node, "node-controller", "NodeNotReady", f"Node {name} status is now: NodeNotReady")
            for pod in self._pods.on_node(name):
                if is_true(pod, "Ready"):
                    conditions = with_condition(pod["status"]["conditions"], "Ready", "False", now, lastProbeTime=None)
                    status = {**pod["status"], "conditions": conditions}
                    self._store.update("pods", {**pod, "status": status}, subresource="status")
        return float(duration)

    # --- pods

    def _sync_pod(self, key: str) -> float | None:
        """Delete a pod whose node is gone, or whose toleration time is over."""
        pod = self._pods.get(key)
        if pod is None or not pod["spec"].get("nodeName"):
            return None
        node = self._node_of(pod)
        metadata = pod["metadata"]
        if node is None:
            self._store.delete("pods", metadata["name"], metadata["namespace"], grace_seconds=0, uid=metadata["uid"])
            return None
        if "deletionTimestamp" in metadata or is_finished(pod):
            return None
        left = self._seconds_left(pod, node)
        if left is None or left > 0:
            return left
        self._recorder.record(pod, "taint-eviction-controller", "TaintManagerEviction", f"Marking for deletion Pod {key}")
        self._store.delete("pods", metadata["name"], metadata["namespace"], uid=metadata["uid"])
        return None

    def _node_of(self, pod: Object) -> Object | None:
        return self._store.find("nodes", pod["spec"]["nodeName"])

    def _seconds_left(self, pod: Object, node: Object) -> float | None:
        """Return how long a pod may stay on its node; None for always."""
        tolerations = [convert(one, Toleration) for one in pod["spec"].get("tolerations") or ()]
        shortest: float | None = None
        now = self._clock.now()
        for raw in _taints(node):
            if raw["effect"] != "NoExecute":
                continue
            matching = [one for one in tolerations if tolerates(one, convert(raw, Taint))]
            if not matching:
                return 0.0
            limits = [one.toleration_seconds for one in matching if one.toleration_seconds is not None]
            if not limits:
                continue
            since = seconds_of(raw["timeAdded"]) if raw.get("timeAdded") else now
            left = since + max(0, min(limits)) - now
            shortest = left if shortest is None else min(shortest, left)
        return shortest


def _wanted_taints(node: Object) -> set[tuple[str, str]]:
    """Return key and effect of the taints that follow from the conditions of a node, and from a cordon."""
    wanted = {(_PREFIX + "unschedulable", "NoSchedule")} if (node.get("spec") or {}).get("unschedulable") else set()
    for one in (node.get("status") or {}).get("conditions") or ():
        name = _CONDITION_TAINTS.get(one.get("type", ""), {}).get(one.get("status", ""))
        if name:
            wanted |= {(_PREFIX + name, effect) for effect in ("NoSchedule", *(["NoExecute"] if name in _EXECUTING else []))}
    return wanted


def _taints(node: Object) -> list[Object]:
    found: list[Object] = (node.get("spec") or {}).get("taints") or []
    return found
