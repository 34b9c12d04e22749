"""Predicates about other pods: MatchInterPodAffinity, EvenPodsSpread and CheckServiceAffinity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from kubesched.kube.api import Namespace, matching
from kubesched.scheduler.cluster import ABSENT, Bools, PodView, Snapshot
from kubesched.scheduler.framework import SKIP, CycleState, Handle, Input, PreFilterAnswer, Reason, Rejections, failed, wakeups
from kubesched.scheduler.legacy.predicates.base import Cases, Predicate
from kubesched.scheduler.legacy.releases import LegacyContext
from kubesched.scheduler.legacy.shared.affinity import counting
from kubesched.scheduler.legacy.shared.siblings import services_of
from kubesched.scheduler.legacy.shared.spread_counts import SpreadCounts, constraints_of, with_all_keys
from kubesched.scheduler.plugins.inter_pod_affinity.counts import AffinityCounts

NO_MATCH = "node(s) didn't match pod affinity/anti-affinity"
EXISTING_ANTI = Reason("node(s) didn't satisfy existing pods anti-affinity rules")
AFFINITY = Reason("node(s) didn't match pod affinity rules", resolvable=False)
ANTI = Reason("node(s) didn't match pod anti-affinity rules")


class MatchInterPodAffinity(Predicate):
    """Place pods next to, or away from, other pods.

    Today's plugin counts. Unlike today, the anti-affinity of placed pods is checked first, and the first pod of a group with
    affinity to itself also fits nodes without the topology's label.
    """

    depends_on = (Input.POD_TEMPLATE, Input.NODE, Input.COUNTED_PODS, Namespace)

    def __init__(self, context: LegacyContext, handle: Handle) -> None:
        super().__init__(context, handle)
        self._counting = counting(context, handle)

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        if pod.template.affinity.error is not None:
            return failed(pod.template.affinity.error)
        # Counted always: today's plugin skips pods without terms, but old releases did not, which shows in a what-if.
        self._counting.counters(pod, nodes, state)
        return None

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        counters: AffinityCounts = state.read(self._counting.name)
        terms = counters.terms
        unwanted = counters.existing_anti.any_positive(nodes)
        lonely = np.zeros(nodes.n, dtype=np.bool_)
        if terms.required and not counters.is_first():
            for term in terms.required:
                lonely |= counters.affinity.on(term.topology_key, nodes) <= 0
        crowded = counters.anti_affinity.any_positive(nodes)
        return self._refuse(unwanted, lonely & ~unwanted, crowded & ~unwanted & ~lonely)

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        self._counting.add_pod(pod, other, row, nodes, state)

    def remove_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        self._counting.remove_pod(pod, other, row, nodes, state)

    def _refuse(self, unwanted: Bools, lonely: Bools, crowded: Bools) -> Rejections:
        anything = unwanted | lonely | crowded
        if self.release.names_failures:
            return Rejections.where(anything, Reason(self.name))
        details: Cases = [(unwanted, EXISTING_ANTI), (lonely, AFFINITY), (crowded, ANTI)]
        if self.release.runs_plugins:
            return Rejections.first((lonely, AFFINITY), (anything, Reason(NO_MATCH)))
        return Rejections.every((anything, Reason(NO_MATCH)), *details)


class EvenPodsSpread(Predicate):
    """A hard constraint refuses nodes whose domain would have more than maxSkew matching pods more than the emptiest domain.

    If no node has the labels of all constraints, every node fits.
    """

    depends_on = (Input.POD_TEMPLATE, Input.NODE, Input.COUNTED_PODS)

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        try:
            constraints = constraints_of(pod, "DoNotSchedule")
        except matching.SelectorError as error:
            return failed(str(error))
        if not constraints:
            return SKIP
        SpreadCounts.of(constraints, pod, nodes, pod.namespace, state, self.name)
        return None

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        counts: SpreadCounts = state.read(self.name)
        if counts.is_empty:
            return Rejections.none(nodes)
        refused = ~with_all_keys(counts.constraints, nodes)
        for i, constraint in enumerate(counts.constraints):
            allowed = constraint.max_skew + counts.least(i) - constraint.selector.matches(pod.labels)
            refused |= counts.on(i, nodes) > allowed
        return Rejections.where(refused, self.reason("node(s) didn't match pod topology spread constraints"))

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        state.read(self.name).count(other, row, 1, nodes)

    def remove_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        state.read(self.name).count(other, row, -1, nodes)


@dataclass(frozen=True, slots=True)
class _Company:
    """The placed pods of the incoming pod's service, as (uid, node), in the order of the visit."""

    members: tuple[tuple[str, str], ...]


class CheckServiceAffinity(Predicate):
    """All pods of a service run on nodes with equal values of some labels.

    The pod's node selector may set the value of a label. Otherwise, if a service selects the pod, the node of the first placed
    pod with the same labels sets it: labels [region], web-1 on a node in eu  ->  web-2 must go to region eu.
    """

    wakes_on = (*wakeups.INTERESTED_IN_ALL, wakeups.on("Service", wakeups.ALL))

    def __init__(self, context: LegacyContext, handle: Handle, labels: tuple[str, ...]) -> None:
        super().__init__(context, handle)
        self.labels = labels

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        members: tuple[tuple[str, str], ...] = ()
        if services_of(pod, self.handle.objects):
            members = tuple((other.uid, other.node_name) for other in _company(pod, nodes.everything()))
        state.write(self.name, _Company(members))
        return None

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        company: _Company = state.read(self.name)
        selector = pod.pod.spec.node_selector or {}
        wanted = {key: selector[key] for key in self.labels if key in selector}
        if len(wanted) < len(self.labels) and company.members:
            whole = nodes.everything()
            row = whole.row(company.members[0][1])
            if row < 0:
                return Rejections(None, (), dict.fromkeys(range(nodes.n), "node not found"))
            there = whole.node(row).metadata.labels
            for key in self.labels:
                if key not in wanted and key in there:
                    wanted[key] = there[key]
        return Rejections.where(
            ~_have(wanted, nodes), self.reason("node(s) didn't match service affinity", failure="CheckServiceAffinity")
        )

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        if services_of(pod, self.handle.objects) and _joins(pod, other.namespace, other.labels):
            node_name = nodes.everything().name(row)
            state.write(self.name, _Company((*state.read(self.name).members, (other.uid, node_name))))

    def remove_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        left = tuple(member for member in state.read(self.name).members if member[0] != other.uid)
        state.write(self.name, _Company(left))


def _joins(pod: PodView, namespace: str, labels: Mapping[str, str]) -> bool:
    return namespace == pod.namespace and pod.labels.items() <= labels.items()


def _company(pod: PodView, whole: Snapshot) -> Iterable[PodView]:
    """Return the placed pods that have all labels of a pod, in the order in which nodes are visited."""
    here = whole.slots.by_namespace.get(pod.namespace, ())
    alike = [other.number for other in here if _joins(pod, pod.namespace, other.labels)]
    if not alike:
        return []
    rows = set(whole.pod_rows()[np.isin(whole.pod_classes(), alike)].tolist())
    names = {whole.name(row): row for row in rows}
    return [
        other
        for name in whole.order.names
        if name in names
        for other in whole.pods_on(names[name])
        if other.template.class_id in alike
    ]


def _have(wanted: Mapping[str, str], nodes: Snapshot) -> Bools:
    """Return the nodes with all these labels."""
    held = np.ones(nodes.n, dtype=np.bool_)
    for key, value in wanted.items():
        column = nodes.label(key)
        code = column.values.find(value) if column is not None else ABSENT
        held &= (nodes.codes(key) == code) & (code != ABSENT)
    return held
