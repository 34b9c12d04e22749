"""Selectors: expressions asked of devices, each answer remembered.

In: an expression and the facts of a device. Out: whether the expression holds. Devices that look the same share their
facts, so an expression is evaluated once for each kind of device and not once for each device.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from kubesched.errors import SchedulerError
from kubesched.kube.api import Device, DeviceAttribute, DeviceCapacity
from kubesched.kube.cel.checking import check
from kubesched.kube.cel.costs import COST_LIMIT
from kubesched.kube.cel.evaluation import CutOff, Run, Scope, build
from kubesched.kube.cel.quantities import Quantity
from kubesched.kube.cel.values import CelError, CompileError, Domains, EvaluationError, type_name
from kubesched.kube.cel.versions import Semver

_encode = msgspec.json.Encoder().encode

_CHEAP = 10_000
_LONGEST_TEXT = 4096
_STEPS_A_UNIT = 10
_UNITS_A_LETTER = 20
"""What compiling takes, in terms of evaluation: the longest expression a fifth of a second."""


class NoAllowance(Exception):
    """Expensive expressions have used up what they may cost for now."""


class Allowance:
    """What expensive evaluations may cost together before the scheduler turns to something else.

    The answers found so far are remembered, so whoever comes back with a new allowance gets further. The last evaluation
    may overdraw it: everyone gets at least one.
    """

    __slots__ = ("left",)

    def __init__(self, cost: int = 100_000) -> None:
        self.left = cost

    def take(self, cost: int) -> None:
        """Count an evaluation; cheap ones are free."""
        if cost > _CHEAP:
            self.left -= cost


_MOST_ANSWERS = 256
"""How many expressions have an answer on record for a device: claims come with their own."""


class DeviceFacts:
    """What selectors can see of a device. Equal devices share one of these; it remembers what was found out."""

    __slots__ = (
        "__weakref__",
        "_record",
        "allow_multiple",
        "answers",
        "attributes",
        "capacity",
        "derived",
        "driver",
        "lists",
        "newer",
    )

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, DeviceAttribute],
        capacity: Mapping[str, DeviceCapacity],
        allow_multiple: bool = False,
        lists: bool = False,
        newer: bool = True,
    ) -> None:
        self.driver = driver
        self.attributes = attributes
        self.capacity = capacity
        self.allow_multiple = allow_multiple
        self.lists = lists
        self.newer = newer
        self.answers: dict[str, bool | CelError] = {}
        self.derived: dict[str, DeviceAttribute | CelError] = {}
        self._record: dict[str, Any] | None = None

    def record(self) -> dict[str, Any]:
        """Return the value of the variable `device`."""
        if self._record is None:
            attributes, capacity = Domains(), Domains()
            for name, attribute in self.attributes.items():
                domain, identifier = _qualified(name, self.driver)
                attributes.setdefault(domain, {})[identifier] = self._value(name, attribute)
            for name, amount in self.capacity.items():
                domain, identifier = _qualified(name, self.driver)
                capacity.setdefault(domain, {})[identifier] = Quantity.parse(amount.value)
            self._record = {
                "driver": self.driver,
                "attributes": attributes,
                "capacity": capacity,
                "allowMultipleAllocations": self.allow_multiple,
            }
        return self._record

    def _value(self, name: str, attribute: DeviceAttribute) -> Any:
        single: Any
        for single in (attribute.int_value, attribute.bool_value, attribute.string_value):
            if single is not None:
                return single
        if attribute.version_value is not None:
            return _version(name, attribute.version_value)
        if self.lists or self.newer:
            several: Any
            for several in (attribute.int_values, attribute.bool_values, attribute.string_values):
                if several is not None:
                    return list(several)
            if attribute.version_values is not None:
                return [_version(name, text) for text in attribute.version_values]
        raise EvaluationError(f"attribute {name}: unsupported attribute value")


class FactBook:
    """One `DeviceFacts` for all devices that look the same.

    `lists`: attributes may be lists. `newer`: expressions mean what they mean since 1.37 (`Behaviour.speaks_newer_cel`).
    """

    def __init__(self, lists: bool = False, newer: bool = True) -> None:
        self._lists = lists
        self._newer = newer
        self._facts: WeakValueDictionary[bytes, DeviceFacts] = WeakValueDictionary()
        """Each is kept by the slices that publish such a device."""

    def facts(self, driver: str, device: Device) -> DeviceFacts:
        """Return the facts of a device."""
        multiple = bool(device.allow_multiple_allocations)
        key = _encode((driver, multiple, device.attributes, device.capacity))
        found = self._facts.get(key)
        if found is None:
            found = self._facts[key] = DeviceFacts(
                driver, device.attributes, device.capacity, multiple, self._lists, self._newer
            )
        return found


def holds(expression: str, facts: DeviceFacts, allowance: Allowance | None = None) -> bool:
    """Return whether an expression is true of a device; raise a `CelError` if it has no answer."""
    answer = facts.answers.get(expression)
    if answer is None:
        if allowance is not None and allowance.left <= 0:
            raise NoAllowance
        try:
            answer = _evaluate(expression, facts, allowance)
        except CelError as error:
            answer = error
        if len(facts.answers) >= _MOST_ANSWERS:
            facts.answers.clear()
        facts.answers[expression] = answer
    if isinstance(answer, CelError):
        raise answer.with_traceback(None)
    return answer


def derive(expression: str, facts: DeviceFacts, allowance: Allowance | None = None) -> DeviceAttribute:
    """Return the attribute that an expression makes of a device; raise a `CelError` if it makes none."""
    known = facts.derived.get(expression)
    if known is None:
        try:
            known = _attribute(_value_of(expression, facts, allowance, want_bool=False))
        except CelError as error:
            known = error
        if len(facts.derived) >= _MOST_ANSWERS:
            facts.derived.clear()
        facts.derived[expression] = known
    if isinstance(known, CelError):
        raise known.with_traceback(None)
    return known


def _attribute(value: Any) -> DeviceAttribute:
    if isinstance(value, bool):
        return DeviceAttribute(bool_value=value)
    if isinstance(value, int):
        return DeviceAttribute(int_value=int(value))
    if isinstance(value, str):
        return DeviceAttribute(string_value=value)
    if isinstance(value, Semver):
        return DeviceAttribute(version_value=str(value))
    if isinstance(value, list):
        made = [_attribute(each) for each in value]
        if all(each.string_value is not None for each in made):
            return DeviceAttribute(string_values=tuple(each.string_value or "" for each in made))
        if all(each.int_value is not None for each in made):
            return DeviceAttribute(int_values=tuple(each.int_value or 0 for each in made))
        if all(each.bool_value is not None for each in made):
            return DeviceAttribute(bool_values=tuple(bool(each.bool_value) for each in made))
        if all(each.version_value is not None for each in made):
            return DeviceAttribute(version_values=tuple(each.version_value or "" for each in made))
    raise EvaluationError(f"unsupported derived attribute type: {type_name(value)}")


def _evaluate(expression: str, facts: DeviceFacts, allowance: Allowance | None) -> bool:
    value = _value_of(expression, facts, allowance)
    if not isinstance(value, bool):
        raise EvaluationError(f"CEL result of type {type_name(value)} could not be converted to bool")
    return value


def _value_of(expression: str, facts: DeviceFacts, allowance: Allowance | None, *, want_bool: bool = True) -> Any:
    misses = _compiled.cache_info().misses
    program = _compiled(expression, want_bool, facts.newer, not (facts.newer or facts.lists))
    if allowance is not None and _compiled.cache_info().misses > misses:
        allowance.take(len(expression) * _UNITS_A_LETTER)
    if isinstance(program, CompileError):
        raise program
    record = facts.record()
    scope = Scope({"device": record, **{f"device.{name}": value for name, value in record.items()}}, facts.newer)
    try:
        return _run(program, scope)
    finally:
        if allowance is not None:
            allowance.take(max(scope.spent, scope.worked // _STEPS_A_UNIT))


def _run(program: Run, scope: Scope) -> Any:
    try:
        value, failure = program(scope), None
    except CutOff as error:
        raise EvaluationError(str(error)) from None
    except EvaluationError as error:
        value, failure = None, error
    except RecursionError:
        raise EvaluationError("the expression is nested too deeply") from None
    except Exception as error:
        # A hole in a function of ours must not take the scheduler down: whoever wrote the expression hears of it.
        raise EvaluationError(f"internal error: {type(error).__name__}: {error}"[:_LONGEST_TEXT]) from None
    if scope.spent > COST_LIMIT:
        raise EvaluationError(str(CutOff()))
    if failure is not None:
        text = str(failure)
        raise failure if len(text) <= _LONGEST_TEXT else EvaluationError(f"{text[:_LONGEST_TEXT]}...")
    return value


@lru_cache(maxsize=1024)
def _compiled(expression: str, want_bool: bool, newer: bool, any_attributes: bool) -> Run | CompileError:
    try:
        return build(check(expression, want_bool, newer, any_attributes))
    except CompileError as error:
        return error
    except RecursionError:
        return CompileError("compilation failed: the expression is nested too deeply")
    except SchedulerError:  # nobody here can compile anything: that is not the expression's fault
        raise
    except Exception as error:
        return CompileError(f"internal error: {type(error).__name__}: {error}"[:_LONGEST_TEXT])


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _version(name: str, text: str) -> Semver:
    try:
        return Semver.parse(text)
    except EvaluationError as error:
        raise EvaluationError(f"attribute {name}: parse semantic version: {error}") from None
