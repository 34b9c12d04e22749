"""A shortcut for the two plugins that count pods per domain: adding finished scores to the totals."""

from __future__ import annotations

from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.verdicts import Status


class AddsScores(Plugin):
    """A plugin that depends on COUNTED_PODS, and can do PreScore, Score and normalising in one step."""

    def add_scores(
        self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState, totals: Ints, weight: int
    ) -> Ints | Status | None:
        """Return totals with the scores that `pre_score`, `score` and `normalize` give, times the weight; or the status of
        `pre_score`. None leaves the pod to those three."""
        raise NotImplementedError
