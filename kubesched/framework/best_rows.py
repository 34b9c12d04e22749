"""Which rows have the highest total, followed from one pod of a class to the next.

In: totals that remember which of them changed. Out: how many rows are level at the top, and the
first of them from any row on, for the price of the rows that changed. When the last one drops out, or too many rows changed,
all totals are looked at again.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster import Ints
from kubesched.cluster.changelog import Reader
from kubesched.framework.tracked import Tracked

_FEW = 64


class BestRows:
    """The rows of the highest total."""

    __slots__ = ("_first", "_mask", "_reader", "_totals", "best", "count")

    def __init__(self, totals: Tracked) -> None:
        self._totals = totals
        self._reader: Reader[int] = Reader()
        self._mask = bytearray(len(totals.values))
        self.best = self.count = self._first = 0

    def _look_at_all(self) -> None:
        totals: Ints = self._totals.values
        self.best = totals.item(totals.argmax())
        level = np.equal(totals, self.best, out=np.frombuffer(self._mask, dtype=np.bool_))
        self.count = int(np.count_nonzero(level))
        self._first = 0
        """No row before this one is level."""

    def refresh(self) -> None:
        """Take in which rows changed since the last time."""
        changed = self._reader.changed(self._totals.changes)
        if changed is None or len(changed) > _FEW:
            self._look_at_all()
            return
        best, mask, totals = self.best, self._mask, self._totals.values
        for row in changed:
            total = totals.item(row)
            if total > best:
                self._look_at_all()
                return
            is_level = total == best
            if is_level != mask[row]:
                mask[row] = is_level
                self.count += 1 if is_level else -1
                if is_level and row < self._first:
                    self._first = row
        if not self.count:
            self._look_at_all()

    def first_from(self, row: int) -> int:
        """Return the first row from a row on, going round, that is level."""
        found = self._mask.find(1, row)
        return found if found >= 0 else self._mask.find(1)

    def first_beside(self, row: int) -> int:
        """Return the first row that is level, other than this one; -1 if there is none."""
        first, mask = self._first, self._mask
        if not mask[first]:
            first = self._first = mask.find(1, first)
        return mask.find(1, row + 1) if first == row else first
