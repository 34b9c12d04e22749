"""What the devices of a claim must have in common, or must not.

A constraint is told of every device that is picked and of every pick that is taken back, in reverse order.
"""

from __future__ import annotations

from kubesched.api.resource import DeviceAttribute, DeviceConstraint
from kubesched.plugins.dynamic_resources.features import Features
from kubesched.plugins.dynamic_resources.shapes import RequestShape

Value = tuple[str, object]


class Constraint:
    """One constraint of one claim during one search: about which requests, and the values of what they have picked."""

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        self._requests = frozenset(requests)
        self._seen: list[tuple[str, Value | None]] = []
        self.attribute = attribute

    def add(self, request: RequestShape, attribute: DeviceAttribute | None) -> bool:
        """Accept a device, with its value of the attribute that this is about, or refuse it."""
        if not self._is_about(request):
            return True
        if attribute is None:
            return False
        value = _value(attribute)
        if self._seen and (value is None or not self._accepts(value)):
            return False
        self._take(request.base, value)
        return True

    def remove(self, request: RequestShape) -> None:
        """Take the last device of a request back."""
        if self._is_about(request):
            self._give_back(request.base)

    def _is_about(self, request: RequestShape) -> bool:
        wanted = self._requests
        return not wanted or request.base in wanted or request.full_name in wanted

    def _accepts(self, value: Value) -> bool:
        raise NotImplementedError

    def _take(self, request: str, value: Value | None) -> None:
        self._seen.append((request, value))

    def _give_back(self, request: str) -> None:
        self._seen.pop()


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


class _Match(Constraint):
    """All devices have the same value."""

    def _accepts(self, value: Value) -> bool:
        return value == self._seen[0][1]


class _Distinct(Constraint):
    """Devices have different values."""

    def _accepts(self, value: Value) -> bool:
        return all(value != other for _, other in self._seen)


class _DistinctRequests(_Distinct):
    """Devices of different requests have different values, as before 1.37.

    Only the last value of each request is remembered, so values may repeat within one: the reference's quirk.
    """

    def _take(self, request: str, value: Value | None) -> None:
        self._give_back(request)
        super()._take(request, value)

    def _give_back(self, request: str) -> None:
        self._seen = [each for each in self._seen if each[0] != request]
