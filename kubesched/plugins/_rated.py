"""Scores of domains that follow from counts, kept up to date as the counts change.

In: the counts of all domains of a label key, changes to them one by one, and how a count becomes a score. Out: a table of
scores. A score is relative to the lowest and the highest count of a domain that has feasible nodes: while these stay what
they are, one domain's change is one score's change; when one of them moves on, all scores are worked out again.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from kubesched.cluster import Bools, Ints
from kubesched.framework import DomainScores, Reach

_FEW = 16


class Scale(Protocol):
    """How counts become scores from 0 to 100, between the lowest count and the highest. The lowest count always has the
    same score, whatever the highest is."""

    def column(self, counts: Ints, low: int, high: int) -> Ints:
        """Return the scores of all domains; those of counts outside the range are read by nobody."""
        ...

    def one(self, count: int, low: int, high: int) -> int:
        """Return the score of one domain."""
        ...


class RatedDomains:
    """The scores for as long as the same nodes are feasible."""

    __slots__ = (
        "_counts",
        "_has_gaps",
        "_has_moved",
        "_high",
        "_low",
        "_n_high",
        "_n_low",
        "_raised",
        "_reach",
        "_reached",
        "_scale",
        "_scored",
        "_table",
        "_unheeded",
        "key",
    )

    def __init__(self, key: str, counts: Ints, reach: Reach, scored: Bools, scale: Scale) -> None:
        """Begin with counts, which are borrowed; `scored` are the domains, at least one, that scores are relative to."""
        self.key = key
        self._counts = counts
        self._reach: Reach | None = reach
        self._reached = reach.domains(key)
        self._scored = scored
        self._scale = scale
        there = counts[scored]
        self._low, self._high = int(there.min()), int(there.max())
        self._n_low, self._n_high = int(np.count_nonzero(there == self._low)), int(np.count_nonzero(there == self._high))
        self._table: DomainScores | None = None
        self._unheeded: set[int] = set()
        """Domains out of reach whose counts changed: their scores are as they were."""
        self._has_gaps = False
        """Whether the scores of domains out of reach are older than those of the others."""
        self._has_moved = False
        """Whether the lowest or the highest count is another than the scores were worked out with."""
        self._raised: set[int] | None = None
        """The domains that have more than the lowest count, while they are few: only theirs change with the highest."""
        if len(there) - self._n_low <= _FEW:
            self._raised = set(np.flatnonzero(scored & (counts != self._low)).tolist())

    def is_about(self, key: str, counts: Ints, reach: Reach) -> bool:
        """Return whether what is kept still holds for what a pod can reach."""
        return (
            self._reach is reach
            and self.key == key
            and self._counts is counts
            and (reach.domains(key) is self._reached or self._look_again(reach))
        )

    def _look_again(self, reach: Reach) -> bool:
        """Take in that other domains can be reached; False if that changes the lowest or the highest count, and so the scores
        of all."""
        if self._table is None or self._has_moved or self._has_gaps or self._scored is not self._reached:
            return False
        reached = reach.domains(self.key)
        there = self._counts[reached]
        if not len(there) or there.min() != self._low or there.max() != self._high:
            return False
        self._reached = self._scored = reached
        self._n_low, self._n_high = int(np.count_nonzero(there == self._low)), int(np.count_nonzero(there == self._high))
        self._raised = None
        for code in self._unheeded:
            self._table.put(code, self._scale.one(self._counts.item(code), self._low, self._high))
        self._unheeded.clear()
        return True

    def table(self) -> DomainScores:
        """Return the scores."""
        table = self._table
        if table is not None and not table.is_worn:
            if not self._has_moved:
                return table
            if self._raised is not None:
                for code in self._raised:
                    table.put(code, self._scale.one(self._counts.item(code), self._low, self._high))
                self._has_moved, self._has_gaps = False, True
                return table
        self._has_moved = self._has_gaps = False
        self._unheeded.clear()
        self._table = DomainScores(self.key, self._scale.column(self._counts, self._low, self._high), is_checked=True)
        return self._table

    def note(self, key: str, code: int, before: int, after: int) -> None:
        """Take in that a domain's count changed."""
        if key != self.key:
            self._reach = None
        if self._reach is None:
            return
        if not self._scored.item(code):
            self._unheeded.add(code)
            return
        self._n_low += (after == self._low) - (before == self._low)
        self._n_high += (after == self._high) - (before == self._high)
        if after > self._high:
            self._high, self._n_high, self._has_moved = after, 1, True
        elif after < self._low:
            self._low, self._n_low, self._table, self._raised = after, 1, None, None
        if self._raised is not None:
            if after == self._low:
                self._raised.discard(code)
            else:
                self._raised.add(code)
                if len(self._raised) > _FEW:
                    self._raised = None
        if not self._n_low or not self._n_high:
            self._reach = None  # who is lowest or highest now must be looked for
        elif self._table is not None and (not self._has_moved or after == self._low):
            self._table.put(code, self._scale.one(after, self._low, self._high))
