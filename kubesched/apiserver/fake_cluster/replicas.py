"""The ReplicaSet controller, which also does ReplicationControllers: as many pods as asked for.

In: ReplicaSets and their pods. Out: pods created from the template, surplus pods deleted (the least useful first), the
status. Pods that match the selector and belong to nobody are adopted.
"""

from __future__ import annotations

from kubesched.apiserver.fake_cluster.event_recorder import EventRecorder
from kubesched.apiserver.fake_cluster.pods import (
    PodIndex,
    available_in,
    controller_of,
    deletion_order,
    from_template,
    is_active,
    is_ready,
    key_of,
    owned_by,
    split,
)
from kubesched.apiserver.fake_cluster.work import Worker
from kubesched.apiserver.resources import Object
from kubesched.apiserver.selectors import selects
from kubesched.apiserver.store import ObjectStore
from kubesched.apiserver.watch import Change
from kubesched.errors import NotFound

BURST = 500  # pods created or deleted in one go, as the reference's limit


class ReplicaSets:
    """Keeps the sets of one resource at their size."""

    def __init__(self, store: ObjectStore, pods: PodIndex, recorder: EventRecorder, resource: str = "replicasets.apps") -> None:
        self._store = store
        self._pods = pods
        self._recorder = recorder
        self._resource = store.context.resource(resource)
        self._offered: dict[str, dict[str, None]] = {}  # set to pods that nobody manages and it may adopt
        self._work = Worker(store.context.clock, self._resource.plural, self._sync)

    def start(self) -> None:
        self._store.listen(self._resource, self._set_changed)
        self._store.listen("pods", self._pod_changed)
        for entry in self._store.list(self._resource).entries:
            self._offer_orphans(entry.key, entry.obj)

    def stop(self) -> None:
        self._work.stop()

    def _set_changed(self, change: Change) -> None:
        if change.new is None:
            self._offered.pop(change.key, None)
        elif change.old is None:
            self._offer_orphans(change.key, change.new.obj)
        else:
            self._work.add(change.key)

    def _pod_changed(self, change: Change) -> None:
        for entry in (change.old, change.new):
            if entry is None:
                continue
            reference = controller_of(entry.obj)
            if reference is not None:
                if reference["kind"] == self._resource.kind:
                    self._work.add(f"{entry.namespace}/{reference['name']}", self._pods.pause_seconds(reference["uid"]))
            elif change.old is None or change.old.obj["metadata"].get("labels") != entry.obj["metadata"].get("labels"):
                self._offer_orphan(entry.obj)

    def _offer_orphan(self, pod: Object) -> None:
        """Offer a pod that nobody manages to the sets that select it."""
        for entry in self._store.context.table(self._resource).in_namespace(pod["metadata"]["namespace"]):
            if selects(self._selector(entry.obj), pod["metadata"].get("labels")):
                self._offered.setdefault(entry.key, {})[key_of(pod)] = None
                self._work.add(entry.key)

    def _offer_orphans(self, key: str, owner: Object) -> None:
        """Offer a set all the pods that nobody manages and it selects."""
        selector = self._selector(owner)
        for pod in self._pods.orphans_in(owner["metadata"]["namespace"]):
            if selects(selector, pod["metadata"].get("labels")):
                self._offered.setdefault(key, {})[key_of(pod)] = None
        self._work.add(key)

    def _selector(self, owner: Object) -> Object | None:
        selector = owner["spec"].get("selector")
        if self._resource.table == "replicationcontrollers" and selector is not None:
            return {"matchLabels": selector}
        found: Object | None = selector
        return found

    def _sync(self, key: str) -> float | None:
        namespace, name = split(key)
        owner = self._store.get(self._resource, name, namespace)
        pods = [pod for pod in self._owned(owner) if is_active(pod)]
        wanted = int(owner["spec"].get("replicas", 1))
        if "deletionTimestamp" not in owner["metadata"] and len(pods) != wanted:
            self._settle(owner, pods, wanted - len(pods))
            pods = [pod for pod in self._pods.of_owner(owner["metadata"]["uid"]) if is_active(pod)]
            if len(pods) != wanted:
                self._work.add(key)
        return self._report(owner, pods)

    def _owned(self, owner: Object) -> list[Object]:
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
        component = f"{self._resource.kind.lower()}-controller"
        if missing > 0:
            for _ in range(min(missing, BURST)):
                pod = self._store.create("pods", from_template(owner["spec"]["template"], owner))
                self._recorder.tell(owner, component, "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}")
            return
        for pod in deletion_order(pods)[: min(-missing, BURST)]:
            name = pod["metadata"]["name"]
            try:
                self._store.delete("pods", name, pod["metadata"]["namespace"], uid=pod["metadata"]["uid"])
            except NotFound:
                continue
            self._recorder.tell(owner, component, "SuccessfulDelete", f"Deleted pod: {name}")

    def _report(self, owner: Object, pods: list[Object]) -> float | None:
        # A set of thousands is reported on whenever one of its pods changes, so each pod is asked once.
        ready = [pod for pod in pods if is_ready(pod)]
        min_seconds = int(owner["spec"].get("minReadySeconds", 0))
        waits: list[float | None] = []
        if min_seconds:
            now = self._store.context.clock.now()
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
        if status != owner.get("status"):
            current = self._store.get(self._resource, owner["metadata"]["name"], owner["metadata"]["namespace"])
            self._store.update(self._resource, {**current, "status": status}, subresource="status")
        return min((wait for wait in waits if wait), default=None)
