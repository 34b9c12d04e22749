"""How a release chooses among the best nodes: in turn before 1.17, at random from 1.17 on, as today.

The best nodes are sorted, up to 1.6 by name in falling order, later in the order of the visit. Choice number n takes node n
modulo their number: best nodes a, b, c and up to 1.6: c, b, a, c, b, ...
"""

from __future__ import annotations

from kubesched.scheduler.cluster import Ints, PodView, Snapshot
from kubesched.scheduler.engine import SeededTies, Ties, best_rows
from kubesched.scheduler.framework import LevelRows
from kubesched.scheduler.legacy.releases import Release


class InTurn:
    """Takes the best nodes in turn. A choice depends on all earlier ones, so the engine must run without its cache."""

    __slots__ = ("_by_name", "_choices")
    chooser = "turn"

    def __init__(self, *, by_name: bool) -> None:
        self._by_name = by_name
        self._choices = 0

    def best(self, pod: PodView, totals: Ints, nodes: Snapshot, level: LevelRows | None = None) -> int:
        """Return the next of the best rows."""
        candidates = best_rows(totals)
        if self._by_name:
            candidates.sort(key=nodes.name, reverse=True)
        else:
            place = {name: at for at, name in enumerate(nodes.order.names)}
            candidates.sort(key=lambda row: place.get(nodes.name(row), len(place)))
        row = candidates[self._choices % len(candidates)]
        self._choices += 1
        return row


def ties_of(release: Release, seed: int = 0) -> Ties:
    """Return how a release chooses one of the best nodes."""
    return InTurn(by_name=release.minor < 10) if release.minor < 17 else SeededTies(seed)
