"""Figures of simulations as people read them: one column, or two with their difference; for a terminal and for a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

NONE = "-"
"""What stands where there is no figure: nothing was placed, so it took no time."""


def count(value: float) -> str:
    """Return a number with its thousands parted."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def share(value: float) -> str:
    """Return a share as percent."""
    return f"{100 * value:.1f} %"


def time(value: float) -> str:
    """Return seconds."""
    return f"{value:,.3f} s" if abs(value) < 10 else f"{value:,.1f} s"


def money(value: float) -> str:
    """Return an amount of money."""
    return f"{value:,.2f}"


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
    Row("nodes that the autoscaler added", ("nodes", "scaledUp")),
    Row("nodes that it removed", ("nodes", "scaledDown")),
    Row("spot nodes taken back", ("nodes", "reclaimed")),
    Row("cost", ("cost", "total"), money),
    Row("cost of an hour, mean", ("cost", "perHour", "mean"), money),
    Row("cost of an hour, peak", ("cost", "perHour", "peak"), money),
    Row("pods refused by quotas", ("quotas", "refused")),
    Row("waiting for quotas at the end", ("quotas", "waiting")),
    Row("rollouts", ("rollouts", "finished")),
    Row("longest rollout", ("rollouts", "longest"), time),
    Row("nodes used, mean", ("packing", "nodesUsed", "mean")),
    Row("nodes used, peak", ("packing", "nodesUsed", "peak")),
    Row("nodes used, end", ("packing", "nodesUsed", "end")),
    Row("fragmentation, mean", ("packing", "fragmentation", "mean"), share),
    Row("fragmentation, end", ("packing", "fragmentation", "end"), share),
    Row("zone skew, peak", ("spread", "maxSkew", "peak")),
    Row("zone skew, end", ("spread", "maxSkew", "end")),
)
_SELDOM = {("pods", "there"), ("pods", "again"), ("pods", "deleted")}
_RARE = ("nodes", "cost", "quotas", "rollouts")
"""What is shown only if it is not nothing."""


def figure_rows(documents: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the figures as people read them, a row each; of two documents, with how the second differs from the first."""
    is_pair = len(documents) == 2
    rows = []
    for row in ROWS:
        values = [row.of(document) for document in documents]
        if (row.path in _SELDOM or row.path[0] in _RARE) and not any(values):
            continue
        cells = [
            NONE if row.path[0] == "timeToPlacement" and not document["pods"]["placed"] else row.write(value)
            for document, value in zip(documents, values, strict=True)
        ]
        if is_pair:
            cells.append("" if cells[0] == cells[1] else NONE if NONE in cells else row.change(values[1] - values[0]))
        rows.append([row.title, *cells])
    return rows
