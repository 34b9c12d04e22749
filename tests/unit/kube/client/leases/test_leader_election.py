"""Leader election: one leads, others wait as long as they must, and losing the lock ends leading at once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from client_fakes import FakeChance, status

from kubesched.errors import ConfigError, MalformedObject, SchedulerError, Unreachable
from kubesched.kube.client.leases.leader_election import Callbacks, LeaderElector, Timing
from kubesched.kube.client.leases.locks import LEADER_ANNOTATION, ConfigMapLock, EndpointsLock, LeaseLock, Record, make_identity
from kubesched.testing.fakes import FakeClock, settle


class Shelf:
    """An API server that holds one object, checks versions, and can be cut off."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.object: dict[str, Any] | None = None
        self.version = 0
        self.away: SchedulerError | None = None
        self.n_requests = 0
        self.hangs = False

    async def request(self, method: str, path: str, body: bytes | None = None, content_type: str = "") -> bytes:
        self.n_requests += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.away is not None:
            raise self.away
        sent = json.loads(body) if body else None
        if method == "GET" and self.object is None:
            raise status(404, "NotFound")
        if method == "POST":
            if self.object is not None:
                raise status(409, "AlreadyExists")
            self._store(sent)
        if method == "PUT":
            assert self.object is not None
            if sent["metadata"].get("resourceVersion") != self.object["metadata"]["resourceVersion"]:
                raise status(409, "Conflict")
            self._store(sent)
        return json.dumps(self.object).encode()

    def _store(self, sent: dict[str, Any]) -> None:
        self.version += 1
        self.object = {**sent, "metadata": {**sent["metadata"], "resourceVersion": str(self.version)}}

    @property
    def spec(self) -> dict[str, Any]:
        assert self.object is not None
        spec: dict[str, Any] = self.object["spec"]
        return spec


class Candidate:
    """An elector that writes down what it was told."""

    def __init__(self, shelf: Shelf, name: str, lock: type = LeaseLock, **options: Any) -> None:
        self.news: list[str] = []
        self.elector = LeaderElector(
            lock(shelf, name, "kube-system", "kube-scheduler"),
            Callbacks(
                on_started=lambda: self.news.append("started"),
                on_stopped=lambda: self.news.append("stopped"),
                on_new_leader=lambda leader: self.news.append(f"leader {leader}"),
                on_slow_renewal=lambda: self.news.append("slow"),
            ),
            clock=shelf.clock,
            chance=FakeChance(options.pop("luck", 0.0)),
            **options,
        )
        self.task = asyncio.create_task(self.elector.run())

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf(FakeClock())


async def test_the_first_creates_the_lease_and_renews_it_every_two_seconds(shelf: Shelf) -> None:
    one = Candidate(shelf, "one")
    await settle()
    assert one.news == ["leader one", "started"]
    assert shelf.spec == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "acquireTime": "2023-11-14T22:13:20.000000Z",
        "renewTime": "2023-11-14T22:13:20.000000Z",
        "leaseTransitions": 0,
    }
    await shelf.clock.advance(10.0)
    assert shelf.n_requests == 2 + 5  # get, create, and one request a renewal
    assert shelf.spec["renewTime"] == "2023-11-14T22:13:30.000000Z"
    assert shelf.spec["acquireTime"] == "2023-11-14T22:13:20.000000Z"
    await one.stop()


@pytest.mark.parametrize("lock", [LeaseLock, EndpointsLock, ConfigMapLock])
async def test_a_standby_takes_over_when_the_record_has_not_changed_for_its_duration(shelf: Shelf, lock: type) -> None:
    one = Candidate(shelf, "one", lock, release_on_cancel=False)
    await settle()
    two = Candidate(shelf, "two", lock)
    await shelf.clock.advance(4.0)
    await one.stop()  # as if killed: nothing is released
    await shelf.clock.advance(14.0)
    assert "started" not in two.news
    await shelf.clock.advance(4.0)
    assert two.news == ["leader one", "leader two", "started"]
    await two.stop()
    assert two.news[-2:] == ["stopped", "leader "]


async def test_a_slow_look_does_not_take_the_lease_before_its_time(shelf: Shelf) -> None:
    """A try counts from its beginning: the time of acquiring that it writes down is never within the other's lease."""
    one = Candidate(shelf, "one", release_on_cancel=False)
    await settle()
    await one.stop()
    two = Candidate(shelf, "two", release_on_cancel=False)
    await shelf.clock.advance(13.0)
    answer = shelf.request

    async def slow(method: str, *more: Any) -> bytes:
        if method == "GET":
            await shelf.clock.sleep(1.5)
        return await answer(method, *more)

    shelf.request = slow  # type: ignore[method-assign]
    await shelf.clock.advance(10.0)
    assert two.news[-1] == "started"
    assert shelf.spec["acquireTime"] >= "2023-11-14T22:13:35"
    await two.stop()


async def test_taking_over_counts_a_transition(shelf: Shelf) -> None:
    one = Candidate(shelf, "one", release_on_cancel=False)
    await settle()
    await one.stop()
    two = Candidate(shelf, "two", release_on_cancel=False)
    await shelf.clock.advance(20.0)
    assert (shelf.spec["holderIdentity"], shelf.spec["leaseTransitions"]) == ("two", 1)
    assert shelf.spec["acquireTime"] > "2023-11-14T22:13:34"
    await two.stop()


async def test_stepping_down_lets_the_lease_go_so_the_next_need_not_wait(shelf: Shelf) -> None:
    one = Candidate(shelf, "one")
    await settle()
    two = Candidate(shelf, "two")
    await shelf.clock.advance(1.0)
    await one.stop()
    assert one.news[:3] == ["leader one", "started", "stopped"]
    assert (shelf.spec["holderIdentity"], shelf.spec["leaseDurationSeconds"]) == ("", 1)
    await shelf.clock.advance(2.5)
    assert two.news[-1] == "started"
    await two.stop()


async def test_a_renewal_that_was_under_way_does_not_keep_the_lease_from_being_released(shelf: Shelf) -> None:
    one = Candidate(shelf, "one")
    await settle()
    answer, n_seen = shelf.request, 0

    async def overtaken(method: str, *more: Any) -> bytes:
        """Let a renewal that was sent before arrive behind the first look."""
        nonlocal n_seen
        found = await answer(method, *more)
        if method == "GET" and not n_seen:
            n_seen += 1
            shelf._store(json.loads(found))
        return found

    shelf.request = overtaken  # type: ignore[method-assign]
    await one.stop()
    assert (n_seen, shelf.spec["holderIdentity"]) == (1, "")


async def test_waiting_candidates_spread_their_tries(shelf: Shelf) -> None:
    one = Candidate(shelf, "one")
    await settle()
    shelf.clock.slept.clear()
    two = Candidate(shelf, "two", luck=0.5)
    await settle()
    assert shelf.clock.slept == [2.0 * (1 + 1.2 * 0.5)]
    await one.stop()
    await two.stop()


async def test_a_leader_that_cannot_renew_within_the_deadline_stops(shelf: Shelf) -> None:
    one = Candidate(shelf, "one")
    await settle()
    shelf.away = Unreachable("away")
    await shelf.clock.advance(11.5)
    assert "stopped" not in one.news
    await shelf.clock.advance(1.0)
    assert one.news[-1] == "stopped"
    await settle()
    assert one.task.done() and one.task.exception() is None


async def test_a_request_that_never_ends_does_not_keep_a_leader_leading(shelf: Shelf) -> None:
    one = Candidate(shelf, "one")
    await settle()
    shelf.hangs = True
    await shelf.clock.advance(12.0)
    assert one.news[-1] == "stopped"


async def test_a_leader_that_finds_another_name_stops_at_once(shelf: Shelf) -> None:
    one = Candidate(shelf, "one")
    await settle()
    shelf.clock.time += 60  # frozen, and thawed after the lease ran out
    assert shelf.object is not None
    shelf._store({**shelf.object, "spec": {**shelf.spec, "holderIdentity": "two", "leaseTransitions": 1}})
    await shelf.clock.advance(0.0)
    assert one.news == ["leader one", "started", "leader two", "stopped"]
    assert shelf.spec["holderIdentity"] == "two"


async def test_a_passing_conflict_is_mended_the_long_way(shelf: Shelf) -> None:
    one = Candidate(shelf, "one")
    await settle()
    assert shelf.object is not None
    shelf._store({**shelf.object, "metadata": {**shelf.object["metadata"], "labels": {"touched": "yes"}}})
    await shelf.clock.advance(4.0)
    assert one.news == ["leader one", "started", "slow"]
    assert shelf.object["metadata"]["labels"] == {"touched": "yes"}
    await one.stop()


async def test_clocks_that_jump_do_not_matter(shelf: Shelf) -> None:
    one = Candidate(shelf, "one", release_on_cancel=False)
    await settle()
    assert shelf.object is not None
    shelf._store({**shelf.object, "spec": {**shelf.spec, "renewTime": "1999-01-01T00:00:00.000000Z"}})
    await one.stop()
    two = Candidate(shelf, "two")
    await shelf.clock.advance(14.0)
    assert "started" not in two.news
    await two.stop()


async def test_the_endpoints_lock_keeps_its_record_in_an_annotation(shelf: Shelf) -> None:
    one = Candidate(shelf, "one", EndpointsLock)
    await settle()
    assert shelf.object is not None
    record = json.loads(shelf.object["metadata"]["annotations"][LEADER_ANNOTATION])
    assert record == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "acquireTime": "2023-11-14T22:13:20Z",
        "renewTime": "2023-11-14T22:13:20Z",
        "leaderTransitions": 0,
    }
    await one.stop()


async def test_an_endpoints_object_without_a_record_is_free(shelf: Shelf) -> None:
    shelf._store({"metadata": {"name": "kube-scheduler"}})
    lock = EndpointsLock(shelf, "me", "kube-system", "kube-scheduler")  # type: ignore[arg-type]
    assert await lock.get() == Record()
    one = Candidate(shelf, "one", EndpointsLock)
    await settle()
    assert one.news == ["leader one", "started"]
    await one.stop()


async def test_a_record_that_cannot_be_read_is_named(shelf: Shelf) -> None:
    shelf._store({"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": "many"}})
    with pytest.raises(MalformedObject, match="lease kube-system/l: record"):
        await LeaseLock(shelf, "me", "kube-system", "l").get()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lease", "renew", "retry", "complaint"),
    [
        (10, 10, 2, "leaseDuration must be greater than renewDeadline"),
        (15, 2.4, 2, "renewDeadline must be greater than retryPeriod*JitterFactor"),
        (0.9, 0.5, 0.1, "leaseDuration must be greater than zero"),
        (15, 10, 0, "retryPeriod must be greater than zero"),
    ],
)
def test_times_that_do_not_fit_together_are_refused(lease: float, renew: float, retry: float, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Timing(lease, renew, retry)
    assert str(caught.value) == f"couldn't create leader elector: {complaint}"


def test_requests_of_the_election_are_short() -> None:
    assert Timing().request_timeout == 5.0
    assert Timing(4, 1.5, 1).request_timeout == 1.0


def test_identities_differ() -> None:
    assert make_identity() != make_identity()
