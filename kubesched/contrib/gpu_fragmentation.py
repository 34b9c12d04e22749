"""FGDScore: place a pod where it adds least to the fragmentation of GPUs (fragmentation gradient descent).

The fragmentation of a node is the part of its idle GPUs that a typical pod cannot use, as a mean over `typicalPods`. A pod that
does not fit, or needs no GPU, can use nothing; another pod cannot use the GPUs with too little left for it:

    idle per GPU: 300, 700      typical pods: half need 500 of one GPU, half need 200
    the first cannot use 300, the second can use both      fragmentation: 0.5 * 300 + 0.5 * 0 = 150
    a pod of 500 on the second GPU: idle 300, 200, the first pod fits no more: 0.5 * 500 + 0.5 * 0 = 250, so 100 more

Weng et al., "Beware of fragmentation" (2023). The score of a row changes only with its pods, so it is cached for each size of
request, and only changed rows are worked out again.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kubesched.contrib.gpu_table import MODEL, WHOLE, GpuRequest, GpuTable, request_of, table_of
from kubesched.scheduler.cluster import CPU, Bools, Ints
from kubesched.scheduler.config import Args, FieldError, Gates, Int64, Path, Wire, invalid, required
from kubesched.scheduler.framework import CycleState, Handle, Plugin, PodView, Snapshot

Floats = npt.NDArray[np.float64]
_MOST_KEPT = 2048
_AT_ONCE = 256
"""Rows that are computed at once: more do not fit into the processor's cache."""


class TypicalPod(Wire, frozen=True, rename="camel"):
    """A typical pod: cpu in thousandths, number of GPUs, thousandths of each, accepted models, and its frequency."""

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


class Fragmentation:
    """The fragmentation by the typical pods, for many nodes at once."""

    def __init__(self, typical: Sequence[TypicalPod]) -> None:
        # One entry for each typical pod. Tables over all amounts 0 to 1000 replace comparisons: `useless[left]` reads,
        # for each GPU, what each typical pod loses on it.
        self.cpu = np.array([pod.cpu_milli for pod in typical])
        self.count = np.array([pod.gpu_count for pod in typical])
        self.models = [frozenset(pod.gpu_models) for pod in typical]
        self.frequency = np.array([pod.frequency for pod in typical])
        milli, amounts = np.array([pod.gpu_milli for pod in typical]), np.arange(WHOLE + 1)[:, None]
        self.usable = (amounts >= milli).astype(np.int64)
        """[amount left on a GPU, typical pod]: whether the pod can use it; `useless` has the amount if it cannot."""
        self.useless = amounts * (amounts < milli)

    def access(self, models: Sequence[str | None]) -> Bools:
        """Return for each GPU model which typical pods need GPUs and accept the model."""
        pairs = list(zip(self.models, self.count.tolist(), strict=True))
        return np.array([[count > 0 and (not wanted or model in wanted) for wanted, count in pairs] for model in models])

    def amount(self, idle: Ints, useless: Ints, usable: Ints, cpu: Ints, access: Bools) -> Floats:
        """Return the fragmentation in thousandths of GPUs, by row and alternative."""
        # Axes: (row, alternative, typical pod). `idle` and the others are (row, alternative); `useless` and `usable`
        # already have the typical pods as their last axis. The product with `frequency` takes the mean over the typical
        # pods.
        fits = (usable >= self.count) & (access & (cpu[:, None] >= self.cpu))[:, None]
        lost: Floats = np.where(fits, useless, idle[:, :, None]) @ self.frequency
        return lost

    def of(self, left: Ints, cpu: Ints, access: Bools) -> Floats:
        """Return the fragmentation of nodes as they are."""
        useless, usable = self.useless[left].sum(axis=1)[:, None], self.usable[left].sum(axis=1)[:, None]
        return self.amount(left.sum(axis=1)[:, None], useless, usable, cpu, access)


def typical_pods(requests: Iterable[tuple[int, GpuRequest]], coverage: float = 0.95) -> list[TypicalPod]:
    """Return the most frequent kinds of (cpu, GPU request), as many as cover this share of all requests."""
    counts, chosen, covered = Counter(requests), [], 0
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0][0], each[0][1].count, each[0][1].milli))
    for kind, count in ranked:
        chosen.append((kind, count))
        covered += count
        if covered >= coverage * counts.total():
            break
    return [TypicalPod(cpu, gpu.count, gpu.milli, tuple(sorted(gpu.models)), count / covered) for (cpu, gpu), count in chosen]


class _Kept(NamedTuple):
    """The scores of all rows for one size of request, and the position in the table's log up to which they are current."""

    scores: Ints
    log: list[int]
    read: list[int]


class FGDScore(Plugin):
    Args = FGDScoreArgs

    def __init__(self, args: FGDScoreArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.table: GpuTable = table_of(handle.objects)
        self.table.choosers[self.name] = self._choose
        self._fragmentation = Fragmentation(args.typical_pods)
        self._kept: OrderedDict[tuple[GpuRequest, int], _Kept] = OrderedDict()

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        self.table.refresh(nodes)
        kept = self._refreshed((request_of(pod.pod), dict(pod.requests).get(CPU, 0)), nodes.everything())
        return kept.scores if nodes.rows is None else kept.scores[nodes.rows]

    def _refreshed(self, asked: tuple[GpuRequest, int], whole: Snapshot) -> _Kept:
        """Return the scores for a size of request, with the changed rows worked out again."""
        # The log is compared by identity: a new list means that rows were renumbered or the log became too long, and
        # everything is worked out again.
        log, kept = self.table.changed, self._kept.get(asked)
        if kept is None or kept.log is not log:
            kept = _Kept(np.zeros(whole.n, dtype=np.int64), log, [0])
            rows = np.arange(whole.n)
        else:
            rows = np.unique(np.array(log[kept.read[0] :], dtype=np.int64))
        # For a share of a GPU the row has a score for each GPU; the node gets the best of them, and `_choose` takes
        # that GPU.
        for start in range(0, len(rows), _AT_ONCE):
            some = rows[start : start + _AT_ONCE]
            kept.scores[some] = self._worked_out(asked, some, whole.take(some).free(CPU), whole).max(axis=1)
        kept.read[0] = len(log)
        self._kept[asked] = kept
        self._kept.move_to_end(asked)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return kept

    def _worked_out(self, asked: tuple[GpuRequest, int], rows: Ints, cpu: Ints, whole: Snapshot) -> Ints:
        """Return the scores of some rows with this free cpu; for a share of a GPU, one score for each GPU that it may get."""
        (request, cpu_asked), left, sums = asked, self.table.left[rows], self._fragmentation
        label = whole.label(MODEL)
        models = [*(label.values.values if label is not None else ()), None]  # the last is for nodes without the label
        access = sums.access(models)[whole.codes(MODEL)[rows]]
        idle, has_room = left.sum(axis=1)[:, None], left >= request.milli
        useless, usable = sums.useless[left].sum(axis=1)[:, None], sums.usable[left].sum(axis=1)[:, None]
        before = sums.amount(idle, useless, usable, cpu, access)
        # A share of a GPU has as many alternatives as the node has GPUs, and each changes one GPU. So the sums are
        # corrected by that GPU alone: sum - useless(before) + useless(after).
        if request.count == 1 and request.milli < WHOLE:  # one alternative for each GPU
            then = np.maximum(left - request.milli, 0)
            useless = useless - sums.useless[left] + sums.useless[then]
            usable = usable - sums.usable[left] + sums.usable[then]
        else:
            # Whole GPUs: the first `count` with room are taken. `cumsum` numbers those with room, 1 for the first.
            then = left - request.milli * (has_room & (np.cumsum(has_room, axis=1) <= request.count))
            useless, usable = sums.useless[then].sum(axis=1)[:, None], sums.usable[then].sum(axis=1)[:, None]
        after = sums.amount(idle - request.count * request.milli, useless, usable, cpu - cpu_asked, access)
        # A logistic curve: no change scores 50, less fragmentation more, 1 GPU more scores 100 / (1 + e) = 26.
        scores = (100 / (1 + np.exp((after - before) / 1000))).astype(np.int64)
        if scores.shape[1] > 1:
            scores = np.where(has_room, scores, 0)
        return scores

    def _choose(self, pod: PodView, asked: GpuRequest, row: int) -> tuple[int, ...]:
        """Choose the GPU with the best score for a share, the first free ones for whole GPUs."""
        whole, has_room, cpu = self.table.nodes, self.table.left[row] >= asked.milli, dict(pod.requests).get(CPU, 0)
        if asked.count > 1 or asked.milli == WHOLE or not has_room.any() or whole is None:
            return tuple(np.flatnonzero(has_room)[: asked.count].tolist())
        free = whole.take([row]).free(CPU) + cpu  # the pod is booked already
        scores = self._worked_out((asked, cpu), np.array([row]), free, whole)[0]
        return (int(np.where(has_room, scores, -1).argmax()),)
