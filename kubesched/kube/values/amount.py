"""Amounts that do not fit in 64 bits, computed as kube-scheduler computes them.

In: quantities as they are written. Out: sums, as the 64-bit integers that kube-scheduler counts with. Go's Quantity is a
64-bit number with a power of ten as long as that is enough, and a decimal of any length (*wide*) after that. A result that
does not fit becomes 0 in the first case, or loses its upper bits in either. Users see this: a node that offers 100E of
something offers none. Smaller amounts are exact both ways, so this module is used only for what `quantity` cannot hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kubesched.kube.values import quantity

MILLI, UNITS = -3, 0
"""Powers of ten in which amounts are counted."""

_FINEST = -9
_MOST = (1 << 63) - 1
_AT_ONCE = (1, 2, 3, 6, 9)
"""Powers of ten that the reference multiplies by in one step, without looking whether the product fits."""


def wrapped(number: int) -> int:
    """Return a number as 64 bits hold it: the upper bits are lost."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


@dataclass(frozen=True, slots=True)
class Amount:
    """`number` times ten to the power of `exponent`."""

    number: int
    exponent: int
    is_wide: bool = False

    @classmethod
    def of(cls, text: str | int | float) -> Amount:
        """Return a quantity as an amount; raise `QuantityError` for a text that is none."""
        nano = quantity.parse(text)
        if quantity.is_wide(text):
            capped = abs(nano) == _MOST * quantity.NANO
            return cls(nano // quantity.NANO, UNITS, True) if capped else cls(nano, _FINEST, True)
        number, exponent = quantity.mantissa(text)
        return cls(number, exponent) if exponent >= _FINEST else cls(nano, _FINEST, True)

    def __add__(self, other: Amount) -> Amount:
        if not (self.is_wide or other.is_wide) and not (self.number and other.number):
            return self if self.number else other
        exponent = min(self.exponent, other.exponent)
        parts = self._at(exponent), other._at(exponent)
        fits = all(abs(number) <= _MOST for number in (*parts, sum(parts)))
        return Amount(sum(parts), exponent, self.is_wide or other.is_wide or not fits)

    def __gt__(self, other: Amount) -> bool:
        exponent = min(self.exponent, other.exponent)
        return self._at(exponent) > other._at(exponent)

    def beside(self, other: Amount) -> Amount:
        """Return the same amount after a comparison with another one: a wide one makes it wide."""
        return replace(self, is_wide=self.is_wide or other.is_wide)

    def _at(self, exponent: int) -> int:
        return self.number * int(10 ** (self.exponent - exponent))

    def count(self, exponent: int) -> int:
        """Return the amount in thousandths or units, rounded up, as kube-scheduler reads it."""
        power = self.exponent - exponent
        if power < 0:
            return wrapped(-(-self.number // 10**-power))
        product = self.number * int(10**power)
        if self.is_wide:
            return wrapped(wrapped(self.number) * (10**power if power < 19 else -(1 << 63)))
        return product if abs(product) <= _MOST else wrapped(product) if power in _AT_ONCE else 0
