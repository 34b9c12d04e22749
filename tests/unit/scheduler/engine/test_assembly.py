"""Putting an engine together: what is handed in is what is used."""

from __future__ import annotations

from kubesched.scheduler import config
from kubesched.scheduler.engine.arrivals.inbox import Changed, Inbox
from kubesched.scheduler.engine.assembly import Ports, assemble, default_configuration
from kubesched.scheduler.engine.loop import Engine
from kubesched.testing import node, pod
from kubesched.testing.fakes import FakeClock


def assembled(seed: int = 0, inbox: Inbox | None = None) -> Engine:
    gates = config.Gates.defaults()
    return assemble(default_configuration(gates), gates, Ports(seed=seed), inbox=inbox)


def test_an_empty_inbox_that_is_handed_in_is_used() -> None:
    inbox = Inbox()
    assert not len(inbox)
    assert assembled(inbox=inbox).inbox is inbox, "what arrives while one engine takes over from another must not get lost"


def test_chance_follows_from_the_seed_and_the_attempt_and_not_from_how_often_it_was_asked() -> None:
    one, other, third = assembled(7), assembled(7), assembled(8)
    first = [one.handle.random.randrange(1000) for _ in range(5)]
    assert [other.handle.random.randrange(1000) for _ in range(5)] == first
    assert [third.handle.random.randrange(1000) for _ in range(5)] != first
    one.queue._in_flight.n_started = other.queue._in_flight.n_started = 1
    one.handle.random.randrange(1000)
    one.queue._in_flight.n_started = other.queue._in_flight.n_started = 2
    assert one.handle.random.randrange(1000) == other.handle.random.randrange(1000), "the attempt before asked once more"


class Adjusted(FakeClock):
    """A clock on the wall that somebody puts right."""

    offset = 0.0

    def now(self) -> float:
        return self.time + self.offset


async def test_a_pause_ends_in_time_when_the_clock_on_the_wall_is_put_back() -> None:
    clock, gates = Adjusted(), config.Gates.defaults()
    engine = assemble(default_configuration(gates), gates, Ports(clock=clock))
    small, large = node("n", cpu="1"), node("n", cpu="4")
    engine.inbox.post(Changed("Node", None, small))
    engine.inbox.post(Changed("Pod", None, pod("p", requests={"cpu": "2"})))
    engine.turn()
    assert engine.queue.n_unschedulable == 1
    engine.inbox.post(Changed("Node", small, large))
    engine.take_in()
    assert engine.queue.n_backoff == 1
    clock.offset = -3600.0
    clock.time += 3.0
    engine.flush()
    assert engine.queue.n_active == 1
    await engine.abandon()
