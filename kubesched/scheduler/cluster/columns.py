"""Growable arrays that share one row count: a table stored as columns.

In: rows that are appended, removed, and written by index. Out: read-only views of each column. Rows have no gaps: removing one
moves the last row into its place, and the table returns which row moved. Columns grow by doubling, so appending is cheap, and a
view stays valid until the number of rows changes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Codes = Ints
"""Numbers of interned values; as wide as an index, because that is what indexing is fastest with."""
Bools = npt.NDArray[np.bool_]
Cells: TypeAlias = "memoryview[int]"


# On a few thousand rows argmin and argmax take a third of the time of min and max, and count_nonzero a third of the time of any
# and all. So code that runs for every pod uses them.


def lowest(column: Ints) -> int:
    """Return the lowest number of a column that is not empty."""
    return column.item(column.argmin())


class Column:
    """One array with spare room. `data` is all of it, `live` the part with rows.

    `cells` is the same memory as a memoryview. To read or write one row, it takes half the time of an array. `data` and `cells`
    are replaced when the table grows.
    """

    __slots__ = ("_live", "cells", "data", "fill", "table")

    def __init__(self, table: Table, dtype: npt.DTypeLike, fill: int | bool) -> None:
        self.table = table
        self.fill = fill
        self.data: Array = np.full(table.capacity, fill, dtype=dtype)
        self.cells: Cells = memoryview(self.data.data)
        self._live: Array | None = None

    @property
    def live(self) -> Array:
        """Return a read-only view of the rows; it sees later writes, and is stale once the table changes its size."""
        view = self._live
        if view is None or len(view) != self.table.n:
            view = self.data[: self.table.n]
            view.flags.writeable = False
            self._live = view
        return view

    def _grow(self, capacity: int) -> None:
        grown = np.full(capacity, self.fill, dtype=self.data.dtype)
        grown[: len(self.data)] = self.data
        self.data = grown
        self.cells = memoryview(grown.data)
        self._live = None


class Table:
    """Columns of equal length."""

    __slots__ = ("capacity", "columns", "n")

    def __init__(self, capacity: int = 64) -> None:
        self.capacity = capacity
        self.n = 0
        self.columns: list[Column] = []

    def column(self, dtype: npt.DTypeLike, fill: int | bool = 0) -> Column:
        """Add a column; rows that exist already hold `fill`."""
        column = Column(self, dtype, fill)
        self.columns.append(column)
        return column

    def reserve(self, rows: int) -> None:
        """Make room for `rows` rows in all."""
        if rows <= self.capacity:
            return
        while self.capacity < rows:
            self.capacity *= 2
        for column in self.columns:
            column._grow(self.capacity)

    def append(self) -> int:
        """Add a row of fill values and return its index."""
        row = self.n
        if row == self.capacity:
            self.reserve(row + 1)
        self.n += 1
        return row

    def remove(self, row: int) -> int:
        """Remove a row by moving the last one into its place; return the index that the moved row had (or `row`)."""
        last = self.n - 1
        for column in self.columns:
            column.data[row] = column.data[last]
            column.data[last] = column.fill
        self.n = last
        return last
