"""The garbage collector and the end of namespaces: what depends on a deleted object is deleted too.

In: owner references, deletions, and the finalizers that deletion options leave. Out: dependents deleted in the background or
before their owner, or orphaned; everything in a deleted namespace deleted, and then the namespace.

Two maps are kept for all objects of all resources: which uids exist, and which objects name a uid as their owner. So a
deletion finds its dependents without a search.
"""

from __future__ import annotations

from kubesched.embedded.controllers.shared.context import ControllerContext
from kubesched.embedded.controllers.shared.controller import Workers
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.storage.watch import Change, Entry
from kubesched.embedded.verbs.context import WriteOptions
from kubesched.embedded.verbs.deletion import FOREGROUND, ORPHAN, finalize_namespace
from kubesched.embedded.verbs.patching import MERGE_PATCH

_NOT_COLLECTED = ("events", "bindings")


class GarbageCollector(Workers):
    """Follows owner references through all resources."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._dependents: dict[str, dict[tuple[str, str], None]] = {}  # owner uid to (table, key)
        self._living: dict[str, tuple[str, str]] = {}  # uid to (table, key)
        self._work = self.worker("garbage", self._sync)
        self._namespace_work = self.worker("namespaces", self._sync_namespace)

    def start(self) -> None:
        """Learn all objects, and follow every table: one that a custom resource adds later is followed too."""
        for resource in self._resources():
            for entry in self._store.context.table(resource).entries.values():
                self._learn(resource.table, entry)
        self._store.context.storage.listen_to_all(self._changed)
        self._store.listen("namespaces", self._namespace_changed)
        for namespace in self._store.list("namespaces").items:
            if "deletionTimestamp" in namespace["metadata"]:
                self._namespace_work.add(namespace["metadata"]["name"])

    def _resources(self) -> list[Resource]:
        """Return the resources whose objects can be collected. Events are too many, and expire anyway."""
        return [
            one for one in self._store.context.catalogue.stored() if "delete" in one.verbs and one.table not in _NOT_COLLECTED
        ]

    def _learn(self, table: str, entry: Entry) -> None:
        """Note an object and its owners. An owner that does not exist may be on its way, so that is checked later."""
        uid = entry.obj["metadata"]["uid"]
        self._living[uid] = (table, entry.key)
        for reference in entry.obj["metadata"].get("ownerReferences") or ():
            self._dependents.setdefault(reference["uid"], {})[table, entry.key] = None
            if reference["uid"] not in self._living:
                self._work.add(f"{table} {entry.key}", 1.0)  # its owner may still be on its way
        if _waits_for_dependents(entry.obj):
            self._work.add(f"{table} {entry.key}")

    def _changed(self, table: str, change: Change) -> None:
        if table in _NOT_COLLECTED:
            return
        if change.old is not None:
            self._forget(table, change.old, gone=change.new is None)
        if change.new is not None:
            self._learn(table, change.new)

    def _forget(self, table: str, entry: Entry, gone: bool) -> None:
        """Remove the notes about an object; if it is gone, queue its dependents and the owner that waits for it."""
        place = (table, entry.key)
        for reference in entry.obj["metadata"].get("ownerReferences") or ():
            held = self._dependents.get(reference["uid"])
            if held is not None:
                held.pop(place, None)
                if not held:
                    del self._dependents[reference["uid"]]
                owner = self._living.get(reference["uid"])
                if gone and owner is not None:
                    self._work.add(f"{owner[0]} {owner[1]}")
        if gone:
            uid = entry.obj["metadata"]["uid"]
            self._living.pop(uid, None)
            for where, key in self._dependents.get(uid, ()):
                self._work.add(f"{where} {key}")
            if "namespace" in entry.obj["metadata"]:
                self._check_namespace(entry.obj["metadata"]["namespace"])

    def _sync(self, place: str) -> float | None:
        """Delete an object if none of its owners exists; release it if it waits for its dependents."""
        table, _, key = place.partition(" ")
        found = self._found((table, key))
        if found is None:
            return None
        resource, entry = found
        if _waits_for_dependents(entry.obj):
            self._release(resource, entry)
            return None
        references = entry.obj["metadata"].get("ownerReferences") or ()
        if references and not any(one["uid"] in self._living for one in references):
            self._store.delete_if_there(resource, entry.obj, propagation="Background")
        return None

    def _release(self, resource: Resource, entry: Entry) -> None:
        """Orphan or delete the dependents of a deleted owner, then remove the finalizer that made it wait for them.

        A dependent that another living object owns too is left alone. The owner waits only for those that block it.
        """
        uid = entry.obj["metadata"]["uid"]
        dependents = [found for place in list(self._dependents.get(uid, ())) if (found := self._found(place)) is not None]
        if ORPHAN in (entry.obj["metadata"].get("finalizers") or ()):
            for kind, dependent in dependents:
                kept = [one for one in dependent.obj["metadata"]["ownerReferences"] if one["uid"] != uid]
                self._patch_metadata(kind, dependent, "ownerReferences", kept)
            self._remove_finalizer(resource, entry, ORPHAN)
            return
        blocking = False
        for kind, dependent in dependents:
            references = dependent.obj["metadata"].get("ownerReferences") or ()
            if any(one["uid"] in self._living and one["uid"] != uid for one in references):
                continue
            blocking = blocking or any(one["uid"] == uid and one.get("blockOwnerDeletion") for one in references)
            if "deletionTimestamp" not in dependent.obj["metadata"]:
                self._store.delete_if_there(kind, dependent.obj, propagation="Foreground")
        if not blocking or not self._dependents.get(uid):
            self._remove_finalizer(resource, entry, FOREGROUND)

    def _remove_finalizer(self, resource: Resource, entry: Entry, finalizer: str) -> None:
        current = self._store.context.table(resource).entries.get(entry.key)
        if current is not None:
            kept = [one for one in current.obj["metadata"].get("finalizers") or () if one != finalizer]
            self._patch_metadata(resource, current, "finalizers", kept)

    def _patch_metadata(self, resource: Resource, entry: Entry, field: str, kept: list[Object] | list[str]) -> None:
        name, body = entry.obj["metadata"]["name"], {"metadata": {field: kept or None}}
        self._store.patch(resource, name, body, entry.namespace, patch_type=MERGE_PATCH)

    def _found(self, place: tuple[str, str]) -> tuple[Resource, Entry] | None:
        """Return the object at a place, and its resource; None if either is gone."""
        entry = self._store.context.storage.table(place[0]).entries.get(place[1])
        resource = self._store.context.catalogue.stored_in(place[0])
        return None if entry is None or resource is None else (resource, entry)

    # --- namespaces

    def _namespace_changed(self, change: Change) -> None:
        if change.new is not None and "deletionTimestamp" in change.new.obj["metadata"]:
            self._namespace_work.add(change.key)

    def _check_namespace(self, name: str) -> None:
        """Queue a namespace that is being deleted, for it may be empty now."""
        entry = self._store.context.storage.table("namespaces").entries.get(name)
        if entry is not None and "deletionTimestamp" in entry.obj["metadata"]:
            self._namespace_work.add(name)

    def _sync_namespace(self, name: str) -> float | None:
        """Delete what is left in a deleted namespace. Once it is empty, finalize it."""
        namespace = self._store.get("namespaces", name)
        if "deletionTimestamp" not in namespace["metadata"]:
            return None
        left = 0
        for resource in [*self._resources(), self._store.context.resource("events")]:
            if not resource.namespaced:
                continue
            table = self._store.context.table(resource)
            for entry in table.in_namespace(name):
                if "deletionTimestamp" not in entry.obj["metadata"]:
                    self._store.delete_if_there(resource, entry.obj, propagation="Background")
            left += len(table.in_namespace(name))
        if left:
            return 1.0
        finalize_namespace(self._store.context, name, [], WriteOptions())
        return None


def _waits_for_dependents(obj: Object) -> bool:
    """Return whether a deleted object waits until its dependents are deleted or orphaned."""
    finalizers = obj["metadata"].get("finalizers") or ()
    return "deletionTimestamp" in obj["metadata"] and (FOREGROUND in finalizers or ORPHAN in finalizers)
