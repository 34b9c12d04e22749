"""Answers remembered per pod class, repaired on the rows that changed.

In: a pod, a snapshot. Out: the same verdicts and totals that computing everything anew would give, for the price of what
changed since the last pod of the class. Replicas of one template are alike to every plugin, and one booking changes one
row, so nearly all of the last answer still stands.

A plugin's scope says how its column is kept:

  ROW_NODE, ROW   remembered; computed again on the rows whose node, or whose pods, changed
  NODES           remembered; computed again as a whole when any node object changed
  DOMAINS         its counters are remembered and repaired pod by pod; what it says is read off them for every pod, domain
                  by domain where it can, and not at all while it has nothing to say
  CLUSTER         computed for every pod

Whatever is out of the ordinary (a PreFilter that refuses, an error on a row) is left to the plain path: `recall` returns
None and the caller computes. The plain path is also the oracle: tests run both and compare.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Set as AbstractSet

import numpy as np

from kubesched.cluster import Bools, Ints, PodView, Snapshot
from kubesched.cluster.journal import NODE
from kubesched.framework.plugin import NodeNames, Plugin, Scope
from kubesched.framework.profile import Observer, PreFiltered, Profile
from kubesched.framework.reach import REFUSED, Reach, Unusual, Weighted
from kubesched.framework.remembered import Column, Entry, Scaled
from kubesched.framework.remembering import Plan, plan_for
from kubesched.framework.state import State
from kubesched.framework.verdicts import Code, DomainScores, DomainVerdicts, Rejections, Status, Verdicts

BUDGET_BYTES = 256 << 20
"""What all remembered columns of a profile may take; the classes not asked for longest are dropped beyond it."""
FEW_ROWS = 16
"""Up to so many rows are repaired one by one in plain Python: arrays of a few elements cost more than the sums on them."""


def first_best(totals: Ints, start: int) -> int:
    """Return the first row from `start` on, going round, that has the highest total."""
    row = int(totals.argmax())
    if row < start:  # the first of all lies behind: there may be another like it ahead
        ahead = start + int(totals[start:].argmax())
        if totals.item(ahead) == totals.item(row):
            return ahead
    return row


class Recalled:
    """An attempt's answer from memory: which nodes pass, and what they total apart from what is the same for all."""

    __slots__ = ("entry", "live", "n_feasible", "pre_filtered", "reach", "state", "totals")

    def __init__(self, state: State, pre_filtered: PreFiltered, reach: Reach, entry: Entry,
                 live: dict[str, Rejections | DomainVerdicts]) -> None:
        self.state = state
        self.pre_filtered = pre_filtered
        self.reach = reach
        self.n_feasible = reach.count()
        self.totals: Ints = entry.totals
        self.entry = entry
        self.live = live

    @property
    def feasible(self) -> Bools:
        """Return which nodes pass every filter."""
        return self.reach.feasible()

    def standing(self) -> tuple[int, ...] | None:
        """Return numbers that stay the same as long as the verdicts do; None if nothing so simple tells."""
        if self.live or self.pre_filtered is not self.entry.pre_filtered:
            return None
        return tuple([column.version for column in self.entry.columns])

    def moment(self, nodes: Snapshot) -> tuple[int, ...] | None:
        """Return numbers that stay the same as long as nothing at all changes; None if the verdicts are of this pod
        alone, because some filter reads more of it than the class has in common."""
        if not self.entry.plan.is_of_class:
            return None
        return nodes.structure, nodes.journal.end, nodes.objects.revision, -1

    def verdicts(self, profile: Profile, nodes: Snapshot) -> Verdicts:
        """Return the verdicts of all filters in their order, for a diagnosis."""
        verdicts = Verdicts(nodes, self.pre_filtered.considered)
        kept = {column.plugin.name: column for column in self.entry.columns}
        for plugin in profile.filters:
            said = self.live.get(plugin.name)
            if plugin.name in kept:
                column = kept[plugin.name]
                verdicts.add(plugin.name, Rejections(column.bits, tuple(column.reasons)))
            elif said is not None:
                verdicts.add(plugin.name, said if isinstance(said, Rejections) else said.rejections(nodes))
        return verdicts


class Memo:
    """One profile's memory."""

    def __init__(self, profile: Profile, budget_bytes: int = BUDGET_BYTES) -> None:
        self.profile = profile
        self.budget_bytes = budget_bytes
        self._entries: OrderedDict[tuple[bytes, frozenset[str]], Entry] = OrderedDict()
        self._plans: dict[frozenset[str], Plan] = {}
        self._choosy = tuple(p for p in profile.plugins if p.implements("remembers"))

    def __len__(self) -> int:
        return len(self._entries)

    def recall(self, pod: PodView, nodes: Snapshot) -> Recalled | None:
        """Return the answer for a pod, or None if it must be computed the plain way."""
        unremembered = _NOBODY
        if not _is_plain(pod):
            unremembered = frozenset([p.name for p in self._choosy if not p.remembers(pod)])
        key = (pod.template.signature, unremembered)
        entry = self._entries.get(key)
        watch = _Stopwatch() if self.profile.observe is not None else None
        try:
            if entry is None or not self._bring_up_to_date(entry, pod, nodes):
                entry = self._build(pod, nodes, unremembered, watch)
                self._keep(key, entry)
            else:
                self._entries.move_to_end(key)
                if watch is not None:
                    watch.lap("Filter")  # rows computed again, with their scores: the two are not told apart
            recalled = self._answer(entry, pod, nodes, watch)
            if watch is not None and self.profile.observe is not None:
                watch.tell(self.profile.observe)
            return recalled
        except Unusual:
            self._entries.pop(key, None)
            return None
        except BaseException:
            self._entries.pop(key, None)  # half repaired is worse than not remembered
            raise

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def _keep(self, key: tuple[bytes, frozenset[str]], entry: Entry) -> None:
        self._entries[key] = entry
        self._entries.move_to_end(key)
        while len(self._entries) > max(1, self.budget_bytes // max(entry.nbytes, 1)):
            self._entries.popitem(last=False)

    # Building

    def _build(self, pod: PodView, nodes: Snapshot, unremembered: frozenset[str], watch: _Stopwatch | None) -> Entry:
        plan = self._plans.get(unremembered)
        if plan is None:
            plan = self._plans[unremembered] = plan_for(self.profile, unremembered)
        entry = Entry(self.profile, plan, pod, nodes, _versions(plan, nodes))
        state = entry.state
        before = self.profile.pre_filter_with(plan.kept_pre_filters, pod, nodes, state)
        if before.status is not None:
            raise Unusual
        if watch is not None:
            watch.lap("PreFilter")
        entry.pre_filtered = before
        for plugin in plan.kept_filters:
            if plugin.name not in state.skip_filter:
                entry.columns.append(Column(plugin, self._filter(plugin, pod, nodes, state)))
        entry.add_up()
        passing = entry.passing
        if watch is not None:
            watch.lap("Filter")
        for plugin in plan.kept_pre_scores:
            self._pre_score(plugin, pod, nodes, passing, state)
        if watch is not None:
            watch.lap("PreScore")
        for plugin, weight in plan.fixed_scores:
            if plugin.name not in state.skip_score:
                entry.fixed += self.profile.rate(plugin, pod, nodes, passing, state) * weight
        entry.totals += entry.fixed
        for plugin, weight in plan.row_scores:
            if plugin.name not in state.skip_score:
                entry.totals += self.profile.rate(plugin, pod, nodes, passing, state) * weight
        entry.totals[~passing] = REFUSED
        for plugin, weight in plan.scaled_scores:
            if plugin.name not in state.skip_score:
                raw = self.profile.raw_score(plugin, pod, nodes, passing, state).copy()
                entry.scaled.append(Scaled(plugin, weight, raw))
        if watch is not None:
            watch.lap("Score")
        return entry

    def _filter(self, plugin: Plugin, pod: PodView, nodes: Snapshot, state: State) -> Rejections:
        rejections = self.profile.filter_one(plugin, pod, nodes, state)
        if rejections.errors:
            raise Unusual
        return rejections

    def _pre_score(self, plugin: Plugin, pod: PodView, nodes: Snapshot, feasible: Bools, state: State) -> bool:
        """Run one PreScore; return whether the plugin has anything to say."""
        return self._heed(self.profile.call("PreScore", plugin, plugin.pre_score, pod, nodes, feasible, state),
                          plugin, state)

    def _heed(self, answer: Status | None, plugin: Plugin, state: State) -> bool:
        if answer is None or answer.code is Code.SUCCESS:
            state.skip_score.discard(plugin.name)
            return True
        if answer.code is not Code.SKIP:
            raise Unusual
        state.skip_score.add(plugin.name)
        return False

    # Repairing

    def _bring_up_to_date(self, entry: Entry, pod: PodView, nodes: Snapshot) -> bool:
        """Take in what changed since the entry was last used; False if it is easier to start again."""
        if entry.structure != nodes.structure:
            return False
        if entry.revision != nodes.objects.revision:
            if entry.versions != _versions(entry.plan, nodes):
                return False
            entry.revision = nodes.objects.revision
        journal = nodes.journal
        changes = journal.since(entry.position)
        if changes is None or len(changes) > nodes.n // 2 + 64:
            return False
        if not changes:
            return True
        entry.position = journal.end
        nodes_changed = False
        rows = set()
        for row, what, _, _ in changes:
            rows.add(row)
            if what & NODE:
                nodes_changed = True
        for plugin in entry.plan.domain_plugins:
            if nodes_changed:
                plugin.forget(entry.state)
                entry.ask_again(plugin)
                continue
            has_changed = False
            for row, _, other, sign in changes:
                if other is not None and plugin.repair(pod, other, row, sign, nodes, entry.state):
                    has_changed = True
            if has_changed:
                entry.ask_again(plugin)
        if nodes_changed:
            # Labels, taints or images: what follows from node objects is computed again, on these rows or on all.
            if any(plugin.filter_scope is Scope.NODES for plugin in entry.plan.kept_filters):
                return False
            self._repair_nodes(entry, pod, nodes, sorted(rows))
        elif len(rows) <= FEW_ROWS:
            for row in rows:
                entry.repair_row(row)
        else:
            self._repair_rows(entry, pod, nodes, np.array(sorted(rows)), every_column=False)
        return True

    def _repair_nodes(self, entry: Entry, pod: PodView, nodes: Snapshot, rows: list[int]) -> None:
        """Compute again what follows from node objects: these rows, and the scores that compare nodes with each other."""
        state, fixed = entry.state, np.zeros(nodes.n, dtype=np.int64)
        for plugin, weight in entry.plan.fixed_scores:
            if plugin.name not in state.skip_score:
                fixed += self.profile.rate(plugin, pod, nodes, entry.passing, state) * weight
        entry.totals += np.where(entry.passing, fixed - entry.fixed, 0)
        entry.fixed = fixed
        some = nodes.take(rows)
        for scaled in entry.scaled:
            scaled.write(np.array(rows), self.profile.raw_score(scaled.plugin, pod, some, entry.passing[rows], state))
        self._repair_rows(entry, pod, nodes, np.array(rows), every_column=True)

    def _repair_rows(self, entry: Entry, pod: PodView, nodes: Snapshot, rows: Ints, *, every_column: bool) -> None:
        """Compute rows again, all at once."""
        some, state = nodes.take(rows), entry.state
        admitted = np.ones(len(rows), dtype=np.bool_)
        if entry.pre_filtered.considered is not None:
            admitted &= entry.pre_filtered.considered[rows]
        passing = np.ones(len(rows), dtype=np.bool_)
        for column in entry.columns:
            if column.follows_pods or every_column:
                column.write(rows, self._filter(column.plugin, pod, some, state), nodes.n)
            if column.bits is not None:
                if column.follows_pods:
                    passing &= column.bits[rows] == 0
                else:
                    admitted &= column.bits[rows] == 0
        passing &= admitted
        entry.admitted[rows] = admitted
        entry.passing[rows] = passing
        entry.recount()
        totals = entry.fixed[rows]
        for plugin, weight in entry.plan.row_scores:
            if plugin.name not in state.skip_score:
                totals += self.profile.rate(plugin, pod, some, passing, state) * weight
        entry.totals[rows] = np.where(passing, totals, REFUSED)
        if not every_column:
            for scaled in entry.scaled:
                if scaled.plugin.score_scope is Scope.ROW:
                    scaled.write(rows, self.profile.raw_score(scaled.plugin, pod, some, passing, state))

    # Answering

    def _answer(self, entry: Entry, pod: PodView, nodes: Snapshot, watch: _Stopwatch | None) -> Recalled:
        state = State(entry.state)
        before = self._pre_filter(entry, pod, nodes, state) if entry.live.pre_filters else entry.pre_filtered
        state.skip_filter |= entry.state.skip_filter
        state.skip_score |= entry.state.skip_score
        if watch is not None:
            watch.lap("PreFilter")
        said: dict[str, Rejections | DomainVerdicts] = {}
        mask = None if before is entry.pre_filtered else before.considered
        refusals: list[DomainVerdicts] = []
        for plugin in entry.live.filters:
            if plugin.name in state.skip_filter:
                continue
            verdicts = self.profile.call("Filter", plugin, plugin.filter_domains, pod, nodes, state)
            if verdicts is not None:
                said[plugin.name] = verdicts
                refusals.append(verdicts)
                continue
            rejections = said[plugin.name] = self._filter(plugin, pod, nodes, state)
            if rejections.bits is not None:
                passes = rejections.bits == 0
                mask = passes if mask is None else mask & passes
        reach = entry.reach_beside(tuple(refusals)) if mask is None else Reach(entry, nodes, tuple(refusals), mask)
        recalled = Recalled(state, before, reach, entry, said)
        if watch is not None:
            watch.lap("Filter")
        if recalled.n_feasible > 1:
            self._score(recalled, pod, nodes, watch)
        else:
            recalled.totals = reach.totals()
        return recalled

    def _pre_filter(self, entry: Entry, pod: PodView, nodes: Snapshot, state: State) -> PreFiltered:
        """Ask those that are asked for every pod."""
        considered, narrowed_by = entry.pre_filtered.considered, entry.pre_filtered.narrowed_by
        for plugin, is_counting in entry.live.pre_filters:
            where = entry.state if is_counting else state
            answer = self.profile.call("PreFilter", plugin, plugin.pre_filter, pod, nodes, where)
            if answer is None:
                continue
            if isinstance(answer, NodeNames):
                mask = np.zeros(nodes.n, dtype=np.bool_)
                mask[nodes.rows_of(answer.names)] = True
                considered = mask if considered is None else considered & mask
                narrowed_by = narrowed_by | {plugin.name}
            elif answer.code is Code.SKIP:
                if is_counting:
                    entry.quiet(plugin, entry.quiet_filters, entry.state.skip_filter)
                else:
                    state.skip_filter.add(plugin.name)
            elif answer.code is not Code.SUCCESS:
                raise Unusual
        if considered is entry.pre_filtered.considered:
            return entry.pre_filtered
        assert considered is not None
        if not considered.any():
            raise Unusual
        return PreFiltered(None, considered, narrowed_by)

    def _score(self, recalled: Recalled, pod: PodView, nodes: Snapshot, watch: _Stopwatch | None) -> None:
        """Add to the totals what is not remembered, node by node or domain by domain."""
        entry, state, reach = recalled.entry, recalled.state, recalled.reach
        scores: list[Weighted] = []
        rated = self._rate_domains(entry, pod, nodes, reach, state, scores) if entry.live.scores else _NO_PLUGINS
        for plugin, is_counting in entry.live.pre_scores:
            if plugin in rated:
                continue
            where = entry.state if is_counting else state
            if self._pre_score(plugin, pod, nodes, reach.feasible(), where):
                state.skip_score.discard(plugin.name)
            elif is_counting:
                entry.quiet(plugin, entry.quiet_scores, entry.state.skip_score)
                state.skip_score.add(plugin.name)
        if watch is not None:
            watch.lap("PreScore")
        recalled.totals = reach.totals(tuple(scores))
        for scaled in entry.scaled:
            if not scaled.is_flat:
                column = self.profile.normalized(scaled.plugin, scaled.raw, pod, nodes, reach.feasible(), state)
                recalled.totals = recalled.totals + column * scaled.weight
        for plugin, weight, _ in entry.live.scores:
            if plugin not in rated and plugin.name not in state.skip_score:
                column = self.profile.rate(plugin, pod, nodes, reach.feasible(), state)
                recalled.totals = recalled.totals + column * weight
        if watch is not None:
            watch.lap("Score")

    def _rate_domains(self, entry: Entry, pod: PodView, nodes: Snapshot, reach: Reach, state: State,
                      scores: list[Weighted]) -> AbstractSet[Plugin]:
        """Ask for the scores of domains; return who answered."""
        rated: set[Plugin] = set()
        for plugin, weight, knows_domains in entry.live.scores:
            if not knows_domains:
                continue
            answer = self.profile.call("Score", plugin, plugin.rate_domains, pod, nodes, reach, entry.state)
            if answer is None:
                continue
            rated.add(plugin)
            if isinstance(answer, DomainScores):
                scores.append((answer, weight))
            elif not self._heed(answer, plugin, state):
                entry.quiet(plugin, entry.quiet_scores, entry.state.skip_score)
        return rated


class _Stopwatch:
    """Times the extension points of one recalled attempt. Where nobody observes there is none."""

    __slots__ = ("_last", "_seconds")

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, point: str) -> None:
        """Count the time since the last lap to a point."""
        now = time.perf_counter()
        self._seconds[point] = self._seconds.get(point, 0.0) + now - self._last
        self._last = now

    def tell(self, observe: Observer) -> None:
        """Report every point that was passed."""
        for point, seconds in self._seconds.items():
            observe(point, "", Code.SUCCESS.text, seconds)


_NOBODY: frozenset[str] = frozenset()
_NO_PLUGINS: frozenset[Plugin] = frozenset()


def _is_plain(pod: PodView) -> bool:
    """Return whether a pod's signature says all that any plugin reads of it."""
    spec = pod.pod.spec
    return not (spec.volumes or spec.resource_claims or spec.node_name or pod.template.asks_for_scalars)


def _versions(plan: Plan, nodes: Snapshot) -> tuple[int, ...]:
    return tuple([nodes.objects.version(kind) for kind in plan.reads])
