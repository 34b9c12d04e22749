"""Room for a pod group as a whole: whom to evict, anywhere in the cluster, so that all of it has a place.

In: a group that came to nothing, and a trial (framework/grouping). Out: the victims and where the members would go. Everybody
of lower priority is imagined away. If the group fits then, they come back one by one as far as the members can stay where they
went: first those whose eviction would break a disruption budget, then the others, the most important ones first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.scheduler.cluster import GroupKey, Groups, PodView, Snapshot
from kubesched.scheduler.framework import (
    COMPOSITE,
    Code,
    FailedGroup,
    GroupHierarchy,
    GroupPostFiltered,
    GroupTrial,
    Nomination,
    Preemption,
    Status,
    unresolvable,
    workload_of,
)
from kubesched.scheduler.plugins.default_preemption.budgets import Budgets
from kubesched.scheduler.plugins.default_preemption.importance import started_at

UNDER_WAY = "ongoing preemption on nominated nodes"
NO_VICTIMS = "No preemption victims found for incoming preemptor"
EVERYWHERE = "cluster"
"""What victims are told they were evicted for, where single pods name a node."""


def make_room(
    group: FailedGroup,
    trial: GroupTrial,
    units: VictimUnits,
    budgets: Budgets,
    *,
    plugin: str,
    awaits_victims: bool,
) -> GroupPostFiltered:
    """Find the pods that have to go so that a group fits."""
    if awaits_victims and _is_under_way(group, trial, units):
        kept = {pod.uid: Nomination(pod.pod.status.nominated_node_name) for pod in group.members}
        return GroupPostFiltered(Status(Code.SUCCESS, (UNDER_WAY,)), kept)
    nodes = trial.nodes
    potential = [unit for unit in units.of(_placed(trial), nodes) if unit.priority < group.priority]
    if not potential:
        return GroupPostFiltered(unresolvable(NO_VICTIMS))
    with trial.without([pod for unit in potential for pod in unit.pods]):
        status = trial.rehearse()
        if not status.is_success:
            return GroupPostFiltered(status)
        potential.sort(key=lambda unit: unit.order)
        violations = budgets.violations([unit.pods for unit in potential], charges_all=units.weighs_by_group)
        counted = list(zip(potential, violations, strict=True))
        counted.sort(key=lambda found: not found[1])
        victims = [(unit, n) for unit, n in counted if not trial.spare(unit.pods)]
        nominations = trial.nominations()
    victims.sort(key=lambda found: found[0].order)
    pods = tuple(pod for unit, _ in victims for pod in unit.pods)
    n_violations = sum(n for _, n in victims)
    preemption = Preemption(EVERYWHERE, pods, n_violations, plugin, sum(unit.is_group for unit, _ in victims))
    found = Status(Code.SUCCESS, (f"found a placement for podgroup, preempting {len(pods)} victims",))
    return GroupPostFiltered(found, nominations, preemption)


def _placed(trial: GroupTrial) -> Iterable[PodView]:
    """Yield all placed pods in the order in which nodes are visited: among equals who is found first is spared first."""
    nodes = trial.nodes
    return (pod for name in nodes.order.names for pod in nodes.pods_on(nodes.row(name)))


def _is_under_way(group: FailedGroup, trial: GroupTrial, units: VictimUnits) -> bool:
    """Return whether pods that were evicted for this group are still on their way out."""
    nodes = trial.nodes
    names = {pod.pod.status.nominated_node_name for pod in group.members}
    rows = [nodes.row(name) for name in names if name and nodes.row(name) >= 0]
    return any(makes_way(pod) and units.priority(pod) < group.priority for row in rows for pod in nodes.pods_on(row))


DISRUPTION_TARGET = "DisruptionTarget"
BY_SCHEDULER = "PreemptionByScheduler"

_LONER, _OF_GROUP, _OF_GROUPS = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Unit:
    """Pods that go together."""

    pods: tuple[PodView, ...]
    priority: int
    rank: int
    started: float

    @property
    def order(self) -> tuple[int, int, int, float]:
        """Return what units are sorted by, most important first."""
        return -self.priority, -self.rank, -len(self.pods), self.started

    @property
    def is_group(self) -> bool:
        """Return whether the unit is a group, or a pod of one."""
        return self.rank > _LONER


class VictimUnits:
    """Finds out who goes with whom."""

    def __init__(self, hierarchy: GroupHierarchy, groups: Groups, *, weighs_by_group: bool) -> None:
        self._hierarchy = hierarchy
        self._groups = groups
        self.weighs_by_group = weighs_by_group

    def priority(self, pod: PodView) -> int:
        """Return the priority that a placed pod counts with."""
        return self._hierarchy.priority(pod)

    def of(self, pods: Iterable[PodView], nodes: Snapshot) -> list[Unit]:
        """Return the units that pods belong to, each once. Members on nodes that are not here are left out."""
        units: list[Unit] = []
        seen: set[GroupKey] = set()
        for pod in pods:
            key = self._hierarchy.evicted_with(pod)
            if key is None:
                rank = _LONER if workload_of(pod) is None else _OF_GROUP
                priority = self.priority(pod) if self.weighs_by_group else pod.priority
                units.append(Unit((pod,), priority, rank, started_at(pod)))
            elif key not in seen:
                seen.add(key)
                whole = (pod for group in self._hierarchy.members(key, self._groups) for pod in group.scheduled())
                members = tuple(each for each in whole if nodes.row(each.node_name) >= 0)
                started = min(started_at(each) for each in members) if self.weighs_by_group else started_at(pod)
                rank = _OF_GROUPS if key.kind == COMPOSITE else _OF_GROUP
                units.append(Unit(members, self.priority(pod), rank, started))
        return units


def makes_way(pod: PodView) -> bool:
    """Return whether a pod is on its way out because the scheduler evicted it."""
    if pod.pod.metadata.deletion_timestamp is None:
        return False
    target = next((c for c in pod.pod.status.conditions if c.type == DISRUPTION_TARGET), None)
    return target is not None and target.status == "True" and target.reason == BY_SCHEDULER
