"""Answers remembered per pod class, repaired on the rows that changed.

In: a pod, a snapshot. Out: the same verdicts and totals that computing everything anew would give, for the price of what
changed since the last pod of the class. Replicas of one template are alike to every plugin, and one booking changes one
row, so nearly all of the last answer still stands.

A plugin's scope says how its column is kept:

  ROW_NODE, ROW   remembered; computed again on the rows whose node, or whose pods, changed
  NODES           remembered; computed again as a whole when any node object changed
  DOMAINS         its counters are remembered and repaired pod by pod; the column is looked up from them for every pod
  CLUSTER         computed for every pod

Whatever is out of the ordinary (a PreFilter that refuses, an error on a row) is left to the plain path: `recall` returns
None and the caller computes. The plain path is also the oracle: tests run both and compare.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

from kubesched.cluster import Bools, Ints, PodView, Snapshot
from kubesched.cluster.journal import NODE
from kubesched.framework.lifting import NodeView, reasons_of
from kubesched.framework.plugin import NodeNames, Plugin, Scope
from kubesched.framework.profile import MAX_SCORE, Observer, PreFiltered, Profile
from kubesched.framework.state import State
from kubesched.framework.verdicts import MAX_REASONS, Bits, Code, Reason, Rejections, Verdicts

BUDGET_BYTES = 256 << 20
"""What all remembered columns of a profile may take; the classes not asked for longest are dropped beyond it."""
FEW_ROWS = 4
"""Up to so many rows are repaired one by one in plain Python: arrays of one element cost more than the sums on them."""
_REFUSED = np.int64(-1)


class Unusual(Exception):
    """This pod needs the plain path. Never leaves this module."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The plugins of a profile, sorted by how their answers for a kind of pod are kept."""

    kept_filters: tuple[Plugin, ...]
    live_filters: tuple[Plugin, ...]
    fixed_scores: tuple[tuple[Plugin, int], ...]
    """Scores that follow from the node objects and need no normalising."""
    row_scores: tuple[tuple[Plugin, int], ...]
    """Scores that follow from a node and its pods and need no normalising."""
    scaled_scores: tuple[tuple[Plugin, int], ...]
    live_scores: tuple[tuple[Plugin, int], ...]
    kept_pre_filters: tuple[Plugin, ...]
    live_pre_filters: tuple[tuple[Plugin, bool], ...]
    kept_pre_scores: tuple[Plugin, ...]
    live_pre_scores: tuple[tuple[Plugin, bool], ...]
    """With each, whether what it writes belongs to the class (its counters) or to the one pod."""
    domain_plugins: tuple[Plugin, ...]
    is_of_class: bool
    """Whether all filters answer for the class as a whole."""
    reads: tuple[type[Any], ...]


def _plan(profile: Profile, unremembered: frozenset[str]) -> _Plan:
    filters, scorers = set(profile.filters), {plugin for plugin, _ in profile.scorers}

    def filter_scope(plugin: Plugin) -> Scope:
        return Scope.CLUSTER if plugin.name in unremembered else plugin.filter_scope

    def score_scope(plugin: Plugin) -> Scope:
        return Scope.CLUSTER if plugin.name in unremembered else plugin.score_scope

    def is_live(plugin: Plugin) -> bool:
        if plugin not in filters and plugin not in scorers:  # it only looks at the pod, at PreFilter or PreScore
            return filter_scope(plugin) >= Scope.DOMAINS
        return ((plugin in filters and filter_scope(plugin) >= Scope.DOMAINS)
                or (plugin in scorers and score_scope(plugin) >= Scope.DOMAINS))

    kept_scores = [(p, w) for p, w in profile.scorers if score_scope(p) < Scope.DOMAINS]
    plain = [(p, w) for p, w in kept_scores if not p.implements("normalize")]
    domains = tuple(p for p in profile.plugins if is_live(p) and p.name not in unremembered
                    and Scope.DOMAINS in (p.filter_scope, p.score_scope))
    return _Plan(
        kept_filters=tuple(p for p in profile.filters if filter_scope(p) < Scope.DOMAINS),
        live_filters=tuple(p for p in profile.filters if filter_scope(p) >= Scope.DOMAINS),
        fixed_scores=tuple((p, w) for p, w in plain if p.score_scope is not Scope.ROW),
        row_scores=tuple((p, w) for p, w in plain if p.score_scope is Scope.ROW),
        scaled_scores=tuple((p, w) for p, w in kept_scores if p.implements("normalize")),
        live_scores=tuple((p, w) for p, w in profile.scorers if score_scope(p) >= Scope.DOMAINS),
        kept_pre_filters=tuple(p for p in profile.pre_filters if not is_live(p)),
        live_pre_filters=tuple((p, p in domains) for p in profile.pre_filters if is_live(p)),
        kept_pre_scores=tuple(p for p in profile.pre_scores if not is_live(p)),
        live_pre_scores=tuple((p, p in domains) for p in profile.pre_scores if is_live(p)),
        domain_plugins=domains,
        is_of_class=all(p in domains for p in profile.filters if filter_scope(p) >= Scope.DOMAINS),
        reads=tuple(dict.fromkeys(kind for p in profile.plugins for kind in p.reads)),
    )


class _Column:
    """One filter's remembered verdicts. Reasons get their bits in the order in which they are first given."""

    __slots__ = ("bits", "follows_pods", "is_scalar", "plugin", "reasons", "version")

    def __init__(self, plugin: Plugin, rejections: Rejections) -> None:
        self.plugin = plugin
        self.follows_pods = plugin.filter_scope is Scope.ROW
        self.is_scalar = plugin.implements("filter_node")
        self.reasons: list[Reason] = list(rejections.reasons)
        self.version = 0
        self.bits: Bits | None = None if rejections.bits is None else rejections.bits.copy()

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


class _Entry:
    """What is remembered for one class of pods. `totals` is the sum of the plain scores, below zero where refused."""

    __slots__ = ("columns", "considered", "fixed", "hopeless", "n_passing", "narrowed_by", "passing", "plan", "position",
                 "revision", "scaled", "state", "structure", "totals", "versions")

    def __init__(self, plan: _Plan, nodes: Snapshot) -> None:
        self.plan = plan
        self.structure = nodes.structure
        self.position = nodes.journal.end
        self.versions = _versions(plan, nodes)
        self.revision = nodes.objects.revision
        self.state = State()
        self.columns: list[_Column] = []
        self.considered: Bools | None = None
        self.narrowed_by: frozenset[str] = frozenset()
        self.passing: Bools = np.ones(nodes.n, dtype=np.bool_)
        self.n_passing = nodes.n
        self.fixed: Ints = np.zeros(nodes.n, dtype=np.int64)
        self.totals: Ints = np.zeros(nodes.n, dtype=np.int64)
        self.scaled: list[_Scaled] = []
        self.hopeless: tuple[tuple[int, ...], Any] | None = None
        """What was concluded when no node passed, and the verdicts' versions that it was concluded from."""

    @property
    def nbytes(self) -> int:
        columns = sum(c.bits.nbytes for c in self.columns if c.bits is not None)
        return (columns + self.passing.nbytes + self.totals.nbytes + self.fixed.nbytes
                + sum(scaled.raw.nbytes for scaled in self.scaled))


class _Scaled:
    """A remembered score that is normalised over the feasible nodes of each attempt."""

    __slots__ = ("is_flat", "plugin", "raw", "weight")

    def __init__(self, plugin: Plugin, weight: int, raw: Ints) -> None:
        self.plugin = plugin
        self.weight = weight
        self.raw = raw
        self.is_flat = bool((raw == raw[0]).all())
        """Normalised, a flat column is flat: it raises every total alike, and is left out of them."""

    def write(self, rows: Ints, raw: Ints) -> None:
        self.raw[rows] = raw
        self.is_flat = bool((self.raw == self.raw[0]).all())


def first_best(totals: Ints, start: int) -> int:
    """Return the first row from `start` on, going round, that has the highest total."""
    after = totals[start:]
    row = start + int(after.argmax())
    if start:
        other = int(totals[:start].argmax())
        if totals[other] > totals[row]:
            return other
    return row


@dataclass(slots=True)
class Recalled:
    """An attempt's answer from memory: which nodes pass, and what they total apart from what is the same for all."""

    state: State
    pre_filtered: PreFiltered
    feasible: Bools
    n_feasible: int
    totals: Ints
    entry: _Entry
    live: dict[str, Rejections]

    def standing(self) -> tuple[int, ...] | None:
        """Return numbers that stay the same as long as the verdicts do; None if nothing so simple tells."""
        if self.live or self.pre_filtered.considered is not self.entry.considered:
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
            if plugin.name in kept:
                column = kept[plugin.name]
                verdicts.add(plugin.name, Rejections(column.bits, tuple(column.reasons)))
            elif plugin.name in self.live:
                verdicts.add(plugin.name, self.live[plugin.name])
        return verdicts


class Memo:
    """One profile's memory."""

    def __init__(self, profile: Profile, budget_bytes: int = BUDGET_BYTES) -> None:
        self.profile = profile
        self.budget_bytes = budget_bytes
        self._entries: OrderedDict[tuple[bytes, frozenset[str]], _Entry] = OrderedDict()
        self._plans: dict[frozenset[str], _Plan] = {}
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

    def _keep(self, key: tuple[bytes, frozenset[str]], entry: _Entry) -> None:
        self._entries[key] = entry
        self._entries.move_to_end(key)
        while len(self._entries) > max(1, self.budget_bytes // max(entry.nbytes, 1)):
            self._entries.popitem(last=False)

    # Building

    def _build(self, pod: PodView, nodes: Snapshot, unremembered: frozenset[str], watch: _Stopwatch | None) -> _Entry:
        plan = self._plans.get(unremembered)
        if plan is None:
            plan = self._plans[unremembered] = _plan(self.profile, unremembered)
        entry = _Entry(plan, nodes)
        state = entry.state
        before = self.profile.pre_filter_with(plan.kept_pre_filters, pod, nodes, state)
        if before.status is not None:
            raise Unusual
        if watch is not None:
            watch.lap("PreFilter")
        entry.considered, entry.narrowed_by = before.considered, before.narrowed_by
        for plugin in plan.kept_filters:
            if plugin.name not in state.skip_filter:
                entry.columns.append(_Column(plugin, self._filter(plugin, pod, nodes, state)))
        passing = entry.passing
        for column in entry.columns:
            if column.bits is not None:
                passing &= column.bits == 0
        if entry.considered is not None:
            passing &= entry.considered
        entry.n_passing = int(np.count_nonzero(passing))
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
        entry.totals[~passing] = _REFUSED
        for plugin, weight in plan.scaled_scores:
            if plugin.name not in state.skip_score:
                raw = self.profile.raw_score(plugin, pod, nodes, passing, state).copy()
                entry.scaled.append(_Scaled(plugin, weight, raw))
        if watch is not None:
            watch.lap("Score")
        return entry

    def _filter(self, plugin: Plugin, pod: PodView, nodes: Snapshot, state: State) -> Rejections:
        rejections = self.profile.filter_one(plugin, pod, nodes, state)
        if rejections.errors:
            raise Unusual
        return rejections

    def _pre_score(self, plugin: Plugin, pod: PodView, nodes: Snapshot, feasible: Bools, state: State) -> None:
        if self.profile.observe is None:
            self.profile.running = (plugin.name, "PreScore")
            answer = plugin.pre_score(pod, nodes, feasible, state)
        else:
            answer = self.profile.call("PreScore", plugin, plugin.pre_score, pod, nodes, feasible, state)
        if answer is None or answer.code is Code.SUCCESS:
            state.skip_score.discard(plugin.name)
        elif answer.code is Code.SKIP:
            state.skip_score.add(plugin.name)
        else:
            raise Unusual

    # Repairing

    def _bring_up_to_date(self, entry: _Entry, pod: PodView, nodes: Snapshot) -> bool:
        """Take in what changed since the entry was last used; False if it is easier to start again."""
        if entry.structure != nodes.structure:
            return False
        if entry.revision != nodes.objects.revision:
            if entry.versions != _versions(entry.plan, nodes):
                return False
            entry.revision = nodes.objects.revision
        end = nodes.journal.end
        if entry.position == end:
            return True
        changes = nodes.journal.since(entry.position)
        if changes is None or len(changes) > nodes.n // 2 + 64:
            return False
        entry.position = end
        nodes_changed = any([change.what & NODE for change in changes])  # noqa: C419 - a list is twice as fast here
        for plugin in entry.plan.domain_plugins:
            if nodes_changed:
                plugin.forget(entry.state)
                continue
            for row, _, other, sign in changes:
                if other is not None:
                    plugin.repair(pod, other, row, sign, nodes, entry.state)
        rows = list({change.row for change in changes})
        if nodes_changed:
            # Labels, taints or images: what follows from node objects is computed again, on these rows or on all.
            if any(plugin.filter_scope is Scope.NODES for plugin in entry.plan.kept_filters):
                return False
            self._repair_fixed(entry, pod, nodes, rows)
            self._repair_rows(entry, pod, nodes, np.array(rows), every_column=True)
        elif len(rows) <= FEW_ROWS:
            for row in rows:
                self._repair_row(entry, pod, nodes, row)
        else:
            self._repair_rows(entry, pod, nodes, np.array(rows), every_column=False)
        return True

    def _repair_fixed(self, entry: _Entry, pod: PodView, nodes: Snapshot, rows: list[int]) -> None:
        """Compute again the scores that follow from node objects."""
        state, fixed = entry.state, np.zeros(nodes.n, dtype=np.int64)
        for plugin, weight in entry.plan.fixed_scores:
            if plugin.name not in state.skip_score:
                fixed += self.profile.rate(plugin, pod, nodes, entry.passing, state) * weight
        entry.totals += np.where(entry.passing, fixed - entry.fixed, 0)
        entry.fixed = fixed
        some = nodes.take(rows)
        for scaled in entry.scaled:
            scaled.write(np.array(rows), self.profile.raw_score(scaled.plugin, pod, some, entry.passing[rows], state))

    def _repair_rows(self, entry: _Entry, pod: PodView, nodes: Snapshot, rows: Ints, *, every_column: bool) -> None:
        """Compute rows again, all at once."""
        some, state = nodes.take(rows), entry.state
        passing = np.ones(len(rows), dtype=np.bool_)
        for column in entry.columns:
            if column.follows_pods or every_column:
                column.write(rows, self._filter(column.plugin, pod, some, state), nodes.n)
            if column.bits is not None:
                passing &= column.bits[rows] == 0
        if entry.considered is not None:
            passing &= entry.considered[rows]
        entry.n_passing += int(np.count_nonzero(passing)) - int(np.count_nonzero(entry.passing[rows]))
        entry.passing[rows] = passing
        totals = entry.fixed[rows]
        for plugin, weight in entry.plan.row_scores:
            if plugin.name not in state.skip_score:
                totals += self.profile.rate(plugin, pod, some, passing, state) * weight
        entry.totals[rows] = np.where(passing, totals, _REFUSED)
        if not every_column:
            for scaled in entry.scaled:
                if scaled.plugin.score_scope is Scope.ROW:
                    scaled.write(rows, self.profile.raw_score(scaled.plugin, pod, some, passing, state))

    def _repair_row(self, entry: _Entry, pod: PodView, nodes: Snapshot, row: int) -> None:
        """Compute one row again, in plain Python where the plugins can."""
        state, profile, node = entry.state, self.profile, NodeView(nodes, row)
        passes = True
        for column in entry.columns:
            if column.follows_pods:
                plugin = column.plugin
                if column.is_scalar:
                    profile.running = (plugin.name, "Filter")
                    column.write_one(row, reasons_of(plugin, plugin.filter_node(pod, node, state)), nodes.n)
                else:
                    column.write(np.array([row]), self._filter(plugin, pod, nodes.take([row]), state), nodes.n)
            if column.bits is not None and column.bits.item(row):
                passes = False
        if entry.considered is not None and not entry.considered.item(row):
            passes = False
        entry.n_passing += passes - entry.passing.item(row)
        entry.passing[row] = passes
        for scaled in entry.scaled:
            if scaled.plugin.score_scope is Scope.ROW:
                one = nodes.take([row])
                scaled.write(np.array([row]), profile.raw_score(scaled.plugin, pod, one, entry.passing[[row]], state))
        if not passes:
            entry.totals[row] = _REFUSED
            return
        total = entry.fixed.item(row)
        for plugin, weight in entry.plan.row_scores:
            if plugin.name in state.skip_score:
                continue
            if plugin.implements("score_node"):
                profile.running = (plugin.name, "Score")
                score = plugin.score_node(pod, node, state)
                if not 0 <= score <= MAX_SCORE:
                    raise Unusual
            else:
                one = nodes.take([row])
                score = int(self.profile.rate(plugin, pod, one, np.ones(1, dtype=np.bool_), state)[0])
            total += score * weight
        entry.totals[row] = total

    # Answering

    def _answer(self, entry: _Entry, pod: PodView, nodes: Snapshot, watch: _Stopwatch | None) -> Recalled:
        plan, kept = entry.plan, entry.state
        state = State(kept)
        state.skip_filter |= kept.skip_filter
        state.skip_score |= kept.skip_score
        considered, narrowed_by = entry.considered, entry.narrowed_by
        for plugin, is_counting in plan.live_pre_filters:
            where = kept if is_counting else state
            if watch is None:  # what `call` does where nobody observes, without the call
                self.profile.running = (plugin.name, "PreFilter")
                answer = plugin.pre_filter(pod, nodes, where)
            else:
                answer = self.profile.call("PreFilter", plugin, plugin.pre_filter, pod, nodes, where)
            if answer is None:
                continue
            if isinstance(answer, NodeNames):
                mask = np.zeros(nodes.n, dtype=np.bool_)
                mask[nodes.rows_of(answer.names)] = True
                considered = mask if considered is None else considered & mask
                narrowed_by = narrowed_by | {plugin.name}
            elif answer.code is Code.SKIP:
                state.skip_filter.add(plugin.name)
            elif answer.code is not Code.SUCCESS:
                raise Unusual
        if watch is not None:
            watch.lap("PreFilter")
        feasible, live = entry.passing, {}
        if considered is not entry.considered:
            assert considered is not None
            if not considered.any():
                raise Unusual
            feasible = feasible & considered
        for plugin in plan.live_filters:
            if plugin.name not in state.skip_filter:
                rejections = live[plugin.name] = self._filter(plugin, pod, nodes, state)
                if rejections.bits is not None:
                    feasible = feasible & (rejections.bits == 0)
        n_feasible = entry.n_passing if feasible is entry.passing else int(np.count_nonzero(feasible))
        recalled = Recalled(state, PreFiltered(None, considered, narrowed_by), feasible, n_feasible, entry.totals,
                            entry, live)
        if watch is not None:
            watch.lap("Filter")
        if n_feasible > 1:
            self._score(recalled, pod, nodes, watch)
        elif feasible is not entry.passing:
            recalled.totals = np.where(feasible, entry.totals, _REFUSED)
        return recalled

    def _score(self, recalled: Recalled, pod: PodView, nodes: Snapshot, watch: _Stopwatch | None) -> None:
        entry, state, feasible = recalled.entry, recalled.state, recalled.feasible
        for plugin, is_counting in entry.plan.live_pre_scores:
            where = entry.state if is_counting else state
            self._pre_score(plugin, pod, nodes, feasible, where)
            if plugin.name in where.skip_score:
                state.skip_score.add(plugin.name)
            else:
                state.skip_score.discard(plugin.name)
        if watch is not None:
            watch.lap("PreScore")
        added: Ints | None = None
        for scaled in entry.scaled:
            if not scaled.is_flat:
                column = self.profile.normalized(scaled.plugin, scaled.raw, pod, nodes, feasible, state) * scaled.weight
                added = column if added is None else added + column
        for plugin, weight in entry.plan.live_scores:
            if plugin.name not in state.skip_score:
                column = self.profile.rate(plugin, pod, nodes, feasible, state) * weight
                added = column if added is None else added + column
        if added is not None or feasible is not entry.passing:
            totals = entry.totals.copy() if added is None else entry.totals + added
            np.copyto(totals, _REFUSED, where=~feasible)
            recalled.totals = totals
        if watch is not None:
            watch.lap("Score")


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


def _is_plain(pod: PodView) -> bool:
    """Return whether a pod's signature says all that any plugin reads of it."""
    spec = pod.pod.spec
    return not (spec.volumes or spec.resource_claims or spec.node_name or pod.template.asks_for_scalars)


def _versions(plan: _Plan, nodes: Snapshot) -> tuple[int, ...]:
    return tuple([nodes.objects.version(kind) for kind in plan.reads])
