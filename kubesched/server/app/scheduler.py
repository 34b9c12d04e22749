"""One replica of the scheduler, from its connection to its end.

    connect -> serve health and metrics -> follow everything (the inbox fills) -> wait to lead -> try pods until the end

A standby follows everything and tries no pods, so it can take over at once when the leader is gone. A leader that loses its
lease ends the program: two leaders are worse than none for some seconds.

The `--config` file is checked every second. If it changed and is valid, a new engine takes over between two decisions:

    build      the new profiles are built in the old engine's loop; if that fails, the old engine stays
    drain      the old engine tries no more pods; bindings under way may end, for up to 30 s
    take over  the new engine has the same store and inbox, and queues every pod of the old one, with attempts and nomination
    run        the new engine leads if the old one did

Example: the file changes at 12:00:00, and pod web-1 waits at Permit, pod web-2 is being bound.

    12:00:01   the change is seen; the new engine is built, the old one begins to drain
               web-1 is refused at Permit and goes back to the queue; changes still reach the store
    12:00:02   web-2 is bound. Nothing is under way, so the old engine stops
               the new engine takes the pods over and leads; web-1 is tried by the new profiles
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from kubesched.errors import ApiError, ConfigError, Unreachable
from kubesched.kube.api import ConfigMap
from kubesched.kube.client import (
    CORE_V1,
    ApiDispatcher,
    Backoff,
    Broadcaster,
    Chance,
    Connection,
    LeaseLost,
    LogThrottle,
    Observers,
    Recorder,
    Reflectors,
    Writer,
    advice,
    connect,
    get_object,
    make_identity,
    watch_set,
)
from kubesched.scheduler import config, legacy
from kubesched.scheduler.cluster import PodView, Store, Templates
from kubesched.scheduler.config import text_of
from kubesched.scheduler.engine import (
    Changed,
    DecisionRecorder,
    Engine,
    EngineHandle,
    InboxLog,
    LoopCall,
    Ports,
    assemble,
    await_the_list,
    debug_later,
    engine_options,
    new_handle,
    queue_options,
    registry_with,
    spare_the_collector,
)
from kubesched.scheduler.framework import Plugin, Registry, catalogue
from kubesched.server import web
from kubesched.server.app.backlog import say_if_behind
from kubesched.server.app.leadership import Leadership
from kubesched.server.app.serving import serve
from kubesched.server.app.sizes import watch_sizes
from kubesched.server.app.wiring import Wiring
from kubesched.telemetry import Metrics

log = logging.getLogger(__name__)

LOST_LEASE = "leader election lost"
_LOOK_AT_FILE_SECONDS = 1.0
_DRAIN_SECONDS = 30.0
_FLUSH_SECONDS = 1.0


class RecorderByProfile:
    """Records each pod's events with the name of its profile as the reporting controller."""

    def __init__(self, broadcaster: Broadcaster, configuration: config.Configuration) -> None:
        self._broadcaster = broadcaster
        self.follow(configuration)

    def follow(self, configuration: config.Configuration) -> None:
        """Record for the profiles of a configuration."""
        names = [profile.scheduler_name for profile in configuration.profiles]
        self._recorders: Mapping[str, Recorder] = {name: self._broadcaster.recorder(name) for name in names}
        self._any = self._recorders[names[0]]

    def event(self, regarding: PodView, kind: str, reason: str, action: str, note: str) -> None:
        """Record that something happened to a pod."""
        # After a reload a pod's profile may be gone while its last event is still to be written.
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
        self.is_synced = False
        self.is_stopping = False
        self._stopped = asyncio.Event()
        # By name. `_watch_over` waits for them, and the first that fails ends the program.
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._prepared: tuple[Store, EngineHandle] | None = None
        self._outside = Ports()
        self._broadcaster: Broadcaster | None = None
        self._recorder: RecorderByProfile | None = None
        self._policy: ConfigMap | None = None
        self._annotations = wiring.legacy.annotations if wiring.legacy is not None else None
        self.leadership = Leadership(
            configuration.leader_election, wiring.gates, self.identity, self.metrics, knows_old_locks=wiring.legacy is not None
        )

    @classmethod
    def catalogue(cls, plugins: tuple[type[Plugin], ...] = ()) -> dict[str, config.Known]:
        """Return the plugins that a configuration may name, with `plugins`."""
        return catalogue(registry_with(plugins, installed=True))

    # Called by the reflectors

    def deliver(self, kind: str, old: Any | None, new: Any | None) -> None:
        """Put a change into the inbox."""
        assert self.engine is not None
        # Old releases read affinity and tolerations from annotations. They are turned into fields here, before anything else
        # sees the object.
        if self._annotations is not None:
            old, new = self._annotations.read(old), self._annotations.read(new)
        self.engine.inbox.post(Changed(kind, old, new))

    def synced(self, kind: str) -> None:
        """Note that a kind's first list is in the inbox."""
        log.debug("caches are synced for %s", kind)

    # Running

    async def run(self) -> None:
        """Run until stopped; raise `LeaseLost` if the lease is lost."""
        async with self._connected() as connection, contextlib.AsyncExitStack() as ends:
            try:
                self._begin("starting", self._start(connection, ends))
                await self._watch_over()
            finally:
                self.is_stopping = True
                if self.engine is not None:
                    self.engine.stop()
                # Order: no new decisions, then everything that talks to the API server (the elector releases its lease when it
                # is cancelled), then the bindings. `_connected` closes the connection last.
                for task in self._tasks.values():
                    task.cancel()
                await asyncio.gather(*self._tasks.values(), return_exceptions=True)
                if self.engine is not None:
                    await self.engine.abandon()

    def stop(self) -> None:
        """End `run`: release the lease and write no more."""
        self.is_stopping = True
        self._stopped.set()

    async def _watch_over(self) -> None:
        """Return after `stop`; raise what any part raises, and `LeaseLost` when the lease is lost."""
        stopping = self._begin("stopping", self._stopped.wait())
        while not stopping.done():
            # The time limit is for tasks that begin while we wait: `asyncio.wait` knows only those that it was given.
            done, _ = await asyncio.wait(self._tasks.values(), timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            for name in [name for name, task in self._tasks.items() if task in done and name != "stopping"]:
                # Raises what the task raised, which ends the program. A task that just ends, such as "starting", is dropped.
                self._tasks.pop(name).result()
                if name == "leading" and not self.is_stopping:
                    old_release = self.wiring.legacy
                    raise LeaseLost(LOST_LEASE if old_release is None else old_release.release.lost_lease)

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
        self._recorder = RecorderByProfile(broadcaster, self.configuration)
        old_release, poster = self.wiring.legacy, self.wiring.poster()
        ends.callback(poster.close)
        # Only writes about the cluster are fenced. Events and the lease have connections of their own: a standby records events
        # too.
        writer = self._writer(self.leadership.fenced(connection), chance)
        self._outside = Ports(
            clock=self.wiring.clock,
            writer=writer,
            let_bind=writer.let_bind,
            recorder=self._recorder,
            observer=reporter,
            queue_observer=reporter,
            decisions=self.decisions,
            meter=self.metrics,
            seed=self.wiring.seed,
            poster=poster if old_release is None else old_release.poster(poster),
            ties=None if old_release is None else old_release.ties(self.wiring.seed),
        )
        # The store and the handle outlive reloads; only what depends on the configuration is built anew.
        self._prepared = new_handle(self.wiring.gates, self._outside)
        if old_release is not None and old_release.config_map is not None:
            self._policy = await _fetch_policy(connection, old_release.config_map)
        self.engine = engine = self._build(self.configuration)
        if self.wiring.inbox_log is not None:
            release = text_of(self.wiring.gates.emulated)
            InboxLog(engine.inbox, engine.handle.clock, self.wiring.inbox_log, seed=self.wiring.seed, release=release)
            self._begin("writing down", _flush(self.wiring.inbox_log))
        if self.wiring.decision_log is not None and self.decisions is not None:
            self.decisions.listeners.append(self.wiring.decision_log)
            ends.callback(self.wiring.decision_log.close)
            self._begin("writing decisions", _flush(self.wiring.decision_log))
        if self.wiring.decision_spans is not None and self.decisions is not None:
            self.decisions.listeners.append(self.wiring.decision_spans)
            ends.callback(self.wiring.decision_spans.close)
        # A new engine leads by default, for runs without election. Here `_let_lead` decides when it begins.
        engine.is_leading = False
        self._watch_sizes(engine)
        if self.wiring.face is not None:
            await serve(self, connection, self.wiring.face, ends, self._pods)
        self._begin("events", broadcaster.run())
        self._begin("engine", engine.run())
        self._begin("backlog", say_if_behind(lambda: self.engine, self.wiring.clock))
        self._begin("history", self.throughput.history.keep(lambda: self.engine))
        if self.wiring.reload is not None:
            self._begin("reloading", self._reload(self.wiring.reload))
        elects = self.leadership.elects
        # delayCacheUntilActive: a standby follows nothing and saves memory and watches. It pays with a full list when it takes
        # over.
        if elects and self.configuration.delay_cache_until_active:
            self._begin("leading", self._lead(connection, follows=True))
            return
        await self._follow(connection)
        if elects:
            self._begin("leading", self._lead(connection, follows=False))
        else:
            self._let_lead()

    def _build(self, configuration: config.Configuration) -> Engine:
        assert self._prepared is not None
        gates, old_release, profiles = self.wiring.gates, self.wiring.legacy, None
        options = replace(engine_options(configuration, gates), assumed_ttl_seconds=self.wiring.assumed_ttl_seconds)
        if old_release is not None:
            # A policy of an old release gives one profile of predicates and priorities. Its extenders stand in the policy too.
            algorithm = old_release.algorithm(self._prepared[1], self._policy)
            profiles = {algorithm.profile.name: algorithm.profile}
            configuration = replace(configuration, extenders=algorithm.extenders)
            options = replace(options, remembers=options.remembers and old_release.remembers, scores_bare_nodes=False)
        queue = queue_options(configuration, gates, self.wiring.max_waiting_seconds)
        engine = assemble(
            configuration,
            gates,
            self._outside,
            registry=self.registry,
            prepared=self._prepared,
            profiles=profiles,
            # At a reload the inbox stays: what arrives while the engines change waits in it for the new one.
            inbox=self.engine.inbox if self.engine is not None else None,
            options=options,
            queue_as=queue if old_release is None else old_release.queueing(queue),
        )
        for profile in engine.profiles.values():
            profile.observe = self.metrics.observer(profile.name)
            if self.wiring.decision_spans is not None:
                profile.observe = self.wiring.decision_spans.beside(profile.observe)
        return engine

    # Following

    async def _follow(self, connection: Connection) -> None:
        """Start the reflectors, and return when their first lists are in the store and the queue."""
        assert self.engine is not None
        rows = watch_set([name for name, on in self.wiring.gates.states.items() if on], _custom_kinds(self.engine))
        streams = self.wiring.gates.is_enabled("WatchListClient")
        backoff, throttle = Backoff(connection.clock, self.wiring.chance), LogThrottle(connection.clock)
        while True:
            try:
                # Tried for ever: the scheduler may start before the API server does, as in a control plane that boots.
                self.reflectors = await Reflectors.prepare(connection, rows, self, self.wiring.chance, streams=streams)
                break
            except (ApiError, Unreachable) as error:
                if throttle.is_worth_saying(text := advice(error)):
                    log.error("cannot ask what the API server serves: %s; trying again", text)
                await backoff.pause()
        if self.wiring.owns_process:
            await_the_list()
        # From "listed" to "applied": `wait_synced` returns when the last object of the first lists is in the inbox. A call that
        # is posted behind it runs when all of them are in the store. Only then may a pod be tried: with half of the nodes it
        # would be refused, or placed badly.
        self._begin("watching", self.reflectors.run())
        await self.reflectors.wait_synced()
        taken_in = asyncio.Event()
        self.engine.inbox.post(LoopCall(taken_in.set))
        await taken_in.wait()
        self.is_synced = True
        log.info("caches are synced")
        if self.wiring.owns_process:
            spare_the_collector()

    # Leading

    async def _lead(self, connection: Connection, *, follows: bool) -> None:
        """Wait to lead, then lead; return when the lease is lost. With `follows` the reflectors are started only then."""
        broadcaster = self._broadcaster
        assert broadcaster is not None

        # In a task of its own: callbacks of the elector must not block, or the lease would not be renewed while the cluster is
        # listed.
        async def follow_first() -> None:
            await self._follow(connection)
            self._let_lead()

        def began() -> None:
            if follows:
                self._begin("following", follow_first())
            else:
                self._let_lead()

        # At once, before the program ends: no pod is tried from here on. Writes under way are stopped by the fence.
        def ended() -> None:
            assert self.engine is not None
            self.engine.is_leading = False

        candidate = self.leadership.candidate(connection)
        if candidate is not None:
            self._begin("standing as a candidate", candidate.run())
        recorder = broadcaster.recorder(self.configuration.profiles[0].scheduler_name, CORE_V1)
        await self.leadership.run(connection, recorder, self.wiring.chance, began, ended)

    def _let_lead(self) -> None:
        assert self.engine is not None
        self.engine.lead()

    def _writer(self, connection: Connection, chance: Chance) -> Writer:
        # The dispatcher sends at most `parallelism` calls at a time; without it each binding cycle sends its own.
        if not self.wiring.gates.is_enabled("SchedulerAsyncAPICalls"):
            return Writer(connection, chance)
        dispatcher = ApiDispatcher(connection, self.configuration.parallelism, self.metrics.api_call_finished, chance)
        self.metrics.watch(pending_calls=dispatcher.pending)
        return dispatcher

    @property
    def is_leader(self) -> bool:
        """Return whether this replica tries pods."""
        return self.engine is not None and self.engine.is_leading

    # Reloading

    async def _reload(self, read: Callable[[], config.Configuration]) -> None:
        """Watch the configuration file. A changed one is used if it is valid; otherwise the old one stays and an error is
        logged."""
        while True:
            # Polled: a mounted ConfigMap is replaced by renaming a symbolic link, which a watch on the file does not see.
            await asyncio.sleep(_LOOK_AT_FILE_SECONDS)
            if not self.wiring.has_changed():
                continue
            try:
                # Only errors of the configuration are caught. Anything else is a bug and ends the program loudly
                # (`_watch_over`).
                changed = read()
                await self.swap(changed)
            except ConfigError as error:
                self.metrics.config_reloaded("error")
                log.error("the changed configuration is refused, the old one stays: %s", error)
                continue
            self.metrics.config_reloaded("success")
            log.info("the changed configuration is in use")

    async def swap(self, configuration: config.Configuration) -> None:
        """Replace the engine by one with another configuration. No pod is lost."""
        old = self.engine
        assert old is not None

        def build(engine: Engine) -> Engine:
            new = self._build(configuration)
            engine.is_draining = True
            return new

        new = await old.in_turn(build)  # in its loop: no attempt may run in a thread meanwhile
        await old.drain(_DRAIN_SECONDS)
        # From here until `new.run` begins nobody empties the inbox. The watches go on and post to it.
        old.stop()
        await self._tasks.pop("engine")
        new.take_over(old)
        for fixed in (
            "leader_election",
            "client_connection",
            "enable_profiling",
            "enable_contention_profiling",
            "delay_cache_until_active",
        ):
            # These were used when the connection, the elector and the HTTP server were built, which are not replaced.
            if getattr(configuration, fixed) != getattr(self.configuration, fixed):
                log.warning("%s has changed in the configuration, which takes effect at the next start", fixed)
        known = _custom_kinds(old)
        for kind in (kind for kind in _custom_kinds(new) if kind not in known):
            log.warning("plugins of the changed configuration wait for %s, which is followed from the next start on", kind)
        self.engine, self.configuration = new, configuration
        # Only `lead` below switches it on: a standby reloads its configuration too.
        new.is_leading = False
        self._watch_sizes(new)
        if self._recorder is not None:
            self._recorder.follow(configuration)
        self._adopt(old)
        self._begin("engine", new.run())
        if old.is_leading and not self.leadership.is_lost:  # leadership may have changed while the old engine was drained
            new.lead()

    def _adopt(self, old: Engine) -> None:
        """Deliver the pods whose schedulerName only the new configuration knows. The old engine ignored them when they came.
        They go through the inbox, after older changes of the same pods."""
        assert self.engine is not None
        reflector = self.reflectors.by_kind.get("Pod") if self.reflectors is not None else None
        for pod in list(reflector.objects.values()) if reflector is not None else ():
            name = pod.spec.scheduler_name
            if not pod.spec.node_name and name in self.engine.profiles and name not in old.profiles:
                self.deliver("Pod", None, pod)

    # For metrics and the page

    def _watch_sizes(self, engine: Engine) -> None:
        watch_sizes(self.metrics, engine, (lambda: self.reflectors) if self.wiring.gates.behaviour.names_informers else None)

    def _pods(self) -> Iterable[PodView]:
        """Yield all known pods: those with a node, ours without one, and those of other schedulers without one."""
        assert self.engine is not None
        # Each pod once: one with a node is in the store alone, one of ours without a node in the intake, one of another
        # scheduler only in the reflector.
        yield from self.engine.store.pods()
        yield from self.engine.intake.pending()
        reflector = self.reflectors.by_kind.get("Pod") if self.reflectors is not None else None
        others = Templates()  # separate, so that pods of other schedulers leave nothing in the store
        for pod in list(reflector.objects.values()) if reflector is not None else ():
            if not pod.spec.node_name and pod.spec.scheduler_name not in self.engine.profiles:
                yield others.view(pod)

    def debug(self) -> None:
        """Compare store and queue with the watches, and log both (SIGUSR2)."""
        if self.engine is None or self.reflectors is None:
            log.warning("nothing is followed yet, so there is nothing to compare")
            return
        nodes, pods = (self.reflectors.by_kind[kind].objects for kind in ("Node", "Pod"))
        debug_later(self.engine, nodes.values, pods.values)


class _Flushed(Protocol):
    """A file or a log with a buffer."""

    def flush(self) -> None:
        """Write the buffer."""


async def _flush(file: _Flushed) -> None:
    """Flush a file every second, so that it is nearly complete after a crash."""
    while True:
        await asyncio.sleep(_FLUSH_SECONDS)
        file.flush()


async def _fetch_policy(connection: Connection, where: legacy.FromConfigMap) -> ConfigMap:
    """Return the ConfigMap with the policy; raise ConfigError if it cannot be read."""
    try:
        return await get_object(connection, ConfigMap, where.name, where.namespace)
    except (ApiError, Unreachable) as error:
        raise legacy.no_config_map(where, error) from error


def _custom_kinds(engine: Engine) -> list[str]:
    """Return the custom resources, as plural.version.group, that plugins wait for."""
    return [name for name in engine.queue.watched_resources() if name.count(".") >= 2 and "/" not in name]
