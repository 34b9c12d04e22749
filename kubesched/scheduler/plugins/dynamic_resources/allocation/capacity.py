"""How much of a device's capacities a request takes: asked for, rounded to what the device's policy allows.

All amounts are in nano units; ranges with a step count in whole units or, behind DRAFractionalCapacityRange, in thousandths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubesched.errors import SchedulerError
from kubesched.kube.api import CapacityRequestPolicy, CapacityRequestPolicyRange, Quantity
from kubesched.kube.values import go_quote, quantity
from kubesched.scheduler.plugins.dynamic_resources.allocation.devices import Capacity, DeviceView
from kubesched.scheduler.plugins.dynamic_resources.features import Features

_MILLI = quantity.NANO // 1000
_MAX_INT64 = (1 << 63) - 1


class CapacityError(SchedulerError):
    """A request that cannot be rounded to what a policy allows."""


@dataclass(frozen=True, slots=True)
class Consumption:
    """What one request takes of one capacity, and the capacity it takes it from."""

    name: str
    amount: int
    text: str
    limit: int


def consumption(device: DeviceView, asked: Mapping[str, Quantity], features: Features) -> tuple[Consumption, ...] | None:
    """Return what a request takes of every capacity of a device; None if the device cannot serve it at all.

    Raise `CapacityError` for a request that no device with such a policy can be asked for.
    """
    names = {capacity.name for capacity in device.capacities}
    if any(name not in names for name in asked):
        return None
    taken = []
    for capacity in device.capacities:
        amount, text = _rounded(asked.get(capacity.name), capacity, features)
        if features.behaviour.refuses_unrepresentable_capacity and amount < 0:
            raise CapacityError(f"capacity {go_quote(capacity.name)}: capacity value is negative")
        taken.append(Consumption(capacity.name, amount, text, capacity.value))
    for capacity, consumed in zip(device.capacities, taken, strict=True):
        if capacity.policy is not None and _violates(consumed.amount, capacity.policy, features):
            return None
    return tuple(taken)


def _rounded(asked: Quantity | None, capacity: Capacity, features: Features) -> tuple[int, str]:
    policy = capacity.policy
    if asked is None:
        return _read(policy.default if policy is not None and policy.default is not None else capacity.text)
    if policy is None:
        return _read(asked)
    wanted, span = quantity.parse(asked), policy.valid_range
    if span is None or span.min is None:
        return _read(next((allowed for allowed in policy.valid_values if quantity.parse(allowed) >= wanted), asked))
    least = quantity.parse(span.min)
    if wanted < least:
        return _read(span.min)
    unit = _unit(span, features)
    step = _count(span.step, unit)
    if span.step is None or step <= 0:
        return _read(asked)
    start = _count(span.min, unit)
    count = start + step * -(-(_count(asked, unit) - start) // step)
    is_strict = features.behaviour.refuses_unrepresentable_capacity
    if is_strict:
        if wanted % unit and unit == _MILLI:
            raise _unrepresentable(capacity, f"request {quantity.canonical(asked)} is not a representable milli value")
        if wanted > _MAX_INT64 * unit or count > _MAX_INT64:
            raise _unrepresentable(capacity, f"request {quantity.canonical(asked)} exceeds MaxInt64")
    style = quantity.style_of(span.step) if is_strict else quantity.BINARY_SI
    return count * unit, quantity.format_quantity(count * unit, style)


def _unit(span: CapacityRequestPolicyRange, features: Features) -> int:
    """Return what a range counts in: thousandths where all its bounds are whole numbers of them and its step is not 0,
    whole units otherwise."""
    bounds = [quantity.parse(bound) for bound in (span.min, span.max, span.step) if bound is not None]
    if not features.fractional_capacity or any(bound % _MILLI or abs(bound) > _MAX_INT64 * _MILLI for bound in bounds):
        return quantity.NANO
    return _MILLI if span.step is None or quantity.parse(span.step) >= _MILLI else quantity.NANO


def _count(amount: Quantity | None, unit: int) -> int:
    """Return an amount in whole units, rounded up; 0 for none."""
    return -(-quantity.parse(amount) // unit) if amount is not None else 0


def _unrepresentable(capacity: Capacity, why: str) -> CapacityError:
    text = "capacity request cannot be represented in the device's range arithmetic"
    return CapacityError(f"capacity {go_quote(capacity.name)}: {text}: {why}")


def _read(text: Quantity) -> tuple[int, str]:
    return quantity.parse(text), quantity.canonical(text)


def _violates(amount: int, policy: CapacityRequestPolicy, features: Features) -> bool:
    if policy.default is not None and amount == quantity.parse(policy.default):
        return False
    span = policy.valid_range
    if span is None:
        return bool(policy.valid_values) and all(amount != quantity.parse(allowed) for allowed in policy.valid_values)
    if span.max is not None and amount > quantity.parse(span.max):
        return True
    unit = _unit(span, features)
    step = _count(span.step, unit)
    if step <= 0:
        return False
    if unit == _MILLI and amount % _MILLI:
        return True
    return (-(-amount // unit) - _count(span.min, unit)) % step != 0
