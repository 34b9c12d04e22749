"""The disruption controller: how many pods of each disruption budget may be evicted now.

In: PodDisruptionBudgets, pods, and the sizes of the pods' controllers. Out: the status by which evictions are allowed. A pod
that is being evicted counts as disrupted until it is gone, or for two minutes.
"""

from __future__ import annotations

from kubesched.embedded.clock import seconds_of, timestamp
from kubesched.embedded.controllers.shared.controller import Controller
from kubesched.embedded.controllers.shared.pods import controller_of, is_finished, is_ready
from kubesched.embedded.controllers.workloads.deployments import whole
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.storage.selectors import selects
from kubesched.embedded.storage.watch import Change
from kubesched.embedded.verbs.subresources import budget_conditions

_EVICTION_SECONDS = 120.0
_SCALED = {"ReplicaSet": "replicasets.apps", "StatefulSet": "statefulsets.apps"}
_SCALED |= {"ReplicationController": "replicationcontrollers", "Deployment": "deployments.apps"}


class DisruptionController(Controller):
    """Keeps the status of disruption budgets."""

    resource_name = "poddisruptionbudgets.policy"
    component = "controllermanager"
    syncs_deleted = True

    def start(self) -> None:
        super().start()
        self._store.listen("pods", self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        """Queue the budgets that select a pod, before or after the change."""
        for budget in self._store.context.table(self._resource).in_namespace(change.namespace):
            selector = (budget.obj.get("spec") or {}).get("selector")
            for entry in (change.old, change.new):
                if entry is not None and selects(selector, entry.obj["metadata"].get("labels")):
                    self._work.add(budget.key)

    def sync(self, obj: Object) -> float | None:
        budget, spec, now = obj, obj.get("spec") or {}, self._clock.now()
        pods = [
            pod
            for pod in self._pods.in_namespace(obj["metadata"]["namespace"])
            if selects(spec.get("selector"), pod["metadata"].get("labels")) and not is_finished(pod)
        ]
        expected, desired = self._desired(spec, pods)
        disrupted, again = self._disrupted(budget, pods, now)
        healthy = sum(
            is_ready(pod) and "deletionTimestamp" not in pod["metadata"] and pod["metadata"]["name"] not in disrupted
            for pod in pods
        )
        allowed = max(0, healthy - desired) if expected > 0 else 0
        status: Object = {
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": budget["metadata"]["generation"],
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        before = budget.get("status") or {}
        status["conditions"] = budget_conditions(before, allowed, status["observedGeneration"], timestamp(now))
        self.report(budget, status)
        return again

    def _desired(self, spec: Object, pods: list[Object]) -> tuple[int, int]:
        """Return how many pods there should be, and how many must stay healthy."""
        least, most_down = spec.get("minAvailable"), spec.get("maxUnavailable")
        if least is not None and not isinstance(least, str):
            return len(pods), int(least)
        expected = self._expected(pods)
        if most_down is not None:
            return expected, max(0, expected - whole(most_down, expected, round_up=True))
        if least is not None:
            return expected, whole(least, expected, round_up=True)
        return expected, 0

    def _expected(self, pods: list[Object]) -> int:
        """Return the sum of the sizes of the pods' controllers; a pod without one counts for itself."""
        sizes: dict[str, int] = {}
        for pod in pods:
            reference = controller_of(pod)
            if reference is None or reference["kind"] not in _SCALED:
                sizes[pod["metadata"]["uid"]] = 1
                continue
            if reference["uid"] in sizes:
                continue
            namespace = pod["metadata"]["namespace"]
            owner = self._store.find(_SCALED[reference["kind"]], reference["name"], namespace)
            above = controller_of(owner) if owner is not None else None
            if above is not None and above["kind"] == "Deployment":
                top = self._store.find("deployments.apps", above["name"], namespace)
                if top is not None:
                    sizes[above["uid"]] = int(top["spec"].get("replicas", 1))
                    continue
            sizes[reference["uid"]] = int(owner["spec"].get("replicas", 1)) if owner is not None else 1
        return sum(sizes.values())

    def _disrupted(self, budget: Object, pods: list[Object], now: float) -> tuple[dict[str, str], float | None]:
        """Return the evictions that are still under way, and in how many seconds the first one is given up."""
        there = {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}
        kept, again = {}, None
        for name, since in ((budget.get("status") or {}).get("disruptedPods") or {}).items():
            left = seconds_of(since) + _EVICTION_SECONDS - now
            if name in there and left > 0:
                kept[name] = since
                again = left if again is None else min(again, left)
        return kept, again
