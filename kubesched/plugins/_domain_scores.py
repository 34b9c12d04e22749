"""Scores of domains that follow from counts.

In: the counts of all domains of a label key, and how a count becomes a score. Out: a table of scores. A score is relative to
the lowest and the highest count of a domain that has feasible nodes: while these stay what they are, one domain's change is
one score's change.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import numpy as np

from kubesched.cluster import Bools, Ints
from kubesched.cluster.changelog import Reader
from kubesched.cluster.columns import highest, lowest
from kubesched.framework import DomainScores
from kubesched.framework.tracked import Tracked
from kubesched.framework.verdicts import FEW


class Scale(Protocol):
    """How counts become scores from 0 to 100, between the lowest count and the highest. The lowest count has the same score
    whatever the highest is."""

    def column(self, counts: Ints, low: int, high: int) -> Ints:
        """Return the scores of all domains; those of counts outside the range are read by nobody."""
        ...

    def one(self, count: int, low: int, high: int) -> int:
        """Return the score of one domain."""
        ...


class ScoredDomains:
    """The scores of the domains of one key, kept from one pod to the next."""

    __slots__ = ("_codes", "_raised", "_range", "_reader", "_scored", "_table", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self._reader: Reader[int] = Reader()
        self._scored: Bools | None = None
        self._codes: Ints | None = None
        """The scored domains, if these are not all."""
        self._range: tuple[object, int, int] | None = None
        self._raised: set[int] | None = None
        """The domains that have, or had, another count than the lowest, while they are few and every feasible node is in one:
        where the highest count moves, only their scores do."""
        self._table: DomainScores | None = None

    def table(self, counts: Tracked, scored: Bools, scale: Scale) -> DomainScores:
        """Return the scores, where `scored` are the domains, at least one, that they are relative to."""
        values, changed, table = counts.values, self._reader.changed(counts.changes), self._table
        if scored is not self._scored:
            self._scored, self._codes = (
                scored,
                None if scored[:-1].all() and len(scored) == len(values) else np.flatnonzero(scored),
            )
            if scored[-1]:
                self._raised = self._range = None
        # Where all domains are scored, the last element is that of nodes in none: it may have no say.
        there = values[: None if scored[-1] else -1] if self._codes is None else values.take(self._codes)
        if len(there) <= FEW:
            numbers = there.tolist()
            low, high = min(numbers), max(numbers)
        else:
            low, high = lowest(there), highest(there)
        before, self._range = self._range, (scale, low, high)
        if table is None or len(table.values) != len(values):
            self._table = table = DomainScores(self.key, scale.column(values, low, high), is_checked=True)
            self._raised = self._find_raised(values, low)
            return table
        moved: Collection[int] | None = changed  # the domains whose scores may be others than before
        if changed is None or before is None or before[:2] != (scale, low):
            self._raised, moved = self._find_raised(values, low), None
        elif self._raised is not None:
            self._raised.update(changed)
        if moved is not None and before is not None and before[2] != high:
            moved = self._raised
        if moved is None or len(moved) > FEW:
            table.update(scale.column(values, low, high))
        else:
            for code in moved:
                table.put(code, scale.one(values.item(code), low, high))
        if self._raised is not None and len(self._raised) > FEW:
            self._raised = None
        return table

    def _find_raised(self, values: Ints, low: int) -> set[int] | None:
        assert self._scored is not None
        codes = np.flatnonzero(values[:-1] != low)
        return None if self._scored[-1] or len(codes) > FEW else set(codes.tolist())
