"""Faults in the processes and nodes of a soak, one after another, and how long each one stops the bindings.

In: the processes, the users, the interval. Out: a `Fault` for each. The kinds alternate in the order of `KINDS`. A fault is
over when a pod that was created after it is bound. The next one starts only then, which may take minutes on busy cores.
`Replicas` starts processes again.
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
"""How long a scheduler may run after it has lost its lease."""


@dataclass(slots=True)
class Fault:
    """One fault, and how long after it the first pod was bound that was created after it."""

    kind: str
    at: float
    whom: str
    bound_after: float | None = None
    away: float | None = None
    """How long the API server was down."""
    complaint: str = ""
    """What did not happen as it should; empty if all did."""


class Faults:
    """Causes the faults."""

    def __init__(self, replicas: Replicas, users: Users, kinds: tuple[str, ...]) -> None:
        self.done: list[Fault] = []
        self._replicas, self._users = replicas, users
        self._kinds = tuple(kind for kind in kinds if kind != "server" or replicas.server is not None)
        self._now = users.ledger.clock
        users.ledger.on_bound = self._bound

    def _bound(self, created: float, now: float) -> None:
        """End the faults that were before the creation of a pod that is bound now."""
        for fault in reversed(self.done):
            if fault.bound_after is not None:
                break
            if created >= fault.at:
                fault.bound_after = now - fault.at

    async def run(self, every_seconds: float, until: Callable[[], bool]) -> None:
        """Cause a fault at each interval, until `until` returns true. An error is recorded as a complaint and ends it."""
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
        """Return whether pods are bound again since the last fault, and there is a leader."""
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
        # Its lease has expired, so it has to exit by itself, as kube-scheduler does.
        if not await within(_PATIENCE_SECONDS, lambda: not leader.is_running):
            fault.complaint = f"{leader.name} did not end though it had lost its lease"
            await leader.end(signal.SIGKILL)

    def _begin(self, kind: str, whom: str) -> Fault:
        self.done.append(Fault(kind, self._now(), whom))
        return self.done[-1]


async def within(seconds: float, is_so: Callable[[], bool]) -> bool:
    """Wait until a condition is true, at most `seconds`; return whether it is. It is polled: processes send no events."""
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_SECONDS)
    return is_so()
