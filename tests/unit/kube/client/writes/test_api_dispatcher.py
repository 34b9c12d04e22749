"""The API dispatcher: one call about a pod at a time, what waits becomes one, and the three metrics of it."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from client_fakes import status

from kubesched.errors import ApiError
from kubesched.kube.client.writes.api_dispatcher import BINDING, STATUS_PATCH, ApiDispatcher
from kubesched.kube.client.writes.writer import Writer
from kubesched.telemetry import Metrics
from kubesched.testing.fakes import FakeClock, settle

SUCCESS = b'{"kind": "Status", "apiVersion": "v1", "status": "Success"}'


class Slow:
    """A connection whose answers wait to be let go, one after another."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.sent: list[tuple[str, Any]] = []
        self.answers: list[asyncio.Future[bytes]] = []

    async def request(self, method: str, path: str, body: bytes, content_type: str = "") -> bytes:
        self.sent.append((path.split("/", 5)[-1], json.loads(body)))
        self.answers.append(asyncio.get_running_loop().create_future())
        return await self.answers[-1]

    async def answer(self, error: Exception | None = None) -> None:
        await settle()
        left = next(answer for answer in self.answers if not answer.done())
        left.set_exception(error) if error is not None else left.set_result(SUCCESS)
        await settle()

    @property
    def told(self) -> list[tuple[str, Any]]:
        return [
            (path.removeprefix("pods/"), body.get("status", body.get("target", {}).get("name"))) for path, body in self.sent
        ]


def pod(name: str) -> Any:
    return SimpleNamespace(namespace="default", name=name, uid=f"uid-{name}")


async def play(writer: Writer, slow: Slow) -> list[asyncio.Task[None]]:
    """Two patches and a third while the first is under way, and a patch of another pod."""
    tasks = [
        asyncio.create_task(writer.patch_pod_status(pod("a"), {"conditions": [1]})),
        asyncio.create_task(writer.patch_pod_status(pod("a"), {"nominatedNodeName": "n1"})),
        asyncio.create_task(writer.patch_pod_status(pod("a"), {"conditions": [2]})),
        asyncio.create_task(writer.patch_pod_status(pod("b"), {"conditions": [3]})),
    ]
    await settle()
    return tasks


async def test_without_it_each_call_is_sent_and_those_about_one_pod_in_order() -> None:
    slow = Slow()
    tasks = await play(Writer(slow), slow)  # type: ignore[arg-type]
    assert len(slow.sent) == 2, "one for each of the two pods"
    for _ in range(4):
        await slow.answer()
    await asyncio.gather(*tasks)
    assert len(slow.sent) == 4


async def test_with_it_what_waits_becomes_one() -> None:
    slow, metrics = Slow(), Metrics()
    writer = ApiDispatcher(slow, 16, metrics.api_call_finished)  # type: ignore[arg-type]
    tasks = await play(writer, slow)
    assert slow.told == [("a/status", {"conditions": [1]}), ("b/status", {"conditions": [3]})]
    assert tasks[1].done() and not tasks[0].done(), "the second is part of the third"
    await slow.answer()
    assert slow.told[2] == ("a/status", {"conditions": [2], "nominatedNodeName": "n1"})
    await slow.answer()
    await slow.answer()
    await asyncio.gather(*tasks)
    assert metrics.counters["scheduler_async_api_call_execution_total"] == {(STATUS_PATCH, "success"): 3}
    assert list(metrics.histograms["scheduler_async_api_call_execution_duration_seconds"]) == [(STATUS_PATCH, "success")]


async def test_a_binding_takes_the_place_of_a_patch_and_drops_the_next() -> None:
    slow = Slow()
    writer = ApiDispatcher(slow, 1)  # type: ignore[arg-type]
    tasks = [
        asyncio.create_task(writer.patch_pod_status(pod("b"), {"conditions": [0]})),
        asyncio.create_task(writer.patch_pod_status(pod("a"), {"conditions": [1]})),
    ]
    await settle()
    assert writer.pending() == {STATUS_PATCH: 1, BINDING: 0}, "one at a time may be under way"
    tasks.append(asyncio.create_task(writer.bind(pod("a"), "n1")))
    await settle()
    assert writer.pending() == {STATUS_PATCH: 0, BINDING: 1} and tasks[1].done()
    await writer.patch_pod_status(pod("a"), {"conditions": [2]})
    await slow.answer()
    assert slow.told == [("b/status", {"conditions": [0]}), ("a/binding", "n1")]
    await writer.patch_pod_status(pod("a"), {"conditions": [3]})
    await slow.answer()
    await asyncio.gather(*tasks)
    assert len(slow.sent) == 2 and not any(writer.pending().values())


async def test_errors_go_to_the_call_that_was_sent_and_what_waits_is_sent_after_it() -> None:
    slow, results = Slow(), []
    writer = ApiDispatcher(slow, 16, lambda kind, result, seconds: results.append((kind, result)))  # type: ignore[arg-type]
    first = asyncio.create_task(writer.patch_pod_status(pod("a"), {"conditions": [1]}))
    await settle()
    second = asyncio.create_task(writer.bind(pod("a"), "n1"))
    await slow.answer(status(403, "Forbidden"))
    with pytest.raises(ApiError):
        await first
    await slow.answer()
    await second
    assert results == [(STATUS_PATCH, "error"), (BINDING, "success")]


async def test_a_caller_that_gives_up_stops_nobody() -> None:
    slow = Slow()
    writer = ApiDispatcher(slow, 16)  # type: ignore[arg-type]
    first = asyncio.create_task(writer.patch_pod_status(pod("a"), {"conditions": [1]}))
    await settle()
    first.cancel()
    second = asyncio.create_task(writer.patch_pod_status(pod("a"), {"conditions": [2]}))
    await slow.answer()
    await slow.answer()
    await second
    assert [body for _, body in slow.told] == [{"conditions": [1]}, {"conditions": [2]}]
