"""The page's JSON: columns and versions, what waits and why, one pod, one node; and what the files may do."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient
from web_fakes import AuthorizationFlags, client_for, new_parts

from kubesched.api import codec
from kubesched.api.pod import PodCondition
from kubesched.cluster import PodView, Store
from kubesched.config import Gates
from kubesched.engine.assembly import Ports, assemble, default_configuration
from kubesched.engine.decision_record import PLACED, UNSCHEDULABLE, DecisionRecord
from kubesched.engine.decision_recorder import DecisionRecorder
from kubesched.engine.handle import NoWriter
from kubesched.engine.inbox import Changed
from kubesched.engine.loop import Engine
from kubesched.telemetry import Metrics
from kubesched.testing import FakeClock
from kubesched.testing.builders import node, pod, taint
from kubesched.web import EnginePageData, NotReady, Throughput, Versions, build_app, page_app, page_routes
from kubesched.web.authorization import Authorizer
from kubesched.web.page import FILES

Client = TestClient[web.Request, web.Application]
GIB = 1024


class Scene(NoWriter):
    """An engine with an API server of two sentences, its decision log, and a page over both."""

    def __init__(self) -> None:
        self.throughput = Throughput(Metrics())
        gates = Gates.defaults()
        self.recorder = DecisionRecorder(100)
        ports = Ports(writer=self, observer=self.throughput, decisions=self.recorder)
        self.engine = assemble(default_configuration(gates), gates, ports)
        self.page_data = EnginePageData(lambda: self.engine, self.throughput)

    @property
    def store(self) -> Store:
        return self.engine.store

    def come(self, kind: str, *objects: Any) -> None:
        for each in objects:
            self.engine.inbox.post(Changed(kind, None, each))

    async def settle(self) -> None:
        await self.engine.settle()

    async def bind(self, pod: PodView, node_name: str) -> None:
        self.engine.inbox.post(Changed("Pod", pod.on("").pod, pod.on(node_name).pod))

    async def patch_pod_status(self, pod: PodView, status: Mapping[str, Any]) -> None:
        conditions = tuple(codec.convert(each, PodCondition) for each in status["conditions"])
        told = msgspec.structs.replace(pod.pod, status=msgspec.structs.replace(pod.pod.status, conditions=conditions))
        self.engine.inbox.post(Changed("Pod", pod.pod, told))


@pytest.fixture
async def scene() -> Scene:
    scene = Scene()
    scene.come(
        "Node",
        node("a-1", cpu="4", zone="a"),
        node("a-2", cpu="4", zone="a", cordoned=True),
        node("b-1", cpu="8", zone="b", taints=[taint("gpu")], offers={"example.com/gpu": "2"}),
        node("loose"),
    )
    scene.come("Pod", pod("small", requests={"cpu": "500m", "memory": "1Gi"}), pod("whale", requests={"cpu": "99"}))
    await scene.settle()
    return scene


@pytest.fixture
async def client(scene: Scene) -> AsyncIterator[Client]:
    running = asyncio.create_task(scene.engine.run())
    async with client_for(page_app(scene.page_data)) as client:
        yield client
    scene.engine.stop()
    await running


def column(state: Mapping[str, Any], resource: str) -> dict[str, int]:
    """Return what is used of a resource by the names of the nodes."""
    names = [each["name"] for each in state["nodes"]["resources"]]
    return dict(zip(state["nodes"]["names"], state["usage"][names.index(resource)], strict=True))


async def get(client: Client, path: str, status: int = 200) -> Any:
    answer = await client.get(path)
    assert answer.status == status, await answer.text()
    return await answer.json()


async def test_nodes_go_out_as_columns(client: Client) -> None:
    state = await get(client, "/ui/api/state")
    nodes = state["nodes"]
    assert nodes["names"] == ["a-1", "a-2", "b-1", "loose"]
    assert [nodes["zones"][zone] if zone >= 0 else "" for zone in nodes["zone"]] == ["a", "a", "b", ""]
    assert nodes["cordoned"] == [1]
    assert [nodes["taints"][each] for each in nodes["taint"]] == [[], [], ["gpu:NoSchedule"], []]
    by_name = {each["name"]: each for each in nodes["resources"]}
    assert list(by_name) == ["cpu", "memory", "example.com/gpu", "pods"]
    assert (by_name["cpu"]["unit"], by_name["cpu"]["allocatable"]) == ("m", [4000, 4000, 8000, 4000])
    assert (by_name["memory"]["unit"], by_name["memory"]["allocatable"][0]) == ("MiB", 32 * GIB)
    assert by_name["example.com/gpu"]["allocatable"] == [0, 0, 2, 0]
    assert sum(column(state, "cpu").values()) == 500
    assert sum(column(state, "memory").values()) == GIB
    assert sum(column(state, "pods").values()) == 1


async def test_who_has_the_columns_is_spared_them(scene: Scene, client: Client) -> None:
    first = await get(client, "/ui/api/state")
    versions = first["versions"]
    again = await get(client, f"/ui/api/state?nodes={versions['nodes']}&usage={versions['usage']}")
    assert "nodes" not in again and "usage" not in again
    scene.come("Pod", pod("second", requests={"cpu": "250m"}))
    await until(lambda: scene.throughput.n_bound == 2)
    used = scene.page_data.state(Versions(**versions))
    assert "nodes" not in used and "usage" in used
    scene.engine.inbox.post(Changed("Node", node("a-1", cpu="4", zone="a"), node("a-1", cpu="4", zone="a", cordoned=True)))
    await until(lambda: bool(scene.store.snapshot().is_unschedulable[0]))
    cordoned = await get(client, f"/ui/api/state?nodes={versions['nodes']}&usage={used['versions']['usage']}")
    assert cordoned["nodes"]["cordoned"] == [0, 1]
    assert "usage" in cordoned  # whoever gets nodes gets their use, for the rows may have moved


async def test_usage_follows_rows_that_move(scene: Scene, client: Client) -> None:
    before = await get(client, "/ui/api/state")
    home = next(name for name, used in column(before, "cpu").items() if used)
    scene.engine.inbox.post(Changed("Node", node("a-2", zone="a", cordoned=True), None))
    await until(lambda: len(scene.store.nodes) == 3)
    after = await get(client, f"/ui/api/state?nodes={before['versions']['nodes']}&usage={before['versions']['usage']}")
    assert column(after, "cpu") == {name: 500 if name == home else 0 for name in after["nodes"]["names"]}
    assert "a-2" not in after["nodes"]["names"]


async def test_the_queue_and_what_its_pods_were_told(scene: Scene) -> None:
    held = pod("held", gates=["wait/for-me"])
    scene.come("Pod", held, *(pod(f"whale-{i}", requests={"cpu": "99"}) for i in range(20)))
    await scene.settle()
    state = scene.page_data.state(Versions())
    assert state["queue"] == {"active": 0, "backoff": 0, "unschedulable": 21, "gated": 1, "inFlight": 0}
    groups = {group["message"]: group for group in state["pending"]["groups"]}
    refused = (
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient cpu. "
        "no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
    )
    assert set(groups) == {refused, "gated by SchedulingGates"}
    whales = groups[refused]
    assert (whales["count"], len(whales["pods"])) == (21, 8)
    assert whales["plugins"] == ["NodeResourcesFit", "NodeUnschedulable", "TaintToleration"]
    assert whales["pods"][0] | {"since": 0} == {"pod": "default/whale", "place": "unschedulable", "attempts": 1, "since": 0}
    assert groups["gated by SchedulingGates"]["pods"][0]["place"] == "gated"


async def test_pods_held_back_are_found_behind_thousands_that_are_active(scene: Scene) -> None:
    scene.come("Pod", *(pod(f"next-{i}") for i in range(3000)))
    scene.engine.take_in()
    state = scene.page_data.state(Versions())
    assert state["queue"]["active"] == 3000
    assert [(group["count"], group["pods"][0]["pod"]) for group in state["pending"]["groups"]] == [(1, "default/whale")]
    assert state["pending"]["notLookedAt"] == 0


async def test_only_so_many_pods_are_looked_at(scene: Scene) -> None:
    scene.come("Pod", *(pod(f"held-{i}", gates=["not/yet"]) for i in range(2500)))
    scene.engine.take_in()
    pending = scene.page_data.state(Versions())["pending"]
    assert sum(group["count"] for group in pending["groups"]) == 2000
    assert pending["notLookedAt"] == 501


async def test_decisions_are_told_newest_first(scene: Scene) -> None:
    decisions = scene.page_data.state(Versions())["decisions"]
    assert {each["pod"]: bool(each["node"]) for each in decisions} == {"default/small": True, "default/whale": False}
    assert next(each["message"] for each in decisions if not each["node"]).startswith("0/4 nodes are available: ")


async def test_a_pending_pod_is_explained(client: Client) -> None:
    told = await get(client, "/ui/api/pods/default/whale")
    assert (told["node"], told["place"], told["attempts"], told["requests"]) == ("", "unschedulable", 1, {"cpu": "99"})
    assert (told["feasibleCount"], told["nodeCount"], told["ranking"]) == (0, 4, [])
    reasons = {each["reason"]: (each["plugin"], each["count"], each["examples"]) for each in told["refusals"]}
    assert reasons == {
        "Insufficient cpu": ("NodeResourcesFit", 2, ["a-1", "loose"]),
        "node(s) were unschedulable": ("NodeUnschedulable", 1, ["a-2"]),
        "node(s) had untolerated taint(s)": ("TaintToleration", 1, ["b-1"]),
    }
    assert told["advice"][-1].startswith("none of the 2 nodes short of resources could hold it even empty")
    assert [each["text"] for each in told["advised"]] == told["advice"]
    assert told["advised"][-1]["kind"] == "never"


async def test_a_placed_pod_is_explained_by_every_score(scene: Scene, client: Client) -> None:
    told = await get(client, "/ui/api/pods/default/small")
    assert told["node"] in ("a-1", "loose")
    assert {each["node"] for each in told["ranking"]} == {"a-1", "loose"}
    for each in told["ranking"]:
        assert each["total"] == sum(each["byPlugin"].values())
    assert {"NodeResourcesFit", "NodeResourcesBalancedAllocation", "TaintToleration"} <= set(told["ranking"][0]["byPlugin"])
    assert scene.store.n_pods == 1, "looking changes nothing"


async def test_explaining_is_not_counted_as_an_attempt(scene: Scene, client: Client) -> None:
    seen: list[str] = []
    for profile in scene.engine.profiles.values():
        profile.observe = lambda point, *_: seen.append(point)
    await get(client, "/ui/api/pods/default/whale")
    assert not seen
    assert all(profile.observe is not None for profile in scene.engine.profiles.values())


async def test_a_node_and_its_pods(scene: Scene, client: Client) -> None:
    told = await get(client, f"/ui/api/nodes/{next(iter(scene.store.pods())).node_name}")
    assert told["pods"] == [{"pod": "default/small", "priority": 0, "requests": {"cpu": "500m", "memory": "1Gi"}}]
    assert {each["name"]: (each["requested"], each["allocatable"]) for each in told["resources"]}["cpu"] == ("500m", "4")
    tainted = await get(client, "/ui/api/nodes/b-1")
    assert (tainted["taints"], tainted["isCordoned"], tainted["labels"]["topology.kubernetes.io/zone"]) == (
        ["gpu:NoSchedule"],
        False,
        "b",
    )


UNKNOWN = [
    ("/ui/api/pods/default/nobody", "pod default/nobody is neither queued nor placed here"),
    ("/ui/api/nodes/nowhere", "node nowhere is not known here"),
    (f"/ui/api/nodes/{'x' * 300}", f"node {'x' * 300} is not known here"),
]


@pytest.mark.parametrize(("path", "error"), UNKNOWN)
async def test_what_is_not_there_is_said_to_be(client: Client, path: str, error: str) -> None:
    assert await get(client, path, 404) == {"error": error}


async def test_nothing_can_be_changed(client: Client) -> None:
    for path in ("/ui/", "/ui/api/state", "/ui/api/pods/default/small"):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            answer = await client.request(method, path)
            assert answer.status == 405, (method, path)


async def test_before_there_is_an_engine_the_page_is_asked_to_wait() -> None:
    page_data = EnginePageData(lambda: None, Throughput(Metrics()))
    with pytest.raises(NotReady):
        page_data.state(Versions())
    async with client_for(page_app(page_data)) as client:
        assert await get(client, "/ui/api/state", 503) == {"error": "the scheduler is starting"}
        assert (await client.get("/ui/")).status == 200


async def test_files_need_no_other_host(client: Client) -> None:
    for name, kind in FILES.items():
        answer = await client.get(f"/ui/{name}")
        text = await answer.text()
        assert answer.content_type == kind
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        outside = [url for url in re.findall(r"(?:https?:)?//[\w.]+\.\w+[^\s'\"]*", text) if "www.w3.org" not in url]
        assert not outside, name
        assert not re.search(r"<script(?![^>]*\bsrc=)|\bon\w+=\"|\bstyle=\"", text), "its own policy would block it"


async def test_the_root_leads_to_the_page(client: Client) -> None:
    for path in ("/", "/ui"):
        answer = await client.get(path, allow_redirects=False)
        assert (answer.status, answer.headers["Location"]) == (302, "/ui/")


async def test_on_the_secure_port_it_is_behind_the_doors(scene: Scene) -> None:
    routes = page_routes(scene.page_data)
    async with client_for(build_app(new_parts(extra_routes=routes))) as open_to_all:
        assert (await open_to_all.get("/ui/")).status == 200
    only_health = Authorizer(AuthorizationFlags())
    async with client_for(build_app(new_parts(extra_routes=routes, authorizer=only_health))) as closed:
        for path in ("/ui/", "/ui/page.js", "/ui/api/state"):
            assert (await closed.get(path)).status == 401


async def test_five_thousand_nodes_cost_milliseconds(scene: Scene) -> None:
    scene.come("Node", *(node(f"n-{i}", zone=f"zone-{i % 10}") for i in range(5000)))
    scene.engine.take_in()
    state = scene.page_data.state(Versions())
    assert len(bytes(state["nodes"])) < 400_000
    assert len(bytes(state["usage"])) < 60_000
    assert scene.page_data.state(Versions())["usage"] is state["usage"], "encoded once for all who look"


# --- the decision log ----------------------------------------------------------------------------------------------------


def view(name: str) -> Any:
    return Store().view(pod(name))


def test_pods_are_counted_by_the_second() -> None:
    clock = FakeClock(1000.5)
    told = Throughput(Metrics(), clock.now)
    for seconds, n in ((0, 3), (1, 5), (4, 2)):
        clock.time = 1000.5 + seconds
        for i in range(n):
            told.pod_bound(view(f"p{i}"), "n", 1, 0.1, False)
    assert told.per_second()[-5:] == [3, 5, 0, 0, 2]
    assert (told.n_bound, len(told.per_second())) == (10, 60)
    clock.time += 1
    assert told.pods_per_second() == 2.0  # ten in the last five whole seconds
    clock.time += 1000
    assert sum(told.per_second()) == 0
    clock.time -= 500  # a clock that was set back
    told.pod_bound(view("late"), "n", 1, 0.1, False)
    assert sum(told.per_second()) == 1


def test_what_is_shown_is_bounded_and_repetitions_are_one_line() -> None:
    scene = Scene()
    ring = scene.recorder.ring
    for message in (*["0/1 nodes are available"] * 5, "0/2 nodes are available"):
        ring.append(DecisionRecord("default/whale", "u", "s", outcome=UNSCHEDULABLE, message=message))
    ring.append(DecisionRecord("default/on-its-way", "u", "s", outcome=PLACED, node="n"))

    def shown() -> list[tuple[str, int]]:
        return [(each["message"], each["attempts"]) for each in scene.page_data.state(Versions())["decisions"]]

    assert shown() == [("0/2 nodes are available", 1), ("0/1 nodes are available", 5)]
    for i in range(90):
        ring.append(DecisionRecord(f"default/p{i}", "u", "s", outcome=PLACED, node="n", bound_seconds=0.1))
    assert len(shown()) == 60


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    pytest.fail("waited too long")


def test_engine_is_what_the_showing_asks_for() -> None:
    engines: list[Engine | None] = [None]
    scene = Scene()
    page_data = EnginePageData(lambda: engines[0], scene.throughput)
    engines[0] = scene.engine
    assert page_data.state(Versions())["nodeCount"] == 0


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}], ids=["rebound", "another site"]
)
async def test_another_site_reads_nothing(client: Client, headers: dict[str, str]) -> None:
    for path in ("/", "/ui/", "/ui/page.js", "/ui/api/state"):
        answer = await client.get(path, headers=headers)
        assert answer.status == 403
        assert "\n" not in (await answer.text()).rstrip("\n")
