"""The fence: a leader writes nothing once its lease may have expired.

It is not enough to ask "do I lead?" before deciding. A process can be stopped at any instruction and go on a minute later:

     0 s  A renews its lease, decides for a pod, and is stopped (a paused VM, a swapped-out process)
    15 s  the lease expires, B leads and binds the pod to node b
    60 s  A goes on and would bind the same pod to node a

So the lease is checked again right before the bytes go out, after waiting for the rate limiter and for a connection, and A
gets `LeaseLost` instead. The lease holds from the moment its renewal was *sent*, by our monotonic clock: other replicas saw it
later than that and wait as long from then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kubesched.errors import SchedulerError
from kubesched.kube.client.connection import Connection
from kubesched.kube.client.leases.locks import Lock, Record
from kubesched.kube.client.timing import SYSTEM_CLOCK, ClientClock

TRANSIT_SECONDS = 0.5
"""How long before its end a lease is not relied on any more: a request takes time to arrive."""

NEVER = float("-inf")


class LeaseLost(SchedulerError):
    """Another replica leads, or may lead at any moment."""


class FencedLock:
    """A lock that knows until when our lease holds."""

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
        """Return whether no other replica can lead now."""
        return self._clock.monotonic() < self._holds_until

    async def get(self) -> Record:
        """Return the record. If another replica holds it, our lease is over."""
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
            self._holds_until = NEVER  # before it is sent: others may lead from then on
        # Before the request: the answer may take seconds, and the lease counts from when the server stored it. Too early is
        # safe, too late is not.
        sent_at = self._clock.monotonic()
        stored = await send(record)
        if stored.holder == self.identity:
            self._holds_until = sent_at + self._holds_for
        return stored


class FencedConnection(Connection):
    """A connection that writes only while the lease holds. Reading is always allowed."""

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
        """Raise `LeaseLost` if another replica may lead."""
        if not self._is_open():
            raise LeaseLost(f"{what}: not sent, because the leader's lease may have run out")
