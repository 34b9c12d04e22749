"""The store: the API as methods, without HTTP, for tests, simulations and the controllers of the fake cluster.

In: resource names and plain dictionaries. Out: plain dictionaries, or the same errors as over HTTP (see api_errors.py). What is
returned belongs to the store and must not be changed; what is handed in is copied. Any clock will do, and no event loop is
needed, except to iterate over a watch with `async for`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kubesched.embedded.clock import RealClock, ServerClock
from kubesched.embedded.schema import custom_resources
from kubesched.embedded.schema.resources import NEWEST_RELEASE, Catalogue, Object, Resource
from kubesched.embedded.storage.objects import HISTORY_LIMIT, Storage
from kubesched.embedded.storage.watch import BUFFER_LIMIT, Change, Watch
from kubesched.embedded.storage.write_ahead_log import WriteAheadLog
from kubesched.embedded.verbs import deletion, reading, subresources, writing
from kubesched.embedded.verbs.context import Context, Target, WriteOptions
from kubesched.embedded.verbs.conversion import from_storage
from kubesched.embedded.verbs.deletion import DeleteOptions
from kubesched.embedded.verbs.patching import STRATEGIC_PATCH
from kubesched.embedded.verbs.reading import Listing, ListQuery
from kubesched.errors import AlreadyExists, NotFound

FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_SYSTEM_CLASSES = (
    ("system-cluster-critical", 2_000_000_000, "Used for system critical pods that must run in the cluster."),
    ("system-node-critical", 2_000_001_000, "Used for system critical pods that must not be moved from their node."),
)


class ObjectStore:
    """Every verb of the API as a method."""

    def __init__(
        self,
        clock: ServerClock | None = None,
        *,
        seed: int | None = None,
        data_dir: Path | None = None,
        fsync: str = "interval",
        history_limit: int = HISTORY_LIMIT,
        has_priority_admission: bool = True,
        release: int = NEWEST_RELEASE,
        open_log: Callable[[Path, str], WriteAheadLog] = WriteAheadLog,
    ) -> None:
        """Open a store. With a `seed`, names and uids come out the same every time; with `data_dir`, objects stay.

        `release` is the minor of the Kubernetes release whose versions a server of it serves.
        Without priority admission pods bring the number of their priority along, as in Kubernetes' own benchmark.
        """
        rng = random.Random(seed) if seed is not None else random.SystemRandom()
        journal = open_log(data_dir, fsync) if data_dir is not None else None
        clock = clock or RealClock()
        storage = Storage(journal, history_limit, clock.now)
        catalogue = Catalogue(release)
        custom_resources.follow(storage, catalogue)
        self.context = Context(storage, catalogue, clock, rng, has_priority_admission)
        self._begin()

    def _begin(self) -> None:
        """Create the objects that every cluster starts with: four namespaces and the two system priority classes."""
        for name in FIRST_NAMESPACES:
            self.create_if_missing("namespaces", {"metadata": {"name": name}})
        for name, value, text in _SYSTEM_CLASSES:
            self.create_if_missing("priorityclasses", {"metadata": {"name": name}, "value": value, "description": text})

    @property
    def resource_version(self) -> str:
        """The version of the latest write."""
        return str(self.context.storage.version)

    def create(
        self, resource: str | Resource, obj: Object, namespace: str = "", *, dry_run: bool = False, strict: bool = False
    ) -> Object:
        """Create an object; its namespace comes from the argument, then from the object, then it is `default`.

        `strict` refuses fields that the kind does not have, as `fieldValidation=Strict` does.
        """
        kind = self.context.resource(resource)
        copy = _copy(obj)
        if kind.namespaced:
            namespace = namespace or _named(copy, "namespace") or "default"
        options = WriteOptions(dry_run=dry_run, field_validation="Strict" if strict else "Warn")
        return from_storage(writing.create(self.context, Target(kind, namespace), copy, options).obj, kind)

    def create_if_missing(self, resource: str | Resource, obj: Object) -> Object | None:
        """Create an object unless the name is taken; return the new object, or None."""
        try:
            return self.create(resource, obj)
        except AlreadyExists:
            return None

    def find(self, resource: str | Resource, name: str, namespace: str = "") -> Object | None:
        """Return an object in its storage version, or None."""
        entry = self.context.find(self.context.resource(resource), namespace, name)
        return None if entry is None else entry.obj

    def get(self, resource: str | Resource, name: str, namespace: str = "") -> Object:
        """Return an object in the version of the resource; NotFound if it is not there."""
        kind = self.context.resource(resource)
        return from_storage(self.context.get(kind, self._namespace(kind, namespace), name).obj, kind)

    def list(
        self,
        resource: str | Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
        resource_version_match: str = "",
    ) -> Listing:
        """List one namespace, or all for ""."""
        query = ListQuery(
            namespace, label_selector, field_selector, limit, continue_token, resource_version, resource_version_match
        )
        return reading.list_objects(self.context, self.context.resource(resource), query)

    def update(self, resource: str | Resource, obj: Object, *, subresource: str = "", dry_run: bool = False) -> Object:
        """Replace an object, or its status; 409 when its resourceVersion is not the stored one."""
        kind = self.context.resource(resource)
        copy = _copy(writing.part_written(kind, obj, subresource))
        target = Target(kind, self._namespace(kind, _named(copy, "namespace")), _named(copy, "name"), subresource)
        return from_storage(writing.update(self.context, target, copy, WriteOptions(dry_run=dry_run)).obj, kind)

    def report(self, resource: str | Resource, obj: Object, status: Object) -> None:
        """Write a whole status that needs no check, if the object is still the same one.

        Only for our own controllers: decoding and validation are skipped. They were most of the work of the thousands of
        statuses that fake kubelets write. The caller gives the status away.
        """
        kind, metadata = self.context.resource(resource), obj["metadata"]
        entry = self.context.find(kind, metadata.get("namespace", ""), metadata["name"])
        if entry is not None and entry.obj["metadata"]["uid"] == metadata["uid"] and entry.obj.get("status") != status:
            fresh = {**entry.obj, "metadata": dict(entry.obj["metadata"]), "status": status}
            writing.store(self.context, kind, entry.key, fresh)

    def patch(
        self,
        resource: str | Resource,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        patch_type: str = STRATEGIC_PATCH,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """Change an object by a patch of one of the four types."""
        kind = self.context.resource(resource)
        options = WriteOptions(dry_run=dry_run, manager=field_manager, force=force)
        target = Target(kind, self._namespace(kind, namespace), name, subresource)
        return from_storage(writing.patch(self.context, target, _copy(patch), patch_type, options).obj, kind)

    def delete(
        self,
        resource: str | Resource,
        name: str,
        namespace: str = "",
        *,
        grace_seconds: int | None = None,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Delete an object, or begin to; return it as it is now, or as it was."""
        kind = self.context.resource(resource)
        options = DeleteOptions(grace_seconds, uid, resource_version, propagation, dry_run)
        return deletion.delete(self.context, kind, self._namespace(kind, namespace), name, options).entry.obj

    def delete_if_there(self, resource: str | Resource, obj: Object, *, propagation: str = "") -> bool:
        """Delete an object if it still exists with the same uid; return whether it did."""
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "")
        try:
            self.delete(resource, metadata["name"], namespace, uid=metadata["uid"], propagation=propagation)
        except NotFound:
            return False
        return True

    def delete_collection(
        self, resource: str | Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> Sequence[Object]:
        """Delete all objects that the selectors select; return them."""
        query = ListQuery(namespace, label_selector, field_selector)
        kind = self.context.resource(resource)
        return [entry.obj for entry in deletion.delete_collection(self.context, kind, query, DeleteOptions())]

    def watch(
        self,
        resource: str | Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        buffer_limit: int = BUFFER_LIMIT,
    ) -> Watch:
        """Watch a resource. Without a version the watch begins with every object that there is."""
        query = ListQuery(namespace, label_selector, field_selector, resource_version=resource_version)
        return reading.open_watch(self.context, self.context.resource(resource), query, buffer_limit)[0]

    def listen(self, resource: str | Resource, listener: Callable[[Change], None]) -> None:
        """Call `listener` with every change from now on, in order, right after the write."""
        self.context.storage.listen(self.context.resource(resource).table, listener)

    def bind(self, namespace: str, name: str, node: str, uid: str = "") -> Object:
        """Bind a pod to a node, as the binding subresource does."""
        return subresources.bind(self.context, namespace, name, node, uid).obj

    def evict(self, namespace: str, name: str, *, grace_seconds: int | None = None, dry_run: bool = False) -> Object:
        """Evict a pod, as the eviction subresource does; 429 if its disruption budget forbids it now."""
        options = DeleteOptions(grace_seconds, dry_run=dry_run)
        return subresources.evict(self.context, namespace, name, options).entry.obj

    def scale(self, resource: str | Resource, name: str, replicas: int, namespace: str = "") -> Object:
        """Set the replicas of a workload, as the scale subresource does."""
        kind = self.context.resource(resource)
        entry = self.context.get(kind, self._namespace(kind, namespace), name)
        return subresources.set_scale(self.context, kind, entry, {"spec": {"replicas": replicas}}, WriteOptions()).obj

    def compact(self) -> None:
        """Forget all past changes, as etcd does: watches and pages from before now get 410."""
        self.context.storage.compact()

    def close(self) -> None:
        """Close every watch and the write-ahead log."""
        self.context.storage.close()

    def _namespace(self, resource: Resource, namespace: str) -> str:
        """Return the namespace of a request: "default" where none is given, "" for cluster-wide resources."""
        return (namespace or "default") if resource.namespaced else ""


def _named(obj: Object, field: str) -> str:
    """Return a field of the metadata; "" where there is none, for then the write itself says what is wrong."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    found = metadata.get(field) if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else ""


def _copy(value: Any) -> Any:
    """Return a deep copy; through JSON, because that is the fastest copy and drops what JSON cannot hold."""
    return msgspec.json.decode(msgspec.json.encode(value))
