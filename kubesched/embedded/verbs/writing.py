"""Writing: create, update, patch and server-side apply, in the order in which kube-apiserver takes the steps.

    decode and drop unknown fields (settled)  >  identity  >  defaults  >  admission that changes  >  validation
    >  admission that only refuses  >  store

In: a target, an object or a patch, and the options. Out: the entry that is stored now, or an `ApiError`. An update that
changes nothing writes nothing and returns the old entry.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from kubesched.embedded.admission import defaults
from kubesched.embedded.admission import plugins as admission
from kubesched.embedded.api_errors import (
    Undecoded,
    already_exists,
    bad_request,
    conflict,
    invalid,
    invalid_options,
    modified,
    not_found,
    unfit_patch,
    unsupported_media_type,
)
from kubesched.embedded.schema import custom_resources
from kubesched.embedded.schema.checking import Undecodable, settle
from kubesched.embedded.schema.resources import ADMISSION_GROUP, AGGREGATION_GROUP, Object, Resource
from kubesched.embedded.storage.watch import Entry
from kubesched.embedded.validation import field
from kubesched.embedded.validation import objects as validation
from kubesched.embedded.verbs import identity, server_side_apply
from kubesched.embedded.verbs.context import Context, Target, WriteOptions, key_of
from kubesched.embedded.verbs.conversion import from_storage, to_storage
from kubesched.embedded.verbs.patching import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    copied,
    json_patch,
    merge,
    strategic_merge,
)

_RESIZABLE = ("resources", "resizePolicy")


def create(context: Context, target: Target, obj: Object, options: WriteOptions) -> Entry:
    """Store a new object; the caller gives it away."""
    resource = target.resource
    identity.check_type(obj, resource)
    if obj["metadata"].get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    obj = settled(context, resource, obj, options)
    namespace = target.namespace or (obj["metadata"].get("namespace") or "" if resource.namespaced else "")
    if resource.namespaced and not namespace:
        raise bad_request("an empty namespace may not be set during creation")
    identity.place(obj, resource, namespace)
    table = context.table(resource)
    identity.name_new(obj, resource, context.rng, lambda name: key_of(resource, namespace, name) in table.entries)
    name = obj["metadata"]["name"]
    admission.check_namespace(context, resource, namespace, name)
    key = key_of(resource, namespace, name)
    identity.begin(obj, resource, context.clock.now(), context.rng)
    if not options.is_apply:
        obj["metadata"].pop("managedFields", None)
    if resource.has_status and not resource.keeps_status_on_create:
        obj.pop("status", None)
    defaults.fill(obj, resource)
    admission.admit_new(context, resource, obj)
    validation.check_new(resource, obj)
    admission.check_new(context, resource, obj)
    if key in table.entries:
        raise already_exists(resource, name)
    _warn(resource, options)
    if resource.table == custom_resources.TABLE and custom_resources.has_expressions(obj["spec"]):
        options.warnings.append("x-kubernetes-validations: expressions are not evaluated by this server")
    if options.dry_run:
        obj["metadata"].pop("resourceVersion", None)
        return Entry(key, obj, context.storage.version)
    return store(context, resource, key, obj)


def _warn(resource: Resource, options: WriteOptions) -> None:
    """Warn of kinds that are stored here and would act on a real cluster."""
    if resource.group == ADMISSION_GROUP:
        options.warnings.append(f"{resource.kind}: admission webhooks and policies are kept, and not called by this server")
    elif resource.group == AGGREGATION_GROUP:
        options.warnings.append("APIService: requests are not passed on to extension servers by this server")
    elif resource.table == "horizontalpodautoscalers.autoscaling":
        options.warnings.append("HorizontalPodAutoscaler: nothing is scaled by it on this server")


def update(context: Context, target: Target, obj: Object, options: WriteOptions) -> Entry:
    """Replace an object, or the part of it that the subresource is about; the caller gives the object away."""
    resource, name = target.resource, target.name
    identity.check_type(obj, resource)
    _check_name(obj, name)
    obj = settled(context, resource, part_written(resource, obj, target.subresource), options)
    identity.place(obj, resource, target.namespace)
    old = context.find(resource, target.namespace, name)
    if old is None:
        if not resource.creates_on_update or target.subresource:
            raise not_found(resource, name)
        obj["metadata"].pop("resourceVersion", None)
        return create(context, target, obj, options)
    if resource.needs_version_on_update and not obj["metadata"].get("resourceVersion"):
        cause = field.invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(dataclasses.replace(resource, kind=resource.plural), name, [cause])
    return replace(context, target, old, obj, options)


def _check_name(obj: Object, name: str) -> None:
    """Refuse an object whose name is not that of the path."""
    given = obj["metadata"].get("name")
    if not given:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def patch(context: Context, target: Target, body: Any, patch_type: str, options: WriteOptions) -> Entry:
    """Change an object by a patch of one of the four types."""
    resource = target.resource
    old = context.find(resource, target.namespace, target.name)
    if patch_type == APPLY_PATCH:
        return _apply(context, target, body, old, options)
    if old is None:
        raise not_found(resource, target.name)
    before = from_storage(old.obj, resource)
    if patch_type == JSON_PATCH:
        after = json_patch(before, body)
    elif patch_type == MERGE_PATCH:
        if not isinstance(body, dict):
            raise bad_request("error decoding patch: a merge patch is an object")
        after = merge(before, body)
    elif patch_type == STRATEGIC_PATCH:
        if resource.custom is not None:
            raise unsupported_media_type(patch_type, (JSON_PATCH, MERGE_PATCH, APPLY_PATCH))
        after = strategic_merge(before, body, custom_resources.shape_of(resource))
    else:
        raise unsupported_media_type(patch_type, (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH))
    return _store_patched(context, target, old, after, options)


def _store_patched(context: Context, target: Target, old: Entry, after: Any, options: WriteOptions) -> Entry:
    """Store the result of a patch. What makes it undecodable is the patch's fault, so the refusal is another one."""
    resource = target.resource
    if not isinstance(after, dict):
        raise bad_request(f"{resource.kind}: the patch leaves no object")
    # The merges share what they do not change with the stored object.
    after = copied(part_written(resource, after, target.subresource))
    try:
        identity.check_type(after, resource)
        _check_name(after, target.name)
        after = settled(context, resource, after, options)
    except Undecoded as error:
        # The object that came out is the patch's fault.
        raise unfit_patch(str(error)) from error
    identity.place(after, resource, old.namespace)
    uid = after["metadata"].get("uid")
    if uid and uid != old.obj["metadata"]["uid"]:
        raise invalid(resource, target.name, [field.invalid("metadata.uid", uid, "field is immutable")])
    return replace(context, target, old, after, options)


def _apply(context: Context, target: Target, body: Any, old: Entry | None, options: WriteOptions) -> Entry:
    """Apply the fields of `body` for their manager; create the object if there is none."""
    resource, name = target.resource, target.name
    if not options.manager:
        raise invalid_options("PatchOptions", [field.required("fieldManager", "is required for apply patch")])
    if not isinstance(body, dict):
        raise bad_request("error decoding patch: an apply patch is an object")
    if not body.get("apiVersion") or not body.get("kind"):
        raise bad_request(f"invalid object type: {body.get('apiVersion') or '/'}, Kind={body.get('kind') or ''}")
    body, options.is_apply = copied(body), True
    identity.check_type(body, resource)
    if body["metadata"].get("name") not in (None, "", name):
        given = body["metadata"]["name"]
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    if body["metadata"].get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    body["metadata"]["name"] = name
    n_warned = len(options.warnings)
    body = settled(context, resource, body, options)
    if len(options.warnings) > n_warned:  # an unknown field cannot have an owner
        fields = ", ".join(options.warnings[n_warned:])
        raise bad_request(f"failed to create typed patch object ({target.namespace}/{name}; {resource.api_version}): {fields}")
    now = context.clock.now()
    if old is None:
        if target.subresource:
            raise not_found(resource, name)
        if body["metadata"].get("uid"):
            why = f"uid mismatch: the provided object specified uid {body['metadata']['uid']}, and no existing object was found"
            raise conflict(resource, name, why)
        wanted = server_side_apply.first_apply(resource, body, options.manager, now)
        return create(context, target, wanted, options)
    after = server_side_apply.apply(resource, old.obj, body, options, target.subresource, now)
    return _store_patched(context, target, old, after, options)


def replace(context: Context, target: Target, old: Entry, new: Object, options: WriteOptions) -> Entry:
    """Store `new` in place of `old`, as far as the subresource lets it.

    `new` is settled and in the storage version. Whether its resourceVersion and uid match is checked first, then what the
    subresource may not change is taken from `old`.
    """
    resource, subresource = target.resource, target.subresource
    before, name = old.obj, old.obj["metadata"]["name"]
    wanted_version = new["metadata"].get("resourceVersion")
    if wanted_version and wanted_version != before["metadata"]["resourceVersion"]:
        raise modified(resource, name)
    uid = new["metadata"].get("uid")
    if uid and uid != before["metadata"]["uid"]:
        held = before["metadata"]["uid"]
        raise conflict(resource, name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {held}")
    managed = new["metadata"].get("managedFields")
    identity.carry_over(new, before)
    new = _part(resource, before, new, subresource)
    # What a node offers has a default in its status.
    if subresource in ("", "ephemeralcontainers") or resource.table == "nodes":
        defaults.fill(new, resource)
    admission.admit_changed(context, resource, new, before, subresource)
    validation.check_changed(resource, new, before, subresource)
    admission.check_changed(context, resource, new, before, subresource)
    if "generation" in before["metadata"] and subresource != "status" and _is_new_generation(new, before):
        new["metadata"]["generation"] = before["metadata"]["generation"] + 1
    if not options.is_apply:
        server_side_apply.note_update(resource, before, new, managed, options.manager, subresource, context.clock.now())
    if new == before:
        return old
    if options.dry_run:
        return Entry(old.key, new, old.version)
    if is_finally_gone(resource, new):  # it goes as it was: no watch sees it without its finalizers
        context.storage.remove(context.table(resource), old.key)
        return Entry(old.key, new, old.version)
    return store(context, resource, old.key, new)


def settled(context: Context, resource: Resource, obj: Object, options: WriteOptions) -> Object:
    """Return `obj` in the storage version without unknown fields; refuse what cannot be decoded."""
    try:
        unknown = settle(obj, custom_resources.shape_of(resource))
    except Undecodable as error:
        raise Undecoded(resource, str(error)) from error
    except RecursionError:
        raise Undecoded(resource, "the object is nested too deeply") from None
    if unknown and options.field_validation != "Ignore":
        texts = [f'unknown field "{path}"' for path in unknown]
        if options.field_validation == "Strict":
            raise Undecoded(resource, "strict decoding error: " + ", ".join(texts))
        options.warnings.extend(texts)
    stored = context.catalogue.stored_in(resource.table)
    return to_storage(obj, resource, stored) if stored is not None else obj


def store(context: Context, resource: Resource, key: str, obj: Object) -> Entry:
    """Write an object, and use the occasion to remove Events that have expired."""
    entry = context.storage.write(context.table(resource), key, obj)
    context.events.remove_expired()
    return entry


def is_finally_gone(resource: Resource, obj: Object) -> bool:
    """Return whether a deleted object has nothing left to wait for: no finalizer and no grace."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if resource.table == "namespaces" and (obj.get("spec") or {}).get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def _part(resource: Resource, before: Object, new: Object, subresource: str) -> Object:
    """Return what a write through this subresource stores: some parts of `new`, the rest of the stored object.

    The main resource cannot write the status, `status` nothing else, `resize` only amounts, `ephemeralcontainers` only those.
    """
    if subresource == "status":
        if resource.custom is not None:
            kept: Object = copied(before)
        else:
            kept = {key: value for key, value in before.items() if key not in ("metadata", "status")}
            kept["metadata"] = new["metadata"]
        if "status" in new:
            kept["status"] = new["status"]
        else:
            kept.pop("status", None)
        return kept
    if subresource == "resize":
        return {**before, "metadata": new["metadata"], "spec": _resized(before["spec"], new["spec"])}
    if subresource == "ephemeralcontainers":
        added = {key: new["spec"][key] for key in ("ephemeralContainers",) if key in (new.get("spec") or {})}
        kept_spec = {key: value for key, value in before["spec"].items() if key != "ephemeralContainers"}
        return {**before, "metadata": new["metadata"], "spec": {**kept_spec, **added}}
    if resource.has_status:
        if "status" in before:
            new["status"] = before["status"]
        else:
            new.pop("status", None)
    return new


def _resized(before: Object, new: Object) -> Object:
    """Return a pod's spec with the new amounts and resize policies, and everything else as it was."""
    spec = {**before, **{key: new[key] for key in ("resources",) if key in new}}
    for group in ("containers", "initContainers"):
        if group in before:
            wanted = {one.get("name"): one for one in new.get(group) or ()}
            spec[group] = [
                {**one, **{key: value for key, value in wanted.get(one["name"], {}).items() if key in _RESIZABLE}}
                for one in before[group]
            ]
    return spec


def part_written(resource: Resource, obj: Object, subresource: str) -> Object:
    """Return the fields that a write through this subresource can change; the others need no decoding."""
    if subresource != "status" or resource.custom is not None:
        return obj
    return {key: value for key, value in obj.items() if key in ("apiVersion", "kind", "metadata", "status")}


def _is_new_generation(new: Object, before: Object) -> bool:
    """Return whether anything but metadata and status has changed: this is what the generation counts."""
    names = (new.keys() | before.keys()) - {"metadata", "status", "apiVersion", "kind"}
    return any(new.get(name) != before.get(name) for name in names)
