"""What calls cost: the figures of kube-scheduler's cost model, and our own for work that it gives away.

In: the name of a function and its arguments. Out: units. An expression that needs more than `COST_LIMIT` units of cost is
cut off, where kube-scheduler cuts it off. Some things are nearly free there because Go does them lazily, or because
nobody thought of them (`+` on lists, `replace` by a long text, comparing lists of lists of lists): these count as work,
which has a limit of its own, so that time and memory are bounded whatever an expression does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubesched.kube.cel.formats import Format
from kubesched.kube.cel.networks import CIDR, IP
from kubesched.kube.cel.values import Optional, UInt
from kubesched.kube.values import RegexError, compile_regex

COST_LIMIT = 1_000_000
WORK_LIMIT = 5_000_000
"""Steps of about 20 ns each: a place in a list that is copied, some bytes of a text, a few states of a pattern."""

PLAIN = frozenset({int, UInt, bool, float, type(None)})
"""Types whose values are all of size 1."""

LONGEST_RANGE = 1_000_000
"""What `lists.range` makes at most, since 1.37."""

LIST, MAP = 10, 30
"""What making a list or a map costs."""

_BYTES_A_STEP = 8
_STATES_A_STEP = 8
_STEPS_A_LETTER = 100
"""At each letter `findAll` may find something."""
_STEPS_AN_ELEMENT = 4
_STEPS_A_LIST = 25
_STEPS_A_STATE = 20
"""A pattern is compiled anew when many others have been used meanwhile."""

_PRECISION = re.compile(r"%\.([0-9]{1,18})")

Count = Callable[[Sequence[Any]], int]


def size(value: Any) -> int:
    """Return the size that costs are counted by."""
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    if isinstance(value, Optional) and value.is_there:
        return size(value.value)
    if isinstance(value, IP):
        return value.address.max_prefixlen // 8
    if isinstance(value, CIDR):
        return -(-value.network.network.prefixlen // 8)
    return 1


def weight(value: Any, most: int = WORK_LIMIT) -> int:
    """Return how many steps it takes to look at all of a value; counting stops when there are more than `most`."""
    if isinstance(value, (str, bytes)):
        return 1 + len(value) // _BYTES_A_STEP
    if isinstance(value, Optional):
        return 1 + weight(value.value, most)
    if not isinstance(value, (list, dict)):
        return 1
    total = _STEPS_A_LIST + len(value) * _STEPS_AN_ELEMENT
    for part in value if isinstance(value, list) else (part for entry in value.items() for part in entry):
        if part.__class__ not in PLAIN:
            total += weight(part, most - total)
            if total > most:
                break
    return total


def traversal(value: Any, most: int = COST_LIMIT) -> int:
    """Return what it costs to look at all of a value."""
    if isinstance(value, str):
        return int(len(value.encode(errors="replace")) * 0.1)
    if isinstance(value, bytes):
        return int(len(value) * 0.1)
    if not isinstance(value, (list, dict)):
        return 1
    total = 0
    for part in value if isinstance(value, list) else (part for entry in value.items() for part in entry):
        total += traversal(part, most - total)
        if total > most:
            break
    return total


def tenth(length: float) -> int:
    """Return what a look at so many letters costs."""
    return math.ceil(length * 0.1)


def _pattern(text: Any, pattern_size: int) -> int:
    return tenth(1.0 + size(text)) * math.ceil(pattern_size * 0.25)


def _first(factor: int = 1) -> Count:
    return lambda args: math.ceil(size(args[0]) * factor * 0.1)


def _by_shorter(args: Sequence[Any]) -> int:
    return 1 if isinstance(args[0], (IP, CIDR)) else tenth(min(size(args[0]), size(args[1])))


def _self_compare(values: Any) -> int:
    factor = 2.1 if values and isinstance(values[0], (str, bytes)) else 2.0
    return int(len(values) ** 2 * factor) + 1 + LIST


def _joined(args: Sequence[Any]) -> int:
    parts, separator = args[0], args[1] if len(args) > 1 else ""
    return sum(map(size, parts)) + size(separator) * max(len(parts) - 1, 0)


def _replaced(args: Sequence[Any]) -> int:
    text, old, new = args[:3]
    times: int = len(text) + 1 if old == "" else text.count(old)
    if len(args) > 3 and args[3] >= 0:
        times = min(times, args[3])
    return len(text) + times * max(len(new) - len(old), 0)


def _range(args: Sequence[Any]) -> int:
    return max(int(args[0]), 0) + 1 + LIST


def _contains_ip(args: Sequence[Any]) -> int:
    return tenth(2 * size(args[0])) + (tenth(len(args[1])) if isinstance(args[1], str) else 0)


def _contains_cidr(args: Sequence[Any]) -> int:
    return _contains_ip(args) + tenth(size(args[0])) + 1


def _validate(args: Sequence[Any]) -> int:
    return _pattern(args[1], args[0].pattern_size) if isinstance(args[0], Format) else 1


def _find(args: Sequence[Any]) -> int:
    return _pattern(args[0], size(args[1]))


def _walk(args: Sequence[Any]) -> int:
    return traversal(args[0])


COSTS: Mapping[str, Count] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _walk),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _first()),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _first()),
    **dict.fromkeys(("startsWith", "endsWith", "strings.quote", "format"), _first()),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first(2)),
    **dict.fromkeys(("matches", "find", "findAll"), _find),
    **dict.fromkeys(("_==_", "_!=_"), _by_shorter),
    "ip": lambda args: 1 if isinstance(args[0], CIDR) else tenth(size(args[0])),
    "join": lambda args: math.ceil(_joined(args) * 2 * 0.1),
    "contains": lambda args: tenth(size(args[0])) * tenth(size(args[1])),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "lists.range": _range,
    "slice": lambda args: (args[2] - args[1] if 0 <= args[1] <= args[2] <= len(args[0]) else 1) + 1 + LIST,
    "flatten": lambda args: size(args[0]) * (args[1] if len(args) > 1 and args[1] >= 0 else 1) + 1 + LIST,
    "reverse": lambda args: (len(args[0]) if isinstance(args[0], list) else 1) + 1 + LIST,
    "distinct": lambda args: _self_compare(args[0]),
    "sort": lambda args: _self_compare(args[0]),
    "@sortByAssociatedKeys": lambda args: _self_compare(args[1]),
    "sets.contains": lambda args: 1 + size(args[0]) * size(args[1]),
    "sets.intersects": lambda args: 1 + size(args[0]) * size(args[1]),
    "sets.equivalent": lambda args: 1 + size(args[0]) * size(args[1]) * 2,
}
"""Functions that do not cost 1."""

COSTS_OF_FAILURE: Mapping[str, int | None] = {
    **dict.fromkeys(("lists.range", "slice", "reverse"), 1 + 1 + LIST),
    **dict.fromkeys(("distinct", "sort", "@sortByAssociatedKeys")),
    "join": 1,
}
"""What calls cost after an argument has failed, where it is not as if that argument had the size 1. None: the reference
breaks, and the whole expression fails."""

NEWER_COSTS: Mapping[str, Count] = {
    **dict.fromkeys(("startsWith", "endsWith"), lambda args: tenth(size(args[1]))),
    "includes": _walk,
    "lists.range": lambda args: _range(args if 0 <= args[0] <= LONGEST_RANGE else (1,)),
}
"""What costs something else since 1.37."""
OLDER_COSTS: Mapping[str, Count] = {"matches": lambda args: 1}
"""Functions, and not members, that cost something else before 1.37."""

UNRESOLVED_COSTS: Mapping[str, Count | None] = {
    **dict.fromkeys(("sort", "@sortByAssociatedKeys")),
    "containsIP": lambda args: tenth(2 * size(args[0])),
    "containsCIDR": lambda args: tenth(2 * size(args[0])) + tenth(size(args[0])) + 1,
}
"""What calls cost of which the check cannot tell the overload, where that is something else; None is 1."""

BY_OVERLOAD: Mapping[str, tuple[frozenset[str], tuple[type, ...], Count]] = {
    "_+_": (frozenset({"add_string", "add_bytes"}), (str, bytes), lambda args: tenth(size(args[0]) + size(args[1]))),
    "@in": (frozenset({"in_list"}), (), lambda args: size(args[1]) if isinstance(args[1], list) else 1),
    "string": (frozenset({"bytes_to_string"}), (bytes,), _first()),
    "bytes": (frozenset({"string_to_bytes"}), (str,), _first()),
    **{
        name: (frozenset({f"{word}_string", f"{word}_bytes"}), (str, bytes), _by_shorter)
        for name, word in {"_<_": "less", "_<=_": "less_equals", "_>_": "greater", "_>=_": "greater_equals"}.items()
    },
}
"""Functions that do not cost 1 for some types: only if the check knows the types, or if there was none."""


def call_cost(name: str, overloads: tuple[str, ...] | None, *, newer: bool, is_member: bool) -> Count | None:
    """Return how a call's cost is counted; None if it is 1."""
    if newer and name in NEWER_COSTS:
        return NEWER_COSTS[name]
    if not newer and not is_member and name in OLDER_COSTS:
        return OLDER_COSTS[name]
    if overloads and name in UNRESOLVED_COSTS and (len(overloads) > 1 or overloads[0].startswith("contains")):
        base = UNRESOLVED_COSTS[name]
        is_text = base is not None and len(overloads) == 1 and overloads[0].endswith("_1")
        return (lambda args: base(args) + tenth(size(args[1]))) if base is not None and is_text else base
    if name not in BY_OVERLOAD:
        return COSTS.get(name)
    known, kinds, count = BY_OVERLOAD[name]
    if overloads is None:
        return lambda args: count(args) if not kinds or isinstance(args[0], kinds) else 1
    return count if len(overloads) == 1 and overloads[0] in known else None


# Work


def _heavy(args: Sequence[Any]) -> int:
    total = 0
    for arg in args:
        if total <= WORK_LIMIT:
            total += weight(arg)
    return total


def _pairs(args: Sequence[Any]) -> int:
    return weight(args[0]) * size(args[-1]) + weight(args[-1])


def _add(args: Sequence[Any]) -> int:
    left, right = args
    if isinstance(left, list) and isinstance(right, list):
        return len(left) + len(right)
    if isinstance(left, (str, bytes)) and isinstance(right, (str, bytes)):
        return (len(left) + len(right)) // _BYTES_A_STEP
    return 0


def _search(steps_a_letter: int) -> Count:
    def count(args: Sequence[Any]) -> int:
        text, pattern = args[:2]
        if not isinstance(text, str) or not isinstance(pattern, str):
            return 0
        try:
            regex = compile_regex(pattern)
            return regex.size * _STEPS_A_STATE + regex.steps(text) // _STATES_A_STEP + len(text) * steps_a_letter
        except RegexError:
            return 0

    return count


def _format(args: Sequence[Any]) -> int:
    digits = max(map(int, _PRECISION.findall(args[0])), default=0)
    return _heavy(args) + digits * size(args[1])


WORK: Mapping[str, Count] = {
    "_+_": _add,
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "includes", "indexOf", "lastIndexOf"), _heavy),
    **dict.fromkeys(("sum", "max", "min", "isSorted", "flatten", "string", "bytes", "split", "reverse", "slice"), _heavy),
    **dict.fromkeys(("url", "cidr", "ip", "semver", "quantity", "timestamp", "duration", "int", "uint", "double"), _heavy),
    **dict.fromkeys(("distinct", "sets.contains", "sets.equivalent", "sets.intersects"), _pairs),
    **dict.fromkeys(("sort", "@sortByAssociatedKeys"), lambda args: _heavy(args) * 20),
    **dict.fromkeys(("matches", "find"), _search(0)),
    "findAll": _search(_STEPS_A_LETTER),
    "format": _format,
    "replace": lambda args: _replaced(args) // _BYTES_A_STEP,
    "join": lambda args: _joined(args) // _BYTES_A_STEP + len(args[0]),
    "cel.@mapInsert": lambda args: len(args[0]),
}
"""What calls take besides their cost."""
