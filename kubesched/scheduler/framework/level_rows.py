"""The rows with the highest total, and the row that comes second after the chosen one."""

from __future__ import annotations

import numpy as np

from kubesched.scheduler.cluster import Ints


class LevelRows:
    """The rows with the highest total of one attempt. It is right as long as the totals do not change."""

    __slots__ = ("_totals", "best", "first")

    def __init__(self, totals: Ints) -> None:
        self._totals = totals
        self.first = int(totals.argmax())
        self.best: int = totals.item(self.first)

    @property
    def count(self) -> int:
        """Return how many rows have the highest total. Reads all rows."""
        return int(np.count_nonzero(self._totals == self.best))

    def first_from(self, row: int) -> int:
        """Return the next row with the highest total, from a row on; after the last row the first follows."""
        first, totals = self.first, self._totals
        if first < row:  # the first of all lies behind: there may be another like it ahead
            ahead = row + int(totals[row:].argmax())
            if totals.item(ahead) == self.best:
                return ahead
        return first

    def second_to(self, row: int) -> tuple[int, int]:
        """Return the first row of the highest total beside a level row's, and that total; -1 and the best if there is none."""
        first, best, totals = self.first, self.best, self._totals
        if first != row:
            return first, best
        totals[first] = -1  # looking at all rows once takes half as long as at those before and at those after
        second = int(totals.argmax())
        total = totals.item(second)
        totals[first] = best
        return (second, total) if total >= 0 else (-1, best)
