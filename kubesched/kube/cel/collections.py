"""Lists, sets and optional values in CEL: the standard functions, the extensions, and what Kubernetes adds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from kubesched.kube.cel import texts
from kubesched.kube.cel.costs import LONGEST_RANGE
from kubesched.kube.cel.quantities import Quantity
from kubesched.kube.cel.times import Duration, Timestamp
from kubesched.kube.cel.values import (
    NOTHING,
    EvaluationError,
    Optional,
    UInt,
    are_equal,
    is_number,
    no_overload,
    unsigned,
    whole,
)


def compare(left: Any, right: Any) -> int:
    """Return -1, 0 or 1 for two values that have an order; fail for others."""
    if is_number(left) and is_number(right):
        return _order(left, right)
    if type(left) is type(right) and not isinstance(left, (list, dict, Optional, type(None))):
        if isinstance(left, Quantity):
            return _order(left.nano, right.nano)
        try:
            return _order(left, right)
        except TypeError:
            pass
    raise no_overload("_<_", left, right)


def _order(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def contains(values: list[Any], wanted: Any) -> bool:
    """Return whether a list has an element equal to `wanted`."""
    if wanted.__class__ is str:
        return wanted in values
    if wanted.__class__ is int:
        return any(value == wanted and value.__class__ is not bool for value in values)
    return any(are_equal(wanted, value) for value in values)


def _sum(values: list[Any]) -> Any:
    if not values:
        return 0
    total = values[0]
    for value in values[1:]:
        if isinstance(total, float) and isinstance(value, float):
            total += value
        elif isinstance(total, UInt) and isinstance(value, UInt):
            total = unsigned(int(total) + int(value))
        elif isinstance(total, int) and isinstance(value, int):
            total = whole(total + value)
        elif isinstance(total, Duration) and isinstance(value, Duration):
            total = Duration.checked(total.nanos + value.nanos)
        else:
            raise no_overload("sum", values)
    return total


def _extreme(name: str, sign: int) -> Callable[[list[Any]], Any]:
    def answer(values: list[Any]) -> Any:
        if not values:
            raise EvaluationError(f"{name} called on empty list")
        best = values[0]
        for value in values[1:]:
            if compare(value, best) * sign > 0:
                best = value
        return best

    return answer


def _index_of(values: list[Any], wanted: Any) -> int:
    return next((i for i, value in enumerate(values) if are_equal(value, wanted)), -1)


def _last_index_of(values: list[Any], wanted: Any) -> int:
    return next((i for i in range(len(values) - 1, -1, -1) if are_equal(values[i], wanted)), -1)


def _slice(values: list[Any], start: Any, end: Any) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(values):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def _flatten(values: list[Any], depth: Any = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    for value in values:
        flat.extend(_flatten(value, depth - 1) if isinstance(value, list) and depth > 0 else [value])
    return flat


def _distinct(values: list[Any]) -> list[Any]:
    if _are_plain(values):
        first: dict[tuple[bool, Any], Any] = {}
        for value in values:
            first.setdefault((value.__class__ is bool, value), value)
        return list(first.values())
    kept: list[Any] = []
    for value in values:
        if not contains(kept, value):
            kept.append(value)
    return kept


def _are_plain(values: list[Any]) -> bool:
    """Return whether all values can be told apart by their hashes."""
    return all(value.__class__ in (bool, int, str) for value in values)


_in_order = cmp_to_key(compare)


def _sort_by_keys(values: list[Any], keys: list[Any]) -> list[Any]:
    return [value for _, value in sorted(zip(keys, values, strict=True), key=lambda pair: _in_order(pair[0]))]


def _range(size: Any) -> list[int]:
    if isinstance(size, bool) or not isinstance(size, int):
        raise no_overload("lists.range", size)
    return list(range(size))


def _newer_range(size: Any) -> list[int]:
    if isinstance(size, int) and size < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {size}")
    if isinstance(size, int) and size > LONGEST_RANGE:
        raise EvaluationError(f"lists.range: size {size} exceeds maximum allowed ({LONGEST_RANGE})")
    return _range(size)


def includes(value: Any, wanted: Any) -> bool:
    """Return whether a value is, or has as an element, the one that is wanted."""
    return contains(value, wanted) if isinstance(value, list) else are_equal(value, wanted)


def _subset(inner: Any, outer: Any) -> bool:
    if _are_plain(inner) and _are_plain(outer):
        return {(v.__class__ is bool, v) for v in inner} <= {(v.__class__ is bool, v) for v in outer}
    return all(contains(outer, value) for value in inner)


def _value(value: Optional) -> Any:
    if not value.is_there:
        raise EvaluationError("optional.none() dereference")
    return value.value


def _unwrap(values: list[Any]) -> list[Any]:
    return [value.value for value in values if value.is_there]


_ZEROS: tuple[Any, ...] = (None, False, 0, "", b"", [], {}, Duration(0), Timestamp.checked(-62135596800 * 10**9))

NOTHING_ADDED: dict[str, Any] = {"int": 0, "uint": UInt(0), "double": 0.0, "google.protobuf.Duration": Duration(0)}
"""Sums of no elements, by kind of element."""


def _set_function(name: str, answer: Callable[[list[Any], list[Any]], bool]) -> Callable[[Any, Any], bool]:
    def checked(left: Any, right: Any) -> bool:
        if not isinstance(left, list) or not isinstance(right, list):
            raise no_overload(name, left, right)
        return answer(left, right)

    return checked


GLOBALS: dict[str, Callable[..., Any]] = {
    "lists.range": _range,
    "sets.contains": _set_function("sets.contains", lambda outer, inner: _subset(inner, outer)),
    "sets.equivalent": _set_function("sets.equivalent", lambda left, right: _subset(left, right) and _subset(right, left)),
    "sets.intersects": _set_function("sets.intersects", lambda left, right: any(contains(right, v) for v in left)),
    "optional.of": lambda value: Optional(value, True),
    "optional.ofNonZeroValue": lambda value: NOTHING if value in _ZEROS else Optional(value, True),
    "optional.none": lambda: NOTHING,
    "optional.unwrap": _unwrap,
}

NEWER_GLOBALS: dict[str, Callable[..., Any]] = {"lists.range": _newer_range}
"""What is answered in another way since 1.37."""

LIST_MEMBERS: dict[str, Callable[..., Any]] = {
    "isSorted": lambda values: all(compare(left, right) <= 0 for left, right in pairwise(values)),
    "sum": _sum,
    "min": _extreme("min", -1),
    "max": _extreme("max", 1),
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "includes": includes,
    "slice": _slice,
    "flatten": _flatten,
    "sort": lambda values: sorted(values, key=_in_order),
    "@sortByAssociatedKeys": _sort_by_keys,
    "distinct": _distinct,
    "reverse": lambda values: values[::-1],
    "first": lambda values: Optional(values[0], True) if values else NOTHING,
    "last": lambda values: Optional(values[-1], True) if values else NOTHING,
    "join": texts.join,
    "unwrapOpt": _unwrap,
}
"""What can be asked of a list."""

OPTIONAL_MEMBERS: dict[str, Callable[..., Any]] = {
    "hasValue": lambda value: value.is_there,
    "value": _value,
}
"""What can be asked of an optional value."""
