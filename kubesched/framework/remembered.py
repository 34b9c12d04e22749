"""What is remembered for one class of pods, beside the ground that it shares with others.

In: a ground, and what the plugins that count pods wrote down for the class. Out: the same counters, told of every pod that
came or went; which plugins have anything to say; what the last pod of the class could reach.
"""

from __future__ import annotations

import operator
from typing import Any

from kubesched.cluster import PodView, Snapshot
from kubesched.cluster.changelog import Reader
from kubesched.cluster.journal import concern_nodes
from kubesched.cluster.objects import KindVersions
from kubesched.cluster.pods import PodTemplate
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.ground import Ground
from kubesched.framework.plugin import Plugin
from kubesched.framework.reach import Reach
from kubesched.framework.remembering import Plan
from kubesched.framework.verdicts import DomainVerdicts

_MOST_TEMPLATES = 4096


class Entry:
    """One class of pods."""

    __slots__ = (
        "_feeling",
        "_glance",
        "_reader",
        "ground",
        "hopeless",
        "live",
        "plan",
        "quiet_filters",
        "quiet_scores",
        "reach",
        "state",
    )

    def __init__(self, plan: Plan, ground: Ground, nodes: Snapshot) -> None:
        self.plan = plan
        self.ground = ground
        self.state = CycleState(ground.state)
        self.state.skip_filter |= ground.state.skip_filter
        self.state.skip_score |= ground.state.skip_score
        self._reader = Reader(nodes.journal)
        self._glance = KindVersions(nodes.objects, plan.counted_reads)
        self._feeling: dict[PodTemplate, list[Plugin]] = {}
        self.hopeless: tuple[tuple[int, ...], Any] | None = None
        """What was concluded when no node passed, and the verdicts' versions that it was concluded from."""
        self.quiet_filters: set[Plugin] = set()
        """Counting plugins that had nothing to say at PreFilter; they are not asked again until something is counted."""
        self.quiet_scores: set[Plugin] = set()
        self.live = Live(plan, self.quiet_filters, self.quiet_scores)
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

    def catch_up(self, pod: PodView, nodes: Snapshot) -> bool:
        """Tell the counters what happened since they were last read; False if it is easier to begin anew."""
        if not self._glance.is_current():
            return False
        if self._reader.is_current(nodes.journal):
            return True
        changes = self._reader.changed(nodes.journal)
        if changes is None or len(changes) > nodes.n // 2 + 64:
            return False
        if concern_nodes(changes):
            for plugin in self.plan.domain_plugins:
                plugin.forget(self.state)
                self.ask_again(plugin)
            return True
        for row, _, other, sign in changes:
            if other is None:
                continue
            feeling = self._feeling.get(other.template)
            if feeling is None:
                feeling = self._who_feels(pod, other, nodes)
            for plugin in feeling:
                if plugin.repair(pod, other, row, sign, nodes, self.state):
                    self.ask_again(plugin)
        return True

    def _who_feels(self, pod: PodView, other: PodView, nodes: Snapshot) -> list[Plugin]:
        """Return the plugins whose counters a pod like the other can move."""
        if len(self._feeling) >= _MOST_TEMPLATES:
            self._feeling.clear()
        feeling = self._feeling[other.template] = [
            plugin for plugin in self.plan.domain_plugins if plugin.feels(pod, other, nodes, self.state)
        ]
        return feeling

    def quiet(self, plugin: Plugin, quiet: set[Plugin], skipped: set[str]) -> None:
        """Let a counting plugin's SKIP stand until something is counted."""
        quiet.add(plugin)
        skipped.add(plugin.name)
        self.live = Live(self.plan, self.quiet_filters, self.quiet_scores)

    def ask_again(self, plugin: Plugin) -> None:
        """Ask a plugin again whether it has anything to say: something was counted."""
        if plugin in self.quiet_filters or plugin in self.quiet_scores:
            self.quiet_filters.discard(plugin)
            self.quiet_scores.discard(plugin)
            self.state.skip_filter.discard(plugin.name)
            self.state.skip_score.discard(plugin.name)
            self.live = Live(self.plan, self.quiet_filters, self.quiet_scores)


class Live:
    """The plugins of a plan that are asked for every pod of a class, without those that have nothing to say."""

    __slots__ = ("filters", "pre_filters", "pre_scores", "scores")

    def __init__(self, plan: Plan, quiet_filters: set[Plugin], quiet_scores: set[Plugin]) -> None:
        self.pre_filters = [(p, counts) for p, counts in plan.live_pre_filters if p not in quiet_filters]
        self.filters = [p for p in plan.live_filters if p not in quiet_filters]
        self.pre_scores = [(p, counts) for p, counts in plan.live_pre_scores if p not in quiet_scores]
        self.scores = [
            (p, weight, p in plan.domain_plugins and p.implements("rate_domains"))
            for p, weight in plan.live_scores
            if p not in quiet_scores
        ]
