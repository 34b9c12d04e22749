"""Objects that a question brings: read, checked, and given the identity that an API server would give them.

In: structs, or mappings as they stand in JSON and YAML. Out: structs. What cannot be used raises `BadObject`, with one line
that names the object and the field.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from kubesched.embedded.schema.checking import Undecodable, settle
from kubesched.embedded.schema.language import root_shape
from kubesched.embedded.verbs.patching import copied
from kubesched.errors import SchedulerError
from kubesched.kube.api import INFO, Node, Pod, TopLevel, codec, node_allocatable
from kubesched.kube.values import HOSTNAME
from kubesched.solver.errors import BadObject

T = TypeVar("T", bound=TopLevel)
Given = TopLevel | Mapping[str, Any]
"""An object as a struct or as a mapping."""

_OURS = uuid.UUID("6b756265-7363-6865-6400-000000000000")
_replace = msgspec.structs.replace


def object_of(given: Given) -> TopLevel:
    """Return an object of any kind; a mapping may not have fields that its kind does not have."""
    if isinstance(given, TopLevel):
        return given
    if not isinstance(given, Mapping):
        raise BadObject(f"an object is a struct or a mapping, not {type(given).__name__}")
    raw = copied(dict(given))
    kind, metadata = str(raw.get("kind") or "object"), raw.get("metadata")
    name = f"{kind.lower()} {metadata.get('name', '')}".rstrip() if isinstance(metadata, dict) else kind.lower()
    shape = root_shape(str(raw.get("apiVersion")), kind)
    try:
        unknown = settle(raw, shape) if shape is not None else []
    except Undecodable as error:
        raise BadObject(f"{name}: {error}") from error
    if unknown:
        raise BadObject(f"{name}: unknown field {unknown[0]}")
    try:
        return codec.decode(raw)
    except SchedulerError as error:
        raise BadObject(" ".join(str(error).split())) from error


def _of_kind(given: Given, type_: type[T]) -> T:
    if isinstance(given, Mapping) and ("kind" not in given or "apiVersion" not in given):
        given = {"apiVersion": "v1", "kind": INFO[type_].kind, **given}
    found = object_of(given)
    if not isinstance(found, type_):
        kind = INFO[type(found)].kind
        raise BadObject(f"{kind} {found.metadata.name}: kind: {INFO[type_].kind} is expected, not {kind}")
    return found


def pod_of(given: Given) -> Pod:
    """Return a pod that is to be placed: with a namespace and a uid, and on no node."""
    pod = _of_kind(given, Pod)
    meta = pod.metadata
    if not meta.name:
        raise BadObject("pod: metadata.name is missing")
    if not pod.spec.containers:
        raise BadObject(f"pod {meta.name}: spec.containers is empty")
    if not (meta.namespace and meta.uid):
        namespace = meta.namespace or "default"
        uid = meta.uid or uid_of("Pod", namespace, meta.name)
        pod = _replace(pod, metadata=_replace(meta, namespace=namespace, uid=uid))
    return pod


def unplaced(pod: Pod) -> Pod:
    """Return a pod as it was before it had a node."""
    if not pod.spec.node_name:
        return pod
    status = _replace(pod.status, phase="Pending", nominated_node_name="", start_time=None)
    return _replace(pod, spec=_replace(pod.spec, node_name=""), status=status)


def node_of(given: Given) -> Node:
    """Return a node; raise BadObject if it does not say what it offers."""
    node = _of_kind(given, Node)
    if not node.metadata.name:
        raise BadObject("node: metadata.name is missing")
    if not node.status.allocatable:
        raise BadObject(f"node {node.metadata.name}: status.allocatable is missing")
    try:
        node_allocatable(node)
    except SchedulerError as error:
        raise BadObject(f"node {node.metadata.name}: status.allocatable: {error}") from error
    return node


def numbered_node(template: Node, name: str) -> Node:
    """Return a node like a template under its own name, which is also its host name."""
    meta = template.metadata
    labels = {**(meta.labels or {}), HOSTNAME: name}
    return _replace(template, metadata=_replace(meta, name=name, uid=f"uid-{name}", labels=labels))


def uid_of(kind: str, namespace: str, name: str) -> str:
    """Return a uid that follows from the name, so that the same manifests are decided the same way every time."""
    return str(uuid.uuid5(_OURS, f"{kind}/{namespace}/{name}"))


def renamed(pod: Pod, name: str) -> Pod:
    """Return a pod under another name, with the uid that follows from it."""
    uid = uid_of("Pod", pod.metadata.namespace, name)
    return _replace(pod, metadata=_replace(pod.metadata, name=name, uid=uid))
