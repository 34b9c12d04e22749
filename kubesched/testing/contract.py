"""`check_plugin`: the contract that every plugin must keep.

It builds random clusters, asks the plugin about random pods, and raises an AssertionError that names the plugin, the pod, the
size of the cluster and what is broken. The same seed checks the same clusters.

  * it does not write to its input                    * columns have the right length and type
  * the same pod gets the same answer twice           * other orders of the nodes give the same answers
  * inputs that `depends_on` leaves out do not change the answers (testing/declarations)
  * counters that follow the pods give the same answers as a new count
  * columns agree with the methods for one node, and with the answers for domains
  * empty clusters and clusters of one node work
  * PreEnqueue, Reserve and Permit return the right types, and Unreserve undoes Reserve
  * PostFilter, PreBind, Bind and PostBind behave, on fakes (testing/side_effects)
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from time import perf_counter
from typing import Any

import numpy as np

from kubesched.errors import PluginError
from kubesched.kube.api import Pod, TopLevel
from kubesched.scheduler.cluster import PodView, Snapshot, Store
from kubesched.scheduler.config import Gates, Path
from kubesched.scheduler.engine import EngineHandle
from kubesched.scheduler.framework import (
    AddsScores,
    Code,
    CounterTable,
    CycleState,
    NodeNames,
    Plugin,
    Profile,
    Rejections,
    Status,
    is_counting,
    points_of,
    verify,
)
from kubesched.scheduler.framework.runtime import lifting
from kubesched.testing import clusters
from kubesched.testing.declarations import check_declaration
from kubesched.testing.fakes import FakeClock, FakeRecorder, FakeWriter
from kubesched.testing.side_effects import SIDE_EFFECT_POINTS, check_side_effects

_TRIES = 3
_CHECKED_POINTS = {"pre_enqueue", "pre_filter", "filter", "pre_score", "score", "reserve", "permit", *SIDE_EFFECT_POINTS}
"""Other points concern several pods."""


class Bench:
    """A cluster with one plugin, and fakes for what it writes to."""

    def __init__(self, cls: type[Plugin], args: Any, objects: Sequence[TopLevel], writer: FakeWriter | None = None) -> None:
        self.store = Store()
        for obj in objects:
            self.store.put(obj)
        self.writer = writer or FakeWriter(self.store.objects)
        handle = EngineHandle(
            self.store.objects,
            clock=FakeClock(jumps=True),
            writer=self.writer,
            recorder=FakeRecorder(),
            find_node=self.store.node,
        )
        self.plugin = cls(args, handle)
        points = [point for point in points_of(type(self.plugin)) if point in _CHECKED_POINTS]
        self.profile = Profile("checked", {point: [(self.plugin, 1)] for point in points})

    def answers(self, pod: Pod, nodes: Snapshot | None = None, state: CycleState | None = None) -> dict[str, Any]:
        """Return all answers of the plugin about a pod, by node name; with a state, from the counters there."""
        view = self.store.view(pod)
        nodes = nodes if nodes is not None else self.store.snapshot()
        state = state or CycleState()
        said: dict[str, Any] = {}
        answer = self.plugin.pre_filter(view, nodes, state)
        if isinstance(answer, NodeNames):
            said["pre_filter"] = sorted(answer.names)
        elif isinstance(answer, Status) and not answer.is_success:
            said["pre_filter"] = answer.code.text
            if answer.code is not Code.SKIP:
                return said
        if said.get("pre_filter") != "Skip" and self._has("filter", "filter_node"):
            said["filter"] = _by_name(nodes, self.profile.filter_one(self.plugin, view, nodes, state))
        feasible = np.ones(nodes.n, dtype=np.bool_)
        if nodes.n and self._has("score", "score_node"):
            status = self.plugin.pre_score(view, nodes, feasible, state)
            if status is not None and not status.is_success:
                said["pre_score"] = status.code.text
                return said
            raw = self.profile.raw_score(self.plugin, view, nodes, feasible, state)
            said["raw"] = dict(zip(nodes.names, raw.tolist(), strict=True))
            given = raw.view()
            given.flags.writeable = False  # as in the scheduler
            scores = self.profile.normalized(self.plugin, given, view, nodes, feasible, state)
            said["score"] = dict(zip(nodes.names, scores.tolist(), strict=True))
        return said

    def _has(self, *methods: str) -> bool:
        return any(self.plugin.implements(method) for method in methods)


def _by_name(nodes: Snapshot, rejections: Rejections) -> dict[str, Any]:
    statuses = [rejections.status(row) for row in range(nodes.n)]
    return {name: (s.code.text, tuple(sorted(s.reasons))) for name, s in zip(nodes.names, statuses, strict=True)}


def check_plugin(cls: type[Plugin], args: Any = None, *, seed: int = 0, rounds: int = 25) -> None:
    """Raise AssertionError if the class breaks the contract."""
    verify(cls)
    args = _checked_args(cls, args)
    random = Random(seed)
    for size in (0, 1, *(random.randrange(2, 12) for _ in range(rounds))):
        _check_cluster(cls, args, random, size)


def _checked_args(cls: type[Plugin], args: Any) -> Any:
    """Return the arguments (None: the default ones), defaulted and validated as by a configuration."""
    if cls.Args is None:
        return args
    gates = Gates.defaults()
    args = cls.Args().defaulted(gates) if args is None else args
    assert isinstance(args, cls.Args), f"plugin {cls.name}: Args.defaulted returns {args!r}, which is no Args"
    wrong = args.validate(Path("args"), gates)
    assert isinstance(wrong, list), f"plugin {cls.name}: Args.validate returns {wrong!r}, not a list of what is wrong"
    assert not wrong, f"plugin {cls.name}: Args.validate refuses the defaults: {'; '.join(map(str, wrong))}"
    return args


def seconds_a_pod(
    cls: type[Plugin], args: Any = None, *, sizes: Sequence[int], limit: float, seed: int = 0
) -> tuple[float, int]:
    """Return the time for one pod, and the number of nodes: for clusters of rising sizes, until the time exceeds `limit`."""
    args, random, took, size = _checked_args(cls, args), Random(seed), 0.0, 0
    for size in sizes:
        nodes = [clusters.random_node(random, f"n{i}") for i in range(size)]
        bench = Bench(cls, args, [*clusters.namespaces(), *nodes])
        pod = clusters.random_pod(random, "new")
        bench.store.snapshot()
        took = _seconds(bench, pod)
        for _ in range(_TRIES - 1):
            if took <= limit:
                break
            took = min(took, _seconds(bench, pod))  # the machine may have been busy
        if took > limit:
            break
    return took, size


def _seconds(bench: Bench, pod: Pod) -> float:
    began = perf_counter()
    bench.answers(pod)
    return perf_counter() - began


def _check_cluster(cls: type[Plugin], args: Any, random: Random, size: int) -> None:
    nodes = [clusters.random_node(random, f"n{i}") for i in range(size)]
    placed = [clusters.random_pod(random, f"old-{i}", on=f"n{random.randrange(size)}") for i in range(3 * size)]
    incoming = [clusters.random_pod(random, f"new-{i}") for i in range(3)]
    bench = Bench(cls, args, [*clusters.namespaces(), *nodes, *placed])
    shuffled_nodes = nodes[:]
    random.shuffle(shuffled_nodes)
    shuffled = Bench(cls, args, [*clusters.namespaces(), *shuffled_nodes, *placed])
    for pod in incoming:
        where = f"plugin {cls.name}, pod {pod.key}, {size} nodes"
        try:
            first = bench.answers(pod)
        except PluginError:
            raise
        except ValueError as error:
            if "read-only" in str(error):
                raise AssertionError(f"{where}: the plugin writes into its input: {error}") from error
            raise
        assert first == bench.answers(pod), f"{where}: asked twice, it answers differently"
        assert first == shuffled.answers(pod), f"{where}: the answer depends on the order of the nodes"
        _check_scalar(bench, pod, where)
        _check_added_scores(bench, pod, random, where)
        check_declaration(bench, pod, nodes, random, first, where)
        _check_counts(bench, pod, random, where)
        _check_promise(bench, pod, first, where)
    check_side_effects(Bench, cls, args, [*clusters.namespaces(), *nodes, *placed], incoming[0])


def _check_scalar(bench: Bench, pod: Pod, where: str) -> None:
    """Compare filter with filter_node, and score with score_node, if the plugin has both."""
    plugin, view, nodes, state = bench.plugin, bench.store.view(pod), bench.store.snapshot(), CycleState()
    answer = plugin.pre_filter(view, nodes, state)
    if answer is None and plugin.implements("filter") and plugin.implements("filter_node"):
        column = _by_name(nodes, plugin.filter(view, nodes, state))
        single = _by_name(nodes, lifting.filter_rows(plugin, view, nodes, state))
        assert column == single, f"{where}: filter and filter_node disagree: {column} and {single}"
    if nodes.n and plugin.implements("score") and plugin.implements("score_node"):
        feasible = np.ones(nodes.n, dtype=np.bool_)
        if plugin.pre_score(view, nodes, feasible, state) is None:
            column_, single_ = plugin.score(view, nodes, state), lifting.score_rows(plugin, view, nodes, feasible, state)
            assert column_.tolist() == single_.tolist(), f"{where}: score and score_node disagree: {column_} and {single_}"


def _check_added_scores(bench: Bench, pod: Pod, random: Random, where: str) -> None:
    """Compare the scores that a plugin adds in one step with those of PreScore, Score and normalising."""
    plugin, view, nodes, state = bench.plugin, bench.store.view(pod), bench.store.snapshot(), CycleState()
    feasible = np.array([random.random() < 0.8 for _ in range(nodes.n)], dtype=np.bool_)
    if not isinstance(plugin, AddsScores) or not feasible.any():
        return
    added = plugin.add_scores(view, nodes, feasible, CycleState(), np.zeros(nodes.n, dtype=np.int64), 1)
    status = plugin.pre_score(view, nodes, feasible, state)
    if isinstance(added, Status):
        assert status == added, f"{where}: pre_score says {status}, add_scores {added}"
    elif added is not None:
        assert status is None, f"{where}: pre_score says {status}, add_scores has scores"
        column = bench.profile.rate(plugin, view, nodes, feasible, state)[feasible].tolist()
        assert column == added[feasible].tolist(), f"{where}: normalize and add_scores disagree: {column} and {added}"


def _check_counts(bench: Bench, pod: Pod, random: Random, where: str) -> None:
    """Add and remove pods. The kept counters must give the same answers as a new count, and if no counter changed, the answers
    must be the same as before."""
    plugin, store, nodes, state = bench.plugin, bench.store, bench.store.snapshot(), CycleState(None, CounterTable())
    if not nodes.n or not is_counting(plugin):
        return
    come: list[PodView] = []
    for i in range(6):
        before, versions = bench.answers(pod, state=state), [counts.version for counts in state.counts.values()]
        if i % 3 == 2:
            store.remove_pod(come.pop().uid)
        else:
            come.append(store.put_pod(clusters.random_pod(random, f"coming-{i}", on=random.choice(nodes.names))))
        for counts in state.counts.values():
            counts.refresh(nodes)
        if not all(counts.is_for(bench.store.view(pod), nodes) for counts in state.counts.values()):
            state, versions = CycleState(None, CounterTable()), [-1]  # it declares others from now on
        anew = bench.answers(pod)
        if versions == [counts.version for counts in state.counts.values()]:
            assert before == anew, f"{where}: no counter of its own changed, but it says {anew} instead of {before}"
        kept = bench.answers(pod, state=state)
        assert kept == anew, f"{where}: from its counters it says {kept}, counting anew {anew}"
    for view in come:
        store.remove_pod(view.uid)


def _check_promise(bench: Bench, pod: Pod, first: dict[str, Any], where: str) -> None:
    """Call Reserve, Permit and Unreserve; the answers must be the same as before."""
    profile, view, nodes, state = bench.profile, bench.store.view(pod), bench.store.snapshot(), CycleState()
    profile.pre_enqueue(view)
    if not nodes.n or not (profile.reserves or profile.permits) or profile.pre_filter(view, nodes, state).status is not None:
        return
    name = nodes.names[0]
    if profile.reserve(view, name, state).is_success:
        profile.permit(view, name, state)
    profile.unreserve(view, name, state)
    anew = bench.answers(pod)
    assert first == anew, f"{where}: after Reserve and Unreserve it says {anew} instead of {first}"
