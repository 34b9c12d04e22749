"""JSON nulls, read as the API reads them: an absent field, or the empty value of a map's or list's entry."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import inspect


def without_nulls(raw: Any, type_: type[msgspec.Struct]) -> Any:
    """Return a copy of `raw` in which no null is left where the struct has a place for it."""
    return _cleaned(raw, _shape(type_))


@lru_cache(maxsize=256)
def _shape(type_: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(type_)


def _cleaned(raw: Any, shape: inspect.Type) -> Any:
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
    return _cleaned(raw, shape) if raw is not None else _empty(shape)


def _fitting(raw: Any, union: inspect.UnionType) -> inspect.Type:
    """Return the member of an `X | None` that the value can be."""
    for member in union.types:
        if isinstance(raw, dict) and isinstance(member, (inspect.StructType, inspect.DictType)):
            return member
        if isinstance(raw, list) and isinstance(member, inspect.VarTupleType):
            return member
    return inspect.AnyType()


def _empty(shape: inspect.Type) -> Any:
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
