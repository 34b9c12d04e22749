"""The scheduler as a program: the only file that knows every room. It builds, connects, starts and stops the parts.

    connect -> serve health and metrics -> follow everything (the inbox fills) -> wait to lead -> try pods until the end

A standby follows everything and tries nothing, so that it goes on at once when the leader is gone. Losing the lease
ends the program: two that believe to lead are worse than none for a while. A changed configuration is swapped in
between two decisions: a new engine takes over the store, the inbox and the queue of the old one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import IO, Any, Protocol

from prometheus_client import CollectorRegistry

from kubesched import config, legacy, web
from kubesched.api.core import ConfigMap
from kubesched.api.meta import ObjectReference
from kubesched.client.access_reviews import Reviews
from kubesched.client.api_dispatcher import ApiDispatcher
from kubesched.client.api_errors import advice
from kubesched.client.connection import Connection, Observers, connect
from kubesched.client.credentials import CredentialSource, delegated_credentials
from kubesched.client.extender_client import HttpPoster
from kubesched.client.fencing import FencedConnection, FencedLock, LeaseLost
from kubesched.client.leader_election import Callbacks, LeaderElector, Timing
from kubesched.client.lease_candidate import LeaseCandidate
from kubesched.client.locks import LOCKS, make_identity
from kubesched.client.log_throttle import LogThrottle
from kubesched.client.reading import get_object
from kubesched.client.recorder import CORE_V1, Broadcaster, Recorder
from kubesched.client.reflectors import Reflectors
from kubesched.client.resources import watch_set
from kubesched.client.timing import SYSTEM_CHANCE, SYSTEM_CLOCK, Backoff, Chance, ClientClock
from kubesched.client.writer import Writer
from kubesched.cluster import PodView, Store
from kubesched.cluster.pods import Templates
from kubesched.engine.assembly import Ports, assemble, engine_options, new_handle, queue_options, registry_with
from kubesched.engine.cache_debugger import debug_later
from kubesched.engine.decision_log import DecisionLog
from kubesched.engine.decision_recorder import SHARE, DecisionRecorder
from kubesched.engine.decision_spans import DecisionSpans
from kubesched.engine.gc_tuning import spare_the_collector
from kubesched.engine.handle import EngineHandle
from kubesched.engine.inbox import Changed, LoopCall
from kubesched.engine.inbox_log import InboxLog
from kubesched.engine.loop import Engine
from kubesched.errors import ApiError, ConfigError, Unreachable
from kubesched.framework.building import catalogue
from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import Registry
from kubesched.telemetry import Metrics, MetricsSettings
from kubesched.telemetry.exposing import register

log = logging.getLogger(__name__)

LOST_LEASE = "leader election lost"
LEASE_NAME = "kube-scheduler"
_LEASES = "leases"
_LOCK_OBJECTS = {
    "leases": {"kind": "Lease", "api_version": "coordination.k8s.io/v1"},
    "endpoints": {"kind": "Endpoints", "api_version": "v1"},
    "configmaps": {"kind": "ConfigMap", "api_version": "v1"},
}
_REMOVED_LOCKS = {  # the last text is the reference's, too
    "endpoints": "endpoints lock is removed, migrate to leases",
    "configmaps": "configmaps lock is removed, migrate to leases",
    "endpointsleases": "endpointsleases lock is removed, migrate to leases",
    "configmapsleases": "configmapsleases lock is removed, migrated to leases",
}
_UNREVIEWED = {
    "authentication": "tokens mean nothing, and the cluster's client authorities are not looked up",
    "authorization": "all but the always allowed paths are forbidden",
}
_REVIEW_QPS = 200
_LOOK_AT_FILE_SECONDS = 1.0
_DRAIN_SECONDS = 30.0
_FLUSH_SECONDS = 1.0
DECISION_RECORDS = 10_000


@dataclass(frozen=True, slots=True)
class Face:
    """How the program shows itself over HTTP; the fields are those of the command line."""

    serving: Any
    authentication: Any
    authorization: Any
    flags: Mapping[str, str]
    version: str
    what_if: Callable[[Scheduler, Connection], Iterable[Any]] | None = None
    """What the page can be asked besides what is, given a connection to read the cluster with."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a scheduler is built from, apart from its configuration."""

    source: CredentialSource
    gates: config.Gates = field(default_factory=config.Gates.defaults)
    plugins: tuple[type[Plugin], ...] = ()
    seed: int = 0
    max_waiting_seconds: float = 300.0
    owns_process: bool = False
    """Whether the process is there for this scheduler alone, whose interpreter may be tuned for it."""
    assumed_ttl_seconds: float | None = None
    face: Face | None = None
    metrics: MetricsSettings | None = None
    inbox_log: IO[bytes] | None = None
    decision_records: int = DECISION_RECORDS
    """How many decisions are kept on record; 0 for none."""
    decision_share: float = SHARE
    """How much of the time may go into what takes longer of a record: the scores by plugin; 1 for all of every decision."""
    decision_log: DecisionLog | None = None
    decision_spans: DecisionSpans | None = None
    reload: Callable[[], config.Configuration] | None = None
    """Reads the configuration file again; called when `has_changed` says so."""
    has_changed: Callable[[], bool] = lambda: False
    legacy: legacy.LegacyScheduler | None = None
    """A scheduler of an old release takes the place of the configured profiles."""
    clock: ClientClock = SYSTEM_CLOCK
    chance: Chance = SYSTEM_CHANCE
    poster: Callable[[], HttpPoster] = HttpPoster
    """Makes the way to extenders."""
    identity: str = ""
    """Who we are in the lease, HOST_SOMETHING; "" makes one up that no other process has."""


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
        self.registry: Registry = registry_with(wiring.plugins, installed=True)
        self.metrics = Metrics(wiring.metrics)
        self.identity = wiring.identity or make_identity()
        self.throughput = web.Throughput(self.metrics, wiring.clock.now)
        self.page_data = web.EnginePageData(lambda: self.engine, self.throughput)
        self.decisions = (
            DecisionRecorder(wiring.decision_records, share=wiring.decision_share) if wiring.decision_records else None
        )
        self.decision_routes = web.decision_routes(self.decisions.ring if self.decisions is not None else None)
        self.engine: Engine | None = None
        self.reflectors: Reflectors | None = None
        self.elector: LeaderElector | None = None
        self._fence: FencedLock | None = None
        self.is_synced = False
        self.is_stopping = False
        self._stopped = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._prepared: tuple[Store, EngineHandle] | None = None
        self._outside = Ports()
        self._broadcaster: Broadcaster | None = None
        self._policy: ConfigMap | None = None
        self._annotations = wiring.legacy.annotations if wiring.legacy is not None else None
        self._timing = self._check_election()

    def _check_election(self) -> Timing:
        """Return the times of the election; raise ConfigError for times and locks with which nobody could lead."""
        given = self.configuration.leader_election
        if not given.leader_elect:
            return Timing()
        if self.wiring.legacy is None and given.resource_lock != _LEASES:
            problem = _REMOVED_LOCKS.get(given.resource_lock, f"Invalid lock-type {given.resource_lock}")
            raise ConfigError("", f"couldn't create resource lock: {problem}")
        return Timing(given.lease_duration.seconds, given.renew_deadline.seconds, given.retry_period.seconds)

    @classmethod
    def catalogue(cls, plugins: tuple[type[Plugin], ...] = ()) -> dict[str, config.Known]:
        """Return what a configuration may name, with plugins of one's own."""
        return catalogue(registry_with(plugins, installed=True))

    # What the reflectors tell

    def deliver(self, kind: str, old: Any | None, new: Any | None) -> None:
        """Put a change into the inbox."""
        assert self.engine is not None
        if self._annotations is not None:
            old, new = self._annotations.read(old), self._annotations.read(new)
        self.engine.inbox.post(Changed(kind, old, new))

    def synced(self, kind: str) -> None:
        """Take notice that a kind's first list is in the inbox."""
        log.debug("caches are synced for %s", kind)

    # Running

    async def run(self) -> None:
        """Run until stopped; raise `LeaseLost` if somebody else leads."""
        async with self._connected() as connection, contextlib.AsyncExitStack() as ends:
            try:
                self._begin("starting", self._start(connection, ends))
                await self._watch_over()
            finally:
                self.is_stopping = True
                if self.engine is not None:
                    self.engine.stop()
                for task in self._tasks.values():
                    task.cancel()
                await asyncio.gather(*self._tasks.values(), return_exceptions=True)
                if self.engine is not None:
                    await self.engine.abandon()

    def stop(self) -> None:
        """Let `run` end: give the lease back, write no more."""
        self.is_stopping = True
        self._stopped.set()

    async def _watch_over(self) -> None:
        """Return when told to stop; raise what any part raises, and `LeaseLost` when the lease is gone."""
        stopping = self._begin("stopping", self._stopped.wait())
        while not stopping.done():
            done, _ = await asyncio.wait(self._tasks.values(), timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            for name in [name for name, task in self._tasks.items() if task in done and name != "stopping"]:
                self._tasks.pop(name).result()
                if name == "leading" and not self.is_stopping:
                    world = self.wiring.legacy
                    raise LeaseLost(LOST_LEASE if world is None else world.release.lost_lease)

    def _begin(self, name: str, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = self._tasks[name] = asyncio.create_task(coroutine, name=name)
        return task

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[Connection]:
        given = self.configuration.client_connection
        observers = Observers(*self.metrics.rest_observers("apiserver"))
        source, clock = self.wiring.source, self.wiring.clock
        connection = await connect(source, qps=given.qps, burst=given.burst, clock=clock, observers=observers)
        self.metrics.transport_opened()
        try:
            yield connection
        finally:
            await connection.close()

    async def _start(self, connection: Connection, ends: contextlib.AsyncExitStack) -> None:
        chance, host = self.wiring.chance, self.identity.rpartition("_")[0]
        self._broadcaster = broadcaster = Broadcaster(connection.sibling("events"), host=host, chance=chance)
        reporter = self.throughput
        names = [profile.scheduler_name for profile in self.configuration.profiles]
        world, poster = self.wiring.legacy, self.wiring.poster()
        ends.callback(poster.close)
        writer = self._writer(self._fenced(connection), chance)
        self._outside = Ports(
            clock=self.wiring.clock,
            writer=writer,
            let_bind=writer.let_bind,
            recorder=RecorderByProfile(broadcaster, names),
            observer=reporter,
            queue_observer=reporter,
            decisions=self.decisions,
            meter=self.metrics,
            seed=self.wiring.seed,
            poster=poster if world is None else world.poster(poster),
            ties=None if world is None else world.ties(self.wiring.seed),
        )
        self._prepared = new_handle(self.wiring.gates, self._outside)
        if world is not None and world.config_map is not None:
            self._policy = await _fetch_policy(connection, world.config_map)
        self.engine = engine = self._build(self.configuration)
        if self.wiring.inbox_log is not None:
            InboxLog(engine.inbox, engine.handle.clock, self.wiring.inbox_log, seed=self.wiring.seed)
            self._begin("writing down", _flush(self.wiring.inbox_log))
        if self.wiring.decision_log is not None and self.decisions is not None:
            self.decisions.listeners.append(self.wiring.decision_log)
            ends.callback(self.wiring.decision_log.close)
            self._begin("writing decisions", _flush(self.wiring.decision_log))
        if self.wiring.decision_spans is not None and self.decisions is not None:
            self.decisions.listeners.append(self.wiring.decision_spans)
            ends.callback(self.wiring.decision_spans.close)
        engine.is_leading = False
        self._watch_sizes()
        if self.wiring.face is not None:
            await self._serve(connection, self.wiring.face, ends)
        self._begin("events", broadcaster.run())
        self._begin("engine", engine.run())
        self._begin("history", self.throughput.history.keep(lambda: self.engine))
        if self.wiring.reload is not None:
            self._begin("reloading", self._reload(self.wiring.reload))
        elects = self.configuration.leader_election.leader_elect
        if elects and self.configuration.delay_cache_until_active:
            self._begin("leading", self._lead(connection, follows=True))
            return
        await self._follow(connection)
        if elects:
            self._begin("leading", self._lead(connection, follows=False))
        else:
            engine.lead()

    def _build(self, configuration: config.Configuration) -> Engine:
        assert self._prepared is not None
        gates, world, profiles = self.wiring.gates, self.wiring.legacy, None
        options = replace(engine_options(configuration, gates), assumed_ttl_seconds=self.wiring.assumed_ttl_seconds)
        if world is not None:
            algorithm = world.algorithm(self._prepared[1], self._policy)
            profiles = {algorithm.profile.name: algorithm.profile}
            configuration = replace(configuration, extenders=algorithm.extenders)
            options = replace(options, remembers=options.remembers and world.remembers, scores_bare_nodes=False)
        queue = queue_options(configuration, gates, self.wiring.max_waiting_seconds)
        engine = assemble(
            configuration,
            gates,
            self._outside,
            registry=self.registry,
            prepared=self._prepared,
            profiles=profiles,
            inbox=self.engine.inbox if self.engine is not None else None,
            options=options,
            queue_as=queue if world is None else world.queueing(queue),
        )
        for profile in engine.profiles.values():
            profile.observe = self.metrics.observer(profile.name)
            if self.wiring.decision_spans is not None:
                profile.observe = self.wiring.decision_spans.beside(profile.observe)
        return engine

    # Following

    async def _follow(self, connection: Connection) -> None:
        """Follow everything, and return when the first lists are in the store and the queue."""
        assert self.engine is not None
        rows = watch_set([name for name, on in self.wiring.gates.states.items() if on], self._custom_kinds())
        streams = self.wiring.gates.is_enabled("WatchListClient")
        backoff, throttle = Backoff(connection.clock, self.wiring.chance), LogThrottle(connection.clock)
        while True:
            try:
                self.reflectors = await Reflectors.prepare(connection, rows, self, self.wiring.chance, streams=streams)
                break
            except (ApiError, Unreachable) as error:
                if throttle.is_worth_saying(text := advice(error)):
                    log.error("cannot ask what the API server serves: %s; trying again", text)
                await backoff.pause()
        self._begin("watching", self.reflectors.run())
        await self.reflectors.wait_synced()
        taken_in = asyncio.Event()
        self.engine.inbox.post(LoopCall(taken_in.set))
        await taken_in.wait()
        self.is_synced = True
        log.info("caches are synced")
        if self.wiring.owns_process:
            spare_the_collector()

    def _custom_kinds(self) -> list[str]:
        """Return the resources, named as plural.version.group, that plugins want to be woken by."""
        assert self.engine is not None
        return [name for name in self.engine.queue.watched_resources() if name.count(".") >= 2 and "/" not in name]

    # Leading

    async def _lead(self, connection: Connection, *, follows: bool) -> None:
        """Wait to lead, then lead; return when the lease is lost."""
        given, timing = self.configuration.leader_election, self._timing
        sibling = connection.sibling("leader-election", timeout=timing.request_timeout)
        lock = LOCKS[given.resource_lock](sibling, self.identity, given.resource_namespace, given.resource_name)
        self._fence = FencedLock(lock, int(timing.lease_duration), connection.clock)

        async def follow_first() -> None:
            await self._follow(connection)
            assert self.engine is not None
            self.engine.lead()

        def began() -> None:
            self.metrics.leading(LEASE_NAME, True)
            tell("became leader")
            assert self.engine is not None
            if follows:
                self._begin("following", follow_first())
            else:
                self.engine.lead()

        def ended() -> None:
            self.metrics.leading(LEASE_NAME, False)
            tell("stopped leading")
            assert self.engine is not None
            self.engine.is_leading = False

        def tell(what: str) -> None:
            assert self._broadcaster is not None
            recorder = self._broadcaster.recorder(self.configuration.profiles[0].scheduler_name, CORE_V1)
            about = ObjectReference(
                name=given.resource_name,
                namespace=given.resource_namespace,
                **_LOCK_OBJECTS[given.resource_lock.removesuffix(_LEASES) or _LEASES],
            )
            recorder.event(about, "Normal", "LeaderElection", "", f"{lock.identity} {what}")

        self.metrics.leading(LEASE_NAME, False)
        is_coordinated = self.wiring.gates.is_enabled("CoordinatedLeaderElection")
        if is_coordinated:
            candidate = LeaseCandidate(
                sibling,
                lock.identity,
                given.resource_name,
                binary_version="{}.{}.0".format(*config.NEWEST),
                emulation_version="{}.{}.0".format(*self.wiring.gates.emulated),
                namespace=given.resource_namespace,
                clock=connection.clock,
            )
            self._begin("standing as a candidate", candidate.run())
        self.elector = LeaderElector(
            self._fence,
            Callbacks(
                on_started=began,
                on_stopped=ended,
                on_new_leader=_say_leader,
                on_slow_renewal=lambda: self.metrics.slow_renewal(LEASE_NAME),
            ),
            timing,
            is_coordinated=is_coordinated,
            clock=connection.clock,
            chance=self.wiring.chance,
        )
        await self.elector.run()

    def _writer(self, connection: Connection, chance: Chance) -> Writer:
        if not self.wiring.gates.is_enabled("SchedulerAsyncAPICalls"):
            return Writer(connection, chance)
        dispatcher = ApiDispatcher(connection, self.configuration.parallelism, self.metrics.api_call_finished, chance)
        self.metrics.watch(pending_calls=dispatcher.pending)
        return dispatcher

    def _fenced(self, connection: Connection) -> Connection:
        """Return a connection that writes only while our lease certainly holds, where there is a lease at all."""
        if not self.configuration.leader_election.leader_elect:
            return connection
        return FencedConnection(connection, lambda: self._fence is not None and self._fence.holds)

    @property
    def is_leader(self) -> bool:
        """Return whether this replica tries pods."""
        return self.engine is not None and self.engine.is_leading

    # Reloading

    async def _reload(self, read: Callable[[], config.Configuration]) -> None:
        """Swap in a changed configuration file; one that cannot be used is refused, and the old one stays."""
        while True:
            await asyncio.sleep(_LOOK_AT_FILE_SECONDS)
            if not self.wiring.has_changed():
                continue
            try:
                changed = read()
                await self.swap(changed)
            except ConfigError as error:
                self.metrics.config_reloaded("error")
                log.error("the changed configuration is refused, the old one stays: %s", error)
                continue
            self.metrics.config_reloaded("success")
            log.info("the changed configuration is in use")

    async def swap(self, configuration: config.Configuration) -> None:
        """Let an engine with another configuration take over between two decisions; nothing queued is lost."""
        old = self.engine
        assert old is not None
        leads = old.is_leading
        new = self._build(configuration)
        old.is_leading = False
        await old.drain(_DRAIN_SECONDS)
        old.stop()
        await self._tasks.pop("engine")
        new.take_over(old)
        self._adopt(new, old)
        for fixed in (
            "leader_election",
            "client_connection",
            "enable_profiling",
            "enable_contention_profiling",
            "delay_cache_until_active",
        ):
            if getattr(configuration, fixed) != getattr(self.configuration, fixed):
                log.warning("%s has changed in the configuration, which takes effect at the next start", fixed)
        self.engine, self.configuration = new, configuration
        new.is_leading = False
        self._watch_sizes()
        self._begin("engine", new.run())
        if leads and (self.elector is None or self.elector.is_leader):
            new.lead()

    def _adopt(self, new: Engine, old: Engine) -> None:
        """Queue the pods that ask for a scheduler which the old configuration did not know."""
        reflector = self.reflectors.by_kind.get("Pod") if self.reflectors is not None else None
        for pod in list(reflector.objects.values()) if reflector is not None else ():
            name = pod.spec.scheduler_name
            if not pod.spec.node_name and name in new.profiles and name not in old.profiles:
                new.intake.apply("Pod", None, pod)

    # What the page shows

    def _watch_sizes(self) -> None:
        engine = self.engine
        assert engine is not None
        queue, store = engine.queue, engine.store
        self.metrics.watch(
            pending_pods=lambda: {
                "active": queue.n_active,
                "backoff": queue.n_backoff,
                "unschedulable": queue.n_unschedulable,
                "gated": queue.n_gated,
            },
            inflight_events=queue.in_flight_events,
            cache_size=lambda: {
                "nodes": len(store.nodes),
                "pods": sum(1 for _ in store.pods()),
                "assumed_pods": store.n_assumed,
            },
            waiting=lambda: {"inbox": len(engine.inbox)},
        )
        if self.wiring.gates.behaviour.names_informers:
            self.metrics.watch(informer_items=self._informer_items, informer_versions=self._informer_versions)

    def _informer_items(self) -> dict[tuple[str, ...], float]:
        """Return how many objects wait in the inbox, by informer."""
        assert self.engine is not None
        waiting = self.engine.inbox.n_changes()
        return {labels: waiting.get(kind, 0) for kind, labels, _ in self._informers()}

    def _informer_versions(self) -> dict[tuple[str, ...], float]:
        """Return the last digits of the version that was last seen, by informer."""
        return {labels: int(version[-15:]) for _, labels, version in self._informers() if version.isdigit()}

    def _informers(self) -> Iterator[tuple[str, tuple[str, ...], str]]:
        """Yield kind, labels (name, group, version, resource) and the version last seen of everything that is followed."""
        for kind, reflector in (self.reflectors.by_kind if self.reflectors is not None else {}).items():
            group, _, version = reflector.api_version.rpartition("/")
            yield kind, (LEASE_NAME, group, version, reflector.plural), reflector.version

    def _pods(self) -> Iterable[PodView]:
        """Yield all pods that are known: placed ones, ours that wait, and those that wait for another scheduler."""
        assert self.engine is not None
        yield from self.engine.store.pods()
        yield from self.engine.intake.pending()
        reflector = self.reflectors.by_kind.get("Pod") if self.reflectors is not None else None
        others = Templates()  # books of their own: strangers leave nothing in the store's
        for pod in list(reflector.objects.values()) if reflector is not None else ():
            if not pod.spec.node_name and pod.spec.scheduler_name not in self.engine.profiles:
                yield others.view(pod)

    def debug(self) -> None:
        """Compare what we believe with what the watches said, and log both."""
        if self.engine is None or self.reflectors is None:
            log.warning("nothing is followed yet, so there is nothing to compare")
            return
        nodes, pods = (self.reflectors.by_kind[kind].objects for kind in ("Node", "Pod"))
        debug_later(self.engine, nodes.values, pods.values)

    async def _serve(self, connection: Connection, face: Face, ends: contextlib.AsyncExitStack) -> None:
        """Serve health, metrics and the rest; before leadership, as standbys are asked too."""
        who = await _reviews("authentication", face.authentication.kubeconfig, ends)
        may = await _reviews("authorization", face.authorization.kubeconfig, ends)
        guard = await web.new_guard(
            face.authentication,
            face.authorization,
            token_reviewer=who,
            access_reviewer=may,
            lookup=None if who is None else who.authentication_config,
        )
        world = self.wiring.legacy
        what_if: Iterable[Any] = ()
        if face.what_if is not None and world is None:  # a scheduler of an old release has no configuration to plan by
            what_if = face.what_if(self, connection.sibling("page"))
            self.page_data.offers = web.WHAT_IFS
        late = web.leader_election_check(lambda: False)  # the elector ends the process before it could be late
        elects = self.configuration.leader_election.leader_elect
        parts = web.WebParts(
            registry=register(self.metrics, CollectorRegistry()),
            gates=self.wiring.gates,
            about=web.About(time.time(), face.version, ".".join(map(str, self.wiring.gates.emulated))),
            healthz=(late,) if elects else (web.PING,),
            readyz=(
                *((late,) if elects else ()),
                web.shutdown_check(lambda: self.is_stopping),
                web.handlers_check(lambda: self.is_synced),
            ),
            reset_metrics=self.metrics.reset,
            pods=self._pods,
            is_leader=lambda: self.is_leader,
            configz=lambda: config.effective(self.configuration) if world is None else world.document(),
            flags=face.flags,
            has_profiling=self.configuration.enable_profiling,
            has_contention_profiling=self.configuration.enable_contention_profiling,
            authenticator=guard.authenticator,
            authorizer=guard.authorizer,
            extra_routes=[*web.page_routes(self.page_data), *self.decision_routes, *what_if],
            open_paths=web.open_paths(),
        )
        server = await web.serve(web.build_app(parts), face.serving, guard)
        if server is not None:
            ends.push_async_callback(server.stop)
        host, port = world.insecure_address if world is not None else ("", 0)
        if port:
            old = await web.serve_insecurely(web.build_insecure_app(parts), host, port)
            ends.push_async_callback(old.stop)


def _say_leader(who: str) -> None:
    log.info("new leader elected: %s", who) if who else log.info("the leader has stepped down")


async def _reviews(task: str, kubeconfig: str, ends: contextlib.AsyncExitStack) -> Reviews | None:
    """Return whom to ask about callers, which is not the server that we schedule for, unless the flags say so."""
    source = delegated_credentials(kubeconfig)
    if source is None:
        log.warning("no --%s-kubeconfig is given, and we run in no cluster: %s", task, _UNREVIEWED[task])
        return None
    try:
        connection = await connect(source, name=task, qps=_REVIEW_QPS, burst=2 * _REVIEW_QPS)
    except ConfigError as error:
        raise ConfigError("", f"failed to get delegated {task} kubeconfig: {error}") from error
    ends.push_async_callback(connection.close)
    return Reviews(connection)


class _Flushed(Protocol):
    """A file, or something like it."""

    def flush(self) -> None:
        """Write what is held back."""
        ...


async def _flush(file: _Flushed) -> None:
    """Write out from time to time what is held back: a log that ends in the middle of a crash is worth the most."""
    while True:
        await asyncio.sleep(_FLUSH_SECONDS)
        file.flush()


async def _fetch_policy(connection: Connection, where: legacy.FromConfigMap) -> ConfigMap:
    """Return the ConfigMap that holds the policy; raise ConfigError if it cannot be had."""
    try:
        return await get_object(connection, ConfigMap, where.name, where.namespace)
    except (ApiError, Unreachable) as error:
        raise legacy.no_config_map(where, error) from error


def stop_on_signals(scheduler: Scheduler) -> None:
    """Stop a scheduler on SIGTERM or SIGINT; a second one ends the process at once with exit code 1. SIGUSR2 lets it
    compare and dump what it believes."""
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
    loop.add_signal_handler(signal.SIGUSR2, scheduler.debug)
