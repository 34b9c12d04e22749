"""What is left of every GPU of every node, for pods that request a share of one GPU or several whole GPUs.

The names are those of Alibaba's GPU share device plugin:

    node    status.allocatable alibabacloud.com/gpu-count: 2            label alibabacloud.com/gpu-card-model: V100
    pod     annotations alibabacloud.com/gpu-count: 1, gpu-milli: 300 (of each GPU), gpu-card-model: V100|T4 (accepted models)

The table has a row for each node and a column for each GPU. There is one for each cluster, which all profiles and policies
read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kubesched.kube.api import Pod
from kubesched.scheduler.cluster import NODE, Bools, Change, Ints, Objects, PodView, Reader, Snapshot

COUNT = "alibabacloud.com/gpu-count"
MILLI = "alibabacloud.com/gpu-milli"
MODEL = "alibabacloud.com/gpu-card-model"
INDEX = "alibabacloud.com/gpu-index"
"""The annotation of a placed pod: the numbers of its GPUs, as `0-1`."""
WHOLE = 1000
MOST_CHANGES = 1 << 16
"""The length of the log of changes at which it starts again. To work all rows out again is rare then."""


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """The request of a pod: number of GPUs, thousandths of each, accepted models (none: all)."""

    count: int = 0
    milli: int = 0
    models: frozenset[str] = frozenset()

    @property
    def shape(self) -> int:
        """Return 0 for a share of a GPU, else the number of GPUs."""
        return 0 if self.milli < WHOLE else self.count


NO_GPU = GpuRequest()


class BadRequest(ValueError):
    """An annotation is invalid."""


def request_of(pod: Pod) -> GpuRequest:
    """Return the request of a pod; raise BadRequest with the name of an invalid annotation."""
    annotations = pod.metadata.annotations
    if not annotations or COUNT not in annotations:
        return NO_GPU
    return _parsed(annotations[COUNT], annotations.get(MILLI, str(WHOLE)), annotations.get(MODEL, ""))


@lru_cache(maxsize=4096)
def _parsed(count: str, milli: str, models: str) -> GpuRequest:
    # Annotations are free text: a bound for the length keeps `int` from reading a million digits.
    for name, text, most in ((COUNT, count, 1 << 20), (MILLI, milli, WHOLE)):
        if not text.isdecimal() or len(text) > 7 or not 0 <= int(text) <= most:
            raise BadRequest(f"annotation {name} must be a whole number up to {most}, found {text[:40]!r}")
    if int(count) > 1 and int(milli) != WHOLE:
        raise BadRequest(f"annotation {MILLI} must be {WHOLE} where {COUNT} is more than 1, found {milli!r}")
    if not int(count) or not int(milli):
        return NO_GPU
    return GpuRequest(int(count), int(milli), frozenset(filter(None, models.split("|"))))


Chooser = Callable[[PodView, GpuRequest, int], tuple[int, ...]]
"""(assumed pod, request, row) -> the GPUs of the pod; fewer than requested if it does not fit."""


class GpuTable:
    """The table. `changed` is a log of rows whose pods changed, for policies that cache scores. A new list replaces it when
    the readers must work out all rows again."""

    def __init__(self, objects: Objects) -> None:
        self.left: Ints = np.zeros((0, 1), dtype=np.int64)
        self.count: Ints = np.zeros(0, dtype=np.int64)
        self.shapes: Ints = np.zeros((0, 2), dtype=np.int64)
        """The number of pods by shape: shares in column 0, pods with k GPUs in column k."""
        self.choosers: dict[str, Chooser] = {"best": lambda pod, asked, row: fullest(asked, self.left[row])}
        self.changed: list[int] = []
        self.promised: dict[str, tuple[int, ...]] = {}
        self._held: dict[str, tuple[int, GpuRequest, tuple[int, ...]]] = {}
        self._reader: Reader[Change] = Reader()
        self.nodes: Snapshot | None = None
        """The cluster as of the last refresh."""

    def row(self, node_name: str) -> int:
        """Return a node's row, as of the last refresh; -1 if it is not there."""
        return self.nodes.row(node_name) if self.nodes is not None else -1

    def refresh(self, nodes: Snapshot) -> None:
        """Follow the changes of the cluster since the last call."""
        if self._reader.is_current(nodes.journal):
            return
        whole, changes = nodes.everything(), self._reader.changed(nodes.journal)
        if changes is None or any(change.what & NODE for change in changes):
            self._rebuild(whole)
        else:
            # A pod whose object changed leaves and comes back in one list of changes; its promise must stay. So
            # promises go only for pods that have not come back at the end.
            gone: set[str] = set()
            for change in changes:
                pod = change.pod
                self.changed.append(change.row)
                if pod is None:
                    continue
                if change.sign > 0:
                    self._put(change.row, pod)
                    gone.discard(pod.uid)
                else:
                    self._take(pod.uid)
                    gone.add(pod.uid)
            for uid in gone:
                self.promised.pop(uid, None)
            if len(self.changed) > MOST_CHANGES:
                self.changed = []
        self.nodes = whole

    def _rebuild(self, whole: Snapshot) -> None:
        resource = whole.resource(COUNT)
        self.count = whole.allocatable(resource).copy()
        width = max(int(self.count.max(initial=0)), 1)
        # GPUs that a node does not have are columns with 0 left. Then no request fits them, and nothing else must be
        # checked.
        self.left = np.where(np.arange(width) < self.count[:, None], WHOLE, 0)
        self.shapes = np.zeros((whole.n, width + 1), dtype=np.int64)
        self.changed, self._held = [], {}
        for row in range(whole.n):
            for pod in whole.pods_on(row):
                self._put(row, pod)

    def _put(self, row: int, pod: PodView) -> None:
        asked, cards = self.held_by(pod, self.left[row])
        if asked.count:
            self._held[pod.uid] = row, asked, cards
            self.left[row, list(cards)] -= asked.milli
            self.shapes[row, asked.shape] += 1

    def held_by(self, pod: PodView, left: Ints) -> tuple[GpuRequest, tuple[int, ...]]:
        """Return the request of a placed pod and its GPUs; if these are not known, those that it would get with `left`."""
        if pod.uid in self._held:
            return self._held[pod.uid][1:]
        try:
            asked = request_of(pod.pod)
        except BadRequest:
            return NO_GPU, ()
        if not asked.count or asked.count > len(left):
            return NO_GPU, ()
        # In this order: what Reserve chose, what the annotation says, and for a pod placed by something else the
        # fullest GPUs with room.
        cards = self.promised.get(pod.uid) or _assigned(pod.pod) or fullest(asked, left)
        return asked, tuple(card for card in cards if card < len(left))

    def _take(self, uid: str) -> None:
        held = self._held.pop(uid, None)
        if held is not None:
            row, asked, cards = held
            self.left[row, list(cards)] += asked.milli
            self.shapes[row, asked.shape] -= 1

    def fits(self, asked: GpuRequest, left: Ints) -> Bools:
        """Return on which nodes enough GPUs have enough left."""
        # `left` is (row, GPU), or one line of it for each node of a view. A node with 300 and 700 left fits one pod of
        # 500, not one that needs two GPUs.
        fits: Bools = np.count_nonzero(left >= asked.milli, axis=1) >= asked.count
        return fits


def rows_of(column: Ints, nodes: Snapshot) -> Ints:
    """Return the part of a column that a view has."""
    return column if nodes.rows is None else column[nodes.rows]


def fullest(asked: GpuRequest, left: Ints) -> tuple[int, ...]:
    """Choose the GPUs with the least left that is enough."""
    order = np.argsort(left, kind="stable")
    return tuple(order[left[order] >= asked.milli][: asked.count].tolist())


def _assigned(pod: Pod) -> tuple[int, ...]:
    index = (pod.metadata.annotations or {}).get(INDEX, "")
    return tuple(int(part) for part in index.split("-") if part.isdecimal() and len(part) < 5)


def table_of(objects: Objects, nodes: Snapshot | None = None) -> GpuTable:
    """Return the cluster's table; with a view, brought up to date."""
    table = objects.shared(GpuTable)
    if nodes is not None:
        table.refresh(nodes)
    return table
