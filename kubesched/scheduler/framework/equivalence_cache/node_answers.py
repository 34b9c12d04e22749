"""What plugins say of nodes to all pods that ask the same of a node, kept right row by row.

In: the answers of the plugins that look at nodes one by one, for the first pod that asks so. Out: which nodes pass, and
what they total, for every later pod that asks the same, whatever its labels, its owner and its wishes about other pods:
classes of pods share them, and a row that changed is computed again once for all of them.

The rows that changed are a view of the cluster like any other: plugins answer for it as they do for all nodes.
"""

from __future__ import annotations

import numpy as np

from kubesched.scheduler.cluster import ALLOCATABLE, NODE, Bools, Change, Ints, KindVersions, PodView, Reader, Snapshot
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.equivalence_cache.plan import CachePlan
from kubesched.scheduler.framework.equivalence_cache.tracked import FEW_ROWS
from kubesched.scheduler.framework.inputs import follows_pods
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.runtime import lifting
from kubesched.scheduler.framework.runtime.feasible import NodeTotals, NotCacheable
from kubesched.scheduler.framework.runtime.profile import MAX_SCORE, Profile
from kubesched.scheduler.framework.verdicts import MAX_REASONS, Bits, Code, Reason, Rejections

Rows = Ints | slice
_ALL_ROWS = slice(None)


class Column:
    """One filter's remembered verdicts. Reasons get their bits in the order in which they are first given."""

    __slots__ = ("bits", "follows_pods", "plugin", "reasons", "version")

    def __init__(self, plugin: Plugin, rejections: Rejections) -> None:
        if rejections.sets is not None:
            raise NotCacheable
        self.plugin = plugin
        self.follows_pods = follows_pods(plugin)
        self.reasons: list[Reason] = list(rejections.reasons)
        self.version = 0
        self.bits: Bits | None = None if rejections.bits is None else rejections.bits.copy()

    def write(self, rows: Ints, rejections: Rejections, n: int) -> None:
        """Replace the verdicts of some rows."""
        if rejections.sets is not None or rejections.errors:
            raise NotCacheable
        if rejections.bits is None:
            if self.bits is None:
                return
            bits = np.zeros(len(rows), dtype=np.uint64)
        elif tuple(self.reasons[: len(rejections.reasons)]) == rejections.reasons:
            bits = rejections.bits
        else:
            bits = np.zeros(len(rows), dtype=np.uint64)
            for i, reason in enumerate(rejections.reasons):
                bits |= rejections.has(i).astype(np.uint64) << np.uint64(self._bit(reason))
        if self.bits is None:
            self.bits = np.zeros(n, dtype=np.uint64)
        if self.bits[rows].tolist() != bits.tolist():
            self.bits[rows] = bits
            self.version += 1

    def _bit(self, reason: Reason) -> int:
        if reason not in self.reasons:
            if len(self.reasons) == MAX_REASONS:
                raise NotCacheable
            self.reasons.append(reason)
        return self.reasons.index(reason)


class Scaled:
    """A remembered score that is normalised over the feasible nodes of each attempt."""

    __slots__ = ("flat", "plugin", "raw", "weight")

    def __init__(self, plugin: Plugin, weight: int, raw: Ints) -> None:
        self.plugin = plugin
        self.weight = weight
        self.flat = int(raw[0]) if (raw == raw[0]).all() else None
        """What all nodes score, if it is the same. Normalised, a flat column is flat: it raises every total alike, and is left
        out of them."""
        self.raw: Ints | None = raw.copy() if self.flat is None else None

    def write(self, rows: Ints, raw: Ints, n: int) -> None:
        """Replace the scores of some rows of so many."""
        if self.flat is not None and (raw == self.flat).all():
            return
        if self.raw is None:
            assert self.flat is not None
            self.raw = np.full(n, self.flat, dtype=np.int64)
        self.raw[rows] = raw
        self.flat = int(self.raw[0]) if (self.raw == self.raw[0]).all() else None


class NodeAnswers(NodeTotals):
    """The answers to one way of asking. `totals` is the sum of the plain scores, far below zero where a node is refused."""

    def __init__(self, profile: Profile, plan: CachePlan, pod: PodView, nodes: Snapshot) -> None:
        """Ask the plugins about all nodes. Raise NotCacheable where the answer is not one that can be kept."""
        super().__init__(nodes)
        self.profile = profile
        self.plan = plan
        self.pod = pod
        self.nodes = nodes
        self.is_valid = True
        """Whether it may be used: false once it was found easier to begin anew."""
        self._reader = Reader(nodes.journal)
        self._read_kinds = KindVersions(nodes.objects, plan.kept_kinds)
        self.state = state = CycleState()
        self.pre_filtered = before = profile.pre_filter_with(plan.kept.pre_filters, pod, nodes, state)
        if before.status is not None:
            raise NotCacheable
        self.columns = [
            Column(plugin, _filter(profile, plugin, pod, nodes, state))
            for plugin in plan.kept.filters
            if plugin.name not in state.skip_filter
        ]
        self._following = [column for column in self.columns if column.follows_pods]
        passing = self._passing(_ALL_ROWS, nodes)
        self._pre_score(passing)
        heard = [scorer for scorer in plan.kept.scorers if scorer[0].name not in state.skip_score]
        plain = [(plugin, weight) for plugin, weight in heard if not plugin.implements("normalize")]
        self._rated = [scorer for scorer in plain if follows_pods(scorer[0])]
        """Scores that follow from a node and its pods, and below, those that follow from the node objects alone."""
        self._fixed = [scorer for scorer in plain if not follows_pods(scorer[0])]
        self.follows_pods = bool(self._following or self._rated)
        """Whether any answer changes with the pods on a node."""
        self.fixed: Ints | None = self._fixed_scores(pod, nodes, passing)
        """The sum of the scores that pods do not change; None where it is zero on all nodes."""
        self.replace(passing, self._add_up(_ALL_ROWS, pod, nodes, passing))
        self.scaled = [
            Scaled(plugin, weight, profile.raw_score(plugin, pod, nodes, passing, state))
            for plugin, weight in heard
            if plugin.implements("normalize")
        ]
        self.flat_total: int | None = None
        """What `totals` leaves out because it is the same for every node; None until somebody wants to know."""

    def _passing(self, rows: Rows, some: Snapshot) -> Bools:
        """Conclude from all columns which nodes of a view pass."""
        considered = self.pre_filtered.considered
        passing: Bools = np.ones(some.n, dtype=np.bool_) if considered is None else considered[rows].copy()
        for column in self.columns:
            if column.bits is not None:
                passing &= column.bits[rows] == 0
        return passing

    def _add_up(self, rows: Rows, pod: PodView, some: Snapshot, passing: Bools) -> Ints:
        """Return the sum of the plain scores of nodes, which are those of a view."""
        totals = np.zeros(some.n, dtype=np.int64) if self.fixed is None else self.fixed[rows].copy()
        for plugin, weight in self._rated:
            totals += self.profile.rate(plugin, pod, some, passing, self.state) * weight
        return totals

    def _pre_score(self, passing: Bools) -> None:
        for plugin in self.plan.kept.pre_scores:
            answer = self.profile.call("PreScore", plugin, plugin.pre_score, self.pod, self.nodes, passing, self.state)
            if answer is not None and answer.code is not Code.SUCCESS:
                if answer.code is not Code.SKIP:
                    raise NotCacheable
                self.state.skip_score |= {plugin.name}

    def _fixed_scores(self, pod: PodView, nodes: Snapshot, passing: Bools) -> Ints | None:
        fixed: Ints | None = None
        for plugin, weight in self._fixed:
            column = self.profile.rate(plugin, pod, nodes, passing, self.state)
            if column.any():
                fixed = column * weight if fixed is None else fixed + column * weight
        return fixed

    # What others read

    def add_up_flat(self, pod: PodView, nodes: Snapshot, state: CycleState) -> int:
        """Return, and remember, what `totals` leaves out because it is the same for every node."""
        one, total = np.ones(1, dtype=np.bool_), 0
        for scaled in self.scaled:
            if scaled.flat is not None:
                raw = np.array([scaled.flat], dtype=np.int64)
                column = self.profile.normalized(scaled.plugin, raw, pod, nodes.take([0]), one, state)
                total += int(column[0]) * scaled.weight
        self.flat_total = total
        return total

    @property
    def nbytes(self) -> int:
        """Return what the columns take."""
        columns = sum(c.bits.nbytes for c in self.columns if c.bits is not None)
        return (
            columns
            + self.passing.values.nbytes
            + self.totals.values.nbytes
            + (self.fixed.nbytes if self.fixed is not None else 0)
            + sum(scaled.raw.nbytes for scaled in self.scaled if scaled.raw is not None)
        )

    def versions(self) -> tuple[int, ...]:
        """Return numbers that stay the same as long as the verdicts do."""
        return tuple([column.version for column in self.columns])

    @property
    def read_until(self) -> int:
        """Return up to which position of the journal everything is taken in."""
        return self._reader.position

    # Repairing

    def refresh(self, pod: PodView, nodes: Snapshot) -> bool:
        """Take in what changed since they were last used; False if it is easier to begin anew, now and ever after.

        It is not valid while it is being repaired: where a plugin breaks over it, it is half repaired and stays invalid.
        """
        if not self._read_kinds.is_current():
            self.is_valid = False
        elif self.is_valid:
            changes = self._reader.changed(nodes.journal)
            if changes is not None and not changes:
                return True
            self.is_valid = False
            if changes is not None and len(changes) <= nodes.n // 2 + 64:
                self.is_valid = self._take_in(changes, pod, nodes)
        return self.is_valid

    def _take_in(self, changes: list[Change], pod: PodView, nodes: Snapshot) -> bool:
        """Repair all rows that changed; False if that is not to be done row by row."""
        rows, what = set[int](), 0
        for change in changes:
            rows.add(change.row)
            what |= change.what
        is_of_nodes = what & (NODE | ALLOCATABLE) != 0
        if not (is_of_nodes or self.follows_pods):
            return True
        if is_of_nodes:
            # Labels, taints, images or amounts: what follows from node objects is computed again, on these rows or on all.
            if self.plan.compares_nodes:
                return False
            self._repair_nodes(np.array(sorted(rows)), pod, nodes)
        else:
            self._repair_rows(np.array(sorted(rows)), pod, nodes, self._following)
        return True

    def _repair_nodes(self, rows: Ints, pod: PodView, nodes: Snapshot) -> None:
        """Compute again what follows from node objects: these rows, and the scores that compare nodes with each other."""
        fixed = self._fixed_scores(pod, nodes, self.passing.values)
        if fixed is not None or self.fixed is not None:
            nothing = np.int64(0)
            more = (nothing if fixed is None else fixed) - (nothing if self.fixed is None else self.fixed)
            self.totals.replace(self.totals.values + np.where(self.passing.values, more, 0))
        self.fixed = fixed
        some = nodes.take(rows)
        for scaled in self.scaled:
            before = scaled.flat
            scaled.write(rows, self.profile.raw_score(scaled.plugin, pod, some, self.passing.values[rows], self.state), nodes.n)
            if scaled.flat != before:
                self.flat_total = None
        self._repair_rows(rows, pod, nodes, self.columns)
        self._by_key.clear()  # a node may be in another domain
        self.passing.changes.restart()

    def _repair_rows(self, rows: Ints, pod: PodView, nodes: Snapshot, columns: list[Column]) -> None:
        """Compute rows again, all at once. Plugins are called without being named: this is the hot path, and one that breaks is
        named on the plain one."""
        some = nodes.take(rows)
        for column in columns:
            column.write(rows, self._ask_filter(column.plugin, self.pod, some, self.state), nodes.n)
        passing = self._passing(rows, some)
        if len(rows) > FEW_ROWS:
            all_passing, totals = self.passing.values.copy(), self.totals.values.copy()
            all_passing[rows], totals[rows] = passing, self._add_up(rows, pod, some, passing)
            self.replace(all_passing, totals)
            return
        scores = [(self._ask_score(plugin, self.pod, some, passing, self.state), weight) for plugin, weight in self._rated]
        for i, row in enumerate(rows.tolist()):
            passes, total = passing.item(i), 0 if self.fixed is None else self.fixed.item(row)
            for scored, weight in scores:
                score = scored.item(i)
                if passes and not 0 <= score <= MAX_SCORE:
                    raise NotCacheable
                total += score * weight
            self.put(row, passes, total, nodes)

    @staticmethod
    def _ask_filter(plugin: Plugin, pod: PodView, some: Snapshot, state: CycleState) -> Rejections:
        if plugin.implements("filter"):
            return plugin.filter(pod, some, state)
        return lifting.filter_rows(plugin, pod, some, state)

    @staticmethod
    def _ask_score(plugin: Plugin, pod: PodView, some: Snapshot, passing: Bools, state: CycleState) -> Ints:
        if plugin.implements("score"):
            return plugin.score(pod, some, state)
        return lifting.score_rows(plugin, pod, some, passing, state)


def _filter(profile: Profile, plugin: Plugin, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
    rejections = profile.filter_one(plugin, pod, nodes, state)
    if rejections.errors:
        raise NotCacheable
    return rejections
