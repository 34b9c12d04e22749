"""The garbage collector and the end of namespaces: what depends on something that is gone goes too.

In: owner references, deletions, the finalizers that deletion options leave. Out: dependents deleted in the background
or before their owner, or left behind as orphans; everything in a deleted namespace deleted, then the namespace.
"""

from __future__ import annotations

from kubesched.embedded.controllers.shared.context import ControllerContext
from kubesched.embedded.controllers.shared.controller import Workers
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.storage.watch import Change, Entry
from kubesched.embedded.verbs.context import Asked
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
        for resource in self._resources():
            for entry in self._store.context.table(resource).entries.values():
                self._learn(resource.table, entry)
        self._store.context.storage.listen_to_all(self._changed)
        self._store.listen("namespaces", self._namespace_changed)
        for namespace in self._store.list("namespaces").items:
            if "deletionTimestamp" in namespace["metadata"]:
                self._namespace_work.add(namespace["metadata"]["name"])

    def _resources(self) -> list[Resource]:
        return [
            one for one in self._store.context.catalogue.stored() if "delete" in one.verbs and one.table not in _NOT_COLLECTED
        ]

    def _learn(self, table: str, entry: Entry) -> None:
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
        name, _, key = place.partition(" ")
        entry = self._store.context.storage.table(name).entries.get(key)
        resource = self._store.context.catalogue.stored_in(name)
        if entry is None or resource is None:
            return None
        metadata = entry.obj["metadata"]
        if _waits_for_dependents(entry.obj):
            self._release(resource, entry)
            return None
        references = metadata.get("ownerReferences") or ()
        if references and not any(one["uid"] in self._living for one in references):
            self._delete(resource, entry, "Background")
        return None

    def _release(self, resource: Resource, entry: Entry) -> None:
        """Deal with the dependents of an owner that waits for them, then let it go."""
        metadata = entry.obj["metadata"]
        finalizers = metadata.get("finalizers") or []
        places = list(self._dependents.get(metadata["uid"], ()))
        if ORPHAN in finalizers:
            for place in places:
                self._orphan(place, metadata["uid"])
            self._remove_finalizer(resource, entry, ORPHAN)
            return
        blocking = False
        for table, key in places:
            dependent = self._store.context.storage.table(table).entries.get(key)
            kind = self._store.context.catalogue.stored_in(table)
            if dependent is None or kind is None:
                continue
            references = dependent.obj["metadata"].get("ownerReferences") or ()
            if any(one["uid"] in self._living and one["uid"] != metadata["uid"] for one in references):
                continue
            blocking = blocking or any(one["uid"] == metadata["uid"] and one.get("blockOwnerDeletion") for one in references)
            if "deletionTimestamp" not in dependent.obj["metadata"]:
                self._delete(kind, dependent, "Foreground")
        if not blocking or not self._dependents.get(metadata["uid"]):
            self._remove_finalizer(resource, entry, FOREGROUND)

    def _orphan(self, place: tuple[str, str], owner_uid: str) -> None:
        entry = self._store.context.storage.table(place[0]).entries.get(place[1])
        resource = self._store.context.catalogue.stored_in(place[0])
        if entry is None or resource is None:
            return
        kept = [one for one in entry.obj["metadata"]["ownerReferences"] if one["uid"] != owner_uid]
        self._patch(resource, entry, {"metadata": {"ownerReferences": kept or None}})

    def _remove_finalizer(self, resource: Resource, entry: Entry, finalizer: str) -> None:
        current = self._store.context.table(resource).entries.get(entry.key)
        if current is not None:
            kept = [one for one in current.obj["metadata"].get("finalizers") or () if one != finalizer]
            self._patch(resource, current, {"metadata": {"finalizers": kept or None}})

    def _patch(self, resource: Resource, entry: Entry, body: Object) -> None:
        name = entry.obj["metadata"]["name"]
        self._store.patch(resource, name, body, entry.namespace, patch_type=MERGE_PATCH)

    def _delete(self, resource: Resource, entry: Entry, propagation: str) -> None:
        self._store.delete_if_there(resource, entry.obj, propagation=propagation)

    # --- namespaces

    def _namespace_changed(self, change: Change) -> None:
        if change.new is not None and "deletionTimestamp" in change.new.obj["metadata"]:
            self._namespace_work.add(change.key)

    def _check_namespace(self, name: str) -> None:
        entry = self._store.context.storage.table("namespaces").entries.get(name)
        if entry is not None and "deletionTimestamp" in entry.obj["metadata"]:
            self._namespace_work.add(name)

    def _sync_namespace(self, name: str) -> float | None:
        namespace = self._store.get("namespaces", name)
        if "deletionTimestamp" not in namespace["metadata"]:
            return None
        left = 0
        for resource in [*self._resources(), self._store.context.resource("events")]:
            if not resource.namespaced:
                continue
            for entry in self._store.context.table(resource).in_namespace(name):
                if "deletionTimestamp" not in entry.obj["metadata"]:
                    self._delete(resource, entry, "Background")
            left += len(self._store.context.table(resource).in_namespace(name))
        if left:
            return 1.0
        finalize_namespace(self._store.context, name, [], Asked())
        return None


def _waits_for_dependents(obj: Object) -> bool:
    finalizers = obj["metadata"].get("finalizers") or ()
    return "deletionTimestamp" in obj["metadata"] and (FOREGROUND in finalizers or ORPHAN in finalizers)
