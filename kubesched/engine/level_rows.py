"""The row that is chosen from the totals of one attempt, and its rivals: what a record says of them.

In: the totals of all nodes, of an attempt whose totals nobody follows from one pod to the next (framework/best_rows does, where
they are followed). Out: the first of the best rows from any row on, who comes second to it, and how many are level. Choosing
looks at the totals anyway, and what it meets on the way is remembered: a record of every decision cannot afford a second look.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster import Ints
from kubesched.framework.best_rows import BestRows
from kubesched.framework.feasible import REFUSED


class LevelRows:
    """The rows of the highest total; right for as long as the totals are."""

    __slots__ = ("_first", "_totals", "best")

    def __init__(self, totals: Ints) -> None:
        self._totals = totals
        self._first = int(totals.argmax())
        self.best: int = totals.item(self._first)

    def first_from(self, row: int) -> int:
        """Return the first row from a row on, going round, that is level."""
        first, totals = self._first, self._totals
        if first < row:  # the first of all lies behind: there may be another like it ahead
            ahead = row + int(totals[row:].argmax())
            if totals.item(ahead) == self.best:
                return ahead
        return first

    def second_to(self, row: int) -> int:
        """Return the first row of the highest total beside a level row's; -1 if no other is feasible."""
        return self._first if self._first != row else second_of(self._totals, row)

    @property
    def count(self) -> int:
        """Return how many rows are level."""
        return int(np.count_nonzero(self._totals == self._totals[self._first]))


Level = BestRows | LevelRows
"""Who knows which rows are level."""


def second_of(totals: Ints, row: int) -> int:
    """Return the first row of the highest total but for one row; -1 if no other is feasible."""
    total = totals.item(row)
    totals[row] = REFUSED  # looking at all rows once takes half as long as at those before and at those after
    second = int(totals.argmax())
    totals[row] = total
    return second if totals.item(second) >= 0 and second != row else -1
