"""A configured set of plugins, and the one runner for all extension points.

In: a pod, a snapshot, a state. Out: verdicts, scores, statuses, merged as the reference merges them. Every call of a
plugin goes through here, so timing, naming the plugin that broke, and checking what came back stand in one place: single
plugins in `call`, whole extension points in `_reported`. Where nobody observes, no clock is read. Whatever a plugin does,
what comes out is an answer of the right kind or a `PluginError` that names it.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from kubesched.cluster import Bools, GroupKey, Ints, PodView, Snapshot
from kubesched.cluster.snapshot import is_uniform
from kubesched.errors import PluginError
from kubesched.framework import lifting
from kubesched.framework.blame import blamed, misanswered, raised
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.grouping import (
    FailedGroup,
    GroupPostFiltered,
    GroupRefusal,
    GroupTrial,
    Placement,
    Progress,
    Proposal,
    Shortfall,
)
from kubesched.framework.plugin import NodeNames, Plugin, PostFiltered
from kubesched.framework.verdicts import (
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

MAX_SCORE = 100
NO_PLACEMENTS = "no feasible placements found"
ASKED_TO_WAIT = "one or more plugins asked to wait and no plugin rejected pod"

FollowUp = Callable[[], Awaitable[None]]

PointObserver = Callable[[str, str, str, float], None]
"""(extension point, plugin or "" for the whole point, status code's text, seconds)"""

Wording = Callable[[PodView, Diagnosis], str]

CANCEL_SECONDS = 5.0
"""How long a plugin that is called off may take to end."""

_ONE = np.ones(1, dtype=np.bool_)

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


class PreFiltered:
    """What all PreFilters say together: a refusal for every node, or which rows of how many are left to look at."""

    def __init__(
        self,
        status: Status | None = None,
        narrowed_by: frozenset[str] = frozenset(),
        rows: Ints | None = None,
        n_nodes: int = 0,
        nominated_refused_by: frozenset[str] = frozenset(),
    ) -> None:
        self.status = status
        self.narrowed_by = narrowed_by
        self.rows = rows
        self._n_nodes = n_nodes
        self._nominated_refused_by = nominated_refused_by

    @functools.cached_property
    def considered(self) -> Bools | None:
        """Return which nodes are left, None for all of them."""
        if self.rows is None:
            return None
        considered = np.zeros(self._n_nodes, dtype=np.bool_)
        considered[self.rows] = True
        return considered

    @property
    def absent(self) -> Status:
        """Return the status of the nodes that narrowing left out."""
        names = sorted(self.narrowed_by | self._nominated_refused_by)
        return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(names)}]")

    def with_nominated_refused(self, plugin: str) -> PreFiltered:
        """Return the same after a plugin refused the nominated node, which the reference names among those that narrowed."""
        return PreFiltered(self.status, self.narrowed_by, self.rows, self._n_nodes, frozenset({plugin}))


@dataclass(slots=True)
class Scores:
    """Weighted, normalised scores: one column a plugin, and their sum; and what each plugin said before that."""

    total: Ints
    by_plugin: dict[str, Ints] = field(default_factory=dict)
    raw: dict[str, Ints] = field(default_factory=dict)


def _succeeded(answer: object) -> str:
    return SUCCESS.code.text


def _reported(
    point: str, told: Callable[[Any], str] = _succeeded
) -> Callable[[Callable[Concatenate[Profile, P], R]], Callable[Concatenate[Profile, P], R]]:
    """Report a whole extension point to whoever observes: what all its plugins took, and what they came to."""

    def around(run: Callable[Concatenate[Profile, P], R]) -> Callable[Concatenate[Profile, P], R]:
        @functools.wraps(run)
        def reported(self: Profile, /, *args: P.args, **kwargs: P.kwargs) -> R:
            observe = self.observe
            if observe is None:
                return run(self, *args, **kwargs)
            started, text = time.perf_counter(), Code.ERROR.text
            try:
                answer = run(self, *args, **kwargs)
                text = told(answer)
                return answer
            finally:
                observe(point, "", text, time.perf_counter() - started)

        return reported

    return around


class Profile:
    """One scheduler name's plugins."""

    def __init__(
        self, name: str, points: Mapping[str, Sequence[tuple[Plugin, int]]], percentage_of_nodes: int | None = None
    ) -> None:
        self.name = name
        self.points = {point: tuple(entries) for point, entries in points.items()}
        self.percentage_of_nodes = percentage_of_nodes
        self.observe: PointObserver | None = None
        self.word: Wording | None = None
        """How a pod that fits nowhere is told so, where it is not in today's words."""
        self.pre_enqueues = self._at("pre_enqueue")
        self.sorter = next(iter(self._at("queue_sort")), None)
        self.pre_filters = self._at("pre_filter")
        self.filters = self._at("filter")
        self._filters_columns = frozenset(p for p in self.filters if p.implements("filter"))
        self._filters_nodes = frozenset(p for p in self.filters if p.implements("filter_node"))
        self.post_filters = self._at("post_filter")
        self.pre_scores = self._at("pre_score")
        self.scorers = tuple((plugin, weight or 1) for plugin, weight in self.points.get("score", ()))
        self.reserves = self._at("reserve")
        self.permits = self._at("permit")
        self.pre_binds = self._at("pre_bind")
        self.binds = self._at("bind")
        self.post_binds = self._at("post_bind")
        self.adjusting = tuple(p for p in self.pre_filters if p.implements("add_pod"))
        self.gatherers = tuple(p for p in self.plugins if p.implements("group_of"))
        self.unprepared = {point: self._unprepared(point) for point in ("filter", "score")}
        self.is_prepared = not any(self.unprepared.values())
        """Whether no plugin runs at a point that needs another one which is switched off."""
        self.pod_group_post_filters = self._at("pod_group_post_filter")
        self.feasibility = tuple(p for p in self.plugins if p.implements("placement_feasible"))
        self.placement_generators = self._at("placement_generate")
        self.placement_scorers = tuple((p, weight or 1) for p, weight in self.points.get("placement_score", ()))

    def _unprepared(self, point: str) -> dict[str, str]:
        """Return the plugins at a point that lack what an earlier point would have written, and what they say to that."""
        missing = {}
        for plugin in self._at(point):
            for needing, earlier, text in plugin.needs:
                if needing == point and plugin not in self._at(earlier):
                    missing[plugin.name] = text
        return missing

    def _at(self, point: str) -> tuple[Plugin, ...]:
        return tuple(plugin for plugin, _ in self.points.get(point, ()))

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """Return every plugin once, in the order of its first appearance."""
        return tuple(dict.fromkeys(plugin for entries in self.points.values() for plugin, _ in entries))

    @contextmanager
    def unobserved(self) -> Iterator[None]:
        """Keep what is done out of the metrics, which are about real attempts."""
        observe, self.observe = self.observe, None
        try:
            yield
        finally:
            self.observe = observe

    # Filtering

    @_reported("PreFilter", lambda answer: (answer.status or SUCCESS).code.text)
    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFiltered:
        """Run the PreFilters and merge what they say."""
        return self.pre_filter_with(self.pre_filters, pod, nodes, state)

    def pre_filter_with(self, plugins: Iterable[Plugin], pod: PodView, nodes: Snapshot, state: CycleState) -> PreFiltered:
        """Run some of the PreFilters and merge what they say."""
        names: frozenset[str] | None = None
        narrowed: set[str] = set()
        refused: Status | None = None
        for plugin in plugins:
            answer = self.call("PreFilter", plugin, plugin.pre_filter, pod, nodes, state)
            if answer is None:
                continue
            if answer is SKIP:
                state.skip_filter.add(plugin.name)
            elif isinstance(answer, NodeNames):
                narrowed.add(plugin.name)
                names = answer.names if names is None else names & answer.names
                if not names:
                    text = (
                        f"node(s) didn't satisfy plugin {plugin.name}"
                        if len(narrowed) == 1
                        else f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed))}] simultaneously"
                    )
                    return PreFiltered(unresolvable(text), narrowed_by=frozenset(narrowed))
            elif not isinstance(answer, Status):
                raise misanswered(plugin.name, "PreFilter", "a Status, NodeNames or None", answer, pod.key)
            elif answer.is_success:
                continue
            elif answer.code is Code.SKIP:
                state.skip_filter.add(plugin.name)
            elif answer.code is Code.UNRESOLVABLE:
                return PreFiltered(answer.by(plugin.name))  # whoever narrowed before is no part of this
            elif answer.code is Code.UNSCHEDULABLE:
                refused = answer.by(plugin.name)
            else:
                raise PluginError(
                    plugin.name, "PreFilter", f'running PreFilter plugin "{plugin.name}": {answer.message}', pod.key
                )
        if refused is not None:
            return PreFiltered(refused, narrowed_by=frozenset(narrowed))
        if names is None:
            return PreFiltered()
        return PreFiltered(None, frozenset(narrowed), nodes.rows_of(names), nodes.n)

    @_reported("Filter")
    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState, considered: Bools | None = None) -> Verdicts:
        """Run the filters over all rows of the view; the first to refuse a row owns it."""
        return self.filter_again(pod, nodes, state, considered)

    def filter_again(self, pod: PodView, nodes: Snapshot, state: CycleState, considered: Bools | None = None) -> Verdicts:
        """Do the same for some rows that were asked about before: no point of its own."""
        verdicts = Verdicts(nodes, considered)
        for plugin in self.filters:
            if plugin.name not in state.skip_filter:
                verdicts.add(plugin.name, self.filter_one(plugin, pod, nodes, state))
                if verdicts.error is not None:
                    name, text = verdicts.error
                    raise PluginError(name, "Filter", f'running "{name}" filter plugin: {text}', pod.key)
        return verdicts

    def filter_one(self, plugin: Plugin, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Run one filter over all rows of the view; about a single row a plugin is asked without arrays, if it can be."""
        missing = self.unprepared["filter"]
        if plugin.name in missing:
            return Rejections(None, (), dict.fromkeys(range(nodes.n), missing[plugin.name]))
        if plugin in self._filters_columns and (nodes.n != 1 or plugin not in self._filters_nodes):
            rejections: Rejections = self.call("Filter", plugin, plugin.filter, pod, nodes, state)
        else:
            rejections = self.call("Filter", plugin, lifting.filter_rows, plugin, pod, nodes, state)
        if not _are_rejections(rejections, nodes.n):
            raise misanswered(plugin.name, "Filter", f"one verdict for each of {nodes.n} nodes", rejections, pod.key)
        return rejections

    def adjust(self, pod: PodView, other: PodView, row: int, sign: int, nodes: Snapshot, state: CycleState) -> None:
        """Tell the plugins that keep counters that a pod came to a node or left it."""
        for plugin in self.adjusting:
            if plugin.name not in state.skip_filter:
                if sign > 0:
                    self.call("PreFilterExtensionAddPod", plugin, plugin.add_pod, pod, other, row, nodes, state)
                else:
                    self.call("PreFilterExtensionRemovePod", plugin, plugin.remove_pod, pod, other, row, nodes, state)

    @_reported("PostFilter", lambda answer: answer.status.code.text)
    def post_filter(self, pod: PodView, nodes: Snapshot, state: CycleState, diagnosis: Diagnosis) -> PostFiltered:
        """Run the PostFilters until one finds a way out; merge what the others say."""
        reasons: list[str] = []
        follow_ups: list[FollowUp | None] = []
        nomination: Nomination | None = None
        rejector, is_settled = "", True
        for plugin in self.post_filters:
            answer = self.call("PostFilter", plugin, plugin.post_filter, pod, nodes, state, diagnosis, self)
            if not isinstance(answer, PostFiltered) or not isinstance(answer.status, Status):
                raise misanswered(plugin.name, "PostFilter", "PostFiltered", answer, pod.key)
            status = answer.status
            if status.is_success or status.code is Code.UNRESOLVABLE:
                follow_up = _all_of([*follow_ups, _named_follow_up(answer.follow_up, plugin, pod)])
                named = status if status.is_success else status.by(plugin.name)
                return PostFiltered(named, answer.nomination, answer.preemption, follow_up)
            follow_ups.append(_named_follow_up(answer.follow_up, plugin, pod))
            is_settled = is_settled and answer.is_settled
            if not status.is_rejected:
                return PostFiltered(failed(*status.reasons).by(plugin.name), answer.nomination, follow_up=_all_of(follow_ups))
            reasons.extend(status.reasons)
            rejector = rejector or plugin.name
            if answer.nomination is not None:
                nomination = answer.nomination
        return PostFiltered(
            unschedulable(*reasons).by(rejector), nomination, follow_up=_all_of(follow_ups), is_settled=is_settled
        )

    # Scoring

    @_reported("PreScore")
    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> None:
        """Run the PreScores; a plugin that has nothing to say is left out of scoring."""
        for plugin in self.pre_scores:
            answer = self._ask("PreScore", plugin, plugin.pre_score, pod, nodes, feasible, state)
            if answer is None or answer.is_success:
                state.skip_score.discard(plugin.name)
            elif answer.code is Code.SKIP:
                state.skip_score.add(plugin.name)
            else:
                raise PluginError(
                    plugin.name, "PreScore", f'running PreScore plugin "{plugin.name}": {answer.message}', pod.key
                )

    @_reported("Score")
    def score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Scores:
        """Run the scorers; in the total, nodes that are not feasible have -1."""
        scores, everywhere = Scores(np.zeros(nodes.n, dtype=np.int64)), 0
        for plugin, weight in self.scorers:
            if plugin.name not in state.skip_score:
                raw = scores.raw[plugin.name] = self.raw_score(plugin, pod, nodes, feasible, state)
                column = self.normalized(plugin, raw, pod, nodes, feasible, state)
                if is_uniform(column):
                    worth = column.item(0) * weight
                    everywhere, column = everywhere + worth, nodes.uniform(worth)
                else:
                    column = column * weight
                    scores.total += column
                scores.by_plugin[plugin.name] = column
        scores.total += everywhere
        np.copyto(scores.total, -1, where=~feasible)
        return scores

    def rate(self, plugin: Plugin, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Ints:
        """Run one scorer over all rows of the view, normalised; check its range on the feasible nodes."""
        return self.normalized(plugin, self.raw_score(plugin, pod, nodes, feasible, state), pod, nodes, feasible, state)

    def raw_score(self, plugin: Plugin, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Ints:
        """Run one scorer over all rows of the view, without normalising."""
        missing = self.unprepared["score"].get(plugin.name)
        if missing is not None:
            text = f'running Score plugins: plugin "{plugin.name}" failed with: {missing}'
            raise PluginError(plugin.name, "Score", text, pod.key)
        if plugin.implements("score"):
            column: Ints = self.call("Score", plugin, plugin.score, pod, nodes, state)
        else:
            column = self.call("Score", plugin, lifting.score_rows, plugin, pod, nodes, feasible, state)
        self._check_shape(plugin, column, pod, nodes)
        return column

    def normalized(self, plugin: Plugin, raw: Ints, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Ints:
        """Normalise one scorer's column and check its range on the feasible nodes."""
        column: Ints = raw
        if plugin.implements("normalize"):
            if is_uniform(raw) and nodes.n > 1:  # normalised, what is the same on all nodes is so again: one tells
                one = self.normalized(plugin, raw[:1].copy(), pod, nodes.take([0]), _ONE, state)
                return nodes.uniform(one.item(0))
            column = self.call("ScoreExtensionNormalize", plugin, plugin.normalize, raw, feasible, pod, nodes, state)
            self._check_shape(plugin, column, pod, nodes)
        self._check_range(plugin, column, pod, feasible)
        return column

    def _check_shape(self, plugin: Plugin, column: object, pod: PodView, nodes: Snapshot) -> None:
        if not isinstance(column, np.ndarray) or column.shape != (nodes.n,) or column.dtype != np.int64:
            raise misanswered(plugin.name, "Score", f"one 64-bit integer for each of {nodes.n} nodes", column, pod.key)

    def _check_range(self, plugin: Plugin, column: Ints, pod: PodView, feasible: Bools) -> None:
        # Read without a sign, what is below zero is above everything: one look for both ends.
        looked_at = column[:1] if is_uniform(column) else column
        if not len(column) or looked_at.view(np.uint64).max() <= MAX_SCORE:
            return
        outside = feasible & ((column < 0) | (column > MAX_SCORE))
        if outside.any():
            value = int(column[np.flatnonzero(outside)[0]])
            raise PluginError(
                plugin.name,
                "Score",
                f'plugin "{plugin.name}" returns an invalid score {value}, it should '
                f"in the range of [0, {MAX_SCORE}] after normalizing",
                pod.key,
            )

    # Booked

    @_reported("Reserve", lambda status: status.code.text)
    def reserve(self, pod: PodView, node_name: str, state: CycleState) -> Status:
        """Run the Reserves; the first that does not succeed ends it."""
        for plugin in self.reserves:
            answer = self._ask("Reserve", plugin, plugin.reserve, pod, node_name, state)
            if answer is not None and not answer.is_success:
                if answer.is_rejected:
                    return _named(answer, plugin)
                return failed(f'running Reserve plugin "{plugin.name}": {answer.message}').by(plugin.name)
        return SUCCESS

    @_reported("Unreserve")
    def unreserve(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Take back all promises, in reverse order; if plugins break over it, the first error is raised at the end."""
        self._tell_all("Unreserve", [(plugin, plugin.unreserve) for plugin in reversed(self.reserves)], pod, node_name, state)

    @_reported("Permit", lambda answer: answer[0].code.text)
    def permit(self, pod: PodView, node_name: str, state: CycleState) -> tuple[Status, dict[str, float]]:
        """Run the Permits; return the first refusal, or WAIT and the plugins that want it with their limits in seconds.

        Of several that wait, the last one is heard, as in the reference.
        """
        limits: dict[str, float] = {}
        awaited: tuple[str, ...] = ()
        for plugin in self.permits:
            answer = self.call("Permit", plugin, plugin.permit, pod, node_name, state)
            if not _is_permit(answer):
                raise misanswered(plugin.name, "Permit", "a Status and a number of seconds", answer, pod.key)
            status, seconds = answer
            if status.is_success:
                continue
            if status.is_rejected:
                return _named(status, plugin), {}
            if status.code is not Code.WAIT:
                return failed(f'running Permit plugin "{plugin.name}": {status.message}').by(plugin.name), {}
            limits[plugin.name] = seconds
            awaited = status.reasons
        return (Status(Code.WAIT, (*awaited, ASKED_TO_WAIT)) if limits else SUCCESS), limits

    # On the way to the API server; these wait, so that other pods' calls of plugins lie in between

    @_reported("PreBindPreFlight", lambda answer: answer[1].code.text)
    def pre_bind_pre_flight(self, pod: PodView, node_name: str, state: CycleState) -> tuple[list[Plugin], Status]:
        """Return the PreBind plugins that have something to do, with SKIP if there are none, or what went wrong."""
        acting: list[Plugin] = []
        for plugin in self.pre_binds:
            answer = self._ask("PreBindPreFlight", plugin, plugin.pre_bind_pre_flight, pod, node_name, state)
            if answer is None or answer.is_success:
                acting.append(plugin)
            elif answer.code is Code.ERROR:
                return [], failed(f'running PreBindPreFlight "{plugin.name}": {answer.message}').by(plugin.name)
            elif answer.code is not Code.SKIP:
                return [], failed(
                    f'PreBindPreFlight {plugin.name} returned "{answer.code.text}", which is unsupported. '
                    "It is supposed to return Success, Skip, or Error status"
                ).by(plugin.name)
        return acting, SUCCESS if acting else SKIP

    async def pre_bind(self, plugin: Plugin, pod: PodView, node_name: str, state: CycleState) -> Status:
        """Run one PreBind; several may run side by side, so whoever runs them reports the point."""
        answer = await self._await("PreBind", plugin, plugin.pre_bind, pod, node_name, state)
        if answer is None or answer.is_success:
            return SUCCESS
        if answer.is_rejected:
            return _named(answer, plugin)
        return failed(f'running PreBind plugin "{plugin.name}": {answer.message}').by(plugin.name)

    async def bind(self, pod: PodView, node_name: str, state: CycleState) -> Status:
        """Ask the Bind plugins in order; the first that does not leave it to the next has the say."""
        started = time.perf_counter()
        status = failed("")
        try:
            status = await self._bind(pod, node_name, state)
            return status
        finally:
            self.report("Bind", status, started)

    async def _bind(self, pod: PodView, node_name: str, state: CycleState) -> Status:
        for plugin in self.binds:
            answer = await self._await("Bind", plugin, plugin.bind, pod, node_name, state)
            if answer is None or answer.is_success:
                return SUCCESS
            if answer.code is not Code.SKIP:
                if answer.is_rejected:
                    return _named(answer, plugin)
                return failed(f'running Bind plugin "{plugin.name}": {answer.message}').by(plugin.name)
        return SKIP

    @_reported("PostBind")
    def post_bind(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Tell the PostBind plugins; if some break over it, the first error is raised at the end."""
        self._tell_all("PostBind", [(plugin, plugin.post_bind) for plugin in self.post_binds], pod, node_name, state)

    @_reported("PreEnqueue", lambda status: status.code.text)
    def pre_enqueue(self, pod: PodView, first: str = "") -> Status:
        """Ask the gates, the one that gated the pod before first; return the first refusal."""
        gates = self.pre_enqueues
        if first:
            gates = tuple(sorted(gates, key=lambda plugin: plugin.name != first))
        for plugin in gates:
            answer = self.call("PreEnqueue", plugin, plugin.pre_enqueue, pod)
            if answer is not None and not self._checked("PreEnqueue", plugin, answer, (pod,)).is_success:
                return _named(answer, plugin)
        return SUCCESS

    # Pods that belong together

    def group_of(self, pod: PodView) -> tuple[Plugin, GroupKey] | None:
        """Return the group that a pod is to be tried together with, and the plugin that says so."""
        for plugin in self.gatherers:
            key = self.group_by(plugin, pod)
            if key is not None:
                return plugin, key
        return None

    def group_by(self, plugin: Plugin, pod: PodView) -> GroupKey | None:
        """Return the group in which one plugin sees a pod."""
        key = self.call("GroupOf", plugin, plugin.group_of, pod)
        if key is not None and not isinstance(key, GroupKey):
            raise misanswered(plugin.name, "GroupOf", "a GroupKey or None", key, pod.key)
        return key

    def group_failed(self, plugin: Plugin, shortfall: Shortfall) -> GroupRefusal | None:
        """Tell a plugin that its group came to nothing; return what it has to say to the members."""
        refusal = self.call("GroupFailed", plugin, plugin.group_failed, shortfall)
        if refusal is not None and not isinstance(refusal, GroupRefusal):
            raise misanswered(plugin.name, "GroupFailed", "a GroupRefusal or None", refusal)
        return refusal

    @_reported("PlacementFeasible", lambda answer: answer.code.text)
    def placement_feasible(self, group: GroupKey, progress: Progress) -> Status:
        """Ask whether a group has, may still get or cannot get enough members with a place."""
        answer = SUCCESS
        for plugin in self.feasibility:
            status = self.call("PlacementFeasible", plugin, plugin.placement_feasible, group, progress)
            if status is not None and not isinstance(status, Status):
                raise misanswered(plugin.name, "PlacementFeasible", "a Status or None", status)
            if status is None or status.is_success:
                continue
            if status.code is Code.UNSCHEDULABLE:
                return status.by(plugin.name)
            if status.code is not Code.WAIT:
                return failed(f"running PlacementFeasible plugin: {status.message}").by(plugin.name)
            answer = status.by(plugin.name)
        return answer

    @_reported("PodGroupPostFilter", lambda answer: answer.status.code.text)
    def pod_group_post_filter(self, group: FailedGroup, trial: GroupTrial) -> GroupPostFiltered:
        """Run the PodGroupPostFilters until one finds a way out; merge what the others say."""
        reasons: list[str] = []
        follow_ups: list[FollowUp | None] = []
        for plugin in self.pod_group_post_filters:
            answer = self.call("PodGroupPostFilter", plugin, plugin.pod_group_post_filter, group, trial)
            if not isinstance(answer, GroupPostFiltered) or not isinstance(answer.status, Status):
                raise misanswered(plugin.name, "PodGroupPostFilter", "GroupPostFiltered", answer)
            status = answer.status
            follow_ups.append(_named_follow_up(answer.follow_up, plugin, group.members[0]))
            if status.is_success or status.code is Code.UNRESOLVABLE:
                return replace(answer, follow_up=_all_of(follow_ups))
            if not status.is_rejected:
                text = f'error in "{plugin.name}" PodGroupPostFilter plugins: {status.message}'
                return GroupPostFiltered(failed(text), follow_up=_all_of(follow_ups))
            reasons.extend(status.reasons)
        return GroupPostFiltered(unschedulable(*reasons), follow_up=_all_of(follow_ups))

    def generate_placements(self, group: GroupKey, nodes: Snapshot) -> Sequence[Placement] | Status:
        """Ask the first generator, as the reference does; without one there is one placement, the whole cluster."""
        for plugin in self.placement_generators[:1]:
            answer = self.call("PlacementGenerate", plugin, plugin.generate_placements, group, nodes)
            if not isinstance(answer, Status) and not _are(Placement, answer):
                raise misanswered(plugin.name, "PlacementGenerate", "a Status or a sequence of Placements", answer)
            if isinstance(answer, Status):
                return _named(answer, plugin)
            return answer or unschedulable(NO_PLACEMENTS).by(plugin.name)
        return (Placement(""),)

    def score_placements(self, group: GroupKey, proposals: Sequence[Proposal], nodes: Snapshot) -> list[int] | Status:
        """Return the weighted sum of all scorers for each of the proposals, or what went wrong."""
        totals = [0] * len(proposals)
        for plugin, weight in self.placement_scorers:
            raw: list[int] = []
            for proposal in proposals:
                score = self.call("PlacementScore", plugin, plugin.score_placement, group, proposal, nodes)
                if isinstance(score, Status):
                    return failed(f'plugin "{plugin.name}" failed with: {score.message}').by(plugin.name)
                raw.append(score)
            scores: Any = raw
            if plugin.implements("normalize_placements"):
                scores = self.call("PlacementScoreExtensionNormalize", plugin, plugin.normalize_placements, raw)
            if isinstance(scores, Status):
                return failed(f'plugin "{plugin.name}" failed with: {scores.message}').by(plugin.name)
            if not _are(int, scores) or len(scores) != len(proposals):
                raise misanswered(plugin.name, "PlacementScore", f"{len(proposals)} whole numbers", scores)
            for i, score in enumerate(scores):
                if not 0 <= score <= MAX_SCORE:
                    return failed(
                        f'plugin "{plugin.name}" returns an invalid score {score}, it should in the range of '
                        f"[0, {MAX_SCORE}] after normalizing"
                    ).by(plugin.name)
                totals[i] += score * weight
        return totals

    def report(self, point: str, status: Status, started: float) -> None:
        """Report a whole extension point that began so long ago by `time.perf_counter`."""
        if self.observe is not None:
            self.observe(point, "", status.code.text, time.perf_counter() - started)

    def _tell_all(self, point: str, told: Sequence[tuple[Plugin, Callable[..., None]]], *args: Any) -> None:
        """Tell plugins something that none of them can refuse; the first to break is blamed after all were told."""
        broken: PluginError | None = None
        for plugin, function in told:
            try:
                self.call(point, plugin, function, *args)
            except PluginError as error:
                broken = broken or error
        if broken is not None:
            raise broken

    async def _await(self, point: str, plugin: Plugin, function: Callable[..., Any], *args: Any) -> Status | None:
        """Wait for a plugin's answer, in a task of its own: what the plugin does to its task, cancelling it or refusing to be
        cancelled, stays its own affair. So a cancellation that arrives here is always ours."""
        task = asyncio.ensure_future(self._answer(point, plugin, function, *args))
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as cancelled:
            task.cancel(*cancelled.args)
            await asyncio.wait([task], timeout=CANCEL_SECONDS)
            if not task.done():
                log.error("plugin %s goes on at %s of pod %s although it was called off", plugin.name, point, _pod_in(args))
            raise
        if task.cancelled():
            raise raised(plugin.name, point, "CancelledError", _pod_in(args))
        error = task.exception()
        if isinstance(error, GeneratorExit):
            raise blamed(error, plugin.name, point, _pod_in(args)) from error
        return task.result()

    async def _answer(self, point: str, plugin: Plugin, function: Callable[..., Any], *args: Any) -> Status | None:
        started = time.perf_counter()
        try:
            answer = await function(*args)
        except (asyncio.CancelledError, GeneratorExit):
            raise  # perhaps ours: whoever waits for the task knows
        except BaseException as error:  # somebody else's code may raise anything, and a SystemExit would end the process
            raise blamed(error, plugin.name, point, _pod_in(args)) from error
        code = self._checked(point, plugin, answer, args).code if answer is not None else Code.SUCCESS
        if self.observe is not None:
            self.observe(point, plugin.name, code.text, time.perf_counter() - started)
        return answer  # type: ignore[no-any-return]

    def _ask(self, point: str, plugin: Plugin, function: Callable[..., Any], *args: Any) -> Status | None:
        """Call a plugin at a point where it answers with a status, or with nothing for success."""
        answer = self.call(point, plugin, function, *args)
        return None if answer is None else self._checked(point, plugin, answer, args)

    def _checked(self, point: str, plugin: Plugin, answer: object, args: Sequence[Any]) -> Status:
        if not isinstance(answer, Status):
            raise misanswered(plugin.name, point, "a Status or None", answer, _pod_in(args))
        return answer

    def call(self, point: str, plugin: Plugin, function: Callable[..., Any], *args: Any) -> Any:
        """Call a plugin; what it raises comes out as a PluginError that names it."""
        observe = self.observe
        try:
            if observe is None:
                return function(*args)
            started = time.perf_counter()
            answer = function(*args)
        except PluginError:
            raise  # another plugin's, which this one asked
        except BaseException as error:  # somebody else's code may raise anything, and a SystemExit would end the process
            raise blamed(error, plugin.name, point, _pod_in(args)) from error
        code = answer.code if isinstance(answer, Status) else Code.SUCCESS
        observe(point, plugin.name, code.text, time.perf_counter() - started)
        return answer


def _pod_in(args: Iterable[Any]) -> str:
    """Return the pod that a call is about, which is the first among its arguments."""
    return next((arg.key for arg in args if isinstance(arg, PodView)), "")


def _are_rejections(answer: object, n_nodes: int) -> bool:
    if not isinstance(answer, Rejections):
        return False
    return answer.bits is None or (len(answer.bits) == n_nodes and _are(Reason, answer.reasons))


def _are(kind: type, answer: object) -> bool:
    return isinstance(answer, Sequence) and all(isinstance(each, kind) for each in answer)


def _is_permit(answer: object) -> bool:
    return (
        isinstance(answer, tuple)
        and len(answer) == 2
        and isinstance(answer[0], Status)
        and isinstance(answer[1], int | float)
        and not math.isnan(answer[1])
    )


def _named_follow_up(follow_up: FollowUp | None, plugin: Plugin, pod: PodView) -> FollowUp | None:
    """Return an follow_up that names its plugin if it breaks."""
    if follow_up is None:
        return None

    async def run() -> None:
        try:
            await follow_up()
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # as in `Profile.call`
            raise blamed(error, plugin.name, "PostFilter", pod.key) from error

    return run


def _all_of(follow_ups: Sequence[FollowUp | None]) -> FollowUp | None:
    """Return one follow_up that runs all of them, one after another; None if there is none."""
    wanted = [follow_up for follow_up in follow_ups if follow_up is not None]
    if len(wanted) < 2:
        return wanted[0] if wanted else None

    async def run() -> None:
        for follow_up in wanted:
            await follow_up()

    return run


def _named(status: Status, plugin: Plugin) -> Status:
    return status if status.plugin else status.by(plugin.name)


__all__ = ["MAX_SCORE", "SKIP", "PreFiltered", "Profile", "Scores"]
