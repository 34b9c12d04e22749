"""What the devices of a claim must have in common, or must not.

A constraint is told of every device that is picked and of every pick that is taken back, in reverse order.
"""

from __future__ import annotations

from kubesched.kube.api import DeviceAttribute, DeviceConstraint
from kubesched.scheduler.plugins.dynamic_resources.allocation.shapes import RequestShape
from kubesched.scheduler.plugins.dynamic_resources.features import Features

Value = tuple[str, object]


def constraint_for(wanted: DeviceConstraint, features: Features) -> Constraint | None:
    """Return the constraint that a claim states, or None for one of a kind that we do not know."""
    if wanted.match_attribute is not None:
        return Constraint(wanted.requests, wanted.match_attribute, is_match=True)
    if wanted.distinct_attribute is not None and features.consumable_capacity:
        keeps_last = not features.behaviour.compares_all_distinct
        return Constraint(wanted.requests, wanted.distinct_attribute, is_match=False, keeps_last=keeps_last)
    return None


class Constraint:
    """One constraint of one claim during one search: devices have the same value of an attribute, or different ones.

    `keeps_last`, as before 1.37: only the last value of each request is remembered, so values may repeat within one.
    """

    def __init__(self, requests: tuple[str, ...], attribute: str, *, is_match: bool, keeps_last: bool = False) -> None:
        self.attribute = attribute
        self._requests = frozenset(requests)
        self._is_match = is_match
        self._keeps_last = keeps_last
        self._seen: list[tuple[str, Value | None]] = []

    def add(self, request: RequestShape, attribute: DeviceAttribute | None) -> bool:
        """Accept a device, with its value of the attribute that this is about, or refuse it."""
        if not self._is_about(request):
            return True
        if attribute is None:
            return False
        value = _value(attribute)
        if self._seen and (value is None or any(value == other for _, other in self._seen) != self._is_match):
            return False
        if self._keeps_last:
            self.remove(request)
        self._seen.append((request.base, value))
        return True

    def remove(self, request: RequestShape) -> None:
        """Take the last device of a request back."""
        if not self._is_about(request):
            return
        if self._keeps_last:
            self._seen = [each for each in self._seen if each[0] != request.base]
        else:
            self._seen.pop()

    def _is_about(self, request: RequestShape) -> bool:
        wanted = self._requests
        return not wanted or request.base in wanted or request.full_name in wanted


def _value(attribute: DeviceAttribute) -> Value | None:
    """Return the typed value; None for one that is never equal to another."""
    typed = (
        ("string", attribute.string_value),
        ("int", attribute.int_value),
        ("bool", attribute.bool_value),
        ("version", attribute.version_value),
    )
    return next(((kind, value) for kind, value in typed if value is not None), None)
