"""Who is evicted together: a pod alone, or a group that goes as one or not at all.

In: placed pods. Out: units. Pods of a group count with the group's priority, that of its root (before 1.37 only if they go as
one). A unit is more important than another if its priority is higher; among equals groups of groups come before pods of groups
and these before loners, then the one with more pods, then the one that started earlier.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.scheduler.cluster import GroupKey, Groups, PodView, Snapshot
from kubesched.scheduler.framework import COMPOSITE, GroupHierarchy, workload_of
from kubesched.scheduler.plugins.default_preemption.importance import started_at

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
