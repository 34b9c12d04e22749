"""CEL's operators and conversions."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

from kubesched.kube.cel.collections import compare, contains
from kubesched.kube.cel.formatting import as_text
from kubesched.kube.cel.networks import CIDR, IP
from kubesched.kube.cel.times import Duration, Timestamp
from kubesched.kube.cel.values import (
    TYPE_NAMES,
    CelType,
    Domains,
    EvaluationError,
    Optional,
    UInt,
    are_equal,
    equality,
    is_number,
    no_overload,
    type_name,
    unsigned,
    whole,
)

_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")


def _arithmetic(
    name: str, integers: Callable[[int, int], int], floats: Callable[[float, float], float] | None
) -> Callable[[Any, Any], Any]:
    def answer(left: Any, right: Any) -> Any:
        if left.__class__ is int and right.__class__ is int:
            return whole(integers(left, right))
        if isinstance(left, UInt) and isinstance(right, UInt):
            return unsigned(integers(int(left), int(right)))
        if _is_int(left) and _is_int(right):
            return whole(integers(left, right))
        if floats is not None and isinstance(left, float) and isinstance(right, float):
            return floats(left, right)
        raise no_overload(name, left, right)

    return answer


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, (bool, UInt))


def _truncated(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    return left - right * _truncated(left, right)


def _divide(left: float, right: float) -> float:
    if right == 0:
        is_nan = left == 0 or left != left
        return math.nan if is_nan else math.inf * math.copysign(1, left) * math.copysign(1, right)
    return left / right


_plus = _arithmetic("_+_", lambda a, b: a + b, lambda a, b: a + b)
_minus = _arithmetic("_-_", lambda a, b: a - b, lambda a, b: a - b)


def _add(left: Any, right: Any) -> Any:
    if left.__class__ is int and right.__class__ is int:
        return whole(left + right)
    for kind in (str, bytes, list):
        if isinstance(left, kind) and isinstance(right, kind):
            return left + right  # type: ignore[operator]
    if isinstance(left, Duration) and isinstance(right, Duration):
        return Duration.checked(left.nanos + right.nanos)
    if isinstance(left, Duration) and isinstance(right, Timestamp):
        return right.plus(left.nanos)
    if isinstance(left, Timestamp) and isinstance(right, Duration):
        return left.plus(right.nanos)
    return _plus(left, right)


def _subtract(left: Any, right: Any) -> Any:
    if isinstance(left, Timestamp) and isinstance(right, Timestamp):
        return left.minus(right)
    if isinstance(left, Timestamp) and isinstance(right, Duration):
        return left.plus(_negate(right).nanos)
    if isinstance(left, Duration) and isinstance(right, Duration):
        return Duration.checked(left.nanos - right.nanos)
    return _minus(left, right)


def _negate(value: Any) -> Any:
    if _is_int(value):
        return whole(-value)
    if isinstance(value, float):
        return -value
    if isinstance(value, Duration):
        return Duration.checked(-value.nanos)
    raise no_overload("-_", value)


def _not(value: Any) -> bool:
    if isinstance(value, bool):
        return not value
    raise no_overload("!_", value)


def _ordered(name: str, accept: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def answer(left: Any, right: Any) -> bool:
        if left.__class__ is right.__class__ and left.__class__ in (int, str):
            return accept(left, right)
        if left != left or right != right:  # only NaN is unlike itself
            raise EvaluationError("NaN values cannot be ordered")
        if not (is_number(left) and is_number(right)) and not isinstance(left, (bool, str, bytes, Timestamp, Duration)):
            raise no_overload(name, left, right)
        try:
            return accept(compare(left, right), 0)
        except EvaluationError:
            raise no_overload(name, left, right) from None

    return answer


def _equal(left: Any, right: Any) -> bool:
    answer = equality(left, right)
    if answer is None:
        raise EvaluationError("no such overload")
    return answer


def _in(value: Any, container: Any) -> bool:
    if isinstance(container, list):
        return contains(container, value)
    if isinstance(container, dict):
        return not isinstance(value, (list, dict)) and value in container
    raise no_overload("@in", value, container)


def index(container: Any, key: Any) -> Any:
    """Return an element of a list or a map; fail if it is not there."""
    if isinstance(container, Optional):
        return Optional(index(container.value, key), True) if container.is_there else container
    if isinstance(container, list):
        if isinstance(key, float) and key.is_integer():
            key = int(key)
        if isinstance(key, bool) or not isinstance(key, int):
            raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
        if not 0 <= key < len(container):
            raise EvaluationError(f"index out of bounds: {key}")
        return container[key]
    if isinstance(container, dict):
        try:
            return container[key]
        except (KeyError, TypeError):
            raise EvaluationError(f"no such key: {as_text(key)}") from None
    raise no_overload("_[_]", container, key)


def find(container: Any, key: Any) -> Optional:
    """Return an element of a list or a map if it is there."""
    if isinstance(container, Optional):
        return find(container.value, key) if container.is_there else container
    if isinstance(container, list):
        at = int(key) if isinstance(key, float) and key.is_integer() else key
        if isinstance(at, int) and not isinstance(at, bool) and 0 <= at < len(container):
            return Optional(container[at], True)
    elif isinstance(container, dict) and has_entry(container, key):
        return Optional(container[key], True)
    return Optional()


def has_entry(values: dict[Any, Any], key: Any) -> bool:
    """Return whether a map has an entry to read. Of domains it has all: that one is not `in` them does not count."""
    return key in values or isinstance(values, Domains)


def _size(value: Any) -> int:
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    raise no_overload("size", value)


# Conversions


def _digits(text: str, function: str) -> int:
    if len(text.lstrip("+-0")) > 20:
        raise EvaluationError(f'strconv.{function}: parsing "{text}": value out of range')
    return int(text.lstrip("+-0") or "0") * (-1 if text[0] == "-" else 1)


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        if re.fullmatch(r"[+-]?[0-9]+", value):
            return whole(_digits(value, "ParseInt"))
        raise EvaluationError(f'strconv.ParseInt: parsing "{value}": invalid syntax')
    if isinstance(value, Timestamp):
        return value.nanos // 10**9
    if isinstance(value, Duration):
        return value.nanos
    if isinstance(value, float) and (value != value or abs(value) >= 2**63):
        raise EvaluationError("integer overflow")
    if is_number(value):
        return whole(int(value))
    raise no_overload("int", value)


def _to_uint(value: Any) -> UInt:
    if isinstance(value, str):
        if re.fullmatch(r"[0-9]+", value):
            return unsigned(_digits(value, "ParseUint"))
        raise EvaluationError(f'strconv.ParseUint: parsing "{value}": invalid syntax')
    if isinstance(value, float) and (value != value or not 0 <= value < 2**64):
        raise EvaluationError("unsigned integer overflow")
    if is_number(value):
        return unsigned(int(value))
    raise no_overload("uint", value)


def _to_double(value: Any) -> float:
    if is_number(value):
        return float(value)
    if isinstance(value, str):
        return _read_double(value)
    raise no_overload("double", value)


_DECIMAL = re.compile(
    r"[+-]?(?:[0-9]+(?:_[0-9]+)*\.?(?:[0-9]+(?:_[0-9]+)*)?|\.[0-9]+(?:_[0-9]+)*)(?:[eE][+-]?[0-9]+(?:_[0-9]+)*)?"
)
_HEXADECIMAL = re.compile(r"[+-]?0[xX]_?(?=\.?[0-9a-fA-F])[0-9a-fA-F_]*\.?[0-9a-fA-F_]*[pP][+-]?[0-9]+")
_NOT_FINITE = re.compile(r"(?i)[+-]?(?:inf|infinity)|nan")


def _read_double(text: str) -> float:
    """Read a double as Go does: no spaces, no digits of other scripts, and nothing past the largest one."""
    refused = EvaluationError(f'strconv.ParseFloat: parsing "{text}": invalid syntax')
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    try:
        if _DECIMAL.fullmatch(text):
            number = float(text.replace("_", ""))
        elif _HEXADECIMAL.fullmatch(text) and not re.search(r"__|_[.pP]|\._", text):
            number = float.fromhex(text.replace("_", ""))
        else:
            raise refused
    except OverflowError:
        raise refused from None
    if math.isinf(number):
        raise EvaluationError(f'strconv.ParseFloat: parsing "{text}": value out of range')
    return number


def _to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _TRUE + _FALSE:
        return value in _TRUE
    if isinstance(value, str):
        raise EvaluationError(f'strconv.ParseBool: parsing "{value}": invalid syntax')
    raise no_overload("bool", value)


def _to_string(value: Any) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, (bool, str, int, float, Timestamp, Duration, IP, CIDR)):
        return as_text(value)
    raise no_overload("string", value)


def _to_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise no_overload("bytes", value)


def _to_timestamp(value: Any) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, str):
        return Timestamp.parse(value)
    if _is_int(value):
        return Timestamp.checked(value * 10**9)
    raise no_overload("timestamp", value)


def _to_duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, str):
        return Duration.parse(value)
    raise no_overload("duration", value)


GLOBALS: dict[str, Callable[..., Any]] = {
    "_+_": _add,
    "_-_": _subtract,
    "_*_": _arithmetic("_*_", lambda a, b: a * b, lambda a, b: a * b),
    "_/_": _arithmetic("_/_", _truncated, _divide),
    "_%_": _arithmetic("_%_", _remainder, None),
    "-_": _negate,
    "!_": _not,
    "_==_": _equal,
    "_!=_": lambda left, right: not are_equal(left, right),
    "_<_": _ordered("_<_", operator.lt),
    "_<=_": _ordered("_<=_", operator.le),
    "_>_": _ordered("_>_", operator.gt),
    "_>=_": _ordered("_>=_", operator.ge),
    "@in": _in,
    "_[_]": index,
    "_[?_]": find,
    "_?._": find,
    "size": _size,
    "type": lambda value: CelType(type_name(value)),
    "dyn": lambda value: value,
    "int": _to_int,
    "uint": _to_uint,
    "double": _to_double,
    "bool": _to_bool,
    "string": _to_string,
    "bytes": _to_bytes,
    "timestamp": _to_timestamp,
    "duration": _to_duration,
}


TYPES = {name: CelType(name) for name in (*(name for _, name in TYPE_NAMES), Timestamp.cel_type, Duration.cel_type)}
"""Names that stand for types."""
