"""The fence: a leader writes only while its word holds, counted from when it was sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from client_fakes import BOUND, FakeChance

from kubesched.errors import Conflict, NotFound
from kubesched.kube.api.meta import ObjectMeta
from kubesched.kube.api.pod import Pod
from kubesched.kube.client.connection import Connection
from kubesched.kube.client.leases.fencing import FencedConnection, FencedLock, LeaseLost
from kubesched.kube.client.leases.leader_election import Callbacks, LeaderElector, Timing
from kubesched.kube.client.leases.locks import Record
from kubesched.kube.client.transport import Answer
from kubesched.kube.client.writes.writer import Writer
from kubesched.testing.fakes import FakeClock, settle


class Shelf:
    """A lock that answers after a while, or not at all."""

    def __init__(self, clock: FakeClock, identity: str = "me") -> None:
        self.identity = identity
        self.clock = clock
        self.record: Record | None = None
        self.delay = 0.0
        self.refuses = False

    async def get(self) -> Record:
        if self.record is None:
            raise NotFound(404, "NotFound", "no lock")
        return self.record

    async def create(self, record: Record) -> Record:
        return await self.update(record)

    async def update(self, record: Record) -> Record:
        if self.refuses:
            raise Conflict(409, "Conflict", "changed")
        self.record = record
        if self.delay:
            await self.clock.sleep(self.delay)
        return record


class Wire:
    """A transport that counts what is sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.connecting: Callable[[], None] = lambda: None

    async def send(
        self, method: str, path: str, headers: object, body: object, limit: object, before_write: Callable[[], None]
    ) -> Answer:
        self.connecting()
        if method != "GET":
            before_write()
        self.sent.append(f"{method} {path}")
        return Answer(201, None, json.dumps(BOUND).encode())


async def test_a_word_holds_from_when_it_was_sent_not_from_when_it_was_answered() -> None:
    clock = FakeClock()
    shelf = Shelf(clock)
    lock = FencedLock(shelf, 10.0, clock)
    assert not lock.holds
    shelf.delay = 4.0
    await clock.run(lock.create(Record("me", 10)))
    assert lock.holds
    await clock.advance(5.0)  # 9 seconds after it was sent
    assert lock.holds
    await clock.advance(0.6)  # half a second is left for the way
    assert not lock.holds


@pytest.mark.parametrize("how", ["release", "other leader", "refused"])
async def test_a_word_ends(how: str) -> None:
    clock = FakeClock()
    shelf = Shelf(clock)
    lock = FencedLock(shelf, 10.0, clock)
    await lock.update(Record("me", 10))
    if how == "release":
        shelf.delay = 3.0
        releasing = asyncio.create_task(lock.update(Record("", 1)))
        await settle()
        assert not lock.holds  # already before the server has answered
        await clock.advance(3.0)
        await releasing
    elif how == "other leader":
        shelf.record = Record("you", 10)
        await lock.get()
    else:
        shelf.refuses = True
        with pytest.raises(Conflict):
            await lock.update(Record("me", 10))
        assert lock.holds  # what was promised before stands, but is not made longer
        await clock.advance(10.0)
    assert not lock.holds


async def test_nothing_is_sent_once_the_word_is_over_not_even_what_waited_for_the_limiter() -> None:
    clock = FakeClock()
    wire = Wire()
    is_open = True
    plain = Connection(wire, qps=1.0, burst=1, clock=clock)  # type: ignore[arg-type]
    writer = Writer(FencedConnection(plain, lambda: is_open))
    first, second = (Pod(metadata=ObjectMeta(name=name, namespace="a", uid=name)) for name in ("p1", "p2"))
    await writer.bind(first, "n1")
    waiting = asyncio.create_task(writer.bind(second, "n1"))
    await settle()
    is_open = False
    await clock.advance(2.0)
    with pytest.raises(LeaseLost):
        await waiting
    assert wire.sent == ["POST /api/v1/namespaces/a/pods/p1/binding"]
    assert await FencedConnection(plain, lambda: False).request("GET", "/x")


async def test_nothing_is_sent_once_the_word_is_over_not_even_what_waited_for_a_connection() -> None:
    wire, word = Wire(), ["holds"]
    wire.connecting = word.clear
    writer = Writer(FencedConnection(Connection(wire, clock=FakeClock()), lambda: bool(word)))  # type: ignore[arg-type]
    with pytest.raises(LeaseLost):
        await writer.bind(Pod(metadata=ObjectMeta(name="p1", namespace="a", uid="p1")), "n1")
    assert not wire.sent


async def test_a_frozen_leader_writes_again_only_after_it_renewed() -> None:
    clock = FakeClock()
    shelf = Shelf(clock)
    lock = FencedLock(shelf, 15.0, clock)
    elector = LeaderElector(lock, Callbacks(), Timing(), clock=clock, chance=FakeChance())
    leading = asyncio.create_task(elector.run())
    await settle()
    assert lock.holds
    clock.time += 60.0  # the process was stopped; nothing ran meanwhile
    assert not lock.holds
    await clock.advance(2.0)  # nobody else was there to take the lead
    assert lock.holds
    leading.cancel()
    await asyncio.gather(leading, return_exceptions=True)
    assert not lock.holds
