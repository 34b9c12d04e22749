"""A store that follows a cluster and can show its recent states.

In: changes from reflectors. Out: the store as it is now, or with some of the last changes undone. `show_newest` returns to the
present, and `take` does so before it adds a change. Old changes are dropped: the history is bounded in time and in number.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from math import inf
from types import MappingProxyType
from typing import Any

import msgspec

from kubesched.errors import SchedulerError
from kubesched.kube.api import INFO, Node, Pod, PodSchedulingGate, is_finished
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine import Engine
from kubesched.scheduler.queue import Nominated
from kubesched.tools.shadow.changes import Change, Key, device_claims, volume_claims

log = logging.getLogger(__name__)

MOST_CHANGES = 20_000
_FORGET_EVERY = 256
HELD_BACK = "kubesched.io/not-part-of-this-decision"
"""The scheduling gate of other nominated pods in a snapshot: they hold their place, and are not tried themselves."""
CLAIM, DEVICES = "PersistentVolumeClaim", "ResourceClaim"


def _at(change: Change) -> float:
    return change.at


class History:
    """The cluster and its recent changes, numbered from 0; `end` is the number of the next change."""

    def __init__(self, engine: Engine, keep_seconds: float) -> None:
        self.store = engine.store
        self._pending: dict[str, PodView] = {}
        self.nominated = Nominated(self._pending.get)
        engine.handle.nominations = self.nominated
        self.arrived: dict[str, int] = {}
        """By uid, the number of the change that created a pod; pods of the first list have none."""
        self.forgotten_until = -inf
        """The time of the newest change that was dropped."""
        self.needed_since: Callable[[], float] = lambda: inf
        """Returns the time from which changes must be kept, however old they are."""
        self.end = 0
        self._names = frozenset(engine.profiles)
        self._keep_seconds = keep_seconds
        self._changes: list[Change] = []
        self._about: dict[str | Key, list[int]] = {}
        """The numbers of changes that may prepare a pod's placement, by the uid of the pod and by its claims."""
        self._shown: dict[Key, Any] = {}
        self._newest: dict[Key, Any | None] = {}
        """The newest version of each object that is shown in another one."""

    def take(self, change: Change) -> int:
        """Add a change and return its number."""
        self.show_newest()
        self._changes.append(change)
        self.end += 1
        if not self.end % _FORGET_EVERY:
            n_old = bisect_left(self._changes, min(change.at - self._keep_seconds, self.needed_since()), key=_at)
            n_old = max(n_old, len(self._changes) - MOST_CHANGES)
            self._forget(n_old)
        for about in _about(change):
            self._about.setdefault(about, []).append(self.end - 1)
        self._show(change.key, change.new)
        if change.kind == "Pod" and change.old is None and change.new is not None:
            self.arrived[change.new.metadata.uid] = self.end - 1
        return self.end - 1

    def forget(self) -> None:
        """Drop all changes and keep the state, after the first lists."""
        self._changes.clear()
        self._about.clear()
        self.arrived.clear()

    def _forget(self, n_old: int) -> None:
        """Drop the oldest changes."""
        for old in self._changes[:n_old]:
            if old.kind == "Pod" and old.new is None and old.old is not None:
                self.arrived.pop(old.old.metadata.uid, None)
            for about in _about(old):
                del self._about[about][0]
                if not self._about[about]:
                    del self._about[about]
        if n_old:
            self.forgotten_until = self._changes[n_old - 1].at
        del self._changes[:n_old]

    @property
    def begin(self) -> int:
        """Return the number of the oldest change that is kept."""
        return self.end - len(self._changes)

    def first_at(self, at: float) -> int:
        """Return the number of the first change at a time or later."""
        return self.begin + bisect_left(self._changes, at, key=_at)

    def since(self, number: int) -> Iterator[tuple[int, Change]]:
        """Yield numbers and changes from a number on, or from the oldest change that is kept."""
        first = max(number, self.begin)
        return enumerate(islice(self._changes, first - self.begin, None), first)

    def traces(self, pod: Pod, end: int) -> dict[int, Change]:
        """Return the traces that the scheduler left of its decision about a pod, by number.

        These are its nominations before number `end`, and changes of its volume and device claims. Later changes of the
        claims count too, as their watches may be ahead of the watch of pods.
        """
        found = {}
        for number in self._about.get(pod.metadata.uid, ()):
            change = self._changes[number - self.begin]
            is_lost = change.is_nomination and not change.new.status.nominated_node_name  # type: ignore[union-attr]
            if not is_lost and (number < end or change.kind != "Pod"):
                found[number] = change
        for about in (*((CLAIM, each) for each in volume_claims(pod)), *((DEVICES, each) for each in device_claims(pod))):
            for number in self._about.get(about, ()):
                change = self._changes[number - self.begin]
                if change.old is None:  # earlier changes are of another object of this name
                    found = {n: each for n, each in found.items() if each.key != change.key}
                elif (
                    change.kind != DEVICES
                    or change.new is None
                    or any(user.uid == pod.metadata.uid for user in change.new.status.reserved_for)
                ):
                    found[number] = change
        return dict(sorted(found.items()))

    def show(self, versions: Mapping[Key, Any | None]) -> None:
        """Show the present cluster with some objects in an older version."""
        for key in [key for key in self._newest if key not in versions]:
            self._show(key, self._newest.pop(key))
        for key, version in versions.items():
            shown = self._shown.get(key)
            if shown is not version:
                self._newest.setdefault(key, shown)
                self._show(key, version)

    def show_before(self, number: int, but: Mapping[Key, Any | None] = MappingProxyType({})) -> None:
        """Show the cluster before a change, with some objects in an older version."""
        versions = dict(but)
        for _, change in self.since(number):
            versions.setdefault(change.key, change.old)
        self.show(versions)

    def show_newest(self) -> None:
        """Show the present cluster."""
        self.show({})

    def objects_for(self, pod: Pod) -> list[Any]:
        """Return the shown objects with one pending pod. Of the other pending pods only nominated ones are included."""
        found: list[Any] = list(self.store.nodes.objects)  # in the order of their rows, as ties depend on it
        for obj in self._shown.values():
            if isinstance(obj, Node):
                continue
            if not isinstance(obj, Pod) or obj.spec.node_name:
                found.append(obj)
            elif obj.status.nominated_node_name and obj.metadata.uid != pod.metadata.uid:
                found += _held_back(obj)
        return [*found, pod]

    def _show(self, key: Key, new: Any | None) -> None:
        old = self._shown.pop(key, None)
        if new is not None:
            self._shown[key] = new
        try:
            if key[0] == "Pod":
                self._show_pod(old, new)
            elif new is not None and key[0] == "Node":
                self.store.put_node(new)
            elif old is not None and key[0] == "Node":
                self.store.remove_node(old.metadata.name)
            elif (some := new if new is not None else old) is not None:
                kind = type(some) if type(some) in INFO else key[0]
                if new is not None:
                    self.store.objects.put(new, kind)
                else:
                    self.store.objects.drop(kind, some.metadata.name, some.metadata.namespace or "")
        except SchedulerError as error:
            log.error("%s %s left out: %s", *key, error)

    def _show_pod(self, old: Pod | None, new: Pod | None) -> None:
        is_placed = new is not None and bool(new.spec.node_name) and not is_finished(new)
        stays = old is not None and new is not None and old.metadata.uid == new.metadata.uid and is_placed
        if old is not None:
            uid = old.metadata.uid
            self._pending.pop(old.key, None)
            self.nominated.drop(uid)
            placed = self.store.pod(uid)
            if self.store.groups.are_kept:
                self.store.groups.drop(placed if placed is not None else self.store.view(old))
            if placed is not None and not stays:
                self.store.remove_pod(uid)
        if new is None or is_finished(new):
            return
        if new.spec.node_name:
            view = self.store.put_pod(new)
        elif new.spec.scheduler_name in self._names:
            view = self._pending[new.key] = self.store.view(new)
            self.nominated.add(view)
        else:
            return
        if self.store.groups.are_kept:
            self.store.groups.put(view)


def _about(change: Change) -> Iterator[str | Key]:
    """Yield the uid of the pod, or the claim, whose placement a change may prepare."""
    if change.of:
        yield change.of
    if change.kind in (CLAIM, DEVICES):
        yield change.key
    elif change.kind == "PersistentVolume" and change.new is not None and change.old is not None:
        claim = change.new.spec.claim_ref
        if claim is not None and change.old.spec.claim_ref is None:
            yield CLAIM, f"{claim.namespace}/{claim.name}"


def _held_back(pod: Pod) -> tuple[Pod, Pod]:
    """Return a nominated pod with a gate, in two versions: the first has no nomination, as a gated pod cannot be created with
    one."""
    replace = msgspec.structs.replace
    gates = (*pod.spec.scheduling_gates, PodSchedulingGate(name=HELD_BACK))
    gated = replace(pod, spec=replace(pod.spec, scheduling_gates=gates))
    status, metadata = replace(pod.status, nominated_node_name=""), replace(pod.metadata, resource_version="0")
    return replace(gated, status=status, metadata=metadata), gated
