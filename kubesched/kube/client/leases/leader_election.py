"""Leader election: of several replicas only one schedules. It holds a lease in the API server and renews it.

With the default times (lease 15 s, renew deadline 10 s, retry every 2 s):

     0 s  A takes the lease, leads, and renews it every 2 s. B reads it every 2 to 4 s and sees it change
    60 s  A loses its network. Its renewals fail
    70 s  A has not renewed for 10 s: it stops leading. The process ends
    75 s  B has seen no change for 15 s: it takes the lease and leads

Between 70 s and 75 s nobody leads; never do two. Each replica measures with its own monotonic clock how long *it* has seen no
change, so wrong or jumping clocks do no harm. The times written in the lease are for people. If A stops in order, it releases
the lease, and B leads within seconds. If A finds another holder in the lease it stops at once; kube-scheduler goes on until
its deadline, beside the new leader.

In a coordinated election (CoordinatedLeaderElection) no replica takes the lease. A controller writes the name of a candidate
(`lease_candidate.py`) into it. The replica with that name leads and renews, until the controller names another as preferred
holder.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from kubesched.errors import ConfigError, Conflict, NotFound, SchedulerError
from kubesched.kube.client.api_errors import advice
from kubesched.kube.client.leases.locks import Lock, Record
from kubesched.kube.client.timing import SYSTEM_CHANCE, SYSTEM_CLOCK, Chance, ClientClock, LogThrottle

JITTER = 1.2
RELEASED_SECONDS = 1
RELEASE_TRIES = 3

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a lease holds, how long a leader tries to renew it, and how often a replica tries; in seconds."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        for is_good, complaint in (
            (self.lease_duration > self.renew_deadline, "leaseDuration must be greater than renewDeadline"),
            (self.renew_deadline > JITTER * self.retry_period, "renewDeadline must be greater than retryPeriod*JitterFactor"),
            (self.lease_duration >= 1, "leaseDuration must be greater than zero"),
            (self.retry_period > 0, "retryPeriod must be greater than zero"),
        ):
            if not is_good:
                raise ConfigError("", f"couldn't create leader elector: {complaint}")

    @property
    def request_timeout(self) -> float:
        """Return how long one request of the election may take."""
        return max(1.0, self.renew_deadline / 2)


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Called when leadership changes. They must not block."""

    on_started: Callable[[], None] = lambda: None
    on_stopped: Callable[[], None] = lambda: None
    on_new_leader: Callable[[str], None] = lambda identity: None
    on_slow_renewal: Callable[[], None] = lambda: None


class LeaderElector:
    """One replica in the election."""

    def __init__(
        self,
        lock: Lock,
        callbacks: Callbacks,
        timing: Timing | None = None,
        *,
        release_on_cancel: bool = True,
        is_coordinated: bool = False,
        clock: ClientClock = SYSTEM_CLOCK,
        chance: Chance = SYSTEM_CHANCE,
    ) -> None:
        self._lock = lock
        self._callbacks = callbacks
        self._timing = timing or Timing()
        self._releases = release_on_cancel
        self._try = self._try_coordinated if is_coordinated else self._try_to_hold
        self._clock, self._chance = clock, chance
        self._log_throttle = LogThrottle(clock)
        self._observed = Record()
        self._observed_at = float("-inf")
        self._reported_leader = ""

    @property
    def leader(self) -> str:
        """Return the holder of the lease as it was last read."""
        return self._observed.holder

    @property
    def is_leader(self) -> bool:
        return self._observed.holder == self._lock.identity

    async def run(self) -> None:
        """Wait to lead, then lead; return when leadership is lost. Cancel it to step down and let the lock go."""
        log.info("attempting to acquire leader lease %s...", self._lock)
        while not await self._try():
            await self._clock.sleep(self._timing.retry_period * (1.0 + JITTER * self._chance.random()))
        log.info("successfully acquired lease %s", self._lock)
        self._callbacks.on_started()
        try:
            while True:
                await self._clock.sleep(self._timing.retry_period)
                # One call covers all tries of one renewal, up to the deadline of 10 s. The lease of 15 s lasts longer, so
                # others still wait when we give up.
                if not await self._renew_in_time():
                    log.info("failed to renew lease %s", self._lock)
                    break
        except asyncio.CancelledError:
            self._callbacks.on_stopped()
            # After `on_stopped`: no pod may be tried by us once another replica can take the lease.
            if self._releases:
                await self._release()
            raise
        self._callbacks.on_stopped()

    async def _renew_in_time(self) -> bool:
        """Renew; return False if the deadline passes or another replica leads."""
        # The deadline is measured with our own clock and not by asyncio.timeout, so that tests can move it.
        tries = asyncio.ensure_future(self._renew())
        deadline = asyncio.ensure_future(self._clock.sleep(self._timing.renew_deadline))
        try:
            await asyncio.wait((tries, deadline), return_when=asyncio.FIRST_COMPLETED)
            return tries.done() and tries.result()
        finally:
            for task in (tries, deadline):
                task.cancel()
            await asyncio.gather(tries, deadline, return_exceptions=True)

    async def _renew(self) -> bool:
        while not await self._try():
            if not self.is_leader:
                return False
            await self._clock.sleep(self._timing.retry_period)
        return True

    async def _try_coordinated(self) -> bool:
        """Renew the lease if the controller gave it to us; return whether we hold it."""
        try:
            found = await self._lock.get()
            if found != self._observed:
                self._observe(found)
            if not self.is_leader or not self._is_valid(self._clock.monotonic()):
                return False
            if found.preferred_holder:
                log.info("lease %s is to go to %s; our term ends", self._lock, found.preferred_holder)
                return False
            # The holder is kept as it is. With another holder the update would take the lease, which only the controller may
            # do.
            seconds = int(self._timing.lease_duration)
            self._observe(await self._lock.update(replace(found, lease_duration_seconds=seconds, renew_time=self._clock.now())))
            return True
        except NotFound:
            log.debug("lease %s is not there: nobody has been chosen yet", self._lock)
            return False
        except SchedulerError as error:
            self._warn(error)
            return False

    async def _try_to_hold(self) -> bool:
        """Take the lease or renew it; return whether we hold it now.

        A leader first writes without reading, guarded by the resourceVersion that it knows: one request instead of two. If
        that fails it reads, like everybody else. Whether another's lease has expired is judged as of the beginning of this
        call, however long the requests take.
        """
        now, begun = self._clock.now(), self._clock.monotonic()
        mine = Record(
            holder=self._lock.identity,
            lease_duration_seconds=int(self._timing.lease_duration),
            acquire_time=now,
            renew_time=now,
        )
        if self.is_leader and self._is_valid(begun):
            # A renewal keeps since when we lead, and how often the leader changed.
            kept = replace(mine, acquire_time=self._observed.acquire_time, transitions=self._observed.transitions)
            try:
                self._observe(await self._lock.update(kept))
                return True
            except SchedulerError as error:
                log.debug("renewing %s the short way failed: %s", self._lock, error)
                self._callbacks.on_slow_renewal()
        try:
            try:
                found = await self._lock.get()
            except NotFound:
                self._observe(await self._lock.create(mine))
                return True
            if found != self._observed:
                self._observe(found)
            # Expired means: *we* have seen no change for `lease_duration_seconds`. The times in the record were written by
            # another clock and are not compared.
            if found.holder and not self.is_leader and self._is_valid(begun):
                log.debug("lease %s is held by %s and has not yet expired", self._lock, found.holder)
                return False
            if self.is_leader:
                mine = replace(mine, acquire_time=found.acquire_time, transitions=found.transitions)
            else:
                mine = replace(mine, transitions=found.transitions + 1)
            self._observe(await self._lock.update(mine))
            return True
        except SchedulerError as error:
            self._warn(error)
            return False

    def _warn(self, error: SchedulerError) -> None:
        if self._log_throttle.is_worth_saying(text := advice(error)):
            log.warning("lease %s: %s; trying again", self._lock, text)

    async def _release(self) -> None:
        for n_left in reversed(range(RELEASE_TRIES)):
            try:
                found = await self._lock.get()
                if found.holder != self._lock.identity:
                    return
                # An empty holder, and a lease of one second: other replicas need not wait for 15. The record must be valid, so
                # the duration cannot be 0.
                now = self._clock.now()
                self._observe(await self._lock.update(Record("", RELEASED_SECONDS, now, now, found.transitions)))
                return
            except Conflict as error:
                # A renewal that was under way when we stopped may reach the server after our read: read again.
                if not n_left:
                    self._not_released(error)
            except SchedulerError as error:
                self._not_released(error)
                return

    def _not_released(self, error: SchedulerError) -> None:
        log.warning("lease %s could not be released, and runs out by itself: %s", self._lock, error)

    def _observe(self, record: Record) -> None:
        self._log_throttle.settle()
        self._observed = record
        self._observed_at = self._clock.monotonic()
        # Reported once for each leader, and not for each renewal.
        if record.holder != self._reported_leader:
            self._reported_leader = record.holder
            self._callbacks.on_new_leader(record.holder)

    def _is_valid(self, moment: float) -> bool:
        return self._observed_at + self._observed.lease_duration_seconds > moment
