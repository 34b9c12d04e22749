"""The identity of an object: name, namespace, uid, creation time and generation, which the server sets.

In: an object as a client sent it. Out: the same object, in place, with its identity set or taken over from the stored one.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable

from kubesched.embedded.api_errors import Undecoded, bad_request, invalid
from kubesched.embedded.clock import timestamp
from kubesched.embedded.schema.resources import Object, Resource
from kubesched.embedded.validation import field
from kubesched.embedded.validation.field import Cause
from kubesched.embedded.validation.naming import dns_label_faults, dns_subdomain_faults

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # no vowels and no look-alikes, so no words come out
_PATH_NAMES = frozenset(
    f"{plural}.rbac.authorization.k8s.io" for plural in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
)
_GENERATED_BASE = 58  # 63 characters of a label, less the five random ones
_GENERATED_TRIES = 8  # as in kube-apiserver
# Not settable by a client on update: what the stored object says stays.
_SERVER_OWNED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


def suffix(rng: random.Random) -> str:
    """Return the five random letters that end a generated name."""
    return "".join(rng.choices(_LETTERS, k=5))


def new_uid(rng: random.Random) -> str:
    """Return a random uid, of version 4; from a seeded generator it is the same in every run."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def check_type(obj: Object, resource: Resource) -> None:
    """Refuse an object of another kind or version than the path is for; fill in what is left out."""
    if not isinstance(obj, dict):
        raise bad_request(f"{resource.kind}: not an object")
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if api_version not in (None, "", resource.api_version):
        raise Undecoded(resource, f"the API version in the data ({api_version}) is not {resource.api_version}")
    if kind not in (None, "", resource.kind):
        raise Undecoded(resource, f"the kind in the data is {kind}")
    obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    if not isinstance(obj["metadata"], dict):
        raise Undecoded(resource, "metadata is not an object")


def place(obj: Object, resource: Resource, namespace: str) -> None:
    """Put the object into the namespace of the request; refuse one that names another."""
    metadata = obj["metadata"]
    if not resource.namespaced:
        metadata.pop("namespace", None)
        return
    if metadata.get("namespace") not in (None, "", namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = namespace


def name_new(obj: Object, resource: Resource, rng: random.Random, is_taken: Callable[[str], bool]) -> None:
    """Name a new object; generate the name if only a prefix is given.

    A generated name that is taken is generated again, up to eight times: among ten thousand names some meet.
    """
    metadata = obj["metadata"]
    if not metadata.get("name"):
        prefix = metadata.get("generateName")
        if not prefix:
            raise invalid(resource, "", [field.required("metadata.name", "name or generateName is required")])
        for _ in range(_GENERATED_TRIES):
            metadata["name"] = prefix[:_GENERATED_BASE] + suffix(rng)
            if not is_taken(metadata["name"]):
                break
    causes = name_problems(metadata["name"], resource)
    if metadata.get("generateName"):
        # What is generated from may end in a dash, which a name may not.
        causes += name_problems(metadata["generateName"].removesuffix("-"), resource, "metadata.generateName")
    if causes:
        raise invalid(resource, metadata["name"], causes)


def name_problems(name: str, resource: Resource, path: str = "metadata.name") -> list[Cause]:
    """Return what is wrong with a name. Roles and role bindings may have any name that can stand in a path."""
    if resource.table in _PATH_NAMES:
        if name in (".", "..") or "/" in name or "%" in name:
            return [field.invalid(path, name, "may not be '.', '..' or contain '/' or '%'")]
        return []
    return field.invalid_each(path, name, dns_label_faults(name) if resource.names_are_labels else dns_subdomain_faults(name))


def begin(obj: Object, resource: Resource, now: float, rng: random.Random) -> None:
    """Set the fields that every new object gets from the server."""
    metadata = obj["metadata"]
    for one in ("resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(one, None)
    metadata["uid"] = new_uid(rng)
    metadata["creationTimestamp"] = timestamp(now)
    if resource.has_generation or resource.custom is not None:
        metadata["generation"] = 1


def carry_over(new: Object, old: Object) -> None:
    """Make `new` a later version of `old`: what only the server sets stays as it was."""
    metadata, before = new["metadata"], old["metadata"]
    for one in _SERVER_OWNED:
        if one in before:
            metadata[one] = before[one]
        else:
            metadata.pop(one, None)
    metadata["resourceVersion"] = before["resourceVersion"]
    metadata.pop("selfLink", None)
    metadata["name"] = before["name"]
    if "generateName" in before:
        metadata.setdefault("generateName", before["generateName"])
