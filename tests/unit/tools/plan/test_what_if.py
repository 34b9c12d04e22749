"""The page's what-ifs: plans, other weights, snapshots; answered as the document of the page's JSON describes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib import resources
from typing import Any

import jsonschema
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from kubesched.errors import SchedulerError
from kubesched.scheduler.config import Gates
from kubesched.scheduler.engine.assembly import default_configuration, registry_with
from kubesched.testing.builders import node, pod
from kubesched.tools.plan.what_if import Deciding, what_if_routes, with_weights
from kubesched.tools.snapshots.captured import Captured, read_captured

Client = TestClient[web.Request, web.Application]
DESCRIPTION = msgspec.json.decode((resources.files("kubesched.server.web") / "ui" / "openapi.json").read_bytes())
GATES = Gates.defaults()
DECIDING = Deciding(default_configuration(GATES), GATES, registry_with())
POD = """
apiVersion: v1
kind: Pod
metadata: {name: new}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: %s}}}]}
"""
PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins: {score: {disabled: [{name: NodeResourcesBalancedAllocation}]}}
"""


def the_cluster() -> Captured:
    placed = [pod(f"p{i}", on="abc"[i % 3], requests={"cpu": "500m"}) for i in range(6)]
    return Captured(9.0, [*(node(name, cpu="4") for name in "abc"), *placed])


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async def read() -> Captured:
        return the_cluster()

    app = web.Application()
    app.router.add_routes(what_if_routes(read, lambda: DECIDING))
    async with TestClient(TestServer(app)) as client:
        yield client


async def ask(client: Client, path: str, question: Any, status: int = 200) -> Any:
    answer = await client.post(f"/ui/api{path}", json=question)
    assert answer.status == status, await answer.text()
    told, described = await answer.json(), DESCRIPTION["paths"][path]["post"]
    schema = described["responses"]["200"]["content"]["application/json"]["schema"] if status == 200 else None
    if schema is not None:
        jsonschema.Draft202012Validator({**schema, "components": DESCRIPTION["components"]}).validate(told)
    return told


async def test_a_plan_says_where_pods_would_go_and_changes_nothing(client: Client) -> None:
    for _ in range(2):
        told = await ask(client, "/plan", {"manifests": POD % "1"})
        assert told["summary"] == {"pods": 1, "placed": 1, "pending": 0, "ofOtherSchedulers": 0, "victims": 0}
    told = await ask(client, "/plan", {"manifests": POD % "9", "namespace": "team"})
    assert "3 Insufficient cpu" in told["workloads"][0]["pods"][0]["message"]
    assert told["workloads"][0]["namespace"] == "team"


REFUSED = [
    ("no object", "/plan", {"manifests": "# nothing"}, "there is no object in the text"),
    (
        "an unknown field",
        "/plan",
        {"manifests": "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspex: {}"},
        'unknown field "spex"',
    ),
    ("no manifests", "/plan", {}, "the question is not understood: Object missing required field `manifests`"),
    ("a plugin that scores nowhere", "/compare", {"weights": {"NodeName": 2}}, "NodeName does not score in any profile"),
    ("a negative weight", "/compare", {"weights": {"ImageLocality": -1}}, "the weight of ImageLocality is -1, and may be 0 to"),
    ("a file that is no configuration", "/compare", {"configuration": "a: b"}, "Object 'Kind' is missing"),
]


@pytest.mark.parametrize(("path", "question", "error"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
async def test_a_question_that_makes_no_sense_gets_a_sentence(client: Client, path: str, question: Any, error: str) -> None:
    assert error in (await ask(client, path, question, 422))["error"]


async def test_a_form_of_another_site_is_not_answered(client: Client) -> None:
    answer = await client.post("/ui/api/plan", data='{"manifests": ""}', headers={"Content-Type": "text/plain"})
    assert (answer.status, (await answer.json())["error"]) == (422, "the question is not JSON: its content type says so")


async def test_what_is_too_long_is_not_read(client: Client) -> None:
    assert "too long" in (await ask(client, "/plan", {"manifests": "x" * (2 << 20)}, 422))["error"]


async def test_the_same_weights_move_nothing_and_another_configuration_packs(client: Client) -> None:
    same = await ask(client, "/compare", {"weights": {"ImageLocality": 1}})
    assert (same["moves"]["moved"], same["a"]["packing"]["nodesUsed"]["end"]) == (0, 3)
    packed = await ask(client, "/compare", {"configuration": PACKING})
    assert (packed["a"]["packing"]["nodesUsed"]["end"], packed["b"]["packing"]["nodesUsed"]["end"]) == (3, 1)
    assert packed["moves"]["moved"] > 0


def test_a_weight_of_zero_takes_a_score_out() -> None:
    (profile,) = with_weights(DECIDING.configuration, {"ImageLocality": 0, "NodeAffinity": 7}).profiles
    weights = {each.name: each.weight for each in profile.at("score")}
    assert weights["NodeAffinity"] == 7 and "ImageLocality" not in weights


async def test_a_snapshot_holds_the_cluster(client: Client) -> None:
    answer = await client.get("/ui/api/snapshot")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="snapshot.jsonl"'
    found = read_captured((await answer.read()).splitlines())
    assert len(found.objects) == len(the_cluster().objects)


async def test_one_that_cannot_be_read_is_said(client: Client) -> None:
    async def read() -> Captured:
        raise SchedulerError("pods are forbidden")

    app = web.Application()
    app.router.add_routes(what_if_routes(read, lambda: DECIDING))
    async with TestClient(TestServer(app)) as client:
        assert (await ask(client, "/plan", {"manifests": POD % "1"}, 422))["error"] == "pods are forbidden"
        both = await asyncio.gather(*(ask(client, "/plan", {"manifests": POD % "1"}, 422) for _ in range(2)))
        assert len(both) == 2, "the next question gets its turn"
        assert (await client.get("/ui/api/snapshot")).status == 422
