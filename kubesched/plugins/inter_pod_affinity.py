"""InterPodAffinity: place pods next to, or away from, other pods.

Everything is counted per topology domain: which domains hold pods that the incoming pod wants near or wants away from,
which hold pods that do not want it, and what the preferences of both sides add up to. The counters are built once from
the table of placed pods, judging each distinct label set and each distinct affinity once, and after that only adjusted
by the pods that come and go. Filter and score then look a node's domain up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kubesched.api import matching
from kubesched.api.core import Namespace
from kubesched.api.matching import AffinityTerm, PodAffinityTerms
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.cluster import ABSENT, Bools, Ints
from kubesched.config.args import Args
from kubesched.config.fielderrors import FieldError, Path, invalid
from kubesched.config.gates import Gates
from kubesched.config.wire import Int32
from kubesched.framework import (
    SKIP,
    CycleState,
    DomainScores,
    DomainVerdicts,
    FeasibleNodes,
    Input,
    Plugin,
    PodView,
    PreFilterAnswer,
    Reason,
    Rejections,
    Snapshot,
    Status,
    failed,
    unresolvable,
)
from kubesched.framework.advice import Advice, Refused
from kubesched.framework.counters import DomainCounts, PodCounts
from kubesched.framework.ports import Handle
from kubesched.framework.wakeups import ADD, DELETE, NODE, POD, Action, on
from kubesched.plugins._demands import advise_on_neighbours
from kubesched.plugins._domain_scores import ScoredDomains


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


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the incoming pod says about others, with its namespace selectors expanded, and what it is to others."""

    terms: PodAffinityTerms
    namespace: str
    labels: Mapping[str, str]
    namespace_labels: Mapping[str, str]

    def is_meant_by(self, term: AffinityTerm) -> bool:
        """Return whether a term of an existing pod is about the incoming pod."""
        return term.matches(self.namespace, self.labels, self.namespace_labels)

    def matches_itself(self) -> bool:
        """Return whether the pod meets all its own required affinity terms."""
        return all(_is_about(term, self.namespace, self.labels) for term in self.terms.required)


class AffinityCounts(PodCounts):
    """Pods per domain, as far as they matter to one class of incoming pods."""

    def __init__(self, wanted: _Wanted, hard_weight: int) -> None:
        super().__init__()
        self.wanted = wanted
        self.hard_weight = hard_weight
        self._by_class: dict[int, _Effect] = {}
        self._by_affinity: dict[int, _Effect] = {}
        self._forget()

    def _forget(self) -> None:
        self.existing_anti = DomainCounts()
        self.affinity = DomainCounts()
        self.anti_affinity = DomainCounts()
        self.preferences = DomainCounts()
        self.judged: DomainVerdicts | None = None
        """What was concluded for the domains of the only key that matters, kept up to date."""

    def clone(self) -> AffinityCounts:
        copied = copy(self)
        copied.existing_anti = self.existing_anti.clone()
        copied.affinity = self.affinity.clone()
        copied.anti_affinity = self.anti_affinity.clone()
        copied.preferences = self.preferences.clone()
        copied.judged = None
        return copied

    def keys(self) -> set[str]:
        """Return the topology keys that decide whether a node passes."""
        terms = self.wanted.terms
        return {term.topology_key for term in (*terms.required, *terms.required_anti)}.union(self.existing_anti.keys)

    def is_first(self) -> bool:
        """Return whether nobody is there that the pod wants to be near, and it is itself such a pod."""
        return self.affinity.is_empty and self.wanted.matches_itself()

    def recount(self, whole: Snapshot) -> None:
        self._forget()
        terms = self.wanted.terms
        if terms.required or terms.required_anti or terms.preferred or terms.preferred_anti:
            effects = {c: self._class_effect(c, whole) for c in _candidates(terms, whole)}
            self._count(effects, len(whole.templates.label_classes), whole.pod_classes(), whole)
        groups = {a: self._affinity_effect(a, whole) for a in whole.slots.affinities}
        self._count(groups, len(whole.templates.affinity_groups), whole.pod_affinities(), whole)

    def _count(self, effects: Mapping[int, _Effect], n_numbers: int, numbers: Ints, whole: Snapshot) -> None:
        effects = {number: effect for number, effect in effects.items() if effect.is_felt}
        if not effects:
            return
        felt = np.zeros(n_numbers, dtype=np.bool_)
        felt[list(effects)] = True
        slots = np.flatnonzero(felt[numbers])
        numbers, rows = numbers[slots], whole.pod_rows()[slots]
        for name in ("existing_anti", "affinity", "anti_affinity", "preferences"):
            counts: DomainCounts = getattr(self, name)
            keys = {key for effect in effects.values() for key, _ in getattr(effect, name)}
            for key in keys:
                amounts = np.zeros(n_numbers, dtype=np.int64)
                times = np.zeros(n_numbers, dtype=np.int64)
                for number, effect in effects.items():
                    for k, amount in getattr(effect, name):
                        if k == key:
                            amounts[number] += amount
                            times[number] += 1
                counts.count(key, whole, rows, amounts[numbers], times[numbers])

    def count(self, other: PodView, row: int, sign: int, nodes: Snapshot) -> bool:
        counts = False
        for effect in self.effects(other, nodes):
            if effect.is_felt:
                self._apply(effect, row, sign, nodes)
                counts = True
        return counts

    def skips_by(self) -> object:
        return self.existing_anti.is_empty, self.preferences.is_empty

    def is_moved_by(self, other: PodView, nodes: Snapshot) -> bool:
        return any(effect.is_required for effect in self.effects(other, nodes))

    def effects(self, other: PodView, nodes: Snapshot) -> list[_Effect]:
        """Return what a pod like this one means: by the incoming pod's terms, and by its own."""
        template, effects = other.template, []
        if self.wanted.terms is not _NO_TERMS:
            effects.append(self._class_effect(template.class_id, nodes))
        if template.affinity_id:
            effects.append(self._affinity_effect(template.affinity_id, nodes))
        return effects

    def _apply(self, effect: _Effect, row: int, sign: int, nodes: Snapshot) -> None:
        for counts, changes in (
            (self.existing_anti, effect.existing_anti),
            (self.affinity, effect.affinity),
            (self.anti_affinity, effect.anti_affinity),
        ):
            for key, amount in changes:
                was_empty = counts.is_empty
                change = counts.add(key, nodes, row, sign * amount, sign)
                if self.judged is None or change is None:
                    continue
                if was_empty or counts.is_empty or key != self.judged.key:
                    self.judged = None  # a key more or less, or the first of all: judge again
                elif (change[1] > 0) != (change[2] > 0):
                    self.judged.put(change[0], self.verdict(key, change[0]))
        for key, amount in effect.preferences:
            self.preferences.add(key, nodes, row, sign * amount, sign)

    def verdict(self, key: str, code: int) -> int:
        """Return the verdict on one domain of the only key that matters."""
        if self.wanted.terms.required and not self.is_first() and self.affinity.at(key, code) <= 0:
            return 1
        if self.anti_affinity.at(key, code) > 0:
            return 2
        return 4 if self.existing_anti.at(key, code) > 0 else 0

    def _class_effect(self, class_id: int, nodes: Snapshot) -> _Effect:
        """Return what a pod of a label class means to the incoming pod, by the incoming pod's terms."""
        effect = self._by_class.get(class_id)
        if effect is None:
            terms, other = self.wanted.terms, nodes.templates.label_classes[class_id]
            wants_all = bool(terms.required) and all(_is_about(term, other.namespace, other.labels) for term in terms.required)
            effect = self._by_class[class_id] = _Effect(
                affinity=tuple((term.topology_key, 1) for term in terms.required) if wants_all else (),
                anti_affinity=tuple(
                    (term.topology_key, 1) for term in terms.required_anti if _is_about(term, other.namespace, other.labels)
                ),
                preferences=tuple(
                    (wish.term.topology_key, sign * wish.weight)
                    for sign, wishes in ((1, terms.preferred), (-1, terms.preferred_anti))
                    for wish in wishes
                    if _is_about(wish.term, other.namespace, other.labels)
                ),
            )
        return effect

    def _affinity_effect(self, affinity_id: int, nodes: Snapshot) -> _Effect:
        """Return what a pod of an affinity group means to the incoming pod, by the placed pod's own terms."""
        effect = self._by_affinity.get(affinity_id)
        if effect is None:
            wanted, terms = self.wanted, nodes.templates.affinity_groups[affinity_id]
            preferences = [
                (wish.term.topology_key, sign * wish.weight)
                for sign, wishes in ((1, terms.preferred), (-1, terms.preferred_anti))
                for wish in wishes
                if wanted.is_meant_by(wish.term)
            ]
            if self.hard_weight > 0:
                preferences += [(term.topology_key, self.hard_weight) for term in terms.required if wanted.is_meant_by(term)]
            effect = self._by_affinity[affinity_id] = _Effect(
                existing_anti=tuple((term.topology_key, 1) for term in terms.required_anti if wanted.is_meant_by(term)),
                preferences=tuple(preferences),
            )
        return effect


_Changes = tuple[tuple[str, int], ...]
_NO_TERMS = PodAffinityTerms()
_NO_SELECTION = matching.compile_selector(None)


@dataclass(frozen=True, slots=True)
class _Effect:
    """What one placed pod adds to the counters: (topology key, amount) pairs."""

    existing_anti: _Changes = ()
    affinity: _Changes = ()
    anti_affinity: _Changes = ()
    preferences: _Changes = ()

    @property
    def is_felt(self) -> bool:
        return bool(self.existing_anti or self.affinity or self.anti_affinity or self.preferences)

    @property
    def is_required(self) -> bool:
        return bool(self.existing_anti or self.affinity or self.anti_affinity)


class _Share:
    """The lowest count scores 0, the highest 100, the others their share; all score 0 where all counts are the same."""

    def column(self, counts: Ints, low: int, high: int) -> Ints:
        return np.zeros(len(counts), dtype=np.int64) if low == high else _scaled(counts, low, high)

    def one(self, count: int, low: int, high: int) -> int:
        return 0 if low == high else int(100.0 * ((count - low) / float(high - low)))


_SHARE = _Share()
_SCORED = "InterPodAffinity.scored"
"""The scores of domains belong to a class, whose feasible nodes they are relative to; the counts are shared."""


def _is_nobody_concerned(pod: PodView, nodes: Snapshot, state: CycleState) -> bool:
    """Return whether nobody says anything about anybody, which is not worth counting for one pod alone."""
    return state.counters is None and not pod.template.affinity_id and not nodes.slots.affinities


class InterPodAffinity(Plugin):
    Args = InterPodAffinityArgs
    wakes_on = (
        on(POD, ADD | Action.POD_LABELS | DELETE, "pod_may_help", by_template=True),
        on(NODE, ADD | Action.NODE_LABELS, "node_may_help", by_template=True),
    )
    needs = (
        ("filter", "pre_filter", 'error reading "PreFilterInterPodAffinity" from cycleState: not found'),
        ("score", "pre_score", 'failed to read "PreScoreInterPodAffinity" from cycleState: not found'),
    )
    depends_on = (Input.POD_TEMPLATE, Input.NODE, Input.COUNTED_PODS, Namespace)

    def __init__(self, args: InterPodAffinityArgs | None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._behaviour = handle.gates.behaviour

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        if pod.template.affinity.error is not None:
            return unresolvable(f"parsing pod: {pod.template.affinity.error}")
        if _is_nobody_concerned(pod, nodes, state):
            return SKIP
        counters = self.counters(pod, nodes, state)
        terms = counters.wanted.terms
        if not terms.required and not terms.required_anti and counters.existing_anti.is_empty:
            return SKIP
        return None

    def counters(self, pod: PodView, nodes: Snapshot, state: CycleState) -> AffinityCounts:
        """Return the counters of an attempt, counted when they are first asked for."""
        counters: AffinityCounts | None = state.find(self.name)
        if counters is None:
            wanted, weight = self._wanted(pod), self.args.hard_pod_affinity_weight
            said = (pod.template.class_id, wanted.terms, frozenset(wanted.namespace_labels.items()), weight)
            counters = state.counted(self.name, said, nodes, lambda: AffinityCounts(wanted, weight))
        return counters

    def _wanted(self, pod: PodView) -> _Wanted:
        own = self.handle.objects.get(Namespace, pod.namespace)
        terms = pod.template.affinity
        if pod.template.affinity_id == 0:
            terms = _NO_TERMS
        else:
            namespaces = list(self.handle.objects.all(Namespace))
            terms = _expanded(terms, namespaces, keeps_selectors=not self._behaviour.selects_known_namespaces)
        return _Wanted(terms, pod.namespace, pod.labels, own.metadata.labels if own is not None else {})

    def advise(self, refused: Refused) -> list[Advice]:
        return advise_on_neighbours(refused)

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        counters: AffinityCounts = state.read(self.name)
        judged = self.filter_domains(pod, nodes, state)
        if judged is not None:
            return judged.rejections(nodes)
        terms = counters.wanted.terms
        cases: list[tuple[Bools, Reason]] = []
        if terms.required:
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

    def filter_domains(self, pod: PodView, nodes: Snapshot, state: CycleState) -> DomainVerdicts | None:
        """Judge every domain of the only key that matters, and at the end the nodes that are in none."""
        counters: AffinityCounts = state.read(self.name)
        if counters.judged is not None:
            return counters.judged
        keys = counters.keys()
        if len(keys) != 1:
            return None
        (key,) = keys
        if counters.existing_anti.is_empty:
            refused = np.zeros(nodes.n_values(key) + 1, dtype=np.uint64)
        else:
            refused = np.multiply(counters.existing_anti.by_code(key, nodes).values > 0, 4, dtype=np.uint64)
        if not counters.anti_affinity.is_empty:
            refused[counters.anti_affinity.by_code(key, nodes).values > 0] = 2
        if counters.wanted.terms.required:
            if not counters.is_first():
                refused[counters.affinity.by_code(key, nodes).values <= 0] = 1
            refused[-1] = 1
        counters.judged = DomainVerdicts(key, refused, _REASONS)
        return counters.judged

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        counters: AffinityCounts = state.read(self.name)
        counters.count(other, row, 1, nodes)

    def remove_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        counters: AffinityCounts = state.read(self.name)
        counters.count(other, row, -1, nodes)

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        return self._skips(pod, nodes, state)

    def _skips(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Status | None:
        """Return SKIP where nobody wishes for anything, or what is wrong with the pod's wishes."""
        if pod.template.affinity.error is not None:
            return failed(f"failed to parse pod: {pod.template.affinity.error}")
        if _is_nobody_concerned(pod, nodes, state):
            return SKIP
        counters = self.counters(pod, nodes, state)
        terms = counters.wanted.terms
        prefers = terms.preferred or terms.preferred_anti
        if self.args.ignore_preferred_terms_of_existing_pods and not prefers:
            return SKIP
        return SKIP if counters.preferences.is_empty else None

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        counters: AffinityCounts = state.read(self.name)
        keys = counters.preferences.keys
        scores = counters.preferences.on(keys[0], nodes)
        for key in keys[1:]:
            scores += counters.preferences.on(key, nodes)
        return scores

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        counted = scores[feasible]
        low, high = int(counted.min()), int(counted.max())
        if high == low:
            return np.zeros(len(scores), dtype=np.int64)
        return _scaled(scores, low, high)

    def score_domains(
        self, pod: PodView, nodes: Snapshot, feasible: FeasibleNodes, state: CycleState
    ) -> DomainScores | Status | None:
        skipped = self._skips(pod, nodes, state)
        if skipped is not None:
            return skipped
        counters: AffinityCounts = state.read(self.name)
        keys = counters.preferences.keys
        if len(keys) > 1:
            return None
        scored: ScoredDomains | None = state.find(_SCORED)
        if scored is None or scored.key != keys[0]:
            scored = ScoredDomains(keys[0])
            state.write(_SCORED, scored)
        return scored.table(counters.preferences.by_code(keys[0], nodes), feasible.domains(keys[0]), _SHARE)

    # What may help. Terms are taken as written: namespace selectors are not expanded here, and other pods' namespaces
    # have no labels, as in the reference.

    def pod_may_help(self, pod: PodView, old: Pod | None, new: Pod | None) -> bool:
        """Return whether a pod that came, went or changed its labels makes the difference for the waiting pod."""
        if old is not None and new is not None and new.metadata.uid == pod.uid:
            return True
        if any(p is not None and not p.spec.node_name and not p.status.nominated_node_name for p in (old, new)):
            return False
        terms = pod.template.affinity
        if _has_unread(terms, pod.pod):
            return True
        if old is not None and new is not None:
            return (not _matches_all(terms.required, old) and _matches_all(terms.required, new)) or (
                self._keeps_away(terms, old) and not self._keeps_away(terms, new)
            )
        if new is not None:
            return _matches_all(terms.required, new)
        assert old is not None
        if self._keeps_away(terms, old):
            return True
        theirs = matching.compile_pod_affinity(old)
        return _has_unread(theirs, old, anti_only=True) or self._keeps_away(theirs, pod.pod)

    def _keeps_away(self, terms: PodAffinityTerms, pod: Pod) -> bool:
        if not self._behaviour.wakes_by_any_anti_term:
            return _matches_all(terms.required_anti, pod)
        return any(_is_about(term, pod.metadata.namespace, pod.metadata.labels) for term in terms.required_anti)

    def node_may_help(self, pod: PodView, old: Node | None, new: Node) -> bool:
        """Return whether a node came into, or left, a topology that the waiting pod's terms speak of."""
        terms, after = pod.template.affinity, new.metadata.labels
        before = old.metadata.labels if old is not None else None
        if _has_unread(terms, pod.pod):
            return True
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
    """Spread scores over 0 to 100. Divide first, then multiply: the reference's order, which decides the last digit.

    Scores outside the range are of nodes that are not feasible; nobody reads what becomes of them.
    """
    span = high - low
    if span < len(scores) // 2:  # few different scores: work each out once
        return _steps(span).take(scores - low if low else scores, mode="clip")
    scaled: Ints = (100.0 * ((scores - low) / float(span))).astype(np.int64)
    return scaled


@lru_cache(maxsize=256)
def _steps(span: int) -> Ints:
    """Return what each score from 0 to `span` becomes."""
    return (100.0 * (np.arange(span + 1) / float(span))).astype(np.int64)


def _is_about(term: AffinityTerm, namespace: str, labels: Mapping[str, str]) -> bool:
    """Return whether an expanded term of the incoming pod is about another pod.

    The selector for namespaces is asked about empty labels, whatever the namespace: those that really match were added
    by name. So where it is kept (before 1.37) a selector of negations alone matches every namespace.
    """
    return term.matches(namespace, labels, {})


def _has_unread(terms: PodAffinityTerms, pod: Pod, *, anti_only: bool = False) -> bool:
    """Return whether a required term of the pod's cannot be read: then nobody can say what would not help."""
    if terms.error is None or pod.spec.affinity is None:
        return False
    near, away = pod.spec.affinity.pod_affinity, pod.spec.affinity.pod_anti_affinity
    return (away is not None and bool(away.required) and not terms.required_anti) or (
        not anti_only and near is not None and bool(near.required) and not terms.required
    )


def _matches_all(terms: Iterable[AffinityTerm], pod: Pod) -> bool:
    given = tuple(terms)
    return bool(given) and all(_is_about(term, pod.metadata.namespace, pod.metadata.labels) for term in given)


def _expanded(terms: PodAffinityTerms, namespaces: list[Namespace], *, keeps_selectors: bool) -> PodAffinityTerms:
    """Put the names of the namespaces that its selector matches now into every term, beside the selector or for it."""

    def expand(term: AffinityTerm) -> AffinityTerm:
        if term.ns_selector.is_everything or term.ns_selector.is_nothing:
            return term
        found = {ns.metadata.name for ns in namespaces if term.ns_selector.matches(ns.metadata.labels)}
        left = term.ns_selector if keeps_selectors else _NO_SELECTION
        return AffinityTerm(term.namespaces | found, left, term.selector, term.topology_key)

    def expand_wish(wish: matching.WeightedAffinityTerm) -> matching.WeightedAffinityTerm:
        return matching.WeightedAffinityTerm(wish.weight, expand(wish.term))

    return PodAffinityTerms(
        tuple(map(expand, terms.required)),
        tuple(map(expand, terms.required_anti)),
        tuple(map(expand_wish, terms.preferred)),
        tuple(map(expand_wish, terms.preferred_anti)),
    )


def _candidates(terms: PodAffinityTerms, nodes: Snapshot) -> Iterable[int]:
    """Return the label classes of placed pods that some term could be about, by namespace."""
    all_terms = [
        *terms.required,
        *terms.required_anti,
        *(w.term for w in terms.preferred),
        *(w.term for w in terms.preferred_anti),
    ]
    if any(term.ns_selector.matches({}) for term in all_terms):
        return nodes.slots.classes
    names = set().union(*(term.namespaces for term in all_terms))
    return [class_id for name in names for class_id in nodes.slots.by_namespace.get(name, ())]
