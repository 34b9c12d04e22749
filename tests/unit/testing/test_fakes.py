"""The fakes keep what they are told, fail when they are asked to, and wait for nobody."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.errors import Conflict
from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.resource import ResourceClaim
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.framework.ports import Clock, Recorder, Writer
from kubesched.testing import FakeClock, FakeRecorder, FakeWriter, pod

BUSY = Conflict(409, "Conflict", "changed meanwhile")


def claim(name: str = "", **meta: str) -> ResourceClaim:
    return ResourceClaim(metadata=ObjectMeta(name=name, namespace="default", **meta))


async def test_sleepers_wake_in_order_when_the_clock_is_moved() -> None:
    clock: Clock
    clock, woken = (made := FakeClock(100.0)), []

    async def sleep(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((seconds, clock.now()))

    tasks = [asyncio.create_task(sleep(seconds)) for seconds in (3.0, 1.0, 9.0)]
    await made.advance(5.0)
    assert woken == [(1.0, 101.0), (3.0, 103.0)] and made.monotonic() == 105.0
    await made.run(asyncio.gather(*tasks))
    assert woken[-1] == (9.0, 109.0) and made.slept == [3.0, 1.0, 9.0]
    with pytest.raises(AssertionError, match="neither ends nor sleeps"):
        await made.run(asyncio.Event().wait())


async def test_a_clock_that_jumps_lets_things_happen_on_the_way() -> None:
    clock, happened = FakeClock(0.0, jumps=True), []
    clock.at = {2.0: lambda: happened.append("two"), 9.0: lambda: happened.append("nine")}
    await clock.sleep(1.0)
    assert not happened
    await clock.sleep(1.5)
    assert happened == ["two"] and clock.now() == 2.5


async def test_writes_are_kept_and_objects_follow() -> None:
    store = Store()
    writer: Writer = (made := FakeWriter(store.objects))
    await writer.bind(store.view(pod("web")), "n1")
    stored = await writer.create(claim(generate_name="c-"))
    changed = await writer.update(stored, "status")
    assert (stored.name, changed.metadata.resource_version) == ("c-1", "102")
    assert store.objects.get(ResourceClaim, "c-1", "default") is changed
    await writer.delete(changed)
    assert store.objects.get(ResourceClaim, "c-1", "default") is None
    assert made.lines == ["bind web", "create c-1", "update/status c-1", "delete c-1"]
    assert made.calls[0] == ("bind", "web", "n1") and made.said("bind") == ["web"]


async def test_a_writer_fails_when_it_is_told_to() -> None:
    writer = FakeWriter()
    writer.failures, writer.fails["update", "b"] = [None, BUSY], BUSY
    assert (await writer.update(claim("a"))).name == "a"
    with pytest.raises(Conflict):
        await writer.update(claim("a"))
    assert (await writer.update(claim("a"))).name == "a"
    for _ in range(2):
        with pytest.raises(Conflict):
            await writer.update(claim("b"))
    assert writer.said("update") == ["a", "a", "a", "b", "b"] and [each.name for each in writer.written] == ["a", "a"]


async def test_a_call_hangs_until_it_is_let_go() -> None:
    writer = FakeWriter()
    writer.hold["a"] = asyncio.Event()
    task = asyncio.create_task(writer.delete(claim("a")))
    await asyncio.sleep(0)
    assert writer.lines == ["delete a"] and not task.done()
    writer.hold["a"].set()
    await task


def test_events_are_kept() -> None:
    recorder: Recorder = (made := FakeRecorder())
    recorder.event(Store().view(pod("web")), "Normal", "Waiting", "Scheduling", "for lunch")
    assert made.events == [("web", "Normal", "Waiting", "Scheduling", "for lunch")]
