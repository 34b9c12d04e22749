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


class EffectsOfOthers:
    """The effects of placed pods by their own terms. Pods with equal terms are one affinity group, judged once for a label
    class."""

    def __init__(self, templates: Templates, hard_weight: int) -> None:
        self.groups = templates.affinity_groups
        self._hard_weight = hard_weight
        self._cached: Memo[_EffectsOnClass] = Memo(templates.label_classes)

    def of(self, pod: PodView, nodes: Snapshot) -> Mapping[int, Effect]:
        """Return the effect of a pod of each group on the incoming pod, by the group's serial number, without groups that have
        none. A namespace with new labels makes all of them be judged again."""
        # The effects depend on three things only: the label class of the incoming pod (namespace and labels), the
        # labels of its namespace (placed pods' terms may have a namespaceSelector), and the terms of each group. So
        # they are cached by label class.
        label_class, groups = pod.template.label_class, self.groups
        own = nodes.objects.get(Namespace, pod.namespace)
        namespace_labels = own.metadata.labels if own is not None else {}
        cached = self._cached.get(label_class.serial)
        # Labels of the namespace changed: every namespaceSelector may answer differently, so the class starts from
        # nothing.
        if cached is None or cached.namespace_labels != namespace_labels:
            cached = self._cached[label_class.serial] = _EffectsOnClass(namespace_labels)
        # Groups without pods leave the interner. Their effects must go too, or the cache would grow with every group
        # ever seen.
        for gone in [serial for serial in cached.effects if serial not in groups]:
            del cached.effects[gone]
        # Serial numbers only rise, so only groups above `newest` are new to this class. `candidates` reads an index of
        # the labels that terms select: of 5,000 groups with terms about 5,000 apps, a pod of one app meets the one
        # group that is about it.
        if cached.newest < groups.newest:
            for group in groups.candidates(pod.namespace, pod.labels, cached.newest):
                if group.serial not in cached.effects:
                    effect = self._effect(group, label_class, namespace_labels)
                    if effect:
                        cached.effects[group.serial] = effect
            cached.newest = groups.newest
        return cached.effects

    def _effect(self, group: AffinityGroup, label_class: LabelClass, namespace_labels: Mapping[str, str]) -> Effect:
        def matches_pod(term: AffinityTerm) -> bool:
            return term.matches(label_class.namespace, label_class.labels, namespace_labels)

        terms = group.terms
        # hardPodAffinityWeight 0 switches this preference off, so the required terms are not even matched.
        near = terms.required if self._hard_weight > 0 else ()
        return (
            *((EXISTING_ANTI, term.topology_key, 1) for term in terms.required_anti if matches_pod(term)),
            *_preferences(terms, matches_pod),
            *((PREFERENCES, term.topology_key, self._hard_weight) for term in near if matches_pod(term)),
        )


def matches_itself(terms: PodAffinityTerms, pod: PodView) -> bool:
    """Return whether a pod matches all its own required affinity terms."""
    return all(matches_other(term, pod.namespace, pod.labels) for term in terms.required)


class AffinityCounts(PodCounts):
    """The counters for incoming pods with these terms and these effects of others (module docstring)."""

    def __init__(
        self,
        terms: PodAffinityTerms,
        others: Mapping[int, Effect],
        effects_of_others: EffectsOfOthers,
        by_class: Memo[Effect],
        *,
        matches_itself: bool,
    ) -> None:
        super().__init__()
        self.terms = terms
        self._matches_itself = matches_itself
        self._others = others
        self._effects_of_others = effects_of_others
        self._by_class = by_class
        # Without own terms the label classes of placed pods need not be judged: the usual case of a pod that only meets
        # the terms of others.
        self._has_terms = bool(terms.every_term)
        self._keys = frozenset(term.topology_key for term in terms.every_term).union(
            key for effect in others.values() for _, key, _ in effect
        )
        self.newest_group = 0
        """The newest affinity group for which `is_for` compared the effects."""
        self._forget()

    def is_for(self, pod: PodView, nodes: Snapshot) -> bool:
        # The cache finds these counters by terms and effects (`declaration` in the plugin). The effects may change
        # later, when a new group appears that is about this pod. Then these counters are not the right ones any more,
        # and False makes the cache count again.
        groups, effects = self._effects_of_others.groups, self._effects_of_others.of(pod, nodes)
        # A group without pods adds nothing, so it may be missing on one side.
        if effects != {serial: effect for serial, effect in self._others.items() if serial in groups}:
            return False
        self.newest_group = groups.newest
        return True

    def imagine(self, pod: PodView, other: PodView, row: int, sign: int, nodes: Snapshot) -> None:
        """Count a pod that a what-if adds or removes. These counters are a clone for the incoming pod alone."""
        if other.template.affinity_group.serial > self.newest_group:  # a group that did not exist when the attempt began
            self._others = dict(self._effects_of_others.of(pod, nodes))
            self.newest_group = self._effects_of_others.groups.newest
        self.count(other, row, sign, nodes)

    def _forget(self) -> None:
        self.existing_anti = DomainCounts()
        self.affinity = DomainCounts()
        self.anti_affinity = DomainCounts()
        self.preferences = DomainCounts()
        self.judged: tuple[str, Bits] | None = None
        """If only one topology key decides, this key and the verdict on each of its domains, updated by `_add`."""

    def clone(self) -> AffinityCounts:
        # Shallow: terms, effects and the judged classes are shared, because a what-if never changes them. Only the
        # counts are its own. The verdicts are dropped, because `_add` updates them in place.
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
        # Two passes over the placed pods. The first is about the incoming pod's terms and goes by the label class of
        # each placed pod; the second is about the terms of placed pods and goes by their affinity group. Most pods have
        # no terms (group 0), so the second pass is cheap. The sum of both is what kube-scheduler counts pod by pod.
        self._forget()
        effects = {other.number: self._class_effect(other) for other in _candidates(self.terms, whole)}
        self._count(effects, len(whole.templates.label_classes), whole.pod_classes(), whole)
        groups, placed = self._effects_of_others.groups, whole.slots.affinities
        theirs = {groups.number(serial): effect for serial, effect in self._others.items() if serial in placed}
        self._count(theirs, len(groups), whole.pod_affinities(), whole)

    def _count(self, effects: Mapping[int, Effect], n_numbers: int, numbers: Ints, whole: Snapshot) -> None:
        """Count all placed pods: `numbers` is the label class or affinity group of every pod, `effects` are by that number."""
        # No loop over pods: a lookup table from number to amount, and NumPy adds it up by domain. For terms {affinity:
        # zone} and label classes 0 to 3 of which 1 and 3 match:
        #
        #     numbers (a class for each pod)   1 2 3 1      rows of the pods   0 0 4 7
        #     felt (by class)                  0 1 0 1      slots that matter  0, 2, 3
        #     amounts[numbers[slots]]          1 1 1        added to the domains of rows 0, 4, 7
        #
        # Classes with equal effects are set in the table together, so a thousand classes that match the same term are
        # one assignment.
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
        # `amounts` sums the weights, `times` counts the terms: two terms of weight 10 and -10 over one key add 0 to the
        # sum but still make the domain one that has counts. Each (counter, topology key) is one pass, usually one to
        # three in all.
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
        # A node moves to another domain only if the value of one of these topology keys changed. Then all counts of its
        # pods move, so the counters are counted again. Pods that come and go do not outdate them: `count` adds and
        # subtracts these.
        if not change.labels:
            return False
        return not self._keys.isdisjoint(change.labels)

    def skips_by(self) -> object:
        # Both decide whether the plugin returns SKIP: PreFilter without existing anti-affinity, PreScore without
        # preferences. A cached answer of the plugin holds only while they stay the same.
        return self.existing_anti.is_empty, self.preferences.is_empty

    def is_moved_by(self, other: PodView, nodes: Snapshot) -> bool:
        # A group that is new since the last comparison may have any effect, so the careful answer is True. Preferences
        # never refuse a node, so a pod that only changes these does not move what Filter reads.
        is_known = other.template.affinity_group.serial <= self.newest_group
        return not is_known or any(name != PREFERENCES for name, _, _ in self._effect(other))

    def _effect(self, other: PodView) -> Effect:
        """Return the effect of a placed pod: by the incoming pod's terms, and by its own."""
        template = other.template
        theirs = self._others.get(template.affinity_group.serial, _NOTHING)
        return self._class_effect(template.label_class) + theirs if self._has_terms else theirs

    def _add(self, name: str, key: str, amount: int, row: int, sign: int, nodes: Snapshot) -> None:
        """Change one counter, and the verdict on its domain if that depends on it."""
        counts: DomainCounts = getattr(self, name)
        # `is_first` depends on whether `affinity` is empty as a whole, and `keys` on whether `existing_anti` is. If a
        # counter becomes empty or stops being so, verdicts of *other* domains change as well, and all are judged again.
        # Otherwise only this domain can change, and only if its count passes zero.
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
            # Written from the last reason to the first, so that the first one wins: a node is refused for one reason
            # only, and kube-scheduler checks affinity (bit 1), then anti-affinity (bit 2), then the anti-affinity of
            # placed pods (bit 4).
            if not self.existing_anti.is_empty:
                bits[self.existing_anti.by_code(key, nodes) > 0] = 4
            if not self.anti_affinity.is_empty:
                bits[self.anti_affinity.by_code(key, nodes) > 0] = 2
            if self.terms.required:
                if not self.is_first():
                    bits[self.affinity.by_code(key, nodes) <= 0] = 1
                # Kept quirk: a node without the topology label is refused even for the first pod of a group
                # (`is_first`).
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

            def matches_pod(term: AffinityTerm) -> bool:
                return matches_other(term, other.namespace, other.labels)

            # Kept quirk: a placed pod counts for affinity only if it matches *all* required terms, whereas each
            # anti-affinity and each preferred term counts for itself. With terms app=db over zone and tier=data over
            # hostname, a pod with app=db alone counts for neither key.
            near = terms.required if all(map(matches_pod, terms.required)) else ()
            effect = self._by_class[other.serial] = (
                *((AFFINITY, term.topology_key, 1) for term in near),
                *((ANTI_AFFINITY, term.topology_key, 1) for term in terms.required_anti if matches_pod(term)),
                *_preferences(terms, matches_pod),
            )
        return effect


def _preferences(terms: PodAffinityTerms, matches_pod: Callable[[AffinityTerm], bool]) -> Iterator[tuple[str, str, int]]:
    """Yield the effects of the preferred terms that match."""
    for sign, preferred in ((1, terms.preferred), (-1, terms.preferred_anti)):
        for weighted in preferred:
            if matches_pod(weighted.term):
                yield PREFERENCES, weighted.term.topology_key, sign * weighted.weight


def matches_other(term: AffinityTerm, namespace: str, labels: Mapping[str, str]) -> bool:
    """Return whether an expanded term of the incoming pod matches another pod.

    Kept quirk: the namespaceSelector is matched against no labels, because `expanded` has added the matching namespaces by
    name. So in 1.36, which keeps the selector, one that only excludes (`team NotIn [a]`) matches every namespace.
    """
    return term.matches(namespace, labels, {})


def expanded(terms: PodAffinityTerms, namespaces: list[Namespace], *, keeps_selectors: bool) -> PodAffinityTerms:
    """Return the terms with the names of the namespaces that their namespaceSelector matches now; `keeps_selectors` as in
    1.36."""

    def expand(term: AffinityTerm) -> AffinityTerm:
        # An empty selector already means all namespaces, and an absent one means the listed names: neither needs names
        # added.
        if term.ns_selector.is_everything or term.ns_selector.is_nothing:
            return term
        found = {ns.metadata.name for ns in namespaces if term.ns_selector.matches(ns.metadata.labels)}
        left = term.ns_selector if keeps_selectors else _NO_SELECTION
        return AffinityTerm(term.namespaces | found, left, term.selector, term.topology_key)

    def expand_weighted(weighted: matching.WeightedAffinityTerm) -> matching.WeightedAffinityTerm:
        return matching.WeightedAffinityTerm(weighted.weight, expand(weighted.term))

    return PodAffinityTerms(
        tuple(map(expand, terms.required)),
        tuple(map(expand, terms.required_anti)),
        tuple(map(expand_weighted, terms.preferred)),
        tuple(map(expand_weighted, terms.preferred_anti)),
    )


def _candidates(terms: PodAffinityTerms, nodes: Snapshot) -> set[LabelClass]:
    """Return the label classes of placed pods that a term may match, from the index of label values."""
    slots, label_classes = nodes.slots, nodes.templates.label_classes
    found: set[LabelClass] = set()
    for term in terms.every_term:
        # A selector that also matches no labels (empty, or one that only excludes) selects all namespaces, because the
        # others were expanded to names: all label classes are candidates.
        if term.ns_selector.matches({}):
            return set(slots.classes)
        for name in term.namespaces:
            found.update(label_classes.candidates(name, term.selector, slots.by_namespace.get(name, ())))
    return found.intersection(slots.classes)
