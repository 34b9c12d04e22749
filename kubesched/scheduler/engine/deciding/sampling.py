"""percentageOfNodesToScore: look at some of the nodes only.

kube-scheduler samples by default. We look at all nodes unless the user sets a percentage: with columns the other nodes cost
next to nothing, and the best node is the best of all. With a percentage the search goes round the nodes in kube-scheduler's
order. It starts where the last one stopped, and ends when enough feasible nodes are found.
"""

from __future__ import annotations

import numpy as np

from kubesched.scheduler.cluster import Bools, Ints, Snapshot
from kubesched.scheduler.framework import Verdicts

FEWEST = 100
"""Below so many nodes all are looked at, and never fewer are asked for."""
_HALF, _NODES_A_PERCENT, _LEAST_PERCENT = 50, 125, 5


class Sampling:
    """Remembers where the last search stopped; shared by all profiles."""

    def __init__(self) -> None:
        self.start = 0
        self._order: Ints = np.zeros(0, dtype=np.int64)
        self._names: list[str] | None = None

    def limit(self, verdicts: Verdicts, percentage: int) -> None:
        """Reduce verdicts over all nodes to those that a search for a percentage of them would have looked at."""
        nodes = verdicts.nodes
        order = self._rows(nodes)
        if verdicts.considered is not None:
            order = order[verdicts.considered[order]]
        wanted = n_wanted(len(order), percentage)
        start = self.start % max(len(order), 1)
        order = np.concatenate((order[start:], order[:start]))
        # `found` counts the feasible nodes up to each place. All nodes have been filtered already; the ones behind the last
        # wanted node are taken out of the verdicts, as if nobody had looked at them.
        found = np.cumsum(verdicts.feasible[order])
        if len(found) and found[-1] > wanted:
            order = order[: int(np.searchsorted(found, wanted)) + 1]
        seen: Bools = np.zeros(nodes.n, dtype=np.bool_)
        seen[order] = True
        verdicts.considered = seen
        # As in kube-scheduler, so that over many pods all nodes are looked at equally often.
        self.start = (self.start + len(order)) % nodes.n

    def _rows(self, nodes: Snapshot) -> Ints:
        names = nodes.order.names
        if names is not self._names:  # a new list whenever a node came, went, or moved to another zone
            self._order = np.array([nodes.row(name) for name in names], dtype=np.int64)
            self._names = names
        return self._order


def adaptive_percentage(n: int) -> int:
    """Return how many percent of n nodes the reference looks at where nobody said."""
    return max(_HALF - n // _NODES_A_PERCENT, _LEAST_PERCENT)


def n_wanted(n: int, percentage: int) -> int:
    """Return how many feasible nodes a search over n nodes stops at."""
    # Kept quirk: at least 100 feasible nodes are looked for, whatever the percentage. With 1,000 nodes and 5 % the search stops
    # at 100, not at 50.
    return n if n < FEWEST else max(FEWEST, n * percentage // 100)
