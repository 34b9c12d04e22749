"""What CEL computes with: Python's own values, and small classes for what Python has no word for.

bool, int (64 bits), float, str, bytes, None, list and dict stand for themselves; `UInt` is an int that is unsigned,
`Optional` a value that may be missing, `CelType` the type of a value. Equality is CEL's: numbers compare by value
whatever their type, a bool is never a number, and values of different types are unequal, not an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1
UINT_MAX = (1 << 64) - 1


class CelError(Exception):
    """An expression that cannot be compiled, or that has no value on this device; the text says why."""


class CompileError(CelError):
    """The expression is not a sound CEL expression over a device."""


class EvaluationError(CelError):
    """The expression has no value on this device."""


class UInt(int):
    """An unsigned integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CelType:
    """The type of a value, which is a value itself."""

    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be missing."""

    value: Any = None
    is_there: bool = False


NOTHING = Optional()


class Domains(dict[str, dict[str, Any]]):
    """Attributes or capacities by domain: a domain that nobody filled reads as an empty map, but is not `in` it."""

    def __missing__(self, domain: str) -> dict[str, Any]:
        return {}


def type_name(value: Any) -> str:
    """Return the name of a value's type."""
    for kind, name in TYPE_NAMES:
        if isinstance(value, kind):
            return name
    return str(getattr(type(value), "cel_name", None) or getattr(type(value), "cel_type", type(value).__name__))


TYPE_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (UInt, "uint"),
    (int, "int"),
    (float, "double"),
    (str, "string"),
    (bytes, "bytes"),
    (type(None), "null_type"),
    (list, "list"),
    (dict, "map"),
    (CelType, "type"),
    (Optional, "optional_type"),
)


def is_number(value: Any) -> bool:
    """Return whether a value is an int, a uint or a double; a bool is none of them."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_SIMPLE = frozenset({bool, int, float, str, bytes})


def are_equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal in CEL's sense; what cannot be compared is not."""
    return equality(left, right) is True


def equality(left: Any, right: Any) -> bool | None:
    """Return whether two values are equal; None where the reference has no answer: the first is of a kind of its own (a
    version, a quantity, an address), and the second is not or is a computed quantity. Inside lists and maps it lets it
    pass as equal."""
    if left.__class__ is right.__class__ and left.__class__ in _SIMPLE:
        return bool(left == right)
    if hasattr(type(left), "cel_name"):
        if type(left) is not type(right) or getattr(right, "is_computed", False):
            return None
        return bool(left == right)
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool) and left == right
    if isinstance(left, list):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(equality(*pair) is not False for pair in zip(left, right, strict=True))
        )
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and len(left) == len(right)
            and all(key in right and equality(value, right[key]) is not False for key, value in left.items())
        )
    if isinstance(left, Optional):
        if not isinstance(right, Optional) or left.is_there != right.is_there:
            return False
        return equality(left.value, right.value)
    if is_number(left) and is_number(right):
        return bool(left == right)
    return type(left) is type(right) and bool(left == right)


def whole(value: int) -> int:
    """Return an int that fits its 64 bits."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def unsigned(value: int) -> UInt:
    """Return a uint that fits its 64 bits."""
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise EvaluationError("unsigned integer overflow")


def no_overload(function: str, *arguments: Any) -> EvaluationError:
    """Return the error for a function that does not take such arguments."""
    return EvaluationError(f"no such overload: {function}({', '.join(type_name(a) for a in arguments)})")
