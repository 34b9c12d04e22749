"""Priorities by how full a node would be: LeastRequested, MostRequested, BalancedResourceAllocation, RequestedToCapacityRatio.

    most 10; node: 4000m cpu, 1000m requested; 8Gi memory, 4Gi requested; pod: 1000m, 1Gi
    LeastRequested: cpu 2000 * 10 // 4000 = 5, memory 3 * 10 // 8 = 3, mean (5 + 3) // 2 = 4
    Balanced (1.13): cpu 1/2, memory 5/8, (1 - 1/8) * 10 = 8

A container without requests counts as 100m and 200Mi, on the node and in the pod. Unlike today, a node that would be overfull
scores 0 in MostRequested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from kubesched.kube.api import CPU, MEMORY
from kubesched.scheduler import kernels
from kubesched.scheduler.cluster import Ints, PodView, Snapshot
from kubesched.scheduler.framework import CycleState, Handle, Input
from kubesched.scheduler.legacy.predicates.volumes import AttachedVolumes
from kubesched.scheduler.legacy.priorities.base import Priority
from kubesched.scheduler.legacy.releases import LegacyContext
from kubesched.scheduler.legacy.shared.pod_requests import asked
from kubesched.scheduler.plugins.shared.allocation import shape_table

Floats = npt.NDArray[np.float64]


class _Requested(Priority):
    depends_on = (Input.POD_TEMPLATE, Input.NODE, Input.PODS_ON_NODE)

    def usage(self, pod: PodView, nodes: Snapshot, name: str) -> tuple[Ints, Ints]:
        """Return the requests with the pod, and the allocatable amount, of a resource."""
        resource = nodes.resource(name)
        wanted = asked(pod, overhead=self.context.gates.pod_overhead)
        extra = wanted.overhead.get(name, 0)
        if name == CPU and self.context.to_the_letter:
            extra = -(-extra // 1000)  # a bug of 1.17: whole cpus, counted as thousandths
        amount = wanted.scoring.get(name, 0) + extra
        return nodes.non_zero_requested(resource) + amount, nodes.allocatable(resource)

    def mean_share(self, pod: PodView, nodes: Snapshot, *, of_free: bool) -> Ints:
        """Return the mean of the free or used shares of cpu and memory, from 0 to `most`."""
        total = np.zeros(nodes.n, dtype=np.int64)
        for name in (CPU, MEMORY):
            requested, offered = self.usage(pod, nodes, name)
            total += _fitting(requested, offered, offered - requested if of_free else requested, self.most)
        return total // 2


def _fitting(requested: Ints, offered: Ints, part: Ints, most: int) -> Ints:
    """Return `most` times the share of `part`; 0 on nodes without the resource or with too little."""
    there = (offered > 0) & (requested <= offered)
    shares: Ints = np.where(there, part * most // np.where(there, offered, 1), 0)
    return shares


class LeastRequestedPriority(_Requested):
    """Prefer empty nodes."""

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return self.mean_share(pod, nodes, of_free=True)


class MostRequestedPriority(_Requested):
    """Prefer full nodes."""

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return self.mean_share(pod, nodes, of_free=False)


class BalancedResourceAllocation(_Requested):
    """Prefer nodes where cpu and memory would be used to the same degree; a full node scores 0."""

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        cpu, memory = self._degrees(pod, nodes)
        difference = np.abs(cpu - memory)
        if self.release.minor < 10:
            balance = self.most - difference * self.most
        else:
            balance = (1 - difference) * self.most
        scores: Ints = np.where((cpu >= 1) | (memory >= 1), 0, balance).astype(np.int64)
        return scores

    def _degrees(self, pod: PodView, nodes: Snapshot) -> tuple[Floats, Floats]:
        """Return the used fractions of cpu and memory; 1 for a node that has none."""
        cpu, memory = (self.usage(pod, nodes, name) for name in (CPU, MEMORY))
        return _degree(*cpu), _degree(*memory)


def _degree(requested: Ints, offered: Ints) -> Floats:
    there = offered > 0
    degree: Floats = np.where(there, requested / np.where(there, offered, 1), 1.0)
    return degree


class BalancedWithVolumes(BalancedResourceAllocation):
    """With the gate BalanceAttachedNodeVolumes: the pod's volumes count as a third fraction."""

    name = "BalancedResourceAllocation"

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        scores = super().score(pod, nodes, state)
        volumes: AttachedVolumes | None = state.find(AttachedVolumes.KEY)
        if volumes is None:
            return scores
        rows = slice(None) if nodes.rows is None else nodes.rows
        free, new = volumes.free[rows], volumes.new[rows]
        counted = free > 0
        cpu, memory = self._degrees(pod, nodes)
        disks = np.where(counted, new / np.where(counted, free, 1), 0.0)
        mean = (cpu + memory + disks) / 3
        variance = ((cpu - mean) ** 2 + (memory - mean) ** 2 + (disks - mean) ** 2) / 3
        full = (cpu >= 1) | (memory >= 1) | (disks >= 1)
        of_three = np.where(full, 0, (1 - variance) * self.most).astype(np.int64)
        return np.where(counted, of_three, scores)


class RequestedToCapacityRatioPriority(_Requested):
    """A configured shape, from used percent to score. From 1.16 on, a resource that scores 0 does not count in the mean.
    Without arguments empty nodes are preferred."""

    def __init__(
        self,
        context: LegacyContext,
        handle: Handle,
        shape: Sequence[tuple[int, int]] = (),
        weights: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(context, handle)
        self.shape = shape_table(shape or ((0, self.most), (100, 0)))
        self.weights = weights or {CPU: 1, MEMORY: 1}

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        total = np.zeros(nodes.n, dtype=np.int64)
        weight_sum = np.zeros(nodes.n, dtype=np.int64)
        for name, weight in self.weights.items():
            requested, offered = self.usage(pod, nodes, name)
            there = (offered > 0) & (requested <= offered)
            free = np.where(there, (offered - requested) * 100 // np.where(there, offered, 1), 0)
            scores = self.shape[100 - free]
            counts = scores > 0 if self.release.minor >= 16 else np.ones(nodes.n, dtype=np.bool_)
            total += np.where(counts, scores * weight, 0)
            weight_sum += np.where(counts, weight, 0)
        average = np.where(weight_sum, total, 0) / np.where(weight_sum, weight_sum, 1)
        if self.release.minor < 16:
            return average.astype(np.int64)
        # Weights may be negative: nobody checked them. Halves are rounded away from zero.
        rounded: Ints = np.copysign(kernels.round_half_up(np.abs(average)), average).astype(np.int64)
        return rounded
