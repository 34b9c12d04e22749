"""Which rows have the highest total, how many they are, and who comes second to the one that is chosen.

In: the totals of all nodes: those of one attempt (`LevelRows`), or remembered ones that are followed from one pod of a class to
the next for the price of the rows that changed (`BestRows`). When the last of those drops out, or too many rows changed, all
totals are looked at again.
"""

from __future__ import annotations

import numpy as np

from kubesched.scheduler.cluster import Ints
from kubesched.scheduler.cluster.changelog import Reader
from kubesched.scheduler.framework.equivalence_cache.tracked import Tracked
from kubesched.scheduler.framework.runtime.feasible import REFUSED, FeasibleNodes

_FEW = 64


class LevelRows:
    """The rows of the highest total of one attempt; right for as long as the totals are."""

    __slots__ = ("_kept_by", "_totals", "best", "first")
    is_counted = False
    """Whether it is known how many they are, without looking at all of them once more."""

    def __init__(self, totals: Ints, kept_by: FeasibleNodes | None = None) -> None:
        """Where the totals are kept for the next pod, it is remembered there who came second: whoever has looked for it once
        need not look for the best the next time, as it is that row, or the leader still."""
        self._totals = totals
        self._kept_by = kept_by
        known = kept_by.runner_up if kept_by is not None else None
        if known is None:
            self.first = int(totals.argmax())
            self.best: int = totals.item(self.first)
            return
        leader, self.first, self.best = known
        lead = totals.item(leader)
        if lead > self.best or (lead == self.best and leader < self.first):
            self.first, self.best = leader, lead

    @property
    def count(self) -> int:
        """Return how many rows are level."""
        return int(np.count_nonzero(self._totals == self.best))

    def first_from(self, row: int) -> int:
        """Return the first row from a row on, going round, that is level."""
        first, totals = self.first, self._totals
        if first < row:  # the first of all lies behind: there may be another like it ahead
            ahead = row + int(totals[row:].argmax())
            if totals.item(ahead) == self.best:
                return ahead
        return first

    def second_to(self, row: int) -> tuple[int, int]:
        """Return the first row of the highest total beside a level row's, and that total; -1 and the best if there is none."""
        first, kept_by = self.first, self._kept_by
        if first != row:
            return first, self.best
        if kept_by is None:
            return _second(self._totals, row, self.best)
        known = kept_by.runner_up
        if known is not None and known[0] == row:
            return known[1], known[2]
        second, total = _second(self._totals, row, self.best)
        kept_by.runner_up = (row, second, total) if second >= 0 else None
        return second, total


class BestRows:
    """The same, followed."""

    __slots__ = ("_mask", "_reader", "_totals", "best", "count", "first")
    is_counted = True

    def __init__(self, totals: Tracked) -> None:
        self._totals = totals
        self._reader: Reader[int] = Reader()
        self._mask = bytearray(len(totals.values))
        self.best = self.count = self.first = 0

    def _look_at_all(self) -> None:
        totals: Ints = self._totals.values
        self.first = int(totals.argmax())
        self.best = totals.item(self.first)
        level = np.equal(totals, self.best, out=np.frombuffer(self._mask, dtype=np.bool_))
        self.count = int(np.count_nonzero(level))

    def refresh(self) -> None:
        """Take in which rows changed since the last time."""
        changed = self._reader.changed(self._totals.changes)
        if changed is None or len(changed) > _FEW:
            self._look_at_all()
            return
        best, mask, totals = self.best, self._mask, self._totals.values
        for row in changed:
            total = totals.item(row)
            if total > best:  # a row that was packed further, mostly: it is the only one up there
                best = self.best = total
                mask[:] = bytes(len(mask))
                mask[row], self.count, self.first = 1, 1, row
                continue
            is_level = total == best
            if is_level != mask[row]:
                mask[row] = is_level
                self.count += 1 if is_level else -1
                if is_level and row < self.first:
                    self.first = row
                elif row == self.first:
                    following = mask.find(1, row)
                    self.first = following if following >= 0 else len(mask)  # any that comes to be level is before it
        if not self.count:
            self._look_at_all()

    def first_from(self, row: int) -> int:
        """Return the first row from a row on, going round, that is level."""
        found = self._mask.find(1, row)
        return found if found >= 0 else self._mask.find(1)

    def second_to(self, row: int) -> tuple[int, int]:
        """Return the first row of the highest total beside a level row's, and that total; -1 and the best if there is none."""
        first, best = self.first, self.best
        if self.count == 1:
            return _second(self._totals.values, row, best)
        return (first if first != row else self._mask.find(1, row + 1)), best


Level = BestRows | LevelRows
"""Who knows which rows are level."""


def _second(totals: Ints, first: int, best: int) -> tuple[int, int]:
    """Return the first row of the highest total but for the first that has the best, as `second_to` does."""
    totals[first] = REFUSED  # looking at all rows once takes half as long as at those before and at those after
    second = int(totals.argmax())
    total = totals.item(second)
    totals[first] = best
    return (second, total) if total >= 0 else (-1, best)
