"""The scores of domains, kept from pod to pod: for PodTopologySpread and InterPodAffinity.

A score is relative to the lowest and the highest count among the *scored* domains, those with feasible nodes. While both ends
stay, a domain with a new count changes one score:

    counts by zone    a: 2, b: 5, c: 2        ends 2 and 5        affinity scores 0, 100, 0
    a pod comes to c  a: 2, b: 5, c: 3        ends 2 and 5        only c changes: 33
    a pod comes to b  a: 2, b: 6, c: 3        the high end moves  all that are above the low end change: b 100, c 25

For the last case `_raised` holds the scored domains above the low end, while they are few. So a decision in a cluster with
5,000 hostnames looks at a handful of domains.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from kubesched.scheduler.cluster import Bools, Ints, Reader, highest, lowest
from kubesched.scheduler.framework import FEW, DomainScores, Tracked


class Scale(Protocol):
    """How counts become scores from 0 to 100. The score of the lowest count must not depend on the highest."""

    def column(self, counts: Ints, low: int, high: int) -> Ints:
        """Return the scores of all domains. Scores of counts outside the range are not read."""
        ...

    def one(self, count: int, low: int, high: int) -> int:
        """Return the score of one domain."""
        ...


class ScoredDomains:
    """The scores of the domains of one label key."""

    __slots__ = ("_codes", "_n_scored", "_raised", "_range", "_reader", "_scored", "_table", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self._reader: Reader[int] = Reader()
        self._scored: Bools = np.zeros(0, dtype=np.bool_)
        self._n_scored = 0
        self._codes: Ints | None = None
        """The codes of the scored domains; None for all."""
        self._range: tuple[object, int, int] | None = None
        """(scale, lowest, highest count) of the table; None if the table is outdated."""
        self._raised: set[int] | None = None
        """The scored domains with another count than the lowest, if they are few; it may also hold domains that are not
        scored."""
        self._table: DomainScores | None = None

    def table(self, counts: Tracked, scored: Bools, scale: Scale) -> DomainScores:
        """Return the scores relative to the `scored` domains, of which there must be one."""
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
        """Note that other domains are scored now; return the new ones, or None if the table must be worked out again."""
        before, self._scored = self._scored, scored
        self._n_scored = int(np.count_nonzero(scored))
        self._codes = None if scored[:-1].all() and len(scored) == n_values else np.flatnonzero(scored)
        # Nodes without the label, at the last index, are scored as a domain of their own.
        if len(before) != len(scored) or before[-1] or scored[-1]:
            return None
        came = np.flatnonzero(scored > before)
        return came.tolist() if len(came) <= FEW else None

    def _follow(self, values: Ints, changed: list[int], raised: set[int], scale: Scale) -> bool:
        """Update the scores of the changed domains, or of all raised ones if the highest count changed; return False if they
        are many, or the lowest count changed."""
        assert self._range is not None and self._table is not None
        _, low, before = self._range
        raised.update(changed)
        numbers = [values.item(code) for code in raised if self._scored.item(code)]
        if len(raised) > FEW or len(numbers) == self._n_scored or self._range[0] != scale or min(numbers, default=low) < low:
            self._raised = self._range = None
            return False
        high = max(numbers, default=low)  # domains that are not raised have the lowest count
        self._range = scale, low, high
        for code in changed if high == before else raised:
            self._table.put(code, scale.one(values.item(code), low, high))
        return True

    def _look_at_all(self, values: Ints, changed: list[int], scale: Scale) -> None:
        """Find the lowest and the highest count among all scored domains, and update the scores."""
        # Without the last element, unless nodes without the label are scored.
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
