"""Counting for inter-pod affinity: which domains hold pods that one class of incoming pods wants near or wants away from, which
hold pods that do not want it, and what the wishes of both sides add up to.

In: the incoming pod's terms, nodes, placed pods. Out: counters per topology domain. Each distinct label set and each distinct
affinity of placed pods is judged once; after that only pods that come and go are counted (framework/counters).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from kubesched.api import matching
from kubesched.api.core import Namespace
from kubesched.api.matching import AffinityTerm, PodAffinityTerms
from kubesched.cluster import Ints
from kubesched.cluster.journal import Change
from kubesched.framework import DomainVerdicts, PodView, Snapshot
from kubesched.framework.counters import DomainCounts, PodCounts

NO_TERMS = PodAffinityTerms()
_NO_SELECTION = matching.compile_selector(None)
_Changes = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class _Effect:
    """What one placed pod adds to the counters: (topology key, amount) pairs."""

    existing_anti: _Changes = ()
    affinity: _Changes = ()
    anti_affinity: _Changes = ()
    preferences: _Changes = ()
    is_required: bool = field(init=False)
    """Whether it can make the difference between a node that passes and one that does not."""
    is_felt: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_required", bool(self.existing_anti or self.affinity or self.anti_affinity))
        object.__setattr__(self, "is_felt", self.is_required or bool(self.preferences))

    def __add__(self, other: _Effect) -> _Effect:
        return _Effect(
            self.existing_anti + other.existing_anti,
            self.affinity + other.affinity,
            self.anti_affinity + other.anti_affinity,
            self.preferences + other.preferences,
        )

    def topology_keys(self) -> Iterator[str]:
        """Yield the topology keys."""
        for key, _ in (*self.existing_anti, *self.affinity, *self.anti_affinity, *self.preferences):
            yield key


_NO_EFFECT = _Effect()


@dataclass(frozen=True, slots=True)
class IncomingPod:
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
        return all(is_about(term, self.namespace, self.labels) for term in self.terms.required)


class AffinityCounts(PodCounts):
    """Pods per domain, as far as they matter to one class of incoming pods."""

    def __init__(self, incoming: IncomingPod, hard_weight: int) -> None:
        super().__init__()
        self.incoming = incoming
        self.hard_weight = hard_weight
        self._by_class: dict[int, _Effect] = {}
        self._by_affinity: dict[int, _Effect] = {}
        self._by_both: dict[tuple[int, int], _Effect] = {}
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
        terms = self.incoming.terms
        return {term.topology_key for term in (*terms.required, *terms.required_anti)}.union(self.existing_anti.keys)

    def is_first(self) -> bool:
        """Return whether nobody is there that the pod wants to be near, and it is itself such a pod."""
        return self.affinity.is_empty and self.incoming.matches_itself()

    def recount(self, whole: Snapshot) -> None:
        self._forget()
        terms = self.incoming.terms
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
        effect = self._effect(other, nodes)
        if effect.is_felt:
            self._apply(effect, row, sign, nodes)
        return effect.is_felt

    def is_outdated_by(self, change: Change) -> bool:
        if not change.labels:
            return False
        terms = self.incoming.terms
        keys = {term.topology_key for term in (*terms.required, *terms.required_anti)}
        keys.update(wish.term.topology_key for wish in (*terms.preferred, *terms.preferred_anti))
        keys.update(key for effect in self._by_affinity.values() for key in effect.topology_keys())
        return not keys.isdisjoint(change.labels)

    def skips_by(self) -> object:
        return self.existing_anti.is_empty, self.preferences.is_empty

    def is_moved_by(self, other: PodView, nodes: Snapshot) -> bool:
        return self._effect(other, nodes).is_required

    def _effect(self, other: PodView, nodes: Snapshot) -> _Effect:
        """Return what a pod like this one means: by the incoming pod's terms, and by its own."""
        template = other.template
        class_id = template.class_id if self.incoming.terms is not NO_TERMS else 0
        effect = self._by_both.get((class_id, template.affinity_id))
        if effect is None:
            effect = self._class_effect(class_id, nodes) if class_id else _NO_EFFECT
            if template.affinity_id:
                effect += self._affinity_effect(template.affinity_id, nodes)
            self._by_both[class_id, template.affinity_id] = effect
        return effect

    def _apply(self, effect: _Effect, row: int, sign: int, nodes: Snapshot) -> None:
        if effect.is_required:
            self._require(self.existing_anti, effect.existing_anti, row, sign, nodes)
            self._require(self.affinity, effect.affinity, row, sign, nodes)
            self._require(self.anti_affinity, effect.anti_affinity, row, sign, nodes)
        for key, amount in effect.preferences:
            self.preferences.add(key, nodes, row, sign * amount, sign)

    def _require(self, counts: DomainCounts, changes: _Changes, row: int, sign: int, nodes: Snapshot) -> None:
        for key, amount in changes:
            was_empty = counts.is_empty
            change = counts.add(key, nodes, row, sign * amount, sign)
            if self.judged is None or change is None:
                continue
            if was_empty or counts.is_empty or key != self.judged.key:
                self.judged = None  # a key more or less, or the first of all: judge again
            elif (change[1] > 0) != (change[2] > 0):
                self.judged.put(change[0], self.verdict(key, change[0]))

    def verdict(self, key: str, code: int) -> int:
        """Return the verdict on one domain of the only key that matters."""
        if self.incoming.terms.required and not self.is_first() and self.affinity.at(key, code) <= 0:
            return 1
        if self.anti_affinity.at(key, code) > 0:
            return 2
        return 4 if self.existing_anti.at(key, code) > 0 else 0

    def _class_effect(self, class_id: int, nodes: Snapshot) -> _Effect:
        """Return what a pod of a label class means to the incoming pod, by the incoming pod's terms."""
        effect = self._by_class.get(class_id)
        if effect is None:
            terms, other = self.incoming.terms, nodes.templates.label_classes[class_id]
            wants_all = bool(terms.required) and all(is_about(term, other.namespace, other.labels) for term in terms.required)
            effect = self._by_class[class_id] = _Effect(
                affinity=tuple((term.topology_key, 1) for term in terms.required) if wants_all else (),
                anti_affinity=tuple(
                    (term.topology_key, 1) for term in terms.required_anti if is_about(term, other.namespace, other.labels)
                ),
                preferences=tuple(
                    (wish.term.topology_key, sign * wish.weight)
                    for sign, wishes in ((1, terms.preferred), (-1, terms.preferred_anti))
                    for wish in wishes
                    if is_about(wish.term, other.namespace, other.labels)
                ),
            )
        return effect

    def _affinity_effect(self, affinity_id: int, nodes: Snapshot) -> _Effect:
        """Return what a pod of an affinity group means to the incoming pod, by the placed pod's own terms."""
        effect = self._by_affinity.get(affinity_id)
        if effect is None:
            incoming, terms = self.incoming, nodes.templates.affinity_groups[affinity_id]
            preferences = [
                (wish.term.topology_key, sign * wish.weight)
                for sign, wishes in ((1, terms.preferred), (-1, terms.preferred_anti))
                for wish in wishes
                if incoming.is_meant_by(wish.term)
            ]
            if self.hard_weight > 0:
                preferences += [(term.topology_key, self.hard_weight) for term in terms.required if incoming.is_meant_by(term)]
            effect = self._by_affinity[affinity_id] = _Effect(
                existing_anti=tuple((term.topology_key, 1) for term in terms.required_anti if incoming.is_meant_by(term)),
                preferences=tuple(preferences),
            )
        return effect


def is_about(term: AffinityTerm, namespace: str, labels: Mapping[str, str]) -> bool:
    """Return whether an expanded term of the incoming pod is about another pod.

    The selector for namespaces is asked about empty labels, whatever the namespace: those that really match were added
    by name. So where it is kept (before 1.37) a selector of negations alone matches every namespace.
    """
    return term.matches(namespace, labels, {})


def expanded(terms: PodAffinityTerms, namespaces: list[Namespace], *, keeps_selectors: bool) -> PodAffinityTerms:
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
