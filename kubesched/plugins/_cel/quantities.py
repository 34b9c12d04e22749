"""Quantities in CEL: `quantity("1Gi")`, compared and added exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from kubesched.api import quantity
from kubesched.plugins._cel.values import INT_MAX, INT_MIN, EvaluationError, no_overload


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount, exact to a billionth of a unit."""

    cel_name: ClassVar[str] = "kubernetes.Quantity"
    nano: int

    @staticmethod
    def parse(text: Any) -> Quantity:
        """Read a quantity as an object carries it."""
        try:
            return Quantity(quantity.parse(text))
        except quantity.QuantityError:
            raise EvaluationError(
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ) from None


def _make(text: Any) -> Quantity:
    if not isinstance(text, str):
        raise no_overload("quantity", text)
    return Quantity.parse(text)


def _is_quantity(text: Any) -> bool:
    if not isinstance(text, str):
        raise no_overload("isQuantity", text)
    try:
        quantity.parse(text)
    except quantity.QuantityError:
        return False
    return True


def is_whole(amount: Quantity) -> bool:
    """Return whether an amount is a number of whole units that fits 64 bits."""
    units, rest = divmod(amount.nano, quantity.NANO)
    return rest == 0 and INT_MIN <= units <= INT_MAX


def as_integer(amount: Quantity) -> int:
    """Return whole units, or fail."""
    if not is_whole(amount):
        raise EvaluationError("cannot convert value to integer")
    return amount.nano // quantity.NANO


def _nano(name: str, amount: Quantity, other: Any) -> int:
    if isinstance(other, Quantity):
        return other.nano
    if isinstance(other, int) and not isinstance(other, bool):
        return other * quantity.NANO
    raise no_overload(name, amount, other)


def _sign(nano: int) -> int:
    return (nano > 0) - (nano < 0)


def _sign_of(amount: Any) -> int:
    if not isinstance(amount, Quantity):
        raise no_overload("sign", amount)
    return _sign(amount.nano)


GLOBALS: dict[str, Callable[..., Any]] = {"quantity": _make, "isQuantity": _is_quantity, "sign": _sign_of}

MEMBERS: dict[str, Callable[..., Any]] = {
    "isInteger": is_whole,
    "asInteger": as_integer,
    "asApproximateFloat": lambda q: q.nano / quantity.NANO,
    "isGreaterThan": lambda q, other: q.nano > _nano("isGreaterThan", q, other),
    "isLessThan": lambda q, other: q.nano < _nano("isLessThan", q, other),
    "compareTo": lambda q, other: _sign(q.nano - _nano("compareTo", q, other)),
    "add": lambda q, other: Quantity(q.nano + _nano("add", q, other)),
    "sub": lambda q, other: Quantity(q.nano - _nano("sub", q, other)),
}
"""What can be asked of a quantity."""
