"""The pods of each node, most important first, as arrays: the order in which preemption puts them back.

A pod is more important if its priority is higher, and among equals if it started earlier. A pod that has not started is the
least important of its priority. A row is sorted when it is first read, and again after its pods changed, so an attempt pays
only for the rows that it reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import inf

import numpy as np
import numpy.typing as npt

from kubesched.kube.api import parse_time
from kubesched.scheduler.cluster import Bools, Change, Codes, Ints, Objects, PodView, Reader, Snapshot
from kubesched.scheduler.framework import TemplateNumbers

Floats = npt.NDArray[np.float64]

MOST_PODS = 256
"""Rows with more pods are not kept as arrays, because the fullest row sets the length of all lines."""
_NOBODY = np.int64(1) << np.int64(40)
"""The priority of an empty place: higher than any real one."""


@lru_cache(maxsize=1 << 14)
def _seconds(text: str) -> float:
    return parse_time(text)


def started_at(pod: PodView) -> float:
    """Return when a pod started, in seconds since the epoch; infinity if it has not started."""
    text = pod.pod.status.start_time
    return _seconds(text) if text else inf


def most_important_first(pods: Iterable[PodView], *, reverses_unstarted: bool = False) -> list[PodView]:
    """Return the pods of a node, sorted. Pods that have not started keep the node's order.

    `reverses_unstarted`: in reverse order, as before 1.37. There kube-scheduler took the current time as the start of such a
    pod, anew in each comparison, so the pod that was compared first counted as the older one.
    """
    keyed = []
    for at, pod in enumerate(pods):
        started = started_at(pod)
        keyed.append((-pod.priority, started, -at if reverses_unstarted and started == inf else at, pod))
    keyed.sort()
    return [pod for *_, pod in keyed]


@dataclass(frozen=True, slots=True)
class Lines:
    """The pods below a priority, most important first: one line a row, short lines filled with slot -1 and number 0."""

    slots: Codes
    numbers: Codes
    priority: Ints
    started: Floats
    count: Ints


class Importance:
    """The sorted pods of all rows; one object for each store."""

    def __init__(self, objects: Objects) -> None:
        self.book = TemplateNumbers()
        self.reverses_unstarted = False
        self._reader: Reader[Change] = Reader()
        self._reordered: Reader[int] = Reader()
        self._ordered: Bools = np.zeros(0, dtype=np.bool_)
        self._size: Codes = np.zeros(0, dtype=np.int32)
        self._members: Codes = np.zeros((0, 8), dtype=np.int32)
        # By slot. The last element is for an empty place, whose slot is -1.
        self._priority: Ints = np.full(1, _NOBODY)
        self._started: Floats = np.full(1, inf)
        self._number: Codes = np.zeros(1, dtype=np.int32)

    def follow(self, nodes: Snapshot) -> None:
        """Note the rows whose pods changed."""
        changes, reordered = self._reader.changed(nodes.journal), self._reordered.changed(nodes.slots.reordered)
        if changes is not None and reordered is not None:
            for row in (*(change.row for change in changes), *reordered):
                self._ordered[row] = False
            return
        # The journal is too short, or nodes came or went: sort every row again when it is read. The arrays by slot are
        # rewritten by `_order`, so what they hold of old slots does no harm.
        self._ordered = np.zeros(nodes.total, dtype=np.bool_)
        if len(self._size) != nodes.total:
            self._size = np.zeros(nodes.total, dtype=np.int32)
            self._members = np.full((nodes.total, self._members.shape[1]), -1, dtype=np.int32)

    def order(self, rows: Ints, nodes: Snapshot) -> None:
        """Sort those rows that are not sorted."""
        waiting = rows[~self._ordered[rows]]
        if not len(waiting):
            return
        n_slots = len(nodes.slots.views)
        if n_slots >= len(self._priority):
            self._make_room(n_slots)
        whole = nodes.everything()
        for row in waiting.tolist():
            self._order(row, most_important_first(whole.pods_on(row), reverses_unstarted=self.reverses_unstarted))
        self._ordered[waiting] = True

    def _order(self, row: int, pods: list[PodView]) -> None:
        """Sort the pods of one row. The arrays by slot get the pods' priority, start and template number, so that `below`
        needs no pod objects."""
        size = self._size[row] = len(pods)
        if size > MOST_PODS:
            return
        # Columns double: 8, 16, 32, ... up to 256. What a row does not use is slot -1, which reads the last element of
        # the arrays by slot: a priority above all (so it is never "below"), and number 0.
        while size > self._members.shape[1]:
            self._members = np.concatenate((self._members, np.full_like(self._members, -1)), axis=1)
        slots = [pod.slot for pod in pods]
        self._members[row, :size] = slots
        self._members[row, size:] = -1
        if slots:
            self._priority[slots] = [pod.priority for pod in pods]
            self._started[slots] = [started_at(pod) for pod in pods]
            self._number[slots] = [self.book.number(pod.template) for pod in pods]

    def _make_room(self, n_slots: int) -> None:
        # At least double, so that a growing cluster copies each element a constant number of times. What was the last
        # element, for the empty place, becomes an ordinary one; the new last one has the same values.
        more = max(n_slots + 1 - len(self._priority), len(self._priority))
        self._priority = np.append(self._priority, np.full(more, _NOBODY))
        self._started = np.append(self._started, np.full(more, inf))
        self._number = np.append(self._number, np.zeros(more, dtype=np.int32))

    def is_crowded(self, rows: Ints) -> Bools:
        """Return which rows have more than MOST_PODS pods."""
        return self._size[rows] > MOST_PODS

    def below(self, rows: Ints, priority: int) -> Lines:
        """Return the pods of lower priority on rows that are sorted and not crowded."""
        width = int(self._size[rows].max(initial=0))
        members = self._members[rows, :width] if width else np.zeros((len(rows), 0), dtype=np.int32)
        lower = self._priority[members] < priority
        count = np.count_nonzero(lower, axis=1)
        longest = int(count.max(initial=0))
        # Lines are sorted by falling priority, so the pods below it are the tail. Move each tail to the front of its line:
        # size 5, 2 pods below -> take the places 3 and 4, and one place of padding for each longer tail.
        at = (self._size[rows] - count)[:, None] + np.arange(longest)
        padded: Codes = np.concatenate((members, np.full((len(rows), longest), -1, dtype=np.int32)), axis=1)
        slots: Codes = np.take_along_axis(padded, at, axis=1)
        return Lines(slots, self._number[slots], self._priority[slots], self._started[slots], count)

    def pods(self, row: int, priority: int, nodes: Snapshot) -> list[PodView]:
        """Return the pods of lower priority on one row, sorted; for crowded rows too."""
        if self._ordered[row] and self._size[row] <= MOST_PODS:
            views = nodes.slots.views
            there = (views[slot] for slot in self._members[row, : self._size[row]].tolist())
            return [pod for pod in there if pod is not None and pod.priority < priority]
        lower = (pod for pod in nodes.everything().pods_on(row) if pod.priority < priority)
        return most_important_first(lower, reverses_unstarted=self.reverses_unstarted)
