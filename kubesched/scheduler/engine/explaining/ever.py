"""Whether a pod could ever fit: were the nodes empty, and nothing in the way that no eviction changes.

In: who refuses which nodes. Out: counts, and the answer in a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kubesched.scheduler.engine.explaining.obstacles import Obstacles


@dataclass(frozen=True, slots=True)
class Ever:
    """Whether a pod could ever be on one of these nodes, were they empty."""

    n_nodes: int
    n_large: int
    """Nodes that are large enough."""
    n_open: int
    """Those of them that nothing keeps it off which no eviction changes: taints, selectors, a cordon."""

    @property
    def text(self) -> str:
        """Return the answer in a sentence."""
        if not self.n_nodes:
            return "not as long as there is no node"
        if not self.n_large:
            return f"never on these nodes: none of the {self.n_nodes} is large enough, even empty"
        large = f"{self.n_large} of {self.n_nodes} nodes {'is' if self.n_large == 1 else 'are'} large enough"
        if not self.n_open:
            return f"not on these nodes as they are: {large}, but something that no eviction changes keeps it off"
        return f"yes: {large}, {self.n_open} of them open to it once others make room"


def ever(obstacles: Obstacles) -> Ever:
    """Return whether the pod could be on one of the nodes if it were empty."""
    nodes = obstacles.nodes
    large = (nodes.allowed_pods > 0) & ~obstacles.too_small()
    return Ever(nodes.n, int(np.count_nonzero(large)), int(np.count_nonzero(large & ~obstacles.beyond_eviction())))
