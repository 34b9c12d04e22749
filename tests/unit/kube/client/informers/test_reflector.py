"""A reflector delivers every change once and in order, whatever the connection does to it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from client_fakes import HANG, FakeChance, FakeConnection, bookmark, broken, gone_line, line, page, pod, status

from kubesched.errors import Unreachable
from kubesched.kube.api.resource import DeviceTaintRule
from kubesched.kube.api.storage import VolumeAttachment
from kubesched.kube.client.informers.reflector import LONGEST_INITIAL_SILENCE_SECONDS, LONGEST_SILENCE_SECONDS, Reflector
from kubesched.kube.client.informers.resources import WATCH_SET, custom, row_of
from kubesched.testing.fakes import FakeClock, settle
from kubesched.tools.simulation.clock import run_virtually

PODS = WATCH_SET[0]


class Told:
    """A sink that writes down what it hears as `+name`, `-name`, `name:old>new`."""

    def __init__(self) -> None:
        self.news: list[str] = []

    def deliver(self, kind: str, old: Any, new: Any) -> None:
        if old is None:
            self.news.append(f"+{new.metadata.name}:{new.metadata.resource_version}")
        elif new is None:
            self.news.append(f"-{old.metadata.name}:{old.metadata.resource_version}")
        else:
            before, after = old.metadata.resource_version, new.metadata.resource_version
            self.news.append(f"{new.metadata.name}:{before}>{after}")

    def synced(self, kind: str) -> None:
        self.news.append(f"synced {kind}")


class Scene:
    """A reflector of pods on a scripted connection."""

    def __init__(self, *, streams: bool = True, page_size: int = 2, watched: Any = PODS) -> None:
        self.clock = FakeClock()
        self.connection = FakeConnection(self.clock)
        self.told = Told()
        self.reflector = Reflector(
            self.connection,  # type: ignore[arg-type]
            watched,
            self.told,
            streams=streams,
            page_size=page_size,
            chance=FakeChance(),
        )

    async def play(self, seconds: float = 0.0) -> list[str]:
        """Run until nothing more happens, and return what was told."""
        task = asyncio.create_task(self.reflector.run())
        await settle()
        await self.clock.advance(seconds)
        await settle()
        if task.done():
            await task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return self.told.news


async def test_a_streaming_list_is_delivered_as_it_arrives_and_goes_on_as_a_watch() -> None:
    scene = Scene()
    scene.connection.streams = [
        [
            line("ADDED", pod("a", 3)),
            line("ADDED", pod("b", 2)) + bookmark(9, ends_list=True) + line("MODIFIED", pod("b", 10)),
            line("DELETED", pod("a", 11)),
            HANG,
        ]
    ]
    assert await scene.play() == ["+a:3", "+b:2", "synced Pod", "b:2>10", "-a:3"]
    [path] = scene.connection.watches
    assert "sendInitialEvents=true&resourceVersionMatch=NotOlderThan" in path
    assert "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed" in path
    assert "timeoutSeconds=300" in path


async def test_lines_may_be_cut_anywhere() -> None:
    scene = Scene()
    whole = line("ADDED", pod("a", 1)) + line("ADDED", pod("b", 2)) + bookmark(2, ends_list=True)
    scene.connection.streams = [[whole[i : i + 7] for i in range(0, len(whole), 7)] + [HANG]]
    assert await scene.play() == ["+a:1", "+b:2", "synced Pod"]


@pytest.mark.parametrize("refused", [status(422, "Invalid"), status(400, "BadRequest")])
async def test_a_server_without_streaming_lists_is_listed_in_pages(refused: Any) -> None:
    scene = Scene()
    scene.connection.streams = [refused, [line("ADDED", pod("d", 8)), HANG]]
    scene.connection.replies = [page(7, pod("a", 1), pod("b", 2), token="more/1"), page(7, pod("c", 3))]
    assert await scene.play() == ["+a:1", "+b:2", "+c:3", "synced Pod", "+d:8"]
    paths = [path for _, path, _ in scene.connection.requests]
    assert paths[0].startswith("/api/v1/pods?limit=2&fieldSelector=")
    assert "&continue=more%2F1" in paths[1]
    assert "resourceVersion=7" in scene.connection.watches[1]


SILENT = [
    ("nothing at all", []),
    ("blank lines, of a proxy that keeps the connection up", [b"\n"] * 1000),
    ("a line that never ends", [b"{"] * 1000),
]


async def followed(scene: Scene, seconds: float) -> None:
    """Let the reflector run for so long; to be called in virtual time, because its own patience is asyncio's."""
    task = asyncio.create_task(scene.reflector.run())
    await asyncio.sleep(seconds)
    await scene.clock.advance(1.0)
    task.cancel()


@pytest.mark.parametrize(("case", "noise"), SILENT, ids=[case[0] for case in SILENT])
def test_a_watch_without_events_and_bookmarks_is_dead(case: str, noise: list[bytes]) -> None:
    scene = Scene()
    begun = [line("ADDED", pod("a", 1)) + bookmark(5, ends_list=True)]
    scene.connection.streams = [[*begun, *noise, HANG], [line("ADDED", pod("b", 6)), HANG]]
    scene.connection.replies = [page(5)]
    run_virtually(followed(scene, LONGEST_SILENCE_SECONDS + 1))
    assert scene.told.news == ["+a:1", "synced Pod", "+b:6"]
    assert "resourceVersion=5" in scene.connection.watches[1], "it goes on where it was"


def test_bookmarks_keep_a_watch_alive() -> None:
    scene = Scene()
    marks: list[Any] = [part for version in range(6, 12) for part in (LONGEST_SILENCE_SECONDS / 2, bookmark(version))]
    scene.connection.streams = [[bookmark(5, ends_list=True), *marks, line("ADDED", pod("b", 12)), HANG]]
    run_virtually(followed(scene, 3 * LONGEST_SILENCE_SECONDS + 1))
    assert scene.told.news[-1] == "+b:12" and len(scene.connection.watches) == 1


def test_a_watch_whose_first_bookmarks_are_kept_back_is_alive() -> None:
    """kube-apiserver sends no bookmark that is not newer than where the watch began, and tries once a minute."""
    scene = Scene()
    scene.connection.streams = [[bookmark(5, ends_list=True), 3 * 60.0 + 2.0, bookmark(6), line("ADDED", pod("b", 7)), HANG]]
    run_virtually(followed(scene, 190.0))
    assert scene.told.news[-1] == "+b:7" and len(scene.connection.watches) == 1


def test_a_silent_streaming_list_is_replaced_by_pages() -> None:
    scene = Scene()
    scene.connection.streams = [[line("ADDED", pod("a", 1)), HANG]]
    scene.connection.replies = [page(5, pod("a", 1), pod("b", 2))]
    run_virtually(followed(scene, LONGEST_INITIAL_SILENCE_SECONDS + 1))
    assert scene.told.news == ["+a:1", "+b:2", "synced Pod"]


async def test_after_410_the_difference_is_delivered_deletions_first() -> None:
    scene = Scene(streams=False)
    scene.connection.streams = [[line("MODIFIED", pod("b", 6)), gone_line()]]
    scene.connection.replies = [
        page(5, pod("a", 1), pod("b", 2), pod("c", 3), pod("same", 4)),
        page(20, pod("b", 15), pod("c", 16, uid="another"), pod("d", 17), pod("same", 4)),
    ]
    news = await scene.play(seconds=1.0)
    assert news[:6] == ["+a:1", "+b:2", "+c:3", "+same:4", "synced Pod", "b:2>6"]
    assert news[6:] == ["-a:1", "b:6>15", "-c:3", "+c:16", "+d:17"]


async def test_after_410_a_streaming_list_is_gathered_before_it_is_compared() -> None:
    scene = Scene()
    scene.connection.streams = [
        [line("ADDED", pod("a", 1)) + line("ADDED", pod("b", 2)) + bookmark(2, ends_list=True), gone_line()],
        [line("ADDED", pod("c", 9)) + line("ADDED", pod("b", 2)), bookmark(9, ends_list=True), HANG],
    ]
    assert await scene.play(seconds=1.0) == ["+a:1", "+b:2", "synced Pod", "-a:1", "+c:9"]


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "in pages"])
async def test_a_later_list_keeps_no_second_copy_of_what_is_known(streams: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(streams=streams)
    first, again = (pod("a", 1), pod("b", 2)), (pod("a", 1), pod("b", 9))
    if streams:
        begins = [line("ADDED", each) for each in first], [line("ADDED", each) for each in again]
        scene.connection.streams = [
            [*begins[0], bookmark(3, ends_list=True), gone_line()],
            [*begins[1], bookmark(9, ends_list=True), HANG],
        ]
    else:
        scene.connection.replies = [page(3, *first), page(9, *again)]
        scene.connection.streams = [[gone_line()], [HANG]]
    gathered: dict[str, Any] = {}
    replace = scene.reflector._replace

    def spy(found: dict[str, Any]) -> None:
        gathered.update({key: obj is scene.reflector.objects[key] for key, obj in found.items()})
        replace(found)

    monkeypatch.setattr(scene.reflector, "_replace", spy)
    assert await scene.play(60.0) == ["+a:1", "+b:2", "synced Pod", "b:2>9"]
    assert gathered == {"a/a": True, "a/b": False}


async def test_a_storm_of_410_is_met_with_growing_pauses() -> None:
    scene = Scene(streams=False)
    scene.connection.streams = [status(410, "Expired") for _ in range(8)]
    scene.connection.replies = [page(5, pod("a", 1)) for _ in range(9)]
    news = await scene.play(seconds=200.0)
    assert news == ["+a:1", "synced Pod"]
    assert [round(pause, 3) for pause in scene.clock.slept] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


@pytest.mark.parametrize("end", [[], [broken()], [b'{"type":"MODIFIED","object":{"metad', broken()]])
async def test_a_watch_that_ends_goes_on_from_the_last_version_it_saw(end: list[Any]) -> None:
    scene = Scene(streams=False)
    scene.connection.replies = [page(5, pod("a", 1)), page(8)]
    scene.connection.streams = [
        [line("MODIFIED", pod("a", 6)), bookmark(8), *end],
        [line("MODIFIED", pod("a", 9)), HANG],
    ]
    assert await scene.play() == ["+a:1", "synced Pod", "a:1>6", "a:6>9"]
    assert "resourceVersion=8" in scene.connection.watches[1]
    assert scene.clock.slept == []


async def test_lines_sent_twice_are_taken_once() -> None:
    scene = Scene(streams=False)
    scene.connection.replies = [page(5, pod("a", 1))]
    twice = line("MODIFIED", pod("a", 6)) + line("ADDED", pod("b", 7)) + line("DELETED", pod("b", 8))
    scene.connection.streams = [[twice, twice, HANG]]
    assert await scene.play() == ["+a:1", "synced Pod", "a:1>6", "+b:7", "-b:7"]


async def test_garbage_in_a_watch_breaks_it_and_nothing_else() -> None:
    scene = Scene(streams=False)
    scene.connection.replies = [page(5, pod("a", 1)), page(6)]
    scene.connection.streams = [[line("MODIFIED", pod("a", 6)), b'{"type":"MODI{{{\n'], [bookmark(7), HANG]]
    assert await scene.play() == ["+a:1", "synced Pod", "a:1>6"]
    assert "resourceVersion=6" in scene.connection.watches[1]


async def test_a_server_that_counts_anew_is_listed_again() -> None:
    scene = Scene(streams=False)
    scene.connection.replies = [page(500, pod("a", 400)), page(3, pod("b", 2))]
    scene.connection.streams = [[], [line("ADDED", pod("b", 2)), HANG], [HANG]]
    assert await scene.play(seconds=5.0) == ["+a:400", "synced Pod", "-a:400", "+b:2"]


async def test_versions_from_the_servers_future_are_listed_again() -> None:
    scene = Scene(streams=False)
    too_large = status(504, "Timeout", "Too large resource version", causes=[{"reason": "ResourceVersionTooLarge"}])
    scene.connection.replies = [page(500, pod("a", 400)), page(3, pod("b", 2))]
    scene.connection.streams = [too_large, [HANG]]
    assert await scene.play(seconds=1.0) == ["+a:400", "synced Pod", "-a:400", "+b:2"]


async def test_a_first_list_that_breaks_is_completed_without_telling_twice() -> None:
    scene = Scene()
    scene.connection.streams = [
        [line("ADDED", pod("a", 1)) + line("ADDED", pod("b", 2)), broken()],
        [line("ADDED", pod("b", 2)) + line("ADDED", pod("c", 3)) + bookmark(9, ends_list=True), HANG],
    ]
    assert await scene.play(seconds=1.0) == ["+a:1", "+b:2", "-a:1", "+c:3", "synced Pod"]


async def test_a_list_whose_pages_expire_begins_again() -> None:
    scene = Scene(streams=False)
    scene.connection.replies = [
        page(5, pod("a", 1), pod("b", 2), token="x"),
        status(410, "Expired"),
        page(9, pod("b", 2), pod("c", 8)),
    ]
    assert await scene.play() == ["+a:1", "+b:2", "-a:1", "+c:8", "synced Pod"]


async def test_trouble_is_told_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    scene = Scene(streams=False)
    refused = Unreachable("https://cluster: connection refused; is the API server running there?")
    scene.connection.replies = [refused, refused, refused, page(5)]
    task = asyncio.create_task(scene.reflector.run())
    await settle()
    assert scene.reflector.trouble.startswith("https://cluster: connection refused")
    await scene.clock.advance(30.0)
    assert scene.reflector.trouble == ""
    task.cancel()
    assert [record.message for record in caplog.records] == [
        "cannot follow pods: https://cluster: connection refused; is the API server running there?; trying again",
        "following pods again",
    ]
    assert scene.clock.slept[:3] == [0.8, 1.6, 3.2]


async def test_too_many_requests_waits_as_long_as_the_server_asks() -> None:
    scene = Scene(streams=False)
    busy = status(429, "TooManyRequests", retryAfterSeconds=7)
    scene.connection.replies = [busy, page(5, pod("a", 1))]
    news = await scene.play(seconds=7.5)
    assert news == []
    assert scene.clock.slept == [7.0, 0.8]


async def test_one_malformed_object_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(streams=False)
    bad = pod("bad", 3)
    bad["spec"]["containers"] = "none"
    null = pod("null", 4)
    null["spec"]["tolerations"] = None
    scene.connection.replies = [page(5, pod("a", 1), bad, null)]
    scene.connection.streams = [[line("ADDED", {**bad, "kind": "Pod"}) + line("ADDED", pod("c", 9)), HANG]]
    assert await scene.play() == ["+a:1", "+null:4", "synced Pod", "+c:9"]
    assert "pod a/bad: spec.containers: invalid value 'none'" in caplog.text


async def test_resources_of_plugins_arrive_as_plain_content() -> None:
    scene = Scene(streams=False, watched=custom("widgets.v1.example.com"))
    scene.connection.replies = [page(5, {**pod("w", 1), "weight": 3})]
    assert await scene.play() == ["+w:1", "synced widgets.v1.example.com"]
    assert scene.reflector.objects["a/w"].content["weight"] == 3
    assert scene.connection.requests[0][1] == "/apis/example.com/v1/widgets?limit=2"


@pytest.mark.parametrize(("server_version", "news"), [(9, ["-a:1", "+b:7"]), (50, [])], ids=["went back", "went on"])
async def test_a_server_that_comes_back_is_asked_whether_it_went_back(server_version: int, news: list[str]) -> None:
    scene = Scene(streams=False)
    again = page(server_version, pod("b", 7))
    scene.connection.replies = [page(40, pod("a", 1)), again, again]
    scene.connection.streams = [Unreachable("connection refused"), [HANG]]
    assert await scene.play(seconds=3.0) == ["+a:1", "synced Pod", *news]
    assert scene.connection.requests[1][1] == "/api/v1/pods?limit=1"


def refused_list() -> Any:
    return status(403, "Forbidden", "volumeattachments.storage.k8s.io is forbidden")


async def test_a_forbidden_kind_is_left_out_and_followed_when_it_may_be(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(streams=False, watched=row_of(VolumeAttachment, "attached volumes are not counted"))
    scene.connection.replies = [*(refused_list() for _ in range(4)), page(5, {"metadata": {"name": "va"}})]
    waiting = asyncio.create_task(scene.reflector.wait_synced())
    task = asyncio.create_task(scene.reflector.run())
    await settle()
    await scene.clock.advance(1.0)  # two refusals: a server that starts may not know its roles yet
    assert not waiting.done()
    await scene.clock.advance(2.0)
    await waiting
    assert (scene.reflector.is_left_out, scene.reflector.is_synced, scene.told.news) == (True, False, [])
    why = "volumeattachments.storage.k8s.io is forbidden: bind this user to the ClusterRole system:kube-scheduler, or grant"
    said = f"volumeattachments are left out: {why} the verb named here; attached volumes are not counted"
    await scene.clock.advance(20.0)
    task.cancel()
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [said]
    assert scene.told.news == ["+va:", "synced VolumeAttachment"]
    assert not scene.reflector.is_left_out


async def test_pods_that_may_not_be_listed_are_waited_for() -> None:
    scene = Scene(streams=False)
    scene.connection.replies = [*(refused_list() for _ in range(4)), page(5, pod("a", 1))]
    assert await scene.play(seconds=6.0) == []
    assert not scene.reflector.is_left_out and scene.reflector.trouble


RULES = row_of(DeviceTaintRule, "devices have only the taints of their slices")


async def test_a_server_that_is_upgraded_is_followed_in_the_version_that_it_has_now() -> None:
    scene = Scene(streams=False, watched=RULES)
    scene.reflector = Reflector(
        scene.connection,  # type: ignore[arg-type]
        RULES,
        scene.told,
        api_version="resource.k8s.io/v1beta2",
        streams=False,
        chance=FakeChance(),
    )
    rule = {"metadata": {"name": "r", "resourceVersion": "3", "uid": "u"}}

    def serve(method: str, path: str, body: bytes | None) -> Any:
        if path == "/version":
            return {"major": "1", "minor": "37"}
        if path == "/apis/resource.k8s.io/v1":
            return {"resources": [{"name": "devicetaintrules"}]}
        if path.startswith("/apis/resource.k8s.io/v1/devicetaintrules?"):
            return page(9, rule)
        return status(404, "NotFound")

    scene.connection.replies = [page(5, rule), *([serve] * 8)]
    scene.connection.streams = [status(404, "NotFound")]
    news = await scene.play(seconds=2.0)
    assert news == ["+r:3", "synced DeviceTaintRule", "r:3>3"], "the same object, in its new version"
    assert scene.reflector.api_version == scene.reflector.objects["r"].api_version == "resource.k8s.io/v1"


async def test_a_kind_that_is_not_served_is_looked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(streams=False, watched=RULES)
    scene.reflector = Reflector(
        scene.connection,  # type: ignore[arg-type]
        RULES,
        scene.told,
        api_version=None,
        streams=False,
        chance=FakeChance(),
    )
    served: list[str] = []

    def serve(method: str, path: str, body: bytes | None) -> Any:
        if path == "/version":
            return {"major": "1", "minor": "37"}
        if path.endswith("/devicetaintrules?limit=2000"):
            return page(9, {"metadata": {"name": "r"}})
        return {"resources": [{"name": name} for name in served]} if path.endswith("/v1beta2") else status(404, "NotFound")

    scene.connection.replies = [serve] * 100
    task = asyncio.create_task(scene.reflector.run())
    await scene.reflector.wait_synced()
    assert scene.reflector.is_left_out and not scene.reflector.is_synced
    served.append("devicetaintrules")
    await scene.clock.advance(2.0)
    task.cancel()
    assert "devicetaintrules are left out: the server does not serve them in resource.k8s.io/v1 or" in caplog.text
    assert (scene.reflector.api_version, list(scene.reflector.objects)) == ("resource.k8s.io/v1beta2", ["r"])
