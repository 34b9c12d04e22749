"""A configured set of plugins, and the code that runs every extension point.

In: a pod, a snapshot, a state. Out: verdicts, scores and statuses, merged as kube-scheduler merges them. The points up to the
decision are here, the later ones in `binding_points`, and those for groups of pods in `group_points`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kubesched.errors import PluginError
from kubesched.scheduler import kernels
from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot, is_uniform
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.plugin import NodeNames, Plugin, PostFiltered
from kubesched.scheduler.framework.runtime import lifting
from kubesched.scheduler.framework.runtime.binding_points import BindingPoints
from kubesched.scheduler.framework.runtime.blame import erred, misanswered
from kubesched.scheduler.framework.runtime.group_points import MAX_SCORE, GroupPoints
from kubesched.scheduler.framework.runtime.plugin_calls import FollowUp, all_of, are_all, named, named_follow_up, reported
from kubesched.scheduler.framework.verdicts import (
    SKIP,
    SUCCESS,
    Code,
    Diagnosis,
    Nomination,
    Reason,
    Rejections,
    Status,
    Verdicts,
    failed,
    unresolvable,
    unschedulable,
)

Wording = Callable[[PodView, Diagnosis], str]


@dataclass(eq=False, slots=True)
class PreFiltered:
    """The merged answer of all PreFilters: a refusal for every node, or the rows that are left, of `n_nodes`."""

    status: Status | None = None
    narrowed_by: frozenset[str] = frozenset()
    rows: Ints | None = None
    n_nodes: int = 0
    nominated_refused_by: frozenset[str] = frozenset()
    """The plugin that refused the nominated node. Kept quirk: the message names it among the plugins that narrowed."""
    _considered: Bools | None = None

    @property
    def considered(self) -> Bools | None:
        """Return which nodes are left, None for all of them."""
        if self.rows is not None and self._considered is None:
            self._considered = np.zeros(self.n_nodes, dtype=np.bool_)
            self._considered[self.rows] = True
        return self._considered

    @property
    def absent(self) -> Status:
        """Return the status of the nodes that narrowing left out."""
        names = sorted(self.narrowed_by | self.nominated_refused_by)
        return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(names)}]")

    def with_nominated_refused(self, plugin: str) -> PreFiltered:
        """Return the same after a plugin refused the nominated node."""
        return replace(self, nominated_refused_by=frozenset({plugin}))


@dataclass(slots=True)
class Scores:
    """Weighted, normalised scores of each plugin, their sum, and the scores before normalising."""

    total: Ints
    by_plugin: dict[str, Ints]
    raw: dict[str, Ints]


OUT_OF_RANGE = (
    'applying score defaultWeights on Score plugins: plugin "{plugin}" returns an invalid score {score}, '
    "it should in the range of [0, {most}] after normalizing"
)


class Profile(BindingPoints, GroupPoints):
    """One scheduler name's plugins."""

    def __init__(
        self, name: str, points: Mapping[str, Sequence[tuple[Plugin, int]]], percentage_of_nodes: int | None = None
    ) -> None:
        super().__init__(points)
        self.name = name
        self.percentage_of_nodes = percentage_of_nodes
        self.word: Wording | None = None
        """Makes the message for a pod that fits nowhere, if it differs from today's (policies of old releases)."""
        self.kept: dict[str, Any] = {}
        """What other modules of the framework cache for this profile. In a global table by profile it would never go: the
        cached values refer to plugins, these to their handle, and by the queue to the profile again."""
        self.pre_enqueues = self._at("pre_enqueue")
        self.sorter = next(iter(self._at("queue_sort")), None)
        self.pre_filters = self._at("pre_filter")
        self.filters = self._at("filter")
        self._filters_columns = frozenset(p for p in self.filters if p.implements("filter"))
        self._filters_nodes = frozenset(p for p in self.filters if p.implements("filter_node"))
        self.post_filters = self._at("post_filter")
        self.pre_scores = self._at("pre_score")
        self.scorers = tuple((plugin, weight or 1) for plugin, weight in self.points.get("score", ()))
        self._scores_columns = frozenset(p for p, _ in self.scorers if p.implements("score"))
        self._normalizing = frozenset(p for p, _ in self.scorers if p.implements("normalize"))
        # A what-if adds and removes pods. Plugins without AddPod and RemovePod do not count pods in their state, so nothing of
        # theirs has to be adjusted.
        self.adjusting = tuple(p for p in self.pre_filters if p.implements("add_pod"))
        self.unprepared = {point: self._unprepared(point) for point in ("filter", "score")}
        self.is_prepared = not any(self.unprepared.values())
        """Whether no plugin runs at a point that needs another one which is switched off."""

    def _unprepared(self, point: str) -> dict[str, str]:
        """Return the plugins at a point whose earlier point is disabled in this profile, with the text of the error."""
        missing = {}
        for plugin in self._at(point):
            for needing, earlier, text in plugin.needs:
                if needing == point and plugin not in self._at(earlier):
                    missing[plugin.name] = text
        return missing

    # Filtering

    @reported("PreFilter", lambda answer: (answer.status or SUCCESS).code.text)
    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFiltered:
        """Run the PreFilters and merge their answers."""
        return self.pre_filter_with(self.pre_filters, pod, nodes, state)

    def pre_filter_with(self, plugins: Iterable[Plugin], pod: PodView, nodes: Snapshot, state: CycleState) -> PreFiltered:
        """Run some of the PreFilters and merge what they answer. A plugin that answers SKIP is left out of Filter.

        An unresolvable refusal ends it at once. After any other refusal the remaining plugins are still called, and the last
        refusal counts: kube-scheduler does so, because preemption may help and then needs the state of all plugins. Node names
        of several plugins are intersected. Example: A names {a, b} and C names {b, c}: only b is left, and A and C narrowed.
        """
        # `names` None means all nodes. An empty set cannot come out of the loop: it ends the loop with a refusal.
        names: frozenset[str] | None = None
        narrowed, skipped = set[str](), set[str]()
        refused: Status | None = None
        ended: PreFiltered | None = None
        for plugin in plugins:
            answer = self.call("PreFilter", plugin, plugin.pre_filter, pod, nodes, state)
            # None is Success without node names: the most frequent answer.
            if answer is None:
                continue
            if answer is SKIP:
                skipped.add(plugin.name)
            elif isinstance(answer, NodeNames):
                narrowed.add(plugin.name)
                names = answer.names if names is None else names & answer.names
                if not names:
                    text = (
                        f"node(s) didn't satisfy plugin {plugin.name}"
                        if len(narrowed) == 1
                        else f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed))}] simultaneously"
                    )
                    ended = PreFiltered(unresolvable(text), narrowed_by=frozenset(narrowed))
                    break
            elif not isinstance(answer, Status):
                raise misanswered(plugin.name, "PreFilter", "a Status, NodeNames or None", answer, pod.key)
            elif answer.is_success:
                continue
            elif answer.code is Code.SKIP:
                skipped.add(plugin.name)
            elif answer.code is Code.UNRESOLVABLE:
                ended = PreFiltered(answer.by(plugin.name))  # plugins that narrowed before are not named
                break
            elif answer.code is Code.UNSCHEDULABLE:
                refused = answer.by(plugin.name)
            else:
                raise erred(plugin.name, "PreFilter", answer.message, pod.key)
        state.skip_filter |= skipped
        # Order of precedence: an end, then a plain refusal, then node names. A refusal keeps `narrowed_by`, so that the pod
        # also waits for the plugins that narrowed.
        if ended is not None:
            return ended
        if refused is not None:
            return PreFiltered(refused, narrowed_by=frozenset(narrowed))
        if names is None:
            return PreFiltered()
        return PreFiltered(None, frozenset(narrowed), nodes.rows_of(names), nodes.n)

    @reported("Filter")
    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState, considered: Bools | None = None) -> Verdicts:
        """Run the filters for all rows of the view; the first one that refuses a row owns it.

        Every filter answers for all rows, also for those that an earlier one refused: columns are cheaper than choosing rows.
        So an error of a plugin counts only on rows that it would have been called for (`Verdicts.error`).
        """
        verdicts = Verdicts(nodes, considered)
        for plugin in self.filters:
            if plugin.name not in state.skip_filter:
                verdicts.add(plugin.name, self.filter_one(plugin, pod, nodes, state))
                if verdicts.error is not None:
                    name, text = verdicts.error
                    raise erred(name, "Filter", text, pod.key)
        return verdicts

    def filter_one(self, plugin: Plugin, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Run one filter for all rows of the view. For a single row `filter_node` is called, if the plugin has it."""
        # Kept quirk: a plugin that finds no PreFilter state answers with an error on every node. Here that is known from the
        # profile, and the plugin is not called at all.
        missing = self.unprepared["filter"]
        if plugin.name in missing:
            return Rejections(None, (), dict.fromkeys(range(nodes.n), missing[plugin.name]))
        # One row is asked about for nominated pods and in what-ifs. There a scalar `filter_node` costs a fraction of a column
        # of length 1.
        if plugin in self._filters_columns and (nodes.n != 1 or plugin not in self._filters_nodes):
            rejections: Rejections = self.call("Filter", plugin, plugin.filter, pod, nodes, state)
        else:
            rejections = self.call("Filter", plugin, lifting.filter_rows, plugin, pod, nodes, state)
        is_right = isinstance(rejections, Rejections)
        if is_right and rejections.domains is None and rejections.bits is not None:
            # Checked here, where the plugin's name is known. A column of a wrong length would otherwise break or, worse, be
            # broadcast by NumPy somewhere later.
            is_right = len(rejections.bits) == nodes.n and are_all(Reason, rejections.reasons)
        if not is_right:
            raise misanswered(plugin.name, "Filter", f"one verdict for each of {nodes.n} nodes", rejections, pod.key)
        return rejections

    def adjust(self, pod: PodView, other: PodView, row: int, sign: int, nodes: Snapshot, state: CycleState) -> None:
        """Run AddPod (+1) or RemovePod (-1) of the PreFilter plugins that have them, for a what-if."""
        for plugin in self.adjusting:
            if plugin.name not in state.skip_filter:
                if sign > 0:
                    self.call("PreFilterExtensionAddPod", plugin, plugin.add_pod, pod, other, row, nodes, state)
                else:
                    self.call("PreFilterExtensionRemovePod", plugin, plugin.remove_pod, pod, other, row, nodes, state)

    @reported("PostFilter", lambda answer: answer.status.code.text)
    def post_filter(self, pod: PodView, nodes: Snapshot, state: CycleState, diagnosis: Diagnosis) -> PostFiltered:
        """Run the PostFilters until one makes the pod schedulable; merge the reasons of the others."""
        reasons: list[str] = []
        follow_ups: list[FollowUp | None] = []
        nomination: Nomination | None = None
        rejector, is_settled = "", True
        for plugin in self.post_filters:
            answer = self.call("PostFilter", plugin, plugin.post_filter, pod, nodes, state, diagnosis, self)
            if not isinstance(answer, PostFiltered) or not isinstance(answer.status, Status):
                raise misanswered(plugin.name, "PostFilter", "PostFiltered", answer, pod.key)
            status = answer.status
            # Kept quirk: an unresolvable answer ends the point like a success does. The reasons of the plugins before it are
            # dropped, as in kube-scheduler.
            if status.is_success or status.code is Code.UNRESOLVABLE:
                follow_up = all_of([*follow_ups, named_follow_up(answer.follow_up, plugin, pod)])
                named = status if status.is_success else status.by(plugin.name)
                return PostFiltered(named, answer.nomination, answer.preemption, follow_up)
            follow_ups.append(named_follow_up(answer.follow_up, plugin, pod))
            is_settled = is_settled and answer.is_settled
            if not status.is_rejected:
                return PostFiltered(failed(*status.reasons).by(plugin.name), answer.nomination, follow_up=all_of(follow_ups))
            reasons.extend(status.reasons)
            # The first plugin that refused is named, while the last nomination counts. Both as in kube-scheduler.
            rejector = rejector or plugin.name
            if answer.nomination is not None:
                nomination = answer.nomination
        return PostFiltered(
            unschedulable(*reasons).by(rejector), nomination, follow_up=all_of(follow_ups), is_settled=is_settled
        )

    # Scoring

    @reported("PreScore")
    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> None:
        """Run the PreScores. A plugin that answers SKIP is left out of Score."""
        scoring, skipped = set[str](), set[str]()
        for plugin in self.pre_scores:
            answer = self._ask("PreScore", plugin, plugin.pre_score, pod, nodes, feasible, state)
            if answer is None or answer.is_success:
                scoring.add(plugin.name)
            elif answer.code is Code.SKIP:
                skipped.add(plugin.name)
            else:
                raise erred(plugin.name, "PreScore", answer.message, pod.key)
        # The state may lie on a cached one, in which a plugin was skipped for other feasible nodes. Who answered now replaces
        # that.
        state.skip_score = state.skip_score - scoring | skipped

    @reported("Score")
    def score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Scores:
        """Run the scorers. In the total, nodes that are not feasible have -1."""
        raws: dict[str, Ints] = {}
        by_plugin: dict[str, Ints] = {}
        everywhere = 0
        differing: list[tuple[Ints, int]] = []
        for plugin, weight in self.scorers:
            if plugin.name not in state.skip_score:
                raw = raws[plugin.name] = self.raw_score(plugin, pod, nodes, feasible, state)
                column = self.normalized(plugin, raw, pod, nodes, feasible, state)
                # Most columns are the same for all nodes (no affinity, no images). Such a column is one number with a stride of
                # 0. Its worth is added once at the end, and only differing columns are multiplied and summed row by row.
                if is_uniform(column):
                    worth = column.item(0) * weight
                    everywhere, column = everywhere + worth, nodes.uniform(worth)
                else:
                    differing.append((column, weight))
                    column = column if weight == 1 else column * weight
                by_plugin[plugin.name] = column
        total = kernels.weighted_total(tuple(differing), everywhere, nodes.n)
        if np.count_nonzero(feasible) < nodes.n:
            # Below every real total, so that `max` and a search for the best rows need no mask.
            total[~feasible] = -1
        return Scores(total, by_plugin, raws)

    def rate(self, plugin: Plugin, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Ints:
        """Run one scorer over all rows of the view, normalised; check its range on the feasible nodes."""
        return self.normalized(plugin, self.raw_score(plugin, pod, nodes, feasible, state), pod, nodes, feasible, state)

    def raw_score(self, plugin: Plugin, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Ints:
        """Run one scorer over all rows of the view, without normalising."""
        missing = self.unprepared["score"].get(plugin.name)
        if missing is not None:
            raise erred(plugin.name, "Score", missing, pod.key)
        if plugin in self._scores_columns:
            column: Ints = self.call("Score", plugin, plugin.score, pod, nodes, state)
        else:
            column = self.call("Score", plugin, lifting.score_rows, plugin, pod, nodes, feasible, state)
        self._check_shape(plugin, column, pod, nodes)
        return column

    def normalized(self, plugin: Plugin, raw: Ints, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Ints:
        """Normalise one scorer's column and check its range on the feasible nodes."""
        column: Ints = raw
        if plugin in self._normalizing:
            column = self.call("ScoreExtensionNormalize", plugin, plugin.normalize, raw, feasible, pod, nodes, state)
            self._check_shape(plugin, column, pod, nodes)
        # Read without a sign, a score below zero is above all others, so that one look finds both ends of the range.
        if len(column) and not 0 <= column.item(0 if is_uniform(column) else column.view(np.uint64).argmax()) <= MAX_SCORE:
            outside = np.flatnonzero(feasible & ((column < 0) | (column > MAX_SCORE)))
            if len(outside):
                text = OUT_OF_RANGE.format(plugin=plugin.name, score=column.item(outside[0]), most=MAX_SCORE)
                raise PluginError(plugin.name, "Score", text, pod.key)
        return column

    def _check_shape(self, plugin: Plugin, column: object, pod: PodView, nodes: Snapshot) -> None:
        if type(column) is not np.ndarray or column.shape != (nodes.n,) or column.dtype != np.int64:  # a masked one hides some
            raise misanswered(plugin.name, "Score", f"one 64-bit integer for each of {nodes.n} nodes", column, pod.key)

    @reported("PreEnqueue", lambda status: status.code.text)
    def pre_enqueue(self, pod: PodView, first: str = "") -> Status:
        """Run the PreEnqueues, and first the one that refused the pod last time; return the first refusal."""
        gates = self.pre_enqueues
        # As in kube-scheduler: the gate that refused last time most likely refuses again, and then no other gate is called. The
        # sort is stable, so the others keep their order.
        if first:
            gates = tuple(sorted(gates, key=lambda plugin: plugin.name != first))
        for plugin in gates:
            answer = self._ask("PreEnqueue", plugin, plugin.pre_enqueue, pod)
            if answer is not None and not answer.is_success:
                return named(answer, plugin)
        return SUCCESS


__all__ = ["MAX_SCORE", "SKIP", "PreFiltered", "Profile", "Scores"]
