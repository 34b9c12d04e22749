"""The notation in which the types_*.py modules write down the fields of the API, and its reader.

One paragraph per type: `Name: field#1 type, field#2! type, ...`. The number is the field's number in protobuf, several
of them with dots when the field stands inside messages that JSON inlines. The mark `!` means required. A type is

    str int num bool time microtime quantity intstr bytes any     a value
    Name                                                          another paragraph
    {type}                                                        a map from strings
    [type]                                                        a list that is replaced as a whole
    [type|key,key]                                                a list merged by these fields of its items
    [type|set]                                                    a list merged as a set of values

A strategic merge patch uses the first key only, server-side apply all of them, as the API does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from kubesched.embedded.schema import types_cluster, types_pod, types_policy, types_workload

VALUES = frozenset(("str", "int", "num", "bool", "time", "microtime", "quantity", "intstr", "bytes", "any"))
# Kinds whose paragraph has another name, because two groups use the same one, or two versions differ.
_ROOT_NAMES = {
    ("events.k8s.io/v1", "Event"): "EventsEvent",
    ("scheduling.k8s.io/v1alpha2", "PodGroup"): "PodGroupV1alpha2",
    ("scheduling.k8s.io/v1alpha2", "Workload"): "WorkloadV1alpha2",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A type: a value, an object with named fields, a map or a list."""

    form: str  # one of VALUES, or object, map, list
    name: str = ""  # of an object
    fields: dict[str, Field] = field(default_factory=dict, compare=False)
    item: Shape | None = None  # of a map or a list
    keys: tuple[str, ...] = ()  # of a list merged by key
    is_set: bool = False
    is_open: bool = False  # an object that keeps fields it does not know

    @property
    def merge_key(self) -> str:
        return self.keys[0] if self.keys else ""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an object."""

    name: str
    shape: Shape
    required: bool = False
    numbers: tuple[int, ...] = ()  # in protobuf; none for fields of the kinds that are never sent so


ANY = Shape("any")


@cache
def _paragraphs() -> dict[str, str]:
    found = {}
    for text in (types_pod.TYPES, types_workload.TYPES, types_cluster.TYPES, types_policy.TYPES):
        for paragraph in re.split(r"\n(?=\S)", text.strip()):
            name, _, body = paragraph.partition(":")
            found[name] = " ".join(body.split())
    return found


_objects: dict[str, Shape] = {}


def shape_named(name: str) -> Shape:
    """Return the shape of a paragraph; a type that contains itself is the same shape again."""
    shape = _objects.get(name)
    if shape is None:
        fields: dict[str, Field] = {}
        shape = _objects[name] = Shape("object", name, fields)
        for part in re.split(r", (?![^\[]*\])", _paragraphs()[name]):
            label, _, written = part.strip().partition(" ")
            plain, _, number = label.rstrip("!").partition("#")
            numbers = tuple(int(one) for one in number.split(".")) if number else ()
            fields[plain] = Field(plain, _read(written), label.endswith("!"), numbers)
    return shape


def root_shape(api_version: str, kind: str) -> Shape | None:
    """Return the shape of a built-in kind, or None for one we have no fields of."""
    name = _ROOT_NAMES.get((api_version, kind), kind)
    return shape_named(name) if name in _paragraphs() else None


def _read(written: str) -> Shape:
    if written in VALUES:
        return Shape(written)
    if written.startswith("{"):
        return Shape("map", item=_read(written[1:-1]))
    if written.startswith("["):
        inner, _, keys = written[1:-1].partition("|")
        if keys == "set":
            return Shape("list", item=_read(inner), is_set=True)
        return Shape("list", item=_read(inner), keys=tuple(keys.split(",")) if keys else ())
    return shape_named(written)
