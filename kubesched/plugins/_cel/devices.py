"""Selectors: expressions asked of devices, each answer remembered.

In: an expression and the facts of a device. Out: whether the expression holds. Devices that look the same share their
facts, so an expression is evaluated once for each kind of device and not once for each device.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from kubesched.api.resource import Device, DeviceAttribute, DeviceCapacity
from kubesched.plugins._cel.checking import check
from kubesched.plugins._cel.evaluation import Run, Scope, build
from kubesched.plugins._cel.quantities import Quantity
from kubesched.plugins._cel.values import CelError, CompileError, Domains, EvaluationError, type_name
from kubesched.plugins._cel.versions import Semver

_encode = msgspec.json.Encoder().encode


class DeviceFacts:
    """What selectors can see of a device. Equal devices share one of these; it remembers what was found out."""

    __slots__ = ("_record", "allow_multiple", "answers", "attributes", "capacity", "driver", "lists")

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, DeviceAttribute],
        capacity: Mapping[str, DeviceCapacity],
        allow_multiple: bool = False,
        lists: bool = False,
    ) -> None:
        self.driver = driver
        self.attributes = attributes
        self.capacity = capacity
        self.allow_multiple = allow_multiple
        self.lists = lists
        self.answers: dict[str, bool | CelError] = {}
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
        if self.lists:
            several: Any
            for several in (attribute.int_values, attribute.bool_values, attribute.string_values):
                if several is not None:
                    return list(several)
            if attribute.version_values is not None:
                return [_version(name, text) for text in attribute.version_values]
        raise EvaluationError(f"attribute {name}: unsupported attribute value")


class FactBook:
    """One `DeviceFacts` for all devices that look the same."""

    def __init__(self, lists: bool = False) -> None:
        self._lists = lists
        self._facts: dict[bytes, DeviceFacts] = {}

    def facts(self, driver: str, device: Device) -> DeviceFacts:
        """Return the facts of a device."""
        multiple = bool(device.allow_multiple_allocations)
        key = _encode((driver, multiple, device.attributes, device.capacity))
        found = self._facts.get(key)
        if found is None:
            if len(self._facts) > 100_000:
                self._facts.clear()
            found = self._facts[key] = DeviceFacts(driver, device.attributes, device.capacity, multiple, self._lists)
        return found


def holds(expression: str, facts: DeviceFacts) -> bool:
    """Return whether an expression is true of a device; raise a `CelError` if it has no answer."""
    answer = facts.answers.get(expression)
    if answer is None:
        try:
            answer = _evaluate(expression, facts)
        except CelError as error:
            answer = error
        facts.answers[expression] = answer
    if isinstance(answer, CelError):
        raise answer.with_traceback(None)
    return answer


def _evaluate(expression: str, facts: DeviceFacts) -> bool:
    program = _compiled(expression)
    if isinstance(program, CompileError):
        raise program
    record = facts.record()
    scope = Scope(device=record)
    scope.update((f"device.{name}", value) for name, value in record.items())
    try:
        value = program(scope)
    except RecursionError:
        raise EvaluationError("the expression is nested too deeply") from None
    if not isinstance(value, bool):
        raise EvaluationError(f"CEL result of type {type_name(value)} could not be converted to bool")
    return value


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> Run | CompileError:
    try:
        return build(check(expression))
    except CompileError as error:
        return error


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _version(name: str, text: str) -> Semver:
    try:
        return Semver.parse(text)
    except EvaluationError as error:
        raise EvaluationError(f"attribute {name}: parse semantic version: {error}") from None
