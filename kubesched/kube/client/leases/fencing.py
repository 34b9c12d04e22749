"""The fence: nothing is written in a leader's name once its word may have run out.

In: every record that the election writes, and every write of the leader. Out: the same, or `LeaseLost` instead of a
write that another leader could already be contradicting. A process may be stopped at any instruction and go on a minute
later: asking "do I lead?" before deciding is not enough, so the question is asked again in the very moment before the
bytes go out, after waiting for the limiter and for a connection. A word holds from the moment we sent it, on our own
monotonic clock: whoever else wants to lead has seen it later, and waits as long from then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kubesched.errors import SchedulerError
from kubesched.kube.client.connection import Connection
from kubesched.kube.client.leases.locks import Lock, Record
from kubesched.kube.client.timing import SYSTEM_CLOCK, ClientClock

TRANSIT_SECONDS = 0.5
"""How long before its end a word is no longer relied on: a request takes a while to get there."""

NEVER = float("-inf")


class LeaseLost(SchedulerError):
    """Somebody else leads now, or may do so any moment."""


class FencedLock:
    """A lock that remembers until when our word holds."""

    def __init__(self, lock: Lock, lease_seconds: float, clock: ClientClock = SYSTEM_CLOCK) -> None:
        self.identity = lock.identity
        self._lock = lock
        self._holds_for = lease_seconds - min(TRANSIT_SECONDS, lease_seconds / 10)
        self._clock = clock
        self._holds_until = NEVER

    def __str__(self) -> str:
        return str(self._lock)

    @property
    def holds(self) -> bool:
        """Return whether nobody else can have taken the lead."""
        return self._clock.monotonic() < self._holds_until

    async def get(self) -> Record:
        """Return the record; another's name in it ends our word."""
        found = await self._lock.get()
        if found.holder != self.identity:
            self._holds_until = NEVER
        return found

    async def create(self, record: Record) -> Record:
        """Make the lock."""
        return await self._write(self._lock.create, record)

    async def update(self, record: Record) -> Record:
        """Replace the record."""
        return await self._write(self._lock.update, record)

    async def _write(self, send: Callable[[Record], Awaitable[Record]], record: Record) -> Record:
        if record.holder != self.identity:
            self._holds_until = NEVER  # before it is sent: from then on others may lead
        sent_at = self._clock.monotonic()
        stored = await send(record)
        if stored.holder == self.identity:
            self._holds_until = sent_at + self._holds_for
        return stored


class FencedConnection(Connection):
    """A client that writes only while the fence is open; reading is free."""

    def __init__(self, like: Connection, is_open: Callable[[], bool]) -> None:
        super().__init__(
            like._transport,
            name=like.name,
            qps=like._qps,
            burst=like._burst,
            compress=like._compress,
            clock=like.clock,
            observers=like._observers,
        )
        self._is_open = is_open

    def require_lead(self, what: str) -> None:
        """Raise `LeaseLost` when another may lead."""
        if not self._is_open():
            raise LeaseLost(f"{what}: not sent, because the leader's lease may have run out")
