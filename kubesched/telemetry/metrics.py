"""The metrics: one cheap method for each thing that is counted.

A call costs a dictionary look-up and an append, 0.1 to 0.3 µs, and no object of the Prometheus library. Nothing is computed
until a scrape; then `exposing` makes Prometheus text of it. Sizes of queues and stores are not counted here at all: they are
read at the scrape (`watch`).

    in the loop     metrics.schedule_attempts("scheduled", "default-scheduler", 0.0004)     one count, one append
    at a scrape     exposing sorts what was appended into buckets and writes text

Writing and reading happen in the event loop's thread, so there are no locks. With extenders, decisions run in a second thread,
while the loop waits for it and may serve a scrape. So `exposing` copies the list of series before it renders them.

kube-scheduler reports some wrong values (docs/reference/metrics.md lists them). Here they are right.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kubesched.telemetry.families import RELEASE, Family, Kind, Version, exists, hidden, selected
from kubesched.telemetry.logs import logger
from kubesched.telemetry.process_families import KUBERNETES, OWN
from kubesched.telemetry.samples import FULL, Counts, Histogram, Labels, new_counts
from kubesched.telemetry.scheduler_families import OLD, SCHEDULER

log = logger(__name__)

FAMILIES = SCHEDULER + OLD + KUBERNETES + OWN

SAMPLED_SHARE = 0.1
"""The share of attempts in which single plugins are timed."""

SLOW_SECONDS = 0.1
"""One call of a plugin that takes so long is counted as a failure and named in the log."""
LOGGED_EVERY_SECONDS = 10.0
_WAITING = frozenset({"PreBind", "Bind"})  # these wait for others on purpose, beside the loop

PREEMPTION = "DefaultPreemption"
POD = "pod"  # what is queued here, and what preempts
INBOX = "inbox"
_EVALUATED = frozenset({"PreFilter", "Filter", "PreScore", "Score"})
_MOST_ATTEMPTS = 15

Sizes = Callable[[], Mapping[str, float] | Mapping[Labels, float]]
"""By the value of the only label, or by the values of all."""
PluginObserver = Callable[[str, str, str, float], None]


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Which metrics exist, and the labels of the constant ones."""

    disabled: tuple[str, ...] = ()
    shown_for: str = ""  # --show-hidden-metrics-for-version
    allowed_label_values: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    is_enabled: Callable[[str], bool] = lambda gate: True
    is_legacy: bool = False
    has_native_histograms: bool = False
    features: tuple[tuple[str, str, bool], ...] = ()  # name, stage, on
    build: Mapping[str, str] = field(default_factory=dict)  # the labels of kubernetes_build_info
    versions: Mapping[str, str] = field(default_factory=dict)  # those of version_info
    release: Version = RELEASE  # whose families these are


class Metrics:
    """Everything that is counted. Fits the queue's `Observer`; `observer` fits a profile's."""

    def __init__(
        self,
        settings: MetricsSettings | None = None,
        families: Iterable[Family] = FAMILIES,
        chance: random.Random | None = None,
    ) -> None:
        self.settings = given = settings or MetricsSettings()
        self.families = tuple(families)
        self.shown = selected(
            self.families,
            given.is_enabled,
            is_legacy=given.is_legacy,
            disabled=given.disabled,
            shown_for=given.shown_for,
            release=given.release,
        )
        self.counters: dict[str, Counts] = {}
        self.gauges: dict[str, Counts] = {}
        self.histograms: dict[str, Histogram] = {}
        self.sizes: dict[str, Sizes] = {}
        self._chance = chance or random.Random()
        self.is_sampling = False
        self._slow_logged_at: dict[tuple[str, str], float] = {}
        self._keeps_old = given.is_legacy
        for family in self.families:
            # All families get a book, also those that are not shown: the methods below then need no check. What nobody reads
            # costs an append.
            if family.kind is Kind.HISTOGRAM:
                self.histograms[family.name] = Histogram(family.bounds, given.has_native_histograms)
            else:
                book = self.counters if family.kind is Kind.COUNTER else self.gauges
                book[family.name] = new_counts()
        self._bind_hot_books()
        self._state_constants()

    def _bind_hot_books(self) -> None:
        # Looked up once: these are written for every plugin of every pod.
        self._points = self.histograms["scheduler_framework_extension_point_duration_seconds"]
        self._plugins = self.histograms["scheduler_plugin_execution_duration_seconds"]
        self._hints = self.histograms["scheduler_queueing_hint_execution_duration_seconds"]
        self._events = self.histograms["scheduler_event_handling_duration_seconds"]
        self._evaluations = self.counters["scheduler_plugin_evaluation_total"]
        self._incoming = self.counters["scheduler_queue_incoming_pods_total"]
        self._unschedulable = self.gauges["scheduler_unschedulable_pods"]
        self._working = self.gauges["scheduler_goroutines"]

    def _state_constants(self) -> None:
        if self.settings.build:
            self._count_in("kubernetes_build_info", self.gauges, self.settings.build)
        if self.settings.versions:
            self._count_in("version_info", self.gauges, self.settings.versions)
        self.gauges["rest_client_exec_plugin_ttl_seconds"][()] = math.inf  # no certificate of a plugin's ends
        self._start_counting()
        for name, stage, is_on in self.settings.features:
            self.gauges["kubernetes_feature_enabled"][name, stage] = float(is_on)

    def _start_counting(self) -> None:
        given = self.settings
        for family in self.shown:
            since = "{}.{}.0".format(*family.deprecated) if family.deprecated else ""
            # As Kubernetes counts its own registrations. Also after a reset, because these metrics stay registered.
            self.counters["registered_metrics_total"][since, family.stability] += 1
        self.counters["disabled_metrics_total"][()] = float(len(given.disabled))
        here = [family for family in self.families if exists(family, given.release)]
        n_hidden = sum(hidden(family, given.shown_for, given.release) for family in here)
        self.counters["hidden_metrics_total"][()] = float(n_hidden)
        # An alert asks for the increase, and a series that begins at 1 has none: the first refusal would go unseen.
        for result in ("success", "error"):
            self.counters["kubesched_config_reloads_total"][(result,)] = 0.0

    def _count_in(self, name: str, books: Mapping[str, Counts], labels: Mapping[str, str]) -> None:
        family = next(family for family in self.families if family.name == name)
        books[name][tuple(labels.get(label, "") for label in family.labels)] = 1.0

    # Sizes, asked for when somebody reads

    def watch(
        self,
        *,
        pending_pods: Sizes | None = None,
        inflight_events: Sizes | None = None,
        cache_size: Sizes | None = None,
        waiting: Sizes | None = None,
        pending_calls: Sizes | None = None,
        informer_items: Sizes | None = None,
        informer_versions: Sizes | None = None,
    ) -> None:
        """Remember whom to ask: for pods by queue, kept events by label, the store by type, and how many things wait
        in an inbox, by its name; for calls to the API that wait, by kind; for objects that wait to be
        taken in and the version last seen, by group, version and resource."""
        asked = {
            "scheduler_pending_pods": pending_pods,
            "scheduler_inflight_events": inflight_events,
            "scheduler_cache_size": cache_size,
            "workqueue_depth": waiting,
            "scheduler_pending_async_api_calls": pending_calls,
            "informer_queued_items": informer_items,
            "informer_store_resource_version": informer_versions,
        }
        self.sizes.update({name: source for name, source in asked.items() if source is not None})

    # Attempts

    def begin_attempt(self) -> None:
        """Choose at random whether plugins are timed in this attempt."""
        # As kube-scheduler, which times single plugins in one of ten cycles, chosen at random. The choice is for the whole
        # attempt, so the plugins of one attempt can be compared.
        self.is_sampling = self._chance.random() < SAMPLED_SHARE

    def schedule_attempts(self, result: str, profile: str, seconds: float) -> None:
        """Count an attempt that is over: scheduled, unschedulable or error; deciding and binding took so long."""
        self.counters["scheduler_schedule_attempts_total"][result, profile] += 1
        self.histograms["scheduler_scheduling_attempt_duration_seconds"].observe((result, profile), seconds)

    def algorithm(self, seconds: float) -> None:
        """Record the time of a decision, with PostFilter where it ran."""
        self.histograms["scheduler_scheduling_algorithm_duration_seconds"].observe((), seconds)

    def pod_scheduled(self, attempts: int, sli_seconds: float, was_flushed: bool) -> None:
        """Count a pod that was bound: after so many attempts, so long after it first became active.

        `was_flushed`: it came to its last attempt because it had waited too long, not because something happened.
        """
        # A label for each number would make a series for each. kube-scheduler stops at 15+ as well.
        shown = str(attempts) if attempts < _MOST_ATTEMPTS else f"{_MOST_ATTEMPTS}+"
        self.histograms["scheduler_pod_scheduling_attempts"].observe((), attempts)
        self.histograms["scheduler_pod_scheduling_sli_duration_seconds"].observe((shown,), sli_seconds)
        if was_flushed:
            self.counters["scheduler_pod_scheduled_after_flush_total"][()] += 1

    def group_attempts(self, result: str, profile: str, seconds: float) -> None:
        """Count an attempt for a pod group: scheduled, unschedulable, waiting_on_preemption or error."""
        self.counters["scheduler_podgroup_schedule_attempts_total"][result, profile] += 1
        self.histograms["scheduler_podgroup_scheduling_attempt_duration_seconds"].observe((result, profile), seconds)

    def group_algorithm(self, seconds: float) -> None:
        """Record the time of a decision about a pod group."""
        self.histograms["scheduler_podgroup_scheduling_algorithm_duration_seconds"].observe((), seconds)

    # Plugins

    def extension_point(self, point: str, status: str, profile: str, seconds: float) -> None:
        """Record the time of all plugins of a point, with the status they came to."""
        # `Histogram.observe` written out: this is the most frequent call of all.
        series = self._points[point, status, profile]
        series.append(seconds)
        if len(series) >= FULL:
            series.fold()
        if self._keeps_old and point == "Bind":
            self.histograms["scheduler_binding_latency_microseconds"].observe((), seconds * 1e6)

    def plugin_execution(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """Record the time of one plugin; call it while `is_sampling`."""
        series = self._plugins[plugin, point, status]
        series.append(seconds)
        if len(series) >= FULL:
            series.fold()

    def observer(self, profile: str) -> PluginObserver:
        """Return what a profile calls after each plugin, and after each point with an empty plugin name."""

        def observe(point: str, plugin: str, status: str, seconds: float) -> None:
            # An empty plugin name: the time of the whole point.
            if not plugin:
                self.extension_point(point, status, profile, seconds)
                return
            # Measured for every call and not only for sampled ones: a plugin that blocks the loop must be found the first time.
            if seconds >= SLOW_SECONDS and point not in _WAITING:
                self._too_slow(plugin, point, seconds)
            if self.is_sampling:
                self.plugin_execution(plugin, point, status, seconds)
            if point in _EVALUATED:
                # Counted for every attempt. As in kube-scheduler a plugin that skips has not evaluated the pod.
                if status != "Skip":
                    self._evaluations[plugin, point, profile] += 1
            elif point == "PostFilter" and plugin == PREEMPTION:
                self.counters["scheduler_preemption_attempts_total"][()] += 1
                self.histograms["scheduler_preemption_evaluation_duration_seconds"].observe((POD, status), seconds)
            elif point == "PodGroupPostFilter" and plugin == PREEMPTION:
                self.counters["scheduler_workload_preemption_attempts_total"][(status,)] += 1
                self.histograms["scheduler_preemption_evaluation_duration_seconds"].observe(("podgroup", status), seconds)

        return observe

    def _too_slow(self, plugin: str, point: str, seconds: float) -> None:
        """Count a slow plugin call, and log it, but not every time."""
        self.plugin_failed(plugin, point)
        now = time.monotonic()
        if now - self._slow_logged_at.get((plugin, point), -LOGGED_EVERY_SECONDS) >= LOGGED_EVERY_SECONDS:
            self._slow_logged_at[plugin, point] = now
            log.warning(
                "Plugin takes too long; no other pod is tried meanwhile",
                plugin=plugin,
                extensionPoint=point,
                seconds=round(seconds, 3),
            )

    def plugin_failed(self, plugin: str, point: str) -> None:
        """Count that a plugin raised, returned an invalid answer or took too long."""
        self.counters["kubesched_plugin_failures_total"][plugin, point] += 1

    def permit_wait(self, result: str, seconds: float) -> None:
        """Record how long a pod waited at Permit, with the status that ended it."""
        self.histograms["scheduler_permit_wait_duration_seconds"].observe((result,), seconds)

    # The queue's Observer

    def queue_incoming(self, queue: str, event: str) -> None:
        """Count a pod that came to a queue (active, backoff, unschedulable), and why."""
        self._incoming[queue, event] += 1

    def unschedulable(self, plugin: str, profile: str, change: int) -> None:
        """Count a pod that a plugin begins (+1) or ceases (-1) to keep from being placed."""
        self._unschedulable[plugin, profile] += change

    def hint(self, plugin: str, event: str, answer: str, seconds: float) -> None:
        """Record the time that a hint took, with its answer: Queue, QueueSkip or Error."""
        series = self._hints[plugin, event, answer]
        series.append(seconds)
        if len(series) >= FULL:
            series.fold()

    def broke(self, plugin: str, point: str, pod: str, error: Exception) -> None:
        """Count that a plugin raised in the queue."""
        self.plugin_failed(plugin, point)

    # The cluster

    def event_handling(self, event: str, seconds: float) -> None:
        """Record how long it took to take in an event."""
        series = self._events[(event,)]
        series.append(seconds)
        if len(series) >= FULL:
            series.fold()
        self.histograms["workqueue_work_duration_seconds"].observe((INBOX,), seconds)

    def working(self, operation: str, change: int) -> None:
        """Count a piece of work that begins (+1) or ends (-1) beside the loop: binding, PreBind, a preemption."""
        self._working[(operation,)] += change

    # Preemption

    def placement_evaluated(self, result: str, profile: str, seconds: float) -> None:
        """Count a placement of a pod group that was made and tried: feasible or infeasible."""
        self.counters["scheduler_generated_placements_total"][(profile,)] += 1
        self.counters["scheduler_placement_evaluations_total"][result, profile] += 1
        self.histograms["scheduler_placement_evaluation_duration_seconds"].observe((result, profile), seconds)

    def preemption_victims(self, n_victims: int, n_violations: int = 0, n_groups: int = 0, preemptor: str = POD) -> None:
        """Record how many pods a preemption evicts, how many of them against a budget, and how many groups, or pods of
        groups."""
        family = "scheduler_preemption_victims" if preemptor == POD else "scheduler_workload_preemption_victims"
        self.histograms[family].observe((), n_victims)
        if n_groups:
            self.histograms["scheduler_preemption_workload_disruptions"].observe((preemptor,), n_groups)
        if n_violations:
            self.counters["scheduler_preemption_pdb_violations_total"][(preemptor,)] += n_violations

    def preemption_finished(self, result: str, seconds: float, preemptor: str = POD) -> None:
        """Record how long evicting in the background took, and whether it ended in success or error."""
        self.counters["scheduler_preemption_goroutines_execution_total"][(result,)] += 1
        self.histograms["scheduler_preemption_goroutines_duration_seconds"].observe((result,), seconds)
        self.histograms["scheduler_preemption_execution_duration_seconds"].observe((preemptor, result), seconds)

    # Devices, volumes, pod groups

    def claim_created(self, status: str) -> None:
        """Count a claim created for extended resources: success or failure."""
        self.counters["scheduler_resourceclaim_creates_total"][(status,)] += 1
        self.counters["dynamic_resource_allocation_resourceclaim_creates_total"][status, "false", "", "Pod"] += 1

    def device_bound(self, profile: str, driver: str, status: str) -> None:
        """Count a device with binding conditions, by how waiting for it ended: success, failure, timeout, error."""
        self.counters["scheduler_dra_bindingconditions_allocations_total"][profile, driver, status] += 1

    def device_waited(self, profile: str, driver: str, status: str, seconds: float) -> None:
        """Record how long a pod waited for an allocated device."""
        labels = (profile, driver, status)
        self.histograms["scheduler_dra_bindingconditions_wait_duration_seconds"].observe(labels, seconds)

    def volume_error(self, operation: str) -> None:
        """Count an error of Filter (predicate), Reserve (assume) or PreBind (bind) about volumes."""
        self.counters["scheduler_volume_scheduling_stage_error_total"][(operation,)] += 1

    # Around the scheduler

    def rest_observers(
        self, host: str
    ) -> tuple[Callable[[str, str, float], None], Callable[[str, float], None], Callable[[str, str], None]]:
        """Return what a connection to that host calls: after an answer (method, code, seconds; the code is `<error>` where no
        answer came), for the wait that our own limit imposed (method, seconds), and when it sends again (method, code)."""
        # Three closures and not methods: the host is fixed, and a connection calls them for every request.
        requests, retries = self.counters["rest_client_requests_total"], self.counters["rest_client_request_retries_total"]
        durations = self.histograms["rest_client_request_duration_seconds"]
        limited = self.histograms["rest_client_rate_limiter_duration_seconds"]

        def answered(method: str, code: str, seconds: float) -> None:
            requests[code, method, host] += 1
            durations.observe((method, host), seconds)

        def waited(method: str, seconds: float) -> None:
            limited.observe((method, host), seconds)

        def retried(method: str, code: str) -> None:
            retries[code, method, host] += 1

        return answered, waited, retried

    def transport_opened(self) -> None:
        """Count a pool of connections to the API server that was opened, for all clients that share it."""
        self.counters["rest_client_transport_create_calls_total"][("miss",)] += 1
        self.gauges["rest_client_transport_cache_entries"][()] += 1

    def leading(self, name: str, is_leader: bool) -> None:
        """Record whether this process holds the lease."""
        self.gauges["leader_election_master_status"][(name,)] = float(is_leader)

    def slow_renewal(self, name: str) -> None:
        """Count a renewal of the lease that had to read it first."""
        self.counters["leader_election_slowpath_total"][(name,)] += 1

    def api_call_finished(self, kind: str, result: str, seconds: float) -> None:
        """Count a call that the API dispatcher sent: success or error."""
        self.counters["scheduler_async_api_call_execution_total"][kind, result] += 1
        self.histograms["scheduler_async_api_call_execution_duration_seconds"].observe((kind, result), seconds)

    def config_reloaded(self, result: str) -> None:
        """Count a changed configuration file that was taken over (success) or refused (error)."""
        self.counters["kubesched_config_reloads_total"][(result,)] += 1

    # Reading

    def reset(self) -> None:
        """Reset counters and histograms. Gauges stay, because they are current values."""
        for counts in self.counters.values():
            counts.clear()
        for series in self.histograms.values():
            series.clear()
        self._start_counting()

    def values(self, family: Family) -> Mapping[Labels, float]:
        """Return a counter's or gauge's values by labels, read from the watched parts where they are."""
        # Families of 1.37 that say the same as older ones, with one label more. Nothing is counted twice.
        if family.name == "scheduler_queued_entities":
            return {(queue, POD): size for (queue,), size in self._asked("scheduler_pending_pods").items()}
        if family.name == "scheduler_queue_incoming_entities_total":
            return {(*labels, POD): count for labels, count in list(self._incoming.items())}
        if family.name in self.sizes:
            return self._asked(family.name)
        return (self.counters if family.kind is Kind.COUNTER else self.gauges)[family.name]

    def _asked(self, name: str) -> dict[Labels, float]:
        sizes = self.sizes[name]() if name in self.sizes else {}
        return {labels if isinstance(labels, tuple) else (labels,): float(size) for labels, size in sizes.items()}
