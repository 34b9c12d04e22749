"""Counting for EvenPodsSpread (1.16 and 1.17, behind a gate): matching pods by domain of a constraint.

Differences to today (plugins/pod_topology_spread/counts): a node counts only if it has the labels of all constraints,
terminating pods count, and a selector that selects everything counts all pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass

import numpy as np

from kubesched.kube.api import TopologySpreadConstraint, matching
from kubesched.scheduler.cluster import ABSENT, Bools, Ints, PodView, Snapshot, match_required
from kubesched.scheduler.framework import CycleState, PodCounts


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint, its selector compiled."""

    key: str
    max_skew: int
    selector: matching.Selector


def constraints_of(pod: PodView, when_unsatisfiable: str) -> tuple[Constraint, ...]:
    """Return a pod's constraints with one `whenUnsatisfiable`; raise SelectorError for an invalid selector."""
    given: Iterable[TopologySpreadConstraint] = pod.pod.spec.topology_spread_constraints
    return tuple(
        Constraint(c.topology_key, c.max_skew, matching.compile_selector(c.label_selector))
        for c in given
        if c.when_unsatisfiable == when_unsatisfiable
    )


def with_all_keys(constraints: Iterable[Constraint], nodes: Snapshot) -> Bools:
    """Return which nodes have the labels of all constraints."""
    held = np.ones(nodes.n, dtype=np.bool_)
    for constraint in constraints:
        held &= nodes.codes(constraint.key) != ABSENT
    return held


class SpreadCounts(PodCounts):
    """The matching pods of each constraint by domain; namespace None: of all namespaces."""

    def __init__(self, constraints: tuple[Constraint, ...], pod: PodView, namespace: str | None) -> None:
        super().__init__()
        self.constraints = constraints
        self.namespace = namespace
        self._required = matching.compile_required_node_affinity(pod.pod)

    @staticmethod
    def of(
        constraints: tuple[Constraint, ...], pod: PodView, nodes: Snapshot, namespace: str | None, state: CycleState, name: str
    ) -> SpreadCounts:
        """Return the counters of a pod's template, kept under the plugin's name."""
        declaration = (name, pod.template.signature)
        return state.counted(name, declaration, nodes, lambda: SpreadCounts(constraints, pod, namespace))

    def recount(self, whole: Snapshot) -> None:
        self._eligible = with_all_keys(self.constraints, whole) & match_required(self._required, whole)
        self._domains: list[Ints] = []
        self._counts: list[Ints] = []
        for constraint in self.constraints:
            codes = whole.codes(constraint.key)
            column = whole.label(constraint.key)
            size = (len(column.values) if column is not None else 0) + 1
            rows = self._rows(constraint, whole)
            self._domains.append(np.unique(codes[self._eligible]))
            self._counts.append(np.bincount(codes[rows[self._eligible[rows]]], minlength=size))

    def _rows(self, constraint: Constraint, whole: Snapshot) -> Ints:
        """Return the row of every pod that matches a constraint."""
        counted = np.zeros(len(whole.templates.label_classes), dtype=np.bool_)
        for other in whole.slots.classes:
            counted[other.number] = self.namespace in (None, other.namespace) and constraint.selector.matches(other.labels)
        rows: Ints = whole.pod_rows()[counted[whole.pod_classes()]]
        return rows

    def clone(self) -> SpreadCounts:
        """Return a copy for a what-if."""
        copied = copy(self)
        copied._counts = [counts.copy() for counts in self._counts]
        return copied

    @property
    def is_empty(self) -> bool:
        """Return whether there is no domain at all."""
        return not self._eligible.any()

    def on(self, i: int, nodes: Snapshot) -> Ints:
        """Return the matching pods in each node's domain; 0 for nodes without the label."""
        counts: Ints = self._counts[i][nodes.codes(self.constraints[i].key)]
        return counts

    def least(self, i: int) -> int:
        """Return the matching pods of the emptiest domain."""
        return int(self._counts[i][self._domains[i]].min(initial=np.iinfo(np.int64).max))

    def count(self, other: PodView, row: int, sign: int, nodes: Snapshot) -> bool:
        if not self._eligible[row] or self.namespace not in (None, other.namespace):
            return False
        matched = [i for i, constraint in enumerate(self.constraints) if constraint.selector.matches(other.labels)]
        for i in matched:
            self._counts[i][nodes.code_at(self.constraints[i].key, row)] += sign
        return bool(matched)
