"""Putting an engine together: what is handed in is what is used."""

from __future__ import annotations

from kubesched import config
from kubesched.engine.assembly import Ports, assemble, default_configuration
from kubesched.engine.inbox import Inbox
from kubesched.engine.loop import Engine


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
    one.queue._cycle = other.queue._cycle = 1
    one.handle.random.randrange(1000)
    one.queue._cycle = other.queue._cycle = 2
    assert one.handle.random.randrange(1000) == other.handle.random.randrange(1000), "the attempt before asked once more"
