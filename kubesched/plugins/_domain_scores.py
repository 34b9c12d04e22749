"""Scores of domains that follow from counts.

In: the counts of all domains of a label key, and how a count becomes a score. Out: a table of scores. A score is relative to
the lowest and the highest count of a domain that has feasible nodes: while these stay what they are, one domain's change is
one score's change.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from kubesched.cluster import Bools, Ints
from kubesched.cluster.changelog import Reader
from kubesched.cluster.columns import highest, lowest
from kubesched.framework import DomainScores
from kubesched.framework.tracked import Tracked
from kubesched.framework.verdicts import FEW


class Scale(Protocol):
    """How counts become scores from 0 to 100, between the lowest count and the highest."""

    def column(self, counts: Ints, low: int, high: int) -> Ints:
        """Return the scores of all domains; those of counts outside the range are read by nobody."""
        ...

    def one(self, count: int, low: int, high: int) -> int:
        """Return the score of one domain."""
        ...


class ScoredDomains:
    """The scores of the domains of one key, kept from one pod to the next."""

    __slots__ = ("_codes", "_range", "_reader", "_scored", "_table", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self._reader: Reader[int] = Reader()
        self._scored: Bools | None = None
        self._codes: Ints | None = None
        """The scored domains, if these are not all."""
        self._range: tuple[object, int, int] | None = None
        self._table: DomainScores | None = None

    def table(self, counts: Tracked, scored: Bools, scale: Scale) -> DomainScores:
        """Return the scores, where `scored` are the domains, at least one, that they are relative to."""
        values, changed, table = counts.values, self._reader.changed(counts.changes), self._table
        if scored is not self._scored:
            self._scored, self._codes = (
                scored,
                None if scored[:-1].all() and len(scored) == len(values) else np.flatnonzero(scored),
            )
        # Where all domains are scored, the last element is that of nodes in none: it may have no say.
        there = values[: None if scored[-1] else -1] if self._codes is None else values.take(self._codes)
        if len(there) <= FEW:
            numbers = there.tolist()
            low, high = min(numbers), max(numbers)
        else:
            low, high = lowest(there), highest(there)
        now = (scale, low, high)
        if table is None or len(table.values) != len(values):
            self._table = table = DomainScores(self.key, scale.column(values, low, high), is_checked=True)
        elif changed is None or now != self._range:
            table.update(scale.column(values, low, high))
        else:
            for code in changed:
                table.put(code, scale.one(values.item(code), low, high))
        self._range = now
        return table
