"""Leadership: this replica's part in leader election, set up from the configuration.

It makes the lock, the elector and with a coordinated election the LeaseCandidate; records an event and a metric when
leadership changes; and wraps the connection of all writers in a fence that writes only while our lease certainly holds
(kube/client/leases/fencing.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kubesched.errors import ConfigError
from kubesched.kube.api import ObjectReference
from kubesched.kube.client import (
    LOCKS,
    Callbacks,
    Chance,
    Connection,
    FencedConnection,
    FencedLock,
    LeaderElector,
    LeaseCandidate,
    Recorder,
    Timing,
)
from kubesched.scheduler import config
from kubesched.scheduler.config import LeaderElection
from kubesched.telemetry import Metrics

log = logging.getLogger(__name__)

LEASE_NAME = "kube-scheduler"
_LEASES = "leases"
_LOCK_OBJECTS = {
    "leases": {"kind": "Lease", "api_version": "coordination.k8s.io/v1"},
    "endpoints": {"kind": "Endpoints", "api_version": "v1"},
    "configmaps": {"kind": "ConfigMap", "api_version": "v1"},
}
_REMOVED_LOCKS = {  # "migrated" is kube-scheduler's own text
    "endpoints": "endpoints lock is removed, migrate to leases",
    "configmaps": "configmaps lock is removed, migrate to leases",
    "endpointsleases": "endpointsleases lock is removed, migrate to leases",
    "configmapsleases": "configmapsleases lock is removed, migrated to leases",
}


class Leadership:
    """Our part in the election. An invalid configuration is refused when this is built."""

    def __init__(
        self, given: LeaderElection, gates: config.Gates, identity: str, metrics: Metrics, *, knows_old_locks: bool = False
    ) -> None:
        self.elects = given.leader_elect
        self.elector: LeaderElector | None = None
        self._given = given
        self._gates = gates
        self._identity = identity
        self._metrics = metrics
        self._fence: FencedLock | None = None
        self._is_coordinated = gates.is_enabled("CoordinatedLeaderElection")
        self._timing = Timing()
        if given.leader_elect:
            if given.resource_lock != _LEASES and not knows_old_locks:
                problem = _REMOVED_LOCKS.get(given.resource_lock, f"Invalid lock-type {given.resource_lock}")
                raise ConfigError("", f"couldn't create resource lock: {problem}")
            self._timing = Timing(given.lease_duration.seconds, given.renew_deadline.seconds, given.retry_period.seconds)

    @property
    def is_lost(self) -> bool:
        """Return whether another replica may lead by now."""
        return self.elector is not None and not self.elector.is_leader

    def fenced(self, connection: Connection) -> Connection:
        """Return a connection that writes only while our lease certainly holds. Without leader election it is the same
        connection."""
        if not self.elects:
            return connection
        # A function, because the lock is made later, in `run`. Before that nothing may be written.
        return FencedConnection(connection, lambda: self._fence is not None and self._fence.holds)

    def candidate(self, connection: Connection) -> LeaseCandidate | None:
        """Return our LeaseCandidate if a controller chooses the leader (CoordinatedLeaderElection); otherwise None."""
        if not self._is_coordinated:
            return None
        return LeaseCandidate(
            self._sibling(connection),
            self._identity,
            self._given.resource_name,
            binary_version="{}.{}.0".format(*config.NEWEST),
            emulation_version="{}.{}.0".format(*self._gates.emulated),
            namespace=self._given.resource_namespace,
            clock=connection.clock,
        )

    async def run(
        self,
        connection: Connection,
        recorder: Recorder,
        chance: Chance,
        began: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:
        """Wait to lead, then lead; return when the lease is lost."""
        given = self._given
        lock = LOCKS[given.resource_lock](
            self._sibling(connection), self._identity, given.resource_namespace, given.resource_name
        )
        # Whole seconds, because that is what the Lease stores and what other replicas wait for.
        self._fence = FencedLock(lock, int(self._timing.lease_duration), connection.clock)
        # The object that the event is about. With two locks, as `endpointsleases`, it is the old one.
        about = ObjectReference(
            name=given.resource_name,
            namespace=given.resource_namespace,
            **_LOCK_OBJECTS[given.resource_lock.removesuffix(_LEASES) or _LEASES],
        )

        def changed(leads: bool, then: Callable[[], None]) -> None:
            # The event is recorded before `then`, as in client-go; when the lease is lost the process ends soon after.
            self._metrics.leading(LEASE_NAME, leads)
            what = "became leader" if leads else "stopped leading"
            recorder.event(about, "Normal", "LeaderElection", "", f"{lock.identity} {what}")
            then()

        self._metrics.leading(LEASE_NAME, False)
        self.elector = LeaderElector(
            self._fence,
            Callbacks(
                on_started=lambda: changed(True, began),
                on_stopped=lambda: changed(False, ended),
                on_new_leader=_log_leader,
                on_slow_renewal=lambda: self._metrics.slow_renewal(LEASE_NAME),
            ),
            self._timing,
            is_coordinated=self._is_coordinated,
            clock=connection.clock,
            chance=chance,
        )
        await self.elector.run()

    def _sibling(self, connection: Connection) -> Connection:
        return connection.sibling("leader-election", timeout=self._timing.request_timeout)


def _log_leader(who: str) -> None:
    log.info("new leader elected: %s", who) if who else log.info("the leader has stepped down")
