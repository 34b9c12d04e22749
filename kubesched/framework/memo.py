"""Answers remembered per pod class, repaired on the rows that changed.

In: a pod, a snapshot. Out: the same verdicts and totals that computing everything anew would give, for the price of what
changed since the last pod of the class. Replicas of one template are alike to every plugin, and one booking changes one
row, so nearly all of the last answer still stands. What follows from a node and its pods alone is kept in a ground that
all classes share which ask the same of a node (framework/ground); a class of its own has only what it counts
(framework/remembered), so that the first pod of one more Deployment finds nearly everything known.

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
from weakref import WeakValueDictionary

import numpy as np

from kubesched.cluster import Bools, Ints, PodView, Snapshot
from kubesched.framework.best_rows import BestRows
from kubesched.framework.counters import CounterTable
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.ground import Ground
from kubesched.framework.plugin import NodeNames, Plugin
from kubesched.framework.profile import PointObserver, PreFiltered, Profile
from kubesched.framework.reach import Reach, Unusual, Weighted
from kubesched.framework.remembered import Entry
from kubesched.framework.remembering import Plan, plan_for
from kubesched.framework.verdicts import Code, DomainScores, DomainVerdicts, Rejections, Status, Verdicts

BUDGET_BYTES = 256 << 20
"""What all remembered columns of a profile may take; the classes not asked for longest are dropped beyond it."""

Key = tuple[bytes, frozenset[str]]
"""What pods have in common, and the plugins that do not remember their answers for them."""


class Recalled:
    """An attempt's answer from memory: which nodes pass, and what they total apart from what is the same for all."""

    __slots__ = ("entry", "live", "n_feasible", "pre_filtered", "reach", "state", "totals")

    def __init__(
        self,
        state: CycleState,
        pre_filtered: PreFiltered,
        reach: Reach,
        entry: Entry,
        live: dict[str, Rejections | DomainVerdicts],
    ) -> None:
        self.state = state
        self.pre_filtered = pre_filtered
        self.reach = reach
        self.n_feasible = reach.count()
        self.totals: Ints = entry.ground.totals
        self.entry = entry
        self.live = live

    @property
    def feasible(self) -> Bools:
        """Return which nodes pass every filter."""
        return self.reach.feasible()

    def left_out(self, pod: PodView, nodes: Snapshot) -> int:
        """Return what the totals leave out because it is the same for every node."""
        ground = self.entry.ground
        known = ground.flat_total
        return known if known is not None else ground.add_up_flat(pod, nodes, self.state)

    def best_rows(self) -> BestRows | None:
        """Return the rows of the highest total; None where the totals are of this attempt alone, and nobody follows them."""
        ground = self.entry.ground
        totals = ground.totals
        if self.totals is not totals:
            return None
        best = ground.best_rows
        if best is not None and best.moved is ground.moved:
            best.follow(totals)
        else:
            best = ground.best_rows = BestRows(totals, ground.moved)
        return best

    def standing(self) -> tuple[int, ...] | None:
        """Return numbers that stay the same as long as the verdicts do; None if nothing so simple tells."""
        if self.live or self.pre_filtered is not self.entry.ground.pre_filtered:
            return None
        return self.entry.ground.versions()

    def moment(self, nodes: Snapshot) -> tuple[int, ...] | None:
        """Return numbers that stay the same as long as nothing at all changes; None if the verdicts are of this pod
        alone, because some filter reads more of it than the class has in common."""
        if not self.entry.plan.is_of_class:
            return None
        return nodes.structure, nodes.journal.end, nodes.objects.revision, -1

    def verdicts(self, profile: Profile, nodes: Snapshot) -> Verdicts:
        """Return the verdicts of all filters in their order, for a diagnosis."""
        verdicts = Verdicts(nodes, self.pre_filtered.considered)
        kept = {column.plugin.name: column for column in self.entry.ground.columns}
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
        self._entries: OrderedDict[Key, Entry] = OrderedDict()
        self._grounds: WeakValueDictionary[Key, Ground] = WeakValueDictionary()
        """Each is kept by the classes that stand on it."""
        self._plans: dict[frozenset[str], Plan] = {}
        self._counters = CounterTable()
        self._choosy = tuple(p for p in profile.plugins if p.implements("remembers"))

    def __len__(self) -> int:
        return len(self._entries)

    def recall(self, pod: PodView, nodes: Snapshot) -> Recalled | None:
        """Return the answer for a pod, or None if it must be computed the plain way."""
        unremembered = _NOBODY
        if not _is_plain(pod):
            unremembered = frozenset([p.name for p in self._choosy if not p.remembers(pod)])
        key = (pod.template.signature, unremembered)
        observe = self.profile.observe
        watch = _NO_WATCH if observe is None else _Stopwatch()
        try:
            recalled = self._answer(self._find(key, pod, nodes, watch), pod, nodes, watch)
        except Unusual:
            self._entries.pop(key, None)
            return None
        except BaseException:
            self._entries.pop(key, None)  # half repaired is worse than not remembered
            raise
        if observe is not None:
            watch.tell(observe)
        return recalled

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def _find(self, key: Key, pod: PodView, nodes: Snapshot, watch: _Stopwatch) -> Entry:
        """Return what is remembered of a pod's class, up to date; begin anew where nothing is, or that is easier."""
        entry = self._entries.get(key)
        if entry is not None and entry.ground.catch_up(pod, nodes) and entry.catch_up(nodes):
            self._entries.move_to_end(key)
            watch.lap("Filter")  # rows computed again, with their scores: the two are not told apart
            return entry
        plan = self._plans.get(key[1])
        if plan is None:
            plan = self._plans[key[1]] = plan_for(self.profile, key[1])
        entry = Entry(plan, self._ground(plan, key, pod, nodes, watch), nodes, self._counters)
        self._entries[key] = entry
        self._entries.move_to_end(key)
        while len(self._entries) > 1 and self._nbytes_as(entry) > self.budget_bytes:
            self._entries.popitem(last=False)
        return entry

    def _nbytes_as(self, entry: Entry) -> int:
        """Return what everything takes that is remembered, if all of it is as large as this."""
        return len(self._entries) * entry.nbytes + len(self._grounds) * entry.ground.nbytes

    def _ground(self, plan: Plan, key: Key, pod: PodView, nodes: Snapshot, watch: _Stopwatch) -> Ground:
        """Return the ground of a pod's class: the one of all that ask the same of a node, where nobody asks for more."""
        if plan.is_impersonal:
            key = (pod.template.asking, key[1])
        ground = self._grounds.get(key)
        if ground is None or not ground.catch_up(pod, nodes):
            ground = self._grounds[key] = Ground(self.profile, plan, pod, nodes, watch.lap)
        return ground

    # Answering

    def _answer(self, entry: Entry, pod: PodView, nodes: Snapshot, watch: _Stopwatch) -> Recalled:
        state = CycleState(entry.state)
        before = self._pre_filter(entry, pod, nodes, state)
        state.skip_filter |= entry.state.skip_filter
        state.skip_score |= entry.state.skip_score
        watch.lap("PreFilter")
        said: dict[str, Rejections | DomainVerdicts] = {}
        mask = None if before is entry.ground.pre_filtered else before.considered
        refusals: list[DomainVerdicts] = []
        for plugin in entry.plan.live_filters:
            if plugin.name in state.skip_filter:
                continue
            verdicts = self.profile.call("Filter", plugin, plugin.filter_domains, pod, nodes, state)
            if verdicts is not None:
                said[plugin.name] = verdicts
                refusals.append(verdicts)
                continue
            rejections = said[plugin.name] = self.profile.filter_one(plugin, pod, nodes, state)
            if rejections.errors:
                raise Unusual
            if rejections.bits is not None:
                passes = rejections.bits == 0
                mask = passes if mask is None else mask & passes
        reach = entry.reach_beside(tuple(refusals)) if mask is None else Reach(entry.ground, nodes, tuple(refusals), mask)
        recalled = Recalled(state, before, reach, entry, said)
        watch.lap("Filter")
        if recalled.n_feasible > 1:
            self._score(recalled, pod, nodes, watch)
        else:
            recalled.totals = reach.totals()
        return recalled

    @staticmethod
    def _heed(answer: Status | None, plugin: Plugin, state: CycleState) -> bool:
        """Return whether a plugin that was asked at PreScore has anything to say."""
        if answer is None or answer.code is Code.SUCCESS:
            state.skip_score.discard(plugin.name)
            return True
        if answer.code is not Code.SKIP:
            raise Unusual
        state.skip_score.add(plugin.name)
        return False

    def _pre_filter(self, entry: Entry, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFiltered:
        """Ask those that are asked for every pod."""
        kept = entry.ground.pre_filtered
        rows, narrowed_by = kept.rows, kept.narrowed_by
        for plugin, is_counting in entry.plan.live_pre_filters:
            if plugin in entry.quiet_filters:
                continue
            where = entry.state if is_counting else state
            answer = self.profile.call("PreFilter", plugin, plugin.pre_filter, pod, nodes, where)
            if answer is None:
                continue
            if isinstance(answer, NodeNames):
                named = nodes.rows_of(answer.names)
                rows = named if rows is None else np.intersect1d(rows, named)
                narrowed_by = narrowed_by | {plugin.name}
            elif answer.code is Code.SKIP:
                if is_counting:
                    entry.quiet(plugin, entry.quiet_filters, entry.state.skip_filter)
                else:
                    state.skip_filter.add(plugin.name)
            elif answer.code is not Code.SUCCESS:
                raise Unusual
        if rows is kept.rows:
            return kept
        assert rows is not None
        if not len(rows):
            raise Unusual
        return PreFiltered(None, narrowed_by, rows, nodes.n)

    def _score(self, recalled: Recalled, pod: PodView, nodes: Snapshot, watch: _Stopwatch) -> None:
        """Add to the totals what is not remembered, node by node or domain by domain."""
        entry, state, reach = recalled.entry, recalled.state, recalled.reach
        scores: list[Weighted] = []
        rated = self._rate_domains(entry, pod, nodes, reach, state, scores)
        for plugin, is_counting in entry.plan.live_pre_scores:
            if plugin in rated or plugin in entry.quiet_scores:
                continue
            where = entry.state if is_counting else state
            answer = self.profile.call("PreScore", plugin, plugin.pre_score, pod, nodes, reach.feasible(), where)
            if self._heed(answer, plugin, where):
                state.skip_score.discard(plugin.name)
            elif is_counting:
                entry.quiet(plugin, entry.quiet_scores, entry.state.skip_score)
                state.skip_score.add(plugin.name)
        watch.lap("PreScore")
        recalled.totals = reach.totals(tuple(scores))
        for scaled in entry.ground.scaled:
            if scaled.raw is not None and scaled.flat is None:
                column = self.profile.normalized(scaled.plugin, scaled.raw, pod, nodes, reach.feasible(), state)
                recalled.totals = recalled.totals + column * scaled.weight
        for plugin, weight, _ in entry.plan.live_scores:
            if plugin not in rated and plugin not in entry.quiet_scores and plugin.name not in state.skip_score:
                column = self.profile.rate(plugin, pod, nodes, reach.feasible(), state)
                recalled.totals = recalled.totals + column * weight
        watch.lap("Score")

    def _rate_domains(
        self, entry: Entry, pod: PodView, nodes: Snapshot, reach: Reach, state: CycleState, scores: list[Weighted]
    ) -> AbstractSet[Plugin]:
        """Ask for the scores of domains; return who answered."""
        rated: set[Plugin] = set()
        for plugin, weight, knows_domains in entry.plan.live_scores:
            if not knows_domains or plugin in entry.quiet_scores:
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
    """Times the extension points of one recalled attempt."""

    __slots__ = ("_last", "_seconds")

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, point: str) -> None:
        """Count the time since the last lap to a point."""
        now = time.perf_counter()
        self._seconds[point] = self._seconds.get(point, 0.0) + now - self._last
        self._last = now

    def tell(self, observe: PointObserver) -> None:
        """Report every point that was passed."""
        for point, seconds in self._seconds.items():
            observe(point, "", Code.SUCCESS.text, seconds)


class _NoWatch(_Stopwatch):
    """Where nobody observes, nothing is timed."""

    __slots__ = ()

    def lap(self, point: str) -> None:
        pass


_NO_WATCH = _NoWatch()
_NOBODY: frozenset[str] = frozenset()


def _is_plain(pod: PodView) -> bool:
    """Return whether a pod's signature says all that any plugin reads of it."""
    spec = pod.pod.spec
    return not (spec.volumes or spec.resource_claims or spec.node_name or pod.template.resources.asks_for_scalars)
