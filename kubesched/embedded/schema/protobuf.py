"""Reading protobuf: the form in which kubectl and kube-scheduler send objects of built-in kinds.

In: the bytes of a body; its envelope names the kind. Out: the object as it would be in JSON. Protobuf is only read: answers
are JSON, which every client accepts. The field numbers stand in the tables.

A message is a list of fields, each with a number, a wire type and a value. For example `0a 03 77 65 62` is field 1 (0a = 1 <<
3 | 2), wire type 2 (bytes), 3 bytes long: "web".
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from kubesched.embedded.clock import timestamp
from kubesched.embedded.schema.language import Shape, root_shape
from kubesched.embedded.schema.resources import Object

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
MAX_DEPTH = 100
_NOTHING: tuple[Any, ...] = (None, "", 0, False)
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# Protobuf writes plain fields even when they are zero, JSON leaves those out, and defaults look for what is left out.
# Only for these does zero, false or "" say something that silence does not.
_ZERO_SPEAKS = frozenset(
    (
        *("activeDeadlineSeconds", "backoffLimit", "completions", "defaultMode", "fsGroup", "gracePeriodSeconds"),
        *("leaseTransitions", "minAvailable", "maxUnavailable", "maxSurge", "mode", "parallelism", "partition"),
        *("priority", "progressDeadlineSeconds", "replicas", "revisionHistoryLimit", "runAsGroup", "runAsUser"),
        *("terminationGracePeriodSeconds", "tolerationSeconds", "ttlSecondsAfterFinished", "value", "revision"),
        *("allowPrivilegeEscalation", "allowVolumeExpansion", "attachRequired", "automountServiceAccountToken"),
        *("blockOwnerDeletion", "controller", "enableServiceLinks", "hostUsers", "podInfoOnMount", "privileged"),
        *("publishNotReadyAddresses", "ready", "requiresRepublish", "runAsNonRoot", "seLinuxMount", "serving"),
        *("started", "storageCapacity", "storageClassName", "suspend", "allowed", "served", "storage"),
    )
)

Place = tuple[str, Shape] | dict[int, Any]


class Unreadable(Exception):
    """Bytes that are not an object this server can read."""


def decode(body: bytes) -> Object:
    """Return the object in a protobuf body."""
    if not body.startswith(MAGIC):
        raise Unreadable("the body does not begin with the magic number of Kubernetes protobuf")
    api_version = kind = ""
    raw = b""
    for number, value in _fields(memoryview(body)[4:]):
        if number == 1:
            for inner, text in _fields(_bytes(value)):
                if inner == 1:
                    api_version = _text(text)
                elif inner == 2:
                    kind = _text(text)
        elif number == 2:
            raw = bytes(_bytes(value))
    shape = root_shape(api_version, kind)
    if shape is None or not _has_numbers(shape):
        raise Unreadable(f"{api_version} {kind} cannot be read from protobuf; send JSON")
    obj = _message(memoryview(raw), shape, 0)
    obj["apiVersion"], obj["kind"] = api_version, kind
    return obj


def _has_numbers(shape: Shape) -> bool:
    return any(field.numbers for field in shape.fields.values())


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield field number and value: an integer, or the bytes of anything longer."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == _BYTES:
            length, at = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise Unreadable(f"unknown wire type {wire}")
        if at + length > end:
            raise Unreadable("the body ends in the middle of a field")
        yield number, data[at : at + length]
        at += length


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, the lowest first, and where it ends."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
    raise Unreadable("the body ends in the middle of a number")


@cache
def _places(shape_name: str, shape: Shape) -> dict[int, Place]:
    """Return name and shape of each field number of a type. A message that JSON inlines is a table of its own."""
    places: dict[int, Place] = {}
    for field in shape.fields.values():
        table = places
        for number in field.numbers[:-1]:
            inner = table.setdefault(number, {})
            assert isinstance(inner, dict)
            table = inner
        if field.numbers:
            table[field.numbers[-1]] = (field.name, field.shape)
    return places


def _message(data: memoryview, shape: Shape, depth: int) -> Object:
    """Return the object in a message."""
    if depth > MAX_DEPTH:
        raise Unreadable("the object is nested too deeply")
    obj: Object = {}
    _fill(obj, data, _places(shape.name, shape), depth)
    return obj


def _fill(obj: Object, data: memoryview, places: dict[int, Place], depth: int) -> None:
    """Read the fields of a message into an object, then drop zero values where zero and absent mean the same."""
    for number, value in _fields(data):
        place = places.get(number)
        if place is None:
            continue
        if isinstance(place, dict):
            _fill(obj, _bytes(value), place, depth)
            continue
        name, shape = place
        item = shape.item
        if shape.form == "list" and item is not None:
            obj.setdefault(name, []).append(_value(value, item, depth))
        elif shape.form == "map" and item is not None:
            key, held = _pair(_bytes(value), item, depth)
            obj.setdefault(name, {})[key] = held
        else:
            obj[name] = _value(value, shape, depth)
    for name in [name for name, value in obj.items() if value in _NOTHING and name not in _ZERO_SPEAKS]:
        del obj[name]


def _pair(data: memoryview, item: Shape, depth: int) -> tuple[str, Any]:
    """Return key and value of one entry of a map."""
    key, held = "", _value(memoryview(b""), item, depth) if item.form != "bool" else False
    for number, value in _fields(data):
        if number == 1:
            key = _text(value)
        elif number == 2:
            held = _value(value, item, depth)
    return key, held


def _value(value: int | memoryview, shape: Shape, depth: int) -> Any:
    """Return a value by the shape of its field."""
    form = shape.form
    if form == "str":
        return _text(value)
    if form == "object":
        return _message(_bytes(value), shape, depth + 1)
    if form == "int":
        return _signed(value)
    if form == "bool":
        return bool(value) if isinstance(value, int) else False
    if form in ("time", "microtime"):
        return _time(_bytes(value), form == "microtime")
    if form == "quantity":
        return next((_text(text) for number, text in _fields(_bytes(value)) if number == 1), "0")
    if form == "intstr":
        return _integer_or_text(_bytes(value))
    if form == "bytes":
        return base64.b64encode(_bytes(value)).decode()
    if form == "list" and shape.item is not None:  # a message that holds nothing but a list
        return [_value(one, shape.item, depth) for number, one in _fields(_bytes(value)) if number == 1]
    if form == "any":
        return _embedded(_bytes(value))
    raise Unreadable(f"a value of type {form} cannot be read from protobuf; send JSON")


def _time(data: memoryview, micro: bool) -> str | None:
    """Return a timestamp; the zero time means that there is none."""
    seconds = nanos = 0
    empty = True
    for number, value in _fields(data):
        empty = False
        if number == 1:
            seconds = _signed(value)
        elif number == 2:
            nanos = _signed(value)
    if empty or not -62_135_596_800 < seconds < 253_402_300_800:
        return None  # the zero time means that there is none
    text = timestamp(seconds)
    return f"{text[:-1]}.{nanos // 1000:06d}Z" if micro else text


def _integer_or_text(data: memoryview) -> int | str:
    is_text, number_held, text = False, 0, ""
    for number, value in _fields(data):
        if number == 1:
            is_text = value == 1
        elif number == 2:
            number_held = _signed(value)
        elif number == 3:
            text = _text(value)
    return text if is_text else number_held


def _embedded(data: memoryview) -> Any:
    """Return JSON that a message carries, as in RawExtension and FieldsV1."""
    for number, value in _fields(data):
        if number == 1:
            try:
                return msgspec.json.decode(_bytes(value))
            except msgspec.DecodeError as error:
                raise Unreadable(f"an embedded object is not JSON: {error}") from error
    return None


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise Unreadable("found a number where a message was expected")
    return value


def _text(value: int | memoryview) -> str:
    try:
        return bytes(_bytes(value)).decode()
    except UnicodeDecodeError as error:
        raise Unreadable("a text is not UTF-8") from error


def _signed(value: int | memoryview) -> int:
    if not isinstance(value, int):
        raise Unreadable("found a message where a number was expected")
    return value - (1 << 64) if value >= 1 << 63 else value
