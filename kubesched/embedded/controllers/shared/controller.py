"""What the controllers share: one resource to keep in order, a queue of its keys, the pods it owns, events and status.

In: changes to the resource and to what its objects own. Out: calls of `sync` with an object that is there, one at a time
per object. A controller says what it does in `sync`; how it hears of changes, tells of its deeds and reports stands here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from kubesched.embedded.controllers.shared.event_recorder import EventRecorder
from kubesched.embedded.controllers.shared.pods import PodIndex, controller_of, split
from kubesched.embedded.controllers.shared.work_queue import Worker
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.storage.watch import Change
from kubesched.embedded.store import ObjectStore
from kubesched.errors import ApiError


class Workers:
    """A part of the fake cluster that has one or more queues of work."""

    def __init__(self, store: ObjectStore, recorder: EventRecorder) -> None:
        self._store = store
        self._clock = store.context.clock
        self._recorder = recorder
        self._workers: list[Worker] = []

    def worker(self, name: str, sync: Callable[[str], float | None]) -> Worker:
        """Return a queue of keys that `sync` is called with, until the part is stopped."""
        self._workers.append(Worker(self._clock, name, sync))
        return self._workers[-1]

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()


class Controller(Workers, ABC):
    """Keeps the objects of one resource in order."""

    def __init__(self, store: ObjectStore, recorder: EventRecorder, resource: str, component: str = "") -> None:
        super().__init__(store, recorder)
        self._resource: Resource = store.context.resource(resource)
        self._component = component or f"{self._resource.kind.lower()}-controller"
        self._work = self.worker(self._resource.plural, self._sync_key)

    @abstractmethod
    def sync(self, obj: Object) -> float | None:
        """Bring one object closer to what it says; return in how many seconds to look again, if at all."""

    def start(self) -> None:
        self._store.listen(self._resource, self.changed)
        self.add_all()

    def changed(self, change: Change) -> None:
        """Look at an object of the resource that has changed."""
        if change.new is not None:
            self._work.add(change.key)
        else:
            self._work.forget(change.key)

    def add_all(self) -> None:
        """Look at every object."""
        for entry in list(self._store.context.table(self._resource).entries.values()):
            self._work.add(entry.key)

    def owned_changed(self, change: Change) -> None:
        """Look at the owner, if it is one of ours, of an object that has changed."""
        for entry in (change.old, change.new):
            reference = controller_of(entry.obj) if entry is not None else None
            if reference is not None and entry is not None and reference["kind"] == self._resource.kind:
                self._work.add(f"{entry.namespace}/{reference['name']}", self._pause_seconds(reference["uid"]))

    def _pause_seconds(self, uid: str) -> float:
        return 0.0

    def _sync_key(self, key: str) -> float | None:
        namespace, name = split(key) if self._resource.namespaced else ("", key)
        return self.sync(self._store.get(self._resource, name, namespace))

    def report(self, obj: Object, status: Object) -> None:
        """Write a status, unless it says what the object already says."""
        if status != obj.get("status"):
            metadata = obj["metadata"]
            current = self._store.get(self._resource, metadata["name"], metadata.get("namespace", ""))
            self._store.update(self._resource, {**current, "status": status}, subresource="status")

    def tell(self, obj: Object, reason: str, message: str, kind: str = "Normal") -> None:
        """Record an event about an object."""
        self._recorder.tell(obj, self._component, reason, message, kind)


class PodController(Controller):
    """A controller whose objects own pods."""

    created_text, deleted_text = "Created pod: {pod}", "Deleted pod: {pod}"

    def __init__(self, store: ObjectStore, pods: PodIndex, recorder: EventRecorder, resource: str, component: str = "") -> None:
        super().__init__(store, recorder, resource, component)
        self._pods = pods

    def start(self) -> None:
        super().start()
        self._store.listen("pods", self.owned_changed)

    def _pause_seconds(self, uid: str) -> float:
        return self._pods.pause_seconds(uid)

    def create_pod(self, owner: Object, pod: Object) -> None:
        """Create a pod of an owner; a refusal is told too, and tried again later."""
        try:
            made = self._store.create("pods", pod)
        except ApiError as error:
            self.tell(owner, "FailedCreate", f"Error creating: {error.message}", "Warning")
            raise
        self.tell(owner, "SuccessfulCreate", _said(self.created_text, owner, made))

    def delete_pod(self, owner: Object, pod: Object) -> None:
        """Delete a pod of an owner, unless it is on its way already."""
        if "deletionTimestamp" not in pod["metadata"] and self._store.delete_if_there("pods", pod):
            self.tell(owner, "SuccessfulDelete", _said(self.deleted_text, owner, pod))


def _said(text: str, owner: Object, pod: Object) -> str:
    return text.format(pod=pod["metadata"]["name"], owner=owner["metadata"]["name"])
