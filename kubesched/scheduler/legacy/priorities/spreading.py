"""Priorities that spread pods: SelectorSpread, ServiceSpreading, ServiceAntiAffinity, EvenPodsSpread.

Score counts the pods that belong with the pod on each node; NormalizeScore prefers nodes, zones or label values with few of
them:

    SelectorSpread, most 10      nodes: a1 with 2 pods, a2 with 0 (zone a), b1 with 1 (zone b)
    by node: 0, 10, 5            by zone: a has 2, b has 1, so 0, 0, 5            1/3 node + 2/3 zone: 0, 3, 5
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kubesched.kube.api import Selector, SelectorError
from kubesched.scheduler.cluster import ABSENT, REGION_LABELS, ZONE_LABELS, Bools, Ints, PodView, Snapshot
from kubesched.scheduler.framework import SKIP, CycleState, Handle, Input, Status, failed
from kubesched.scheduler.legacy.priorities.base import Priority
from kubesched.scheduler.legacy.releases import LegacyContext
from kubesched.scheduler.legacy.shared.siblings import all_of, count_matching, owner_selectors, service_selectors
from kubesched.scheduler.legacy.shared.spread_counts import SpreadCounts, constraints_of, with_all_keys

ZONE_WEIGHT = 2.0 / 3.0
NODE_WEIGHT = 1.0 - ZONE_WEIGHT  # not 1/3: the last bit decides whether an empty node in an empty zone gets all
Floats = npt.NDArray[np.float64]


class SelectorSpreadPriority(Priority):
    """Prefer nodes with few pods of the same services and controllers; the zone counts twice as much as the node.

    Up to 1.6 one service or controller had to select both pods, later all of them.
    """

    def selectors(self, pod: PodView) -> Sequence[Selector]:
        """Return the selectors; a pod counts if it matches one of them."""
        found = owner_selectors(pod, self.handle.objects)
        return found if self.release.minor < 10 else all_of(found)

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return count_matching(self.selectors(pod), pod.namespace, nodes)

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        most = float(self.most)
        counted = np.where(feasible, scores, 0)
        if not counted.any():  # no such pod anywhere
            return np.full(nodes.n, self.most, dtype=np.int64)
        of_node = _emptiness(counted, most)
        zones = _zones(nodes)
        in_zone = zones >= 0
        present = np.unique(zones[feasible & in_zone])
        if not len(present):
            return of_node.astype(np.int64)
        per_zone = np.bincount(zones[in_zone], weights=counted[in_zone]).astype(np.int64)
        of_zone = _emptiness(per_zone, most)[zones]
        mixed: Ints = np.where(in_zone, of_node * NODE_WEIGHT + ZONE_WEIGHT * of_zone, of_node).astype(np.int64)
        return mixed


class ServiceSpreadingPriority(SelectorSpreadPriority):
    """The same with services only. Kept quirk: from 1.10 on it reads controllers too."""

    def selectors(self, pod: PodView) -> Sequence[Selector]:
        if self.release.minor >= 10:
            return super().selectors(pod)
        return service_selectors(pod, self.handle.objects)


def _emptiness(counts: Ints, most: float) -> Floats:
    """Return `most` for a count of 0, 0 for the highest count, and the share in between."""
    largest = int(counts.max(initial=0))
    if largest == 0:
        return np.full(len(counts), most)
    return most * ((largest - counts) / float(largest))


def _zones(nodes: Snapshot) -> Ints:
    """Return a number for each node's zone, which is a region and a zone; -1 where it has neither."""
    region, n_regions = _values(nodes, REGION_LABELS)
    zone, _ = _values(nodes, ZONE_LABELS)
    numbers: Ints = zone * n_regions + region
    return np.where(numbers == 0, -1, numbers)


def _values(nodes: Snapshot, keys: Sequence[str]) -> tuple[Ints, int]:
    """Return a number for each node's value of the first of these labels that it has (0 for none), and how many."""
    numbers: dict[str, int] = {"": 0}
    found = np.zeros(nodes.n, dtype=np.int64)
    for key in reversed(keys):
        column = nodes.label(key)
        if column is None:
            continue
        # One more element at the end for nodes without the label, which is code -1; those keep what they have.
        of_code = np.array([numbers.setdefault(value, len(numbers)) for value in column.values.values] + [0])
        codes = nodes.codes(key)
        found = np.where(codes == ABSENT, found, of_code[codes])
    return found, len(numbers)


class ServiceAntiAffinity(Priority):
    """Prefer values of a label with few pods of the pod's first service; several labels are averaged."""

    def __init__(self, context: LegacyContext, handle: Handle, labels: tuple[str, ...]) -> None:
        super().__init__(context, handle)
        self.labels = labels

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        first = service_selectors(pod, self.handle.objects)[:1]
        return count_matching([s for s in first if not s.is_everything], pod.namespace, nodes)

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        counted = np.where(feasible, scores, 0)
        everywhere = int(counted.sum())
        total = np.zeros(nodes.n)
        for label in self.labels:
            codes = nodes.codes(label)
            here = codes != ABSENT
            if not here.any():
                continue
            if everywhere:
                per_value = np.bincount(codes[here], weights=counted[here])
                share = self.most * ((everywhere - per_value) / float(everywhere))
                total += np.where(here, share[codes], 0.0) / len(self.labels)
            else:
                total += np.where(here, float(self.most), 0.0) / len(self.labels)
        rounded: Ints = total.astype(np.int64)
        return rounded


class EvenPodsSpreadPriority(Priority):
    """Prefer domains with few matching pods (ScheduleAnyway). A node without a label of some constraint scores 0.

    The counts of all constraints are added without weights. 1.17 counted pods of all namespaces here by mistake;
    `to_the_letter` repeats that.
    """

    depends_on = (Input.POD_TEMPLATE, Input.NODE, Input.COUNTED_PODS)

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        try:
            constraints = constraints_of(pod, "ScheduleAnyway")
        except SelectorError as error:
            return failed(str(error))
        if not constraints:
            return SKIP
        namespace = None if self.context.to_the_letter else pod.namespace
        SpreadCounts.of(constraints, pod, nodes, namespace, state, self.name)
        return None

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        counts: SpreadCounts = state.read(self.name)
        scores = np.zeros(nodes.n, dtype=np.int64)
        for i in range(len(counts.constraints)):
            scores += counts.on(i, nodes)
        return scores

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        counts: SpreadCounts = state.read(self.name)
        eligible = feasible & with_all_keys(counts.constraints, nodes)
        if not eligible.any():
            return np.zeros(nodes.n, dtype=np.int64)
        total, least = int(scores[eligible].sum()), int(scores[eligible].min())
        if total == least:
            return np.full(nodes.n, self.most, dtype=np.int64)
        shares = (float(self.most) * ((total - scores) / float(total - least))).astype(np.int64)
        return np.where(eligible, shares, 0)
