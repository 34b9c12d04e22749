"""Quantities in CEL: `quantity("1Gi")`, compared and added exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from kubesched.kube.cel.values import INT_MAX, INT_MIN, EvaluationError, no_overload
from kubesched.kube.values import quantity


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount, exact to a billionth of a unit, and how the reference keeps it, which some of its answers depend on."""

    cel_name: ClassVar[str] = "kubernetes.Quantity"
    nano: int
    power: int | None = field(default=0, compare=False)
    """64 bits times this power of ten; None for a number of any precision."""
    is_computed: bool = field(default=False, compare=False)
    """A sum or difference, which the reference cannot find on the right of `==`."""

    @staticmethod
    def parse(text: Any) -> Quantity:
        """Read a quantity as an object carries it."""
        try:
            if isinstance(text, str) and text != text.strip():
                raise quantity.QuantityError(text)
            nano = quantity.parse(text)
        except quantity.QuantityError:
            raise EvaluationError(
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ) from None
        power = 0 if quantity.style_of(text) == quantity.BINARY_SI else quantity.mantissa(text)[1]
        return Quantity(nano, None if quantity.is_wide(text) or power < -9 else power)

    def plus(self, other: Quantity) -> Quantity:
        """Return the sum, kept as the reference keeps it."""
        nano = self.nano + other.nano
        if self.power is None or other.power is None:
            return Quantity(nano, None, is_computed=True)
        power = self.power if not other.nano else other.power if not self.nano else min(self.power, other.power)
        fits = abs(nano) <= INT_MAX * 10 ** (power + 9)
        return Quantity(nano, power if fits else None, is_computed=True)


def _make(text: Any) -> Quantity:
    if not isinstance(text, str):
        raise no_overload("quantity", text)
    return Quantity.parse(text)


def _is_quantity(text: Any) -> bool:
    if not isinstance(text, str):
        raise no_overload("isQuantity", text)
    try:
        Quantity.parse(text)
    except EvaluationError:
        return False
    return True


def is_whole(amount: Quantity) -> bool:
    """Return whether an amount is seen to be a number of whole units that fits 64 bits: "1000m" and "1.0" are not."""
    if amount.power is None or amount.power < 0:
        return False
    return INT_MIN <= amount.nano // quantity.NANO <= INT_MAX


def as_integer(amount: Quantity) -> int:
    """Return whole units, or fail."""
    if not is_whole(amount):
        raise EvaluationError("cannot convert value to integer")
    return amount.nano // quantity.NANO


def _other(name: str, amount: Quantity, other: Any) -> Quantity:
    if isinstance(other, Quantity):
        return other
    if isinstance(other, int) and not isinstance(other, bool):
        return Quantity(other * quantity.NANO)
    raise no_overload(name, amount, other)


def _approximate(amount: Quantity) -> float:
    try:
        return amount.nano / quantity.NANO
    except OverflowError:
        return math.copysign(math.inf, amount.nano)


def _difference(amount: Quantity, other: Any) -> Quantity:
    taken = _other("sub", amount, other)
    return amount.plus(replace(taken, nano=-taken.nano))


def _sign(amount: Any) -> int:
    if not isinstance(amount, Quantity):
        raise no_overload("sign", amount)
    return (amount.nano > 0) - (amount.nano < 0)


GLOBALS: dict[str, Callable[..., Any]] = {"quantity": _make, "isQuantity": _is_quantity, "sign": _sign}

MEMBERS: dict[str, Callable[..., Any]] = {
    "isInteger": is_whole,
    "asInteger": as_integer,
    "asApproximateFloat": _approximate,
    "isGreaterThan": lambda q, other: q.nano > _other("isGreaterThan", q, other).nano,
    "isLessThan": lambda q, other: q.nano < _other("isLessThan", q, other).nano,
    "compareTo": lambda q, other: _sign(Quantity(q.nano - _other("compareTo", q, other).nano)),
    "add": lambda q, other: q.plus(_other("add", q, other)),
    "sub": _difference,
}
"""What can be asked of a quantity."""
