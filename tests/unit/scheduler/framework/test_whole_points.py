"""Every extension point is reported as a whole, once an attempt, on the plain path and from memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import numpy as np
import pytest
from framework_fakes import small_store, some_pod

from kubesched.scheduler import config
from kubesched.scheduler.engine.arrivals.inbox import Changed
from kubesched.scheduler.engine.assembly import EngineOptions, Ports, assemble, default_configuration, registry_with
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.framework import SKIP, CycleState, Plugin, Status, unschedulable
from kubesched.scheduler.framework.equivalence_cache.cache import EquivalenceCache
from kubesched.scheduler.framework.plugin import PostFiltered
from kubesched.scheduler.framework.runtime.building import build_profile, catalogue
from kubesched.scheduler.framework.runtime.profile import Profile
from kubesched.scheduler.framework.verdicts import SUCCESS, Code, Diagnosis, failed
from kubesched.telemetry import Metrics
from kubesched.testing import FakeWriter, node, pod

Seen = list[tuple[str, str, str]]


def watched(profile: Profile) -> Seen:
    seen: Seen = []
    profile.observe = lambda point, plugin, code, seconds: seen.append((point, plugin, code))
    return seen


class Answers(Plugin):
    """Says at every point what it is told to say."""

    said: Any = None

    def pre_enqueue(self, pod: Any) -> Status | None:
        return self._say()

    def pre_filter(self, pod: Any, nodes: Any, state: CycleState) -> Any:
        return self._say()

    def post_filter(self, pod: Any, nodes: Any, state: CycleState, diagnosis: Any, profile: Any) -> PostFiltered:
        return PostFiltered(self._say() or SUCCESS)

    def pre_score(self, pod: Any, nodes: Any, feasible: Any, state: CycleState) -> Status | None:
        return self._say()

    def reserve(self, pod: Any, node_name: str, state: CycleState) -> Status | None:
        return self._say()

    def permit(self, pod: Any, node_name: str, state: CycleState) -> tuple[Status, float]:
        return self._say() or SUCCESS, 1.0

    def pre_bind_pre_flight(self, pod: Any, node_name: str, state: CycleState) -> Status | None:
        return self._say()

    async def pre_bind(self, pod: Any, node_name: str, state: CycleState) -> Status | None:
        return self._say()

    async def bind(self, pod: Any, node_name: str, state: CycleState) -> Status | None:
        return self._say()

    def post_bind(self, pod: Any, node_name: str, state: CycleState) -> None:
        self._say()

    def unreserve(self, pod: Any, node_name: str, state: CycleState) -> None:
        self._say()

    def _say(self) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


REFUSED, BROKEN = unschedulable("no"), RuntimeError("broken")
CALLS: dict[str, Any] = {
    "PreEnqueue": lambda p, pod, nodes: p.pre_enqueue(pod),
    "PreFilter": lambda p, pod, nodes: p.pre_filter(pod, nodes, CycleState()),
    "PostFilter": lambda p, pod, nodes: p.post_filter(pod, nodes, CycleState(), Diagnosis(nodes.n)),
    "PreScore": lambda p, pod, nodes: p.pre_score(pod, nodes, np.ones(nodes.n, dtype=np.bool_), CycleState()),
    "Score": lambda p, pod, nodes: p.score(pod, nodes, np.ones(nodes.n, dtype=np.bool_), CycleState()),
    "Reserve": lambda p, pod, nodes: p.reserve(pod, "a", CycleState()),
    "Unreserve": lambda p, pod, nodes: p.unreserve(pod, "a", CycleState()),
    "Permit": lambda p, pod, nodes: p.permit(pod, "a", CycleState()),
    "PreBindPreFlight": lambda p, pod, nodes: p.pre_bind_pre_flight(pod, "a", CycleState()),
    "Bind": lambda p, pod, nodes: asyncio.run(p.bind(pod, "a", CycleState())),
    "PostBind": lambda p, pod, nodes: p.post_bind(pod, "a", CycleState()),
}
STATUSES = [
    ("PreEnqueue", None, "Success"),
    ("PreEnqueue", REFUSED, "Unschedulable"),
    ("PreEnqueue", BROKEN, "Error"),
    ("PreFilter", None, "Success"),
    ("PreFilter", REFUSED, "Unschedulable"),
    ("PreFilter", SKIP, "Success"),
    ("PreFilter", BROKEN, "Error"),
    ("PostFilter", None, "Success"),
    ("PostFilter", REFUSED, "Unschedulable"),
    ("PostFilter", failed("x"), "Error"),
    ("PreScore", None, "Success"),
    ("PreScore", failed("x"), "Error"),
    ("Score", None, "Success"),
    ("Reserve", None, "Success"),
    ("Reserve", REFUSED, "Unschedulable"),
    ("Reserve", BROKEN, "Error"),
    ("Unreserve", None, "Success"),
    ("Permit", None, "Success"),
    ("Permit", REFUSED, "Unschedulable"),
    ("Permit", Status(Code.WAIT), "Wait"),
    ("PreBindPreFlight", None, "Success"),
    ("PreBindPreFlight", SKIP, "Skip"),
    ("PreBindPreFlight", failed("x"), "Error"),
    ("Bind", None, "Success"),
    ("Bind", SKIP, "Skip"),
    ("Bind", failed("x"), "Error"),
    ("Bind", BROKEN, "Error"),
    ("PostBind", None, "Success"),
]


@pytest.mark.parametrize(("point", "said", "code"), STATUSES)
def test_each_point_says_what_it_came_to(point: str, said: Any, code: str) -> None:
    store = small_store()
    plugin = Answers(None, None)  # type: ignore[arg-type]
    plugin.said = said
    names = ("pre_enqueue", "pre_filter", "post_filter", "pre_score", "reserve", "permit", "pre_bind", "bind", "post_bind")
    profile = Profile("p", {name: [(plugin, 1)] for name in names})
    seen = watched(profile)
    try:
        CALLS[point](profile, some_pod(store), store.snapshot())
    except Exception as error:
        assert error.__cause__ is said or said == failed("x")
    assert [entry for entry in seen if not entry[1]] == [(point, "", code)]


def engine_with(seen: Seen, *, remembers: bool, n_nodes: int = 3) -> Engine:
    gates = config.Gates.defaults()
    engine = assemble(
        default_configuration(gates), gates, Ports(writer=FakeWriter()), options=EngineOptions(remembers=remembers)
    )
    for profile in engine.profiles.values():
        profile.observe = lambda point, plugin, code, seconds: seen.append((point, plugin, code))
    for i in range(n_nodes):
        engine.inbox.post(Changed("Node", None, node(f"n{i}", cpu="4")))
    return engine


@pytest.mark.parametrize("remembers", [False, True])
def test_a_placed_pod_passes_every_point_once(remembers: bool) -> None:
    async def place() -> Seen:
        seen: Seen = []
        engine = engine_with(seen, remembers=remembers)
        for i in range(2):
            engine.inbox.post(Changed("Pod", None, pod(f"p{i}", requests={"cpu": "1"})))
            await engine.settle()
        return seen

    counts = Counter(asyncio.run(place()))
    for point in ("PreEnqueue", "PreFilter", "Filter", "PreScore", "Score", "Reserve", "Permit", "Bind", "PostBind"):
        assert counts[point, "", "Success"] == 2, point
    assert counts["PreBindPreFlight", "", "Skip"] == 2
    assert not any(point in ("PostFilter", "Unreserve", "PreBind") for point, _, _ in counts)
    assert counts["Bind", "DefaultBinder", "Success"] == 2


@pytest.mark.parametrize("remembers", [False, True])
def test_a_single_node_is_not_scored(remembers: bool) -> None:
    async def place() -> Seen:
        seen: Seen = []
        engine = engine_with(seen, remembers=remembers, n_nodes=1)
        for i in range(3):
            engine.inbox.post(Changed("Pod", None, pod(f"p{i}", requests={"cpu": "1"})))
            await engine.settle()
            if i == 1:
                seen.clear()  # the third finds everything in memory
        return seen

    points = {point for point, plugin, _ in asyncio.run(place()) if not plugin}
    assert {"PreFilter", "Filter"} <= points
    assert not points & {"PreScore", "Score"}


@pytest.mark.parametrize("remembers", [False, True])
def test_a_pod_that_fits_nowhere_ends_in_post_filter(remembers: bool) -> None:
    async def refuse() -> Seen:
        seen: Seen = []
        engine = engine_with(seen, remembers=remembers)
        engine.inbox.post(Changed("Pod", None, pod("whale", requests={"cpu": "99"})))
        await engine.settle()
        return seen

    counts = Counter(asyncio.run(refuse()))
    assert counts["PostFilter", "", "Unschedulable"] == 1
    assert counts["Filter", "", "Success"] == 1


def test_where_nobody_observes_no_clock_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = registry_with()
    gates = config.Gates.defaults()
    configuration = config.defaults(gates=gates, registry=catalogue(registry))
    store = small_store()
    profile = build_profile(configuration.profiles[0], registry, EngineHandle(store.objects, gates))

    def explode() -> float:
        raise AssertionError("somebody looked at the clock")

    monkeypatch.setattr("kubesched.scheduler.framework.runtime.plugin_calls.time.perf_counter", explode)
    memo = EquivalenceCache(profile)
    for _ in range(2):
        view, nodes = some_pod(store), store.snapshot()
        key = memo.find(view, nodes)
        assert key is not None and memo.recall(key, view, nodes) is not None
    profile.pre_filter(some_pod(store), store.snapshot(), CycleState())


def test_a_plugin_that_takes_too_long_is_counted_and_named_but_not_every_time(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    observe = metrics.observer("p")
    for _ in range(3):
        observe("Filter", "Sloth", "Success", 0.2)
    observe("Filter", "Quick", "Success", 0.09)
    observe("PreBind", "Patient", "Success", 60.0)
    observe("Filter", "", "Success", 0.3)
    assert metrics.counters["kubesched_plugin_failures_total"] == {("Sloth", "Filter"): 3.0}
    assert [record.message for record in caplog.records] == ["Plugin takes too long; no other pod is tried meanwhile"]
