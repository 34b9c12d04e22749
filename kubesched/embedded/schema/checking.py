"""Decoding: an object is read by the shape of its kind; what the API would drop is dropped, what it could not decode is
refused.

In: an object as it came from JSON. Out: the same object, in place, without nulls and unknown fields, quantities in canonical
form; and the paths of the unknown fields, which the caller refuses, reports or ignores as the request says.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kubesched.embedded.clock import seconds_of
from kubesched.embedded.schema.language import Shape
from kubesched.embedded.schema.resources import Object
from kubesched.kube.values import QuantityError, quantity


class Undecodable(Exception):
    """A value of the wrong type."""

    def __init__(self, field: str, found: object, wanted: str) -> None:
        super().__init__(f"cannot unmarshal {_kind_of(found)} into field {field} of type {wanted}")
        self.field = field


def settle(obj: Object, shape: Shape) -> list[str]:
    """Bring `obj` into the form in which it is stored; return the paths of unknown fields."""
    unknown: list[str] = []
    _object(obj, shape, "", unknown)
    return unknown


def _object(obj: Any, shape: Shape, path: str, unknown: list[str]) -> None:
    """Settle an object. This runs for every field of every write, so texts, the most frequent values, are checked inline."""
    if not isinstance(obj, dict):
        raise Undecodable(path, obj, shape.name)
    fields = shape.fields
    for name in list(obj):
        value = obj[name]
        known = fields.get(name)
        if known is None:
            if shape.is_open:
                continue
            unknown.append(f"{path}.{name}" if path else name)
            del obj[name]
        elif value is None:
            del obj[name]
        elif known.shape.form == "str":  # by far the most frequent
            if not isinstance(value, str):
                raise Undecodable(f"{path}.{name}" if path else name, value, "string")
        elif known.shape.form != "any":
            replaced = _value(value, known.shape, f"{path}.{name}" if path else name, unknown)
            if replaced is not value:
                obj[name] = replaced


def _value(value: Any, shape: Shape, path: str, unknown: list[str]) -> Any:
    """Settle a value and return it, or what replaces it."""
    form = shape.form
    if form == "object":
        _object(value, shape, path, unknown)
    elif form == "list":
        if not isinstance(value, list):
            raise Undecodable(path, value, "list")
        item = shape.item
        assert item is not None
        if item.form == "object":
            for at, one in enumerate(value):
                _object(one, item, f"{path}[{at}]", unknown)
        else:
            for at, one in enumerate(value):
                value[at] = _value(one, item, f"{path}[{at}]", unknown)
    elif form == "map":
        if not isinstance(value, dict):
            raise Undecodable(path, value, "map")
        item = shape.item
        assert item is not None
        for key in list(value):
            if value[key] is None and item.form in ("str", "quantity"):
                value[key] = "" if item.form == "str" else "0"
            else:
                value[key] = _value(value[key], item, f"{path}.{key}", unknown)
    else:
        return _VALUE_READERS[form](value, path)
    return value


def _of_type(types: type | tuple[type, ...], wanted: str) -> Callable[[Any, str], Any]:
    """Return the reader of values that JSON has itself. A boolean is no number, although Python counts it as one."""

    def read(value: Any, path: str) -> Any:
        if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
            raise Undecodable(path, value, wanted)
        return value

    return read


_text = _of_type(str, "string")


def _bytes(value: Any, path: str) -> Any:
    try:
        base64.b64decode(_text(value, path), validate=True)
    except ValueError:
        raise Undecodable(path, value, "base64") from None
    return value


def _integer(value: Any, path: str) -> Any:
    """Return a whole number of 64 bits. 5.0 is one: JSON has no integers."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or int(value) != value:
        raise Undecodable(path, value, "integer")
    if not -(2**63) <= value < 2**63:
        raise Undecodable(path, value, "int64")
    return int(value) if isinstance(value, float) else value


def _moment(value: Any, path: str) -> Any:
    if isinstance(value, str):
        try:
            seconds_of(value)
        except (ValueError, OverflowError):
            raise Undecodable(path, value, "RFC 3339 time") from None
        return value
    raise Undecodable(path, value, "time")


def _quantity(value: Any, path: str) -> Any:
    """Return a quantity in the form the API stores. A number is read as its digits."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = repr(value) if isinstance(value, float) else str(value)
    if not isinstance(value, str):
        raise Undecodable(path, value, "quantity")
    try:
        return _canonical(value)
    except QuantityError:
        raise Undecodable(path, value, "quantity (expected a number with an optional suffix such as m, k, Ki, Mi)") from None


# The same few amounts come in every object, and the same text is kept once for all of them.
_canonical = lru_cache(maxsize=16384)(quantity.canonical)


_VALUE_READERS: dict[str, Callable[[Any, str], Any]] = {
    "str": _text,
    "int": _integer,
    "num": _of_type((int, float), "number"),
    "bool": _of_type(bool, "bool"),
    "time": _moment,
    "microtime": _moment,
    "quantity": _quantity,
    "intstr": lambda value, path: value if isinstance(value, str) else _integer(value, path),
    "bytes": _bytes,
    "any": lambda value, path: value,
}


def _kind_of(value: object) -> str:
    """Return what Go's JSON decoder calls a value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    names: dict[type[Any], str] = {str: "string", dict: "object", list: "array"}
    return names.get(type(value), "null")
