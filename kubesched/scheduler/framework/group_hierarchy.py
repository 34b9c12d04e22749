"""Groups of groups: the parents and children of each pod group.

In: PodGroup and CompositePodGroup objects, which may name a parent. Out: a group's root, the pod groups below it, and the
root's priority, which counts for all of them. Without the gate CompositePodGroup every pod group is its own root. The way up
ends at a parent that does not exist, or that was passed already.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.kube.api import CompositePodGroup, PodGroup, goes_as_one
from kubesched.scheduler.cluster import Group, GroupKey, Groups, Objects, PodView
from kubesched.scheduler.framework.grouping import COMPOSITE, WORKLOAD, workload_of

MOST_LEVELS = 4
AnyGroup = PodGroup | CompositePodGroup


class GroupHierarchy:
    """The groups of one cluster, read from their objects when a method is called."""

    def __init__(self, objects: Objects, *, has_composites: bool) -> None:
        self._objects = objects
        self.has_composites = has_composites

    def get(self, key: GroupKey) -> AnyGroup | None:
        """Return a group's object."""
        type_ = CompositePodGroup if key.kind == COMPOSITE else PodGroup
        return self._objects.get(type_, key.name, key.namespace)

    def upwards(self, key: GroupKey) -> Iterator[tuple[GroupKey, AnyGroup]]:
        """Yield a group, its parent, and so on up to the root, as far as the objects exist."""
        seen: set[GroupKey] = set()
        while len(seen) < MOST_LEVELS and key not in seen and (group := self.get(key)) is not None:
            yield key, group
            seen.add(key)
            parent = group.spec.parent_composite_pod_group_name if self.has_composites else None
            if parent is None:
                return
            key = GroupKey(COMPOSITE, key.namespace, parent)

    def root(self, key: GroupKey) -> GroupKey | None:
        """Return the group at the top, or None if a parent does not exist."""
        top = None
        for at, group in self.upwards(key):
            top = at if not self.has_composites or group.spec.parent_composite_pod_group_name is None else None
        return top

    def children(self, key: GroupKey) -> list[GroupKey]:
        """Return the groups that name this one as their parent, the oldest first, then by name."""
        kinds: tuple[tuple[str, type[AnyGroup]], ...] = ((COMPOSITE, CompositePodGroup), (WORKLOAD, PodGroup))
        found = [
            (each.metadata.creation_timestamp or "", each.metadata.name, kind)
            for kind, type_ in kinds
            for each in self._objects.all(type_)
            if each.metadata.namespace == key.namespace and each.spec.parent_composite_pod_group_name == key.name
        ]
        return [GroupKey(kind, key.namespace, name) for _, name, kind in sorted(found)]

    def leaves(self, key: GroupKey) -> list[GroupKey]:
        """Return the pod groups at and below a group."""
        if key.kind != COMPOSITE:
            return [key]
        return [leaf for child in self.children(key) for leaf in self.leaves(child)]

    def members(self, key: GroupKey, groups: Groups) -> list[Group]:
        """Return the pod groups with pods at and below a group."""
        return [found for leaf in self.leaves(key) if (found := groups.get(leaf)) is not None]

    def priority(self, pod: PodView) -> int:
        """Return a placed pod's priority: that of its root group, if it has one."""
        key = workload_of(pod)
        priority = pod.priority
        for _, group in self.upwards(key) if key is not None else ():
            priority = group.spec.priority or 0
        return priority

    def evicted_with(self, pod: PodView) -> GroupKey | None:
        """Return the highest group of a pod that is evicted as a whole; None if the pod is evicted alone."""
        key = workload_of(pod)
        whole = [at for at, group in self.upwards(key) if goes_as_one(group.spec.disruption_mode)] if key is not None else []
        return whole[-1] if whole else None
