"""How full a node would be, as a score: least allocated, most allocated, or any shape between.

In: what the pod asks for and the columns. Out: one score a node, 0 to 100. All arithmetic is in whole numbers that round
towards zero, as in the reference; only the ratio strategy divides in floating point at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kubesched.api.requests import is_scalar_name
from kubesched.cluster import Ints, Snapshot

if TYPE_CHECKING:
    from kubesched.plugins.node_resources_fit import ScoringStrategy

Strategy = Callable[[Mapping[str, int], Snapshot], Ints]
_Score = Callable[[Ints, Ints], Ints]
"""(what would be used, what is offered, never zero) -> 0 to 100"""


def strategy_of(strategy: ScoringStrategy) -> Strategy:
    """Return the function that a configured strategy stands for."""
    weights = tuple((resource.name, resource.weight) for resource in strategy.resources)
    if strategy.type == "RequestedToCapacityRatio":
        ratio = strategy.requested_to_capacity_ratio
        assert ratio is not None
        shape = shape_table([(point.utilization, point.score * 10) for point in ratio.shape])
        return lambda asked, nodes: _ratio(weights, shape, asked, nodes)
    score = _least if strategy.type == "LeastAllocated" else _most
    return lambda asked, nodes: _weighted(weights, score, asked, nodes)


def _least(used: Ints, offered: Ints) -> Ints:
    return np.maximum((offered - used) * 100 // offered, 0)


def _most(used: Ints, offered: Ints) -> Ints:
    filled: Ints = np.minimum(used, offered) * 100 // offered
    return filled


def _usage(name: str, asked: Mapping[str, int], nodes: Snapshot) -> tuple[Ints, Ints] | None:
    """Return what would be used and what is offered of a resource; None if the resource does not count for this pod."""
    amount = asked.get(name, 0)
    if amount == 0 and is_scalar_name(name):
        return None
    resource = nodes.resource(name)
    if resource < 0:
        return None
    return nodes.non_zero_requested(resource) + amount, nodes.allocatable(resource)


def _weighted(weights: Sequence[tuple[str, int]], score: _Score, asked: Mapping[str, int], nodes: Snapshot) -> Ints:
    total = np.zeros(nodes.n, dtype=np.int64)
    weight_sum: Ints | int = 0
    for name, weight in weights:
        usage = _usage(name, asked, nodes)
        if usage is None:
            continue
        used, offered = usage
        if offered.all():
            total += score(used, offered) * weight
            weight_sum = weight_sum + weight
        else:
            there = offered != 0
            total += np.where(there, score(used, np.where(there, offered, 1)) * weight, 0)
            weight_sum = weight_sum + np.where(there, weight, 0)
    if isinstance(weight_sum, int):
        return total // weight_sum if weight_sum else total
    averaged: Ints = total // np.maximum(weight_sum, 1)
    return averaged


def shape_table(points: Sequence[tuple[int, int]]) -> Ints:
    """Return a piecewise linear function as its values at 0 to 100 percent; slopes round towards zero."""
    return np.array([_interpolate(points, percent) for percent in range(101)], dtype=np.int64)


def _interpolate(points: Sequence[tuple[int, int]], percent: int) -> int:
    for i, (x, y) in enumerate(points):
        if percent <= x:
            if i == 0:
                return y
            x0, y0 = points[i - 1]
            rise = (y - y0) * (percent - x0)
            step = abs(rise) // (x - x0)
            return y0 + (step if rise >= 0 else -step)
    return points[-1][1]


def _ratio(weights: Sequence[tuple[str, int]], shape: Ints, asked: Mapping[str, int], nodes: Snapshot) -> Ints:
    total = np.zeros(nodes.n, dtype=np.int64)
    weight_sum = np.zeros(nodes.n, dtype=np.int64)
    for name, weight in weights:
        usage = _usage(name, asked, nodes)
        if usage is None:
            continue
        used, offered = usage
        there = offered != 0
        offered = np.where(there, offered, 1)
        scores = shape[np.where(used > offered, 100, used * 100 // offered)]
        counts = there & (scores > 0)  # a resource that scores nothing does not enter the average
        total += np.where(counts, scores * weight, 0)
        weight_sum += np.where(counts, weight, 0)
    return round_half_up(total / np.maximum(weight_sum, 1))


def round_half_up(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Ints:
    """Round numbers that are not negative, halves upwards."""
    whole = np.trunc(values)
    rounded: Ints = (whole + (values - whole >= 0.5)).astype(np.int64)
    return rounded
