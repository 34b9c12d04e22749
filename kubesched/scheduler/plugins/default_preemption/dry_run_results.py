"""What evicting pods would bring on each node, as columns.

One row a node: whether the pod would fit after an eviction, and what that eviction would be like; or why not. Rows are
filled in when they are asked for. Pods of one class share their results, and a change makes only those rows unknown again
that it concerns, so that thousands of preemptors of one kind pay for a node once.
"""

from __future__ import annotations

import numpy as np

from kubesched.scheduler.cluster import Bools, Change, Codes, Ints, Reader, Snapshot
from kubesched.scheduler.framework import NominatedByRow
from kubesched.scheduler.plugins.default_preemption.budgets import Budgets
from kubesched.scheduler.plugins.default_preemption.importance import MOST_PODS, Floats

UNKNOWN, CANDIDATE, ERROR = 0, -1, -2
PRIORITY_OFFSET = 1 << 31
"""Added to every victim's priority, so that fewer victims are better even where priorities are negative."""


class DryRunResults:
    """The columns. `outcome` is UNKNOWN, CANDIDATE, ERROR, or the number of the reasons against the node."""

    def __init__(self, n: int) -> None:
        self.outcome: Codes = np.zeros(n, dtype=np.int64)
        self.violations: Ints = np.zeros(n, dtype=np.int64)
        self.top_priority: Ints = np.zeros(n, dtype=np.int64)
        self.total_priority: Ints = np.zeros(n, dtype=np.int64)
        self.n_victims: Ints = np.zeros(n, dtype=np.int64)
        self.started: Floats = np.zeros(n)
        self._gone = np.zeros((n, 1), dtype=np.uint8)
        self._crowds: dict[int, Bools] = {}
        self._selected: Bools = np.zeros(n, dtype=np.bool_)
        self.reasons: dict[tuple[str, ...], int] = {}
        """The numbers of reasons, from 1 on."""
        self.errors: dict[int, str] = {}
        self._seen: tuple[int, tuple[int, ...]] | None = None
        self._journal: Reader[Change] = Reader()
        self._reordered: Reader[int] = Reader()
        self._nominated: Reader[int] = Reader()
        self._version = 0

    # Filling in

    def refuse(self, rows: Ints | int, reasons: tuple[str, ...]) -> None:
        """Write down why evictions would not help on some rows."""
        self.outcome[rows] = self.reasons.setdefault(reasons, len(self.reasons) + 1)

    def fail(self, row: int, text: str) -> None:
        """Write down that it could not be found out what an eviction would bring."""
        self.outcome[row] = ERROR
        self.errors[row] = text

    def accept(self, rows: Ints, gone: Bools, priority: Ints, started: Floats, charged: tuple[Bools, Bools] | None) -> None:
        """Write down who would have to go from some rows, of the pods below the preemptor's priority, most important first:
        one line a row. `charged` says who of them violates a budget, and which rows have pods that any selects."""
        line, first = np.arange(len(rows)), gone.argmax(axis=1)
        self.outcome[rows] = CANDIDATE
        self.violations[rows] = 0 if charged is None else np.count_nonzero(gone & charged[0], axis=1)
        self.top_priority[rows] = priority[line, first]
        self.total_priority[rows] = np.where(gone, priority + PRIORITY_OFFSET, 0).sum(axis=1)
        self.started[rows] = started[line, first]
        self.n_victims[rows] = np.count_nonzero(gone, axis=1)
        if charged is not None:
            self._selected[rows] = charged[1]
        if gone.shape[1] > MOST_PODS:
            self._crowds.update(zip(rows.tolist(), gone, strict=True))
            return
        packed = np.packbits(gone, axis=1)
        width = packed.shape[1]
        if width > self._gone.shape[1]:
            wider = np.zeros((len(self._gone), width), dtype=np.uint8)
            wider[:, : self._gone.shape[1]] = self._gone
            self._gone = wider
        self._gone[rows, :width] = packed
        self._gone[rows, width:] = 0

    def victims(self, row: int) -> list[int]:
        """Return the ranks of a candidate's victims among the pods below the preemptor's priority."""
        gone = self._crowds.get(row)
        if gone is None:
            gone = np.unpackbits(self._gone[row]).astype(np.bool_)
        ranks: list[int] = np.flatnonzero(gone).tolist()
        return ranks

    # Staying true

    def follow(self, nodes: Snapshot, coming: NominatedByRow, budgets: Budgets, versions: tuple[int, ...]) -> bool:
        """Forget the rows that something happened to since the last time; False if that is all of them and more.

        `versions` are those of the other objects that the filters read.
        """
        seen = budgets.meaning, versions
        changes, nominated = self._journal.changed(nodes.journal), self._nominated.changed(coming.changes)
        reordered = self._reordered.changed(nodes.slots.reordered)
        if seen != self._seen or changes is None or nominated is None or reordered is None:
            self._seen, self._version = seen, budgets.version
            return False
        for row in (*(change.row for change in changes), *nominated, *reordered):
            self.forget(row)
        if budgets.version != self._version:
            self.outcome[self._selected] = UNKNOWN
            self._selected[:] = False
            self._version = budgets.version
        return True

    def forget(self, row: int) -> None:
        """Make a row unknown again."""
        self.outcome[row] = UNKNOWN
        self.errors.pop(row, None)
        self._crowds.pop(row, None)
