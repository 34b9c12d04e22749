"""The formulas in NumPy, a pass over all nodes for every operation: the truth, and what runs where nothing was compiled."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

EXACT, LARGEST = 1 << 46, 1 << 62

Usage = tuple[Ints, Ints, int, int]
"""Of a resource what the nodes offer, what is used, what a pod asks for, and its weight."""

Spread = tuple[Floats, Ints | None, Bools | None, float, float]
"""Of a spread constraint the pods per domain, each node's domain (None: each is one of its own), who is in none, and what
multiplies and what is added to the pods."""


def allocation_percent(usages: tuple[Usage, ...], spreads: bool, n: int) -> Ints | None:
    """Return how free, if `spreads`, or how full each of so many nodes would be in whole percent: the weighted mean over some
    resources. None where an amount is out of the ordinary."""
    total = np.zeros(n, dtype=np.int32)
    for offered, used, more, weight in usages:
        if not _are_usual(offered, used, more):
            return None
        whole = offered.astype(np.float64)
        percent = used.astype(np.float64)
        percent += more  # rounded only where it is more than is offered
        np.minimum(percent, whole, out=percent)
        if spreads:
            np.subtract(whole, percent, out=percent)
        percent *= 100.0
        percent /= whole
        rounded = percent.astype(np.int32)
        total += rounded if weight == 1 else rounded * np.int32(weight)
    total //= sum(weight for _, _, _, weight in usages)
    return total.astype(np.int64)


def balance_scores(usages: tuple[Usage, ...], n: int) -> Ints | None:
    """Return 75 where a pod leaves two resources as balanced as they are on a node, more where it evens them out, less where it
    does not. None where there are not two, or an amount is out of the ordinary."""
    if len(usages) != 2 or not all(_are_usual(offered, used, more) for offered, used, more, _ in usages):
        return None
    befores, afters = [], []
    for offered, used, more, _ in usages:
        whole, amount = offered.astype(np.float64), used.astype(np.float64)
        before = amount / whole
        befores.append(np.minimum(before, 1.0, out=before))
        amount += more
        amount /= whole
        afters.append(np.minimum(amount, 1.0, out=amount))
    scores = _balance(*afters)
    scores -= _balance(*befores)
    scores += 150
    scores >>= 1
    return scores.astype(np.int64)


def _balance(one: Floats, other: Floats) -> npt.NDArray[np.int32]:
    """Return (1 - abs((one - other) / 2)) * 100, to the last bit; what is given is used up."""
    one -= other
    np.abs(one, out=one)
    np.subtract(2.0, one, out=one)
    one *= 50.0
    return one.astype(np.int32)


def _are_usual(offered: Ints, used: Ints, more: int) -> bool:
    """Return whether all nodes offer something, and all amounts are such that no sum overflows and no product is inexact."""
    return (
        offered.item(offered.argmin()) > 0
        and offered.item(offered.argmax()) < EXACT
        and used.item(used.argmin()) >= 0
        and used.item(used.argmax()) < LARGEST
        and 0 <= more < LARGEST
    )


def lowest_difference(column: Ints, less: Ints) -> int:
    """Return the lowest of all differences of two columns that are not empty; they wrap."""
    left = column - less
    return left.item(left.argmin())


def spread_worth(spreads: tuple[Spread, ...], n: int) -> Ints:
    """Return what the matching pods in the domains of each of so many nodes are worth, over all constraints, rounded."""
    total = np.zeros(n)
    for counts, codes, lacking, weight, offset in spreads:
        worth: Floats = counts * weight
        worth += offset
        if codes is not None:
            worth = worth.take(codes)
        total += worth if lacking is None else np.where(lacking, 0.0, worth)
    return round_half_up(total)


def emptiness(scores: Ints, low: int, high: int) -> Ints:
    """Turn what is between `low` and `high`, which is above zero, into scores: the lowest gets the most. What comes of numbers
    outside is of no use."""
    if high < len(scores) // 2:  # few different ones: work each out once
        return _steps(low, high).take(scores, mode="clip")
    scaled: Ints = 100 * (high + low - scores) // high
    return scaled


@lru_cache(maxsize=1024)
def _steps(low: int, high: int) -> Ints:
    """Return what each number up to the highest becomes."""
    return 100 * (high + low - np.arange(high + 1)) // high


def add_spread_scores(totals: Ints, spreads: tuple[Spread, ...], scored: Bools, weight: int) -> Ints:
    """Return totals with a score by its weight where a node is scored: the less the pods in its domains are worth
    (`spread_worth`), the more, by `emptiness` between the ends of those that are scored; the most where these hold nothing."""
    worth = spread_worth(spreads, len(totals))
    low, high = ends_within(worth, scored) or (0, 0)
    scores = emptiness(worth, low, high) if high > 0 else np.int64(100)
    more: Ints = totals + np.where(scored, scores * weight, 0)
    return more


def refuse_domains(totals: Ints, bits: Ints, codes: Ints, refused: int) -> tuple[Ints, int]:
    """Return totals with `refused` on the nodes of domains whose bits are not zero, and how many nodes have zero or more then.
    The code -1 stands for the last domain."""
    left = np.where(bits.take(codes) != 0, np.int64(refused), totals)
    return left, int(np.count_nonzero(left >= 0))


def ends_within(column: Ints, counted: Bools) -> tuple[int, int] | None:
    """Return the lowest and the highest number of the rows that count; None if none does."""
    some = column if np.count_nonzero(counted) == len(column) else column[counted]
    return (some.item(some.argmin()), some.item(some.argmax())) if len(some) else None


def weighted_total(columns: tuple[tuple[Ints, int], ...], base: int, n: int) -> Ints:
    """Return the sum of so many rows of columns by their weights, and of a number that is the same for all; they wrap."""
    total = np.full(n, base, dtype=np.int64)
    for column, weight in columns:
        total += column if weight == 1 else column * weight
    return total


_ALMOST_HALF = np.nextafter(0.5, 0)
"""Added to the number just below a half, a half would make 1 of it by rounding; this does not, and still does of a half."""


def round_half_up(values: npt.NDArray[np.floating[Any]]) -> Ints:
    """Round numbers that are not negative, halves upwards."""
    rounded: Ints = (values + _ALMOST_HALF).astype(np.int64)
    return rounded
