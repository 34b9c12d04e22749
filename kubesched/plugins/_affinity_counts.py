"""Counting for inter-pod affinity: which domains hold pods that one class of incoming pods wants near or wants away from, which
hold pods that do not want it, and what the wishes of both sides add up to.

In: the incoming pod's terms, nodes, placed pods. Out: counters per topology domain. Each distinct label set and each distinct
affinity of placed pods is judged once; after that only pods that come and go are counted (framework/counters).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass

import numpy as np

from kubesched.api import matching
from kubesched.api.core import Namespace
from kubesched.api.matching import AffinityTerm, PodAffinityTerms
from kubesched.cluster import Ints
from kubesched.cluster.journal import Change
from kubesched.cluster.pods import Templates
from kubesched.framework import DomainVerdicts, PodView, Snapshot
from kubesched.framework.counters import DomainCounts, PodCounts

NO_TERMS = PodAffinityTerms()
_NO_SELECTION = matching.compile_selector(None)

EXISTING_ANTI, AFFINITY, ANTI_AFFINITY, PREFERENCES = COUNTED = ("existing_anti", "affinity", "anti_affinity", "preferences")
"""What is counted, by the attribute of `AffinityCounts` that holds it. All but preferences are required: they can make the
difference between a node that passes and one that does not."""

Effect = tuple[tuple[str, str, int], ...]
"""What one placed pod adds to the counters: to which of them, for which topology key, how much."""


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


class ClassEffects(dict[int, Effect]):
    """What label classes mean to incoming pods by their terms: judged once for all pods of these terms, whatever labels they
    have, as each pod of a StatefulSet has its own."""

    __slots__ = ("__weakref__", "templates")

    def __init__(self, templates: Templates) -> None:
        super().__init__()
        self.templates = templates
        """Whose numbers the classes have."""


class AffinityCounts(PodCounts):
    """Pods per domain, as far as they matter to one class of incoming pods."""

    def __init__(self, incoming: IncomingPod, hard_weight: int, by_class: ClassEffects) -> None:
        super().__init__()
        self.incoming = incoming
        self.hard_weight = hard_weight
        self._by_class = by_class
        self._by_affinity: dict[int, Effect] = {}
        self._by_both: dict[tuple[int, int], Effect] = {}
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
        for name in COUNTED:
            setattr(copied, name, getattr(self, name).clone())
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
        terms = _all_terms(self.incoming.terms)
        if terms:
            known = self._by_class
            effects = {c: known[c] if c in known else self._class_effect(c, whole) for c in _candidates(terms, whole)}
            self._count(effects, len(whole.templates.label_classes), whole.pod_classes(), whole)
        groups = {a: self._affinity_effect(a, whole) for a in whole.slots.affinities}
        self._count(groups, len(whole.templates.affinity_groups), whole.pod_affinities(), whole)

    def _count(self, effects: Mapping[int, Effect], n_numbers: int, numbers: Ints, whole: Snapshot) -> None:
        """Count all placed pods, by the numbers that their effects go by."""
        alike: dict[Effect, list[int]] = {}
        for number, effect in effects.items():
            if effect:
                alike.setdefault(effect, []).append(number)
        if not alike:
            return
        felt = np.zeros(n_numbers, dtype=np.bool_)
        for some in alike.values():
            felt[some] = True
        slots = np.flatnonzero(felt[numbers])
        numbers, rows = numbers[slots], whole.pod_rows()[slots]
        for name, key in {(name, key) for effect in alike for name, key, _ in effect}:
            amounts = np.zeros(n_numbers, dtype=np.int64)
            times = np.zeros(n_numbers, dtype=np.int64)
            for effect, some in alike.items():
                mine = [amount for *where, amount in effect if where == [name, key]]
                amounts[some], times[some] = sum(mine), len(mine)
            counts: DomainCounts = getattr(self, name)
            counts.count(key, whole, rows, amounts[numbers], times[numbers])

    def count(self, other: PodView, row: int, sign: int, nodes: Snapshot) -> bool:
        effect = self._effect(other, nodes)
        for name, key, amount in effect:
            self._add(name, key, sign * amount, row, sign, nodes)
        return bool(effect)

    def is_outdated_by(self, change: Change) -> bool:
        if not change.labels:
            return False
        keys = {term.topology_key for term in _all_terms(self.incoming.terms)}
        keys.update(key for effect in self._by_affinity.values() for _, key, _ in effect)
        return not keys.isdisjoint(change.labels)

    def skips_by(self) -> object:
        return self.existing_anti.is_empty, self.preferences.is_empty

    def is_moved_by(self, other: PodView, nodes: Snapshot) -> bool:
        return any(name != PREFERENCES for name, _, _ in self._effect(other, nodes))

    def _effect(self, other: PodView, nodes: Snapshot) -> Effect:
        """Return what a pod like this one means: by the incoming pod's terms, and by its own."""
        template = other.template
        class_id = template.class_id if self.incoming.terms is not NO_TERMS else 0
        effect = self._by_both.get((class_id, template.affinity_id))
        if effect is None:
            effect = self._class_effect(class_id, nodes) if class_id else ()
            if template.affinity_id:
                effect += self._affinity_effect(template.affinity_id, nodes)
            self._by_both[class_id, template.affinity_id] = effect
        return effect

    def _add(self, name: str, key: str, amount: int, row: int, sign: int, nodes: Snapshot) -> None:
        """Change one counter, and what was concluded from it."""
        counts: DomainCounts = getattr(self, name)
        was_empty = counts.is_empty
        change = counts.add(key, nodes, row, amount, sign)
        if self.judged is None or change is None or name == PREFERENCES:
            return
        code, before, after = change
        if was_empty or counts.is_empty or key != self.judged.key:
            self.judged = None  # a key more or less, or the first of all: judge again
        elif (before > 0) != (after > 0):
            self.judged.put(code, self.verdict(key, code))

    def verdict(self, key: str, code: int) -> int:
        """Return the verdict on one domain of the only key that matters."""
        if self.incoming.terms.required and not self.is_first() and self.affinity.at(key, code) <= 0:
            return 1
        if self.anti_affinity.at(key, code) > 0:
            return 2
        return 4 if self.existing_anti.at(key, code) > 0 else 0

    def _class_effect(self, class_id: int, nodes: Snapshot) -> Effect:
        """Return what a pod of a label class means to the incoming pod, by the incoming pod's terms."""
        effect = self._by_class.get(class_id)
        if effect is None:
            terms, other = self.incoming.terms, nodes.templates.label_classes[class_id]

            def is_meant(term: AffinityTerm) -> bool:
                return is_about(term, other.namespace, other.labels)

            near = terms.required if all(map(is_meant, terms.required)) else ()
            effect = self._by_class[class_id] = (
                *((AFFINITY, term.topology_key, 1) for term in near),
                *((ANTI_AFFINITY, term.topology_key, 1) for term in terms.required_anti if is_meant(term)),
                *_preferences(terms, is_meant),
            )
        return effect

    def _affinity_effect(self, affinity_id: int, nodes: Snapshot) -> Effect:
        """Return what a pod of an affinity group means to the incoming pod, by the placed pod's own terms."""
        effect = self._by_affinity.get(affinity_id)
        if effect is None:
            is_meant, terms = self.incoming.is_meant_by, nodes.templates.affinity_groups[affinity_id]
            near = terms.required if self.hard_weight > 0 else ()
            effect = self._by_affinity[affinity_id] = (
                *((EXISTING_ANTI, term.topology_key, 1) for term in terms.required_anti if is_meant(term)),
                *_preferences(terms, is_meant),
                *((PREFERENCES, term.topology_key, self.hard_weight) for term in near if is_meant(term)),
            )
        return effect


def _preferences(terms: PodAffinityTerms, is_meant: Callable[[AffinityTerm], bool]) -> Iterator[tuple[str, str, int]]:
    """Yield what the wishes of one side add up to, as far as the other side is meant."""
    for sign, wishes in ((1, terms.preferred), (-1, terms.preferred_anti)):
        for wish in wishes:
            if is_meant(wish.term):
                yield PREFERENCES, wish.term.topology_key, sign * wish.weight


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


def _all_terms(terms: PodAffinityTerms) -> list[AffinityTerm]:
    """Return the terms of a pod, required and preferred."""
    return [*terms.required, *terms.required_anti, *(wish.term for wish in (*terms.preferred, *terms.preferred_anti))]


def _candidates(terms: Iterable[AffinityTerm], nodes: Snapshot) -> Iterable[int]:
    """Return the label classes of placed pods that some term could be about, by namespace."""
    if any(term.ns_selector.matches({}) for term in terms):
        return nodes.slots.classes
    names = set().union(*(term.namespaces for term in terms))
    return [class_id for name in names for class_id in nodes.slots.by_namespace.get(name, ())]
