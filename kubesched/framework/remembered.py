"""What is remembered for one class of pods, and how a changed row is computed again.

In: the answers of a profile's plugins for the first pod of a class. Out: columns of verdicts and totals, kept right row by
row. A row is asked about through functions that have read beforehand whatever is the same for all rows
(`Plugin.row_filter`, `Plugin.row_score`); they are made when the first row changes, as most classes never see one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from kubesched.cluster import Bools, Ints, PodView, Snapshot
from kubesched.framework import lifting
from kubesched.framework.plugin import Plugin, Refusal, Scope
from kubesched.framework.profile import MAX_SCORE, PreFiltered, Profile
from kubesched.framework.reach import REFUSED, Reach, Unusual, count_by
from kubesched.framework.remembering import Plan
from kubesched.framework.state import State
from kubesched.framework.verdicts import MAX_REASONS, Bits, DomainVerdicts, Reason, Rejections

Running = tuple[str, str]
_LONGEST = 256


class Column:
    """One filter's remembered verdicts. Reasons get their bits in the order in which they are first given."""

    __slots__ = ("bits", "follows_pods", "plugin", "reasons", "running", "verdict", "version")

    def __init__(self, plugin: Plugin, rejections: Rejections) -> None:
        self.plugin = plugin
        self.running: Running = (plugin.name, "Filter")
        self.follows_pods = plugin.filter_scope is Scope.ROW
        self.reasons: list[Reason] = list(rejections.reasons)
        self.version = 0
        self.bits: Bits | None = None if rejections.bits is None else rejections.bits.copy()
        self.verdict: Callable[[int], Refusal] | None = None

    def write(self, rows: Ints, rejections: Rejections, n: int) -> None:
        """Replace the verdicts of some rows."""
        self.version += 1
        if rejections.bits is None:
            if self.bits is not None:
                self.bits[rows] = 0
            return
        if self.bits is None:
            self.bits = np.zeros(n, dtype=np.uint64)
        if tuple(self.reasons[: len(rejections.reasons)]) == rejections.reasons:
            self.bits[rows] = rejections.bits
            return
        moved = np.zeros(len(rows), dtype=np.uint64)
        for i, reason in enumerate(rejections.reasons):
            moved |= (rejections.bits >> np.uint64(i) & np.uint64(1)) << np.uint64(self._bit(reason))
        self.bits[rows] = moved

    def write_one(self, row: int, reasons: tuple[Reason, ...], n: int) -> None:
        """Replace the verdict of one row."""
        if self.bits is None:
            if not reasons:
                return
            self.bits = np.zeros(n, dtype=np.uint64)
        bits = 0
        for reason in reasons:
            bits |= 1 << self._bit(reason)
        if bits != self.bits.item(row):
            self.bits[row] = bits
            self.version += 1

    def _bit(self, reason: Reason) -> int:
        if reason not in self.reasons:
            if len(self.reasons) == MAX_REASONS:
                raise Unusual
            self.reasons.append(reason)
        return self.reasons.index(reason)


class Scaled:
    """A remembered score that is normalised over the feasible nodes of each attempt."""

    __slots__ = ("is_flat", "plugin", "raw", "weight")

    def __init__(self, plugin: Plugin, weight: int, raw: Ints) -> None:
        self.plugin = plugin
        self.weight = weight
        self.raw = raw
        self.is_flat = bool((raw == raw[0]).all())
        """Normalised, a flat column is flat: it raises every total alike, and is left out of them."""

    def write(self, rows: Ints, raw: Ints) -> None:
        """Replace the scores of some rows."""
        self.raw[rows] = raw
        self.is_flat = bool((self.raw == self.raw[0]).all())


class Entry:
    """One class of pods. `totals` is the sum of the plain scores, far below zero where a node is refused."""

    __slots__ = ("_by_key", "_passing_cells", "_raters", "_totals_cells", "admitted", "columns", "fixed", "following",
                 "hopeless", "live", "n_passing", "nodes", "passing", "plan", "pod", "position", "pre_filtered", "profile",
                 "quiet_filters", "quiet_scores", "reach", "repaired", "revision", "scaled", "state", "structure", "totals",
                 "versions")

    def __init__(self, profile: Profile, plan: Plan, pod: PodView, nodes: Snapshot, versions: tuple[int, ...]) -> None:
        self.profile = profile
        self.plan = plan
        self.pod = pod
        self.nodes = nodes
        self.structure = nodes.structure
        self.position = nodes.journal.end
        self.versions = versions
        self.revision = nodes.objects.revision
        self.state = State()
        self.columns: list[Column] = []
        self.following: list[Column] = []
        self.pre_filtered = PreFiltered()
        self.admitted: Bools = np.ones(nodes.n, dtype=np.bool_)
        """The nodes that pass everything that pods do not change."""
        self.passing: Bools = np.ones(nodes.n, dtype=np.bool_)
        self.n_passing = nodes.n
        self.fixed: Ints = np.zeros(nodes.n, dtype=np.int64)
        self.totals: Ints = np.zeros(nodes.n, dtype=np.int64)
        self._passing_cells = memoryview(self.passing.data)
        self._totals_cells = memoryview(self.totals.data)
        self.scaled: list[Scaled] = []
        self.hopeless: tuple[tuple[int, ...], Any] | None = None
        """What was concluded when no node passed, and the verdicts' versions that it was concluded from."""
        self.quiet_filters: set[Plugin] = set()
        """Counting plugins that had nothing to say at PreFilter; they are not asked again until something is counted."""
        self.quiet_scores: set[Plugin] = set()
        self.live = Live(plan, self.quiet_filters, self.quiet_scores)
        self._raters: list[tuple[Callable[[int], int], int, Running]] | None = None
        self._by_key: dict[str, Ints] = {}
        self.reach: Reach | None = None
        """What the last pod of the class could reach, for as long as the same nodes pass."""
        self.repaired: list[int] = []

    @property
    def nbytes(self) -> int:
        """Return what the columns take."""
        columns = sum(c.bits.nbytes for c in self.columns if c.bits is not None)
        return (columns + self.passing.nbytes + self.admitted.nbytes + self.totals.nbytes + self.fixed.nbytes
                + sum(scaled.raw.nbytes for scaled in self.scaled))

    def passing_by(self, key: str, nodes: Snapshot) -> Ints:
        """Return how many passing nodes are in each domain of a label key, and at the end how many lack the label."""
        counts = self._by_key.get(key)
        if counts is None:
            counts = self._by_key[key] = count_by(key, self.passing, nodes)
        return counts

    def add_up(self) -> None:
        """Conclude from all columns which nodes pass."""
        self.following = [column for column in self.columns if column.follows_pods]
        self.admitted[:] = True
        for column in self.columns:
            if column.bits is not None and not column.follows_pods:
                self.admitted &= column.bits == 0
        if self.pre_filtered.considered is not None:
            self.admitted &= self.pre_filtered.considered
        self.passing[:] = self.admitted
        for column in self.following:
            if column.bits is not None:
                self.passing &= column.bits == 0
        self.recount()

    def recount(self) -> None:
        """Take notice that other nodes pass than before."""
        self.n_passing = int(np.count_nonzero(self.passing))
        self._by_key.clear()
        self.reach = None

    def reach_beside(self, verdicts: tuple[DomainVerdicts, ...]) -> Reach:
        """Return what a pod can reach where whole domains are refused: the same as the last one, if its verdicts are."""
        reach = self.reach
        if reach is None or len(reach.verdicts) != len(verdicts) or len(self.repaired) > _LONGEST or any(
                map(operator.is_not, reach.verdicts, verdicts)):
            self.repaired.clear()
            reach = self.reach = Reach(self, self.nodes, verdicts)
        else:
            reach.follow()
        return reach

    # What is asked for every pod

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

    # One row

    def repair_row(self, row: int) -> None:
        """Compute one row again."""
        profile = self.profile
        passes = self.admitted.item(row)
        for column in self.following:
            profile.running = column.running
            if column.verdict is None:
                column.verdict = self._verdict_of(column.plugin)
            answer = column.verdict(row)
            reasons = () if answer is None else lifting.reasons_of(column.plugin, answer)
            if reasons:
                passes = False
            if reasons or column.bits is not None:
                column.write_one(row, reasons, self.nodes.n)
        if passes != self._passing_cells[row]:
            self.n_passing += 1 if passes else -1
            self._passing_cells[row] = passes
            self._by_key.clear()
            self.reach = None
        for scaled in self.scaled:
            if scaled.plugin.score_scope is Scope.ROW:
                raw = profile.raw_score(scaled.plugin, self.pod, self.nodes.take([row]), self.passing[[row]], self.state)
                scaled.write(np.array([row]), raw)
        self._totals_cells[row] = self._total(row) if passes else REFUSED
        self.repaired.append(row)

    def _total(self, row: int) -> int:
        if self._raters is None:
            self._raters = [(self._score_of(plugin), weight, (plugin.name, "Score"))
                            for plugin, weight in self.plan.row_scores if plugin.name not in self.state.skip_score]
        profile, total = self.profile, int(self.fixed.item(row))
        for rate, weight, running in self._raters:
            profile.running = running
            score = rate(row)
            if not 0 <= score <= MAX_SCORE:
                raise Unusual
            total += score * weight
        return total

    def _verdict_of(self, plugin: Plugin) -> Callable[[int], Refusal]:
        profile, pod, nodes, state = self.profile, self.pod, self.nodes, self.state
        if plugin.implements("filter_node"):
            return lifting.row_filter(plugin, pod, nodes, state)

        def verdict(row: int) -> Refusal:
            rejections = profile.filter_one(plugin, pod, nodes.take([row]), state)
            if rejections.errors:
                raise Unusual
            return rejections.at(0)

        return verdict

    def _score_of(self, plugin: Plugin) -> Callable[[int], int]:
        profile, pod, nodes, state = self.profile, self.pod, self.nodes, self.state
        if plugin.implements("score_node"):
            return lifting.row_score(plugin, pod, nodes, state)
        here = np.ones(1, dtype=np.bool_)
        return lambda row: int(profile.rate(plugin, pod, nodes.take([row]), here, state)[0])


class Live:
    """The plugins of a plan that are asked for every pod of a class, without those that have nothing to say."""

    __slots__ = ("filters", "pre_filters", "pre_scores", "scores")

    def __init__(self, plan: Plan, quiet_filters: set[Plugin], quiet_scores: set[Plugin]) -> None:
        self.pre_filters = [(p, counts) for p, counts in plan.live_pre_filters if p not in quiet_filters]
        self.filters = [p for p in plan.live_filters if p not in quiet_filters]
        self.pre_scores = [(p, counts) for p, counts in plan.live_pre_scores if p not in quiet_scores]
        self.scores = [(p, weight, p in plan.domain_plugins and p.implements("rate_domains"))
                       for p, weight in plan.live_scores if p not in quiet_scores]
