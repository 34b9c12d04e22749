"""Deletion: grace periods, finalizers, propagation policies and preconditions.

In: an object to delete, and the options. Out: the object as it is now, and whether it is gone. A pod on a node is only marked;
its kubelet removes it. An object with finalizers waits for the controllers that put them there. The propagation policy becomes
a finalizer, which the garbage collector reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.embedded.admission import plugins as admission
from kubesched.embedded.api_errors import bad_request, conflict_of_kind, invalid_options
from kubesched.embedded.clock import timestamp
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.storage.watch import Entry
from kubesched.embedded.validation import field
from kubesched.embedded.verbs.context import Context, WriteOptions
from kubesched.embedded.verbs.patching import copied
from kubesched.embedded.verbs.reading import ListQuery, list_objects
from kubesched.embedded.verbs.writing import store

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_POLICIES = {"": "", "Background": "", "Foreground": FOREGROUND, "Orphan": ORPHAN}


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of a deletion. None and empty values mean the default of the object."""

    grace_seconds: int | None = None  # None: the pod's own
    uid: str = ""
    resource_version: str = ""
    propagation: str = ""  # Foreground, Background or Orphan
    dry_run: bool = False

    @classmethod
    def read(cls, body: Object) -> DeleteOptions:
        """Return the options of a DeleteOptions object; refuse values of the wrong type and policies that do not exist."""
        grace = body.get("gracePeriodSeconds")
        if grace is not None and (isinstance(grace, bool) or not isinstance(grace, int)):
            raise bad_request(f"DeleteOptions: gracePeriodSeconds: {grace!r} is not an integer")
        preconditions = body.get("preconditions") or {}
        if not isinstance(preconditions, dict):
            raise bad_request("DeleteOptions: preconditions is not an object")
        propagation = body.get("propagationPolicy") or ""
        causes = []
        if propagation not in _POLICIES:
            causes.append(field.not_supported("propagationPolicy", propagation, ("Foreground", "Background", "Orphan", "nil")))
        if body.get("orphanDependents") is not None:
            if propagation:
                text = "orphanDependents and deletionPropagation cannot be both set"
                causes.append(field.invalid("propagationPolicy", propagation, text))
            propagation = "Orphan" if body["orphanDependents"] else "Background"
        if causes:
            raise invalid_options("DeleteOptions", causes)
        return cls(
            grace,
            str(preconditions.get("uid") or ""),
            str(preconditions.get("resourceVersion") or ""),
            propagation,
            bool(body.get("dryRun")),
        )


@dataclass(frozen=True, slots=True)
class Deleted:
    """The result of a deletion: the object as it is or was, and whether it is gone."""

    entry: Entry
    is_gone: bool


def delete(context: Context, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> Deleted:
    """Delete an object, or mark it as being deleted."""
    entry = context.get(resource, namespace, name)
    metadata = entry.obj["metadata"]
    check_preconditions(resource, name, metadata, options)
    admission.check_deletable(resource, name)
    grace = _grace(resource, entry.obj, options)
    finalizers = _finalizers(metadata, options)
    if "deletionTimestamp" in metadata and grace >= metadata.get("deletionGracePeriodSeconds", 0) > 0:
        return Deleted(entry, False)  # it is being deleted already, and will be gone in time
    waits = bool(grace or finalizers or (resource.table == "namespaces" and entry.obj["spec"].get("finalizers")))
    if options.dry_run:
        return Deleted(entry, not waits)
    if not waits:
        gone = context.storage.remove(context.table(resource), entry.key)
        if resource.table == "pods":  # the answer has the time of deletion, although no watch sees it
            gone = Entry(gone.key, _marked(context, resource, gone.obj, 0, []), gone.version)
        return Deleted(gone, True)
    obj = _marked(context, resource, entry.obj, grace, finalizers)
    return Deleted(entry if obj == entry.obj else store(context, resource, entry.key, obj), False)


def check_preconditions(resource: Resource, name: str, metadata: Object, options: DeleteOptions) -> None:
    """Refuse with 409 if the object is not the one, or not in the version, that the options name."""
    if options.uid and options.uid != metadata["uid"]:
        why = f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
        raise conflict_of_kind(resource, name, why + "The object might have been deleted and then recreated")
    if options.resource_version and options.resource_version != metadata["resourceVersion"]:
        why = f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
        why += f"ResourceVersion in record ({metadata['resourceVersion']}). The object might have been modified"
        raise conflict_of_kind(resource, name, why)


def delete_collection(context: Context, resource: Resource, query: ListQuery, options: DeleteOptions) -> list[Entry]:
    """Delete every object that the query lists; return them as they were."""
    entries = list_objects(context, resource, query).entries
    for entry in entries:
        delete(context, resource, entry.namespace, entry.obj["metadata"]["name"], options)
    return entries


def _grace(resource: Resource, obj: Object, options: DeleteOptions) -> int:
    """Return the grace period in seconds. Only a pod that runs on a node has one; the pod's own is the default."""
    if resource.table != "pods":
        return 0
    spec, phase = obj["spec"], (obj.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    if options.grace_seconds is None:
        return int(spec.get("terminationGracePeriodSeconds", 30))
    return max(0, options.grace_seconds)


def _finalizers(metadata: Object, options: DeleteOptions) -> list[str]:
    """Return the finalizers of an object that is deleted with these options."""
    finalizers = list(metadata.get("finalizers") or ())
    if options.propagation:
        finalizers = [one for one in finalizers if one not in (FOREGROUND, ORPHAN)]
        if _POLICIES[options.propagation]:
            finalizers.append(_POLICIES[options.propagation])
    return finalizers


def _marked(context: Context, resource: Resource, before: Object, grace: int, finalizers: list[str]) -> Object:
    """Return the object with a deletionTimestamp. A second deletion can only make the grace period shorter."""
    obj: Object = copied(before)
    metadata = obj["metadata"]
    if finalizers:
        metadata["finalizers"] = finalizers
    is_first = "deletionTimestamp" not in metadata
    if is_first or grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionTimestamp"] = timestamp(context.clock.now() + grace)
        metadata["deletionGracePeriodSeconds"] = grace
        if is_first and "generation" in metadata:
            metadata["generation"] += 1
    if resource.table == "namespaces":
        metadata.pop("deletionGracePeriodSeconds", None)  # a namespace has no grace, not even none
        obj.setdefault("status", {})["phase"] = "Terminating"
    return obj


def finalize_namespace(context: Context, name: str, finalizers: list[str], options: WriteOptions) -> Entry:
    """Set the finalizers of a namespace's spec. A namespace that is being deleted and has none left is removed."""
    resource = context.resource("namespaces")
    entry = context.get(resource, "", name)
    obj: Object = copied(entry.obj)
    obj.setdefault("spec", {})["finalizers"] = finalizers
    if options.dry_run:
        return Entry(entry.key, obj, entry.version)
    if not finalizers and "deletionTimestamp" in obj["metadata"] and not obj["metadata"].get("finalizers"):
        return context.storage.remove(context.table(resource), entry.key)
    return store(context, resource, entry.key, obj)
