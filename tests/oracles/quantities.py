"""Amounts, exactly: fractions of a unit."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from typing import Any

LARGEST = 2**63 - 1
DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

Amounts = dict[str, Fraction]


def exact(quantity: Any) -> Fraction:
    """Return what a quantity says, to the nearest nano unit away from zero."""
    text = str(quantity).strip()
    if text[-2:] in BINARY:
        amount = min(Fraction(text[:-2]) * 2 ** BINARY[text[-2:]], Fraction(LARGEST))
    elif text[-1] in DECIMAL:
        amount = Fraction(text[:-1]) * Fraction(10) ** DECIMAL[text[-1]]
    else:
        amount = Fraction(text)  # also 1e3 and 1E-2
    return Fraction(away_from_zero(amount * 10**9), 10**9)


def away_from_zero(number: Fraction) -> int:
    return ceil(number) if number >= 0 else floor(number)


def whole(amount: Fraction) -> int:
    """Return whole units, rounded up."""
    return away_from_zero(amount)


def thousandths(amount: Fraction) -> int:
    """Return thousandths of a unit, rounded up."""
    return away_from_zero(amount * 1000)


def parsed(quantities: dict[str, Any] | None) -> Amounts:
    """Return a map of quantities as exact amounts."""
    return {name: exact(quantity) for name, quantity in (quantities or {}).items()}


def divided(a: int, b: int) -> int:
    """Divide whole numbers, rounding towards zero."""
    return abs(a) // abs(b) * (1 if (a >= 0) == (b >= 0) else -1)


def rounded(number: float) -> int:
    """Round to the nearest whole number, halves away from zero."""
    cut = int(number)
    if abs(number - cut) < 0.5:
        return cut
    return cut + (1 if number > 0 else -1)
