"""CapacityScheduling: ElasticQuotas with borrowing, as in the scheduler-plugins project.

An ElasticQuota gives its namespace a guaranteed `min` and a limit `max`. What other namespaces leave of their min can be
borrowed:

    team-a: min 4, max 8, uses 6 (2 borrowed)      team-b: min 4, max 4, uses 2      sum of min 8, used 8
    PreFilter, pod of team-a: refused, the sum is used up      pod of team-b: refused too, but it is below its min
    PostFilter, pod of team-b: may evict pods of team-a, which borrows, whatever their priority

A namespace above its min may only evict its own pods of lower priority. Pods without a quota may only evict each other.

Rules and texts of PreFilter are the project's. At postFilter the plugin replaces DefaultPreemption, and looks at as many nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kubesched.contrib.elastic_quota import Amounts, Quotas
from kubesched.errors import SchedulerError
from kubesched.scheduler.cluster import PodView, Snapshot
from kubesched.scheduler.framework import (
    ALL,
    DELETE,
    POD,
    SKIP,
    SUCCESS,
    Code,
    CycleState,
    Diagnosis,
    Handle,
    NodeTrial,
    Nomination,
    Plugin,
    PostFiltered,
    Preemption,
    PreFilterAnswer,
    Profile,
    Status,
    WhatIfFilters,
    failed,
    nominated_by_row,
    none_available,
    on,
    unschedulable,
)
from kubesched.scheduler.plugins.default_preemption.budgets import Budgets
from kubesched.scheduler.plugins.default_preemption.dry_run import NO_VICTIMS
from kubesched.scheduler.plugins.default_preemption.importance import most_important_first, started_at
from kubesched.scheduler.plugins.default_preemption.plugin import NEVER, NOT_HELPFUL, PREFIX, STILL_TERMINATING, UNDER_WAY

RESOURCE = "elasticquotas.v1alpha1.scheduling.x-k8s.io"
EXCEEDED = "global quota max exceeded"


class CapacityScheduling(Plugin):
    wakes_on = (on(POD, DELETE), on(RESOURCE, ALL))

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self.quotas: Quotas = handle.objects.shared(Quotas)

    def pre_enqueue(self, pod: PodView) -> Status | None:
        return UNDER_WAY if self.handle.preempting.is_under_way(pod.uid) else None

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        """Refuse a pod whose namespace would exceed its max, or with which all namespaces would exceed the sum of all min."""
        # A thousand replicas of one Deployment: the first is checked, and how many more fit is known until another pod
        # comes. Nominated pods count too, so the short way is only for when there are none.
        quotas = self.quotas
        if quotas.fits_like_the_last(pod, nodes) and not self.handle.nominations.nodes():
            return None
        try:
            quotas.refresh(nodes)
        except SchedulerError as error:
            return failed(str(error))
        if (quota := quotas.by_namespace.get(pod.namespace)) is None:
            return SKIP
        of_quota, of_all = self._with_nominated(pod)
        if quota.exceeds_max(of_quota):
            return unschedulable(
                f"Pod {pod.key} is rejected in PreFilter because ElasticQuota {pod.namespace} is more than Max"
            )
        if quotas.exceed_min(of_all):
            return unschedulable(f"Pod {pod.key} is rejected in PreFilter because total ElasticQuota used is more than min")
        quotas.note_that_it_fits(pod)
        return None

    def _with_nominated(self, pod: PodView) -> tuple[Amounts, Amounts]:
        """Return the requests of the pod plus those of nominated pods that come first: for its own quota, pods of that quota
        with the same or a higher priority; for the sum of all quotas, also pods of other quotas that are within their min."""
        asked, nominations = pod.requests, self.handle.nominations
        if not nominations.nodes():
            return asked, asked
        of_quota, of_all = Counter(dict(asked)), Counter(dict(asked))
        # Two sums, because they are compared with different limits: `of_quota` with the namespace's own max and min, `of_all`
        # with the sum of all min.
        for other in (other for name in nominations.nodes() for other in nominations.on_node(name) if other.uid != pod.uid):
            if (quota := self.quotas.by_namespace.get(other.namespace)) is None:
                continue
            if other.namespace == pod.namespace and other.priority >= pod.priority:
                of_quota.update(dict(other.requests))
                of_all.update(dict(other.requests))
            elif other.namespace != pod.namespace and not quota.exceeds_min():
                of_all.update(dict(other.requests))
        return of_quota.items(), of_all.items()

    # Preemption

    def post_filter(
        self, pod: PodView, nodes: Snapshot, state: CycleState, diagnosis: Diagnosis, profile: Profile
    ) -> PostFiltered:
        """Find the node whose victims cost least, among the pods that this pod may evict."""
        if pod.pod.spec.preemption_policy == "Never":
            return _nobody(NEVER)
        self.quotas.refresh(nodes)  # PreFilter does not, for a pod like the last
        # As in DefaultPreemption: while pods on the nominated node terminate, no more are evicted.
        nominated = nodes.row(pod.pod.status.nominated_node_name)
        is_hopeful = nominated >= 0 and diagnosis.status(nodes.name(nominated)).code is not Code.UNRESOLVABLE
        going = (o for o in nodes.pods_on(nominated) if o.pod.metadata.deletion_timestamp is not None) if is_hopeful else ()
        if self._may_go(pod, going):
            return _nobody(STILL_TERMINATING)
        attempt = _Attempt(self, pod, nodes, WhatIfFilters(profile, pod, state, diagnosis.verdicts))
        why_not, found = Counter[str](), []
        for row, name in enumerate(nodes.names):
            candidate = attempt.evict_from(row) if diagnosis.status(name).code is Code.UNSCHEDULABLE else NOT_HELPFUL
            if isinstance(candidate, str):
                why_not[candidate] += 1
                continue
            found.append(candidate)
            if len(found) >= max(100, nodes.n // 10):  # as many as DefaultPreemption takes by default
                break
        best = min(found, key=_cost, default=None)
        return PostFiltered(SUCCESS, Nomination(best.node_name), best) if best else _nobody(none_available(nodes.n, why_not))

    def _may_go(self, pod: PodView, others: Iterable[PodView]) -> list[PodView]:
        """Return the pods that the pod may evict, most important first."""
        #     pod without a quota                      pods without a quota, of lower priority
        #     its namespace would be above its min     pods of the namespace itself, of lower priority
        #     its namespace stays within its min       pods of namespaces that borrow, whatever their priority
        quotas = self.quotas.by_namespace
        own = quotas.get(pod.namespace)
        if own is None:
            lent = [o for o in others if o.namespace not in quotas and o.priority < pod.priority]
        elif own.exceeds_min(self._with_nominated(pod)[0]):
            lent = [o for o in others if o.namespace == pod.namespace and o.priority < pod.priority]
        else:
            lending = {name for name, quota in quotas.items() if name != pod.namespace and quota.exceeds_min()}
            lent = [o for o in others if o.namespace in lending]
        return most_important_first(lent)


class _Attempt:
    """One search for victims: what its nodes have in common."""

    def __init__(self, plugin: CapacityScheduling, pod: PodView, nodes: Snapshot, what_if: WhatIfFilters) -> None:
        self.plugin, self.pod, self.nodes, self.what_if = plugin, pod, nodes, what_if
        self.quotas = plugin.quotas
        self.own = self.quotas.by_namespace.get(pod.namespace)
        self.of_quota, self.of_all = plugin._with_nominated(pod)
        self.ahead = nominated_by_row(nodes, plugin.handle.nominations).above(pod.priority).pods
        self.budgets = nodes.objects.shared(Budgets)
        self.budgets.follow()

    def evict_from(self, row: int) -> Preemption | str:
        """Return the victims on a node, or why evictions do not help there: as in DefaultPreemption, all are removed and then
        put back while the pod fits and the quotas hold."""
        potential = self.plugin._may_go(self.pod, self.nodes.pods_on(row))
        if not potential:
            return NO_VICTIMS
        trial, ahead = NodeTrial(self.what_if, self.nodes, row), self.ahead.get(row, ())
        # `away` are the pods that are removed at this moment. The quota table is shared with the real cycle, so
        # whatever happens below, those still in `away` are counted again at the end.
        away = {other.uid: other for other in potential}
        for other in potential:
            self._move(other, -1, trial)
        try:
            if (refused := trial.refusal_beside(ahead) or trial.refusal()) is not None:
                return refused[1][0].text
            # First with the pod's own requests alone; the reprieve below adds those of nominated pods.
            if self._exceeds(self.pod.requests, self.pod.requests):
                return EXCEEDED
            violations = self.budgets.violations([[other] for other in potential])
            violating = {other.uid for other, n in zip(potential, violations, strict=True) if n}
            for other in sorted(potential, key=lambda other: other.uid not in violating):
                self._move(away.pop(other.uid), 1, trial)
                if trial.refusal_beside(ahead) or trial.refusal() or self._exceeds(self.of_quota, self.of_all):
                    away[other.uid] = other
                    self._move(other, -1, trial)
            victims = tuple(other for other in potential if other.uid in away)
            n_violating = sum(uid in violating for uid in away)
        finally:  # the table is shared: undo the what-if
            for other in away.values():
                self.quotas.move(other, 1)
        return Preemption(self.nodes.name(row), victims, n_violating, self.plugin.name) if victims else NO_VICTIMS

    def _move(self, other: PodView, sign: int, trial: NodeTrial) -> None:
        trial.move(other, sign)
        self.quotas.move(other, sign)

    def _exceeds(self, of_quota: Amounts, of_all: Amounts) -> bool:
        return self.own is not None and (self.own.exceeds_max(of_quota) or self.quotas.exceed_min(of_all))


def _nobody(why: str) -> PostFiltered:
    return PostFiltered(unschedulable(PREFIX + why))


def _cost(candidate: Preemption) -> tuple[float, ...]:
    """Return the cost of a candidate, as in kube-scheduler: violated budgets, highest priority, sum of priorities, number,
    start."""
    victims = candidate.victims
    top, total = max(victim.priority for victim in victims), sum(victim.priority + (1 << 31) for victim in victims)
    return candidate.violations, top, total, len(victims), -min(started_at(v) for v in victims if v.priority == top)
