"""Pod groups: the pods of each group, and which of them have a node.

In: pods that the intake adds and removes, and bookings that the store makes and undoes. Out: for each group its pods,
unscheduled, assumed or assigned. What makes a pod a member is not known here: functions are registered that return the key of a
pod's group or None, and the first key counts. Without such functions nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kubesched.scheduler.cluster.pods import PodView


class GroupKey(NamedTuple):
    """A group's kind (the API group that defines it), namespace and name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


GroupReader = Callable[[PodView], GroupKey | None]


class Group:
    """One group's pods by uid. Of an assumed pod both versions are kept, because `forget` restores the unscheduled one."""

    __slots__ = ("_before", "assigned", "assumed", "unscheduled")

    def __init__(self) -> None:
        self.unscheduled: dict[str, PodView] = {}
        self.assumed: dict[str, PodView] = {}
        self.assigned: dict[str, PodView] = {}
        self._before: dict[str, PodView] = {}

    @property
    def n_scheduled(self) -> int:
        """Return how many pods have a place, booked or confirmed."""
        return len(self.assumed) + len(self.assigned)

    @property
    def n_all(self) -> int:
        """Return how many pods there are."""
        return len(self.unscheduled) + self.n_scheduled

    def copy(self) -> Group:
        """Return the same group, for `Groups.restore`."""
        copied = Group()
        for books in ("unscheduled", "assumed", "assigned", "_before"):
            setattr(copied, books, dict(getattr(self, books)))
        return copied

    def scheduled(self) -> Iterator[PodView]:
        """Yield the pods that have a place; each names its node."""
        yield from self.assumed.values()
        yield from self.assigned.values()

    def put(self, pod: PodView) -> None:
        """Add a pod, or its newest version."""
        if pod.node_name:
            self.drop(pod.uid)
            self.assigned[pod.uid] = pod
        elif pod.uid in self.assumed:
            self._before[pod.uid] = pod
        else:
            self.unscheduled[pod.uid] = pod

    def drop(self, uid: str) -> None:
        """Forget a pod."""
        for books in (self.unscheduled, self.assumed, self.assigned, self._before):
            books.pop(uid, None)

    def assume(self, booked: PodView) -> None:
        """Take in a booking."""
        before = self.unscheduled.pop(booked.uid, None)
        if before is not None:
            self._before[booked.uid] = before
            self.assumed[booked.uid] = booked

    def forget(self, uid: str) -> None:
        """Take back a booking."""
        if self.assumed.pop(uid, None) is not None:
            self.unscheduled[uid] = self._before.pop(uid)


class Groups:
    """All groups that have pods. `put` and `drop` are the intake's, `assume` and `forget` the store's."""

    __slots__ = ("_groups", "_key_of", "_readers", "are_kept")

    def __init__(self) -> None:
        self._readers: tuple[GroupReader, ...] = ()
        self.are_kept = False
        """Whether any plugin defines groups."""
        self._groups: dict[GroupKey, Group] = {}
        self._key_of: dict[str, GroupKey] = {}

    def are_any_scheduled(self) -> bool:
        """Return whether any pod of a group has a place."""
        return any(group.n_scheduled for group in self._groups.values())

    def read_with(self, readers: Iterable[GroupReader], placed: Iterable[PodView] = ()) -> None:
        """Set the functions that return a pod's group. Pods that have a node are read again."""
        self._readers = tuple(readers)
        self.are_kept = bool(self._readers)
        if not self.are_kept:
            self._groups.clear()
            self._key_of.clear()
            return
        for pod in placed:
            self.put(pod)

    def key_of(self, pod: PodView) -> GroupKey | None:
        """Return the group that a pod belongs to, or None."""
        for read in self._readers:
            key = read(pod)
            if key is not None:
                return key
        return None

    def get(self, key: GroupKey) -> Group | None:
        """Return a group, or None if it has no pods."""
        return self._groups.get(key)

    def put(self, pod: PodView) -> None:
        """Add a pod, or its newest version. A pod that changed its group leaves the old one."""
        key, old = self.key_of(pod), self._key_of.get(pod.uid)
        if old is not None and old != key:
            self.drop(pod)
        if key is not None:
            self._key_of[pod.uid] = key
            self._groups.setdefault(key, Group()).put(pod)

    def saved(self, pod: PodView) -> list[tuple[GroupKey, Group | None]]:
        """Return copies of the groups that change when a pod is put or dropped, for `restore`: its own, and the one before."""
        keys = {self.key_of(pod), self._key_of.get(pod.uid)} - {None}
        return [
            (key, group.copy() if (group := self._groups.get(key)) is not None else None) for key in keys if key is not None
        ]

    def restore(self, key: GroupKey, before: Group | None) -> None:
        """Let a group be as it was when it was copied, with its pods in their order; None if it had no pods."""
        there = self._groups.pop(key, None)
        for uid in _uids(there):
            del self._key_of[uid]
        if before is not None:
            self._groups[key] = before
            self._key_of.update(dict.fromkeys(_uids(before), key))

    def drop(self, pod: PodView) -> None:
        """Forget a pod; a group without pods is gone."""
        key = self._key_of.pop(pod.uid, None)
        if key is not None:
            group = self._groups[key]
            group.drop(pod.uid)
            if not group.n_all:
                del self._groups[key]

    def assume(self, booked: PodView) -> None:
        """Take in a booking."""
        key = self._key_of.get(booked.uid)
        if key is not None:
            self._groups[key].assume(booked)

    def forget(self, uid: str) -> None:
        """Take back a booking."""
        key = self._key_of.get(uid)
        if key is not None:
            self._groups[key].forget(uid)


def _uids(group: Group | None) -> list[str]:
    return [*group.unscheduled, *group.assumed, *group.assigned] if group is not None else []
