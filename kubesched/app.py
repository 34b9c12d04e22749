"""The scheduler as a program: the only file that knows every room. Builds the parts, connects them, starts and stops them.

    connect -> ask what is served -> follow everything (the inbox fills) -> serve health and metrics
            -> wait to lead -> try pods until the end

A standby follows everything and tries nothing, so that it goes on at once when the leader is gone. Losing the lease ends
the program: two that believe to lead are worse than none for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubesched import config
from kubesched.client.connection import Connection, connect
from kubesched.client.credentials import CredentialSource
from kubesched.client.extending import HttpPoster
from kubesched.client.leading import Callbacks, Elector, Timing
from kubesched.client.locks import EndpointsLock, LeaseLock, make_identity
from kubesched.client.recorder import Broadcaster, Recorder
from kubesched.client.resources import watch_set
from kubesched.client.timing import SYSTEM_CHANCE, Backoff
from kubesched.client.watching import Watching
from kubesched.client.writer import Writer
from kubesched.cluster import PodView
from kubesched.engine.assembly import Outside, assemble, registry_with
from kubesched.engine.inbox import Changed, Errand
from kubesched.engine.loop import Engine
from kubesched.errors import SchedulerError, Unreachable
from kubesched.framework.building import catalogue
from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import Registry

log = logging.getLogger(__name__)

LOST_LEASE = "leader election lost"


class LeaseLost(SchedulerError):
    """Somebody else leads now, or nobody could be told in time that we do."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a scheduler is built from, apart from its configuration."""

    source: CredentialSource
    gates: config.Gates = field(default_factory=config.Gates.defaults)
    plugins: tuple[type[Plugin], ...] = ()
    seed: int = 0
    max_waiting_seconds: float = 300.0
    uses_endpoints_lock: bool = False
    observers: Callable[[Engine], None] | None = None


class RecorderByProfile:
    """Records each pod's events under the name of the profile that is responsible for it."""

    def __init__(self, broadcaster: Broadcaster, names: Iterable[str]) -> None:
        self._recorders: Mapping[str, Recorder] = {name: broadcaster.recorder(name) for name in names}
        self._any = next(iter(self._recorders.values()))

    def event(self, regarding: PodView, kind: str, reason: str, action: str, note: str) -> None:
        """Record that something happened to a pod."""
        recorder = self._recorders.get(regarding.pod.spec.scheduler_name, self._any)
        recorder.event(regarding, kind, reason, action, note)


class Scheduler:
    """One replica of the scheduler."""

    def __init__(self, configuration: config.Configuration, wiring: Wiring) -> None:
        self.configuration = configuration
        self.wiring = wiring
        self.registry: Registry = registry_with(wiring.plugins)
        self.engine: Engine | None = None
        self.watching: Watching | None = None
        self.elector: Elector | None = None
        self.is_synced = False
        self._connection: Connection | None = None
        self._stopping = asyncio.Event()

    @classmethod
    def catalogue(cls, plugins: tuple[type[Plugin], ...] = ()) -> dict[str, config.Known]:
        """Return what a configuration may name, with plugins of one's own."""
        return catalogue(registry_with(plugins))

    # What the reflectors tell

    def deliver(self, kind: str, old: Any | None, new: Any | None) -> None:
        """Put a change into the inbox."""
        assert self.engine is not None
        self.engine.inbox.post(Changed(kind, old, new))

    def synced(self, kind: str) -> None:
        """Take notice that a kind's first list is in the inbox."""
        log.debug("caches are synced for %s", kind)

    # Running

    async def run(self) -> None:
        """Run until stopped; raise `LeaseLost` if somebody else leads."""
        async with self._connected() as connection:
            tasks: set[asyncio.Task[Any]] = set()
            try:
                await self._start(connection, tasks)
                stopping = asyncio.create_task(self._stopping.wait(), name="stopping")
                tasks.add(stopping)
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done - {stopping}:
                    task.result()
                    if not self._stopping.is_set() and task.get_name() == "leading":
                        raise LeaseLost(LOST_LEASE)
            finally:
                if self.engine is not None:
                    self.engine.stop()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self) -> None:
        """Let `run` end: give the lease back, write no more."""
        self._stopping.set()

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[Connection]:
        given = self.configuration.client_connection
        connection = await connect(self.wiring.source, qps=given.qps, burst=given.burst)
        self._connection = connection
        try:
            yield connection
        finally:
            await connection.close()

    async def _start(self, connection: Connection, tasks: set[asyncio.Task[Any]]) -> None:
        broadcaster = Broadcaster(connection.sibling("events"))
        names = [profile.scheduler_name for profile in self.configuration.profiles]
        outside = Outside(writer=Writer(connection), recorder=RecorderByProfile(broadcaster, names),
                          poster=HttpPoster(), seed=self.wiring.seed)
        self.engine = engine = assemble(self.configuration, self.wiring.gates, outside, registry=self.registry,
                                        max_waiting_seconds=self.wiring.max_waiting_seconds)
        engine.is_leading = False
        tasks.add(asyncio.create_task(broadcaster.run(), name="events"))
        tasks.add(asyncio.create_task(engine.run(), name="engine"))
        if self.configuration.delay_cache_until_active and self.configuration.leader_election.leader_elect:
            tasks.add(asyncio.create_task(self._lead(connection, tasks), name="leading"))
            return
        await self._follow(connection, tasks)
        if self.configuration.leader_election.leader_elect:
            tasks.add(asyncio.create_task(self._lead(connection, tasks), name="leading"))
        else:
            engine.lead()

    async def _follow(self, connection: Connection, tasks: set[asyncio.Task[Any]]) -> None:
        """Follow everything, and return when the first lists are in the store and the queue."""
        assert self.engine is not None
        rows = watch_set([name for name, on in self.wiring.gates.states.items() if on], self._custom_kinds())
        backoff = Backoff(connection.clock, SYSTEM_CHANCE)
        while True:
            try:
                self.watching = await Watching.prepare(connection, rows, self)
                break
            except Unreachable as error:
                log.error("%s", error)
                await asyncio.sleep(backoff.next())
        tasks.add(asyncio.create_task(self.watching.run(), name="watching"))
        await self.watching.wait_synced()
        taken_in = asyncio.Event()
        self.engine.inbox.post(Errand(taken_in.set))
        await taken_in.wait()
        self.is_synced = True
        log.info("caches are synced")

    def _custom_kinds(self) -> list[str]:
        """Return the resources, named as plural.version.group, that plugins want to be woken by."""
        assert self.engine is not None
        return [name for name in self.engine.queue.watched_resources() if name.count(".") >= 2 and "/" not in name]

    async def _lead(self, connection: Connection, tasks: set[asyncio.Task[Any]]) -> None:
        """Wait to lead, then lead; return when the lease is lost."""
        given = self.configuration.leader_election
        timing = Timing(given.lease_duration.seconds, given.renew_deadline.seconds, given.retry_period.seconds)
        identity = make_identity()
        sibling = connection.sibling("leader-election", timeout=timing.request_timeout)
        kind = EndpointsLock if self.wiring.uses_endpoints_lock else LeaseLock
        lock = kind(sibling, identity, given.resource_namespace, given.resource_name)

        def began() -> None:
            assert self.engine is not None
            if self.is_synced:
                self.engine.lead()
            else:
                tasks.add(asyncio.create_task(self._follow_and_lead(connection, tasks), name="following"))

        def ended() -> None:
            assert self.engine is not None
            self.engine.is_leading = False

        self.elector = Elector(lock, Callbacks(on_started=began, on_stopped=ended,
                                               on_new_leader=lambda who: log.info("new leader elected: %s", who)), timing)
        await self.elector.run()

    async def _follow_and_lead(self, connection: Connection, tasks: set[asyncio.Task[Any]]) -> None:
        assert self.engine is not None
        await self._follow(connection, tasks)
        self.engine.lead()


def stop_on_signals(scheduler: Scheduler) -> None:
    """Stop a scheduler on SIGTERM or SIGINT; a second one ends the process at once with exit code 1."""
    loop = asyncio.get_running_loop()
    seen = 0

    def handle() -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            raise SystemExit(1)
        scheduler.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, handle)
