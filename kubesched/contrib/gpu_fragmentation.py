"""FGDScore: place a pod where it makes the least more of the idle GPUs useless (fragmentation gradient descent).

Weng et al., "Beware of fragmentation" (2023). `typicalPods` says what pods are like and how frequent. A node's fragmentation is
what is idle of its GPUs and could not be used, on average over these pods: all of it by a pod that does not fit or has
no use for GPUs, otherwise the GPUs that have too little left for it. The score falls with what the pod would add to it.

A row's score changes only when its pods do, so that it is kept for every size of request and worked out again for the rows that
changed since.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kubesched.cluster import CPU, Bools, Ints
from kubesched.config import Args
from kubesched.config.fielderrors import FieldError, Path, invalid, required
from kubesched.config.gates import Gates
from kubesched.config.wire import Int64, Wire
from kubesched.contrib.gpu_table import MODEL, WHOLE, GpuRequest, GpuTable, request_of, table_of
from kubesched.framework import CycleState, Plugin, PodView, Snapshot
from kubesched.framework.ports import Handle

Floats = npt.NDArray[np.float64]
_MOST_KEPT = 2048
_AT_ONCE = 256
"""Rows that are worked out in one expression: more would not fit into the processor's cache."""


class TypicalPod(Wire, frozen=True, rename="camel"):
    """A kind of pod: cpu in thousandths, GPUs, thousandths of each, models that will do, and how frequent it is."""

    cpu_milli: Int64 = 0
    gpu_count: Int64 = 0
    gpu_milli: Int64 = 0
    gpu_models: tuple[str, ...] = ()
    frequency: float = 0.0


class FGDScoreArgs(Args, frozen=True, rename="camel"):
    typical_pods: tuple[TypicalPod, ...] = ()

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        where = path.child("typicalPods")
        if not self.typical_pods:
            return [required(where, "what pods are like must be said")]
        errors = []
        for i, pod in enumerate(self.typical_pods):
            if not 0 < pod.frequency <= 1:
                errors.append(invalid(where.index(i).child("frequency"), pod.frequency, "not in valid range (0, 1]"))
            if not 0 <= pod.gpu_milli <= WHOLE:
                errors.append(invalid(where.index(i).child("gpuMilli"), pod.gpu_milli, f"not in valid range [0, {WHOLE}]"))
        return errors


class _Kept(NamedTuple):
    """The scores of all rows for one size of request, the GPU that gives each, and how much of the table's log they know."""

    scores: Ints
    cards: Ints
    log: list[int]
    read: list[int]


class FGDScore(Plugin):
    Args = FGDScoreArgs

    def __init__(self, args: FGDScoreArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.table: GpuTable = table_of(handle.objects)
        self.table.choosers[self.name] = self._choose
        typical = args.typical_pods
        self._cpu = np.array([pod.cpu_milli for pod in typical])
        self._milli = np.array([pod.gpu_milli for pod in typical])
        self._count = np.array([pod.gpu_count for pod in typical])
        self._frequency = np.array([pod.frequency for pod in typical])
        self._models = [frozenset(pod.gpu_models) for pod in typical]
        amounts = np.arange(WHOLE + 1)[:, None]
        self._usable = (amounts >= self._milli).astype(np.int64)
        """By what is left of a GPU and by typical pod, whether the pod could use it; below, how much of it is of no use."""
        self._useless = amounts * (amounts < self._milli)
        self._kept: OrderedDict[tuple[GpuRequest, int], _Kept] = OrderedDict()
        self._asked: tuple[GpuRequest, int] = (GpuRequest(), 0)

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        self.table.refresh(nodes)
        self._asked = (request_of(pod.pod), dict(pod.requests).get(CPU, 0))
        kept = self._refreshed(self._asked, nodes.everything())
        return kept.scores if nodes.rows is None else kept.scores[nodes.rows]

    def _refreshed(self, asked: tuple[GpuRequest, int], whole: Snapshot) -> _Kept:
        log, kept = self.table.changed, self._kept.get(asked)
        if kept is None or kept.log is not log:
            kept = _Kept(np.zeros(whole.n, dtype=np.int64), np.zeros(whole.n, dtype=np.int64), log, [0])
            rows = np.arange(whole.n)
        else:
            rows = np.unique(np.array(log[kept.read[0] :], dtype=np.int64))
        for start in range(0, len(rows), _AT_ONCE):
            some = rows[start : start + _AT_ONCE]
            kept.scores[some], kept.cards[some] = self._worked_out(asked, some, whole)
        kept.read[0] = len(log)
        self._kept[asked] = kept
        self._kept.move_to_end(asked)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return kept

    def _worked_out(self, asked: tuple[GpuRequest, int], rows: Ints, whole: Snapshot) -> tuple[Ints, Ints]:
        """Return the scores of some rows, and on which GPU a share of one would lie best (the lowest of the best)."""
        request, cpu_asked = asked
        left, cpu, access = self.table.left[rows], whole.take(rows).free(CPU), self._access(whole, rows)
        idle, has_room = left.sum(axis=1)[:, None], left >= request.milli
        useless, usable = self._useless[left].sum(axis=1)[:, None], self._usable[left].sum(axis=1)[:, None]
        before = self._fragmentation(idle, useless, usable, cpu, access)
        if request.count == 1 and request.milli < WHOLE:  # as many worlds as GPUs that it might get: one GPU changes in each
            then = np.maximum(left - request.milli, 0)
            useless = useless - self._useless[left] + self._useless[then]
            usable = usable - self._usable[left] + self._usable[then]
        else:
            then = left - request.milli * (has_room & (np.cumsum(has_room, axis=1) <= request.count))
            useless, usable = self._useless[then].sum(axis=1)[:, None], self._usable[then].sum(axis=1)[:, None]
        after = self._fragmentation(idle - request.count * request.milli, useless, usable, cpu - cpu_asked, access)
        scores = (100 / (1 + np.exp((after - before) / 1000))).astype(np.int64)
        if scores.shape[1] > 1:
            scores = np.where(has_room, scores, 0)
        return scores.max(axis=1), scores.argmax(axis=1)

    def _fragmentation(self, idle: Ints, useless: Ints, usable: Ints, cpu: Ints, access: Bools) -> Floats:
        """Return what is idle and of no use to an average pod, by row and world."""
        fits = (usable >= self._count) & (access & (cpu[:, None] >= self._cpu))[:, None]
        lost: Floats = np.where(fits, useless, idle[:, :, None]) @ self._frequency
        return lost

    def _access(self, whole: Snapshot, rows: Ints) -> Bools:
        """Return which of the typical pods want GPUs, and such as the rows have."""
        label = whole.label(MODEL)
        values = [*(label.values.values if label is not None else ()), None]  # the last is for nodes without the label
        will_do = np.array(
            [
                [count > 0 and (not models or value in models) for models, count in zip(self._models, self._count, strict=True)]
                for value in values
            ]
        )
        column: Bools = will_do[whole.codes(MODEL)[rows]]
        return column

    def _choose(self, asked: GpuRequest, left: Ints, row: int) -> tuple[int, ...]:
        """Choose the GPU that the score was given for, or the first that are whole."""
        if asked.count == 1 and asked.milli < WHOLE and self._asked[0] == asked:
            return (int(self._kept[self._asked].cards[row]),)
        return tuple(np.flatnonzero(left >= asked.milli)[: asked.count].tolist())
