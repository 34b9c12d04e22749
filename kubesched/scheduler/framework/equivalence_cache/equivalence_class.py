"""What the cache keeps for one equivalence class of pods, and what it answers for one pod of it.

Pods of one class have equal templates, so every plugin treats them alike. A class refers to the answers about nodes, which it
may share with other classes, and has a state of its own with the counters of the plugins that count pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubesched.scheduler.cluster import Bools, Ints, KindVersions, PodView, Snapshot
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.equivalence_cache.counters import CounterTable
from kubesched.scheduler.framework.equivalence_cache.node_answers import NodeAnswers
from kubesched.scheduler.framework.equivalence_cache.plan import CachePlan
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.runtime.profile import PreFiltered, Profile
from kubesched.scheduler.framework.verdicts import Rejections, Verdicts


class EquivalenceClass:
    """One class of pods.

    A counting plugin is called at PreFilter once, and its answer stands (`settled`). If it skips Score, that stands too
    (`silent`). Both end when a counter changes so that the plugin could answer differently (`PodCounts.skips_by`).
    """

    __slots__ = (
        "_newest_group",
        "_read_kinds",
        "_skips_by",
        "node_answers",
        "plan",
        "settled",
        "silent",
        "state",
        "unschedulable_at",
        "unschedulable_result",
    )

    def __init__(self, plan: CachePlan, node_answers: NodeAnswers, nodes: Snapshot, counters: CounterTable) -> None:
        self.plan = plan
        self.node_answers = node_answers
        self.state = CycleState(node_answers.state, counters)
        self._read_kinds = KindVersions(nodes.objects, plan.counted_kinds)
        self._newest_group = nodes.templates.affinity_groups.newest
        self._skips_by: list[object] = []
        self.settled: set[Plugin] = set()
        self.silent: set[Plugin] = set()
        self.unschedulable_result: tuple[tuple[int, ...], Any] | None = None
        """What was decided when no node passed, with the versions of the verdicts or of the cluster that it follows from."""
        self.unschedulable_at: tuple[int, ...] | None = None
        """The version of the cluster for which this result was last found to hold."""

    @property
    def nbytes(self) -> int:
        """Return about how much the class keeps alive: its state, and counters with perhaps a domain for each node."""
        return 2 * self.node_answers.totals.nbytes + (1 << 14)

    def refresh(self, pod: PodView, nodes: Snapshot) -> bool:
        """Update the counters. Return False if the class must be made anew: an object changed that counters are made from, or a
        new pod has affinity terms about pods of this class."""
        if not self._read_kinds.is_current():
            return False
        newest_group = nodes.templates.affinity_groups.newest
        if newest_group != self._newest_group:
            if not all(counts.is_for(pod, nodes) for counts in self.state.counts.values()):
                return False
            self._newest_group = newest_group
        for counts in self.state.counts.values():
            counts.refresh(nodes)
        if self._skips_by != [counts.skips_by() for counts in self.state.counts.values()]:
            self.settled.clear()
            self.silent.clear()
            kept = self.node_answers.state
            self.state.skip_filter, self.state.skip_score = kept.skip_filter, kept.skip_score
        return True

    def settle(self, plugin: Plugin, *, skips: bool) -> None:
        """Let a counting plugin's answer at PreFilter stand; `skips` says whether Filter leaves the plugin out."""
        self.settled.add(plugin)
        if skips:
            self.state.skip_filter |= {plugin.name}
        self._skips_by = [counts.skips_by() for counts in self.state.counts.values()]

    def silence(self, plugin: Plugin) -> None:
        """Leave a counting plugin out of Score from now on."""
        self.silent.add(plugin)
        self.state.skip_score |= {plugin.name}
        self._skips_by = [counts.skips_by() for counts in self.state.counts.values()]


@dataclass(slots=True)
class CachedAnswer:
    """The cache's answer for one pod. The arrays are borrowed: they are right until the next pod is booked."""

    state: CycleState
    pre_filtered: PreFiltered
    of_class: EquivalenceClass
    live: dict[str, Rejections]
    """The answers of the filters that are called for every pod."""
    admitted: Ints
    """The totals of the kept plugins alone, below zero where a node is refused."""
    n_feasible: int
    totals: Ints
    """The sum of all scores, except those that are the same for all nodes. Far below zero where a node is refused."""
    flat: int = 0
    """What the live plugins score the same for all nodes."""
    _feasible: Bools | None = None

    @property
    def feasible(self) -> Bools:
        """Return which nodes pass all filters."""
        if self._feasible is None:
            answers = self.of_class.node_answers
            self._feasible = answers.passing if self.admitted is answers.totals else self.admitted >= 0
        return self._feasible

    def left_out(self, pod: PodView, nodes: Snapshot) -> int:
        """Return the part of the score that is the same for all nodes, which the totals leave out."""
        answers = self.of_class.node_answers
        return self.flat + (answers.add_up_flat(pod, nodes, self.state) if answers.flat_total is None else answers.flat_total)

    def verdict_version(self) -> tuple[int, ...] | None:
        """Return numbers that stay the same as long as the verdicts do. None if verdicts of live filters are among them."""
        of_class = self.of_class
        if self.live or of_class.plan.is_for_unlike or self.pre_filtered is not of_class.node_answers.pre_filtered:
            return None
        return of_class.node_answers.versions()

    def cluster_version(self, nodes: Snapshot) -> tuple[int, ...] | None:
        """Return numbers that stay the same as long as nothing changes. None if another pod of the class could get other
        verdicts even then."""
        return cluster_version(nodes) if self.of_class.plan.answers_for_class else None

    def verdicts(self, profile: Profile, nodes: Snapshot) -> Verdicts:
        """Return the verdicts of all filters in their order, for a diagnosis."""
        verdicts = Verdicts(nodes, self.pre_filtered.considered)
        kept = {column.plugin.name: column for column in self.of_class.node_answers.columns}
        for plugin in profile.filters:
            if plugin.name in kept:
                column = kept[plugin.name]
                verdicts.add(plugin.name, Rejections(column.bits, tuple(column.reasons)))
            elif plugin.name in self.live:
                verdicts.add(plugin.name, self.live[plugin.name])
        return verdicts


def cluster_version(nodes: Snapshot) -> tuple[int, ...]:
    """Return numbers that stay the same as long as nothing in the cluster changes."""
    return nodes.structure, nodes.journal.end, nodes.objects.revision, -1
