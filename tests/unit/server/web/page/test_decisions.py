"""The decisions on record over HTTP: filters, pages, one pod, and questions that nobody understands."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from kubesched.scheduler.engine.records.decision_record import PLACED, UNSCHEDULABLE, DecisionRecord, DecisionRing, RefusalCount
from kubesched.server.web import decision_routes

Client = TestClient[web.Request, web.Application]


def client_of(ring: DecisionRing | None) -> Client:
    app = web.Application()
    app.router.add_routes(decision_routes(ring))
    return TestClient(TestServer(app))


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    ring = DecisionRing(8)
    for i in range(10):
        is_placed = i % 2 == 0
        ring.append(
            DecisionRecord(
                f"team-{'a' if i < 5 else 'b'}/p{i}",
                f"u{i}",
                "default-scheduler",
                outcome=PLACED if is_placed else UNSCHEDULABLE,
                node=f"n{i}" if is_placed else "",
                refused=() if is_placed else (RefusalCount("NodeResourcesFit", "Insufficient cpu", 3),),
                at=1000.0 + i,
            )
        )
    async with client_of(ring) as made:
        yield made


LISTS = [
    ("all that are kept, newest first", "", [9, 8, 7, 6, 5, 4, 3, 2]),
    ("of a namespace", "namespace=team-a", [4, 3, 2]),
    ("of a pod", "pod=p4", [4]),
    ("of a pod in a namespace", "pod=team-b/p4", []),
    ("on a node", "node=n6", [6]),
    ("that were placed", "outcome=placed", [8, 6, 4, 2]),
    ("that a plugin refused", "plugin=NodeResourcesFit", [9, 7, 5, 3]),
    ("since", "since=1007", [9, 8, 7]),
    ("until, as people write times", "until=1970-01-01T00:16:43Z", [3, 2]),
    ("a page", "limit=3", [9, 8, 7]),
    ("the next page", "limit=3&before=7", [6, 5, 4]),
    ("the rest", "limit=3&before=4", [3, 2]),
    ("what is new", "after=7", [9, 8]),
]


@pytest.mark.parametrize(("query", "expected"), [case[1:] for case in LISTS], ids=[case[0] for case in LISTS])
async def test_a_list(client: Client, query: str, expected: list[int]) -> None:
    answer = await client.get(f"/api/decisions?{query}")
    told = await answer.json()
    assert [each["sequence"] for each in told["decisions"]] == expected
    assert (told["newest"], told["oldest"], told["size"]) == (9, 2, 8)
    assert told["next"] == (expected[-1] if "limit" in query and expected[-1] > 2 else None)


async def test_one_pod(client: Client) -> None:
    told: dict[str, Any] = await (await client.get("/api/decisions/team-a/p3")).json()
    (decision,) = told["decisions"]
    assert decision["refusals"] == [{"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "count": 3}]
    missing = await client.get("/api/decisions/team-a/p0")
    assert missing.status == 404 and "team-a/p0" in (await missing.json())["error"]


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("outcom=x", "'outcom'"),
        ("outcome=x", "unschedulable"),
        ("limit=-1", "'-1'"),
        ("after=x", "'x'"),
        ("since=noon", "'noon'"),
    ],
)
async def test_what_nobody_understands(client: Client, query: str, complaint: str) -> None:
    answer = await client.get(f"/api/decisions?{query}")
    assert answer.status == 400 and complaint in (await answer.json())["error"]


async def test_nothing_is_kept() -> None:
    async with client_of(None) as client:
        for path in ("/api/decisions", "/api/decisions/a/b"):
            answer = await client.get(path)
            assert answer.status == 404 and "--decision-records" in (await answer.json())["error"]
