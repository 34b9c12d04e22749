"""Events are written once, repeated ones become series, and nobody ever waits for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from client_fakes import FakeChance, FakeConnection, broken, pod, status

from kubesched.kube.api import codec
from kubesched.kube.api.meta import ObjectReference
from kubesched.kube.api.pod import Pod
from kubesched.kube.client.writes.recorder import CORE_V1, Broadcaster, truncated
from kubesched.testing.fakes import settle

WEB = codec.decode_as(Pod, codec.encode(pod("web", 7)))
FAILED = ("Warning", "FailedScheduling", "Scheduling")


class Newsroom:
    """A broadcaster whose connection accepts everything, unless scripted otherwise."""

    def __init__(self, **options: Any) -> None:
        self.connection = FakeConnection()
        self.clock = self.connection.clock
        self.broadcaster = Broadcaster(self.connection, host="host", chance=FakeChance(), **options)  # type: ignore[arg-type]
        self.recorder = self.broadcaster.recorder("default-scheduler")
        self.connection.replies = [b"{}"] * 1100

    async def work(self, seconds: float = 0.0) -> list[tuple[str, str, Any]]:
        """Let the workers write, and return what they sent."""
        task = asyncio.create_task(self.broadcaster.run())
        await settle()
        await self.clock.advance(seconds)
        await settle()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        sent, self.connection.requests = self.connection.requests, []
        return sent


async def test_an_event_carries_what_the_reference_says() -> None:
    room = Newsroom()
    room.recorder.event(WEB, *FAILED, "0/1 nodes are available")
    [(method, path, body)] = await room.work()
    assert (method, path) == ("POST", "/apis/events.k8s.io/v1/namespaces/a/events")
    name = body["metadata"]["name"]
    assert name == f"web.{int(room.clock.time * 1e9):x}"
    assert body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "a"},
        "eventTime": "2023-11-14T22:13:20.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "regarding": {
            "kind": "Pod",
            "apiVersion": "v1",
            "namespace": "a",
            "name": "web",
            "uid": "uid-web",
            "resourceVersion": "7",
        },
        "type": "Warning",
        "reason": "FailedScheduling",
        "action": "Scheduling",
        "note": "0/1 nodes are available",
    }


async def test_repetitions_become_a_series_whatever_the_note() -> None:
    room = Newsroom()
    room.recorder.event(WEB, *FAILED, "one reason")
    [(_, _, first)] = await room.work()
    room.clock.time += 5
    room.recorder.event(WEB, *FAILED, "another reason")
    [(method, path, body)] = await room.work()
    assert method == "PATCH" and path.endswith(first["metadata"]["name"])
    assert body == {"series": {"count": 2, "lastObservedTime": "2023-11-14T22:13:25.000000Z"}}
    for _ in range(10):
        room.recorder.event(WEB, *FAILED, "again")
    assert await room.work() == []


async def test_another_version_of_the_pod_another_reason_or_another_profile_is_another_event() -> None:
    room = Newsroom()
    newer = codec.decode_as(Pod, codec.encode(pod("web", 8)))
    room.recorder.event(WEB, *FAILED, "x")
    room.recorder.event(newer, *FAILED, "x")
    room.recorder.event(WEB, "Normal", "Scheduled", "Binding", "x")
    room.broadcaster.recorder("other").event(WEB, *FAILED, "x")
    sent = await room.work()
    assert [method for method, _, _ in sent] == ["POST"] * 4
    assert len({body["metadata"]["name"] for _, _, body in sent}) == 4


async def test_a_series_is_written_when_it_has_been_quiet_and_then_forgotten() -> None:
    room = Newsroom()
    for _ in range(7):
        room.recorder.event(WEB, *FAILED, "x")
    await room.work()
    for _ in range(5):
        room.recorder.event(WEB, *FAILED, "x")
    assert await room.work(seconds=359.0) == []
    [(method, _, body)] = await room.work(seconds=361.0)
    assert (method, body["series"]["count"]) == ("PATCH", 12)
    room.recorder.event(WEB, *FAILED, "x")
    [(method, _, body)] = await room.work()
    assert method == "POST" and "series" not in body


async def test_a_series_that_never_rests_is_written_every_half_hour() -> None:
    room = Newsroom()
    for _ in range(2):
        room.recorder.event(WEB, *FAILED, "x")
    await room.work()
    counts = []
    for _ in range(120):
        room.clock.time += 60
        room.recorder.event(WEB, *FAILED, "x")
        await room.broadcaster.tidy()
        counts += [body["series"]["count"] for _, _, body in room.connection.requests]
        room.connection.requests = []
    assert counts == [32, 62, 92, 122]


async def test_a_series_whose_event_is_gone_is_created_anew() -> None:
    room = Newsroom()
    room.recorder.event(WEB, *FAILED, "x")
    await room.work()
    room.connection.replies[:1] = [status(404, "NotFound"), b"{}"]
    room.recorder.event(WEB, *FAILED, "x")
    sent = await room.work()
    assert [method for method, _, _ in sent] == ["PATCH", "POST"]
    assert sent[1][2]["series"]["count"] == 2


async def test_no_answer_is_tried_twelve_times_and_a_refusal_once() -> None:
    room = Newsroom()
    room.connection.replies = [broken()] * 12
    room.recorder.event(WEB, *FAILED, "x")
    assert len(await room.work(seconds=200.0)) == 12
    assert room.clock.slept.count(10.0) == 12
    room = Newsroom()
    room.connection.replies = [status(403, "Forbidden")]
    room.recorder.event(WEB, *FAILED, "x")
    assert len(await room.work(seconds=200.0)) == 1


async def test_an_event_that_a_lost_answer_had_created_counts_as_written() -> None:
    room = Newsroom()
    room.connection.replies = [broken(), status(409, "AlreadyExists"), b"{}"]
    room.recorder.event(WEB, *FAILED, "x")
    assert [method for method, _, _ in await room.work(seconds=20.0)] == ["POST", "POST"]
    room.recorder.event(WEB, *FAILED, "x")
    assert [method for method, _, _ in await room.work()] == ["PATCH"]


async def test_more_than_a_thousand_waiting_events_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    room = Newsroom()
    for number in range(1010):
        room.recorder.event(codec.decode_as(Pod, codec.encode(pod(f"p{number}", 1))), *FAILED, "x")
    assert room.broadcaster.n_dropped == 10
    assert "events dropped" in caplog.text


async def test_old_servers_get_core_events_with_counts() -> None:
    room = Newsroom(api_version=CORE_V1)
    room.recorder.event(WEB, *FAILED, "x")
    [(_, path, body)] = await room.work()
    assert path == "/api/v1/namespaces/a/events"
    assert body["involvedObject"]["name"] == "web"
    assert (body["message"], body["count"], body["source"]) == ("x", 1, {"component": "default-scheduler"})
    room.recorder.event(WEB, *FAILED, "x")
    room.recorder.event(WEB, *FAILED, "y")
    patched, created = await room.work()
    assert patched[0] == "PATCH" and patched[2]["count"] == 2
    assert created[0] == "POST" and created[2]["message"] == "y"


async def test_a_server_without_the_events_group_gets_core_events_from_then_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    room = Newsroom()
    room.connection.replies = [status(404, "NotFound", "404 page not found"), b"{}", b"{}"]
    room.recorder.event(WEB, *FAILED, "x")
    tried, told = await room.work()
    assert tried[1] == "/apis/events.k8s.io/v1/namespaces/a/events"
    assert told[1] == "/api/v1/namespaces/a/events"
    assert (told[2]["apiVersion"], told[2]["message"], told[2]["metadata"]) == ("v1", "x", tried[2]["metadata"])
    room.recorder.event(WEB, "Normal", "Scheduled", "Binding", "y")
    [(_, path, body)] = await room.work()
    assert (path, body["message"]) == ("/api/v1/namespaces/a/events", "y")
    assert caplog.text.count("does not serve events in events.k8s.io/v1") == 1


async def test_a_namespace_that_is_gone_is_no_reason_to_change_the_version() -> None:
    room = Newsroom()
    room.connection.replies = [status(404, "NotFound", 'namespaces "a" not found', name="a", kind="namespaces")]
    room.recorder.event(WEB, *FAILED, "x")
    assert len(await room.work()) == 1
    assert room.broadcaster.api_version == "events.k8s.io/v1"


async def test_events_about_other_objects_name_them() -> None:
    room = Newsroom()
    lease = ObjectReference(kind="Lease", api_version="coordination.k8s.io/v1", namespace="kube-system", name="l")
    room.broadcaster.recorder("default-scheduler", CORE_V1).event(lease, "Normal", "LeaderElection", "", "me became leader")
    [(_, path, body)] = await room.work()
    assert path == "/api/v1/namespaces/kube-system/events"
    assert body["involvedObject"]["kind"] == "Lease"


async def test_a_pod_name_too_long_for_an_event_gets_a_random_one() -> None:
    room = Newsroom()
    room.recorder.event(codec.decode_as(Pod, codec.encode(pod("x" * 250, 1))), *FAILED, "x")
    [(_, _, body)] = await room.work()
    assert len(body["metadata"]["name"]) == 36


@pytest.mark.parametrize(
    ("note", "cut"),
    [("short", "short"), ("x" * 1024, "x" * 1024), ("x" * 1025, "x" * 1020 + " ..."), ("é" * 600, "é" * 510 + " ...")],
    ids=["short", "just fits", "too long", "too long in bytes"],
)
def test_notes_are_cut_to_what_the_api_takes(note: str, cut: str) -> None:
    assert truncated(note) == cut
    assert len(truncated(note).encode()) <= 1024
