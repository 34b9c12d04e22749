"""Decoding a document tree into typed structs, and encoding them, with the errors and rules of Go's JSON library.

A type is a frozen struct. Its annotations have Go's type names, because these are in the errors:

    json: cannot unmarshal string into Go struct field KubeSchedulerConfiguration.parallelism of type int32

`decode` walks along the struct type. Which error is reported, as in Go:

* unknown and repeated fields are collected; the caller reports them together
* of values with a wrong type the first one is raised, after the walk
* a duration that cannot be parsed ends the walk at once

`encode` leaves the same fields out as Go does (`omitempty`).
"""

from __future__ import annotations

import base64
import math
import struct
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec

from kubesched.errors import ConfigError
from kubesched.kube.values import go_quote
from kubesched.scheduler.config.documents.durations import Duration
from kubesched.scheduler.config.documents.reading import Number, Object, Value, compact

MAX_STRICT_ERRORS = 100
LARGEST_WRITTEN_OUT = 1e21  # from here on Go's JSON writes a float with an exponent

_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


@dataclass(frozen=True, slots=True)
class Go:
    """What a Python annotation cannot say: Go's type name, the embedded Go struct of a field, and when the field is printed."""

    type: str = ""
    embedded: str = ""
    omit_empty: bool = False  # leave out false, 0 and ""
    keep_null: bool = False  # print null for None, and [] for an empty list


Int32 = Annotated[int, Go("int32")]
Int64 = Annotated[int, Go("int64")]
Float32 = Annotated[float, Go("float32")]


class Raw(msgspec.Struct, frozen=True):
    """A part of a document that is not decoded: arguments of plugins without a known type."""

    value: Value = None

    def json(self) -> str:
        return compact(self.value)


class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The base of all types of a configuration file."""


W = TypeVar("W", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class _Type:
    """An annotation, parsed."""

    kind: str  # bool string int float duration bytes list map struct raw
    go: str
    element: _Type | None = None
    struct: type[msgspec.Struct] | None = None
    optional: bool = False


_BYTE = _Type("int", "uint8")  # bytes may also be written as a list of numbers
_RANGES = {"uint8": (0, 255), "int32": (-(1 << 31), (1 << 31) - 1)}
_INT64 = (-(1 << 63), (1 << 63) - 1)  # also what Go's named numbers are


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    wire: str
    type: _Type
    marker: Go


def decode(
    cls: type[W], document: Value, *, with_type: bool = False, unknown: frozenset[str] = frozenset()
) -> tuple[W, list[str]]:
    """Return the struct and the strictness errors; raise ConfigError for other errors.

    `with_type`: the root may have `apiVersion` and `kind`, which the caller has read. `unknown`: fields of our structs that the
    emulated release does not have.
    """
    # As in Go, one walk finds both kinds of errors. A wrong type is raised, and hides the strictness errors.
    walk = _Walk(cls, with_type, unknown)
    decoded = walk.value(document, _struct_type(cls), "")
    if walk.first_error:
        raise ConfigError("", walk.first_error)
    return (cls() if decoded is None else decoded), walk.strict


class _Walk:
    """One walk over a document, with the state of Go's decoder that is in its error texts."""

    def __init__(self, root: type[msgspec.Struct], with_type: bool, unknown: frozenset[str]) -> None:
        self.root = root
        self.with_type = with_type
        self.unknown = unknown
        self.first_error = ""
        self.strict: list[str] = []
        self._fields: list[str] = []  # the wire names down to here, without indexes
        self._owner = ""  # Go's name of the struct we are in

    def value(self, found: Value, wanted: _Type, path: str) -> Any:
        """Return the value; None for null and for a value of a wrong type."""
        # Order as in Go: raw parts and durations read any JSON value themselves, also null. For all others null leaves the
        # field as it is.
        if wanted.kind == "raw":
            return Raw(found)
        if wanted.kind == "duration":
            return self._duration(found, wanted)
        if found is None:
            return None
        if isinstance(found, Object):
            if wanted.kind == "struct":
                return self._struct(found, wanted, path)
            if wanted.kind == "map":
                return self._map(found, wanted, path)
            return self._mismatch("object", wanted)
        if isinstance(found, list):
            if wanted.kind == "bytes":
                return bytes(self.value(item, _BYTE, path) or 0 for item in found)
            if wanted.kind != "list":
                return self._mismatch("array", wanted)
            assert wanted.element is not None
            # A null in a list becomes the zero value of its type, because a Go slice has no holes.
            items = [self.value(item, wanted.element, f"{path}[{at}]") for at, item in enumerate(found)]
            return tuple(_zero(wanted.element) if item is None else item for item in items)
        if isinstance(found, bool):
            return found if wanted.kind == "bool" else self._mismatch("bool", wanted)
        if isinstance(found, Number):
            return self._number(found, wanted)
        if wanted.kind == "bytes":
            return self._bytes(found)
        return found if wanted.kind == "string" else self._mismatch("string", wanted)

    def _struct(self, found: Object, wanted: _Type, path: str) -> Any:
        """Decode an object into a struct. `_fields` and `_owner` follow the walk, because Go's errors name the path. A null
        resets an earlier value of the field."""
        cls = wanted.struct
        assert cls is not None
        known = _fields(cls)
        # Saved here and restored after each field: a field that raises ends the walk, so no `finally` is needed.
        owner, depth = self._owner, len(self._fields)
        values: dict[str, Any] = {}
        seen: set[str] = set()
        for key, item in found.pairs:
            where = f"{path}.{key}" if path else key
            # Read by the caller already; here they only must not be repeated.
            if self.with_type and not path and key in ("apiVersion", "kind"):
                if key in seen:
                    self._complain("duplicate field", where)
                seen.add(key)
                continue
            field = known.get(key)
            if field is None or key in self.unknown:
                self._complain("unknown field", where)
                continue
            if key in seen:
                self._complain("duplicate field", where)
            seen.add(key)
            if field.marker.embedded:
                self._fields.append(field.marker.embedded)
            self._fields.append(field.wire)
            # Go names the innermost struct, and then all fields from the root: `KubeSchedulerProfile.profiles.schedulerName`.
            self._owner = wanted.go.rpartition(".")[2]
            decoded = self.value(item, field.type, where)
            if decoded is not None:
                values[field.name] = decoded
            elif item is None:
                values.pop(field.name, None)
            del self._fields[depth:]
            self._owner = owner
        return cls(**values)

    def _map(self, found: Object, wanted: _Type, path: str) -> dict[str, Any]:
        assert wanted.element is not None
        decoded: dict[str, Any] = {}
        for key, item in found.pairs:
            where = f"{path}.{key}" if path else key
            # A repeated key of a map is a complaint; the last value counts, as for fields.
            if key in decoded:
                self._complain("duplicate field", where)
            value = self.value(item, wanted.element, where)
            decoded[key] = _zero(wanted.element) if value is None else value
        return decoded

    def _duration(self, found: Value, wanted: _Type) -> Duration | None:
        if found is None and wanted.optional:
            return None
        if found is None:
            return Duration.parse("")
        if not isinstance(found, str) or isinstance(found, Number):
            raise ConfigError("", self._mismatch_text(json_type(found), "string"))
        return Duration.parse(found)

    def _number(self, found: Number, wanted: _Type) -> Any:
        if wanted.kind == "int":
            least, most = _RANGES.get(wanted.go, _INT64)
            # By the digits: 1.0 and 1e3 are no integers to Go, whatever their value.
            if found.is_integer and least <= int(found) <= most:
                return int(found)
            return self._mismatch(f"number {found}", wanted)
        if wanted.kind == "float":
            value = _as_float32(float(found))
            return self._mismatch(f"number {found}", wanted) if math.isinf(value) else value
        return self._mismatch("number", wanted)

    def _bytes(self, found: str) -> bytes | None:
        encoded = found.encode()
        bad = _bad_base64_byte(encoded)
        if bad is None:
            return base64.b64decode(encoded)
        if not self.first_error:
            self.first_error = f"illegal base64 data at input byte {bad}"
        return None

    def _mismatch(self, found: str, wanted: _Type) -> Any:
        """Keep the error for the first value of a wrong type; return None, so that the field keeps its default."""
        if not self.first_error:
            self.first_error = self._mismatch_text(found, wanted.go)
        return None

    def _mismatch_text(self, found: str, go: str) -> str:
        if not self._fields:
            return f"json: cannot unmarshal {found} into Go value of type {go}"
        return f"json: cannot unmarshal {found} into Go struct field {self._owner}.{'.'.join(self._fields)} of type {go}"

    def _complain(self, what: str, path: str) -> None:
        text = f"{what} {go_quote(path)}"
        # Kept quirk: each complaint once, and the first hundred only.
        if text not in self.strict and len(self.strict) < MAX_STRICT_ERRORS:
            self.strict.append(text)


def encode(value: msgspec.Struct) -> dict[str, Any]:
    """Return the struct as JSON data with wire names."""
    document: dict[str, Any] = {}
    for field in _fields(type(value)).values():
        item = getattr(value, field.name)
        # Go leaves out what is empty and has `omitempty`; a field without it is printed as null or [].
        if field.marker.keep_null and (item is None or item == ()):
            document[field.wire] = None if item is None else []
        elif item is None or item == () or (field.marker.omit_empty and not item):
            continue
        else:
            document[field.wire] = _encoded(item)
    return document


def _encoded(item: Any) -> Any:
    if isinstance(item, Raw):
        return plain(item.value)
    if isinstance(item, msgspec.Struct):
        return encode(item)
    if isinstance(item, tuple):
        return [_encoded(each) for each in item]
    if isinstance(item, dict):
        return {key: _encoded(each) for key, each in item.items()}
    # As Go's JSON writes bytes.
    if isinstance(item, bytes):
        return base64.b64encode(item).decode()
    if isinstance(item, Duration):
        return str(item)
    return float32(item) if isinstance(item, float) else item


def plain(value: Value) -> Any:
    """Return a tree as dicts, lists and numbers."""
    if isinstance(value, Object):
        return {key: plain(item) for key, item in value.pairs}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, Number):
        return int(value) if value.is_integer else float(value)
    return value


def float32(value: float) -> float | int:
    """Return the shortest decimal for a 32-bit float, as Go prints it: 0.1 and not 0.10000000149."""
    # The fewest digits that give the same 32 bits again. Nine are always enough.
    tries = (f"{value:.{digits}g}" for digits in range(1, 10))
    short = next((text for text in tries if _as_float32(float(text)) == value), repr(value))
    return int(Decimal(short)) if value.is_integer() and abs(value) < LARGEST_WRITTEN_OUT else float(short)


def _as_float32(value: float) -> float:
    """Return the nearest 32-bit float; infinity if the value is too large."""
    # "@f" rounds to infinity; "<f" would raise.
    nearest: float = struct.unpack("@f", struct.pack("@f", value))[0]
    return nearest


@cache
def _fields(cls: type[msgspec.Struct]) -> dict[str, _Field]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return {
        # Cached by class: annotations are parsed once, and a document has many profiles and plugins.
        field.encode_name: _Field(field.name, field.encode_name, *_take_apart(hints[field.name]))
        for field in msgspec.structs.fields(cls)
    }


def _take_apart(hint: Any) -> tuple[_Type, Go]:
    """Parse an annotation: strip Optional and Annotated, and merge the `Go` markers, of which the outermost wins."""
    marker = Go()
    optional = False
    while True:
        origin = typing.get_origin(hint)
        if origin is Annotated:
            hint, *extras = typing.get_args(hint)
            for extra in reversed(extras):  # the outermost comes last
                marker = _merge(marker, extra) if isinstance(extra, Go) else marker
        elif origin in (typing.Union, types.UnionType):
            optional = True
            (hint,) = (arg for arg in typing.get_args(hint) if arg is not type(None))
        else:
            break
    return _plain_type(hint, marker, optional), marker


def _merge(outer: Go, inner: Go) -> Go:
    return Go(
        outer.type or inner.type,
        outer.embedded or inner.embedded,
        outer.omit_empty or inner.omit_empty,
        outer.keep_null or inner.keep_null,
    )


def _plain_type(hint: Any, marker: Go, optional: bool) -> _Type:
    """Return the type of an annotation without Optional and Annotated, with Go's name for it."""
    origin = typing.get_origin(hint)
    if origin is tuple:
        element, _ = _take_apart(typing.get_args(hint)[0])
        return _Type("list", marker.type or f"[]{element.go}", element, optional=optional)
    if origin is dict:
        element, _ = _take_apart(typing.get_args(hint)[1])
        return _Type("map", marker.type or f"map[string]{element.go}", element, optional=optional)
    if hint is Raw:
        return _Type("raw", "runtime.RawExtension", optional=optional)
    # bool before int, in `_SCALARS`, because a bool is an int to Python; Duration before int for the same reason.
    if issubclass(hint, msgspec.Struct):
        return _struct_type(hint, optional)
    for python, kind, go in _SCALARS:
        if issubclass(hint, python):
            return _Type(kind, marker.type or go, optional=optional)
    raise TypeError(f"{hint!r} cannot be read from a configuration file")


_SCALARS: tuple[tuple[type, str, str], ...] = (
    (bool, "bool", "bool"),
    (Duration, "duration", "string"),
    (int, "int", "int32"),
    (float, "float", "float32"),
    (bytes, "bytes", "[]uint8"),
    (str, "string", "string"),
)


def _struct_type(cls: type[msgspec.Struct], optional: bool = False) -> _Type:
    return _Type("struct", getattr(cls, "go_type", f"v1.{cls.__name__}"), struct=cls, optional=optional)


def _zero(wanted: _Type) -> Any:
    if wanted.kind == "struct":
        assert wanted.struct is not None
        return wanted.struct()
    # What Go has in a variable that was never set.
    zeros: dict[str, Callable[[], Any]] = {"bool": bool, "string": str, "int": int, "float": float, "bytes": bytes}
    return zeros.get(wanted.kind, tuple)()


def json_type(found: Value) -> str:
    """Return the JSON type of a value, as in Go's errors."""
    if isinstance(found, Object):
        return "object"
    if isinstance(found, list):
        return "array"
    if isinstance(found, bool):
        return "bool"
    return "number" if isinstance(found, Number) else "string"


def _bad_base64_byte(text: bytes) -> int | None:
    """Return the byte at which Go's base64 decoder stops, None if it reads all. Line breaks may be anywhere, `=` only at the
    end."""
    in_group = 0
    for at, byte in enumerate(text):
        if byte in b"\r\n":
            continue
        if byte == ord("="):
            return _bad_padding(text, at, in_group)
        if byte not in _BASE64:
            return at
        in_group = (in_group + 1) % 4
    return len(text) - in_group if in_group else None


def _bad_padding(text: bytes, at: int, in_group: int) -> int | None:
    """Return the same from the first `=` on, which follows `in_group` characters of its group of four."""
    # Go's base64 wants `=` only as the third or fourth character of a group, and `==` or `=` by that. What it reports is where
    # it stopped, which depends on how far it has read ahead.
    if in_group < 2:
        return at
    rest = [where for where in range(at + 1, len(text)) if text[where] not in b"\r\n"]
    if in_group == 2:
        if not rest:
            return len(text)
        if text[rest[0]] != ord("="):
            return rest[0] - 1
        rest = rest[1:]
    return rest[0] if rest else None
