"""Arrays of the sheet that answers are worked out in: they remember which of their elements changed.

Who derives something from one has a Reader of its log: a few elements are worked out again one by one, many at once.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from kubesched.scheduler.cluster import ChangeLog

FEW_ROWS = 16
"""Up to so many rows are worked out one by one in plain Python: arrays of a few elements cost more than the sums on them."""


class Tracked:
    """Values by number, and the numbers of those that changed, in that order."""

    __slots__ = ("changes", "values")

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.values = values
        self.changes: ChangeLog[int] = ChangeLog()

    def put(self, i: int, value: int) -> None:
        """Change one element."""
        if self.values.item(i) != value:
            self.values[i] = value
            self.changes.append(i)

    def add(self, i: int, amount: int) -> int:
        """Change one element by an amount; return what it was."""
        before: int = self.values.item(i)
        self.values[i] = before + amount
        self.changes.append(i)
        return before

    def replace(self, values: npt.NDArray[Any]) -> None:
        """Change all elements: to every reader everything is new."""
        self.values = values
        self.changes.restart()

    def copy(self) -> Tracked:
        """Return a copy to be changed on its own."""
        return Tracked(self.values.copy())
