"""What is remembered for one equivalence class of pods, beside the answers about nodes that it shares with others.

In: these answers, and the counters that plugins asked for. Out: the counters up to date; which plugins have anything to say;
the nodes that were feasible for the last pod of the class.
"""

from __future__ import annotations

from typing import Any

from kubesched.scheduler.cluster import KindVersions, PodView, Snapshot
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.equivalence_cache.counters import CounterTable
from kubesched.scheduler.framework.equivalence_cache.node_answers import NodeAnswers
from kubesched.scheduler.framework.equivalence_cache.plan import CachePlan
from kubesched.scheduler.framework.equivalence_cache.tracked import FEW_ROWS
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.runtime.feasible import FeasibleNodes
from kubesched.scheduler.framework.verdicts import DomainVerdicts

MOST_CHANGES = 2 * FEW_ROWS
"""To take in more changes than that costs more than to decide a pod without remembered answers."""


class EquivalenceClass:
    """One class of pods."""

    __slots__ = (
        "_asked_at",
        "_newest_group",
        "_read_kinds",
        "_skips_by",
        "feasible_nodes",
        "node_answers",
        "plan",
        "settled_filters",
        "skipped_scores",
        "state",
        "unschedulable_at",
        "unschedulable_result",
    )

    def __init__(self, plan: CachePlan, node_answers: NodeAnswers, nodes: Snapshot, counters: CounterTable) -> None:
        self.plan = plan
        self.node_answers = node_answers
        self.state = CycleState(node_answers.state, counters)
        self._read_kinds = KindVersions(nodes.objects, plan.counted_kinds)
        self._asked_at = nodes.journal.end
        self._newest_group = nodes.templates.affinity_groups.newest
        self._skips_by: dict[str, object] = {}
        self.unschedulable_result: tuple[tuple[int, ...], Any] | None = None
        """What was concluded when no node passed, and the verdicts' versions that it was concluded from."""
        self.unschedulable_at: tuple[int, ...] | None = None
        """The version of the cluster at which that was last found to hold."""
        self.settled_filters: set[Plugin] = set()
        """Counting plugins whose answer at PreFilter stands; they are not asked again until something is counted."""
        self.skipped_scores: set[Plugin] = set()
        """Those that had nothing to say about scores, likewise."""
        self.feasible_nodes: FeasibleNodes | None = None
        """Those of the last pod of the class, for as long as they can follow what changes."""

    @property
    def nbytes(self) -> int:
        """Return about what it takes beside the answers about nodes: totals of its own, and what domains, perhaps of one host
        each, add to them. Counters are shared, and bounded by those who keep them."""
        return 2 * self.node_answers.totals.values.nbytes + (1 << 14)

    def is_left_behind(self, nodes: Snapshot) -> bool:
        """Return whether so much has changed since the class was last asked for that its pod is better decided as if it were
        the first. Not where counters are kept, which are dear to begin anew, nor where pods change nothing of the answers, nor
        where it was concluded that no node does: it may still hold. A class that is soon asked for again is brought up to
        date, however long it was left behind."""
        before, self._asked_at = self._asked_at, nodes.journal.end
        return (
            self._asked_at - before > MOST_CHANGES
            and self.unschedulable_result is None
            and self.node_answers.follows_pods
            and (self.plan.is_for_unlike or self._counts_nothing)
        )

    @property
    def _counts_nothing(self) -> bool:
        """Return whether no plugin that is asked for every pod has anything to say."""
        return len(self.skipped_scores) == len(self.plan.live.scorers) and all(
            plugin.name in self.state.skip_filter for plugin in self.plan.live.pre_filters
        )

    def feasible_beside(self, verdicts: tuple[DomainVerdicts, ...]) -> FeasibleNodes:
        """Return the feasible nodes where whole domains are refused: as they were kept, if the same tables say so."""
        feasible_nodes, node_answers = self.feasible_nodes, self.node_answers
        if (
            feasible_nodes is None
            or feasible_nodes.verdicts != verdicts  # tables are compared by identity
            or not feasible_nodes.refresh()
        ):
            feasible_nodes = self.feasible_nodes = FeasibleNodes(node_answers, node_answers.nodes, verdicts)
        return feasible_nodes

    def refresh(self, pod: PodView, nodes: Snapshot) -> bool:
        """Bring the counters up to date, and let the plugins speak again whose counts changed; False if the kinds of objects
        changed that they are built from, or they are not for its pods any more."""
        if not self._read_kinds.is_current():
            return False
        newest_group = nodes.templates.affinity_groups.newest
        if newest_group != self._newest_group:
            if not all(counts.is_for(pod, nodes) for counts in self.state.counts.values()):
                return False
            self._newest_group = newest_group
        for key, counts in self.state.counts.items():
            counts.refresh(nodes)
            if self._skips_by.get(key) != (now := counts.skips_by()):
                self._skips_by[key] = now
                self._ask_again(key.partition(".")[0])
        return True

    def settle_filter(self, plugin: Plugin, *, skips: bool) -> None:
        """Let a counting plugin's answer at PreFilter stand until something is counted: whether it has anything to say."""
        self._settle(self.settled_filters, plugin)
        if skips:
            self.state.skip_filter |= {plugin.name}

    def skip_score(self, plugin: Plugin) -> None:
        """Let it stand likewise that a counting plugin has nothing to say about scores."""
        self._settle(self.skipped_scores, plugin)
        self.state.skip_score |= {plugin.name}

    def _settle(self, settled: set[Plugin], plugin: Plugin) -> None:
        self._skips_by = {key: counts.skips_by() for key, counts in self.state.counts.items()}
        settled.add(plugin)

    def _ask_again(self, name: str) -> None:
        """Ask a plugin again whether it has anything to say: something was counted."""
        asked = {plugin for plugin in (*self.settled_filters, *self.skipped_scores) if plugin.name == name}
        if asked:
            self.settled_filters -= asked
            self.skipped_scores -= asked
            self.state.skip_filter -= {name}
            self.state.skip_score -= {name}
