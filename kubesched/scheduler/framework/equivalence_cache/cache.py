"""Answers of plugins, cached for pods of one equivalence class and updated where something changed.

In: a pod and a snapshot. Out: the same verdicts and totals that calling every plugin for every node would give. Replicas of one
template are alike to every plugin, and one booking changes one row, so nearly all of the last answer still holds.
docs/decisions/0005 has a drawing.

  NodeAnswers        the answers of the kept plugins about each node; classes that ask the same of a node share them
  PodCounts          pods per topology domain; plugins that declare the same share them
  EquivalenceClass   both of these, for the pods of one template
  CachedAnswer       the answer for one pod: both combined, and what the live plugins add

`Plugin.depends_on` (framework/inputs) says whether a plugin is kept, counts pods, or is live, that is called for every pod.

To fill the cache costs more than to decide one pod, and many pods are like no other. So there are three steps, here for pods
that all ask for another amount of memory, and then for two replicas:

  pod   asks for   before it                    what happens
  a     1Gi        nothing                      it is decided without the cache
  b     2Gi        a: same tolerations etc.     the answers that follow from node constraints alone are cached (UNLIKE), and
                                                only plugins that read more of the pod are called
  c     3Gi        a, b                         the same, from the cache
  d, e  4Gi        e: 4Gi, a moment ago         for d as for c; for e all kept plugins are cached, as for all later replicas

What is out of the ordinary is left to the plain way: `find` or `recall` returns None if PreFilter refuses the pod, or a filter
has no answer for a node. Tests decide every golden case both ways and compare.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from kubesched.scheduler import kernels
from kubesched.scheduler.cluster import Bools, PodView, Snapshot, is_uniform
from kubesched.scheduler.framework.counting import AddsScores
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.equivalence_cache.counters import CounterTable
from kubesched.scheduler.framework.equivalence_cache.equivalence_class import CachedAnswer, EquivalenceClass, cluster_version
from kubesched.scheduler.framework.equivalence_cache.node_answers import FEW_ROWS, REFUSED, NodeAnswers, NotCacheable
from kubesched.scheduler.framework.equivalence_cache.plan import CachePlan
from kubesched.scheduler.framework.grouping import GROUP_TURN, GroupTurn
from kubesched.scheduler.framework.inputs import UNLIKE, Inputs, own_inputs
from kubesched.scheduler.framework.plugin import NodeNames, Plugin
from kubesched.scheduler.framework.runtime.profile import PreFiltered, Profile
from kubesched.scheduler.framework.verdicts import Code, Rejections, Status

Key = tuple[bytes, Inputs]
"""What the pods of a class have in common, and what each of them has of its own."""

BUDGET_BYTES = 256 << 20
"""How much memory the cache of one profile may take."""

MOST_CHANGES = 2 * FEW_ROWS
"""To update more rows than that costs more than to decide the pod like one that is like no other."""

MOST_ASKED = 1 << 14
"""The cache notes so many different demands on nodes. Then it forgets all of them, and begins again."""

_ALWAYS = 1 << 62
"""A position in the journal that is never long ago."""


class EquivalenceCache:
    """The cache of one profile."""

    def __init__(self, profile: Profile, budget_bytes: int = BUDGET_BYTES, *, waits_for_second: bool = False) -> None:
        """`waits_for_second`: cache only what a second pod asks for, as a scheduler should."""
        self.profile = profile
        self.budget_bytes = budget_bytes
        self.waits_for_second = waits_for_second
        self.classes: OrderedDict[Key, EquivalenceClass] = OrderedDict()
        """The class that was not used for the longest time comes first."""
        self._node_answers: WeakValueDictionary[Key, NodeAnswers] = WeakValueDictionary()
        """Kept alive by the classes that use them."""
        self._plans: dict[Inputs, CachePlan] = {}
        self._counters = CounterTable()
        self._asked_at: dict[bytes, int] = {}
        """By what pods ask of a node, the position in the journal at which a pod last asked it."""

    def find(self, pod: PodView, nodes: Snapshot) -> Key | None:
        """Return the class of a pod: that of its template if a pod asked the same of nodes a moment ago, else that of all pods
        of its node constraints. None if the pod is the first with these."""
        template, own = pod.template, own_inputs(pod, nodes.objects)
        if self.waits_for_second:
            asked_at, now = self._asked_at, nodes.journal.end
            if len(asked_at) >= MOST_ASKED:
                asked_at.clear()
            before = asked_at.get(template.asking, -MOST_CHANGES - 1)
            asked_at[template.asking] = max(now, before)
            if now - before > MOST_CHANGES:
                is_first = template.node_constraints not in asked_at
                asked_at[template.node_constraints] = now
                return None if is_first else (template.node_constraints, own | UNLIKE)
        return template.signature, own

    def recall(self, key: Key, pod: PodView, nodes: Snapshot, turn: GroupTurn | None = None) -> CachedAnswer | None:
        """Return the answer for a pod of a class, or None if the pod must be decided the plain way. `turn` is that of the pod's
        group, if its group is being tried."""
        try:
            return self._recall(key, pod, nodes, turn)
        except NotCacheable:
            if not key[1] >= UNLIKE:  # one pod that is like no other tells nothing about the next
                self.classes.pop(key, None)
            return None
        except BaseException:
            self.classes.pop(key, None)
            raise

    def unchanged_refusal(self, key: Key, nodes: Snapshot) -> Any:
        """Return what was decided when no node passed for a pod of this class, if nothing in the cluster changed since."""
        of_class = self.classes.get(key)
        if of_class is None or of_class.unschedulable_result is None or of_class.unschedulable_at != cluster_version(nodes):
            return None
        if self.profile.observe is not None:
            for point in ("PreFilter", "Filter"):
                self.profile.observe(point, "", Code.SUCCESS.text, 0.0)
        return of_class.unschedulable_result[1]

    def _recall(self, key: Key, pod: PodView, nodes: Snapshot, turn: GroupTurn | None) -> CachedAnswer:
        """Update the class, call its live plugins and add their answers to the kept ones, point by point as in a plain
        attempt."""
        profile = self.profile
        clock = time.perf_counter if profile.observe is not None else float  # float() is 0.0: no clock is read
        began = clock()
        of_class = self._up_to_date(key, pod, nodes)
        plan, answers, state = of_class.plan, of_class.node_answers, CycleState(of_class.state)
        if turn is not None:
            state.write(GROUP_TURN, turn)
        updated = clock()

        before = answers.pre_filtered
        if len(of_class.settled) < len(plan.pre_filters):
            before = self._pre_filter(of_class, pod, nodes, state)
        pre_filtered = clock()

        # A filter that refuses whole domains has a table with an element for each domain, other filters narrow the mask. Where
        # a node is refused, its total is REFUSED.
        live: dict[str, Rejections] = {}
        totals, n_feasible = answers.totals, answers.n_passing
        mask: Bools | None = None if before is answers.pre_filtered else before.considered
        is_counted = False
        for plugin in plan.filters:
            if plugin.name in state.skip_filter:
                continue
            rejections = live[plugin.name] = profile.filter_one(plugin, pod, nodes, state)
            is_counted = is_counted or plugin in plan.counting
            if rejections.errors:
                raise NotCacheable
            if rejections.domains is not None:
                label, bits = rejections.domains
                if bits[:-1].any() or (bits.item(-1) and answers.passing_by(label, nodes).item(-1)):
                    totals, n_feasible = kernels.refuse_domains(totals, bits.view(np.int64), nodes.codes(label), REFUSED)
            elif rejections.bits is not None:
                passes = rejections.bits == 0
                mask = passes if mask is None else mask & passes
        if mask is not None:
            totals = np.where(mask, totals, REFUSED)
            n_feasible = int(np.count_nonzero(totals >= 0))
        recalled = CachedAnswer(state, before, of_class, live, totals, n_feasible, totals)
        filtered = clock()
        ends = [("PreFilter", pre_filtered - updated), ("Filter", filtered - pre_filtered + updated - began)]

        if n_feasible > 1:
            differing, silent = [], of_class.silent
            for plugin in plan.pre_scores:
                if plugin not in silent and plugin not in plan.adding:
                    where = of_class.state if plugin in plan.counting else state
                    answer = profile.call("PreScore", plugin, plugin.pre_score, pod, nodes, recalled.feasible, where)
                    self._take_status(answer, plugin, of_class, state)
            pre_scored = clock()
            for scaled in answers.scaled:
                if not is_uniform(scaled.raw):
                    differing.append(
                        (profile.normalized(scaled.plugin, scaled.raw, pod, nodes, recalled.feasible, state), scaled.weight)
                    )
            for plugin, weight in plan.scorers if len(silent) < len(plan.scorers) else ():
                if plugin in silent or plugin.name in state.skip_score:
                    continue
                is_counted = is_counted or plugin in plan.counting
                if plugin in plan.adding:
                    assert isinstance(plugin, AddsScores)
                    add, where = plugin.add_scores, of_class.state
                    added = profile.call("Score", plugin, add, pod, nodes, recalled.feasible, where, totals, weight)
                    if isinstance(added, np.ndarray):
                        totals = added
                    elif added is None or self._take_status(added, plugin, of_class, state):
                        raise NotCacheable
                    continue
                column = profile.rate(plugin, pod, nodes, recalled.feasible, state)
                if is_uniform(column):
                    recalled.flat += column.item(0) * weight
                else:
                    differing.append((column, weight))
            if differing:
                totals = kernels.weighted_total(((totals, 1), *differing), 0, len(totals))
            recalled.totals = totals
            ends += [("PreScore", pre_scored - filtered), ("Score", clock() - pre_scored)]

        if self.waits_for_second and (is_counted or state.counts or not n_feasible):
            # Counters, and the fact that no node takes the pod, are worth keeping however late the next replica comes.
            self._asked_at[pod.template.asking] = _ALWAYS
        if profile.observe is not None:
            for point, seconds in ends:
                profile.observe(point, "", Code.SUCCESS.text, seconds)
        return recalled

    def _up_to_date(self, key: Key, pod: PodView, nodes: Snapshot) -> EquivalenceClass:
        """Return a class with everything that changed taken in. Make it anew if there is none, or that is simpler."""
        of_class = self.classes.get(key)
        if of_class is not None and of_class.node_answers.refresh(pod, nodes) and of_class.refresh(pod, nodes):
            self.classes.move_to_end(key)
            return of_class
        plan = self._plans.get(key[1])
        if plan is None:
            plan = self._plans[key[1]] = CachePlan(self.profile, key[1])
        shared = (pod.template.asking, key[1]) if plan.is_shared and not plan.is_for_unlike else key
        answers = self._node_answers.get(shared)
        if answers is None or not answers.refresh(pod, nodes):
            answers = self._node_answers[shared] = NodeAnswers(self.profile, plan, pod, nodes)
        of_class = self.classes[key] = EquivalenceClass(plan, answers, nodes, self._counters)
        self.classes.move_to_end(key)
        # All classes are taken to be as large as this one: to add them up would take long.
        while len(self.classes) > 1 and (
            len(self.classes) * of_class.nbytes + len(self._node_answers) * answers.nbytes > self.budget_bytes
        ):
            self.classes.popitem(last=False)
        return of_class

    def _pre_filter(self, of_class: EquivalenceClass, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFiltered:
        """Call the live plugins at PreFilter, and add their answers to those of the kept ones."""
        kept, plan = of_class.node_answers.pre_filtered, of_class.plan
        rows, narrowed_by = kept.rows, kept.narrowed_by
        for plugin in plan.pre_filters:
            if plugin in of_class.settled:
                continue
            is_counting = plugin in plan.counting
            where = of_class.state if is_counting else state
            answer = self.profile.call("PreFilter", plugin, plugin.pre_filter, pod, nodes, where)
            if isinstance(answer, NodeNames):
                named = nodes.rows_of(answer.names)
                rows = named if rows is None else np.intersect1d(rows, named)
                narrowed_by |= {plugin.name}
                continue
            code = Code.SUCCESS if answer is None else answer.code
            if code is not Code.SUCCESS and code is not Code.SKIP:
                raise NotCacheable
            if is_counting:
                of_class.settle(plugin, skips=code is Code.SKIP)
            elif code is Code.SKIP:
                state.skip_filter |= {plugin.name}
        state.skip_filter |= of_class.state.skip_filter
        if rows is kept.rows:
            return kept
        assert rows is not None
        if not len(rows):
            raise NotCacheable
        return PreFiltered(None, narrowed_by, rows, nodes.n)

    @staticmethod
    def _take_status(answer: Status | None, plugin: Plugin, of_class: EquivalenceClass, state: CycleState) -> bool:
        """Take in what a plugin answered at PreScore; return whether it scores."""
        if answer is None or answer.code is Code.SUCCESS:
            state.skip_score -= {plugin.name}
            return True
        if answer.code is not Code.SKIP:
            raise NotCacheable
        state.skip_score |= {plugin.name}
        if plugin in of_class.plan.counting:
            of_class.silence(plugin)
        return False
