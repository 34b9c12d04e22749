"""Faults of a soak: one after another, however long the cluster takes to get over one."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from kubesched.tools.bench.soak import faults
from kubesched.tools.bench.soak.churn import Ledger, Users
from kubesched.tools.bench.soak.faults import Faults
from kubesched.tools.bench.soak.replicas import Replicas


class Server:
    """Stands for an API server that takes its time to come back, and for whoever leads."""

    name = "API server"

    def __init__(self) -> None:
        self.leader = self.server = self
        self.may_come_back = asyncio.Event()
        self.n_killed = 0

    async def end(self, number: int) -> None:
        self.n_killed += 1

    async def start_server(self) -> None:
        await self.may_come_back.wait()


class Asking:
    """Stands for the users."""

    def __init__(self) -> None:
        self.ledger = Ledger(lambda: 1000.0)


async def for_a_while() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_the_next_fault_waits_until_pods_are_bound_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "_LOOK_SECONDS", 0.0)
    server, users = Server(), Asking()
    harm = Faults(cast(Replicas, server), cast(Users, users), ("server",))
    is_over = False
    running = asyncio.create_task(harm.run(0.0, lambda: is_over))
    await for_a_while()
    assert (server.n_killed, harm.done[0].away) == (1, None), "it is away, which may take as long as it takes"
    server.may_come_back.set()
    await for_a_while()
    (first,) = harm.done
    assert first.away is not None and not first.complaint, "back, but nothing has been bound yet"
    users.ledger.on_bound(first.at - 1.0, first.at + 5.0)
    await for_a_while()
    assert server.n_killed == 1, "a pod that was asked for before says nothing"
    users.ledger.on_bound(first.at + 1.0, first.at + 7.0)
    await for_a_while()
    assert server.n_killed == 2 and first.bound_after == 7.0
    is_over = True
    await running
