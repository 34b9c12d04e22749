"""Label selectors: compiled from the API's form, with kube-scheduler's error messages.

A `Selector` is a list of `Requirement`s that must all match. Two are special: NOTHING (from an absent selector) and EVERYTHING
(from an empty one). Operators are the API's words In, NotIn, Exists, DoesNotExist, Gt and Lt. Equality is In with one value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kubesched.errors import SchedulerError
from kubesched.kube.api.meta import LabelSelector
from kubesched.kube.values import aggregate, go_json, go_quote, label_value_complaints, qualified_name_complaints

IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT = "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


class SelectorError(SchedulerError):
    """A selector that is wrong."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What the value of one label must be."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels are as required. An absent key satisfies only NotIn and DoesNotExist."""
        found = labels.get(self.key)
        operator = self.operator
        if operator == IN:
            return found is not None and found in self.values
        if operator == NOT_IN:
            return found is None or found not in self.values
        if operator == EXISTS:
            return found is not None
        if operator == DOES_NOT_EXIST:
            return found is None
        have = parse_int64(found) if found is not None else None
        want = parse_int64(self.values[0])
        if have is None or want is None:
            return False
        return have > want if operator == GT else have < want

    def __str__(self) -> str:
        if self.operator == EXISTS:
            return self.key
        if self.operator == DOES_NOT_EXIST:
            return f"!{self.key}"
        if self.operator in (GT, LT):
            return f"{self.key}{'>' if self.operator == GT else '<'}{self.values[0]}"
        if self.operator == IN and len(self.values) == 1:
            return f"{self.key}={self.values[0]}"
        word = "in" if self.operator == IN else "notin"
        return f"{self.key} {word} ({','.join(sorted(self.values))})"


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all match."""

    requirements: tuple[Requirement, ...] = ()
    is_nothing: bool = False

    @property
    def is_everything(self) -> bool:
        return not self.requirements and not self.is_nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the selector selects something with these labels."""
        if self.is_nothing:
            return False
        return all(requirement.matches(labels) for requirement in self.requirements)

    def with_equal(self, key: str, value: str) -> Selector:
        """Return the selector with one more label that must have a value; NOTHING stays NOTHING."""
        if self.is_nothing:
            return self
        return Selector((*self.requirements, Requirement(key, IN, (value,))))

    def __str__(self) -> str:
        return "<none>" if self.is_nothing else ",".join(str(requirement) for requirement in self.requirements)


NOTHING = Selector(is_nothing=True)
EVERYTHING = Selector()


def compile_selector(selector: LabelSelector | None) -> Selector:
    """Return a compiled label selector. Raise `SelectorError` at its first error, as kube-scheduler does."""
    if selector is None:
        return NOTHING
    if not selector.match_labels and not selector.match_expressions:
        return EVERYTHING
    requirements = []
    for key, value in sorted(selector.match_labels.items()):
        requirements.append(_required(key, IN, (value,)))
    for expression in selector.match_expressions:
        if expression.operator not in (IN, NOT_IN, EXISTS, DOES_NOT_EXIST):
            raise SelectorError(f"{go_quote(expression.operator)} is not a valid label selector operator")
        requirements.append(_required(expression.key, expression.operator, expression.values))
    return Selector(tuple(requirements))


def selector_from_map(labels: Mapping[str, str]) -> Selector:
    """Return the selector for a map of labels, as node selectors and services have it. It is never checked."""
    if not labels:
        return EVERYTHING
    return Selector(tuple(Requirement(key, IN, (value,)) for key, value in sorted(labels.items())))


def requirement_errors(key: str, operator: str, stated: tuple[str, ...] | None, path: str = "") -> list[str]:
    """Return what is wrong with a requirement, in kube-scheduler's order."""
    values = stated or ()
    at_key, at_values = (f"{path}.key", f"{path}.values") if path else ("key", "values")
    errors = []
    complaints = qualified_name_complaints(key)
    if complaints:
        errors.append(invalid(at_key, key, "; ".join(complaints)))
    if operator in (IN, NOT_IN):
        if not values:
            errors.append(invalid(at_values, stated, "for 'in', 'notin' operators, values set can't be empty"))
    elif operator in (EXISTS, DOES_NOT_EXIST):
        if values:
            errors.append(invalid(at_values, values, "values set must be empty for exists and does not exist"))
    elif operator in (GT, LT):
        if len(values) != 1:
            errors.append(invalid(at_values, stated, "for 'Gt', 'Lt' operators, exactly one value is required"))
        for index, value in enumerate(values):
            if parse_int64(value) is None:
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                errors.append(invalid(f"{at_values}[{index}]", value, detail))
    for index, value in enumerate(values):
        complaints = label_value_complaints(value)
        if complaints:
            errors.append(invalid(f"{at_values}[{index}][{key}]", value, "; ".join(complaints)))
    return errors


def invalid(path: str, value: object, detail: str) -> str:
    """Return the API's message about a value that is not allowed."""
    shown = go_quote(value) if isinstance(value, str) else go_json(value)
    return f"{path}: Invalid value: {shown}: {detail}"


def unsupported(path: str, value: str, choices: tuple[str, ...]) -> str:
    """Return the API's message about a word outside a fixed set.

    In Go these words have a type, so the message has them as JSON.
    """
    return f"{path}: Unsupported value: {go_json(value)}: supported values: {', '.join(go_quote(c) for c in choices)}"


def parse_int64(text: str) -> int | None:
    """Return a decimal integer of 64 bits; None for anything but an optional sign and digits."""
    if len(text) > 64 or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _required(key: str, operator: str, stated: tuple[str, ...] | None) -> Requirement:
    """Return a requirement, or raise its errors."""
    errors = requirement_errors(key, operator, stated)
    if errors:
        raise SelectorError(aggregate(errors))
    return Requirement(key, operator, stated or ())
