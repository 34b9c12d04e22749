"""How the old releases chose among the best nodes: in turn. From 1.17 on by chance, which is today's way.

Up to 1.6 the best nodes stood in falling order of their names; later in the order in which nodes were visited. A count
of all choices says whose turn it is, so that equal pods go round the equal nodes.
"""

from __future__ import annotations

from kubesched.scheduler.cluster import Ints, PodView, Snapshot
from kubesched.scheduler.engine import SeededTies, Ties, best_rows
from kubesched.scheduler.framework import LevelRows
from kubesched.scheduler.legacy.releases import Release


class InTurn:
    """Take the best nodes in turn. Whose turn it is depends on all choices before: run the engine without its memo."""

    __slots__ = ("_by_name", "_choices")
    chooser = "turn"

    def __init__(self, *, by_name: bool) -> None:
        self._by_name = by_name
        self._choices = 0

    def best(self, pod: PodView, totals: Ints, nodes: Snapshot, level: LevelRows | None = None) -> int:
        """Return the best row whose turn it is."""
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
    """Return how a release chose one of several best nodes."""
    return InTurn(by_name=release.minor < 10) if release.minor < 17 else SeededTies(seed)
