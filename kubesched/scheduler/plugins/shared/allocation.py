"""How full a node would be, as a score: least allocated, most allocated, or any shape between.

In: what the pod asks for, and the columns or one node. Out: scores from 0 to 100. All arithmetic is in whole numbers that
round towards zero, as in the reference; only the ratio strategy divides in floating point at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kubesched.kube.api import is_scalar_name
from kubesched.scheduler import kernels
from kubesched.scheduler.cluster import Ints, PodView, Snapshot
from kubesched.scheduler.config import MAX_SHAPE_SCORE, UtilizationShapePoint
from kubesched.scheduler.framework import MAX_SCORE
from kubesched.scheduler.kernels import Usage
from kubesched.scheduler.plugins.shared.device_classes import ServedByDevices

if TYPE_CHECKING:
    from kubesched.scheduler.plugins.node_resources_fit.plugin import ScoringStrategy

Asked = tuple[tuple[int, int, int], ...]
"""(resource number, amount, weight) of the resources that count for a pod."""


class Strategy:
    """A configured way to score."""

    def __init__(self, weights: Sequence[tuple[str, int]], shape: Ints | None, spreads: bool, devices: ServedByDevices) -> None:
        self._devices = devices
        self._weights = tuple(weights)
        self._shape = shape
        self._spreads = spreads

    def read(self, pod: PodView) -> Asked:
        """Return what the pod asks for of each resource; a scalar resource that it does not ask for is left out."""
        asked, resources = pod.template.resources.scored, pod.template.interners.resources
        return tuple(
            (resources.id(name), asked.get(name, 0), weight)
            for name, weight in self._weights
            if asked.get(name, 0) or (not is_scalar_name(name) and resources.find(name) >= 0)
        )

    def columns(self, asked: Asked, nodes: Snapshot) -> Ints:
        """Return a score for every node of the view."""
        usages: list[Usage] = []
        for resource, amount, weight in asked:
            used, offered = self._devices.columns(resource, nodes.non_zero_requested(resource), nodes)
            usages.append((offered, used, amount, weight))
        if self._shape is not None:
            return _ratio(usages, self._shape, nodes.n)
        usual = kernels.allocation_percent(tuple(usages), self._spreads, nodes.n) if usages and nodes.n else None
        return _weighted(usages, _least if self._spreads else _most, nodes.n) if usual is None else usual


def strategy_of(strategy: ScoringStrategy, devices: ServedByDevices) -> Strategy:
    """Return what a configured strategy stands for."""
    weights = tuple((resource.name, resource.weight) for resource in strategy.resources)
    ratio = strategy.requested_to_capacity_ratio
    shape = scores_of_shape(ratio.shape) if ratio is not None else None
    return Strategy(weights, shape, strategy.type == "LeastAllocated", devices)


# Amounts that overflow (see `api.amount`) make the reference's products wrap and its quotients round towards zero. Columns
# of 64-bit numbers wrap by themselves; the rest is looked at only where something is below zero.


def _divided(number: int, by: int) -> int:
    """Return a quotient rounded towards zero."""
    quotient = abs(number) // abs(by)
    return quotient if (number < 0) == (by < 0) else -quotient


def _quotients(numbers: Ints, by: Ints | np.int64) -> Ints:
    """Return quotients rounded towards zero, also of numbers that overflowed."""
    quotients: Ints = numbers // by
    quotients += ((numbers < 0) != (by < 0)) & (quotients * by != numbers)
    return quotients


def _least(used: Ints, offered: Ints) -> Ints:
    return _quotients(np.where(used > offered, 0, offered - used) * 100, offered)


def _most(used: Ints, offered: Ints) -> Ints:
    return _quotients(np.minimum(used, offered) * 100, offered)


def _weighted(usages: Sequence[Usage], score: Callable[[Ints, Ints], Ints], n: int) -> Ints:
    """Return the weighted mean of any amounts: resources that a node does not offer do not count, and products wrap."""
    total = np.zeros(n, dtype=np.int64)
    weight_sum = np.zeros(n, dtype=np.int64)
    for offered, used, more, weight in usages:
        there = offered != 0
        total += np.where(there, score(used + more, np.where(there, offered, 1)) * weight, 0)
        weight_sum += np.where(there, weight, 0)
    return _quotients(total, np.maximum(weight_sum, 1))


def most_allocated(pods: Iterable[Asked], nodes: Snapshot) -> int:
    """Return how full all nodes of the view together would be with these pods, from 0 to 100."""
    wanted: dict[int, tuple[int, int]] = {}
    for asked in pods:
        for resource, amount, weight in asked:
            wanted[resource] = wanted.get(resource, (0, 0))[0] + amount, weight
    total = weight_sum = 0
    for resource, (amount, weight) in wanted.items():
        offered = int(nodes.allocatable(resource).sum())
        if offered:
            used = int(nodes.non_zero_requested(resource).sum()) + amount
            total += min(used, offered) * 100 // offered * weight
            weight_sum += weight
    return total // weight_sum if weight_sum else 0


def scores_of_shape(shape: Sequence[UtilizationShapePoint]) -> Ints:
    """Return the score from 0 to 100 at each percentage, of a shape that is configured in scores from 0 to 10."""
    return shape_table([(point.utilization, point.score * (MAX_SCORE // MAX_SHAPE_SCORE)) for point in shape])


def shape_table(points: Sequence[tuple[int, int]]) -> Ints:
    """Return a piecewise linear function as its values at 0 to 100 percent; slopes round towards zero."""
    return np.array([_interpolate(points, percent) for percent in range(101)], dtype=np.int64)


def _interpolate(points: Sequence[tuple[int, int]], percent: int) -> int:
    for i, (x, y) in enumerate(points):
        if percent <= x:
            if i == 0:
                return y
            x0, y0 = points[i - 1]
            return y0 + _divided((y - y0) * (percent - x0), x - x0)
    return points[-1][1]


def _ratio(usages: Sequence[Usage], shape: Ints, n: int) -> Ints:
    total = np.zeros(n, dtype=np.int64)
    weight_sum = np.zeros(n, dtype=np.int64)
    for offered, used, more, weight in usages:
        there = offered != 0
        used, offered = used + more, np.where(there, offered, 1)
        percent = np.where(used > offered, 100, _quotients(used * 100, offered))
        scores = shape[np.clip(percent, 0, 100)]
        counts = there & (scores > 0)  # a resource that scores nothing does not enter the average
        total += np.where(counts, scores * weight, 0)
        weight_sum += np.where(counts, weight, 0)
    return kernels.round_half_up(total / np.maximum(weight_sum, 1))
