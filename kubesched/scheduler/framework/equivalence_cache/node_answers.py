"""What the kept plugins answer about every node, updated row by row.

In: a pod, and the nodes. Out: which nodes pass these plugins' filters, and the sum of their scores. The answers hold for all
pods that ask the same of a node, so several equivalence classes share them. A booked pod changes one row: the plugins are
called again with a view of the cluster that has only this row.
"""

from __future__ import annotations

import numpy as np

from kubesched.scheduler.cluster import ALLOCATABLE, NODE, Bools, Ints, KindVersions, PodView, Reader, Snapshot, is_uniform
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.equivalence_cache.plan import CachePlan
from kubesched.scheduler.framework.inputs import follows_pods
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.runtime import lifting
from kubesched.scheduler.framework.runtime.profile import MAX_SCORE, Profile
from kubesched.scheduler.framework.verdicts import MAX_REASONS, Bits, Code, Reason, Rejections

REFUSED = -(1 << 40)
"""The total of a refused node. It stays below all others, whatever scores are added to it."""
FEW_ROWS = 16
"""Up to so many rows are written one by one in plain Python, which is faster than NumPy on short arrays."""


class NotCacheable(Exception):
    """The pod must be decided the plain way. Never leaves the cache."""


class Column:
    """The verdicts of one filter on all nodes. A reason gets its bit when it is first given; `version` counts changes."""

    __slots__ = ("bits", "plugin", "reasons", "version")

    def __init__(self, plugin: Plugin, rejections: Rejections) -> None:
        if rejections.sets is not None or rejections.errors:
            raise NotCacheable
        self.plugin = plugin
        self.reasons: list[Reason] = list(rejections.reasons)
        self.version = 0
        self.bits: Bits | None = None if rejections.bits is None else rejections.bits.copy()

    def write(self, rows: Ints, rejections: Rejections, n: int) -> None:
        """Replace the verdicts on some rows of `n`."""
        if rejections.sets is not None or rejections.errors:
            raise NotCacheable
        bits = rejections.bits
        if bits is None:
            if self.bits is None:
                return
            bits = np.zeros(len(rows), dtype=np.uint64)
        elif tuple(self.reasons[: len(rejections.reasons)]) != rejections.reasons:  # other bits than ours: translate
            self.reasons += [reason for reason in rejections.reasons if reason not in self.reasons]
            if len(self.reasons) > MAX_REASONS:
                raise NotCacheable
            bits = np.zeros(len(rows), dtype=np.uint64)
            for i, reason in enumerate(rejections.reasons):
                bits |= rejections.has(i).astype(np.uint64) << np.uint64(self.reasons.index(reason))
        if self.bits is None:
            self.bits = np.zeros(n, dtype=np.uint64)
        if self.bits[rows].tolist() != bits.tolist():
            self.bits[rows] = bits
            self.version += 1


class Scaled:
    """The scores of one plugin before they are normalised over the feasible nodes of each pod.

    Where all nodes score the same, `raw` is uniform. Normalised, they still score the same, so the totals leave them out.
    """

    __slots__ = ("plugin", "raw", "weight")

    def __init__(self, plugin: Plugin, weight: int, raw: Ints) -> None:
        self.plugin = plugin
        self.weight = weight
        self.raw = np.broadcast_to(raw[0], len(raw)) if (raw == raw[0]).all() else raw.copy()

    def write(self, rows: Ints, raw: Ints) -> None:
        """Replace the scores of some rows."""
        if is_uniform(self.raw):
            if (raw == self.raw[0]).all():
                return
            self.raw = self.raw.copy()
        self.raw[rows] = raw


class NodeAnswers:
    """The kept answers to pods that ask the same of a node.

    `passing` says which nodes pass all filters, and `n_passing` how many. `totals` is the sum of the scores that are not
    normalised, and REFUSED where a node does not pass. All are borrowed: they change with the next refresh.
    """

    def __init__(self, profile: Profile, plan: CachePlan, pod: PodView, nodes: Snapshot) -> None:
        """Call the kept plugins for all nodes. Raise NotCacheable if PreFilter refuses the pod or a filter breaks."""
        self.profile, self.plan, self.pod = profile, plan, pod
        self._reader = Reader(nodes.journal)
        self._read_kinds = KindVersions(nodes.objects, plan.kept_kinds)
        self._by_key: dict[str, Ints] = {}
        self.state = state = CycleState()
        self.pre_filtered = profile.pre_filter_with(plan.kept_pre_filters, pod, nodes, state)
        if self.pre_filtered.status is not None:
            raise NotCacheable
        self.columns = [
            Column(plugin, profile.filter_one(plugin, pod, nodes, state))
            for plugin in plan.kept_filters
            if plugin.name not in state.skip_filter
        ]
        self._following = [column for column in self.columns if follows_pods(column.plugin)]
        passing = self._passing(None, nodes)
        for plugin in plan.kept_pre_scores:
            answer = profile.call("PreScore", plugin, plugin.pre_score, pod, nodes, passing, state)
            if answer is not None and answer.code is not Code.SUCCESS:
                if answer.code is not Code.SKIP:
                    raise NotCacheable
                state.skip_score |= {plugin.name}
        scorers = [scorer for scorer in plan.kept_scorers if scorer[0].name not in state.skip_score]
        plain = [scorer for scorer in scorers if not scorer[0].implements("normalize")]
        self._rated = [scorer for scorer in plain if follows_pods(scorer[0])]
        self._fixed_by = [scorer for scorer in plain if not follows_pods(scorer[0])]
        self._fixed = self._fixed_scores(pod, nodes, passing)
        """The sum of the scores that no pod changes; None where it is zero on all nodes."""
        self.scaled = [
            Scaled(plugin, weight, profile.raw_score(plugin, pod, nodes, passing, state))
            for plugin, weight in scorers
            if plugin.implements("normalize")
        ]
        self.flat_total: int | None = None
        """What the totals leave out because all nodes score the same. None until `add_up_flat` was called."""
        self._replace(passing, self._add_up(None, pod, nodes, passing))

    def refresh(self, pod: PodView, nodes: Snapshot) -> bool:
        """Update the rows that changed since the last call. Return False if the answers must be made anew."""
        if not self._read_kinds.is_current():
            return False
        changes = self._reader.changed(nodes.journal)
        if changes is not None and not changes:
            return True
        if changes is None or len(changes) > nodes.n // 2 + 64:
            self._reader.forget()
            return False
        rows, what = set[int](), 0
        for change in changes:
            rows.add(change.row)
            what |= change.what
        if what & (NODE | ALLOCATABLE):
            if self.plan.compares_nodes:
                self._reader.forget()
                return False
            update, columns = self._update_nodes, self.columns
        elif self._following or self._rated:
            update, columns = self._update_rows, self._following
        else:
            return True
        try:
            update(np.array(sorted(rows)), pod, nodes, columns)
        except BaseException:
            self._reader.forget()  # what a broken plugin left half done is never used
            raise
        return True

    def _update_nodes(self, rows: Ints, pod: PodView, nodes: Snapshot, columns: list[Column]) -> None:
        """Compute these rows anew, and for all rows the scores that no pod changes: they may compare nodes."""
        fixed, before = self._fixed_scores(pod, nodes, self.passing), self._fixed
        if before is not None:
            self.totals -= np.where(self.passing, before, 0)
        if fixed is not None:
            self.totals += np.where(self.passing, fixed, 0)
        self._fixed = fixed
        some = nodes.take(rows)
        for scaled in self.scaled:
            was_flat = is_uniform(scaled.raw)
            scaled.write(rows, self.profile.raw_score(scaled.plugin, pod, some, self.passing[rows], self.state))
            if was_flat != is_uniform(scaled.raw):
                self.flat_total = None
        self._update_rows(rows, pod, nodes, columns)
        self._by_key.clear()  # a node may have moved to another domain

    def _update_rows(self, rows: Ints, pod: PodView, nodes: Snapshot, columns: list[Column]) -> None:
        """Compute these rows anew in one call of each plugin. This is the hot path: plugins are called without a wrapper, and
        one that raises is named when the pod is decided the plain way."""
        some, state = nodes.take(rows), self.state
        for column in columns:
            plugin = column.plugin
            ask = plugin.filter if plugin.implements("filter") else None
            column.write(
                rows, ask(self.pod, some, state) if ask else lifting.filter_rows(plugin, self.pod, some, state), nodes.n
            )
        passing = self._passing(rows, some)
        if len(rows) > FEW_ROWS:
            all_passing, totals = self.passing.copy(), self.totals.copy()
            all_passing[rows], totals[rows] = passing, self._add_up(rows, pod, some, passing)
            self._replace(all_passing, totals)
            return
        scores = [
            (plugin.score(self.pod, some, state), weight)
            if plugin.implements("score")
            else (lifting.score_rows(plugin, self.pod, some, passing, state), weight)
            for plugin, weight in self._rated
        ]
        for i, row in enumerate(rows.tolist()):
            passes = passing.item(i)
            if passes != self.passing.item(row):
                more = 1 if passes else -1
                self.passing[row] = passes
                self.n_passing += more
                for key, counts in self._by_key.items():
                    counts[nodes.code_at(key, row)] += more
            total = 0 if self._fixed is None else self._fixed.item(row)
            for scored, weight in scores:
                score = scored.item(i)
                if passes and not 0 <= score <= MAX_SCORE:
                    raise NotCacheable
                total += score * weight
            self.totals[row] = total if passes else REFUSED

    def _replace(self, passing: Bools, totals: Ints) -> None:
        self.passing, self.n_passing = passing, int(np.count_nonzero(passing))
        self.totals = np.where(passing, totals, REFUSED)
        self._by_key.clear()

    def _passing(self, rows: Ints | None, some: Snapshot) -> Bools:
        """Return which of some rows, or of all, pass all filters."""
        at, considered = slice(None) if rows is None else rows, self.pre_filtered.considered
        passing: Bools = np.ones(some.n, dtype=np.bool_) if considered is None else considered[at].copy()
        for column in self.columns:
            if column.bits is not None:
                passing &= column.bits[at] == 0
        return passing

    def _add_up(self, rows: Ints | None, pod: PodView, some: Snapshot, passing: Bools) -> Ints:
        at = slice(None) if rows is None else rows
        totals = np.zeros(some.n, dtype=np.int64) if self._fixed is None else self._fixed[at].copy()
        for plugin, weight in self._rated:
            totals += self.profile.rate(plugin, pod, some, passing, self.state) * weight
        return totals

    def _fixed_scores(self, pod: PodView, nodes: Snapshot, passing: Bools) -> Ints | None:
        columns = [self.profile.rate(plugin, pod, nodes, passing, self.state) * weight for plugin, weight in self._fixed_by]
        columns = [column for column in columns if column.any()]
        return np.add.reduce(columns) if columns else None

    # What others read

    def passing_by(self, key: str, nodes: Snapshot) -> Ints:
        """Return how many passing nodes each domain of a label key has. The last element counts nodes without the label."""
        counts = self._by_key.get(key)
        if counts is None:
            found = np.bincount(nodes.codes(key)[self.passing] + 1, minlength=nodes.n_values(key) + 1)
            counts = self._by_key[key] = np.append(found[1:], found[0])
        return counts

    def add_up_flat(self, pod: PodView, nodes: Snapshot, state: CycleState) -> int:
        """Return, and keep, what the totals leave out because all nodes score the same."""
        one, total = np.ones(1, dtype=np.bool_), 0
        for scaled in self.scaled:
            if is_uniform(scaled.raw):
                column = self.profile.normalized(scaled.plugin, scaled.raw[:1].copy(), pod, nodes.take([0]), one, state)
                total += int(column[0]) * scaled.weight
        self.flat_total = total
        return total

    def versions(self) -> tuple[int, ...]:
        """Return numbers that stay the same as long as no verdict changes."""
        return tuple([column.version for column in self.columns])

    @property
    def read_until(self) -> int:
        """Return the position in the journal up to which all changes are in these answers."""
        return self._reader.position

    @property
    def nbytes(self) -> int:
        """Return the size of the columns."""
        arrays = [column.bits for column in self.columns] + [None if is_uniform(s.raw) else s.raw for s in self.scaled]
        return sum(array.nbytes for array in (*arrays, self.passing, self.totals, self._fixed) if array is not None)
