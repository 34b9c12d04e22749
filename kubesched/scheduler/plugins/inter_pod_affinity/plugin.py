"""InterPodAffinity: place pods next to, or away from, other pods.

`counts` counts, by topology domain, the pods that the terms of the incoming pod match, and the pods whose terms match the
incoming pod; it has an example. PreFilter looks the counters up. Filter and Score read them by each node's domain.
NormalizeScore puts the lowest feasible sum at 0 and the highest at 100.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from weakref import WeakValueDictionary

import numpy as np

from kubesched.kube.api import AffinityTerm, Namespace, Node, Pod, PodAffinityTerms, matching
from kubesched.scheduler import kernels
from kubesched.scheduler.cluster import ABSENT, Bools, Ints, Memo
from kubesched.scheduler.config import Args, FieldError, Gates, Int32, Path, invalid
from kubesched.scheduler.framework import (
    ADD,
    ADMITTED_LATER,
    DELETE,
    NODE,
    POD,
    SKIP,
    Action,
    AddsScores,
    Advice,
    CycleState,
    Handle,
    Input,
    PodView,
    PreFilterAnswer,
    Reason,
    Refused,
    Rejections,
    Snapshot,
    Status,
    failed,
    on,
    unresolvable,
)
from kubesched.scheduler.plugins.inter_pod_affinity.counts import (
    AffinityCounts,
    Effect,
    EffectsOfOthers,
    expanded,
    matches_itself,
    matches_other,
)
from kubesched.scheduler.plugins.shared.demands import advise_on_neighbours


class InterPodAffinityArgs(Args, frozen=True, rename="camel"):
    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        weight = self.hard_pod_affinity_weight
        if 0 <= weight <= 100:
            return []
        return [invalid(path.child("hardPodAffinityWeight"), weight, "not in valid range [0, 100]")]


NO_AFFINITY_MATCH = Reason("node(s) didn't match pod affinity rules", resolvable=False)
ANTI_AFFINITY = Reason("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = Reason("node(s) didn't satisfy existing pods anti-affinity rules")
_REASONS = (NO_AFFINITY_MATCH, ANTI_AFFINITY, EXISTING_ANTI_AFFINITY)


def _has_no_terms(pod: PodView, nodes: Snapshot, state: CycleState) -> bool:
    """Return whether neither the pod nor a placed pod has a term, in an attempt that keeps no counters: nothing to count."""
    # Affinity group 0 has the pods without terms. This is the usual case, and it must cost nothing: no lookup, no
    # counters.
    return state.counters is None and not pod.template.affinity_group.serial and not nodes.slots.affinities


class InterPodAffinity(AddsScores):
    Args = InterPodAffinityArgs
    wakes_on = (
        on(POD, ADD | Action.POD_LABELS | DELETE, "pod_may_help", by_template=True),
        on(NODE, ADD | Action.NODE_LABELS, "node_may_help", by_template=True, without_hints=ADD | ADMITTED_LATER),
    )
    needs = (
        ("filter", "pre_filter", 'error reading "PreFilterInterPodAffinity" from cycleState: not found'),
        ("score", "pre_score", 'failed to read "PreScoreInterPodAffinity" from cycleState: not found'),
    )
    depends_on = (Input.POD_TEMPLATE, Input.NODE, Input.COUNTED_PODS, Namespace)

    def __init__(self, args: InterPodAffinityArgs | None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._behaviour = handle.gates.behaviour
        self._effects_of_others: EffectsOfOthers | None = None
        self._class_effects: WeakValueDictionary[Hashable, Memo[Effect]] = WeakValueDictionary()
        """By terms; an entry goes with the last counters that use it."""

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        """Look the counters up. Skip a pod without required terms, unless a placed pod has anti-affinity to it."""
        if pod.template.affinity.error is not None:
            return unresolvable(f"parsing pod: {pod.template.affinity.error}")
        if _has_no_terms(pod, nodes, state):
            return SKIP
        counters = self.counters(pod, nodes, state)
        terms = counters.terms
        if not terms.required and not terms.required_anti and counters.existing_anti.is_empty:
            return SKIP
        return None

    def counters(self, pod: PodView, nodes: Snapshot, state: CycleState) -> AffinityCounts:
        """Return the counters of the attempt; the first call finds them in the cache or counts."""
        counters: AffinityCounts | None = state.find(self.name)
        if counters is None:
            # The declaration is the key under which the counters are shared. Two pods share them if they have equal
            # terms, and if placed pods' terms say the same about both: with terms only about app=db, pods db-0 and db-1
            # of a StatefulSet share, although each has a label statefulset.kubernetes.io/pod-name of its own.
            group, templates, effects = pod.template.affinity_group, nodes.templates, self._effects_of_others
            if effects is None or effects.groups is not templates.affinity_groups:
                effects = self._effects_of_others = EffectsOfOthers(templates, self.args.hard_pod_affinity_weight)
            # The serial number of the affinity group identifies the terms, unless they depend on the namespaces.
            terms = group.terms
            own: Hashable = group.serial
            if group.selects_namespaces:
                namespaces = list(self.handle.objects.all(Namespace))
                own = terms = expanded(terms, namespaces, keeps_selectors=not self._behaviour.selects_known_namespaces)
            others, meets_itself = effects.of(pod, nodes), matches_itself(terms, pod)

            # Judged label classes are shared wider than counters: also by pods for which placed pods' terms differ.
            # They depend on the terms alone (`own`).
            def make() -> AffinityCounts:
                by_class = self._class_effects.get(own)
                if by_class is None or by_class.interner is not templates.label_classes:
                    by_class = self._class_effects[own] = Memo(templates.label_classes)
                return AffinityCounts(terms, dict(others), effects, by_class, matches_itself=meets_itself)

            declaration = self.name, own, meets_itself, frozenset(others.items()), effects
            counters = state.counted(self.name, declaration, nodes, make)
            counters.newest_group = templates.affinity_groups.newest
        return counters

    def advise(self, refused: Refused) -> list[Advice]:
        return advise_on_neighbours(refused)

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Refuse a node for the first of three reasons: a required affinity term without a matching pod in its domain, a
        matching pod for an anti-affinity term, or a placed pod with anti-affinity to this one. With several topology keys each
        term is looked up by its own key."""
        counters: AffinityCounts = state.read(self.name)
        # With one topology key, the usual case, the verdict is worked out by domain (3 zones) and spread over the nodes
        # (5,000) by one `take`. With several, a node's verdict depends on a combination of domains, and each term is a
        # column over the nodes.
        keys = counters.keys() if counters.judged is None else {counters.judged[0]}
        if len(keys) == 1:
            (key,) = keys
            return Rejections.by_domain(nodes, key, counters.judge(key, nodes), _REASONS)
        terms = counters.terms
        cases: list[tuple[Bools, Reason]] = []
        if terms.required:
            # `has_keys` is apart from `near` because of the first pod of a group: it needs no matching pod, but the
            # labels all the same.
            has_keys = np.ones(nodes.n, dtype=np.bool_)
            near = np.ones(nodes.n, dtype=np.bool_)
            for term in terms.required:
                has_keys &= nodes.codes(term.topology_key) != ABSENT
                near &= counters.affinity.on(term.topology_key, nodes) > 0
            cases.append((~(has_keys if counters.is_first() else has_keys & near), NO_AFFINITY_MATCH))
        if terms.required_anti:
            cases.append((counters.anti_affinity.any_positive(nodes), ANTI_AFFINITY))
        if not counters.existing_anti.is_empty:
            cases.append((counters.existing_anti.any_positive(nodes), EXISTING_ANTI_AFFINITY))
        return Rejections.first(*cases) if cases else Rejections.none(nodes)

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        counters: AffinityCounts = state.read(self.name)
        counters.imagine(pod, other, row, 1, nodes)

    def remove_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        counters: AffinityCounts = state.read(self.name)
        counters.imagine(pod, other, row, -1, nodes)

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        counters: AffinityCounts | None = state.find(self.name)
        # PreFilter was skipped or is not in the profile. Score needs the counters too: the pod may have preferred terms
        # only.
        if counters is None:
            if pod.template.affinity.error is not None:
                return failed(f"failed to parse pod: {pod.template.affinity.error}")
            if _has_no_terms(pod, nodes, state):
                return SKIP
            counters = self.counters(pod, nodes, state)
        if counters.preferences.is_empty:
            return SKIP
        terms = counters.terms
        # Kept quirk: ignorePreferredTermsOfExistingPods only matters for pods without preferred terms of their own. A
        # pod with some is scored by the terms of placed pods too.
        prefers = terms.preferred or terms.preferred_anti
        return SKIP if self.args.ignore_preferred_terms_of_existing_pods and not prefers else None

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        counters: AffinityCounts = state.read(self.name)
        # `on` reads the sum of each node's domain, 0 without the label. Sums may be negative (preferred anti-affinity).
        keys = counters.preferences.keys
        scores = counters.preferences.on(keys[0], nodes)
        for key in keys[1:]:
            scores += counters.preferences.on(key, nodes)
        return scores

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        # Kept quirk: if all feasible nodes have the same sum, all get 0, also if that sum is high.
        low, high = kernels.ends_within(scores, feasible) or (0, 0)
        return nodes.uniform(0) if low == high else _scaled(scores, low, high)

    def add_scores(
        self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState, totals: Ints, weight: int
    ) -> Ints | Status | None:
        status = self.pre_score(pod, nodes, feasible, state)
        if status is not None:
            return status
        # PreScore, Score, NormalizeScore and the weighted sum in one call, for the engine. With one topology key the
        # scaled score is worked out by domain, which is a few numbers, and added to the totals by each node's domain.
        # The range (low, high) still comes from the feasible nodes only: a domain without a feasible node must not
        # stretch it.
        scores = self.score(pod, nodes, state)
        low, high = kernels.ends_within(scores, feasible) or (0, 0)
        if low == high:
            return totals
        counters: AffinityCounts = state.read(self.name)
        keys = counters.preferences.keys
        if len(keys) > 1:
            return totals + _scaled(scores, low, high) * weight
        by_domain = _scaled(counters.preferences.by_code(keys[0], nodes), low, high) * weight
        return totals + by_domain.take(nodes.codes(keys[0]))

    # Queueing hints. Kept quirk: namespace selectors are not expanded here, and matched against no labels.

    def pod_may_help(self, pod: PodView, old: Pod | None, new: Pod | None) -> bool:
        """Return whether a pod that was added, deleted or relabelled now matches an affinity, or no longer an anti-affinity."""
        # The waiting pod itself changed: its own labels may now match its terms (`is_first`), or leave a placed pod's
        # anti-affinity.
        if old is not None and new is not None and new.metadata.uid == pod.uid:
            return True
        # A pod that neither has a node nor is nominated to one is in no domain, so it cannot change a count.
        if any(p is not None and not p.spec.node_name and not p.status.nominated_node_name for p in (old, new)):
            return False
        terms = pod.template.affinity
        if _has_unread(terms, pod.pod):
            return True
        # Updated labels: helpful if the pod became a match for the affinity, or ceased to be one for the anti-affinity.
        if old is not None and new is not None:
            return (not _matches_all(terms.required, old) and _matches_all(terms.required, new)) or (
                self._keeps_away(terms, old) and not self._keeps_away(terms, new)
            )
        if new is not None:
            return _matches_all(terms.required, new)
        assert old is not None
        # Deleted: it may have been the pod to keep away from, or the one whose anti-affinity kept this pod away.
        if self._keeps_away(terms, old):
            return True
        theirs = matching.compile_pod_affinity(old)
        return _has_unread(theirs, old, anti_only=True) or self._keeps_away(theirs, pod.pod)

    def _keeps_away(self, terms: PodAffinityTerms, pod: Pod) -> bool:
        # Kept quirk of older releases: the hint wanted the pod to match all anti-affinity terms, although Filter
        # refuses for any of them. So some deletions did not wake the pod.
        if not self._behaviour.wakes_by_any_anti_term:
            return _matches_all(terms.required_anti, pod)
        return any(matches_other(term, pod.metadata.namespace, pod.metadata.labels) for term in terms.required_anti)

    def node_may_help(self, pod: PodView, old: Node | None, new: Node) -> bool:
        """Return whether a node was added to a topology of the waiting pod's terms, or moved to another domain of it."""
        terms, after = pod.template.affinity, new.metadata.labels
        before = old.metadata.labels if old is not None else None
        if _has_unread(terms, pod.pod):
            return True
        # For affinity the node must have moved *into* a domain, with a label it did not have before. For anti-affinity
        # it is enough that it left one: without the label, or in another domain, the node is no longer refused. A new
        # node may always help anti-affinity.
        for term in terms.required:
            key = term.topology_key
            if before is None:
                if key in after:
                    return True
            elif key in after and before.get(key) != after[key]:
                return True
        for term in terms.required_anti:
            key = term.topology_key
            if before is None or (key in before and before[key] != after.get(key)):
                return True
        return False


def _scaled(scores: Ints, low: int, high: int) -> Ints:
    """Return 100 * (score - low) / (high - low), rounded down.

    Go divides in floating point first and multiplies by 100 then, which decides the last digit: (29 / 50) * 100 gives 57, not
    58. Scores outside the range belong to nodes that are not feasible; they are not read.
    """
    span = high - low
    if span < len(scores) // 2:  # few different scores: work each out once
        return _steps(span).take(scores - low if low else scores, mode="clip")
    scaled: Ints = (100.0 * ((scores - low) / float(span))).astype(np.int64)
    return scaled


@lru_cache(maxsize=256)
def _steps(span: int) -> Ints:
    """Return the scaled value of each score from 0 to `span`."""
    return (100.0 * (np.arange(span + 1) / float(span))).astype(np.int64)


def _has_unread(terms: PodAffinityTerms, pod: Pod, *, anti_only: bool = False) -> bool:
    """Return whether a required term of the pod cannot be parsed. Any event may help such a pod."""
    if terms.error is None or pod.spec.affinity is None:
        return False
    near, away = pod.spec.affinity.pod_affinity, pod.spec.affinity.pod_anti_affinity
    return (away is not None and bool(away.required) and not terms.required_anti) or (
        not anti_only and near is not None and bool(near.required) and not terms.required
    )


def _matches_all(terms: Iterable[AffinityTerm], pod: Pod) -> bool:
    given = tuple(terms)
    return bool(given) and all(matches_other(term, pod.metadata.namespace, pod.metadata.labels) for term in given)
