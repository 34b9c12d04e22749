"""Nominated pods by row: what would come to each node if all pods nominated to it came.

In: the nominations, a snapshot. Out: for each priority the rows with nominated pods of at least that priority, and the
resources of these pods as columns. Every attempt needs them, because a pod must fit beside them. With thousands of nominated
pods they are kept, and updated node by node from the log of the nominations.

Example: a pod of priority 10 is nominated to row 3, one of priority 5 to row 4. For a pod of priority 7 `above(7)` has row 3
only, because it may take the place of the pod with priority 5.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable

import numpy as np

from kubesched.scheduler.cluster import Bools, ChangeLog, Ints, Journal, Objects, PodTemplate, PodView, Reader, Snapshot
from kubesched.scheduler.framework.ports import Nominations
from kubesched.scheduler.framework.preemption.listed_pods import usage_of

_PRIORITIES = 16
"""Columns are kept for so many priorities. Pods of one cluster have few different ones."""


class NominatedAbove:
    """The pods of at least one priority that are nominated to each row, and what they ask for."""

    __slots__ = ("_rows", "count", "here", "pods", "priority", "usage", "with_ports")

    def __init__(self, priority: int, n: int) -> None:
        self.priority = priority
        self.pods: dict[int, tuple[PodView, ...]] = {}
        self.here: Bools = np.zeros(n, dtype=np.bool_)
        self.count: Ints = np.zeros(n, dtype=np.int64)
        self.usage: defaultdict[int, Ints] = defaultdict(lambda: np.zeros(n, dtype=np.int64))
        self.with_ports: set[int] = set()
        self._rows: Ints | None = None

    @property
    def rows(self) -> Ints:
        """Return the rows with nominated pods, in rising order."""
        if self._rows is None:
            self._rows = np.flatnonzero(self.here)
        return self._rows

    def write(self, row: int, pods: Iterable[PodView]) -> None:
        """Replace the pods of a row."""
        for pod in self.pods.pop(row, ()):
            self._use(row, pod.template, -1)
        coming = tuple(pod for pod in pods if pod.priority >= self.priority)
        for pod in coming:
            self._use(row, pod.template, 1)
        if coming:
            self.pods[row] = coming
        if bool(coming) != self.here[row]:
            self.here[row] = bool(coming)
            self._rows = None
        if any(pod.template.ports for pod in coming):
            self.with_ports.add(row)
        else:
            self.with_ports.discard(row)

    def _use(self, row: int, template: PodTemplate, sign: int) -> None:
        for resource, amount in usage_of(template):
            self.usage[resource][row] += sign * amount
        self.count[row] += sign


class NominatedByRow:
    """All nominated pods by row. One for each store, shared by its profiles; `changes` lists the rows that changed."""

    def __init__(self, objects: Objects) -> None:
        self.changes: ChangeLog[int] = ChangeLog()
        self._cluster: tuple[Journal, int] | None = None
        self._reader: Reader[str] = Reader()
        self._pods: dict[int, tuple[PodView, ...]] = {}
        self._row_of: dict[str, int] = {}
        self._levels: OrderedDict[int, NominatedAbove] = OrderedDict()
        self._n = 0

    def follow(self, nominations: Nominations, nodes: Snapshot) -> None:
        """Take in what changed in the nominations and in the cluster."""
        cluster, names = (nodes.journal, nodes.structure), self._reader.changed(nominations.changes)
        if names is None or cluster != self._cluster:
            self._cluster = cluster
            self._pods, self._row_of, self._n = {}, {}, nodes.total
            self._levels.clear()
            self.changes.restart()
            names = [*nominations.nodes()]
        for name in dict.fromkeys(names):
            self._read(name, nominations, nodes.everything())

    def _read(self, name: str, nominations: Nominations, whole: Snapshot) -> None:
        row = whole.row(name)
        if row < 0:
            return  # counted when the node appears: that changes the structure, and everything is read again
        for pod in self._pods.pop(row, ()):
            if self._row_of.get(pod.uid) == row:
                del self._row_of[pod.uid]
        pods = tuple(nominations.on_node(name))
        if pods:
            self._pods[row] = pods
            for pod in pods:
                self._row_of[pod.uid] = row
        for ahead in self._levels.values():
            ahead.write(row, pods)
        self.changes.append(row)

    def __bool__(self) -> bool:
        return bool(self._pods)

    def row_of(self, uid: str) -> int:
        """Return the row that a pod is nominated to, -1 for none."""
        return self._row_of.get(uid, -1)

    def above(self, priority: int) -> NominatedAbove:
        """Return the nominated pods of this priority or a higher one."""
        ahead = self._levels.get(priority)
        if ahead is None:
            ahead = self._levels[priority] = NominatedAbove(priority, self._n)
            for row, pods in self._pods.items():
                ahead.write(row, pods)
            while len(self._levels) > _PRIORITIES:
                self._levels.popitem(last=False)
        self._levels.move_to_end(priority)
        return ahead


def nominated_by_row(nodes: Snapshot, nominations: Nominations) -> NominatedByRow:
    """Return the nominated pods of a cluster by row, as they are now."""
    coming = nodes.objects.shared(NominatedByRow)
    coming.follow(nominations, nodes)
    return coming
