"""The base classes of controllers: a queue of keys, and for one resource the way from a change to `sync`.

    a change in the store  ->  changed, owned_changed  ->  the work queue  ->  sync(object)  ->  report, record, create_pod, ...

A subclass names its resource and writes `sync`. It never calls `sync` itself: the queue does, one key at a time and never
inside the write that caused it (see work_queue.py). So a controller may write whatever it likes without being called again
in the middle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from kubesched.embedded.controllers.shared.context import ControllerContext
from kubesched.embedded.controllers.shared.pods import controller_of, split
from kubesched.embedded.controllers.shared.work_queue import Worker
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.storage.watch import Change
from kubesched.errors import ApiError


class Workers:
    """A part of the fake cluster that has one or more work queues."""

    def __init__(self, context: ControllerContext) -> None:
        self._store, self._pods, self._recorder, self._pace = context.store, context.pods, context.recorder, context.pace
        self._clock = context.store.context.clock
        self._workers: list[Worker] = []

    def worker(self, name: str, sync: Callable[[str], float | None]) -> Worker:
        """Return a queue of keys that `sync` is called with, until the part is stopped."""
        self._workers.append(Worker(self._clock, name, sync))
        return self._workers[-1]

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()


class Controller(Workers, ABC):
    """Reconciles the objects of one resource."""

    resource_name: ClassVar[str]
    component: ClassVar[str] = ""
    """The source of its Events; by default the kind with `-controller`."""
    owned_resource: ClassVar[str] = ""
    """A resource whose objects have ours as their controller. When one of them changes, its owner is synced."""
    syncs_deleted: ClassVar[bool] = False
    """Whether objects with a deletionTimestamp are synced too; most controllers leave them to the garbage collector."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._resource = self._store.context.resource(self.resource_name)
        self._component = self.component or f"{self._resource.kind.lower()}-controller"
        self._work = self.worker(self._resource.plural, self._sync_key)

    @abstractmethod
    def sync(self, obj: Object) -> float | None:
        """Bring the cluster one step closer to an object's spec; return the seconds until the next sync, if one is needed."""

    def start(self) -> None:
        self._store.listen(self._resource, self.changed)
        self.add_all()
        if self.owned_resource:
            self._store.listen(self.owned_resource, self.owned_changed)

    def changed(self, change: Change) -> None:
        """Queue an object of the resource that has changed; forget one that is gone."""
        if change.new is not None:
            self._work.add(change.key)
        else:
            self._work.forget(change.key)

    def add_all(self) -> None:
        """Queue every object of the resource."""
        for entry in list(self._store.context.table(self._resource).entries.values()):
            self._work.add(entry.key)

    def owned_changed(self, change: Change) -> None:
        """Queue the owner of an object that has changed, if the owner is of our kind.

        An owner of many pods waits a moment and is then synced once for all of them: see `PodIndex.pause_seconds`.
        """
        for entry in (change.old, change.new):
            reference = controller_of(entry.obj) if entry is not None else None
            if reference is not None and entry is not None and reference["kind"] == self._resource.kind:
                self._work.add(f"{entry.namespace}/{reference['name']}", self._pods.pause_seconds(reference["uid"]))

    def _sync_key(self, key: str) -> float | None:
        namespace, name = split(key) if self._resource.namespaced else ("", key)
        obj = self._store.get(self._resource, name, namespace)
        if "deletionTimestamp" in obj["metadata"] and not self.syncs_deleted:
            return None
        return self.sync(obj)

    def report(self, obj: Object, status: Object) -> None:
        """Write a status, unless the object already has it."""
        if status != obj.get("status"):
            metadata = obj["metadata"]
            current = self._store.get(self._resource, metadata["name"], metadata.get("namespace", ""))
            self._store.update(self._resource, {**current, "status": status}, subresource="status")

    def record(self, obj: Object, reason: str, message: str, kind: str = "Normal") -> None:
        """Write an Event about an object."""
        self._recorder.record(obj, self._component, reason, message, kind)


class PodController(Controller):
    """A controller whose objects own pods."""

    owned_resource = "pods"
    created_text, deleted_text = "Created pod: {pod}", "Deleted pod: {pod}"

    def create_pod(self, owner: Object, pod: Object) -> None:
        """Create a pod of an owner. A refusal becomes an Event and is raised, so the queue tries again later."""
        try:
            made = self._store.create("pods", pod)
        except ApiError as error:
            self.record(owner, "FailedCreate", f"Error creating: {error.message}", "Warning")
            raise
        text = self.created_text.format(pod=made["metadata"]["name"], owner=owner["metadata"]["name"])
        self.record(owner, "SuccessfulCreate", text)

    def delete_pods(self, owner: Object, *pods: Object) -> None:
        """Delete pods of an owner, except those that are being deleted already."""
        for pod in pods:
            if "deletionTimestamp" not in pod["metadata"] and self._store.delete_if_there("pods", pod):
                text = self.deleted_text.format(pod=pod["metadata"]["name"], owner=owner["metadata"]["name"])
                self.record(owner, "SuccessfulDelete", text)
