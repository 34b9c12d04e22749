"""Answers remembered per class of pods, and computed again where something changed (docs/decisions/0005 has a drawing).

In: a pod, a snapshot. Out: the same verdicts and totals that computing everything anew would give, for the price of what
changed since the last pod of the class. Replicas of one template are alike to every plugin, and one booking changes one row, so
nearly all of the last answer still holds.

  the journal        says which rows changed, and which pods came or left (cluster/journal)
  NodeAnswers        what the kept plugins say of every node; shared by all pods that ask the same of a node
  PodCounts          pods per topology domain; shared by all that declare the same (counters)
  FeasibleNodes      who is left, and their totals, from both (runtime/feasible)
  EquivalenceClass   all of these, for pods of one template

What a plugin declares to depend on (framework/inputs) says how its answers are kept (plan):

  rows           remembered; computed again on the rows whose node or whose pods changed, or as a whole where nodes are
                 compared with each other
  counted pods   its counters follow the pods; its answers are read off them for every pod, and not at all while it has nothing
                 to say
  nothing said   computed for every pod

To remember costs more than to decide one pod, and where no two pods are alike nobody asks again. So who asks of a node what
nobody asked of late is only noted. It is answered out of what is remembered of all that ask the same apart from resources and
images (`Input.POD_NODE_CONSTRAINTS`): only the plugins that read more of the pod are asked.

Whatever is out of the ordinary (a PreFilter that refuses, an error on a row) is left to the plain path: `find` or `recall`
returns None and the caller computes. The plain path is also the oracle: tests run both and compare.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from kubesched.scheduler import kernels
from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot, is_uniform
from kubesched.scheduler.framework.counting import CountsPods
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.equivalence_cache.class_table import ClassTable, Key
from kubesched.scheduler.framework.equivalence_cache.counters import CounterTable
from kubesched.scheduler.framework.equivalence_cache.equivalence_class import MOST_CHANGES, EquivalenceClass
from kubesched.scheduler.framework.equivalence_cache.node_answers import NodeAnswers
from kubesched.scheduler.framework.equivalence_cache.plan import CachePlan
from kubesched.scheduler.framework.grouping import GROUP_TURN, GroupTurn
from kubesched.scheduler.framework.inputs import UNLIKE, Inputs, own_inputs
from kubesched.scheduler.framework.plugin import NodeNames, Plugin
from kubesched.scheduler.framework.runtime.feasible import FeasibleNodes, NotCacheable, Weighted
from kubesched.scheduler.framework.runtime.plugin_calls import PointObserver
from kubesched.scheduler.framework.runtime.profile import PreFiltered, Profile
from kubesched.scheduler.framework.verdicts import (
    Code,
    DomainScores,
    DomainVerdicts,
    Rejections,
    SpreadScores,
    Status,
    Verdicts,
)

BUDGET_BYTES = 256 << 20
"""What all remembered columns of a profile may take."""

MOST_ASKED = 1 << 14
"""How many ways of asking are known to have been there, before all of them are new again."""

_ALWAYS = 1 << 62
"""Where in the journal somebody asked whose answer is worth remembering whenever it comes back."""


def cluster_version(nodes: Snapshot) -> tuple[int, ...]:
    """Return numbers that stay the same as long as nothing at all changes."""
    return nodes.structure, nodes.journal.end, nodes.objects.revision, -1


@dataclass(slots=True)
class CachedAnswer:
    """An attempt's answer from memory: which nodes pass, and what they total apart from what is the same for all."""

    state: CycleState
    pre_filtered: PreFiltered
    feasible_nodes: FeasibleNodes
    n_feasible: int
    totals: Ints
    flat: int
    """What scores of this attempt give to every node alike; it is left out of the totals."""
    of_class: EquivalenceClass
    live: dict[str, Rejections | DomainVerdicts]
    """What the filters said that are asked for every pod."""

    @property
    def feasible(self) -> Bools:
        """Return which nodes pass every filter."""
        return self.feasible_nodes.feasible()

    def left_out(self, pod: PodView, nodes: Snapshot) -> int:
        """Return what the totals leave out because it is the same for every node."""
        known = self.of_class.node_answers.flat_total
        return self.flat + (known if known is not None else self.of_class.node_answers.add_up_flat(pod, nodes, self.state))

    def verdict_version(self) -> tuple[int, ...] | None:
        """Return numbers that stay the same as long as the verdicts do; None if nothing so simple tells."""
        of_class = self.of_class
        if self.live or of_class.plan.is_for_unlike or self.pre_filtered is not of_class.node_answers.pre_filtered:
            return None
        return self.of_class.node_answers.versions()

    def cluster_version(self, nodes: Snapshot) -> tuple[int, ...] | None:
        """Return numbers that stay the same as long as nothing at all changes; None if the verdicts are of this pod
        alone, because some filter reads more of it than the class has in common."""
        return cluster_version(nodes) if self.of_class.plan.answers_for_class else None

    def verdicts(self, profile: Profile, nodes: Snapshot) -> Verdicts:
        """Return the verdicts of all filters in their order, for a diagnosis."""
        verdicts = Verdicts(nodes, self.pre_filtered.considered)
        kept = {column.plugin.name: column for column in self.of_class.node_answers.columns}
        for plugin in profile.filters:
            said = self.live.get(plugin.name)
            if plugin.name in kept:
                column = kept[plugin.name]
                verdicts.add(plugin.name, Rejections(column.bits, tuple(column.reasons)))
            elif said is not None:
                verdicts.add(plugin.name, said if isinstance(said, Rejections) else said.rejections(nodes))
        return verdicts


class EquivalenceCache:
    """One profile's memory."""

    def __init__(self, profile: Profile, budget_bytes: int = BUDGET_BYTES, *, waits_for_second: bool = False) -> None:
        """`waits_for_second`: remember only what is asked a second time, as a scheduler should."""
        self.profile = profile
        self.budget_bytes = budget_bytes
        self.waits_for_second = waits_for_second
        self._classes = ClassTable()
        self._node_answers: WeakValueDictionary[Key, NodeAnswers] = WeakValueDictionary()
        """Each is kept by the classes that use it."""
        self._plans: dict[Inputs, CachePlan] = {}
        self._asked_at: dict[bytes, int] = {}
        """Where in the journal each way of asking was last met."""
        self._counters = CounterTable()

    def __len__(self) -> int:
        return len(self._classes)

    def find(self, pod: PodView, nodes: Snapshot) -> tuple[Key, EquivalenceClass | None] | None:
        """Return which class a pod is of, and what is remembered of it: the class of its replicas or, while nobody else asks
        what it asks, that of all pods of the same node constraints. None where neither is worth it."""
        template, own, now = pod.template, own_inputs(pod, nodes.objects), nodes.journal.end
        key = template.signature, own
        known = self._classes.get(key)
        if not self.waits_for_second:
            return key, known
        before = self._note_asking(template.asking, now)
        # A class that comes back too late for what is remembered of it is not worth remembering.
        is_soon = before is not None and now - before <= MOST_CHANGES
        if is_soon if known is None else not known.is_left_behind(nodes):
            return key, known
        if self._note_asking(template.node_constraints, now) is not None:
            of_unlike = template.node_constraints, own | UNLIKE
            unlike = self._classes.get(of_unlike)
            if unlike is None or not unlike.is_left_behind(nodes):
                return of_unlike, unlike
            if known is None and before is not None:
                return key, None  # nothing else would keep what is counted for it, or that no node takes it
        return None

    def _note_asking(self, asking: bytes, now: int) -> int | None:
        """Return where in the journal somebody last asked that of a node, None if nobody did, and note that it is asked now."""
        asked_at = self._asked_at
        before = asked_at.get(asking)
        if before is None and len(asked_at) >= MOST_ASKED:
            asked_at.clear()
        if before is None or before < now:
            asked_at[asking] = now
        return before

    def recall(
        self, pod: PodView, nodes: Snapshot, key: Key, known: EquivalenceClass | None, turn: GroupTurn | None = None
    ) -> CachedAnswer | None:
        """Return the answer for a pod whose class was found, or None if it must be computed the plain way. A member of a group
        knows its `turn`."""
        observe = self.profile.observe
        clock = time.perf_counter if observe is not None else _no_clock
        ends = [clock()]
        of_class: EquivalenceClass | None = None
        try:
            of_class = self._up_to_date(known, key, pod, nodes)
            ends.append(clock())
            recalled = self._answer(of_class, pod, nodes, turn, clock, ends)
        except NotCacheable:
            if of_class is None or not of_class.plan.is_for_unlike:  # what this pod met says nothing about others like no other
                self._classes.forget(key)
            return None
        except BaseException:
            self._classes.forget(key)  # half repaired is worse than not remembered
            raise
        if of_class.plan.is_for_unlike and (recalled.state.counts or not recalled.n_feasible):
            self._asked_at[pod.template.asking] = _ALWAYS  # a class keeps its counters, and what was concluded
        if observe is not None:
            _tell(observe, ends)
        return recalled

    def unchanged_refusal(self, of_class: EquivalenceClass, nodes: Snapshot) -> Any:
        """Return what was concluded of a class when no node took its pod, if nothing at all changed since; else None."""
        known = of_class.unschedulable_result
        if known is None or of_class.unschedulable_at != cluster_version(nodes):
            return None
        if self.profile.observe is not None:
            for point in ("PreFilter", "Filter"):
                self.profile.observe(point, "", Code.SUCCESS.text, 0.0)
        return known[1]

    def clear(self) -> None:
        """Forget everything."""
        self._classes.clear()

    def _up_to_date(self, of_class: EquivalenceClass | None, key: Key, pod: PodView, nodes: Snapshot) -> EquivalenceClass:
        """Return what is remembered of a pod's class, up to date; begin anew where nothing is, or that is easier."""
        if of_class is not None and of_class.node_answers.refresh(pod, nodes) and of_class.refresh(pod, nodes):
            self._classes.note_use(key)
            return of_class
        plan = self._plans.get(key[1])
        if plan is None:
            plan = self._plans[key[1]] = CachePlan(self.profile, key[1])
        of_class = EquivalenceClass(plan, self._answers_for(plan, key, pod, nodes), nodes, self._counters)
        self._classes.put(key, of_class, self.budget_bytes)
        while len(self._classes) > 1 and self._nbytes_as(of_class) > self.budget_bytes:
            self._classes.forget_oldest(but=key)
        return of_class

    def _nbytes_as(self, of_class: EquivalenceClass) -> int:
        """Return what everything takes that is remembered, if all of it is as large as this."""
        return len(self._classes) * of_class.nbytes + len(self._node_answers) * of_class.node_answers.nbytes

    def _answers_for(self, plan: CachePlan, key: Key, pod: PodView, nodes: Snapshot) -> NodeAnswers:
        """Return the answers for a pod's class: those for all that ask the same of a node, where nobody asks for more."""
        if plan.is_shared and not plan.is_for_unlike:
            key = (pod.template.asking, key[1])
        node_answers = self._node_answers.get(key)
        if node_answers is None or not node_answers.refresh(pod, nodes):
            node_answers = self._node_answers[key] = NodeAnswers(self.profile, plan, pod, nodes)
        return node_answers

    # Answering

    def _answer(
        self,
        of_class: EquivalenceClass,
        pod: PodView,
        nodes: Snapshot,
        turn: GroupTurn | None,
        clock: Callable[[], float],
        ends: list[float],
    ) -> CachedAnswer:
        """Ask the plugins that are asked for every pod, and put their answers to those that are kept."""
        plan, answers, state = of_class.plan, of_class.node_answers, CycleState(of_class.state)
        if turn is not None:
            state.write(GROUP_TURN, turn)
        before = answers.pre_filtered
        if len(of_class.settled_filters) < len(plan.live.pre_filters):
            before = self._pre_filter(of_class, pod, nodes, state)
            state.skip_filter |= of_class.state.skip_filter
        ends.append(clock())
        said: dict[str, Rejections | DomainVerdicts] = {}
        mask = None if before is answers.pre_filtered else before.considered
        refusals: list[DomainVerdicts] = []
        for plugin in plan.live.filters:
            if plugin.name in state.skip_filter:
                continue
            if plugin in plan.judging:
                assert isinstance(plugin, CountsPods)
                verdicts = self.profile.call("Filter", plugin, plugin.filter_domains, pod, nodes, state)
                if verdicts is not None:
                    said[plugin.name] = verdicts
                    refusals.append(verdicts)
                    continue
            rejections = said[plugin.name] = self.profile.filter_one(plugin, pod, nodes, state)
            if rejections.errors:
                raise NotCacheable
            if rejections.bits is not None:
                passes = rejections.bits == 0
                mask = passes if mask is None else mask & passes
        feasible_nodes = (
            of_class.feasible_beside(tuple(refusals)) if mask is None else FeasibleNodes(answers, nodes, tuple(refusals), mask)
        )
        n_feasible = feasible_nodes.count()
        ends.append(clock())
        if n_feasible <= 1:
            return CachedAnswer(state, before, feasible_nodes, n_feasible, feasible_nodes.totals(), 0, of_class, said)
        tables, spreads, columns = self._score(of_class, pod, nodes, state, feasible_nodes, clock, ends)
        totals, flat = feasible_nodes.totals(tables), 0
        for spread, weight in spreads:
            totals = spread.added_to(totals, weight)
        differing = []
        for column, weight in columns:
            if is_uniform(column):
                flat += column.item(0) * weight
            else:
                differing.append((column, weight))
        if differing:
            totals = kernels.weighted_total(((totals, 1), *differing), 0, len(totals))
        ends.append(clock())
        return CachedAnswer(state, before, feasible_nodes, n_feasible, totals, flat, of_class, said)

    @staticmethod
    def _has_a_say(answer: Status | None, plugin: Plugin, state: CycleState) -> bool:
        """Return whether a plugin that was asked at PreScore has anything to say."""
        if answer is None or answer.code is Code.SUCCESS:
            if plugin.name in state.skip_score:
                state.skip_score -= {plugin.name}
            return True
        if answer.code is not Code.SKIP:
            raise NotCacheable
        state.skip_score |= {plugin.name}
        return False

    def _pre_filter(self, of_class: EquivalenceClass, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFiltered:
        """Ask those that are asked for every pod."""
        kept = of_class.node_answers.pre_filtered
        rows, narrowed_by = kept.rows, kept.narrowed_by
        for plugin in of_class.plan.live.pre_filters:
            if plugin in of_class.settled_filters:
                continue
            is_counting = plugin in of_class.plan.counting
            where = of_class.state if is_counting else state
            answer = self.profile.call("PreFilter", plugin, plugin.pre_filter, pod, nodes, where)
            if isinstance(answer, NodeNames):
                named = nodes.rows_of(answer.names)
                rows = named if rows is None else np.intersect1d(rows, named)
                narrowed_by = narrowed_by | {plugin.name}
            elif answer is None or answer.code is Code.SUCCESS:
                if is_counting:
                    of_class.settle_filter(plugin, skips=False)
            elif answer.code is Code.SKIP:
                if is_counting:
                    of_class.settle_filter(plugin, skips=True)
                else:
                    state.skip_filter |= {plugin.name}
            else:
                raise NotCacheable
        if rows is kept.rows:
            return kept
        assert rows is not None
        if not len(rows):
            raise NotCacheable
        return PreFiltered(None, narrowed_by, rows, nodes.n)

    def _score(
        self,
        of_class: EquivalenceClass,
        pod: PodView,
        nodes: Snapshot,
        state: CycleState,
        feasible_nodes: FeasibleNodes,
        clock: Callable[[], float],
        ends: list[float],
    ) -> tuple[tuple[Weighted, ...], list[tuple[SpreadScores, int]], list[tuple[Ints, int]]]:
        """Return what is not remembered of scores, each with its weight: scores of domains, of several domains, and columns."""
        plan, skipped, feasible = of_class.plan, of_class.skipped_scores, feasible_nodes.feasible
        tables: list[Weighted] = []
        spreads: list[tuple[SpreadScores, int]] = []
        rated: set[Plugin] = set()
        if plan.rating and len(skipped) < len(plan.live.scorers):
            for plugin, weight in plan.live.scorers:
                if plugin in skipped or plugin not in plan.rating:
                    continue
                assert isinstance(plugin, CountsPods)
                answer = self.profile.call("Score", plugin, plugin.score_domains, pod, nodes, feasible_nodes, of_class.state)
                if answer is None:
                    continue
                rated.add(plugin)
                if isinstance(answer, DomainScores):
                    tables.append((answer, weight))
                elif isinstance(answer, SpreadScores):
                    spreads.append((answer, weight))
                elif not self._has_a_say(answer, plugin, state):
                    of_class.skip_score(plugin)
        for plugin in plan.live.pre_scores:
            if plugin in rated or plugin in skipped:
                continue
            is_counting = plugin in plan.counting
            where = of_class.state if is_counting else state
            answer = self.profile.call("PreScore", plugin, plugin.pre_score, pod, nodes, feasible(), where)
            if self._has_a_say(answer, plugin, where):
                if plugin.name in state.skip_score:
                    state.skip_score -= {plugin.name}
            elif is_counting:
                of_class.skip_score(plugin)
                state.skip_score |= {plugin.name}
        ends.append(clock())
        columns: list[tuple[Ints, int]] = []
        for scaled in of_class.node_answers.scaled:
            if scaled.raw is not None and scaled.flat is None:
                column = self.profile.normalized(scaled.plugin, scaled.raw, pod, nodes, feasible(), state)
                columns.append((column, scaled.weight))
        for plugin, weight in plan.live.scorers:
            if plugin not in rated and plugin not in skipped and plugin.name not in state.skip_score:
                columns.append((self.profile.rate(plugin, pod, nodes, feasible(), state), weight))
        return tuple(tables), spreads, columns


def _no_clock() -> float:
    return 0.0


def _tell(observe: PointObserver, ends: list[float]) -> None:
    """Report every extension point that was passed: rows that are computed again count as Filter, with their scores."""
    began, updated, pre_filtered, filtered, *scored = ends
    observe("PreFilter", "", Code.SUCCESS.text, pre_filtered - updated)
    observe("Filter", "", Code.SUCCESS.text, filtered - pre_filtered + updated - began)
    for point, since, until in zip(("PreScore", "Score"), (filtered, *scored), scored, strict=False):
        observe(point, "", Code.SUCCESS.text, until - since)
