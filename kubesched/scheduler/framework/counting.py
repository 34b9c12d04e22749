"""Plugins that count pods per domain of a label: what they may say beside columns.

Some plugins answer from counters (`CycleState.counted`), and say the same of all nodes of a domain. The memory of answers then
asks about domains, which are few, and not about nodes. That is for the plugins of this package: whoever writes a plugin needs
columns and `depends_on`.
"""

from __future__ import annotations

from kubesched.scheduler.cluster import PodView, Snapshot
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.runtime.feasible import FeasibleNodes
from kubesched.scheduler.framework.verdicts import DomainScores, DomainVerdicts, SpreadScores, Status


class CountsPods(Plugin):
    """A plugin that depends on COUNTED_PODS, and may answer for whole domains; its columns say the same."""

    def filter_domains(self, pod: PodView, nodes: Snapshot, state: CycleState) -> DomainVerdicts | None:
        """Return what `filter` would say, where all nodes of a domain of one label key are told the same; else None."""
        return None

    def score_domains(
        self, pod: PodView, nodes: Snapshot, feasible: FeasibleNodes, state: CycleState
    ) -> DomainScores | SpreadScores | Status | None:
        """Return what `pre_score`, `score` and `normalize` would say, where all nodes of a domain of one label key score the
        same, or by what several domains hold together: the domains' scores, or the Status of PreScore. None leaves it to those.
        """
        return None
