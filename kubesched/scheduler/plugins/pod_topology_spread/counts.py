"""Counting for PodTopologySpread: how many matching pods each domain of a constraint holds.

A domain is a value of the constraint's label, its *code* is the number of that value. Counts are arrays by code, with one more
element at the end for nodes without the label. With maxSkew 1 over zones, and one more pod to place:

    zone        a   b   c        hard: skew = count + 1 (the new pod) - minimum <= maxSkew
    matching    3   1   2              a: 3 + 1 - 1 = 3, refused     b: 1, fits     c: 2, refused
                                 soft: score of a zone = count * ln(zones + 2), the lowest is the best
    A constraint with minDomains 4 takes the minimum as 0, because there are only 3 zones: then b is refused too.

A pod matches if it is in the incoming pod's namespace, is not terminating, and the selector matches its labels. Each set of
labels is matched once. Kept quirk of kube-scheduler: a selector that selects everything counts no pod.

Pods with equal constraints that accept the same nodes share one object (framework/equivalence_cache/counters). After the first
count it is only changed by the pods that come and go.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from math import frexp, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from kubesched.kube.api import matching
from kubesched.kube.values import HOSTNAME
from kubesched.scheduler.cluster import (
    ABSENT,
    SPEC,
    Bools,
    Change,
    Ints,
    LabelClass,
    Memo,
    PodView,
    Snapshot,
    lowest,
    match_required,
)
from kubesched.scheduler.framework import FEW, Bits, PodCounts, Reason
from kubesched.scheduler.kernels import Spread

MISSING_LABEL = Reason("node(s) didn't match pod topology spread constraints (missing required label)", resolvable=False)
TOO_SKEWED = Reason("node(s) didn't match pod topology spread constraints")
NO_DOMAIN, TOO_FULL = 1, 2
"""The bits of these reasons in a domain's verdict."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint, its selector compiled. `matches_self` says whether the incoming pod counts itself."""

    max_skew: int
    key: str
    selector: matching.Selector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    matches_self: bool


def declaration(constraints: Sequence[Constraint], pod: PodView) -> Hashable:
    """Return the key under which pods share counts: namespace, constraints, and if these exclude nodes, what the pod demands of
    a node."""
    # Which nodes count depends on the pod: by nodeAffinityPolicy Honor (the default) on its node affinity, by
    # nodeTaintsPolicy Honor on its tolerations. Only then is what the pod demands of a node part of the key. Without
    # it, pods with different requests or images share one count, as long as the constraints are equal.
    spec, template = pod.pod.spec, pod.template
    reads_nodes = any(c.honors_taints for c in constraints) or (
        (spec.node_selector or spec.affinity is not None) and any(c.honors_affinity for c in constraints)
    )
    return pod.namespace, tuple(constraints), template.asking if reads_nodes else None


def _included(constraint: Constraint, pod: PodView, nodes: Snapshot, compare: bool) -> Bools | None:
    """Return the nodes that count for a constraint by its nodeAffinityPolicy and nodeTaintsPolicy; None for all."""
    included: Bools | None = None
    if constraint.honors_affinity and (pod.pod.spec.node_selector or pod.pod.spec.affinity is not None):
        included = match_required(matching.compile_required_node_affinity(pod.pod), nodes)
    # By list of taints, not by node: 5,000 nodes have perhaps five different lists (`nodes.taint_sets`).
    if constraint.honors_taints:
        tolerated = np.array(
            [
                matching.find_untolerated(taints, pod.tolerations, comparison_operators=compare) is None
                for taints in nodes.taint_sets
            ]
        )
        included = _both(included, tolerated[nodes.taint_set])
    return included


def _both(one: Bools | None, other: Bools | None) -> Bools | None:
    return other if one is None else one if other is None else one & other


def _with_all_keys(constraints: Sequence[Constraint], nodes: Snapshot) -> Bools | None:
    """Return the nodes that have the labels of all constraints; None for all nodes."""
    held: Bools | None = None
    for constraint in constraints:
        lacking = _lacking(constraint.key, nodes)
        if lacking is not None:
            held = _both(held, ~lacking)
    return held


def _lacking(key: str, nodes: Snapshot) -> Bools | None:
    """Return the nodes that lack a label; None if none does."""
    codes = nodes.codes(key)
    return codes == ABSENT if len(codes) and lowest(codes) == ABSENT else None


def _domain_codes(key: str, nodes: Snapshot) -> Ints:
    """Return the code of each node. Kept quirk: for soft constraints a node without the label counts as one with an empty
    value."""
    codes, lacking = nodes.codes(key), _lacking(key, nodes)
    if lacking is None:
        return codes
    label = nodes.label(key)
    # If some node really has the empty value, both kinds of nodes are one domain. Otherwise the nodes without the label
    # use the spare last element of the counts.
    empty = label.values.find("") if label is not None else ABSENT
    missing = empty if empty >= 0 else nodes.n_values(key)
    domains: Ints = np.where(lacking, missing, codes)
    return domains


class SpreadCounts(PodCounts):
    """Matching pods by domain for the constraints of a pod: the part that hard and soft constraints share."""

    _dtype: type = np.int64

    def __init__(self, constraints: tuple[Constraint, ...], pod: PodView, compare: bool) -> None:
        super().__init__()
        self.constraints = constraints
        self._pod = pod
        self._compare = compare
        self.counts: list[npt.NDArray[Any]] = []
        self._eligible: list[Bools | None] = []
        """For each constraint the nodes whose pods count; None for all."""
        self._judged: list[Memo[bool]] = [Memo(pod.template.interners.label_classes) for _ in constraints]
        """For each constraint, whether its selector matches a label class."""

    def clone(self) -> SpreadCounts:
        """Return a copy for a what-if."""
        copied = copy(self)
        copied.counts = [counts.copy() for counts in self.counts]
        return copied

    def is_outdated_by(self, change: Change) -> bool:
        # What changes which nodes are eligible, or to which domain they belong: a topology label, the taints under
        # nodeTaintsPolicy Honor, and any label if the pod has a node selector or affinity. Counts of pods are never a
        # reason: `count` follows these.
        spec = self._pod.pod.spec
        return (
            any(constraint.key in change.labels for constraint in self.constraints)
            or (change.what & SPEC != 0 and any(constraint.honors_taints for constraint in self.constraints))
            or (bool(change.labels) and (bool(spec.node_selector) or spec.affinity is not None))
        )

    def skips_by(self) -> object:
        return None  # whether the plugin skips depends on the constraints alone

    def _matches(self, i: int, other: LabelClass) -> bool:
        """Return whether pods of a label class count for constraint i; judged once for each class."""
        matches = self._judged[i].get(other.serial)
        if matches is None:
            selector = self.constraints[i].selector
            matches = self._judged[i][other.serial] = (
                other.namespace == self._pod.namespace
                and not other.terminating
                and not selector.is_everything
                and selector.matches(other.labels)
            )
        return matches

    def _count_rows(self, i: int, codes: Ints | None, size: int, whole: Snapshot) -> None:
        """Count the matching pods of eligible nodes, by the nodes' codes or (None) by row, and append the counts."""
        # Label classes are found by an index of labels, then matched: of ten thousand classes a selector app=web is
        # compared only with those in the namespace that have app=web. `counted[classes of all pods]` is then one lookup
        # for each pod, and bincount adds them up by domain.
        selector, namespace = self.constraints[i].selector, self._pod.namespace
        placed = whole.slots.by_namespace.get(namespace, ())
        found = [
            other.number
            for other in whole.templates.label_classes.candidates(namespace, selector, placed)
            if other in whole.slots.classes and self._matches(i, other)
        ]
        values: npt.NDArray[Any] = np.zeros(size, dtype=self._dtype)
        if found:
            counted = np.zeros(len(whole.templates.label_classes), dtype=np.bool_)
            counted[found] = True
            rows, eligible = whole.pod_rows()[counted[whole.pod_classes()]], self._eligible[i]
            # Pods on nodes that are not eligible do not count, even if the node is in a domain that is.
            if eligible is not None:
                rows = rows[eligible[rows]]
            values = np.bincount(rows if codes is None else codes[rows], minlength=size).astype(self._dtype, copy=False)
        self.counts.append(values)

    def count(self, other: PodView, row: int, sign: int, nodes: Snapshot) -> bool:
        counts = False
        for i in range(len(self.constraints)):
            eligible = self._eligible[i]
            if self._matches(i, other.template.label_class) and (eligible is None or eligible.item(row)):
                self._add(i, row, sign, nodes)
                counts = True
        return counts

    def _add(self, i: int, row: int, sign: int, nodes: Snapshot) -> None:
        self.counts[i][self._code_at(i, row, nodes)] += sign

    def _code_at(self, i: int, row: int, nodes: Snapshot) -> int:
        return nodes.code_at(self.constraints[i].key, row)


class HardCounts(SpreadCounts):
    """Counts for the constraints with whenUnsatisfiable: DoNotSchedule."""

    def __init__(self, constraints: tuple[Constraint, ...], pod: PodView, compare: bool) -> None:
        super().__init__(constraints, pod, compare)
        self._present: list[Ints | list[int]] = []
        """For each constraint the codes that have eligible nodes; as a list if they are few, which is faster to read."""

    def recount(self, whole: Snapshot) -> None:
        self.counts, self._eligible, self._present = [], [], []
        # A node must have the labels of *all* hard constraints to count for any of them. With constraints
        # over zone and rack, a node with a zone but no rack adds nothing to its zone, and its zone may not even exist
        # for the minimum.
        held = _with_all_keys(self.constraints, whole)
        for i, constraint in enumerate(self.constraints):
            eligible = _both(held, _included(constraint, self._pod, whole, self._compare))
            codes, size = whole.codes(constraint.key), whole.n_values(constraint.key) + 1
            self._eligible.append(eligible)
            # Domains for the minimum are those with an eligible node, also without pods: an empty zone makes the
            # minimum 0. Domains whose nodes the pod cannot use do not count (nodeAffinityPolicy), so a pod bound to
            # zones a and b is not held back by an empty zone c.
            present = np.flatnonzero(np.bincount(codes if eligible is None else codes[eligible], minlength=size))
            self._present.append(present.tolist() if len(present) <= FEW else present)
            self._count_rows(i, codes, size, whole)

    def is_moved_by(self, other: PodView, nodes: Snapshot) -> bool:
        # The selector alone, as in `imagine`: a what-if counts every pod that matches, whatever `_matches` says of it.
        return other.namespace == self._pod.namespace and any(c.selector.matches(other.labels) for c in self.constraints)

    def imagine(self, other: PodView, row: int, sign: int, nodes: Snapshot) -> None:
        """Count a pod that a what-if adds or removes. Kept quirk: here a selector that selects everything does match, and a
        terminating pod counts."""
        if other.namespace != self._pod.namespace:
            return
        for i, constraint in enumerate(self.constraints):
            eligible = self._eligible[i]
            if (eligible is None or eligible.item(row)) and constraint.selector.matches(other.labels):
                self._add(i, row, sign, nodes)

    def allowed(self, i: int) -> int:
        """Return the highest count with which a domain still takes the pod: count + self - minimum <= maxSkew, solved for
        count. The minimum is 0 while there are fewer domains than minDomains."""
        #     counts 3, 1, 2 and maxSkew 1     the pod matches its selector:   1 + 1 - 1 = 1, only the domain with 1 fits
        #                                      the pod does not match it:      1 + 1 - 0 = 2, the domain with 2 fits too
        constraint, values, present = self.constraints[i], self.counts[i], self._present[i]
        least = 0
        if len(present) >= max(constraint.min_domains, 1):
            least = min(map(values.item, present)) if isinstance(present, list) else int(values[present].min())
        return constraint.max_skew + least - constraint.matches_self

    def judge(self, i: int) -> Bits:
        """Return a verdict for each domain of a constraint; the last element is for nodes without the label."""
        # Nodes without the label all read the last element. It is overwritten, whatever was counted there.
        verdicts: Bits = np.multiply(self.counts[i] > self.allowed(i), TOO_FULL, dtype=np.uint64)
        verdicts[-1] = NO_DOMAIN
        return verdicts


class SoftCounts(SpreadCounts):
    """Counts for the constraints with whenUnsatisfiable: ScheduleAnyway. A hostname is its own domain and is counted by row."""

    _dtype = np.float64  # scores multiply all counts by a weight: twice as fast as with integers

    def __init__(self, constraints: tuple[Constraint, ...], needs_all_keys: bool, pod: PodView, compare: bool) -> None:
        super().__init__(constraints, pod, compare)
        self.needs_all_keys = needs_all_keys
        self.is_odd = any(constraint.max_skew < 1 for constraint in constraints)
        """Whether a maxSkew is below 1, which no API server accepts. Scores may then be out of range."""
        self._codes: list[Ints] = []
        """For each constraint the codes of all nodes (`_domain_codes`)."""
        self._lacking: list[Bools | None] = []
        """For each constraint the nodes without its label; None if there are none."""
        self._held: Bools | None = None
        self._weights: tuple[float, ...] = ()
        """The weights of the constraints if all nodes are scored."""
        self._spreads: tuple[Spread, ...] | None = None
        """What `spreads` returns for all nodes with these weights, until the next recount."""

    def clone(self) -> SoftCounts:
        copied = super().clone()
        assert isinstance(copied, SoftCounts)
        copied._spreads = None
        return copied

    def recount(self, whole: Snapshot) -> None:
        self.counts, self._eligible, self._codes, self._lacking = [], [], [], []
        # `_held` is needed by `ignored` in each attempt; the rest of the lists have one entry for each constraint, in
        # the same order.
        self._held, self._spreads = _with_all_keys(self.constraints, whole), None
        for i, constraint in enumerate(self.constraints):
            self._lacking.append(_lacking(constraint.key, whole))
            self._codes.append(_domain_codes(constraint.key, whole))
            # Hosts are not counted by code: there are as many as nodes, and a row is a faster index than a code. Kept
            # quirk: for hostname kube-scheduler counts the pods of the node itself, without the inclusion policies.
            if constraint.key == HOSTNAME:
                self._eligible.append(None)
                self._count_rows(i, None, whole.n, whole)
                continue
            eligible = _included(constraint, self._pod, whole, self._compare)
            # Kept quirk: with the built-in defaults a node without some of the labels still counts for the labels that
            # it has.
            self._eligible.append(_both(eligible, self._held) if self.needs_all_keys else eligible)
            self._count_rows(i, self._codes[i], whole.n_values(constraint.key) + 1, whole)
        self._weights = tuple(
            weight_of(whole.n if constraint.key == HOSTNAME else int(np.count_nonzero(np.bincount(codes))))
            for constraint, codes in zip(self.constraints, self._codes, strict=True)
        )

    def is_moved_by(self, other: PodView, nodes: Snapshot) -> bool:
        return False  # soft constraints refuse no node

    def _code_at(self, i: int, row: int, nodes: Snapshot) -> int:
        return row if self.constraints[i].key == HOSTNAME else self._codes[i].item(row)

    def ignored(self, nodes: Snapshot) -> Bools | None:
        """Return the nodes that get no score because they lack a constraint's label; None if there are none."""
        if not self.needs_all_keys or self._held is None:
            return None
        return ~(self._held if nodes.rows is None else self._held[nodes.rows])

    def weights(self, scored: Bools, n_scored: int, nodes: Snapshot) -> tuple[float, ...]:
        """Return the weight of each constraint: ln(domains with scored nodes + 2), so that many small domains do not count
        less."""
        # The number of domains is taken among the nodes that are scored: with ten zones of which two have feasible
        # nodes, the weight is ln(2 + 2). If all nodes are scored it does not change from pod to pod and is kept.
        if n_scored == nodes.total:
            return self._weights
        found = []
        for i, constraint in enumerate(self.constraints):
            n_domains = n_scored
            if constraint.key != HOSTNAME:
                codes = self._codes[i] if nodes.rows is None else self._codes[i][nodes.rows]
                here = np.zeros(len(self.counts[i]) + 1, dtype=np.bool_)
                here[codes[scored]] = True
                n_domains = int(np.count_nonzero(here))
            found.append(weight_of(n_domains))
        return tuple(found)

    def spreads(self, weights: Sequence[float], nodes: Snapshot) -> tuple[Spread, ...]:
        """Return the constraints as `kernels.spread_worth` takes them: counts, codes, nodes without the label, weight, maxSkew
        - 1."""
        # `is`, not ==: weights of this tuple are those for all nodes, so the result can be kept until the next recount.
        # The arrays in it are the live ones: when `count` changes an element, the kept result has the new value too.
        is_of_all = weights is self._weights and nodes.rows is None
        if is_of_all and self._spreads is not None:
            return self._spreads
        spreads: list[Spread] = []
        for i, (constraint, weight) in enumerate(zip(self.constraints, weights, strict=True)):
            counts, lacking, codes = self.counts[i], self._lacking[i], None
            if constraint.key != HOSTNAME:
                codes = nodes.codes(constraint.key)
            elif nodes.rows is not None:
                counts = counts[nodes.rows]
            if lacking is not None and nodes.rows is not None:
                lacking = lacking[nodes.rows]
            spreads.append((counts, codes, lacking, weight, constraint.max_skew - 1))
        if is_of_all:
            self._spreads = tuple(spreads)
        return tuple(spreads)


@lru_cache(maxsize=1024)
def weight_of(n_domains: int) -> float:
    """Return the weight of a constraint with this many domains."""
    return natural_log(n_domains + 2)


_HIGH, _LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_L1, _L2, _L3, _L4 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01
_L5, _L6, _L7 = 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01


def natural_log(x: float) -> float:
    """Return ln x as Go computes it, to the last bit. The C library differs for one integer in a hundred, and a last bit can
    move a score across a rounding boundary.

    x = fraction * 2**exponent with fraction in [sqrt(1/2), sqrt(2)); ln x = exponent * ln 2 + ln(1 + f), f = fraction - 1, and
    ln(1 + f) is a polynomial in s = f / (2 + f). The constants are those of FreeBSD's e_log.c, which Go uses too.
    """
    # frexp gives a fraction in [1/2, 1); doubling the lower part centres it around 1, where f is small.
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
