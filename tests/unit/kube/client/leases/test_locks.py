"""A record in two places: old and new leaders see each other, and an odd state is nobody's."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from client_fakes import FakeChance, status

from kubesched.errors import Conflict
from kubesched.kube.client.leases.leader_election import Callbacks, LeaderElector
from kubesched.kube.client.leases.locks import LEADER_ANNOTATION, LOCKS, UNKNOWN, Record
from kubesched.testing.fakes import FakeClock, settle

OLD, NEW = "endpoints", "leases"


class Cabinet:
    """A server with one object for each path."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.objects: dict[str, dict[str, Any]] = {}
        self.version = 0

    async def request(self, method: str, path: str, body: bytes | None = None, content_type: str = "") -> bytes:
        kind = next(part for part in path.split("/") if part in ("endpoints", "leases", "configmaps"))
        found = self.objects.get(kind)
        sent = json.loads(body) if body else {}
        if method in ("GET", "PUT") and found is None:
            raise status(404, "NotFound")
        if method == "POST" and found is not None:
            raise status(409, "AlreadyExists")
        stale = (
            found is not None and sent and sent["metadata"].get("resourceVersion") != str(found["metadata"]["resourceVersion"])
        )
        if method == "PUT" and stale:
            raise status(409, "Conflict")
        if method in ("POST", "PUT"):
            self.version += 1
            self.objects[kind] = {**sent, "metadata": {**sent["metadata"], "resourceVersion": str(self.version)}}
        return json.dumps(self.objects[kind]).encode()

    def holder(self, kind: str) -> str:
        found = self.objects[kind]
        if kind == "leases":
            return str(found["spec"]["holderIdentity"])
        return str(json.loads(found["metadata"]["annotations"][LEADER_ANNOTATION])["holderIdentity"])


@pytest.fixture
def cabinet() -> Cabinet:
    return Cabinet(FakeClock())


def lock(cabinet: Cabinet, kind: str, who: str) -> Any:
    return LOCKS[kind](cabinet, who, "kube-system", "kube-scheduler")  # type: ignore[arg-type]


def candidate(cabinet: Cabinet, kind: str, who: str, news: list[str]) -> asyncio.Task[None]:
    callbacks = Callbacks(on_started=lambda: news.append(f"{who} leads"))
    elector = LeaderElector(
        lock(cabinet, kind, who), callbacks, clock=cabinet.clock, chance=FakeChance(0.0), release_on_cancel=False
    )
    return asyncio.create_task(elector.run())


async def end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(("kind", "old"), [("endpointsleases", "endpoints"), ("configmapsleases", "configmaps")])
async def test_the_record_is_in_both_places(cabinet: Cabinet, kind: str, old: str) -> None:
    news: list[str] = []
    task = candidate(cabinet, kind, "one", news)
    await settle()
    await cabinet.clock.advance(6.0)
    assert news == ["one leads"]
    assert set(cabinet.objects) == {old, "leases"}
    assert (cabinet.holder(old), cabinet.holder("leases")) == ("one", "one")
    await end(task)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("endpoints", "endpointsleases"),
        ("leases", "endpointsleases"),
        ("endpointsleases", "endpoints"),
        ("endpointsleases", "leases"),
    ],
)
async def test_leaders_of_either_kind_see_each_other(cabinet: Cabinet, first: str, second: str) -> None:
    news: list[str] = []
    one = candidate(cabinet, first, "one", news)
    await settle()
    two = candidate(cabinet, second, "two", news)
    await cabinet.clock.advance(30.0)
    assert news == ["one leads"]
    await end(one)
    await cabinet.clock.advance(40.0)
    assert news == ["one leads", "two leads"]
    await end(two)


async def test_two_names_in_two_places_are_an_unknown_leader(cabinet: Cabinet) -> None:
    await lock(cabinet, OLD, "one").create(Record("one", 15, 1.0, 1.0))
    await lock(cabinet, NEW, "two").create(Record("two", 15, 1.0, 7.0))
    assert (await lock(cabinet, "endpointsleases", "me").get()) == Record(UNKNOWN, 15, 1.0, 7.0)


async def test_a_lease_that_is_not_there_yet_is_made(cabinet: Cabinet) -> None:
    await lock(cabinet, OLD, "one").create(Record("one", 15, 1.0, 1.0))
    both = lock(cabinet, "endpointsleases", "one")
    assert (await both.get()).holder == "one"
    await both.update(Record("one", 15, 1.0, 2.0))
    assert cabinet.holder(NEW) == "one"


async def test_whoever_loses_the_old_place_does_not_touch_the_new_one(cabinet: Cabinet) -> None:
    both = lock(cabinet, "endpointsleases", "one")
    await both.create(Record("one", 15, 1.0, 1.0))
    stale = lock(cabinet, "endpointsleases", "two")
    await stale.get()
    await both.update(Record("one", 15, 1.0, 2.0))
    with pytest.raises(Conflict):
        await stale.update(Record("two", 15, 3.0, 3.0))
    assert cabinet.holder(NEW) == "one"
