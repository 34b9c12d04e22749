"""Counting for InterPodAffinity: by topology domain, the pods that affinity terms are about.

Four counters, each by topology key and domain (a value of that label):

    affinity        pods that match *all* required affinity terms of the incoming pod; one per term and pod
    anti_affinity   pods that match a required anti-affinity term of the incoming pod
    existing_anti   pods with a required anti-affinity term that matches the incoming pod
    preferences     sums of weights: preferred terms of the incoming pod that match a placed pod, preferred terms of placed pods
                    that match the incoming pod, and hardPodAffinityWeight for each required affinity term of a placed pod

    Incoming pod: affinity to app=db over zone, anti-affinity to app=web over hostname.
    Placed: db-1 (zone a, host 1), web-1 (zone a, host 2), db-2 (zone b, host 3)
    affinity[zone]       = {a: 1, b: 1}     a node needs a count > 0 for each required term: hosts 1, 2, 3
    anti_affinity[host]  = {2: 1}           a node with a count > 0 is refused: hosts 1 and 3 are left

What one placed pod adds is its `Effect`. It depends on its labels (the incoming pod's terms) and on its affinity (its own
terms), so it is worked out once for each label class and each affinity group. After the first count only the pods that come and
go are counted (framework/equivalence_cache/counters).

Counters are shared by all pods with equal terms, about which the placed pods' terms say the same. Their labels may differ: each
pod of a StatefulSet has a label of its own, which no term mentions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy

import numpy as np

from kubesched.kube.api import AffinityTerm, Namespace, PodAffinityTerms, matching
from kubesched.scheduler.cluster import AffinityGroup, Change, Ints, LabelClass, Memo, Templates
from kubesched.scheduler.framework import Bits, DomainCounts, PodCounts, PodView, Snapshot

_NO_SELECTION = matching.compile_selector(None)

EXISTING_ANTI, AFFINITY, ANTI_AFFINITY, PREFERENCES = COUNTED = ("existing_anti", "affinity", "anti_affinity", "preferences")
"""The counters, by the name of the attribute of `AffinityCounts`. All but preferences decide whether a node is feasible."""

Effect = tuple[tuple[str, str, int], ...]
"""What one placed pod adds: (counter, topology key, amount) for each term."""

_NOTHING: Effect = ()


class _EffectsOnClass:
    """The effects of affinity groups on pods of one label class, up to the newest group that was read."""

    __slots__ = ("effects", "namespace_labels", "newest")

    def __init__(self, namespace_labels: Mapping[str, str]) -> None:
        self.effects: dict[int, Effect] = {}
        self.namespace_labels = namespace_labels
        self.newest = 0


class SaidByOthers:
    """The effects of placed pods by their own terms. Pods with equal terms are one affinity group, judged once for a label
    class."""

    def __init__(self, templates: Templates, hard_weight: int) -> None:
        self.groups = templates.affinity_groups
        self._hard_weight = hard_weight
        self._of_class: Memo[_EffectsOnClass] = Memo(templates.label_classes)

    def of(self, pod: PodView, nodes: Snapshot) -> Mapping[int, Effect]:
        """Return the effect of a pod of each group on the incoming pod, by the group's serial number, without groups that have
        none. A namespace with new labels makes all of them be judged again."""
        label_class, groups = pod.template.label_class, self.groups
        own = nodes.objects.get(Namespace, pod.namespace)
        namespace_labels = own.metadata.labels if own is not None else {}
        said = self._of_class.get(label_class.serial)
        if said is None or said.namespace_labels != namespace_labels:
            said = self._of_class[label_class.serial] = _EffectsOnClass(namespace_labels)
        for gone in [serial for serial in said.effects if serial not in groups]:
            del said.effects[gone]
        if said.newest < groups.newest:
            for group in groups.candidates(pod.namespace, pod.labels, said.newest):
                if group.serial not in said.effects:
                    effect = self._effect(group, label_class, namespace_labels)
                    if effect:
                        said.effects[group.serial] = effect
            said.newest = groups.newest
        return said.effects

    def _effect(self, group: AffinityGroup, label_class: LabelClass, namespace_labels: Mapping[str, str]) -> Effect:
        def is_meant(term: AffinityTerm) -> bool:
            return term.matches(label_class.namespace, label_class.labels, namespace_labels)

        terms = group.terms
        near = terms.required if self._hard_weight > 0 else ()
        return (
            *((EXISTING_ANTI, term.topology_key, 1) for term in terms.required_anti if is_meant(term)),
            *_preferences(terms, is_meant),
            *((PREFERENCES, term.topology_key, self._hard_weight) for term in near if is_meant(term)),
        )


def matches_itself(terms: PodAffinityTerms, pod: PodView) -> bool:
    """Return whether a pod matches all its own required affinity terms."""
    return all(is_about(term, pod.namespace, pod.labels) for term in terms.required)


class AffinityCounts(PodCounts):
    """The counters for incoming pods with these terms and these effects of others (module docstring)."""

    def __init__(
        self,
        terms: PodAffinityTerms,
        others: Mapping[int, Effect],
        said_by_others: SaidByOthers,
        by_class: Memo[Effect],
        *,
        matches_itself: bool,
    ) -> None:
        super().__init__()
        self.terms = terms
        self._matches_itself = matches_itself
        self._others = others
        self._said_by_others = said_by_others
        self._by_class = by_class
        self._has_terms = bool(terms.every_term)
        self._keys = frozenset(term.topology_key for term in terms.every_term).union(
            key for effect in others.values() for _, key, _ in effect
        )
        self.newest_group = 0
        """The newest affinity group for which `is_for` compared the effects."""
        self._forget()

    def is_for(self, pod: PodView, nodes: Snapshot) -> bool:
        groups, said = self._said_by_others.groups, self._said_by_others.of(pod, nodes)
        # A group without pods adds nothing, so it may be missing on one side.
        if said != {serial: effect for serial, effect in self._others.items() if serial in groups}:
            return False
        self.newest_group = groups.newest
        return True

    def imagine(self, pod: PodView, other: PodView, row: int, sign: int, nodes: Snapshot) -> None:
        """Count a pod that a what-if adds or removes. These counters are a clone for the incoming pod alone."""
        if other.template.affinity_group.serial > self.newest_group:  # a group that did not exist when the attempt began
            self._others = dict(self._said_by_others.of(pod, nodes))
            self.newest_group = self._said_by_others.groups.newest
        self.count(other, row, sign, nodes)

    def _forget(self) -> None:
        self.existing_anti = DomainCounts()
        self.affinity = DomainCounts()
        self.anti_affinity = DomainCounts()
        self.preferences = DomainCounts()
        self.judged: tuple[str, Bits] | None = None
        """If only one topology key decides, this key and the verdict on each of its domains, updated by `_add`."""

    def clone(self) -> AffinityCounts:
        copied = copy(self)
        for name in COUNTED:
            setattr(copied, name, getattr(self, name).clone())
        copied.judged = None
        return copied

    def keys(self) -> set[str]:
        """Return the topology keys that decide whether a node is feasible."""
        required = (*self.terms.required, *self.terms.required_anti)
        return {term.topology_key for term in required}.union(self.existing_anti.keys)

    def is_first(self) -> bool:
        """Return whether no placed pod matches the required affinity terms and the pod matches them itself.

        Such a pod may start a group: otherwise the first pod of a set with affinity to itself could never be placed.
        """
        return self.affinity.is_empty and self._matches_itself

    def recount(self, whole: Snapshot) -> None:
        self._forget()
        effects = {other.number: self._class_effect(other) for other in _candidates(self.terms, whole)}
        self._count(effects, len(whole.templates.label_classes), whole.pod_classes(), whole)
        groups, placed = self._said_by_others.groups, whole.slots.affinities
        said = {groups.number(serial): effect for serial, effect in self._others.items() if serial in placed}
        self._count(said, len(groups), whole.pod_affinities(), whole)

    def _count(self, effects: Mapping[int, Effect], n_numbers: int, numbers: Ints, whole: Snapshot) -> None:
        """Count all placed pods: `numbers` is the label class or affinity group of every pod, `effects` are by that number."""
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
        effect = self._effect(other)
        for name, key, amount in effect:
            self._add(name, key, sign * amount, row, sign, nodes)
        return bool(effect)

    def is_outdated_by(self, change: Change) -> bool:
        if not change.labels:
            return False
        return not self._keys.isdisjoint(change.labels)

    def skips_by(self) -> object:
        return self.existing_anti.is_empty, self.preferences.is_empty

    def is_moved_by(self, other: PodView, nodes: Snapshot) -> bool:
        is_known = other.template.affinity_group.serial <= self.newest_group
        return not is_known or any(name != PREFERENCES for name, _, _ in self._effect(other))

    def _effect(self, other: PodView) -> Effect:
        """Return the effect of a placed pod: by the incoming pod's terms, and by its own."""
        template = other.template
        said = self._others.get(template.affinity_group.serial, _NOTHING)
        return self._class_effect(template.label_class) + said if self._has_terms else said

    def _add(self, name: str, key: str, amount: int, row: int, sign: int, nodes: Snapshot) -> None:
        """Change one counter, and the verdict on its domain if that depends on it."""
        counts: DomainCounts = getattr(self, name)
        was_empty = counts.is_empty
        change = counts.add(key, nodes, row, amount, sign)
        if self.judged is None or change is None or name == PREFERENCES:
            return
        code, before, after = change
        judged_key, bits = self.judged
        if was_empty or counts.is_empty or key != judged_key:
            self.judged = None  # another key decides now, or `is_first` may have changed: judge all domains again
        elif (before > 0) != (after > 0):
            bits[code] = self._verdict(key, code)

    def judge(self, key: str, nodes: Snapshot) -> Bits:
        """Return the bit of the first reason against each domain of the only key that decides, 0 if there is none. The last
        element is for nodes without the label. The bits are in the order of `_REASONS` in the plugin."""
        if self.judged is None:
            bits = np.zeros(nodes.n_values(key) + 1, dtype=np.uint64)
            if not self.existing_anti.is_empty:
                bits[self.existing_anti.by_code(key, nodes) > 0] = 4
            if not self.anti_affinity.is_empty:
                bits[self.anti_affinity.by_code(key, nodes) > 0] = 2
            if self.terms.required:
                if not self.is_first():
                    bits[self.affinity.by_code(key, nodes) <= 0] = 1
                bits[-1] = 1
            self.judged = key, bits
        return self.judged[1]

    def _verdict(self, key: str, code: int) -> int:
        """Return the same for one domain."""
        if self.terms.required and not self.is_first() and self.affinity.at(key, code) <= 0:
            return 1
        if self.anti_affinity.at(key, code) > 0:
            return 2
        return 4 if self.existing_anti.at(key, code) > 0 else 0

    def _class_effect(self, other: LabelClass) -> Effect:
        """Return the effect of a placed pod of a label class by the incoming pod's terms."""
        effect = self._by_class.get(other.serial)
        if effect is None:
            terms = self.terms

            def is_meant(term: AffinityTerm) -> bool:
                return is_about(term, other.namespace, other.labels)

            near = terms.required if all(map(is_meant, terms.required)) else ()
            effect = self._by_class[other.serial] = (
                *((AFFINITY, term.topology_key, 1) for term in near),
                *((ANTI_AFFINITY, term.topology_key, 1) for term in terms.required_anti if is_meant(term)),
                *_preferences(terms, is_meant),
            )
        return effect


def _preferences(terms: PodAffinityTerms, is_meant: Callable[[AffinityTerm], bool]) -> Iterator[tuple[str, str, int]]:
    """Yield the effects of the preferred terms that match."""
    for sign, wishes in ((1, terms.preferred), (-1, terms.preferred_anti)):
        for wish in wishes:
            if is_meant(wish.term):
                yield PREFERENCES, wish.term.topology_key, sign * wish.weight


def is_about(term: AffinityTerm, namespace: str, labels: Mapping[str, str]) -> bool:
    """Return whether an expanded term of the incoming pod matches another pod.

    Kept quirk: the namespaceSelector is matched against no labels, because `expanded` has added the matching namespaces by
    name. So in 1.36, which keeps the selector, one that only excludes (`team NotIn [a]`) matches every namespace.
    """
    return term.matches(namespace, labels, {})


def expanded(terms: PodAffinityTerms, namespaces: list[Namespace], *, keeps_selectors: bool) -> PodAffinityTerms:
    """Return the terms with the names of the namespaces that their namespaceSelector matches now; `keeps_selectors` as in
    1.36."""

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


def _candidates(terms: PodAffinityTerms, nodes: Snapshot) -> set[LabelClass]:
    """Return the label classes of placed pods that a term may match, from the index of label values."""
    slots, label_classes = nodes.slots, nodes.templates.label_classes
    found: set[LabelClass] = set()
    for term in terms.every_term:
        if term.ns_selector.matches({}):
            return set(slots.classes)
        for name in term.namespaces:
            found.update(label_classes.candidates(name, term.selector, slots.by_namespace.get(name, ())))
    return found.intersection(slots.classes)
