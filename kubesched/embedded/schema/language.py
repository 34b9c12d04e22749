"""The notation in which the tables write down the fields of the API, and its reader.

One paragraph per type: `Name: field#1 type rule rule, field#2! type, ...`. The number is the field's number in protobuf,
several of them with dots when the field stands inside messages that JSON inlines. The mark `!` means required. A `*` after
the name marks a kind: it has `apiVersion`, `kind` and `metadata#1` too. `...Other#1` stands for all fields of another type, in
a message of that number that JSON inlines. A type is

    str int num bool time microtime quantity intstr bytes any     a value
    Name                                                          another paragraph
    {type}                                                        a map from strings
    [type]                                                        a list that is replaced as a whole
    [type|key,key]                                                a list merged by these fields of its items
    [type|set]                                                    a list merged as a set of values

A strategic merge patch uses the first key only, server-side apply all of them, as the API does. Rules say what is filled in
and what is refused (validation/rules.py has the messages):

    =value              the default, as JSON or as plain text
    if:field=A|B        the default is only for objects whose other field is one of these words
    needed              refused when it is not there or empty
    in:A|B|C            one of these words
    >=0 >0 >zero        a number's least value; `>0` and `>zero` differ in their message only
    1..65535            a number between these; with `?` at the end, or 0
    weight              a number from 1 to 100
    percent             a number from 0, or a percentage up to 100%
    is:dns-label        a name of this form: dns-label, dns-name or label-key
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from functools import cache, lru_cache

import msgspec

from kubesched.embedded.schema.tables import table

VALUES = frozenset(("str", "int", "num", "bool", "time", "microtime", "quantity", "intstr", "bytes", "any"))
# Kinds whose paragraph has another name, because two groups use the same one, or two versions differ.
_ROOT_NAMES = {
    ("events.k8s.io/v1", "Event"): "EventsEvent",
    ("scheduling.k8s.io/v1alpha2", "PodGroup"): "PodGroupV1alpha2",
    ("scheduling.k8s.io/v1alpha2", "Workload"): "WorkloadV1alpha2",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A type of the API: a value, an object with named fields, a map or a list."""

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
    default: str = ""  # JSON, or "" for none
    default_if: tuple[str, tuple[str, ...]] = ("", ())  # another field, and the values with which the default is filled in
    rules: tuple[str, ...] = ()


ANY = Shape("any")


@cache
def _paragraphs() -> dict[str, str]:
    """Return the fields of every type, as they are written in the tables."""
    found = {}
    for file in ("pod", "workload", "cluster", "policy"):
        for name, body in table(file).items():
            is_kind = name.endswith("*")
            found[name.rstrip("*")] = f"apiVersion str, kind str, metadata#1 ObjectMeta, {body}" if is_kind else body
    return found


_objects: dict[str, Shape] = {}


def shape_named(name: str) -> Shape:
    """Return the shape of a type. A type that contains itself refers to the same shape."""
    shape = _objects.get(name)
    if shape is None:
        fields: dict[str, Field] = {}
        shape = _objects[name] = Shape("object", name, fields)
        for part in re.split(r", (?![^\[]*\])", _paragraphs()[name]):
            label, _, written = part.partition(" ")
            plain, _, number = label.rstrip("!").partition("#")
            numbers = tuple(int(one) for one in number.split(".")) if number else ()
            if plain.startswith("..."):
                for one in shape_named(plain[3:]).fields.values():
                    fields[one.name] = dataclasses.replace(one, numbers=numbers + one.numbers)
                continue
            kind, *rules = written.split()
            default = next((_json(rule[1:]) for rule in rules if rule.startswith("=")), "")
            other, _, words = next((rule[3:] for rule in rules if rule.startswith("if:")), "").partition("=")
            kept = tuple(rule for rule in rules if not rule.startswith(("=", "if:")))
            condition = (other, tuple(words.split("|")))
            fields[plain] = Field(plain, _read(kind), label.endswith("!"), numbers, default, condition, kept)
    return shape


def _json(text: str) -> str:
    """Return a default as JSON; a word that is not JSON is a text."""
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return msgspec.json.encode(text).decode()
    return text


@lru_cache(maxsize=512)
def root_shape(api_version: str, kind: str) -> Shape | None:
    """Return the shape of a built-in kind; None for one without a table."""
    name = _ROOT_NAMES.get((api_version, kind), kind)
    return shape_named(name) if name in _paragraphs() else None


def _read(written: str) -> Shape:
    """Return the shape that a type's notation describes."""
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
