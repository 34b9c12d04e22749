"""A store that follows a cluster and can be taken back to its recent states.

In: changes as reflectors deliver them. Out: the store as it is now, or as it was with some of the last changes undone. The
newest state is always one call away (`show_newest`), and new changes are taken in only there. A change that is too old to
matter is forgotten: the history is bounded in time and in number. Nothing is decided here.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import islice
from math import inf
from typing import Any, NamedTuple

import msgspec

from kubesched.api.kinds import INFO
from kubesched.api.node import Node
from kubesched.api.pod import Pod, PodSchedulingGate
from kubesched.cluster import PodView
from kubesched.engine.loop import Engine
from kubesched.errors import SchedulerError
from kubesched.queue.nominated import Nominated

log = logging.getLogger(__name__)

MOST_CHANGES = 20_000
_FORGET_EVERY = 256
HELD_BACK = "kubesched.io/not-part-of-this-decision"
"""The gate by which a snapshot keeps a nominated pod from being tried: it is there for the pod that is decided beside it."""
_OVER = frozenset({"Succeeded", "Failed"})

Key = tuple[str, str]
"""An object's kind, and its namespace/name."""


class Change(NamedTuple):
    """An object as it was and as it became; None stands for "not there". `at` is a monotonic time."""

    at: float
    kind: str
    old: Any | None
    new: Any | None

    @property
    def key(self) -> Key:
        """Return which object it is about."""
        some = self.new if self.new is not None else self.old
        assert some is not None
        return self.kind, some.key

    @property
    def is_placement(self) -> bool:
        """Return whether a scheduler gave a pod its node."""
        old, new = self.old, self.new
        return isinstance(old, Pod) and isinstance(new, Pod) and not old.spec.node_name and bool(new.spec.node_name)

    @property
    def is_nomination(self) -> bool:
        """Return whether a pod that waits was promised a node, or lost it."""
        old, new = self.old, self.new
        if not isinstance(old, Pod) or not isinstance(new, Pod) or new.spec.node_name:
            return False
        return old.status.nominated_node_name != new.status.nominated_node_name


def _at(change: Change) -> float:
    return change.at


IsUndone = Callable[[int, Change], bool]


class History:
    """The cluster and its recent past. Changes are numbered from 0 on; `end` is the number of the next one."""

    def __init__(self, engine: Engine, keep_seconds: float) -> None:
        self.store = engine.store
        self.nominated = Nominated(self._waiting)
        engine.handle.nominations = self.nominated
        self.arrived: dict[str, int] = {}
        """The numbers of the changes with which pods came, by uid; not of those that were listed at first."""
        self.forgotten_until = -inf
        """When the newest change was made that is no longer remembered."""
        self.end = 0
        self._names = frozenset(engine.profiles)
        self._keep_seconds = keep_seconds
        self._changes: list[Change] = []
        self._pending: dict[str, PodView] = {}
        self._shown: dict[Key, Any] = {}
        self._newest: dict[Key, Any | None] = {}
        """Of the objects that are shown in another version, the newest one."""

    def take(self, change: Change) -> int:
        """Take in a change; return its number."""
        self.show_newest()
        self._changes.append(change)
        self.end += 1
        if not self.end % _FORGET_EVERY:
            n_old = bisect_left(self._changes, change.at - self._keep_seconds, key=_at)
            n_old = max(n_old, len(self._changes) - MOST_CHANGES)
            for old in self._changes[:n_old]:
                if old.kind == "Pod" and old.new is None and old.old is not None:
                    self.arrived.pop(old.old.metadata.uid, None)
            if n_old:
                self.forgotten_until = self._changes[n_old - 1].at
            del self._changes[:n_old]
        self._show(change.key, change.new)
        if change.kind == "Pod" and change.old is None and change.new is not None:
            self.arrived[change.new.metadata.uid] = self.end - 1
        return self.end - 1

    def forget(self) -> None:
        """Forget how the present state came about: a first list is no history."""
        self._changes.clear()
        self.arrived.clear()

    @property
    def begin(self) -> int:
        """Return the number of the oldest change that is remembered."""
        return self.end - len(self._changes)

    def first_at(self, at: float) -> int:
        """Return the number of the first change at a time or later."""
        return self.begin + bisect_left(self._changes, at, key=_at)

    def since(self, number: int) -> Iterator[tuple[int, Change]]:
        """Yield changes with their numbers, from one on that may be forgotten already."""
        first = max(number, self.begin)
        return enumerate(islice(self._changes, first - self.begin, None), first)

    # Going back

    def show(self, since: int, is_undone: IsUndone) -> None:
        """Show the cluster without some of the changes since one. What happened to an object after a change that is undone is
        undone with it."""
        wanted: dict[Key, Any | None] = {}
        for number, change in self.since(since):
            key = change.key
            if key not in wanted and is_undone(number, change):
                wanted[key] = change.old
        for key in [key for key in self._newest if key not in wanted]:
            self._show(key, self._newest.pop(key))
        for key, version in wanted.items():
            shown = self._shown.get(key)
            if shown is not version:
                self._newest.setdefault(key, shown)
                self._show(key, version)

    def show_newest(self) -> None:
        """Show the cluster as it is."""
        self.show(self.end, lambda number, change: False)

    def objects_for(self, pod: Pod) -> list[Any]:
        """Return the shown state with one pod that waits; others that wait are left out, unless a node is promised to them."""
        found: list[Any] = list(self.store.nodes.objects)  # in the order of their rows, which breaks ties
        for obj in self._shown.values():
            if isinstance(obj, Node):
                continue
            if not isinstance(obj, Pod) or obj.spec.node_name:
                found.append(obj)
            elif obj.status.nominated_node_name and obj.metadata.uid != pod.metadata.uid:
                found += _held_back(obj)
        return [*found, pod]

    # Showing one version of one object

    def _show(self, key: Key, new: Any | None) -> None:
        old = self._shown.pop(key, None)
        if new is not None:
            self._shown[key] = new
        try:
            if key[0] == "Pod":
                self._show_pod(old, new)
            elif key[0] == "Node":
                self._show_node(old, new)
            else:
                self._show_object(key[0], old, new)
        except SchedulerError as error:
            log.error("%s %s left out: %s", *key, error)

    def _show_pod(self, old: Pod | None, new: Pod | None) -> None:
        stays = old is not None and new is not None and old.metadata.uid == new.metadata.uid and _is_placed(new)
        if old is not None:
            uid = old.metadata.uid
            self._pending.pop(old.key, None)
            self.nominated.drop(uid)
            placed = self.store.pod(uid)
            if self.store.groups.are_kept:
                self.store.groups.drop(placed if placed is not None else self.store.view(old))
            if placed is not None and not stays:
                self.store.remove_pod(uid)
        if new is None or new.status.phase in _OVER:
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

    def _show_node(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            self.store.put_node(new)
        elif old is not None:
            self.store.remove_node(old.metadata.name)

    def _show_object(self, kind: str, old: Any | None, new: Any | None) -> None:
        some = new if new is not None else old
        if some is None:
            return
        known_as = type(some) if type(some) in INFO else kind
        if new is not None:
            self.store.objects.put(new, known_as)
        else:
            self.store.objects.drop(known_as, some.metadata.name, some.metadata.namespace or "")

    def _waiting(self, key: str) -> PodView | None:
        return self._pending.get(key)


def _held_back(pod: Pod) -> tuple[Pod, Pod]:
    """Return a nominated pod, gated, in two versions: a gate keeps a new pod from being nominated, but not a known one."""
    replace = msgspec.structs.replace
    gates = (*pod.spec.scheduling_gates, PodSchedulingGate(name=HELD_BACK))
    gated = replace(pod, spec=replace(pod.spec, scheduling_gates=gates))
    status, metadata = replace(pod.status, nominated_node_name=""), replace(pod.metadata, resource_version="0")
    return replace(gated, status=status, metadata=metadata), gated


def _is_placed(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and pod.status.phase not in _OVER
