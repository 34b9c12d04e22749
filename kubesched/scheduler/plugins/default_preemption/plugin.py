"""DefaultPreemption: when no node fits, find the pods of lower priority whose eviction costs least.

PostFilter runs in these steps:

1. Is the pod allowed to preempt (`_why_not_eligible`, `_why_not_in_group`)?
2. On which nodes may an eviction help? Not where a filter said UnschedulableAndUnresolvable (`_may_be_helped`).
3. Visit these nodes, from a random one on, until there are enough candidates (`_candidates`). `dry_run` finds the victims.
4. Choose the candidate with the lowest cost (`_costs_of_rows`), and return it as a proposal.

The engine evicts the victims (engine/acting/eviction); until it is done, PreEnqueue keeps the pod out of the active queue. For
pod groups see `groups`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from kubesched.errors import SchedulerError
from kubesched.kube.api import Pod, PodGroup
from kubesched.kube.values import aggregate
from kubesched.scheduler.cluster import Array, Bools, Ints, PodView, Snapshot
from kubesched.scheduler.config import Args, FieldError, Gates, Int32, Path, invalid
from kubesched.scheduler.framework import (
    CLEAR,
    DELETE,
    POD,
    SUCCESS,
    Code,
    CycleState,
    Diagnosis,
    FailedGroup,
    GroupHierarchy,
    GroupPostFiltered,
    GroupTrial,
    Handle,
    Nomination,
    Plugin,
    PostFiltered,
    Preemption,
    Profile,
    Status,
    WhatIfFilters,
    failed,
    nominated_by_row,
    none_available,
    on,
    unresolvable,
    unschedulable,
    workload_of,
)
from kubesched.scheduler.plugins.default_preemption.budgets import Budgets
from kubesched.scheduler.plugins.default_preemption.dry_run import CANDIDATE, ERROR, PRIORITY_OFFSET, DryRun, DryRunResults
from kubesched.scheduler.plugins.default_preemption.groups import VictimUnits, make_room, makes_way
from kubesched.scheduler.plugins.default_preemption.importance import Importance, started_at


class DefaultPreemptionArgs(Args, frozen=True, rename="camel"):
    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        of_percentage = path.child("minCandidateNodesPercentage")
        of_absolute = path.child("minCandidateNodesAbsolute")
        errors = []
        if not 0 <= percentage <= 100:
            errors.append(invalid(of_percentage, percentage, "not in valid range [0, 100]"))
        if absolute < 0:
            errors.append(invalid(of_absolute, absolute, "not in valid range [0, inf)"))
        if percentage == 0 and absolute == 0:
            both = "cannot be zero at the same time as"
            errors.append(invalid(of_percentage, percentage, f"{both} minCandidateNodesAbsolute"))
            errors.append(invalid(of_absolute, absolute, f"{both} minCandidateNodesPercentage"))
        return errors


PREFIX = "preemption: "
NEVER = "not eligible due to preemptionPolicy=Never."
IN_PLACEMENTS = "not eligible due to placement-based pod group scheduling limitation"
NO_GROUP = "pod group for pod not found"
STILL_TERMINATING = "not eligible due to a terminating pod on the nominated node."
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_CANDIDATE = "no candidate node for preemption"
UNDER_WAY = unresolvable("waiting for the preemption for this pod to be finished")
GROUP_UNDER_WAY = unresolvable("waiting for the preemption for this pod group to be finished")
FOR_THE_GROUP = "not eligible due to workload aware preemption enabled"
GROUP_PREFIX = "pod group preemption: "

Narrow = Callable[[PodView, Sequence[Preemption], Snapshot], Sequence[Preemption]]
"""(preemptor, candidates, nodes) -> the candidates that an extender accepts, maybe with other victims. A SchedulerError ends
the attempt."""

_MOST_REMEMBERED = 16
_SMALLEST_WINDOW = 64


class DefaultPreemption(Plugin):
    """`attempts` counts the calls of PostFilter; `narrow` are the extenders that filter candidates, called in order."""

    Args = DefaultPreemptionArgs
    wakes_on = (on(POD, DELETE, "pod_went", by_template=True),)

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.attempts = 0
        self.narrow: list[Narrow] = []
        gates = handle.gates
        self._has_placements = gates.is_enabled("TopologyAwareWorkloadScheduling")
        self._evicts_for_groups = gates.is_enabled("WorkloadAwarePreemption")
        self._has_policies = gates.is_enabled("PodGroupPreemptionPolicy")
        self._hierarchy = GroupHierarchy(handle.objects, has_composites=gates.is_enabled("CompositePodGroup"))
        self._behaviour = gates.behaviour
        weighs_by_group = gates.behaviour.weighs_victims_by_group
        self._units = VictimUnits(self._hierarchy, handle.groups, weighs_by_group=weighs_by_group)
        self._counts_groups = gates.is_enabled("GenericWorkload") and gates.behaviour.judges_groups_whole
        """Whether a single pod also evicts pods of groups with their group, and compares itself with the group's priority."""
        self._results: OrderedDict[tuple[bytes, frozenset[str]], DryRunResults] = OrderedDict()

    def pre_enqueue(self, pod: PodView) -> Status | None:
        """Keep a pod gated while its victims, or those of its group, are being evicted."""
        preempting = self.handle.preempting
        if not len(preempting):
            return None
        # Evictions for a group are booked under the uid of its root group, so all its members are gated by one entry.
        key = workload_of(pod) if self._evicts_for_groups else None
        if key is None:
            return UNDER_WAY if preempting.is_under_way(pod.uid) else None
        root = self._hierarchy.root(key)
        group = self._hierarchy.get(root) if root is not None else None
        return GROUP_UNDER_WAY if group is not None and preempting.is_under_way(group.metadata.uid) else None

    def pod_went(self, pod: PodView, old: Pod, new: Pod | None) -> bool:
        """Return False: the plugins that refused the pod have hints for deleted pods."""
        return False

    def post_filter(
        self, pod: PodView, nodes: Snapshot, state: CycleState, diagnosis: Diagnosis, profile: Profile
    ) -> PostFiltered:
        """Propose the node whose victims cost least."""
        self.attempts += 1
        why_not = self._why_not_in_group(pod) or self._why_not_eligible(pod, nodes, diagnosis)
        if why_not:
            return PostFiltered(unschedulable(PREFIX + why_not))
        # Without such a node the answer follows from the verdicts alone (is_settled): it holds for the next pod of the class
        # too, while these stand. A pod with a nominated node is different: its nomination must be cleared.
        potential = np.flatnonzero(_may_be_helped(diagnosis, nodes))
        if not len(potential):
            return replace(_no_candidates(nodes.n, {}), is_settled=not pod.pod.status.nominated_node_name)
        # Victims with their group are rare, and their other pods are on other nodes, so results by row would not hold:
        # nothing is cached.
        by_units = self._counts_groups and self.handle.groups.are_any_scheduled()
        run = self._dry_run(WhatIfFilters(profile, pod, state, diagnosis.verdicts), nodes, remembers=not by_units)
        if by_units:
            return self._evict_units(potential, run)
        rows = self._candidates(potential, run)
        answer = self._choose(rows, run) if len(rows) else _explain(potential, run)
        own_row = run.coming.row_of(pod.uid)
        if own_row >= 0:
            run.results.forget(own_row)  # its own nomination changes the result, so other pods of the class must not reuse it
        return answer

    def _why_not_in_group(self, pod: PodView) -> str:
        """Return why a member of a pod group may not preempt alone; empty if it may.

        Evictions are for the whole group (`pod_group_post_filter`), and a group with a topology constraint must lie in one
        domain, so a place elsewhere does not help it.
        """
        # Two gates meet here. With WorkloadAwarePreemption the group preempts as a whole. With
        # TopologyAwareWorkloadScheduling alone, members may preempt one by one unless the group has a topology
        # constraint.
        key = workload_of(pod) if self._has_placements or self._evicts_for_groups else None
        if key is None:
            return ""
        if self._evicts_for_groups and not self._has_placements:
            return FOR_THE_GROUP
        group = self.handle.objects.get(PodGroup, key.name, key.namespace)
        if group is None:
            return NO_GROUP
        if group.spec.scheduling_constraints is not None:
            return IN_PLACEMENTS
        return FOR_THE_GROUP if self._evicts_for_groups else ""

    def _why_not_eligible(self, pod: PodView, nodes: Snapshot, diagnosis: Diagnosis) -> str:
        """Return why a pod may not preempt; empty if it may."""
        if pod.pod.spec.preemption_policy == "Never":
            return NEVER
        # The pod has preempted before. While its victims terminate, it must not evict more elsewhere. As in kube-scheduler,
        # only terminating pods count that a scheduler evicted and that have a lower priority. If the node became
        # UnschedulableAndUnresolvable meanwhile, say by a taint, waiting is useless, and the pod may preempt again.
        nominated = pod.pod.status.nominated_node_name
        if nominated and diagnosis.status(nominated).code is not Code.UNRESOLVABLE:
            row = nodes.row(nominated)
            if row >= 0 and any(makes_way(other) and self._priority(other) < pod.priority for other in nodes.pods_on(row)):
                return STILL_TERMINATING
        return ""

    def _priority(self, pod: PodView) -> int:
        return self._units.priority(pod) if self._counts_groups else pod.priority

    # For a group

    def pod_group_post_filter(self, failed: FailedGroup, trial: GroupTrial) -> GroupPostFiltered:
        """Find victims of lower priority, on any node, so that a whole group fits."""
        # The group's own preemptionPolicy counts if there is one (gate PodGroupPreemptionPolicy). Otherwise one member
        # with Never is enough to forbid it.
        if self._has_policies:
            never = failed.group.spec.preemption_policy == "Never"
        else:
            never = any(pod.pod.spec.preemption_policy == "Never" for pod in failed.members)
        if never:
            found = GroupPostFiltered(unschedulable(NEVER))
        else:
            budgets = self.handle.objects.shared(Budgets)
            budgets.follow()
            awaits_victims = self._behaviour.awaits_victims_of_groups
            found = make_room(failed, trial, self._units, budgets, plugin=self.name, awaits_victims=awaits_victims)
        status = found.status
        if not status.message or not self._behaviour.names_group_preemption:
            return found
        return replace(found, status=Status(status.code, (GROUP_PREFIX + status.message,)))

    # Victims that are evicted with their group

    def _evict_units(self, potential: Ints, run: DryRun) -> PostFiltered:
        """Propose the cheapest eviction if a pod of a group is evicted with its group: one node after the other, from a random
        one on, until there are enough candidates."""
        # From a random node on, so that many preemptors at once do not all choose the same victims.
        limit, offset = self._visit_plan(len(potential))
        clean: list[Preemption] = []
        breaking: list[Preemption] = []
        for row in (*potential[offset:].tolist(), *potential[:offset].tolist()):
            lower = [u for u in self._units.of(run.nodes.pods_on(row), run.nodes) if u.priority < run.pod.priority]
            found = run.look_at_units(row, sorted(lower, key=lambda unit: unit.order))
            if found is None:
                continue
            pods, violations = found
            (breaking if violations else clean).append(Preemption(run.nodes.name(row), pods, violations, self.name))
            # Kept quirk, the same as in `_enough`: candidates that violate a budget count for the limit, but at least
            # one that does not must be among them. Otherwise the visit goes on, up to the last node.
            if clean and len(clean) + len(breaking) >= limit:
                break
        candidates = [*clean[:limit], *breaking[:limit]]
        return self._narrowed(candidates, run) if candidates else _explain(potential, run)

    # Victims that are evicted alone

    def _dry_run(self, what_if: WhatIfFilters, nodes: Snapshot, *, remembers: bool) -> DryRun:
        """Return a dry run, with the cached results of the pod's class if these may be reused."""
        pod, objects = what_if.pod, nodes.objects
        coming = nominated_by_row(nodes, self.handle.nominations)
        importance, budgets = objects.shared(Importance), objects.shared(Budgets)
        importance.reverses_unstarted = not self._behaviour.keeps_order_of_unstarted
        importance.follow(nodes)
        budgets.follow()
        # Results of an earlier pod hold for this one if both have the same requirements (signature) and skip the same
        # filters, and if no filter keeps state of its own about the attempt (`is_remembered`). `follow` then forgets
        # the rows that changed.
        versions = what_if.versions(nodes)
        key = (pod.template.signature, what_if.skipped)
        is_remembered = remembers and what_if.is_remembered(nodes)
        results = self._results.pop(key, None) if is_remembered else None
        if results is None or not results.follow(nodes, coming, budgets, versions):
            results = DryRunResults(nodes.n)
            results.follow(nodes, coming, budgets, versions)
        if is_remembered:
            # Popped above and put back here: the dictionary is in the order of use, and the one that was used least
            # recently goes.
            self._results[key] = results
            if len(self._results) > _MOST_REMEMBERED:
                self._results.popitem(last=False)
        # The pod's own nomination counts for other pods but not for itself, so this row's cached result is another
        # pod's view.
        own_row = coming.row_of(pod.uid)
        if own_row >= 0:
            results.forget(own_row)
        return DryRun(pod, nodes, what_if, coming, importance, budgets, results)

    def _visit_plan(self, n: int) -> tuple[int, int]:
        """Return how many candidates are enough among n nodes, and the index of the first node to visit."""
        #     5,000 nodes, 10 %, at least 100:   500 candidates are enough
        #       400 nodes:                       100 (10 % would be 40)
        #        50 nodes:                       50, all of them
        args: DefaultPreemptionArgs = self.args
        enough = max(n * args.min_candidate_nodes_percentage // 100, args.min_candidate_nodes_absolute)
        return min(n, enough), self.handle.random.randrange(n)

    def _candidates(self, potential: Ints, run: DryRun) -> Ints:
        """Return the candidates, those that violate no budget first. Nodes are tried in windows that double in size."""
        # kube-scheduler tries nodes one by one and stops at the limit. Here a window of nodes is tried at once, and
        # `_enough` says where the single steps would have stopped, so the candidates are the same. `wrap` goes on at
        # the first node after the last.
        limit, at = self._visit_plan(len(potential))
        end = at + len(potential)
        found, window = potential[:0], max(limit, _SMALLEST_WINDOW)
        while True:
            rows = potential.take(np.arange(at, min(at + window, end)), mode="wrap")
            run.look_at(rows)
            found = np.concatenate((found, rows[run.results.outcome[rows] == CANDIDATE]))
            chosen, is_enough = _enough(found, limit, run.results)
            at, window = at + window, 2 * window
            if is_enough or at >= end:
                return chosen

    def _choose(self, rows: Ints, run: DryRun) -> PostFiltered:
        """Propose the cheapest of the candidates that extenders accept."""
        if not self.narrow:
            return self._proposal(_preemption(int(rows[self._pick(_costs_of_rows(rows, run.results))]), run))
        return self._narrowed([_preemption(row, run) for row in rows.tolist()], run)

    def _narrowed(self, candidates: Sequence[Preemption], run: DryRun) -> PostFiltered:
        """Propose the cheapest of the candidates that all extenders accept."""
        try:
            for narrow in self.narrow:
                candidates = narrow(run.pod, candidates, run.nodes)
                if not candidates:
                    return PostFiltered(unschedulable(PREFIX + NO_CANDIDATE))
        except SchedulerError as error:
            return PostFiltered(failed(PREFIX + str(error)))
        return self._proposal(candidates[self._pick(_costs(candidates))])

    def _proposal(self, preemption: Preemption) -> PostFiltered:
        status = SUCCESS
        if self._behaviour.tells_placement_found:
            node, n = preemption.node_name, len(preemption.victims)
            status = Status(
                Code.SUCCESS, (f"{PREFIX}found a potential placement for pod on node {node}, preempting {n} victims",)
            )
        return PostFiltered(status, Nomination(preemption.node_name), preemption)

    def _pick(self, costs: Iterator[Array]) -> int:
        """Return the index of the cheapest candidate: the lowest first cost, among equals the lowest second, and so on; of the
        rest a random one."""
        # Costs come one by one, because most choices are decided by the first or second. `left` are the indexes that
        # are still equal. Kept quirk: the rest is a random choice. kube-scheduler takes the first of a Go map, whose
        # order is random too.
        left: Ints | None = None
        for cost in costs:
            mine = cost if left is None else cost[left]
            least = mine.min()
            if least != mine.max():
                cheapest = np.flatnonzero(mine == least)
                left = cheapest if left is None else left[cheapest]
                if len(left) == 1:
                    return int(left[0])
        n = len(mine) if left is None else len(left)
        at = self.handle.random.randrange(n) if n > 1 else 0
        return at if left is None else int(left[at])


def _enough(rows: Ints, limit: int, results: DryRunResults) -> tuple[Ints, bool]:
    """Return the candidates that kube-scheduler would have when it stops the visit, and whether it stops.

    It stops at the first node with which there are `limit` candidates in all, one of them without a violation. Of both kinds,
    with and without violations, it keeps at most `limit`. `rows` are in the order of the visit.
    """
    breaks = results.violations[rows] > 0
    if not breaks.any():
        return rows[:limit], limit > 0 and len(rows) >= limit
    #     visit    v  c  v  v  c      v violates a budget, c does not      limit 3
    #     violating   1  1  2  3  3
    #     clean       0  1  1  1  2
    #     together    1  2  3          reached at the third node: candidates are c, v, v
    n_breaking = np.minimum(np.cumsum(breaks), limit)
    n_clean = np.minimum(np.cumsum(~breaks), limit)
    enough = (n_clean > 0) & (n_clean + n_breaking >= limit)
    is_enough = bool(enough.any())
    if is_enough:
        seen = int(enough.argmax()) + 1
        rows, breaks = rows[:seen], breaks[:seen]
    return np.concatenate((rows[~breaks][:limit], rows[breaks][:limit])), is_enough


def _may_be_helped(diagnosis: Diagnosis, nodes: Snapshot) -> Bools:
    """Return the nodes that filters refused as Unschedulable, where removing pods may help; not
    UnschedulableAndUnresolvable."""
    # Three sources: the verdicts of the filters by row, one status for nodes that PreFilter left out (`absent`), and
    # single nodes that got a status after the filters, for example from an extender (`extra`), which overrules the
    # others.
    verdicts = diagnosis.verdicts
    hopeful = verdicts.has_code(Code.UNSCHEDULABLE) if verdicts is not None else np.zeros(nodes.n, dtype=np.bool_)
    if diagnosis.absent.code is Code.UNSCHEDULABLE:
        hopeful |= True if verdicts is None else verdicts.owner < 0
    for name, status in diagnosis.extra.items():
        row = nodes.row(name)
        if row >= 0:
            hopeful[row] = status.code is Code.UNSCHEDULABLE
    return hopeful


def _explain(potential: Ints, run: DryRun) -> PostFiltered:
    """Return the message about why there is no candidate."""
    results = run.results
    outcome = results.outcome[potential]
    broken = potential[outcome == ERROR]
    if len(broken):
        return PostFiltered(failed(PREFIX + aggregate([results.errors[row] for row in broken.tolist()])))
    # Outcomes above 0 are numbers of lists of reasons, so one bincount gives the number of nodes for each list. The
    # message counts a node once for each of its reasons, as the message of a scheduling failure does.
    counts = np.bincount(outcome[outcome > 0], minlength=len(results.reasons) + 1).tolist()
    histogram: dict[str, int] = {}
    for reasons, number in results.reasons.items():
        for reason in reasons if counts[number] else ():
            histogram[reason] = histogram.get(reason, 0) + counts[number]
    return _no_candidates(run.nodes.n, histogram, sum(counts))


def _no_candidates(n_nodes: int, histogram: dict[str, int], n_explained: int = 0) -> PostFiltered:
    if n_explained < n_nodes:
        histogram[NOT_HELPFUL] = histogram.get(NOT_HELPFUL, 0) + n_nodes - n_explained
    return PostFiltered(unschedulable(PREFIX + none_available(n_nodes, histogram)), CLEAR)


def _preemption(row: int, run: DryRun) -> Preemption:
    pods = run.importance.pods(row, run.pod.priority, run.nodes)
    victims = tuple(pods[rank] for rank in run.results.victims(row))
    return Preemption(run.nodes.name(row), victims, int(run.results.violations[row]), DefaultPreemption.name)


def _costs_of_rows(rows: Ints, results: DryRunResults) -> Iterator[Array]:
    """Yield the costs of candidates, the first that differs decides: violated budgets, the highest priority of a victim, the
    sum of their priorities, their number, and the earliest start among the most important victims (a late start is cheap)."""
    yield results.violations[rows]
    yield results.top_priority[rows]
    yield results.total_priority[rows]
    yield results.n_victims[rows]
    yield -results.started[rows]


def _costs(candidates: Sequence[Preemption]) -> Iterator[Array]:
    """Yield the same for candidates whose victims an extender may have changed."""
    # Kept quirk: the first victim stands for the highest priority, also if the extender returned them in another order.
    yield np.array([c.violations for c in candidates])
    yield np.array([c.victims[0].priority for c in candidates])
    yield np.array([sum(victim.priority + PRIORITY_OFFSET for victim in c.victims) for c in candidates])
    yield np.array([len(c.victims) for c in candidates])
    yield np.array([-_first_start(c.victims) for c in candidates])


def _first_start(victims: Sequence[PodView]) -> float:
    top = max(victim.priority for victim in victims)
    return min(started_at(victim) for victim in victims if victim.priority == top)
