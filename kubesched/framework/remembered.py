"""What is remembered for one class of pods, beside the ground that it shares with others.

In: a ground, and what the plugins that count pods wrote down for the class. Out: the same counters, told of every pod that
came or went; which plugins have anything to say; what the last pod of the class could reach.
"""

from __future__ import annotations

import operator
from typing import Any

from kubesched.cluster import Snapshot
from kubesched.cluster.objects import KindVersions
from kubesched.framework.counters import CounterTable
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.ground import Ground
from kubesched.framework.plugin import Plugin
from kubesched.framework.reach import Reach
from kubesched.framework.remembering import Plan
from kubesched.framework.verdicts import DomainVerdicts


class Entry:
    """One class of pods."""

    __slots__ = (
        "_glance",
        "_skips_by",
        "ground",
        "hopeless",
        "plan",
        "quiet_filters",
        "quiet_scores",
        "reach",
        "state",
    )

    def __init__(self, plan: Plan, ground: Ground, nodes: Snapshot, counters: CounterTable) -> None:
        self.plan = plan
        self.ground = ground
        self.state = CycleState(ground.state, counters)
        self.state.skip_filter |= ground.state.skip_filter
        self.state.skip_score |= ground.state.skip_score
        self._glance = KindVersions(nodes.objects, plan.counted_reads)
        self._skips_by: dict[str, object] = {}
        self.hopeless: tuple[tuple[int, ...], Any] | None = None
        """What was concluded when no node passed, and the verdicts' versions that it was concluded from."""
        self.quiet_filters: set[Plugin] = set()
        """Counting plugins that had nothing to say at PreFilter; they are not asked again until something is counted."""
        self.quiet_scores: set[Plugin] = set()
        self.reach: Reach | None = None
        """What the last pod of the class could reach, for as long as it can follow."""

    @property
    def nbytes(self) -> int:
        """Return about what it takes beside the ground: totals of its own, and a few counters."""
        return self.ground.totals.nbytes + (1 << 12)

    def reach_beside(self, verdicts: tuple[DomainVerdicts, ...]) -> Reach:
        """Return what a pod can reach where whole domains are refused: the same as the last one, if its verdicts are."""
        reach, ground = self.reach, self.ground
        if (
            reach is None
            or len(reach.verdicts) != len(verdicts)
            or any(map(operator.is_not, reach.verdicts, verdicts))
            or not reach.follow()
        ):
            reach = self.reach = Reach(ground, ground.nodes, verdicts)
        return reach

    def catch_up(self, nodes: Snapshot) -> bool:
        """Bring the counters up to date, and let the plugins speak again whose counts changed; False if the kinds of objects
        changed that they are built from."""
        if not self._glance.is_current():
            return False
        for key, counts in self.state.counts.items():
            counts.refresh(nodes)
            if self._skips_by.get(key) != (now := counts.skips_by()):
                self._skips_by[key] = now
                self._ask_again(key.partition(".")[0])
        return True

    def quiet(self, plugin: Plugin, quiet: set[Plugin], skipped: set[str]) -> None:
        """Let a counting plugin's SKIP stand until something is counted."""
        self._skips_by = {key: counts.skips_by() for key, counts in self.state.counts.items()}
        quiet.add(plugin)
        skipped.add(plugin.name)

    def _ask_again(self, name: str) -> None:
        """Ask a plugin again whether it has anything to say: something was counted."""
        asked = {plugin for plugin in (*self.quiet_filters, *self.quiet_scores) if plugin.name == name}
        if asked:
            self.quiet_filters -= asked
            self.quiet_scores -= asked
            self.state.skip_filter.discard(name)
            self.state.skip_score.discard(name)
