"""Scores of domains that follow from counts.

In: the counts of all domains of a label key, and how a count becomes a score. Out: a table of scores. A score is relative to
the lowest and the highest count of a domain that has feasible nodes: while these stay what they are, one domain's change is
one score's change.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from kubesched.scheduler.cluster import Bools, Ints, Reader, highest, lowest
from kubesched.scheduler.framework import FEW, DomainScores, Tracked


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

    __slots__ = ("_codes", "_n_scored", "_raised", "_range", "_reader", "_scored", "_table", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self._reader: Reader[int] = Reader()
        self._scored: Bools = np.zeros(0, dtype=np.bool_)
        self._n_scored = 0
        self._codes: Ints | None = None
        """The scored domains, if these are not all."""
        self._range: tuple[object, int, int] | None = None
        """The scale, the lowest and the highest count that the table is of; None where all of it must be worked out."""
        self._raised: set[int] | None = None
        """Among the scored domains all that have another count than the lowest, while they are few: with the highest count only
        their scores move. Domains that are not scored may be left behind meanwhile."""
        self._table: DomainScores | None = None

    def table(self, counts: Tracked, scored: Bools, scale: Scale) -> DomainScores:
        """Return the scores, where `scored` are the domains, at least one, that they are relative to."""
        values, changed = counts.values, self._reader.changed(counts.changes)
        came = [] if scored is self._scored else self._take_in(scored, len(values))
        if changed is None or came is None:
            self._raised = self._range = None
            changed = []
        elif came:
            changed = [*changed, *came]
        if self._raised is None or not self._follow(values, changed, self._raised, scale):
            self._look_at_all(values, changed, scale)
        assert self._table is not None
        return self._table

    def _take_in(self, scored: Bools, n_values: int) -> list[int] | None:
        """Take in that other domains are scored than before; return those that came, or None where all is to be begun anew."""
        before, self._scored = self._scored, scored
        self._n_scored = int(np.count_nonzero(scored))
        self._codes = None if scored[:-1].all() and len(scored) == n_values else np.flatnonzero(scored)
        # Feasible nodes that are in no domain are a case of their own.
        if len(before) != len(scored) or before[-1] or scored[-1]:
            return None
        came = np.flatnonzero(scored > before)
        return came.tolist() if len(came) <= FEW else None

    def _follow(self, values: Ints, changed: list[int], raised: set[int], scale: Scale) -> bool:
        """Score the domains again that changed, or all that are raised where the highest count moved; False if these are many,
        or the lowest count moved."""
        assert self._range is not None and self._table is not None
        _, low, before = self._range
        raised.update(changed)
        numbers = [values.item(code) for code in raised if self._scored.item(code)]
        if len(raised) > FEW or len(numbers) == self._n_scored or self._range[0] != scale or min(numbers, default=low) < low:
            self._raised = self._range = None
            return False
        high = max(numbers, default=low)  # whoever is not raised has the lowest count
        self._range = scale, low, high
        for code in changed if high == before else raised:
            self._table.put(code, scale.one(values.item(code), low, high))
        return True

    def _look_at_all(self, values: Ints, changed: list[int], scale: Scale) -> None:
        """Look for the lowest and the highest count, and score what follows from that."""
        # Where all domains are scored, the last element is that of nodes in none: it may have no say.
        there = values[: None if self._scored[-1] else -1] if self._codes is None else values.take(self._codes)
        if len(there) <= FEW:
            numbers = there.tolist()
            low, high = min(numbers), max(numbers)
        else:
            low, high = lowest(there), highest(there)
        before, self._range = self._range, (scale, low, high)
        if self._table is None or len(self._table.values) != len(values):
            self._table = DomainScores(self.key, scale.column(values, low, high), is_checked=True)
        elif before != self._range or len(changed) > FEW:
            self._table.update(scale.column(values, low, high))
        else:
            for code in changed:
                self._table.put(code, scale.one(values.item(code), low, high))
        if before is None or before[:2] != (scale, low):
            self._raised = self._find_raised(values, low)

    def _find_raised(self, values: Ints, low: int) -> set[int] | None:
        if self._scored[-1] or len(self._scored) != len(values):
            return None
        codes = np.flatnonzero(self._scored & (values != low))
        return set(codes.tolist()) if len(codes) <= FEW else None
