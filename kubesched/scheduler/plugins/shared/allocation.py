"""The scoring strategies of NodeResourcesFit: how full a node would be with the pod.

    node: 4000m cpu, 1000m requested; 8Gi memory, 4Gi requested    pod: 1000m, 1Gi    both weights 1

    LeastAllocated (free / allocatable)    cpu 2000 * 100 // 4000 = 50, memory 3Gi * 100 // 8Gi = 37    (50 + 37) // 2 = 43
    MostAllocated (used / allocatable)     cpu 50, memory 62                                            (50 + 62) // 2 = 56
    RequestedToCapacityRatio               the used percentages, looked up in a shape; their mean is rounded half up

Everything else is integer arithmetic that rounds towards zero, as in Go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
"""(resource number, amount, weight) of the resources that count for a pod's score."""


class Strategy:
    """A configured strategy: its weights, and the shape, or whether a free node is the better one (`spreads`)."""

    def __init__(self, strategy: ScoringStrategy, devices: ServedByDevices) -> None:
        ratio = strategy.requested_to_capacity_ratio
        self._devices = devices
        self._weights = tuple((resource.name, resource.weight) for resource in strategy.resources)
        self._shape = scores_of_shape(ratio.shape) if ratio is not None else None
        self._spreads = strategy.type == "LeastAllocated"

    def read(self, pod: PodView) -> Asked:
        """Return what the pod requests of each weighted resource, without scalar resources that it does not request."""
        # Amounts for scoring, with 100m and 200Mi for containers that request nothing (module docstring of the plugin).
        # `find` is -1 for a resource that no pod and no node has: a weight for it would count 0 everywhere.
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
        return _weighted(usages, self._spreads, nodes.n) if usual is None else usual


# `kernels.allocation_percent` returns None if an amount overflows 64 bits (`api.amount`). Then the following code repeats Go's
# arithmetic: products wrap, as NumPy's do too, and quotients round towards zero, while NumPy's // rounds down.


def _quotients(numbers: Ints, by: Ints | np.int64) -> Ints:
    """Return quotients that are rounded towards zero: -7 / 2 = -3, where // gives -4."""
    quotients: Ints = numbers // by
    quotients += ((numbers < 0) != (by < 0)) & (quotients * by != numbers)
    return quotients


def _weighted(usages: Sequence[Usage], spreads: bool, n: int) -> Ints:
    """Return the weighted mean of the free shares (`spreads`) or used shares; resources that a node does not have do not
    count."""
    total = np.zeros(n, dtype=np.int64)
    weight_sum = np.zeros(n, dtype=np.int64)
    for offered, used, more, weight in usages:
        there = offered != 0
        used, offered = used + more, np.where(there, offered, 1)
        part = np.where(used > offered, 0, offered - used) if spreads else np.minimum(used, offered)
        total += np.where(there, _quotients(part * 100, offered) * weight, 0)
        weight_sum += np.where(there, weight, 0)
    return _quotients(total, np.maximum(weight_sum, 1))


def most_allocated(pods: Iterable[Asked], nodes: Snapshot) -> int:
    """Return how full all nodes of the view together would be with these pods, from 0 to 100 (PlacementScore)."""
    # Whole placement at once: the sums over its nodes, and over the pods that would be placed. So 30 of 40 cpu in a
    # rack is 75, however the pods are spread within it.
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
    """Return the score (0 to 100) at each used percentage, for a shape in configured scores (0 to 10)."""
    return shape_table([(point.utilization, point.score * (MAX_SCORE // MAX_SHAPE_SCORE)) for point in shape])


def shape_table(points: Sequence[tuple[int, int]]) -> Ints:
    """Return a piecewise linear function as its values at 0 to 100 percent. Between two points the change rounds towards zero:
    from (0, 10) to (4, 0), 10, 8, 5, 3, 0."""

    # The table has 101 entries, because used shares are whole percentages. Below the first point and above the last one
    # the function is constant.
    def value_at(percent: int) -> int:
        for i, (x, y) in enumerate(points):
            if percent <= x:
                if i == 0:
                    return y
                x0, y0 = points[i - 1]
                change = abs(y - y0) * (percent - x0) // (x - x0)
                return y0 + change if y > y0 else y0 - change
        return points[-1][1]

    return np.array([value_at(percent) for percent in range(101)], dtype=np.int64)


def _ratio(usages: Sequence[Usage], shape: Ints, n: int) -> Ints:
    """Return the weighted mean of the shape's scores. Kept quirk: a resource that scores 0 does not count in the mean."""
    total = np.zeros(n, dtype=np.int64)
    weight_sum = np.zeros(n, dtype=np.int64)
    for offered, used, more, weight in usages:
        there = offered != 0
        used, offered = used + more, np.where(there, offered, 1)
        # A node that would be over its capacity counts as 100 percent used; Filter has refused it for real requests,
        # but scoring has the defaults of 100m and 200Mi.
        percent = np.where(used > offered, 100, _quotients(used * 100, offered))
        scores = shape[np.clip(percent, 0, 100)]
        counts = there & (scores > 0)
        total += np.where(counts, scores * weight, 0)
        weight_sum += np.where(counts, weight, 0)
    return kernels.round_half_up(total / np.maximum(weight_sum, 1))
