"""What is done to a soak's processes and nodes, one fault after another, and how long nothing was bound because of it.

In: the processes, the users, how often. Out: a `Fault` each. The faults take turns in the order of `KINDS`. A fault is over
when a pod that was asked for after it is bound, and none begins before the last one is over: how long that takes is what is
measured, and on busy cores it may be minutes. Replacing whoever ended is left to `Replicas`.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from kubesched.errors import SchedulerError
from kubesched.tools.bench.soak.churn import Users
from kubesched.tools.bench.soak.replicas import Replicas

KINDS = ("terminate", "nodes", "kill", "freeze", "server")
"""SIGTERM to the leader, a hundredth of the nodes lost for a while, SIGKILL to the leader, SIGSTOP to the leader until its
lease has run out and SIGCONT then, SIGKILL to the API server."""
FROZEN_SECONDS = 40.0
"""Longer than kube-scheduler's own lease of 15 s, and long enough for another to lead meanwhile."""
LOST_SECONDS = 45.0
LOST_SHARE = 0.01
_LOOK_SECONDS = 0.25
_PATIENCE_SECONDS = 60.0
"""How long a scheduler that has lost its lease may go on."""


@dataclass(slots=True)
class Fault:
    """One fault: when, what, to whom, and how long afterwards the first pod was bound that was asked for after it."""

    kind: str
    at: float
    whom: str
    bound_after: float | None = None
    away: float | None = None
    """For how long there was no API server."""
    complaint: str = ""
    """What should have happened and did not."""


class Faults:
    """Does harm in turns."""

    def __init__(self, replicas: Replicas, users: Users, kinds: tuple[str, ...]) -> None:
        self.done: list[Fault] = []
        self._replicas, self._users = replicas, users
        self._kinds = tuple(kind for kind in kinds if kind != "server" or replicas.server is not None)
        self._now = users.ledger.clock
        users.ledger.on_bound = self._bound

    def _bound(self, asked: float, now: float) -> None:
        """Take notice of a binding: it ends the faults that were before its pod was asked for."""
        for fault in reversed(self.done):
            if fault.bound_after is not None:
                break
            if asked >= fault.at:
                fault.bound_after = now - fault.at

    async def run(self, every_seconds: float, until: Callable[[], bool]) -> None:
        """Do the faults in turns; the last one is done before the end. One that breaks down is a complaint, and the last."""
        next_at = self._now() + every_seconds
        while self._kinds and not until():
            await asyncio.sleep(_LOOK_SECONDS)
            if self._now() >= next_at and self._is_calm():
                next_at = self._now() + every_seconds
                try:
                    await self._one(self._kinds[len(self.done) % len(self._kinds)])
                except SchedulerError as error:
                    self.done[-1].complaint = str(error)
                    return

    def _is_calm(self) -> bool:
        """Return whether pods are bound again since the last fault, by a leader who can be the victim of the next one."""
        return self._replicas.leader is not None and (not self.done or self.done[-1].bound_after is not None)

    async def _one(self, kind: str) -> None:
        if kind == "nodes":
            fault = self._begin(kind, "")
            lost = await self._users.lose_nodes(max(1, int(self._users.n_nodes * LOST_SHARE)))
            fault.whom = f"{len(lost)} nodes"
            await asyncio.sleep(LOST_SECONDS)
            await self._users.bring_back(lost)
        elif kind == "server":
            server = self._replicas.server
            assert server is not None
            fault = self._begin(kind, server.name)
            await server.end(signal.SIGKILL)
            await self._replicas.start_server()
            fault.away = self._now() - fault.at
        else:
            await self._to_the_leader(kind)

    async def _to_the_leader(self, kind: str) -> None:
        leader = self._replicas.leader
        assert leader is not None
        fault = self._begin(kind, leader.name)
        if kind != "freeze":
            await leader.end(signal.SIGTERM if kind == "terminate" else signal.SIGKILL)
            return
        leader.has_to_end = True
        leader.send(signal.SIGSTOP)
        await asyncio.sleep(FROZEN_SECONDS)
        leader.send(signal.SIGCONT)
        # Its lease has run out, so it has to end by itself, as kube-scheduler does.
        if not await within(_PATIENCE_SECONDS, lambda: not leader.is_running):
            fault.complaint = f"{leader.name} did not end though it had lost its lease"
            await leader.end(signal.SIGKILL)

    def _begin(self, kind: str, whom: str) -> Fault:
        self.done.append(Fault(kind, self._now(), whom))
        return self.done[-1]


async def within(seconds: float, is_so: Callable[[], bool]) -> bool:
    """Wait until something is so, but not longer; return whether it is. What processes do makes no event to wait for."""
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_SECONDS)
    return is_so()
