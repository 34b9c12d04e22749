"""What the devices of a claim must have in common, or must not.

A constraint is told of every device that is picked and of every pick that is taken back, in reverse order.
"""

from __future__ import annotations

from typing import Protocol

from kubesched.api.resource import DeviceAttribute, DeviceConstraint
from kubesched.plugins.dynamic_resources.features import Features

Value = tuple[str, object]


class Constraint(Protocol):
    """One constraint of one claim during one search."""

    attribute: str

    def add(self, request: str, sub_request: str, attribute: DeviceAttribute | None) -> bool:
        """Accept a device, with its value of the attribute that this is about, or refuse it."""
        ...

    def remove(self, request: str, sub_request: str) -> None:
        """Take the last device of a request back."""
        ...


def constraint_for(wanted: DeviceConstraint, features: Features) -> Constraint | None:
    """Return the constraint that a claim states, or None for one of a kind that we do not know."""
    if wanted.match_attribute is not None:
        return _Match(wanted.requests, wanted.match_attribute)
    if wanted.distinct_attribute is not None and features.consumable_capacity:
        compares_all = features.behaviour.compares_all_distinct
        return (_Distinct if compares_all else _DistinctRequests)(wanted.requests, wanted.distinct_attribute)
    return None


def _value(attribute: DeviceAttribute) -> Value | None:
    """Return the typed value; None for one that is never equal to another."""
    if attribute.string_value is not None:
        return "string", attribute.string_value
    if attribute.int_value is not None:
        return "int", attribute.int_value
    if attribute.bool_value is not None:
        return "bool", attribute.bool_value
    if attribute.version_value is not None:
        return "version", attribute.version_value
    return None


class _Scoped:
    """The part that both kinds share: which requests they are about."""

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        self._requests = frozenset(requests)
        self.attribute = attribute
        self._count = 0

    def _is_about(self, request: str, sub_request: str) -> bool:
        wanted = self._requests
        return not wanted or request in wanted or bool(sub_request and f"{request}/{sub_request}" in wanted)


class _Match(_Scoped):
    """All devices have the same value."""

    _first: Value | None = None

    def add(self, request: str, sub_request: str, attribute: DeviceAttribute | None) -> bool:
        if not self._is_about(request, sub_request):
            return True
        if attribute is None:
            return False
        value = _value(attribute)
        if self._count == 0:
            self._first = value
        elif value is None or value != self._first:
            return False
        self._count += 1
        return True

    def remove(self, request: str, sub_request: str) -> None:
        if self._is_about(request, sub_request):
            self._count -= 1


class _Distinct(_Scoped):
    """Devices have different values."""

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        super().__init__(requests, attribute)
        self._seen: list[Value | None] = []

    def add(self, request: str, sub_request: str, attribute: DeviceAttribute | None) -> bool:
        if not self._is_about(request, sub_request):
            return True
        if attribute is None:
            return False
        value = _value(attribute)
        if self._seen and (value is None or value in self._seen):
            return False
        self._seen.append(value)
        return True

    def remove(self, request: str, sub_request: str) -> None:
        if self._is_about(request, sub_request):
            self._seen.pop()


class _DistinctRequests(_Scoped):
    """Devices of different requests have different values, as before 1.37.

    Only the last value of each request is remembered, so values may repeat within one: the reference's quirk.
    """

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        super().__init__(requests, attribute)
        self._seen: dict[str, Value | None] = {}

    def add(self, request: str, sub_request: str, attribute: DeviceAttribute | None) -> bool:
        if not self._is_about(request, sub_request):
            return True
        if attribute is None:
            return False
        value = _value(attribute)
        if self._count and self._seen and (value is None or value in self._seen.values()):
            return False
        self._seen[request] = value
        self._count += 1
        return True

    def remove(self, request: str, sub_request: str) -> None:
        if self._is_about(request, sub_request):
            self._seen.pop(request, None)
            self._count -= 1
