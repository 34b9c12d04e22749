"""Objects from JSON and back.

In: JSON as bytes, or dictionaries. Out: structs; and from structs, bytes or dictionaries. Unknown fields are skipped, `null`
counts as absent, wrong types are refused with one `MalformedObject` that names object, field and value.

Most objects take one pass of msgspec's typed decoder. Only if that fails the object is decoded again: first without its nulls,
and if that fails too, to find the field for the message. `overlay` writes a changed struct into the object it came from, so
that unknown fields survive.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec
from msgspec import inspect

from kubesched.errors import MalformedObject
from kubesched.kube.api.kinds import INFO, KINDS
from kubesched.kube.api.meta import TopLevel, Wire

W = TypeVar("W", bound=Wire)
Raw = dict[str, Any]

_decoders: dict[type[Wire], msgspec.json.Decoder[Any]] = {}
_encoder = msgspec.json.Encoder()
_REASON = re.compile(r"(.*?)(?: - at `(.*)`)?")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]|(\[\.\.\.\])")


class _TypeMeta(Wire, kw_only=True):
    """The two fields that say which struct an object needs."""

    api_version: str | None = None
    kind: str | None = None


def decode(data: bytes | str | Raw) -> TopLevel:
    """Return the object as the struct of its `apiVersion` and `kind`."""
    if isinstance(data, dict):
        return convert(data, _type_for(data.get("apiVersion"), data.get("kind"), data))
    found = decode_as(_TypeMeta, data)
    return decode_as(_type_for(found.api_version, found.kind, data), data)


def decode_as(type_: type[W], data: bytes | str) -> W:
    """Return the object as a struct of the given type, whatever its `kind` is."""
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = msgspec.json.Decoder(type_)
    try:
        return cast(W, decoder.decode(data))
    except msgspec.ValidationError:
        return convert(decode_json(data), type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_json(data, error) from error


def decode_json(data: bytes | str) -> Any:
    """Return dictionaries and lists; raise `MalformedObject` for a text that is not JSON."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_json(data, error) from error


def convert(raw: Any, type_: type[W]) -> W:
    """Return a struct made from dictionaries and lists."""
    try:
        return msgspec.convert(raw, type_)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.convert(without_nulls(raw, type_), type_)
    except msgspec.ValidationError as error:
        raise _malformed(raw, type_, str(error)) from error


def encode(value: Any) -> bytes:
    """Return JSON. Fields with their default are left out, except `apiVersion` and `kind`."""
    return _encoder.encode(value)


def to_dict(value: Wire) -> Raw:
    """Return dictionaries and lists, as `encode` would write them."""
    return cast(Raw, _plain(value))


def overlay(raw: Raw | bytes | str, changed: Wire) -> Raw:
    """Return the original object with the changes of `changed` written into it.

    Only fields in which `changed` differs from the decoded original are written. An item of a list is matched to the equal old
    item, or else to one with the same uid, name, type or key. A new item is written whole.
    """
    original = raw if isinstance(raw, dict) else decode_json(raw)
    result = _merged(original, convert(original, type(changed)), changed)
    if isinstance(changed, TopLevel):
        result.setdefault("apiVersion", changed.api_version)
        result.setdefault("kind", changed.kind)
    return result


# --- nulls: an absent field, or the empty value of a map's or list's entry ----------------------------------------------


def without_nulls(raw: Any, type_: type[msgspec.Struct]) -> Any:
    """Return a copy of `raw` without nulls where the struct has a field for them."""
    return _cleaned(raw, _shape(type_))


_shape = lru_cache(maxsize=256)(inspect.type_info)


def _cleaned(raw: Any, shape: inspect.Type) -> Any:
    """Return a value without nulls, by its type."""
    if isinstance(shape, inspect.UnionType):
        shape = _fitting(raw, shape)
    if isinstance(shape, inspect.StructType) and isinstance(raw, dict):
        fields = {field.encode_name: field.type for field in shape.fields}
        return {
            name: _cleaned(value, fields[name]) if name in fields else value for name, value in raw.items() if value is not None
        }
    if isinstance(shape, inspect.DictType) and isinstance(raw, dict):
        return {name: _entry(value, shape.value_type) for name, value in raw.items()}
    if isinstance(shape, inspect.VarTupleType) and isinstance(raw, list):
        return [_entry(value, shape.item_type) for value in raw]
    return raw


def _entry(raw: Any, shape: inspect.Type) -> Any:
    """Return an item of a map or list; null stands for the empty value of its type, as in Go."""
    return _cleaned(raw, shape) if raw is not None else _empty(shape)


def _fitting(raw: Any, union: inspect.UnionType) -> inspect.Type:
    """Return the member of an `X | None` that a value can be."""
    for member in union.types:
        if isinstance(raw, dict) and isinstance(member, (inspect.StructType, inspect.DictType)):
            return member
        if isinstance(raw, list) and isinstance(member, inspect.VarTupleType):
            return member
    return inspect.AnyType()


def _empty(shape: inspect.Type) -> Any:
    """Return the empty value of a type."""
    if isinstance(shape, (inspect.StructType, inspect.DictType)):
        return {}
    if isinstance(shape, inspect.VarTupleType):
        return []
    if isinstance(shape, inspect.BoolType):
        return False
    if isinstance(shape, inspect.StrType):
        return ""
    if isinstance(shape, (inspect.IntType, inspect.UnionType)):
        return 0  # the unions that stand in maps and lists are quantities
    return None


# --- writing back -----------------------------------------------------------------------------------------------------


def _merged(raw: Raw, before: Wire, after: Wire) -> Raw:
    """Return `raw` with the fields that differ between two structs."""
    result = dict(raw)
    for field in msgspec.structs.fields(type(after)):
        old, new = getattr(before, field.name), getattr(after, field.name)
        if old == new:
            continue
        if new == _default(field):
            result.pop(field.encode_name, None)
        else:
            result[field.encode_name] = _merged_value(raw.get(field.encode_name), old, new)
    return result


def _merged_value(raw: Any, old: Any, new: Any) -> Any:
    """Return a changed value, merged into the original one as deep as their types agree."""
    if isinstance(new, Wire) and type(old) is type(new) and isinstance(raw, dict):
        return _merged(raw, old, new)
    if isinstance(new, tuple) and isinstance(old, tuple) and isinstance(raw, list) and len(raw) == len(old):
        return _merged_list(raw, old, new)
    if isinstance(new, dict) and isinstance(old, dict) and isinstance(raw, dict):
        return {key: _merged_value(raw.get(key), old.get(key), value) for key, value in new.items()}
    return _plain(new)


def _merged_list(raw: list[Any], old: tuple[Any, ...], new: tuple[Any, ...]) -> list[Any]:
    """Return a changed list; each item is merged into the original item it stands for."""
    free = list(range(len(old)))
    origins: list[int | None] = [None] * len(new)
    for same in (operator.eq, _is_namesake):
        for place, value in enumerate(new):
            if origins[place] is None:
                origins[place] = next((index for index in free if same(old[index], value)), None)
                if origins[place] is not None:
                    free.remove(cast(int, origins[place]))
    return [
        _plain(value) if origin is None else _merged_value(raw[origin], old[origin], value)
        for value, origin in zip(new, origins, strict=True)
    ]


def _plain(value: Any) -> Any:
    # Not `msgspec.to_builtins`: that leaves tuples as they are, where JSON has lists.
    return msgspec.json.decode(_encoder.encode(value))


def _is_namesake(old: Any, new: Any) -> bool:
    """Return whether two items stand for the same thing: the first of uid, name, type and key decides."""
    for name in ("uid", "name", "type", "key"):
        if isinstance(old, Wire) and hasattr(old, name) and hasattr(new, name) and getattr(new, name):
            return bool(getattr(old, name) == getattr(new, name))
    return False


def _default(field: msgspec.structs.FieldInfo) -> Any:
    """Return the default of a field."""
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory() if field.default_factory in (dict, list) else msgspec.NODEFAULT
    return field.default


# --- complaining ------------------------------------------------------------------------------------------------------


def _type_for(api_version: Any, kind: Any, data: Any) -> type[TopLevel]:
    """Return the struct for an `apiVersion` and `kind`."""
    found = KINDS.get((api_version, kind)) if isinstance(api_version, str) and isinstance(kind, str) else None
    if found is None:
        raw = data if isinstance(data, dict) else decode_json(data)
        raise MalformedObject(_name_of(raw, TopLevel), "kind", f"{api_version}/{kind}", "not a kind that we know")
    return found


def _not_json(data: bytes | str, error: Exception) -> MalformedObject:
    text = data if isinstance(data, str) else bytes(data).decode(errors="replace")
    return MalformedObject("object", "body", text[:80], f"not JSON: {error}")


def _malformed(raw: Any, type_: type[Wire], message: str) -> MalformedObject:
    """Return the error for an object that msgspec refuses. Its message has the path in its own notation."""
    found = _REASON.fullmatch(message)
    detail, path = (found[1], found[2] or "$") if found is not None else (message, "$")
    wanted = re.search(r"got `(\w+)`", detail)
    steps = [match.group(1) or match.group(2) or match.group(3) for match in _STEP.finditer(path[1:])]
    for names, value in _follow(raw, steps, wanted[1] if wanted is not None else ""):
        place = "".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in names).removeprefix(".")
        return MalformedObject(_name_of(raw, type_), place or "object", value, detail[:1].lower() + detail[1:])
    return MalformedObject(_name_of(raw, type_), path[2:] or "object", raw, detail[:1].lower() + detail[1:])


def _follow(raw: Any, steps: list[str], found_type: str) -> Iterator[tuple[list[str | int], Any]]:
    """Yield the places that a path can mean, with their values: msgspec writes `[...]` for any key of a map."""
    if not steps:
        if not found_type or _json_type(raw) == found_type:
            yield [], raw
        return
    step, rest = steps[0], steps[1:]
    if step == "[...]" and isinstance(raw, dict):
        inside: list[tuple[str | int, Any]] = list(raw.items())
    elif isinstance(raw, list) and step.isdigit() and int(step) < len(raw):
        inside = [(int(step), raw[int(step)])]
    elif isinstance(raw, dict) and step in raw:
        inside = [(step, raw[step])]
    else:
        return
    for name, value in inside:
        for names, culprit in _follow(value, rest, found_type):
            yield [name, *names], culprit


def _json_type(raw: Any) -> str:
    """Return msgspec's name for the type of a value."""
    names = {bool: "bool", int: "int", float: "float", str: "str", dict: "object", list: "array"}
    return "null" if raw is None else names.get(type(raw), type(raw).__name__)


def _name_of(raw: Any, type_: type[Wire]) -> str:
    """Return `kind namespace/name` of an object that could not be decoded."""
    row = INFO.get(cast(type[TopLevel], type_))
    kind = raw.get("kind") if isinstance(raw, dict) else None
    word = kind if isinstance(kind, str) and kind else row.kind if row is not None else "object"
    meta = raw.get("metadata") if isinstance(raw, dict) else None
    if not isinstance(meta, dict):
        return word.lower()
    names = [text for text in (meta.get("namespace"), meta.get("name")) if isinstance(text, str) and text]
    return f"{word.lower()} {'/'.join(names)}".rstrip()
