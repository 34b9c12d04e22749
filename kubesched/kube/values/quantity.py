"""Quantities: "500m", "2Gi", "1e3" to exact integers and back.

In: the text (or JSON number) in an object. Out: an integer count of billionths, called *nano* everywhere, so that sums and
comparisons are exact. Rounding to whole units or thousandths happens once, at the end. Digits beyond the billionth are rounded
away from zero while parsing. A value with a binary suffix stops at 2^63-1 units, others do not. Floating point is never used.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kubesched.errors import MalformedObject, SchedulerError

NANO = 10**9
INT64_MAX = 2**63 - 1

DECIMAL_SI = "DecimalSI"
DECIMAL_EXPONENT = "DecimalExponent"
BINARY_SI = "BinarySI"

_SYNTAX = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?", re.ASCII)
_DECIMAL_EXPONENT = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SHIFT = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENT.items()}
_BINARY_SUFFIX = ["", *_BINARY_SHIFT]
# A larger power of ten, or more digits, is no amount of anything, and computing it could take the machine down.
_LARGEST_EXPONENT = 1000


class QuantityError(SchedulerError, ValueError):
    """A text that is not a quantity."""

    def __init__(self, text: object) -> None:
        super().__init__(f"invalid quantity {text!r}: expected a number with an optional suffix such as m, k, Mi or e3")
        self.text = text


@lru_cache(maxsize=16384)
def parse(text: str | int | float) -> int:
    """Return a quantity in billionths; raise `QuantityError` for a text that is none.

    A number counts with its shortest decimal text.
    """
    number, exponent = mantissa(text)
    power: int = 10 ** abs(exponent + 9)
    nano = abs(number) * power if exponent >= -9 else -(-abs(number) // power)  # rounded up
    if isinstance(text, str) and text.rstrip().endswith("i"):
        nano = min(nano, INT64_MAX * NANO)
    return -nano if number < 0 else nano


def parse_field(text: str | int | float, what: str, field: str) -> int:
    """Return a quantity of an object in billionths; the error names object and field."""
    try:
        return parse(text)
    except QuantityError as error:
        raise MalformedObject(what, field, text, "not a quantity") from error


def value(nano: int) -> int:
    """Return whole units, rounded away from zero and kept within 64 bits."""
    return _rounded(nano, NANO)


def milli_value(nano: int) -> int:
    """Return thousandths, rounded away from zero and kept within 64 bits."""
    return _rounded(nano, NANO // 1000)


def mantissa(text: str | int | float) -> tuple[int, int]:
    """Return the digits of a quantity as a number, and the power of ten to multiply them by."""
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise QuantityError(text)
    literal = str(text).strip()
    found = _SYNTAX.fullmatch(literal)
    # No digits at all are zero, "Ki" and "+" too; the reference refuses nothing but the empty text.
    if found is None or not literal or len(literal) > _LARGEST_EXPONENT:
        raise QuantityError(text)
    fraction, suffix = found[3] or "", found[4] or ""
    digits = int(f"{found[1]}{found[2] or 0}{fraction}")
    if suffix in _BINARY_SHIFT:
        return digits << _BINARY_SHIFT[suffix], -len(fraction)
    exponent = _DECIMAL_EXPONENT[suffix] if suffix in _DECIMAL_EXPONENT else int(suffix[1:])
    if abs(exponent) > _LARGEST_EXPONENT:
        raise QuantityError(text)
    return digits, exponent - len(fraction)


def style_of(text: str | int | float) -> str:
    """Return which family of suffixes a quantity is written in."""
    parse(text)
    suffix = str(text).strip().lstrip("+-0123456789.")
    if suffix in _BINARY_SHIFT:
        return BINARY_SI
    return DECIMAL_SI if suffix in _DECIMAL_EXPONENT else DECIMAL_EXPONENT


def canonical(text: str | int | float) -> str:
    """Return the text that the API server would store for this quantity."""
    return format_quantity(parse(text), style_of(text))


def format_quantity(nano: int, style: str = DECIMAL_SI) -> str:
    """Return the shortest exact text without a fraction, in the given style.

    Binary style falls back to decimal for less than 1024 units and for fractions, which it could not show exactly.
    """
    if nano == 0:
        return "0"
    units, rest = divmod(abs(nano), NANO)
    sign = "-" if nano < 0 else ""
    if style == BINARY_SI and rest == 0 and units >= 1024:
        step = 0
        while units % 1024 == 0 and step < len(_BINARY_SHIFT):
            units //= 1024
            step += 1
        return f"{sign}{units}{_BINARY_SUFFIX[step]}"
    digits, exponent = abs(nano), -9
    while digits % 1000 == 0 and (exponent < 18 or style == DECIMAL_EXPONENT):
        digits //= 1000
        exponent += 3
    if style == DECIMAL_EXPONENT:
        return f"{sign}{digits}e{exponent}" if exponent else f"{sign}{digits}"
    return f"{sign}{digits}{_DECIMAL_SUFFIX[exponent]}"


def _rounded(nano: int, unit: int) -> int:
    """Return billionths in a larger unit, rounded away from zero and cut to 64 bits."""
    # A sum that does not fit stops at the limit; `amount` computes it as kube-scheduler does.
    if nano >= 0:
        return min(-(-nano // unit), INT64_MAX)
    return -min(-(nano // unit), INT64_MAX + 1)


def is_wide(text: str | int | float) -> bool:
    """Return whether Go's Quantity keeps this text as a decimal of any length, and not as a 64-bit number.

    That is so for binary suffixes with a fraction or many digits, and for decimals of more than 18 digits. It is visible in
    sums that overflow: see `amount`.
    """
    number = str(text).strip().lstrip("+-")
    suffix = number.lstrip(".0123456789")
    whole, _, fraction = number.removesuffix(suffix).partition(".")
    if suffix in _BINARY_SHIFT:
        n_digits = 3 * _BINARY_SHIFT[suffix] // 10
        return bool(fraction) or 15 - len(whole.lstrip("0")) - n_digits - 1 < 0
    return len(whole.lstrip("0")) + len(fraction) > 18


def amount_text(resource: str, amount: int) -> str:
    """Return an amount as people write it; cpu is given in thousandths."""
    unit = NANO // 1000 if resource == "cpu" else NANO
    return format_quantity(amount * unit, "BinarySI" if is_bytes(resource) else "DecimalSI")


def is_bytes(resource: str) -> bool:
    """Return whether a resource is counted in bytes."""
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
