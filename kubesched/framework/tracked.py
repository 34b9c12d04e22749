"""Columns of the sheet that answers are worked out in: arrays that remember which of their elements changed, and arrays that
follow from the nodes and their pods.

Who derives something has a Reader of what it is derived from: a few elements are worked out again one by one, many at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy.typing as npt

from kubesched.cluster import Snapshot
from kubesched.cluster.changelog import ChangeLog, Reader
from kubesched.cluster.journal import Change

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


class DerivedColumn:
    """A number for every node that follows from the node and the pods on it, whoever the pod is that asks; or several, one row
    of a table each."""

    __slots__ = ("_all", "_cells", "_one", "_reader", "_values")

    def __init__(
        self, all_rows: Callable[[Snapshot], npt.NDArray[Any]], one_row: Callable[[Snapshot, int], Iterable[float]]
    ) -> None:
        """`all_rows` makes the table, and `one_row` one column of it, from top to bottom."""
        self._all = all_rows
        self._one = one_row
        self._reader: Reader[Change] = Reader()
        self._values: npt.NDArray[Any] | None = None
        self._cells: Any = None
        """The same memory for whoever writes one number: an array takes several times as long for that."""

    def on(self, nodes: Snapshot) -> npt.NDArray[Any]:
        """Return the column for a view; borrowed, and right until the next change. Only that of the whole cluster as it is is
        kept: some rows of it, and nodes with imagined pods or without theirs, are worked out each time."""
        if nodes.rows is not None or type(nodes) is not Snapshot:
            return self._all(nodes)
        values, self._values = self._values, None  # half done it is nobody's
        changes = self._reader.changed(nodes.journal)
        if values is None or changes is None or len(changes) > FEW_ROWS:
            values = self._all(nodes)
            assert values.flags.c_contiguous  # or the cells would be a copy
            self._cells = values.reshape(-1).data
        else:
            cells, n = self._cells, nodes.n
            for row in {change.row for change in changes}:
                place = row
                for value in self._one(nodes, row):
                    cells[place] = value
                    place += n
        self._values = values
        return values
