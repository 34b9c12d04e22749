"""Counting for topology spread: matching pods per domain, and how many domains there are.

In: constraints, nodes, placed pods. Out: arrays indexed by the number of a domain's label value, with one more element
at the end for nodes without the label. A pod matches if it is in the incoming pod's namespace, is not on its way out,
and has the labels; each distinct label set is judged once. A selector for everything counts nobody, as in the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from math import frexp, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from kubesched.api import matching
from kubesched.cluster import ABSENT, Bools, Ints, PodView, Snapshot
from kubesched.cluster.selection import match_required
from kubesched.framework import DomainVerdicts
from kubesched.framework.verdicts import Bits
from kubesched.plugins._rated import RatedDomains

HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint, ready to count with."""

    max_skew: int
    key: str
    selector: matching.Selector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    matches_self: bool


def _included(constraint: Constraint, pod: PodView, nodes: Snapshot, compare: bool) -> Bools:
    """Return which nodes a constraint takes into account at all."""
    included = np.ones(nodes.n, dtype=np.bool_)
    if constraint.honors_affinity and (pod.pod.spec.node_selector or pod.pod.spec.affinity is not None):
        included &= match_required(matching.compile_required_node_affinity(pod.pod), nodes)
    if constraint.honors_taints:
        tolerated = np.array(
            [
                matching.find_untolerated(taints, pod.tolerations, comparison_operators=compare) is None
                for taints in nodes.taint_sets
            ]
        )
        included &= tolerated[nodes.taint_set]
    return included


def _with_all_keys(constraints: Sequence[Constraint], nodes: Snapshot) -> Bools:
    held = np.ones(nodes.n, dtype=np.bool_)
    for constraint in constraints:
        held &= nodes.codes(constraint.key) != ABSENT
    return held


Floats = npt.NDArray[np.floating[Any]]


class _Matching:
    """Which label classes a selector counts, each judged once."""

    __slots__ = ("_known", "namespace", "selector")

    def __init__(self, selector: matching.Selector, namespace: str) -> None:
        self.selector = selector
        self.namespace = namespace
        self._known: dict[int, bool] = {}

    def counts(self, class_id: int, nodes: Snapshot) -> bool:
        """Return whether pods of a class are counted."""
        known = self._known.get(class_id)
        if known is None:
            other = nodes.templates.label_classes[class_id]
            known = self._known[class_id] = (
                other.namespace == self.namespace
                and not other.terminating
                and not self.selector.is_everything
                and self.selector.matches(other.labels)
            )
        return known

    def rows(self, nodes: Snapshot) -> Ints:
        """Return the rows of all counted pods, a row as often as it has such pods."""
        lut = np.zeros(len(nodes.templates.label_classes), dtype=np.bool_)
        for class_id in nodes.slots.by_namespace.get(self.namespace, ()):
            lut[class_id] = self.counts(class_id, nodes)
        rows: Ints = nodes.pod_rows()[lut[nodes.pod_classes()]]
        return rows


def _domain_codes(key: str, nodes: Snapshot) -> Ints:
    """Return each node's domain; a node without the label is in the domain of the empty value."""
    codes = nodes.codes(key)
    label = nodes.label(key)
    empty = label.values.find("") if label is not None else ABSENT
    missing = empty if empty >= 0 else nodes.n_values(key)
    domains: Ints = np.where(codes == ABSENT, missing, codes)
    return domains


NO_DOMAIN, TOO_FULL = 1, 2
"""Bits of a verdict."""


class HardCounts:
    """Matching pods per domain for the constraints that must hold."""

    __slots__ = ("_least", "_matching", "constraints", "counts", "eligible", "judged", "namespace", "present")

    def __init__(self, constraints: tuple[Constraint, ...], pod: PodView, nodes: Snapshot, compare: bool) -> None:
        self.constraints = constraints
        self.namespace = pod.namespace
        self.eligible: list[Bools] = []
        self.counts: list[Ints] = []
        self.present: list[Bools] = []
        self._matching: list[_Matching] = []
        self._least: list[int | None] = [None] * len(constraints)
        self.judged: DomainVerdicts | None = None
        """What was concluded for the domains of the only constraint, for as long as it holds."""
        whole = nodes.everything()
        held = _with_all_keys(constraints, whole) if constraints else np.zeros(0, dtype=np.bool_)
        for constraint in constraints:
            eligible = held & _included(constraint, pod, whole, compare)
            codes = whole.codes(constraint.key)
            size = whole.n_values(constraint.key) + 1
            judge = _Matching(constraint.selector, pod.namespace)
            rows = judge.rows(whole)
            self.eligible.append(eligible)
            self.present.append(np.bincount(codes[eligible], minlength=size) > 0)
            self.counts.append(np.bincount(codes[rows[eligible[rows]]], minlength=size))
            self._matching.append(judge)

    def clone(self) -> HardCounts:
        """Return a copy for a what-if."""
        copied = copy(self)
        copied.counts = [counts.copy() for counts in self.counts]
        copied._least = list(self._least)
        copied.judged = None
        return copied

    def least(self, i: int) -> int:
        """Return the matching pods of the emptiest domain; zero while there are fewer domains than asked for."""
        least = self._least[i]
        if least is None:
            there = self.counts[i][self.present[i]]
            least = int(there.min()) if len(there) and len(there) >= self.constraints[i].min_domains else 0
            self._least[i] = least
        return least

    def feels(self, other: PodView, nodes: Snapshot) -> bool:
        """Return whether a pod like this one is counted anywhere."""
        return any(judge.counts(other.template.class_id, nodes) for judge in self._matching)

    def adjust(self, other: PodView, row: int, sign: int, nodes: Snapshot) -> None:
        """Take in one pod that came or went."""
        for i, constraint in enumerate(self.constraints):
            if self.eligible[i].item(row) and self._matching[i].counts(other.template.class_id, nodes):
                self._add(i, nodes.code_at(constraint.key, row), sign)

    def imagine(self, other: PodView, row: int, sign: int, nodes: Snapshot) -> None:
        """Take in one pod for a what-if: as the reference does it, a selector for everything does match here, and a pod
        on its way out is counted."""
        if other.namespace != self.namespace:
            return
        for i, constraint in enumerate(self.constraints):
            if self.eligible[i].item(row) and constraint.selector.matches(other.labels):
                self._add(i, nodes.code_at(constraint.key, row), sign)

    def _add(self, i: int, code: int, sign: int) -> None:
        before = self.counts[i].item(code)
        self.counts[i][code] = before + sign
        least, judged = self._least[i], self.judged
        if least is None or min(before, before + sign) <= least:
            self._least[i] = None  # the emptiest domain may be another now
        if judged is None:
            return
        if judged.is_worn:
            self.judged = None
        elif self.least(i) == least:
            judged.put(code, TOO_FULL if before + sign > self.allowed(i) else 0)
        else:
            bits = self.judge(i)
            for changed in np.flatnonzero(bits != judged.values).tolist():
                judged.put(changed, bits.item(changed))

    def judge(self, i: int) -> Bits:
        """Judge each domain of a constraint once, with one verdict more at the end for nodes that are in none."""
        verdicts: Bits = np.multiply(self.counts[i] > self.allowed(i), TOO_FULL, dtype=np.uint64)
        verdicts[-1] = NO_DOMAIN
        return verdicts

    def allowed(self, i: int) -> int:
        """Return how many matching pods a domain may have to take one more pod."""
        constraint = self.constraints[i]
        return constraint.max_skew + self.least(i) - constraint.matches_self


class SoftCounts:
    """Matching pods per domain for the constraints that are wishes. A host is its own domain and counted by row."""

    __slots__ = (
        "_codes",
        "_counted",
        "_held",
        "_is_everywhere",
        "_matching",
        "constraints",
        "counts",
        "needs_all_keys",
        "rated",
    )

    def __init__(
        self, constraints: tuple[Constraint, ...], needs_all_keys: bool, pod: PodView, nodes: Snapshot, compare: bool
    ) -> None:
        self.constraints = constraints
        self.needs_all_keys = needs_all_keys
        self.counts: list[Ints] = []
        self._counted: list[Bools | None] = []
        self._codes: list[Ints] = []
        """Of each constraint the domains of all nodes, where a node without the label is in that of the empty value."""
        self._is_everywhere: list[bool] = []
        """Of each constraint whether all nodes have its label."""
        self._matching: list[_Matching] = []
        self.rated: RatedDomains | None = None
        """The scores of the domains of the only constraint, kept up to date."""
        whole = nodes.everything()
        self._held = _with_all_keys(constraints, whole)
        for constraint in constraints:
            judge = _Matching(constraint.selector, pod.namespace)
            rows = judge.rows(whole)
            self._matching.append(judge)
            self._codes.append(_domain_codes(constraint.key, whole))
            self._is_everywhere.append(bool((whole.codes(constraint.key) != ABSENT).all()))
            if constraint.key == HOSTNAME:
                self._counted.append(None)
                self.counts.append(np.bincount(rows, minlength=whole.n))
                continue
            counted = _included(constraint, pod, whole, compare)
            if needs_all_keys:
                counted &= self._held
            self._counted.append(counted)
            codes = self._codes[-1]
            self.counts.append(np.bincount(codes[rows[counted[rows]]], minlength=whole.n_values(constraint.key) + 1))

    def clone(self) -> SoftCounts:
        """Return a copy that can be adjusted on its own."""
        copied = copy(self)
        copied.counts = [counts.copy() for counts in self.counts]
        copied.rated = None
        return copied

    def ignored(self, nodes: Snapshot) -> Bools:
        """Return which nodes are left out because they lack a key of some constraint."""
        if not self.needs_all_keys:
            return np.zeros(nodes.n, dtype=np.bool_)
        held = self._held if nodes.rows is None else self._held[nodes.rows]
        return ~held

    def size(self, i: int, scored: Bools, nodes: Snapshot) -> int:
        """Return over how many domains the scored nodes are spread."""
        key = self.constraints[i].key
        if key == HOSTNAME:
            return int(np.count_nonzero(scored))
        codes = self._codes[i] if nodes.rows is None else self._codes[i][nodes.rows]
        found = np.zeros(len(self.counts[i]) + 1, dtype=np.bool_)
        found[codes[scored]] = True
        return int(np.count_nonzero(found))

    def worth(self, i: int, weight: float, nodes: Snapshot) -> Floats:
        """Return what the matching pods in each node's domain are worth; nothing where the node lacks the label."""
        constraint = self.constraints[i]
        by_domain = self.counts[i] * weight + float(constraint.max_skew - 1)
        codes = nodes.codes(constraint.key)
        if constraint.key == HOSTNAME:
            column: Floats = by_domain if nodes.rows is None else by_domain[nodes.rows]
        else:
            column = by_domain.take(codes)
        return column if self._is_everywhere[i] else np.where(codes != ABSENT, column, 0.0)

    def feels(self, other: PodView, nodes: Snapshot) -> bool:
        """Return whether a pod like this one is counted anywhere."""
        return any(judge.counts(other.template.class_id, nodes) for judge in self._matching)

    def adjust(self, other: PodView, row: int, sign: int, nodes: Snapshot) -> None:
        """Take in one pod that came or went."""
        for i, constraint in enumerate(self.constraints):
            if not self._matching[i].counts(other.template.class_id, nodes):
                continue
            counted = self._counted[i]
            if counted is None:
                self.counts[i][row] += sign
            elif counted.item(row):
                code = nodes.code_at(constraint.key, row)
                label = nodes.label(constraint.key)
                if code == ABSENT and label is not None and label.values.find("") >= 0:
                    code = label.values.find("")
                before = self.counts[i].item(code)
                self.counts[i][code] = before + sign
                if self.rated is not None:
                    self.rated.note(constraint.key, code, before, before + sign)


_HIGH, _LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_L1, _L2, _L3, _L4 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01
_L5, _L6, _L7 = 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01


def natural_log(x: float) -> float:
    """Return ln x to the last bit as the reference's run time computes it; libm differs for one integer in a hundred."""
    fraction, exponent = frexp(x)
    if fraction < sqrt(2) / 2:
        fraction *= 2
        exponent -= 1
    f = fraction - 1
    s = f / (2 + f)
    s2 = s * s
    s4 = s2 * s2
    t1 = s2 * (_L1 + s4 * (_L3 + s4 * (_L5 + s4 * _L7)))
    t2 = s4 * (_L2 + s4 * (_L4 + s4 * _L6))
    half = 0.5 * f * f
    return exponent * _HIGH - ((half - (s * (half + (t1 + t2)) + exponent * _LOW)) - f)
