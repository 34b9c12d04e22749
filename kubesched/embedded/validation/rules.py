"""The rules that stand with the fields in the schema tables, and what the API says if one is broken.

In: an object of one type. Out: a cause for every field that breaks a rule. What depends on several fields is checked by the
functions of pods.py and objects.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from kubesched.embedded.schema.language import Shape
from kubesched.embedded.schema.resources import Object
from kubesched.embedded.validation import field
from kubesched.embedded.validation.field import Cause
from kubesched.embedded.validation.naming import dns_label_faults, dns_subdomain_faults
from kubesched.kube.values import qualified_name_complaints

Check = Callable[[Object, str], Iterable[Cause]]
Rule = tuple[Callable[[Any], bool], Callable[[str, Any], list[Cause]]]  # is a value fine; what is wrong with it at a path

NOT_NEGATIVE = "must be greater than or equal to 0"
_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
    "regex used for validation is '[0-9]+%')"
)
_VARIABLE = re.compile(r"[ -<>-~]+\Z")  # printable, and no equals sign
_LEAST = {  # rule: the least number and the text
    ">=0": (0, NOT_NEGATIVE),
    ">0": (1, "must be greater than 0"),
    ">zero": (1, "must be greater than zero"),
}


def _variable_faults(name: str) -> list[str]:
    text = "a valid environment variable name must consist only of printable ASCII characters other than '='"
    return [] if _VARIABLE.match(name) else [text]


_FORMS: dict[str, Callable[[str], Iterable[str]]] = {
    "dns-label": dns_label_faults,
    "dns-name": dns_subdomain_faults,
    "label-key": qualified_name_complaints,
    "variable": _variable_faults,
}


def check_of(shape: Shape, special: Check | None) -> Check | None:
    """Return the check of a type: the rules of its fields, then `special`. None for a type that has neither."""
    ruled: list[tuple[str, Any, list[Rule]]] = []
    for one in shape.fields.values():
        if one.rules:
            must_be = one.required or "needed" in one.rules
            blank = None if not must_be else 0 if one.shape.form == "int" else ""  # what a field that is not there stands for
            ruled.append((one.name, blank, [_read(rule) for rule in one.rules]))
    if not ruled:
        return special

    def check(obj: Object, path: str) -> list[Cause]:
        found: list[Cause] = []
        for name, blank, rules in ruled:
            value = obj.get(name, blank)
            if value is None or (value == "" and blank is None):
                continue
            for is_fine, causes_of in rules:
                if not is_fine(value):
                    found += causes_of(f"{path}.{name}" if path else name, value)
                    break
        if special is not None:
            found += special(obj, path)
        return found

    return check


def _read(rule: str) -> Rule:
    """Return a rule as two functions: whether a value is fine, and what is wrong with one that is not."""
    kind, _, argument = rule.partition(":")
    if kind == "needed":
        return bool, lambda path, value: [field.required(path)]
    if kind == "in":
        allowed = argument.split("|")
        return allowed.__contains__, lambda path, value: [field.not_supported(path, value, allowed)]
    if kind in _LEAST:
        return _between(*_LEAST[kind], 2**63)
    if kind == "weight":
        return _between(1, "must be in the range 1-100", 100)
    if kind == "percent":
        return lambda value: not _share_faults(value), lambda path, value: field.invalid_each(path, value, _share_faults(value))
    if kind == "is":
        faults_of = _FORMS[argument]
        return lambda value: not faults_of(value), lambda path, value: field.invalid_each(path, value, faults_of(value))
    lowest, _, highest = rule.rstrip("?").partition("..")
    text = f"must be between {lowest} and {highest}, inclusive"
    return _between(int(lowest), text, int(highest), rule.endswith("?"))


def _between(lowest: int, text: str, highest: int, or_zero: bool = False) -> Rule:
    """Return the rule for numbers in a range; texts pass, for an int-or-string field may hold a percentage."""

    def is_fine(value: Any) -> bool:
        return isinstance(value, str) or lowest <= value <= highest or (or_zero and not value)

    return is_fine, lambda path, value: [field.invalid(path, value, text)]


def _share_faults(value: int | str) -> list[str]:
    """Return what is wrong with a number from 0 on, or a percentage up to 100 %."""
    if isinstance(value, int):
        return [NOT_NEGATIVE] if value < 0 else []
    if not re.fullmatch(r"[0-9]{1,9}%", value):
        return [_PERCENT]
    return ["must not be greater than 100%"] if int(value[:-1]) > 100 else []
