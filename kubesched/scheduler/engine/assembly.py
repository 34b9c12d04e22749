"""Build an engine from a configuration and feature gates.

The scheduler, the benchmarks, the golden cases and the simulator all build their engine here, so they decide alike. They
differ in the `Ports` that they give: real or simulated clock, writer and recorder. The parts are built in the order of their
dependencies:

    store, handle -> profiles (plugins) -> queue -> core -> intake, failures, binder -> bookings, evictions -> attempts ->
    Engine
"""

from __future__ import annotations

import random as chance
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial

from kubesched.contrib.coscheduling import Coscheduling
from kubesched.errors import ConfigError
from kubesched.scheduler import config
from kubesched.scheduler.cluster import Gates as ClusterGates
from kubesched.scheduler.cluster import PodView, Store
from kubesched.scheduler.engine.acting.attempts import Attempts
from kubesched.scheduler.engine.acting.binding import Binder, WaitingPods
from kubesched.scheduler.engine.acting.bookings import Bookings
from kubesched.scheduler.engine.acting.eviction import Evictions
from kubesched.scheduler.engine.acting.failures import Failures
from kubesched.scheduler.engine.arrivals.inbox import Inbox
from kubesched.scheduler.engine.arrivals.intake import Intake
from kubesched.scheduler.engine.core import Core
from kubesched.scheduler.engine.deciding.attempt import Rules
from kubesched.scheduler.engine.deciding.extenders import Extenders, LetBind, Poster, just_bind
from kubesched.scheduler.engine.deciding.randomness import RandomByAttempt
from kubesched.scheduler.engine.deciding.sampling import Sampling
from kubesched.scheduler.engine.deciding.ties import SeededTies, Ties
from kubesched.scheduler.engine.groups.pod_groups import read_groups
from kubesched.scheduler.engine.handle import EngineHandle, NoMeter, NoRecorder, NoWriter, SystemClock
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.engine.observer import EngineObserver, NoObserver
from kubesched.scheduler.engine.records.decision_recorder import DecisionRecorder
from kubesched.scheduler.framework import (
    UNSCHEDULABLE_POD,
    UNSCHEDULED_POD,
    Clock,
    EquivalenceCache,
    Meter,
    Plugin,
    Preempting,
    Profile,
    Recorder,
    Registry,
    Writer,
    build_profile,
    catalogue,
    installed_plugins,
)
from kubesched.scheduler.plugins import IN_TREE
from kubesched.scheduler.plugins.default_preemption.plugin import DefaultPreemption
from kubesched.scheduler.queue import Queue, QueueObserver, QueueOptions, SteadyClock


@dataclass(slots=True)
class Ports:
    """What the engine uses of the outside. The defaults write nothing."""

    clock: Clock = field(default_factory=SystemClock)
    writer: Writer = field(default_factory=NoWriter)
    recorder: Recorder = field(default_factory=NoRecorder)
    meter: Meter = field(default_factory=NoMeter)
    observer: EngineObserver | None = None
    decisions: DecisionRecorder | None = None
    """Records decisions and what led to them."""
    queue_observer: QueueObserver | None = None
    ties: Ties | None = None
    poster: Poster | None = None
    """Sends requests to extenders. Without it a configuration with extenders is refused."""
    let_bind: LetBind = just_bind
    """Lets an extender bind a pod. With an API server this also limits the time and reads the pod back."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How the engine runs."""

    remembers: bool = True
    evicts_in_background: bool = True
    announces_expected_node: bool = True
    percentage_of_nodes: int = 0
    assumed_ttl_seconds: float | None = None
    """Forget a booking if the bound pod is not seen on its node for so long. None: never, as kube-scheduler today."""
    scores_bare_nodes: bool = True
    """Score nodes that an extender returned as if no pod were on them: a quirk of kube-scheduler, which 1.17 did not have."""


def registry_with(extra: Iterable[type[Plugin]] = (), *, installed: bool = False) -> Registry:
    """Return the in-tree plugins with `extra` ones, and with `installed` those that installed packages offer."""
    registry = _in_tree().copy()
    for cls in extra:
        registry.register(cls)
    for cls in installed_plugins() if installed else ():
        if registry.find(cls.name) is None:  # `extra` wins, also over an older version of the same plugin
            registry.register(cls)
    return registry


@cache
def _in_tree() -> Registry:
    """Return kube-scheduler's plugins, and Coscheduling, which a configuration can name without `--plugin`. Checking their
    signatures takes 10 ms, so this is done once."""
    return Registry(*IN_TREE, Coscheduling)


def default_configuration(gates: config.Gates | None = None, registry: Registry | None = None) -> config.Configuration:
    """Return the configuration of a scheduler without a `--config` file."""
    return config.defaults(gates=gates or config.Gates.defaults(), registry=catalogue(registry or registry_with()))


def build_profiles(configuration: config.Configuration, registry: Registry, handle: EngineHandle) -> dict[str, Profile]:
    """Build every profile of a configuration."""
    return {p.scheduler_name: build_profile(p, registry, handle) for p in configuration.profiles}


def new_handle(gates: config.Gates, ports: Ports) -> tuple[Store, EngineHandle]:
    """Return an empty store, and a handle over it for plugins."""
    store = Store(
        ClusterGates(
            pod_level_resources=gates.is_enabled("PodLevelResources"),
            in_place_resize=gates.is_enabled("InPlacePodVerticalScaling"),
            in_place_pod_level_resize=gates.is_enabled("InPlacePodLevelResourcesVerticalScaling"),
            node_allocatable_claims=gates.is_enabled("DRANodeAllocatableResources"),
            toleration_comparison=gates.is_enabled("TaintTolerationComparisonOperators"),
            whole_pod_resize=gates.behaviour.sums_resized_pods_whole,
        )
    )
    handle = EngineHandle(
        store.objects,
        gates,
        ports.clock,
        ports.writer,
        ports.recorder,
        chance.Random(ports.seed),
        meter=ports.meter,
        groups=store.groups,
        find_node=store.node,
        knows_pod=lambda uid: store.pod(uid) is not None,
        preempting=Preempting(partial(_stays, store)),
    )
    return store, handle


def _stays(store: Store, victim: PodView) -> bool:
    """Return whether a victim exists and is not being deleted."""
    found = store.pod(victim.uid)
    return found is not None and found.pod.metadata.deletion_timestamp is None


def engine_options(configuration: config.Configuration, gates: config.Gates) -> EngineOptions:
    """Return how an engine runs under a configuration and gates.

    OpportunisticBatching is kube-scheduler's cache of answers; the gate switches ours. Releases before 1.35 have no such
    cache. Ours is on there too: it does not change decisions.
    """
    return EngineOptions(
        remembers=gates.is_enabled("OpportunisticBatching") or gates.emulated < (1, 35),
        evicts_in_background=gates.is_enabled("SchedulerAsyncPreemption"),
        announces_expected_node=gates.is_enabled("NominatedNodeNameForExpectation"),
        percentage_of_nodes=configuration.percentage_of_nodes_to_score,
    )


def queue_options(configuration: config.Configuration, gates: config.Gates, max_waiting_seconds: float = 300.0) -> QueueOptions:
    """Return how a queue runs under a configuration and gates."""
    return QueueOptions(
        initial_backoff_seconds=configuration.pod_initial_backoff_seconds,
        max_backoff_seconds=configuration.pod_max_backoff_seconds,
        max_waiting_seconds=max_waiting_seconds,
        pops_from_backoff=gates.is_enabled("SchedulerPopFromBackoffQ"),
        has_extenders=bool(configuration.extenders),
        has_pod_groups=gates.is_enabled("GenericWorkload"),
        asks_hints=gates.is_enabled("SchedulerQueueingHints"),
        taints_announce_nodes=not gates.behaviour.wakes_refused_by_taints_alone,
        pending_pod=UNSCHEDULED_POD if gates.behaviour.names_target_pod else UNSCHEDULABLE_POD,
        nominates_gated=gates.behaviour.counts_gated_nominated,
    )


def assemble(
    configuration: config.Configuration,
    gates: config.Gates,
    ports: Ports | None = None,
    *,
    registry: Registry | None = None,
    profiles: Mapping[str, Profile] | None = None,
    prepared: tuple[Store, EngineHandle] | None = None,
    inbox: Inbox | None = None,
    options: EngineOptions | None = None,
    queue_as: QueueOptions | None = None,
) -> Engine:
    """Build an engine. `profiles`, with the store and handle that they were built for, replace the configured ones."""
    ports, options = ports or Ports(), options or engine_options(configuration, gates)
    store, handle = prepared or new_handle(gates, ports)
    if profiles is None:
        profiles = build_profiles(configuration, registry or registry_with(), handle)
    queue_as = queue_as or queue_options(configuration, gates)
    queue = Queue(list(profiles.values()), SteadyClock(handle.clock), queue_as, ports.queue_observer)
    # By attempt: how many numbers one attempt draws does not change those of the next.
    handle.random = RandomByAttempt(ports.seed, lambda: queue.scheduling_cycle)
    core = Core(
        store,
        profiles,
        queue,
        handle,
        inbox if inbox is not None else Inbox(),  # an empty one counts as false
        ports.observer or NoObserver(),
        ports.decisions,
    )
    extenders = _extenders(configuration, ports, profiles, scores_bare_nodes=options.scores_bare_nodes)
    rules = Rules(
        ports.ties or SeededTies(ports.seed),
        queue.nominations,
        percentage_of_nodes=options.percentage_of_nodes,
        sampling=Sampling(),
        extenders=extenders,
    )
    if ports.decisions is not None:
        ports.decisions.attach(rules, handle.clock)
    read_groups(core)
    waiting = WaitingPods()
    intake = Intake(
        store,
        queue,
        tuple(profiles),
        gates=handle.gates,
        reject_waiting=waiting.reject,
        members=store.groups if store.groups.are_kept else None,
        handled=ports.observer.event_handled if ports.observer is not None else None,
        node_changed=ports.decisions.node_changed if ports.decisions is not None else None,
    )
    failures = Failures(core, intake.pod)
    binder = Binder(core, waiting, writes_expectation=options.announces_expected_node, extenders=extenders)
    bookings = Bookings(core, waiting, failures, binder, options.assumed_ttl_seconds)
    evictions = Evictions(core, intake.pod, waiting, binder, in_background=options.evicts_in_background)
    caches = {
        name: EquivalenceCache(profile, waits_for_second=True)
        for name, profile in profiles.items()
        if options.remembers and rules.may_recall(profile)
    }
    attempts = Attempts(core, rules, caches, bookings, evictions, failures)
    # Last: at a reload plugins of the old engine use this handle until now, and from now on the parts of the new one.
    handle.attach(queue.nominations, waiting, queue.activate)
    return Engine(core, intake, attempts, bookings, failures, waiting)


def _extenders(
    configuration: config.Configuration, ports: Ports, profiles: Mapping[str, Profile], *, scores_bare_nodes: bool
) -> Extenders | None:
    """Return the configuration's extenders, or None. Preemption calls them too."""
    if not configuration.extenders:
        return None
    if ports.poster is None:
        raise ConfigError("extenders", "this run has no way to reach extenders")
    extenders = Extenders(configuration.extenders, ports.poster, scores_bare_nodes=scores_bare_nodes, let_bind=ports.let_bind)
    for profile in profiles.values():
        for plugin in profile.plugins:
            if isinstance(plugin, DefaultPreemption):
                plugin.narrow.append(extenders.narrow)
    return extenders
