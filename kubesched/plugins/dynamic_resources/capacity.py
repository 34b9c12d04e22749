"""How much of a device's capacities a request takes: asked for, rounded to what the device's policy allows.

All amounts are in nano units; ranges with a step count in whole units, as the reference does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubesched.api import quantity
from kubesched.api.meta import Quantity
from kubesched.api.resource import CapacityRequestPolicy
from kubesched.plugins.dynamic_resources.devices import Capacity, DeviceView


@dataclass(frozen=True, slots=True)
class Consumption:
    """What one request takes of one capacity, and the capacity it takes it from."""

    name: str
    amount: int
    text: str
    limit: int


def consumption(device: DeviceView, asked: Mapping[str, Quantity]) -> tuple[Consumption, ...] | None:
    """Return what a request takes of every capacity of a device; None if the device cannot serve it at all."""
    names = {capacity.name for capacity in device.capacities}
    if any(name not in names for name in asked):
        return None
    taken = []
    for capacity in device.capacities:
        amount, text = _rounded(asked.get(capacity.name), capacity)
        if capacity.policy is not None and _violates(amount, capacity.policy):
            return None
        taken.append(Consumption(capacity.name, amount, text, capacity.value))
    return tuple(taken)


def _rounded(asked: Quantity | None, capacity: Capacity) -> tuple[int, str]:
    policy = capacity.policy
    if asked is None:
        return _read(policy.default if policy is not None and policy.default is not None else capacity.text)
    if policy is None:
        return _read(asked)
    wanted, span = quantity.parse(asked), policy.valid_range
    if span is not None and span.min is not None:
        least = quantity.parse(span.min)
        if wanted < least:
            return _read(span.min)
        step = quantity.value(quantity.parse(span.step)) if span.step is not None else 0
        if step > 0:
            start = quantity.value(least)
            units = start + step * -(-(quantity.value(wanted) - start) // step)
            return units * quantity.NANO, quantity.format_quantity(units * quantity.NANO, quantity.BINARY_SI)
        return _read(asked)
    for allowed in policy.valid_values:
        if quantity.parse(allowed) >= wanted:
            return _read(allowed)
    return _read(asked)


def _read(text: Quantity) -> tuple[int, str]:
    return quantity.parse(text), quantity.canonical(text)


def _violates(amount: int, policy: CapacityRequestPolicy) -> bool:
    if policy.default is not None and amount == quantity.parse(policy.default):
        return False
    span = policy.valid_range
    if span is not None:
        if span.max is not None and amount > quantity.parse(span.max):
            return True
        step = quantity.value(quantity.parse(span.step)) if span.step is not None else 0
        if step > 0:
            start = quantity.value(quantity.parse(span.min)) if span.min is not None else 0
            return (quantity.value(amount) - start) % step != 0
        return False
    if policy.valid_values:
        return all(amount != quantity.parse(allowed) for allowed in policy.valid_values)
    return False
