"""Preemption and pod groups: evictions for a whole group, and victims that are evicted with their group.

`make_room` is the dry run for a group: all pods of lower priority in the cluster are removed, the members are placed, and then
the removed pods are put back while every member can stay where it is (`dry_run` has the same steps for one node, with an
example). `VictimUnits` finds the units of eviction: a pod, or a group that is evicted as a whole.
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
"""Stands in messages for the node, because a group evicts pods on any node."""


def make_room(
    group: FailedGroup,
    trial: GroupTrial,
    units: VictimUnits,
    budgets: Budgets,
    *,
    plugin: str,
    awaits_victims: bool,
) -> GroupPostFiltered:
    """Return the victims so that a group fits, and the nodes to which its members are nominated then."""
    if awaits_victims and _is_under_way(group, trial, units):
        kept = {pod.uid: Nomination(pod.pod.status.nominated_node_name) for pod in group.members}
        return GroupPostFiltered(Status(Code.SUCCESS, (UNDER_WAY,)), kept)
    nodes = trial.nodes
    # In the order in which nodes are visited: of equal units, the one that is found first is put back first.
    placed = (pod for name in nodes.order.names for pod in nodes.pods_on(nodes.row(name)))
    potential = [unit for unit in units.of(placed, nodes) if unit.priority < group.priority]
    if not potential:
        return GroupPostFiltered(unresolvable(NO_VICTIMS))
    # Inside, the pods are away. `rehearse` places the members and remembers where; `spare` puts a unit back and returns
    # False if a member would lose its place, which leaves the unit away. So the order decides, as on a single node:
    # units that violate a budget are put back first, then the most important ones.
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
    # Evicted in the order of importance, whatever the order in which they could not be put back.
    victims.sort(key=lambda found: found[0].order)
    pods = tuple(pod for unit, _ in victims for pod in unit.pods)
    n_violations = sum(n for _, n in victims)
    preemption = Preemption(EVERYWHERE, pods, n_violations, plugin, sum(unit.is_group for unit, _ in victims))
    found = Status(Code.SUCCESS, (f"found a placement for podgroup, preempting {len(pods)} victims",))
    return GroupPostFiltered(found, nominations, preemption)


def _is_under_way(group: FailedGroup, trial: GroupTrial, units: VictimUnits) -> bool:
    """Return whether pods that were evicted for this group are still terminating."""
    nodes = trial.nodes
    names = {pod.pod.status.nominated_node_name for pod in group.members}
    rows = [nodes.row(name) for name in names if name and nodes.row(name) >= 0]
    return any(makes_way(pod) and units.priority(pod) < group.priority for row in rows for pod in nodes.pods_on(row))


DISRUPTION_TARGET = "DisruptionTarget"
BY_SCHEDULER = "PreemptionByScheduler"

_LONER, _OF_GROUP, _OF_GROUPS = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Unit:
    """Pods that are evicted together."""

    pods: tuple[PodView, ...]
    priority: int
    rank: int
    started: float

    @property
    def order(self) -> tuple[int, int, int, float]:
        """Return the sort key, most important first: higher priority, then groups of groups before pods of groups before single
        pods, then more pods, then the earlier start."""
        return -self.priority, -self.rank, -len(self.pods), self.started

    @property
    def is_group(self) -> bool:
        """Return whether the unit is a group, or a pod of a group."""
        return self.rank > _LONER


class VictimUnits:
    """Finds the units of placed pods. `weighs_by_group` (1.37): pods of groups count with the priority of their root group; in
    1.36 only if the group is evicted as a whole."""

    def __init__(self, hierarchy: GroupHierarchy, groups: Groups, *, weighs_by_group: bool) -> None:
        self._hierarchy = hierarchy
        self._groups = groups
        self.weighs_by_group = weighs_by_group

    def priority(self, pod: PodView) -> int:
        """Return the priority with which a placed pod counts."""
        return self._hierarchy.priority(pod)

    def of(self, pods: Iterable[PodView], nodes: Snapshot) -> list[Unit]:
        """Return the units of pods, each once, without members on nodes that the view does not have."""
        units: list[Unit] = []
        seen: set[GroupKey] = set()
        for pod in pods:
            key = self._hierarchy.evicted_with(pod)
            # Evicted alone: a pod of no group, or of a group whose pods may be evicted one by one.
            if key is None:
                rank = _LONER if workload_of(pod) is None else _OF_GROUP
                priority = self.priority(pod) if self.weighs_by_group else pod.priority
                units.append(Unit((pod,), priority, rank, started_at(pod)))
            elif key not in seen:
                seen.add(key)
                # Evicted with its group: the first pod of the group that is met stands for it, and brings the members
                # on other nodes along. Members on nodes outside the view (a placement) cannot be moved in the trial, so
                # they are left out.
                whole = (pod for group in self._hierarchy.members(key, self._groups) for pod in group.scheduled())
                members = tuple(each for each in whole if nodes.row(each.node_name) >= 0)
                started = min(started_at(each) for each in members) if self.weighs_by_group else started_at(pod)
                rank = _OF_GROUPS if key.kind == COMPOSITE else _OF_GROUP
                units.append(Unit(members, self.priority(pod), rank, started))
        return units


def makes_way(pod: PodView) -> bool:
    """Return whether a pod is terminating because the scheduler evicted it."""
    if pod.pod.metadata.deletion_timestamp is None:
        return False
    target = next((c for c in pod.pod.status.conditions if c.type == DISRUPTION_TARGET), None)
    return target is not None and target.status == "True" and target.reason == BY_SCHEDULER
