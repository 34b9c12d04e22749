"""How the old releases chose among the best nodes: in turn. From 1.17 on by chance, which is today's way.

Up to 1.6 the best nodes stood in falling order of their names; later in the order in which nodes were visited. A count
of all choices says whose turn it is, so that equal pods go round the equal nodes.
"""

from __future__ import annotations

from kubesched.cluster import Ints, PodView, Snapshot
from kubesched.engine.cycle import SeededTies, Ties
from kubesched.legacy.releases import Release


class InTurn:
    """Take the best nodes in turn. Whose turn it is depends on all choices before: run the engine without its memo."""

    __slots__ = ("_by_name", "_choices", "_next_row")

    def __init__(self, *, by_name: bool) -> None:
        self._by_name = by_name
        self._choices = 0
        self._next_row = 0

    def start(self, pod: PodView, n: int) -> int:
        """Return the row behind the last choice: who only takes the first best row from there goes round as well."""
        return self._next_row % n

    def pick(self, pod: PodView, rows: Ints, nodes: Snapshot) -> int:
        """Return the row whose turn it is."""
        candidates = rows.tolist()
        if self._by_name:
            candidates.sort(key=nodes.name, reverse=True)
        else:
            place = {name: at for at, name in enumerate(nodes.order.names)}
            candidates.sort(key=lambda row: place.get(nodes.name(row), len(place)))
        row: int = candidates[self._choices % len(candidates)]
        self._choices += 1
        self._next_row = row + 1
        return row


def ties_of(release: Release, seed: int = 0) -> Ties:
    """Return how a release chose one of several best nodes."""
    return InTurn(by_name=release.minor < 10) if release.minor < 17 else SeededTies(seed)
