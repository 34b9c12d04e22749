"""Figures of simulations as people read them: one column, or two with their difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

_WIDTH = 110


def count(value: float) -> str:
    """Return a number with its thousands parted."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def share(value: float) -> str:
    """Return a share as percent."""
    return f"{100 * value:.1f} %"


def time(value: float) -> str:
    """Return seconds."""
    return f"{value:,.3f} s" if abs(value) < 10 else f"{value:,.1f} s"


class Row(NamedTuple):
    """One figure: what it is called, where it stands in the document, how it is written."""

    title: str
    path: tuple[str, ...]
    write: Callable[[float], str] = count

    def of(self, document: Mapping[str, Any]) -> Any:
        """Return the figure."""
        found: Any = document
        for name in self.path:
            found = found[name]
        return found

    def change(self, by: float) -> str:
        """Return a difference with its sign; that of shares is in points of a hundred."""
        return ("+" if by > 0 else "-") + (f"{100 * abs(by):.1f} pt" if self.write is share else self.write(abs(by)))


ROWS = (
    Row("pods there at the beginning", ("pods", "there")),
    Row("pods arrived", ("pods", "arrived")),
    Row("  of these replacements", ("pods", "again")),
    Row("placed", ("pods", "placed")),
    Row("ran to their end", ("pods", "finished")),
    Row("running at the end", ("pods", "running")),
    Row("pending at the end", ("pods", "pending")),
    Row("deleted", ("pods", "deleted")),
    Row("preempted", ("pods", "preempted")),
    Row("time to placement, median", ("timeToPlacement", "p50"), time),
    Row("time to placement, 90 %", ("timeToPlacement", "p90"), time),
    Row("time to placement, 99 %", ("timeToPlacement", "p99"), time),
    Row("time to placement, longest", ("timeToPlacement", "max"), time),
    Row("longest pending at the end", ("longestPending",), time),
    Row("cpu asked for, mean", ("utilisation", "cpu", "mean"), share),
    Row("cpu asked for, peak", ("utilisation", "cpu", "peak"), share),
    Row("memory asked for, mean", ("utilisation", "memory", "mean"), share),
    Row("memory asked for, peak", ("utilisation", "memory", "peak"), share),
    Row("nodes at the end", ("packing", "nodes")),
    Row("nodes used, mean", ("packing", "nodesUsed", "mean")),
    Row("nodes used, peak", ("packing", "nodesUsed", "peak")),
    Row("nodes used, end", ("packing", "nodesUsed", "end")),
    Row("fragmentation, mean", ("packing", "fragmentation", "mean"), share),
    Row("fragmentation, end", ("packing", "fragmentation", "end"), share),
    Row("zone skew, peak", ("spread", "maxSkew", "peak")),
    Row("zone skew, end", ("spread", "maxSkew", "end")),
)
_SELDOM = {("pods", "there"), ("pods", "again"), ("pods", "deleted")}


def table_of(documents: Sequence[Mapping[str, Any]], titles: Sequence[str] = ()) -> Table:
    """Return a table of the figures; of two documents, with how the second differs from the first."""
    table = Table(box=None, show_header=bool(titles), pad_edge=False)
    table.add_column("")
    for title in titles or ("",):
        table.add_column(title, justify="right", overflow="fold")
    if len(documents) == 2:
        table.add_column("difference", justify="right")
    for row in ROWS:
        values = [row.of(document) for document in documents]
        if row.path in _SELDOM and not any(values):
            continue
        cells = [row.write(value) for value in values]
        if len(values) == 2:
            cells.append("" if cells[0] == cells[1] else row.change(values[1] - values[0]))
        table.add_row(row.title, *cells)
    return table


def print_table(table: Table) -> None:
    """Print a table; a narrow terminal wraps it, which is better than cutting figures off."""
    Console(width=max(Console().width, _WIDTH), highlight=False).print(table)
