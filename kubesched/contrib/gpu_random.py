"""RandomScore: one random feasible node gets 100. The baseline for other policies."""

from __future__ import annotations

import numpy as np

from kubesched.scheduler.cluster import Bools, Ints
from kubesched.scheduler.framework import CycleState, Plugin, PodView, Snapshot, Status


class RandomScore(Plugin):
    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        # Drawn once for the attempt, at PreScore: Score may be called more than once and must give the same answer.
        rows = np.flatnonzero(feasible)
        state.write(self.name, int(rows[self.handle.random.randrange(len(rows))]))
        return None

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        scores = np.zeros(nodes.n, dtype=np.int64)
        scores[state.read(self.name)] = 100
        return scores
