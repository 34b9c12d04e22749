"""YAML text as a document tree, with the types and errors of kube-scheduler's library (sigs.k8s.io/yaml).

    yes, on, y -> true      0o17, 017 -> 15      1_000 -> 1000      2020-01-01 -> text      1: a -> key "1"

A second document in the text is ignored. Of repeated keys the last one wins; `read_yaml` also returns an error line for each,
for strict callers. PyYAML parses; everything after that is done here, because its types differ.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from decimal import Decimal
from typing import Any

import yaml

from kubesched.errors import ConfigError
from kubesched.kube.values import DEEPEST as _MAX_DEPTH
from kubesched.kube.values import check_yaml, go_quote
from kubesched.scheduler.config.documents.reading import Number, Object, Value, compact

_WORDS: dict[str, Value] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False),
    **dict.fromkeys(["", "~", "null", "Null", "NULL"], None),
}
_NOT_FINITE = {
    **dict.fromkeys([".nan", ".NaN", ".NAN"], "NaN"),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], "+Inf"),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], "-Inf"),
}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DIGITS = ((16, "0x", "0123456789abcdef"), (2, "0b", "01"), (8, "0o", "01234567"), (8, "0", "01234567"))
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:(?:[Tt]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.[0-9]+)?(?:Z|[-+][0-9]{2}:[0-9]{2}))"
    r"| ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.[0-9]+)?)?"
)
_TAG = "tag:yaml.org,2002:"
_PLAIN = "plain"
_RESOLVED = frozenset({_PLAIN, *(f"{_TAG}{name}" for name in ("bool", "int", "float", "null"))})


class _Nodes(yaml.CSafeLoader):
    """A loader that only parses: it returns nodes, with plain scalars tagged as such."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        # `implicit[0]`: the scalar stands without quotes and tag, so its type follows from its text. Quoted text stays text.
        return _PLAIN if kind is yaml.ScalarNode and implicit[0] else f"{_TAG}str"


def read_yaml(text: str) -> tuple[Value, list[str]]:
    """Return the first document's tree with sorted keys, and an error line for every repeated key."""
    check_yaml(text)
    loader = _Nodes(text)
    try:
        # `get_node` and not `get_single_node`, which would refuse a second document.
        node = loader.get_node() if loader.check_node() else None
    except yaml.composer.ComposerError as error:
        raise ConfigError("", f"yaml: unknown anchor '{_alias(text, error)}' referenced") from error
    except yaml.MarkedYAMLError as error:
        raise ConfigError("", f"yaml: {_where(error)}{error.problem}") from error
    except yaml.YAMLError as error:
        raise ConfigError("", "yaml: control characters are not allowed") from error
    finally:
        loader.dispose()
    repeated: list[str] = []
    return None if node is None else _tree(node, repeated, 0), repeated


def _alias(text: str, error: yaml.MarkedYAMLError) -> str:
    """Return the name after the `*` at the position of the error."""
    mark = error.problem_mark
    found = re.match(r"\*([0-9A-Za-z_-]+)", text.split("\n")[mark.line][mark.column :]) if mark else None
    return found[1] if found else ""


def _where(error: yaml.MarkedYAMLError) -> str:
    """Return `line N: ` as the Go library counts: from 1 for scanner errors, from 0 for others."""
    # Kept quirk: line 0 is not printed at all, so an error in the first line has no number.
    line = error.problem_mark.line if error.problem_mark else 0
    if line:
        line += isinstance(error, yaml.scanner.ScannerError)
    elif error.context_mark:
        line = error.context_mark.line
    return f"line {line}: " if line else ""


def _tree(node: yaml.Node, repeated: list[str], depth: int) -> Value:
    if depth > _MAX_DEPTH:  # aliases inside aliases can nest deeper than the text
        raise ConfigError("", f"yaml: nested deeper than {_MAX_DEPTH} levels")
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, repeated, depth)
    if isinstance(node, yaml.SequenceNode):
        return [_tree(item, repeated, depth + 1) for item in node.value]
    return _scalar(node)


def _mapping(node: yaml.MappingNode, repeated: list[str], depth: int) -> Object:
    """Return a mapping with sorted keys; its own keys win over those of a merge (`<<`)."""
    found: dict[str, Value] = {}
    merged: dict[str, Value] = {}
    for key_node, value_node in node.value:
        # Merges are kept apart, because the mapping's own keys win wherever the merge stands.
        if _is_merge(key_node):
            # The left side of `|` loses: pairs that an earlier merge brought stay.
            merged = _merge(value_node, repeated, depth) | merged
            continue
        if not isinstance(key_node, yaml.ScalarNode):
            raise ConfigError("", "yaml: invalid map key: a key must be a plain value")
        value = _tree(value_node, repeated, depth + 1)
        key, shown = _key(_scalar(key_node), value)
        if key in found:
            repeated.append(f"line {value_node.start_mark.line + 1}: key {shown} already set in map")
        found[key] = value
    return Object(tuple(sorted((merged | found).items())))


def _is_merge(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.value == "<<" and not node.style


def _merge(node: yaml.Node, repeated: list[str], depth: int) -> dict[str, Value]:
    """Return the pairs that `<<: *anchor` adds; of several anchors the first one wins."""
    if isinstance(node, yaml.MappingNode):
        return dict(_mapping(node, repeated, depth + 1).pairs)
    if isinstance(node, yaml.SequenceNode) and all(isinstance(item, yaml.MappingNode) for item in node.value):
        brought: dict[str, Value] = {}
        for item in node.value:
            brought = dict(_mapping(item, repeated, depth + 1).pairs) | brought
        return brought
    raise ConfigError("", "yaml: map merge requires map or sequence of maps as the value")


def _key(key: Value, value: Value) -> tuple[str, str]:
    """Return a key as a JSON string, and as Go prints it in an error."""
    if isinstance(key, bool):
        text = "true" if key else "false"
        return text, text
    if isinstance(key, Number):
        return str(key), str(key)
    if isinstance(key, str):
        return key, go_quote(key)
    raise ConfigError("", f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {_shown(value)}")


def _shown(value: Value) -> str:
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return go_quote(value)
    return "interface {}(nil)" if value is None else compact(value)


def is_text(scalar: str) -> bool:
    """Return whether a plain scalar is read as text."""
    if scalar in _NOT_FINITE or scalar == "<<" or _is_timestamp(scalar):
        return False
    found = _resolved(scalar)
    return isinstance(found, str) and not isinstance(found, Number)


def _scalar(node: yaml.Node) -> Value:
    text: str = node.value
    return _resolved(text) if node.tag in _RESOLVED else text


def _resolved(text: str) -> Value:
    if text in _WORDS:
        return _WORDS[text]
    # YAML becomes JSON on the way, and JSON has no such numbers.
    if text in _NOT_FINITE:
        raise ConfigError("", f"json: unsupported value: {_NOT_FINITE[text]}")
    if text[0] in "+-0123456789." and (number := _number(text)) is not None:
        return number
    return text


def _number(text: str) -> Value:
    if _is_timestamp(text):
        return None
    # YAML 1.1 allows 1_000.
    plain = text if text[0] == "." else text.replace("_", "")
    integer = _integer(plain)
    if integer is not None:
        return Number(str(integer))
    if _FLOAT.fullmatch(plain) and not math.isinf(value := float(plain)):
        return _float(value)
    return None


def _integer(text: str) -> int | None:
    """Return an integer in one of YAML 1.1's notations (0x1f, 0b1, 0o17, 017, 15), None if it is none or does not fit 64
    bits."""
    sign = -1 if text[:1] == "-" else 1
    digits = text[1:] if text[:1] in ("+", "-") else text
    base = 10
    # The order matters: `0o17` is found before the old octal `017`. A number with a leading zero that is no octal (`089`) is no
    # integer.
    for candidate, prefix, allowed in _DIGITS:
        rest = digits[len(prefix) :].lower()
        if digits.lower().startswith(prefix) and rest and all(char in allowed for char in rest):
            base, digits = candidate, rest
            break
    else:
        if not digits.isdecimal() or not digits.isascii() or (digits[0] == "0" and digits != "0"):
            return None
    value = sign * int(digits, base)
    return value if -(1 << 63) <= value < 1 << 64 else None


def _float(value: float) -> Number:
    """Return a float as Go's JSON encoder writes it: the shortest digits, with an exponent below 1e-6 and from 1e21 on."""
    if value and not 1e-6 <= abs(value) < 1e21:
        return Number(f"{Decimal(repr(value)).normalize():e}".replace("e-0", "e-"))
    text = f"{Decimal(repr(value)):f}"
    return Number(text.removesuffix(".0"))


def _is_timestamp(text: str) -> bool:
    """Return whether this is a date. A date is read as text, and written in quotes."""
    # What looks like a date must be one: `2020-13-01` has no month 13, and is plain text without being a date. The difference
    # shows when it is printed.
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        return False
    year, month, day, *clock = (int(part or 0) for part in match.groups())
    hour, minute, second = (one or other for one, other in zip(clock[:3], clock[3:], strict=True))
    try:
        datetime(year or 4, month, day, hour, minute, second)  # year 0 exists there, and has a 29th of February
    except ValueError:
        return False
    return True
