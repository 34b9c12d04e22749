"""LoadVariationRiskBalancing: prefer nodes whose load is low and steady, as in the scheduler-plugins project.

For CPU and memory, risk = (mu + sigma) / 2, where mu is the used fraction with the pod and sigma the deviation of the load. The
score is that of the worse resource: 100 * (1 - risk). CPU with mu 0.5 and sigma 0.1: 70; memory with 0.6 and 0.2: 60; the node
scores 60. The measured load counts, not requests. A node without measurements scores 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kubesched.contrib.node_load import NodeLoad, TrimaranArgs, Usage, follow
from kubesched.scheduler.cluster import Ints, PodView, Snapshot
from kubesched.scheduler.framework import CycleState, Handle, Input, Plugin

Floats = npt.NDArray[np.float64]
UNKNOWN = Usage()


class LoadVariationRiskBalancingArgs(TrimaranArgs, frozen=True, rename="camel"):
    """sigma = deviation ** (1 / sensitivity) * margin. A negative value means 1."""

    safe_variance_margin: float = 1.0
    safe_variance_sensitivity: float = 1.0


class LoadVariationRiskBalancing(Plugin):
    Args = LoadVariationRiskBalancingArgs
    depends_on = (Input.POD_REQUIREMENTS, Input.NODE, NodeLoad)

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        margin, sensitivity = self.args.safe_variance_margin, self.args.safe_variance_sensitivity
        self._margin = margin if margin >= 0 else 1.0
        self._sensitivity = sensitivity if sensitivity >= 0 else 1.0

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        """Return 100 * (1 - risk) of the worse resource of each node, rounded."""
        load = follow(self.args, self.handle.objects).load()
        if load is None:
            return np.zeros(nodes.n, dtype=np.int64)
        # Columns: cpu, cpu_deviation, memory, memory_deviation, in percent (`Usage`).
        usage = np.array([load.usage.get(name, UNKNOWN) for name in nodes.names]).reshape(-1, 4)
        asked = dict(pod.requests)
        cpu, memory = (
            self._score(asked.get(resource, 0), nodes.allocatable(resource), usage[:, column], usage[:, column + 1])
            for resource, column in ((nodes.resource("cpu"), 0), (nodes.resource("memory"), 2))
        )
        # fmin ignores NaN: if only one resource was measured, it counts.
        worse = np.fmin(cpu, memory)
        scores: Ints = np.floor(np.where(np.isnan(worse), 0.0, worse) + 0.5).astype(np.int64)
        return scores

    def _score(self, asked: int, offered: Ints, average: Floats, deviation: Floats) -> Floats:
        """Return 0 to 100 for a resource, NaN where it was not measured."""
        with np.errstate(divide="ignore", invalid="ignore"):
            # The measured use, as an amount, plus the pod's request; at most the whole node. A sensitivity of 0 makes
            # the exponent infinite: then a deviation below 1 counts as 0.
            mu = np.clip((np.clip(average, 0, 100) / 100 * offered + asked) / offered, 0, 1)
            sigma = np.clip(deviation / 100, 0, 1) ** (1 / self._sensitivity if self._sensitivity else np.inf)
        risk = (mu + np.clip(sigma * self._margin, 0, 1)) / 2
        return np.where(offered > 0, (1 - risk) * 100, np.where(np.isnan(average), np.nan, 0.0))
