"""A configured set of plugins, and the one runner for all extension points.

In: a pod, a snapshot, a state. Out: verdicts, scores, statuses, merged as the reference merges them. Every call of a
plugin goes through here, so timing, naming the plugin that broke, and checking what came back stand in one place: single
plugins in `call`, whole extension points in `_reported`. Where nobody observes, no clock is read.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from kubesched.cluster import Bools, GroupKey, Ints, PodView, Snapshot
from kubesched.errors import PluginError
from kubesched.framework import lifting
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.grouping import GroupRefusal, Placement, Proposal, Shortfall
from kubesched.framework.plugin import NodeNames, Plugin, PostFiltered
from kubesched.framework.verdicts import (
    SKIP,
    SUCCESS,
    Code,
    Diagnosis,
    Nomination,
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

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class PreFiltered:
    """What all PreFilters say together: a refusal for every node, or which nodes are left to look at."""

    status: Status | None = None
    considered: Bools | None = None
    narrowed_by: frozenset[str] = frozenset()

    @property
    def absent(self) -> Status:
        """Return the status of the nodes that narrowing left out."""
        return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(self.narrowed_by))}]")


@dataclass(slots=True)
class Scores:
    """Weighted, normalised scores: one column a plugin, and their sum."""

    total: Ints
    by_plugin: dict[str, Ints] = field(default_factory=dict)


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
        self.running: tuple[str, str] | None = None
        self.observe: PointObserver | None = None
        self.word: Wording | None = None
        """How a pod that fits nowhere is told so, where it is not in today's words."""
        self.pre_enqueues = self._at("pre_enqueue")
        self.sorter = next(iter(self._at("queue_sort")), None)
        self.pre_filters = self._at("pre_filter")
        self.filters = self._at("filter")
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
        self.placement_generators = self._at("placement_generate")
        self.placement_scorers = tuple((p, weight or 1) for p, weight in self.points.get("placement_score", ()))

    def _at(self, point: str) -> tuple[Plugin, ...]:
        return tuple(plugin for plugin, _ in self.points.get(point, ()))

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """Return every plugin once, in the order of its first appearance."""
        return tuple(dict.fromkeys(plugin for entries in self.points.values() for plugin, _ in entries))

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
            if isinstance(answer, NodeNames):
                narrowed.add(plugin.name)
                names = answer.names if names is None else names & answer.names
                if not names:
                    text = (
                        f"node(s) didn't satisfy plugin {plugin.name}"
                        if len(narrowed) == 1
                        else f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed))}] simultaneously"
                    )
                    return PreFiltered(unresolvable(text), narrowed_by=frozenset(narrowed))
            elif answer is None or answer.is_success:
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
        considered = np.zeros(nodes.n, dtype=np.bool_)
        considered[nodes.rows_of(names)] = True
        return PreFiltered(None, considered, frozenset(narrowed))

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
        """Run one filter over all rows of the view."""
        if plugin.implements("filter"):
            rejections = self.call("Filter", plugin, plugin.filter, pod, nodes, state)
        else:
            rejections = self.call("Filter", plugin, lifting.filter_rows, plugin, pod, nodes, state)
        if not isinstance(rejections, Rejections) or (rejections.bits is not None and len(rejections.bits) != nodes.n):
            raise PluginError(
                plugin.name,
                "Filter",
                f'running "{plugin.name}" filter plugin: expected one verdict for each of {nodes.n} nodes, got {rejections!r}',
                pod.key,
            )
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
            answer: PostFiltered = self.call("PostFilter", plugin, plugin.post_filter, pod, nodes, state, diagnosis, self)
            status = answer.status
            if status.is_success or status.code is Code.UNRESOLVABLE:
                follow_up = _all_of([*follow_ups, answer.follow_up])
                named = status if status.is_success else status.by(plugin.name)
                return PostFiltered(named, answer.nomination, answer.preemption, follow_up)
            follow_ups.append(answer.follow_up)
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
            answer = self.call("PreScore", plugin, plugin.pre_score, pod, nodes, feasible, state)
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
        scores = Scores(np.zeros(nodes.n, dtype=np.int64))
        for plugin, weight in self.scorers:
            if plugin.name not in state.skip_score:
                column = self.rate(plugin, pod, nodes, feasible, state) * weight
                scores.by_plugin[plugin.name] = column
                scores.total += column
        scores.total[~feasible] = -1
        return scores

    def rate(self, plugin: Plugin, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Ints:
        """Run one scorer over all rows of the view, normalised; check its range on the feasible nodes."""
        return self.normalized(plugin, self.raw_score(plugin, pod, nodes, feasible, state), pod, nodes, feasible, state)

    def raw_score(self, plugin: Plugin, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Ints:
        """Run one scorer over all rows of the view, without normalising."""
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
            column = self.call("ScoreExtensionNormalize", plugin, plugin.normalize, raw, feasible, pod, nodes, state)
        self._check_range(plugin, column, pod, feasible)
        return column

    def _check_shape(self, plugin: Plugin, column: object, pod: PodView, nodes: Snapshot) -> None:
        if not isinstance(column, np.ndarray) or column.shape != (nodes.n,) or column.dtype != np.int64:
            raise PluginError(
                plugin.name,
                "Score",
                f'running Score plugins: plugin "{plugin.name}" failed with: expected '
                f"one 64-bit integer for each of {nodes.n} nodes",
                pod.key,
            )

    def _check_range(self, plugin: Plugin, column: Ints, pod: PodView, feasible: Bools) -> None:
        # Read without a sign, what is below zero is above everything: one look for both ends.
        if not len(column) or column.view(np.uint64).max() <= MAX_SCORE:
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
            answer = self.call("Reserve", plugin, plugin.reserve, pod, node_name, state)
            if answer is not None and not answer.is_success:
                if answer.is_rejected:
                    return _named(answer, plugin)
                return failed(f'running Reserve plugin "{plugin.name}": {answer.message}').by(plugin.name)
        return SUCCESS

    @_reported("Unreserve")
    def unreserve(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Take back all promises, in reverse order; if plugins break over it, the first error is raised at the end."""
        broken: tuple[Exception, tuple[str, str] | None] | None = None
        for plugin in reversed(self.reserves):
            try:
                self.call("Unreserve", plugin, plugin.unreserve, pod, node_name, state)
            except Exception as error:
                broken = broken or (error, self.running)
        if broken is not None:
            self.running = broken[1]
            raise broken[0]

    @_reported("Permit", lambda answer: answer[0].code.text)
    def permit(self, pod: PodView, node_name: str, state: CycleState) -> tuple[Status, dict[str, float]]:
        """Run the Permits; return the first refusal, or WAIT and the plugins that want it with their limits in seconds.

        Of several that wait, the last one is heard, as in the reference.
        """
        limits: dict[str, float] = {}
        awaited: tuple[str, ...] = ()
        for plugin in self.permits:
            status, seconds = self.call("Permit", plugin, plugin.permit, pod, node_name, state)
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
            answer = self.call("PreBindPreFlight", plugin, plugin.pre_bind_pre_flight, pod, node_name, state)
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
        answer = await self._await("PreBind", plugin, plugin.pre_bind(pod, node_name, state))
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
            answer = await self._await("Bind", plugin, plugin.bind(pod, node_name, state))
            if answer is None or answer.is_success:
                return SUCCESS
            if answer.code is not Code.SKIP:
                if answer.is_rejected:
                    return _named(answer, plugin)
                return failed(f'running Bind plugin "{plugin.name}": {answer.message}').by(plugin.name)
        return SKIP

    @_reported("PostBind")
    def post_bind(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Tell the PostBind plugins."""
        for plugin in self.post_binds:
            self.call("PostBind", plugin, plugin.post_bind, pod, node_name, state)

    @_reported("PreEnqueue", lambda status: status.code.text)
    def pre_enqueue(self, pod: PodView, first: str = "") -> Status:
        """Ask the gates, the one that gated the pod before first; return the first refusal."""
        gates = self.pre_enqueues
        if first:
            gates = tuple(sorted(gates, key=lambda plugin: plugin.name != first))
        for plugin in gates:
            answer = self.call("PreEnqueue", plugin, plugin.pre_enqueue, pod)
            if answer is not None and not answer.is_success:
                return _named(answer, plugin)
        return SUCCESS

    # Pods that belong together

    def group_of(self, pod: PodView) -> tuple[Plugin, GroupKey] | None:
        """Return the group that a pod is to be tried together with, and the plugin that says so."""
        for plugin in self.gatherers:
            key = plugin.group_of(pod)
            if key is not None:
                return plugin, key
        return None

    def group_failed(self, plugin: Plugin, shortfall: Shortfall) -> GroupRefusal | None:
        """Tell a plugin that its group came to nothing; return what it has to say to the members."""
        refusal: GroupRefusal | None = self.call("GroupFailed", plugin, plugin.group_failed, shortfall)
        return refusal

    def generate_placements(self, group: GroupKey, nodes: Snapshot) -> Sequence[Placement] | Status:
        """Ask the first generator, as the reference does; without one there is one placement, the whole cluster."""
        for plugin in self.placement_generators[:1]:
            answer: Sequence[Placement] | Status = self.call(
                "PlacementGenerate", plugin, plugin.generate_placements, group, nodes
            )
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
            scores: Sequence[int] | Status = raw
            if plugin.implements("normalize_placements"):
                scores = self.call("PlacementScoreExtensionNormalize", plugin, plugin.normalize_placements, raw)
            if isinstance(scores, Status):
                return failed(f'plugin "{plugin.name}" failed with: {scores.message}').by(plugin.name)
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

    async def _await(self, point: str, plugin: Plugin, answering: Awaitable[Status | None]) -> Status | None:
        """Wait for a plugin's answer. Other pods' plugins run meanwhile, so it is not `running`."""
        if self.observe is None:
            return await answering
        started = time.perf_counter()
        answer = await answering
        code = answer.code if isinstance(answer, Status) else Code.SUCCESS
        self.observe(point, plugin.name, code.text, time.perf_counter() - started)
        return answer

    def call(self, point: str, plugin: Plugin, function: Callable[..., Any], *args: Any) -> Any:
        """Call a plugin, remembering its name for whoever catches what it raises."""
        self.running = (plugin.name, point)
        if self.observe is None:
            return function(*args)
        started = time.perf_counter()
        answer = function(*args)
        code = answer.code if isinstance(answer, Status) else Code.SUCCESS
        self.observe(point, plugin.name, code.text, time.perf_counter() - started)
        return answer


def _all_of(follow_ups: Sequence[FollowUp | None]) -> FollowUp | None:
    """Return one follow-up that runs all of them, one after another; None if there is none."""
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
