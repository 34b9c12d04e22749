"""The ReplicaSet controller, and the same for ReplicationControllers: keeps the number of pods.

In: sets and their pods. Out: pods created from the template, surplus pods deleted (the least useful first), the status. Pods
without a controller that match the selector are adopted.
"""

from __future__ import annotations

from kubesched.embedded.clock import timestamp
from kubesched.embedded.controllers.shared.context import ControllerContext
from kubesched.embedded.controllers.shared.controller import PodController
from kubesched.embedded.controllers.shared.pods import (
    available_in,
    controller_of,
    deletion_order,
    from_template,
    is_active,
    is_ready,
    key_of,
    owned_by,
)
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.storage.selectors import selects
from kubesched.embedded.storage.watch import Change
from kubesched.errors import ApiError

BURST = 500  # pods created or deleted in one go, as the reference's limit


class ReplicaSets(PodController):
    """Keeps the sets of one resource at their size."""

    resource_name = "replicasets.apps"
    syncs_deleted = True  # the pods of a set that waits for its dependents are still counted

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._offered: dict[str, dict[str, None]] = {}  # set: pods without a controller that it may adopt

    def add_all(self) -> None:
        for entry in list(self._store.context.table(self._resource).entries.values()):
            self._offer_orphans(entry.key, entry.obj)

    def changed(self, change: Change) -> None:
        """Queue a set. A new one is first offered the pods that have no controller."""
        if change.new is None:
            self._offered.pop(change.key, None)
            self._work.forget(change.key)
        elif change.old is None:
            self._offer_orphans(change.key, change.new.obj)
        else:
            self._work.add(change.key)

    def owned_changed(self, change: Change) -> None:
        """Queue the owner of a pod. A pod without one is offered to the sets that may adopt it."""
        super().owned_changed(change)
        for entry in (change.old, change.new):
            if entry is None or controller_of(entry.obj) is not None:
                continue
            if change.old is None or change.old.obj["metadata"].get("labels") != entry.obj["metadata"].get("labels"):
                self._offer_orphan(entry.obj)

    def _offer_orphan(self, pod: Object) -> None:
        """Offer a pod without a controller to the sets that select it."""
        for entry in self._store.context.table(self._resource).in_namespace(pod["metadata"]["namespace"]):
            if selects(self._selector(entry.obj), pod["metadata"].get("labels")):
                self._offered.setdefault(entry.key, {})[key_of(pod)] = None
                self._work.add(entry.key)

    def _offer_orphans(self, key: str, owner: Object) -> None:
        """Offer a set all pods without a controller that it selects."""
        selector = self._selector(owner)
        for pod in self._pods.orphans_in(owner["metadata"]["namespace"]):
            if selects(selector, pod["metadata"].get("labels")):
                self._offered.setdefault(key, {})[key_of(pod)] = None
        self._work.add(key)

    def _selector(self, owner: Object) -> Object | None:
        """Return the selector as a LabelSelector; that of a ReplicationController is a plain map."""
        selector = owner["spec"].get("selector")
        if self._resource.table == "replicationcontrollers" and selector is not None:
            return {"matchLabels": selector}
        found: Object | None = selector
        return found

    def sync(self, obj: Object) -> float | None:
        """Create or delete pods, at most 500 at once, and report. A refusal is reported and raised, to be tried again."""
        owner, key = obj, key_of(obj)
        pods = [pod for pod in self._owned(owner) if is_active(pod)]
        wanted = int(owner["spec"].get("replicas", 1))
        failure: ApiError | None = None
        if "deletionTimestamp" not in owner["metadata"] and len(pods) != wanted:
            try:
                self._settle(owner, pods, wanted - len(pods))
            except ApiError as error:
                failure = error
            pods = [pod for pod in self._pods.of_owner(owner["metadata"]["uid"]) if is_active(pod)]
            if len(pods) != wanted and failure is None:
                self._work.add(key)
        again = self._report(owner, pods, failure)
        if failure is not None:
            raise failure  # and is tried again, each time a bit later
        return again

    def _owned(self, owner: Object) -> list[Object]:
        """Return the pods of a set, with those that it adopts now."""
        pods = self._pods.of_owner(owner["metadata"]["uid"])
        if "deletionTimestamp" in owner["metadata"]:
            return pods
        selector = self._selector(owner)
        namespace = owner["metadata"]["namespace"]
        for key in self._offered.pop(key_of(owner), {}):
            pod = self._pods.get(key)
            if pod is None or controller_of(pod) is not None or not is_active(pod):
                continue
            if not selects(selector, pod["metadata"].get("labels")):
                continue
            patch = {"metadata": {"ownerReferences": [owned_by(owner)], "uid": pod["metadata"]["uid"]}}
            pods.append(self._store.patch("pods", pod["metadata"]["name"], patch, namespace))
        return pods

    def _settle(self, owner: Object, pods: list[Object], missing: int) -> None:
        """Create what is missing, or delete the surplus."""
        for _ in range(min(missing, BURST)):
            self.create_pod(owner, from_template(owner["spec"]["template"], owner))
        self.delete_pods(owner, *deletion_order(pods)[: max(0, min(-missing, BURST))])

    def _report(self, owner: Object, pods: list[Object], failure: ApiError | None) -> float | None:
        """Write the status; return in how many seconds the next pod becomes available."""
        # A set of thousands is reported on whenever one of its pods changes, so each pod is looked at once.
        ready = [pod for pod in pods if is_ready(pod)]
        min_seconds = int(owner["spec"].get("minReadySeconds", 0))
        waits: list[float | None] = []
        if min_seconds:
            now = self._clock.now()
            waits = [available_in(pod, min_seconds, now) for pod in ready]
        labels = (owner["spec"]["template"]["metadata"].get("labels") or {}).items()
        status: Object = {
            "replicas": len(pods),
            "fullyLabeledReplicas": sum(labels <= (pod["metadata"].get("labels") or {}).items() for pod in pods),
            "readyReplicas": len(ready),
            "availableReplicas": sum(wait == 0 for wait in waits) if min_seconds else len(ready),
            "observedGeneration": owner["metadata"].get("generation", 1),
        }
        status = {key: value for key, value in status.items() if value or key == "replicas"}
        if failure is not None:
            # The first failure stays: each has another name in its text, and writing them all would wake us at once.
            held = (owner.get("status") or {}).get("conditions")
            condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": failure.message}
            status["conditions"] = held or [{**condition, "lastTransitionTime": timestamp(self._clock.now())}]
        self.report(owner, status)
        return min((wait for wait in waits if wait), default=None)


class ReplicationControllers(ReplicaSets):
    """The same for ReplicationControllers; their selector is a plain map."""

    resource_name = "replicationcontrollers"
