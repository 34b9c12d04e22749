"""The formulas in NumPy, with a pass over all nodes for each operation. They define what is right, and run if nothing was
compiled.

All of them copy the arithmetic of kube-scheduler to the last bit: Go's integer division truncates, its floating-point results
are converted by truncation, and some scores depend on the order of operations. So no formula may be simplified algebraically.
"""

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
"""For a resource: allocatable, requested, the pod's request, and the weight."""

Spread = tuple[Floats, Ints | None, Bools | None, float, float]
"""For a spread constraint: the pods per domain, the domain of each node (None: each node is a domain), the nodes without a
domain, and the factor and the summand for the number of pods."""


def allocation_percent(usages: tuple[Usage, ...], spreads: bool, n: int) -> Ints | None:
    """Return how free (`spreads`) or how full each of `n` nodes would be with the pod, in whole percent: the weighted mean over
    resources. None if an amount is so large or odd that floating point would not be exact.

    Example: of 4,000m cpu 1,000 are used and the pod asks for 500: free are 2,500 of 4,000, which gives 62.
    """
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
    """Return 75 for a node on which the pod leaves cpu and memory as balanced as before, more if it evens them out, less if it
    makes them more uneven. None if there are not two resources, or an amount is too odd to be exact.

    Example: 50 % of cpu and 30 % of memory are used before, 55 % and 45 % after. A balance is 100 * (1 - difference / 2), here
    90 before and 95 after. The score is (95 - 90 + 150) / 2, rounded down: 77.
    """
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
    """Return (1 - abs((one - other) / 2)) * 100, to the last bit. The arguments are overwritten."""
    one -= other
    np.abs(one, out=one)
    np.subtract(2.0, one, out=one)
    one *= 50.0
    return one.astype(np.int32)


def _are_usual(offered: Ints, used: Ints, more: int) -> bool:
    """Return whether all nodes offer some of the resource, no sum overflows, and no product is inexact."""
    return (
        offered.item(offered.argmin()) > 0
        and offered.item(offered.argmax()) < EXACT
        and used.item(used.argmin()) >= 0
        and used.item(used.argmax()) < LARGEST
        and 0 <= more < LARGEST
    )


def lowest_difference(column: Ints, less: Ints) -> int:
    """Return the lowest difference of two columns that are not empty. Differences wrap, as in Go."""
    left = column - less
    return left.item(left.argmin())


def spread_worth(spreads: tuple[Spread, ...], n: int) -> Ints:
    """Return for each of `n` nodes the sum over all constraints of pods in its domain * weight + offset, rounded."""
    total = np.zeros(n)
    for counts, codes, lacking, weight, offset in spreads:
        worth: Floats = counts * weight
        worth += offset
        if codes is not None:
            worth = worth.take(codes)
        total += worth if lacking is None else np.where(lacking, 0.0, worth)
    return round_half_up(total)


def emptiness(scores: Ints, low: int, high: int) -> Ints:
    """Return 100 * (high + low - score) / high: the lowest number gets the highest score. `high` is above zero. Results for
    numbers outside the range mean nothing."""
    if high < len(scores) // 2:  # few different ones: work each out once
        return _steps(low, high).take(scores, mode="clip")
    scaled: Ints = 100 * (high + low - scores) // high
    return scaled


@lru_cache(maxsize=1024)
def _steps(low: int, high: int) -> Ints:
    """Return the scores of all numbers from 0 to `high`."""
    return 100 * (high + low - np.arange(high + 1)) // high


def add_spread_scores(totals: Ints, spreads: tuple[Spread, ...], scored: Bools, weight: int) -> Ints:
    """Return totals plus weight * score for the nodes that are scored. The score is `emptiness` of `spread_worth`, between the
    lowest and the highest value of the scored nodes; 100 if none of these has a pod in its domains."""
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
