"""The page's JSON: columns and versions, what waits and why, one pod, one node; and what the files may do."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from importlib import resources
from typing import Any

import aiohttp
import jsonschema
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient
from web_fakes import authorization_flags, client_for, new_parts

from kubesched.kube.api import codec
from kubesched.kube.api.meta import OwnerReference
from kubesched.kube.api.pod import PodCondition
from kubesched.scheduler.cluster import PodView, Store
from kubesched.scheduler.config import Gates
from kubesched.scheduler.engine.arrivals.inbox import Changed
from kubesched.scheduler.engine.assembly import Ports, assemble, default_configuration
from kubesched.scheduler.engine.handle import NoWriter
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.engine.records.decision_record import PLACED, UNSCHEDULABLE, DecisionRecord
from kubesched.scheduler.engine.records.decision_recorder import DecisionRecorder
from kubesched.scheduler.framework.preemption.preempting import Preemption
from kubesched.server.web import (
    EnginePageData,
    NotReady,
    Throughput,
    Versions,
    build_app,
    page_app,
    page_routes,
    serve_insecurely,
)
from kubesched.server.web.access.authorization import Authorizer
from kubesched.server.web.page import live
from kubesched.server.web.page.page import open_paths, page_files
from kubesched.server.web.page.profiles_data import configuration_of
from kubesched.telemetry import Metrics
from kubesched.testing import FakeClock
from kubesched.testing.builders import node, pod, taint

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
    assert (by_name["memory"]["unit"], by_name["memory"]["allocatable"][0]) == ("Mi", 32 * GIB)
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
    told = await scene.page_data.queue("", "")
    assert told["queue"] == {"active": 0, "backoff": 0, "unschedulable": 21, "gated": 1, "inFlight": 0, "waiting": 22}
    refused = (
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient cpu. "
        "preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
    )
    whale, gated = told["parts"]["unschedulable"]["pods"][0], told["parts"]["gated"]["pods"][0]
    assert (whale["pod"], whale["attempts"], whale["message"]) == ("default/whale", 1, refused)
    assert whale["plugins"] == ["NodeResourcesFit", "NodeUnschedulable", "TaintToleration"]
    assert (gated["gates"], gated["gatedBy"], gated["message"]) == (
        ["wait/for-me"],
        "SchedulingGates",
        "gated by SchedulingGates: wait/for-me",
    )


async def test_counts_add_up_and_are_those_of_the_api_server(scene: Scene) -> None:
    scene.come("Pod", *(pod(f"next-{i}", requests={"cpu": "100m"}) for i in range(10)), pod("held", gates=["not/yet"]))
    scene.engine.take_in()
    scene.engine.step()
    state = scene.page_data.state(Versions())
    queue = state["queue"]
    assert queue["waiting"] == 12 == scene.engine.intake.n_pending
    assert sum(n for part, n in queue.items() if part != "waiting") == 12
    assert state["podCount"] == 1, "one that is being bound is not on a node yet"
    await scene.settle()
    state = scene.page_data.state(Versions())
    assert (state["podCount"], state["queue"]["waiting"], state["queue"]["inFlight"]) == (11, 2, 0)


async def test_active_pods_are_shown_while_thousands_wait(scene: Scene) -> None:
    scene.come("Pod", *(pod(f"held-{i}", gates=["not/yet"]) for i in range(5000)))
    scene.come("Pod", *(pod(f"next-{i}") for i in range(3)))
    scene.engine.take_in()
    parts = (await scene.page_data.queue("", ""))["parts"]
    assert [each["pod"] for each in parts["active"]["pods"]] == ["default/next-0", "default/next-1", "default/next-2"]
    assert (parts["gated"]["matching"], len(parts["gated"]["pods"])) == (5000, 200)
    assert [each["pod"] for each in parts["unschedulable"]["pods"]] == ["default/whale"]


SEARCHES = [
    ("a name", "whale", "", ["default/whale"]),
    ("a label", "app=heavy", "", ["default/heavy"]),
    ("a reason and a name", "insufficient whale", "", ["default/whale"]),
    ("a plugin", "TaintToleration heavy", "", ["default/heavy"]),
    ("a gate", "wait/for-me", "", ["default/held"]),
    ("nothing of that part", "whale", "gated", []),
    ("nobody", "jonah", "", []),
]


@pytest.mark.parametrize(("search", "part", "found"), [case[1:] for case in SEARCHES], ids=[case[0] for case in SEARCHES])
async def test_the_queue_is_searched(scene: Scene, search: str, part: str, found: list[str]) -> None:
    scene.come("Pod", pod("held", gates=["wait/for-me"]), pod("heavy", labels={"app": "heavy"}, requests={"cpu": "50"}))
    await scene.settle()
    parts = (await scene.page_data.queue(part, search))["parts"]
    assert [each["pod"] for told in parts.values() for each in told["pods"]] == found


async def test_a_pause_says_when_it_ends(scene: Scene) -> None:
    scene.come("Pod", pod("late", requests={"cpu": "77"}))
    await scene.settle()
    scene.engine.inbox.post(Changed("Node", None, node("new", cpu="4")))
    scene.engine.take_in()
    pausing = (await scene.page_data.queue("backoff", ""))["parts"]["backoff"]["pods"]
    late = next(each for each in pausing if each["pod"] == "default/late")
    assert 0 <= late["backoffUntil"] - late["since"] <= 2


async def test_pods_are_grouped_by_what_would_help_them(scene: Scene, client: Client) -> None:
    """Both are told the same words, but one could tolerate a taint, and no node is large enough for the other."""
    scene.come("Pod", pod("held", gates=["wait/for-me"]), pod("held-too", gates=["other/gate"]))
    scene.come("Pod", pod("whale-2", requests={"cpu": "98"}), pod("large", requests={"cpu": "7"}))
    await until(lambda: scene.engine.queue.n_unschedulable == 3)
    told = await get(client, "/ui/api/pending")
    groups = {tuple(each["pod"] for each in group["pods"]): group for group in told["groups"]}
    assert set(groups) == {("default/whale", "default/whale-2"), ("default/large",), ("default/held",), ("default/held-too",)}
    assert groups[("default/held",)]["why"].endswith("wait/for-me]")
    assert groups[("default/large",)]["advice"][0]["kind"] == "tolerate"
    assert "kubectl patch" in groups[("default/large",)]["advice"][0]["patches"][0]["command"]
    assert not groups[("default/whale", "default/whale-2")]["isExact"], "they are short of other amounts"
    assert (told["pendingCount"], told["notLookedAt"]) == (5, 0)


async def test_many_kinds_of_pods_are_not_all_explained_at_once(scene: Scene, client: Client) -> None:
    scene.come("Pod", *(pod(f"huge-{i}", requests={"cpu": str(100 + i)}) for i in range(60)))
    await until(lambda: scene.engine.queue.n_unschedulable == 61)
    first, second = await get(client, "/ui/api/pending"), await get(client, "/ui/api/pending")
    assert (first["pendingCount"], first["notLookedAt"]) == (24, 37)
    assert (second["pendingCount"], second["notLookedAt"]) == (48, 13), "what was explained is kept for some seconds"


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
    assert told["advice"][-1]["text"].startswith("none of the 2 nodes short of resources could hold it even empty")
    assert told["advice"][-1]["kind"] == "never"


async def test_a_placed_pod_is_explained_by_every_score(scene: Scene, client: Client) -> None:
    told = await get(client, "/ui/api/pods/default/small")
    assert told["node"] in ("a-1", "loose")
    assert {each["node"] for each in told["ranking"]} == {"a-1", "loose"}
    for each in told["ranking"]:
        assert each["total"] == sum(each["byPlugin"].values())
    assert {"NodeResourcesFit", "NodeResourcesBalancedAllocation", "TaintToleration"} <= set(told["ranking"][0]["byPlugin"])
    assert scene.store.n_pods == 1, "looking changes nothing"


async def test_how_every_node_looks_to_a_pod(client: Client) -> None:
    state = await get(client, "/ui/api/state")
    told = await get(client, "/ui/api/pods/default/small/nodes")
    assert told["nodesVersion"] == state["versions"]["nodes"]
    seen = {
        name: told["plugins"][by] if by >= 0 else ""
        for name, by in zip(state["nodes"]["names"], told["refusedBy"], strict=True)
    }
    assert seen == {"a-1": "", "a-2": "NodeUnschedulable", "b-1": "TaintToleration", "loose": ""}
    assert [total is None for total in told["totals"]] == [False, True, True, False]
    none = await get(client, "/ui/api/pods/default/whale/nodes")
    assert -1 not in none["refusedBy"] and none["totals"] is None


async def test_why_not_this_node(client: Client) -> None:
    told = await get(client, "/ui/api/pods/default/whale/nodes/b-1")
    assert not told["isFeasible"]
    assert {each["plugin"]: each["reasons"] for each in told["refusals"]} == {
        "TaintToleration": ["node(s) had untolerated taint(s)"],
        "NodeResourcesFit": ["Insufficient cpu"],
    }, "all who refuse it, and not only the first"
    fits = await get(client, "/ui/api/pods/default/small/nodes/a-1")
    assert fits["isFeasible"] and fits["best"]["total"] >= fits["score"]["total"] == sum(fits["score"]["byPlugin"].values())


async def test_decisions_on_record_are_told_as_decided(scene: Scene, client: Client) -> None:
    (made,) = (await get(client, "/ui/api/pods/default/small/decisions"))["decisions"]
    assert (made["outcome"], made["feasibleCount"], made["nodeCount"]) == ("placed", 2, 4)
    assert made["node"] in made["sentence"] and made["ranking"][0]["node"] == made["node"]
    scene.engine.inbox.post(Changed("Pod", next(iter(scene.store.pods())).pod, None))
    await until(lambda: scene.store.n_pods == 0)
    gone = await get(client, "/ui/api/pods/default/small/decisions")
    assert gone["decisions"] == [made], "also of a pod that is gone"
    nobody = await get(client, "/ui/api/pods/default/nobody/decisions")
    assert (nobody["decisions"], nobody["isRecorded"]) == ([], True)


async def test_labels_come_as_columns(client: Client) -> None:
    told = await get(client, "/ui/api/labels?key=topology.kubernetes.io/zone")
    assert [told["values"][code] if code >= 0 else "" for code in told["codes"]] == ["a", "a", "b", ""]
    assert (await get(client, "/ui/api/labels?key=nobody/has-it"))["codes"] == [-1] * 4


async def test_the_configuration_in_use(client: Client) -> None:
    (profile,) = (await get(client, "/ui/api/configuration"))["profiles"]
    points = {each["point"]: [plugin["name"] for plugin in each["plugins"]] for each in profile["points"]}
    assert list(points)[:2] == ["PreEnqueue", "QueueSort"] and points["QueueSort"] == ["PrioritySort"]
    assert points["PodGroupPostFilter"] == ["DynamicResources", "DefaultPreemption"], "a point of 1.37"
    scorers = next(each["plugins"] for each in profile["points"] if each["point"] == "Score")
    assert {each["name"]: each["weight"] for each in scorers}["TaintToleration"] == 3
    plugins = {each["name"]: each for each in profile["plugins"]}
    assert plugins["NodePorts"]["purpose"] == "two pods that want the same host port cannot share a node."
    assert plugins["NodeResourcesFit"]["args"]["scoringStrategy"]["type"] == "LeastAllocated"


async def test_figures_of_the_last_hours(scene: Scene, client: Client) -> None:
    scene.throughput.history.step(scene.engine)
    first = await get(client, "/ui/api/history")
    assert len(first["at"]) == 1 and first["bound"][0] > 0 and first["unschedulable"] == [1]
    assert first["p50"][0] == first["p99"][0] >= 0
    assert first["cpu"] == [pytest.approx(500 / 20_000)]
    scene.throughput.preempted(Preemption("n1", (None,) * 3), "pod")  # type: ignore[arg-type]
    scene.throughput.history.step(scene.engine)
    more = await get(client, f"/ui/api/history?after={first['at'][0]}")
    assert (more["evicted"], more["p50"], more["bound"]) == ([3], [None], [0.0])
    assert len((await get(client, "/ui/api/history?after=nonsense"))["at"]) == 2


async def test_what_changed_about_nodes_and_when(scene: Scene, client: Client) -> None:
    came = await get(client, "/ui/api/node-changes")
    assert [(each["text"], each["count"], sorted(each["nodes"])) for each in came["changes"]] == [
        ("added", 4, ["a-1", "a-2", "b-1", "loose"])
    ]
    scene.engine.inbox.post(Changed("Node", node("loose"), node("loose", cordoned=True)))
    await scene.settle()
    since = came["changes"][0]["at"] + 1e-6
    later = (await get(client, f"/ui/api/node-changes?since={since}"))["changes"]
    assert [(each["text"], each["nodes"]) for each in later] == [("cordoned", ["loose"])]
    assert (await get(client, f"/ui/api/node-changes?until={since - 60}"))["changes"] == []
    scene.throughput.history.step(scene.engine)
    figures = await get(client, "/ui/api/history")
    assert (figures["nodes"][-1], figures["cordoned"][-1]) == (4, 2)


async def test_every_process_has_versions_of_its_own(scene: Scene) -> None:
    again = EnginePageData(lambda: scene.engine, scene.throughput)
    versions = scene.page_data.state(Versions())["versions"]
    assert "nodes" not in scene.page_data.state(Versions(**versions))
    told = again.state(Versions(**versions))
    assert "nodes" in told and "usage" in told
    assert told["process"] != scene.page_data.process


async def test_news_come_as_events(scene: Scene, client: Client) -> None:
    answer = await client.get("/ui/api/events")
    assert answer.content_type == "text/event-stream"
    first = await next_event(answer)
    assert first["nodes"]["names"] and first["queue"]["waiting"] == 1
    scene.come("Pod", pod("second", requests={"cpu": "250m"}))
    while (news := await next_event(answer))["podCount"] < 2:
        pass
    assert "nodes" not in news
    answer.close()


async def next_event(answer: Any) -> Any:
    async with asyncio.timeout(10):
        while True:
            line = await answer.content.readuntil(b"\n\n")
            if line.startswith(b"event: state\ndata: "):
                return msgspec.json.decode(line.removeprefix(b"event: state\ndata: "))


async def test_there_are_only_so_many_streams(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_STREAMS", 1)
    first = await client.get("/ui/api/events")
    assert await get(client, "/ui/api/events", 503) == {"error": "1 pages are open already"}
    first.close()


async def test_a_stream_ends_when_the_server_stops(scene: Scene) -> None:
    server = await serve_insecurely(page_app(scene.page_data), "127.0.0.1", 0)
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{server.port}/ui/api/events") as answer:
        await next_event(answer)
        began = asyncio.get_running_loop().time()
        await server.stop()
        assert asyncio.get_running_loop().time() - began < 3, "the grace for requests under way is five seconds"


DESCRIPTION = msgspec.json.decode((resources.files("kubesched.server.web") / "ui" / "openapi.json").read_bytes())
EXAMPLES = {
    "/state": "/state",
    "/queue": "/queue?search=whale",
    "/pending": "/pending",
    "/pods/{namespace}/{name}": "/pods/default/whale",
    "/pods/{namespace}/{name}/nodes": "/pods/default/small/nodes",
    "/pods/{namespace}/{name}/nodes/{node}": "/pods/default/small/nodes/a-1",
    "/pods/{namespace}/{name}/decisions": "/pods/default/small/decisions",
    "/nodes/{name}": "/nodes/b-1",
    "/pods-inside": "/pods-inside",
    "/labels": "/labels?key=topology.kubernetes.io/zone",
    "/history": "/history",
    "/node-changes": "/node-changes",
    "/configuration": "/configuration",
}


def conforms(document: Any, schema: Mapping[str, Any]) -> None:
    jsonschema.Draft202012Validator({**schema, "components": DESCRIPTION["components"]}).validate(document)


@pytest.mark.parametrize("path", EXAMPLES)
async def test_answers_are_as_described(scene: Scene, client: Client, path: str) -> None:
    scene.come("Pod", pod("held", gates=["wait/for-me"]))
    scene.throughput.history.step(scene.engine)
    found = await get(client, f"/ui/api{EXAMPLES[path]}")
    schema = DESCRIPTION["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    conforms(found, schema)
    required = DESCRIPTION["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["required"]
    for name in required:
        with pytest.raises(jsonschema.ValidationError):
            conforms({key: value for key, value in found.items() if key != name}, schema)


async def test_all_that_is_served_is_described(client: Client) -> None:
    assert await get(client, "/ui/api/openapi.json") == DESCRIPTION
    served = {
        route.resource.canonical.removeprefix("/ui/api")
        for route in client.server.app.router.routes()
        if route.resource is not None and route.resource.canonical.startswith("/ui/api/")
    }
    always = {path for path, verbs in DESCRIPTION["paths"].items() if not any("x-offer" in told for told in verbs.values())}
    assert served == {*always, "/openapi.json"}
    assert always == {*EXAMPLES, "/events"}


async def test_explaining_is_not_counted_as_an_attempt(scene: Scene, client: Client) -> None:
    seen: list[str] = []
    for profile in scene.engine.profiles.values():
        profile.observe = lambda point, *_: seen.append(point)
    await get(client, "/ui/api/pods/default/whale")
    assert not seen
    assert all(profile.observe is not None for profile in scene.engine.profiles.values())


async def test_pods_inside_their_nodes_are_columns(scene: Scene, client: Client) -> None:
    told, state = await get(client, "/ui/api/pods-inside"), await get(client, "/ui/api/state")
    assert (told["podCount"], told["names"], told["workloads"]) == (1, ["default/small"], ["default/small"])
    assert told["nodesVersion"] == state["versions"]["nodes"]
    asked = dict(
        zip([each["name"] for each in state["nodes"]["resources"]], [column[0] for column in told["requests"]], strict=False)
    )
    assert (asked["cpu"], asked["memory"]) == (500, GIB)
    assert state["usage"][0][told["rows"][0]] == 500


OWNED = [
    ("its own", "", "", "default/one"),
    ("that of a stateful set", "StatefulSet", "db", "default/db"),
    ("that of a deployment", "ReplicaSet", "web-5d", "default/web"),
]


@pytest.mark.parametrize(("kind", "name", "workload"), [case[1:] for case in OWNED], ids=[case[0] for case in OWNED])
async def test_a_pod_is_drawn_with_its_workload(scene: Scene, client: Client, kind: str, name: str, workload: str) -> None:
    owner = OwnerReference(kind=kind, name=name, uid="u", controller=True)
    made = pod("one", on="a-1", labels={"pod-template-hash": "5d"})
    owned = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, owner_references=(owner,)))
    scene.come("Pod", owned if kind else made)
    told = await get(client, "/ui/api/pods-inside")
    assert told["workloads"][told["workload"][told["names"].index("default/one")]] == workload


@pytest.mark.parametrize("release", [(1, 36), (1, 37)])
def test_every_plugin_of_either_release_is_said_to_do_something(release: tuple[int, int]) -> None:
    gates = Gates.defaults(release)
    told = configuration_of(assemble(default_configuration(gates), gates, Ports()))
    (profile,) = told["profiles"]
    listed = {each["name"] for point in profile["points"] for each in point["plugins"]}
    assert listed <= {each["name"] for each in profile["plugins"] if each["purpose"]}


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
    ("/ui/api/pods/default/nobody/nodes", "pod default/nobody is neither queued nor placed here"),
    (
        "/ui/api/pods/default/whale/nodes/nowhere",
        "pod default/whale or node nowhere is not known here, or the pod is for another scheduler",
    ),
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
    for name, (_, kind) in page_files().items():
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
    only_health = Authorizer(authorization_flags())
    parts = new_parts(extra_routes=routes, authorizer=only_health, open_paths=open_paths())
    async with client_for(build_app(parts)) as closed:
        for path in ("/ui/", "/ui/app.js", "/ui/page.css"):
            assert (await closed.get(path)).status == 200, "without the files nobody could give a token"
        for path in ("/ui/api/state", "/ui/api/events", "/ui/api/pods/default/small", "/ui/api/openapi.json"):
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
    for path in ("/", "/ui/", "/ui/app.js", "/ui/api/state", "/ui/api/events"):
        answer = await client.get(path, headers=headers)
        assert answer.status == 403
        assert "\n" not in (await answer.text()).rstrip("\n")
