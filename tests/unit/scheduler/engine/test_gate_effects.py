"""Each feature gate that an engine is built with, both ways: what it changes is seen, not only read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kubesched.errors import Unreachable
from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod
from kubesched.scheduler import config
from kubesched.scheduler.engine.arrivals.inbox import Changed
from kubesched.scheduler.engine.assembly import Ports, assemble, default_configuration, engine_options, registry_with
from kubesched.scheduler.engine.handle import NoWriter
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.framework import SKIP, CycleState, Plugin, Status, failed
from kubesched.scheduler.framework.runtime.building import catalogue
from kubesched.testing import node, pod
from kubesched.tools.simulation.clock import VirtualClock, run_virtually


class Server(NoWriter):
    """Says yes, and remembers what was written and when."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.bound: dict[str, tuple[str, float]] = {}
        self.patches: list[tuple[str, Mapping[str, Any]]] = []
        self.deleted: list[tuple[str, float]] = []
        self.deletion_takes = 0.0
        self.loses_conditions = False

    async def bind(self, pod: Any, node_name: str) -> None:
        self.bound[pod.name] = (node_name, self.clock.now())

    async def patch_pod_status(self, pod: Any, status: Mapping[str, Any]) -> None:
        if self.loses_conditions and "conditions" in status:
            raise Unreachable("connection refused")
        self.patches.append((pod.name, status))

    async def delete_pod(self, pod: Any) -> None:
        await self.clock.sleep(self.deletion_takes)
        self.deleted.append((pod.name, self.clock.now()))


class Announcing(Plugin):
    """Has something to do before binding."""

    asked = 0

    def pre_bind_pre_flight(self, pod: Any, node_name: str, state: CycleState) -> Status | None:
        type(self).asked += 1
        return None if pod.name == "slow" else SKIP

    async def pre_bind(self, pod: Any, node_name: str, state: CycleState) -> Status | None:
        return None


class Breaking(Announcing):
    """Announces what then comes to nothing."""

    async def pre_bind(self, pod: Any, node_name: str, state: CycleState) -> Status | None:
        return failed("broken")


def gates_of(text: str, minor: int = 36) -> config.Gates:
    return config.Gates.parse(text, emulated=(1, minor))


def run(gates: str, story: Any, *plugins: type[Plugin], minor: int = 36) -> Any:
    """Let a story happen to an engine with these gates, in virtual time."""

    async def play() -> Any:
        clock = VirtualClock(asyncio.get_running_loop())
        server = Server(clock)
        registry = registry_with(plugins)
        given = gates_of(gates, minor)
        text = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": cls.name} for cls in plugins]}}}],
        }
        configuration = config.load(json.dumps(text), gates=given, registry=catalogue(registry))
        engine = assemble(configuration, given, Ports(clock=clock, writer=server), registry=registry)
        running = asyncio.create_task(engine.run())
        found = await story(engine, server, clock)
        engine.stop()
        await running
        return found

    return run_virtually(play())


def post(engine: Engine, kind: str, obj: Any, old: Any = None) -> None:
    engine.inbox.post(Changed(kind, old, obj))


@pytest.mark.parametrize(("gates", "waits"), [("", False), ("SchedulerPopFromBackoffQ=false", True)])
def test_a_pod_in_backoff_is_popped_when_nobody_else_is_there(gates: str, waits: bool) -> None:
    async def story(engine: Engine, server: Server, clock: VirtualClock) -> float:
        post(engine, "Node", node("small", cpu="1"))
        post(engine, "Pod", pod("p", requests={"cpu": "2"}))
        await clock.sleep(0.1)
        began = clock.now()
        post(engine, "Node", node("large", cpu="8"))
        await clock.sleep(30)
        return server.bound["p"][1] - began

    assert (run(gates, story) > 0.5) is waits


@pytest.mark.parametrize(("gates", "attempts"), [("", 1), ("SchedulerQueueingHints=false", 2)])
def test_events_are_looked_at_closer_or_wake_unasked(gates: str, attempts: int) -> None:
    async def story(engine: Engine, server: Server, clock: VirtualClock) -> int:
        other = pod("other", on="n")
        post(engine, "Node", node("n"))
        post(engine, "Pod", pod("holds-the-port", host_ports=[80], on="n"))
        post(engine, "Pod", other)
        post(engine, "Pod", pod("p", host_ports=[80]))
        await clock.sleep(5)
        post(engine, "Pod", None, other)
        await clock.sleep(5)
        return engine.queue.scheduling_cycle

    assert run(gates, story, minor=33) == attempts


@pytest.mark.parametrize(("gates", "is_placed"), [("", False), ("InPlacePodVerticalScaling=false", True)])
def test_a_pod_under_resize_counts_by_what_is_in_force_or_by_its_spec(gates: str, is_placed: bool) -> None:
    async def story(engine: Engine, server: Server, clock: VirtualClock) -> bool:
        raw = json.loads(codec.encode(pod("shrinking", requests={"cpu": "1"}, on="n")))
        name = raw["spec"]["containers"][0]["name"]
        raw["status"]["containerStatuses"] = [
            {"name": name, "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "3"}}
        ]
        post(engine, "Node", node("n", cpu="4"))
        post(engine, "Pod", codec.decode(json.dumps({"apiVersion": "v1", "kind": "Pod", **raw}).encode()))
        post(engine, "Pod", pod("p", requests={"cpu": "2"}))
        await clock.sleep(5)
        return "p" in server.bound

    assert run(gates, story, minor=34) is is_placed


@pytest.mark.parametrize(("gates", "in_background"), [("", True), ("SchedulerAsyncPreemption=false", False)])
def test_victims_are_evicted_beside_the_attempt_or_within_it(gates: str, in_background: bool) -> None:
    async def story(engine: Engine, server: Server, clock: VirtualClock) -> tuple[bool, list[str]]:
        server.deletion_takes = 5.0
        post(engine, "Node", node("n", cpu="2"))
        post(engine, "Pod", pod("victim", requests={"cpu": "2"}, on="n", priority=0))
        post(engine, "Pod", pod("preemptor", requests={"cpu": "2"}, priority=100))
        await clock.sleep(1.0)
        failed_at_once = any(name == "preemptor" for name, _ in server.patches)
        await clock.sleep(10.0)
        return failed_at_once, [name for name, _ in server.deleted]

    failed_at_once, deleted = run(gates, story)
    assert deleted == ["victim"]
    assert failed_at_once is in_background


@pytest.mark.parametrize(("gates", "announced"), [("", True), ("NominatedNodeNameForExpectation=false", False)])
def test_the_expected_node_is_written_before_slow_work(gates: str, announced: bool) -> None:
    async def story(engine: Engine, server: Server, clock: VirtualClock) -> tuple[list[Any], int, set[str]]:
        Announcing.asked = 0
        post(engine, "Node", node("n"))
        for name in ("quick", "slow"):
            post(engine, "Pod", pod(name))
        await clock.sleep(1.0)
        return server.patches, Announcing.asked, set(server.bound)

    patches, asked, bound = run(gates, story, Announcing)
    assert bound == {"quick", "slow"}
    assert patches == ([("slow", {"nominatedNodeName": "n"})] if announced else [])
    assert asked == (2 if announced else 0)


def test_an_expected_node_is_taken_back_before_any_watch_has_told_of_it() -> None:
    async def story(engine: Engine, server: Server, clock: VirtualClock) -> list[Any]:
        post(engine, "Node", node("n"))
        post(engine, "Pod", pod("slow"))
        await clock.sleep(0.5)
        return [patch for _, patch in server.patches]

    announced, taken_back = run("", story, Breaking)
    assert announced == {"nominatedNodeName": "n"}
    assert taken_back["nominatedNodeName"] is None


def test_an_expected_node_that_could_not_be_taken_back_is_taken_back_by_the_next_failure() -> None:
    async def story(engine: Engine, server: Server, clock: VirtualClock) -> list[Any]:
        server.loses_conditions = True
        post(engine, "Node", node("n", cpu="2"))
        post(engine, "Pod", pod("slow", requests={"cpu": "2"}))
        await clock.sleep(0.5)
        post(engine, "Pod", pod("takes-the-room", requests={"cpu": "1"}, on="n"))
        server.loses_conditions = False
        await clock.sleep(30)
        return [patch for _, patch in server.patches]

    announced, refused = run("", story, Breaking)
    assert announced == {"nominatedNodeName": "n"}
    assert refused["conditions"][0]["reason"] == "Unschedulable"
    assert refused["nominatedNodeName"] is None


@pytest.mark.parametrize(
    ("gates", "fits"), [("", False), ("PodLevelResources=false,InPlacePodLevelResourcesVerticalScaling=false", True)]
)
def test_what_a_pod_asks_for_as_a_whole_counts(gates: str, fits: bool) -> None:
    whole = codec.convert(
        {
            "metadata": {"name": "p", "namespace": "default", "uid": "u"},
            "spec": {
                "schedulerName": "default-scheduler",
                "resources": {"requests": {"cpu": "3"}},
                "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
            },
        },
        Pod,
    )

    async def story(engine: Engine, server: Server, clock: VirtualClock) -> bool:
        post(engine, "Node", node("n", cpu="2"))
        post(engine, "Pod", whole)
        await clock.sleep(1.0)
        return "p" in server.bound

    assert run(gates, story) is fits


@pytest.mark.parametrize(
    ("gates", "emulated", "remembers"),
    [
        ("", (1, 36), True),
        ("OpportunisticBatching=false", (1, 36), False),
        ("AllBeta=false", (1, 36), False),
        ("", (1, 34), True),
    ],
)
def test_answers_are_remembered_unless_batching_is_switched_off(gates: str, emulated: Any, remembers: bool) -> None:
    given = config.Gates.parse(gates, emulated=emulated)
    configuration = default_configuration(given)
    assert engine_options(configuration, given).remembers is remembers
    assert bool(assemble(configuration, given).attempts.caches) is remembers


def test_without_memory_the_decisions_are_the_same() -> None:
    async def story(engine: Engine, server: Server, clock: VirtualClock) -> dict[str, str]:
        for i in range(5):
            post(engine, "Node", node(f"n{i}", cpu=str(2 + i)))
        for i in range(12):
            post(engine, "Pod", pod(f"p{i}", requests={"cpu": "900m"}))
        await clock.sleep(1.0)
        return {name: where for name, (where, _) in server.bound.items()}

    assert run("", story) == run("OpportunisticBatching=false", story)


@pytest.mark.parametrize(("seconds", "expires"), [(None, False), (30.0, True)])
def test_a_booking_that_is_never_confirmed_expires_where_that_is_asked_for(seconds: float | None, expires: bool) -> None:
    async def play() -> bool:
        clock = VirtualClock(asyncio.get_running_loop())
        server, gates = Server(clock), config.Gates.defaults()
        configuration = default_configuration(gates)
        options = replace(engine_options(configuration, gates), assumed_ttl_seconds=seconds)
        engine = assemble(configuration, gates, Ports(clock=clock, writer=server), options=options)
        running = asyncio.create_task(engine.run())
        post(engine, "Node", node("n", cpu="2"))
        post(engine, "Pod", pod("first", requests={"cpu": "2"}))
        await clock.sleep(1.0)
        post(engine, "Pod", pod("second", requests={"cpu": "2"}))
        await clock.sleep(20.0)
        assert "second" not in server.bound  # the booking stands, though the API never showed the pod on its node
        await clock.sleep(40.0)
        engine.stop()
        await running
        return "second" in server.bound

    assert run_virtually(play()) is expires
