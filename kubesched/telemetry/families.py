"""The metrics we keep, as data: name, kind, labels, buckets, stability, and what they mean.

Names, labels, buckets and stability are kube-scheduler's, so that dashboards and alerts go on working; the help texts
are ours. A family with a gate exists while that gate is on, one of the old write-ups while the legacy switch is on.
What begins with `kubesched_` has no counterpart in the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

Version = tuple[int, int]
Bounds = tuple[float, ...]

RELEASE: Version = (1, 37)


class Kind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: data, no behaviour."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    stability: str = "ALPHA"
    bounds: Bounds = ()
    gate: str = ""
    is_legacy: bool = False
    deprecated: Version | None = None  # hidden from the release after this one on

    @property
    def shown_help(self) -> str:
        """Return the help as it is exposed: with the stability, and with the release of its deprecation."""
        old = f" (Deprecated since {self.deprecated[0]}.{self.deprecated[1]}.0)" if self.deprecated else ""
        return f"[{self.stability}]{old} {self.help}"


def exponential(start: float, factor: float, count: int) -> Bounds:
    """Return so many bucket bounds, each the one before times the factor."""
    bounds = [start]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)  # multiplied step by step: the reference's bounds to the last bit
    return tuple(bounds)


def hidden(family: Family, shown_for: str, release: Version = RELEASE) -> bool:
    """Return whether a deprecated family is left out; `shown_for` is --show-hidden-metrics-for-version."""
    if family.deprecated is None or family.deprecated >= release:
        return False
    return shown_for != f"{family.deprecated[0]}.{family.deprecated[1]}"


def selected(
    families: Iterable[Family],
    is_enabled: Callable[[str], bool],
    *,
    is_legacy: bool = False,
    disabled: Iterable[str] = (),
    shown_for: str = "",
    release: Version = RELEASE,
) -> tuple[Family, ...]:
    """Return the families that exist under these settings."""
    left_out = frozenset(disabled)
    return tuple(
        family
        for family in families
        if family.name not in left_out
        and (not family.gate or is_enabled(family.gate))
        and (is_legacy or not family.is_legacy)
        and not hidden(family, shown_for, release)
    )


_ATTEMPT = exponential(0.001, 2, 15)
_POINT = exponential(0.0001, 2, 12)
_PLUGIN = exponential(0.00001, 1.5, 20)
_SLI = exponential(0.01, 2, 20)
_BATCH = exponential(0.00001, 2, 12)
_OLD = exponential(1000, 2, 15)
_REQUEST = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
_STABLE, _BETA, _ALPHA = "STABLE", "BETA", "ALPHA"


def _counter(name: str, labels: str, text: str, stability: str = _ALPHA, gate: str = "") -> Family:
    return Family(name, Kind.COUNTER, tuple(labels.split()), text, stability, gate=gate)


def _gauge(name: str, labels: str, text: str, stability: str = _ALPHA, gate: str = "") -> Family:
    return Family(name, Kind.GAUGE, tuple(labels.split()), text, stability, gate=gate)


def _histogram(name: str, labels: str, bounds: Bounds, text: str, stability: str = _ALPHA, gate: str = "") -> Family:
    return Family(name, Kind.HISTOGRAM, tuple(labels.split()), text, stability, bounds, gate)


def _old(name: str, text: str) -> Family:
    return Family(name, Kind.HISTOGRAM, (), text, bounds=_OLD, is_legacy=True)


SCHEDULER: tuple[Family, ...] = (
    _counter("scheduler_schedule_attempts_total", "result profile", "Attempts to place a pod, by how they ended.", _STABLE),
    _histogram(
        "scheduler_scheduling_attempt_duration_seconds",
        "result profile",
        _ATTEMPT,
        "What an attempt took, deciding and binding together.",
        _STABLE,
    ),
    _histogram(
        "scheduler_scheduling_algorithm_duration_seconds", "", _ATTEMPT, "What a decision took, with PostFilter where it ran."
    ),
    _histogram(
        "scheduler_event_handling_duration_seconds",
        "event",
        _POINT,
        "What it took to take in something that happened in the cluster.",
    ),
    _histogram("scheduler_preemption_victims", "", exponential(1, 2, 7), "Victims of a preemption.", _STABLE),
    _counter("scheduler_preemption_attempts_total", "", "Preemptions that were tried.", _STABLE),
    _gauge("scheduler_pending_pods", "queue", "Pods that wait, by queue: active, backoff, unschedulable, gated.", _STABLE),
    _gauge("scheduler_inflight_events", "event", "Happenings kept for the pods that are being decided about."),
    _gauge("scheduler_goroutines", "operation", "Pieces of work under way beside the loop, by kind.", _BETA),
    _histogram(
        "scheduler_pod_scheduling_sli_duration_seconds",
        "attempts",
        _SLI,
        "From a pod's first entry into the active queue until it was bound.",
        _BETA,
    ),
    _histogram("scheduler_pod_scheduling_attempts", "", exponential(1, 2, 5), "Attempts until a pod was placed.", _STABLE),
    _counter(
        "scheduler_pod_scheduled_after_flush_total",
        "",
        "Pods placed by an attempt that no event had asked for, but the flush of those that waited too long.",
    ),
    _histogram(
        "scheduler_framework_extension_point_duration_seconds",
        "extension_point status profile",
        _POINT,
        "What all plugins of an extension point took together.",
        _STABLE,
    ),
    _histogram(
        "scheduler_plugin_execution_duration_seconds",
        "plugin extension_point status",
        _PLUGIN,
        "What one plugin took at an extension point, in a tenth of the attempts.",
    ),
    _counter(
        "scheduler_plugin_evaluation_total",
        "plugin extension_point profile",
        "Times that a plugin was asked at PreFilter, Filter, PreScore or Score and had something to say.",
        _BETA,
    ),
    _histogram(
        "scheduler_queueing_hint_execution_duration_seconds",
        "plugin event hint",
        _PLUGIN,
        "What a queueing hint took, by its answer.",
    ),
    _counter("scheduler_queue_incoming_pods_total", "queue event", "Pods that came to a queue, and why.", _STABLE),
    _histogram("scheduler_permit_wait_duration_seconds", "result", _ATTEMPT, "How long a pod waited at Permit.", _BETA),
    _gauge("scheduler_cache_size", "type", "What the store holds: assumed_pods, pods, nodes."),
    _gauge("scheduler_unschedulable_pods", "plugin profile", "Pods that a plugin keeps from being placed.", _BETA),
    _counter(
        "scheduler_batch_attempts_total",
        "profile result",
        "Attempts at which a node hint of the pod before was looked for, by what came of it.",
    ),
    _counter("scheduler_batch_cache_flushed_total", "profile reason", "Node hints that were of no use, by reason."),
    _histogram("scheduler_get_node_hint_duration_seconds", "hinted profile", _BATCH, "What looking for a node hint took."),
    _histogram("scheduler_store_schedule_results_duration_seconds", "profile", _BATCH, "What keeping node hints took."),
    _histogram(
        "scheduler_preemption_goroutines_duration_seconds",
        "result",
        _SLI,
        "What evicting victims in the background took.",
        gate="SchedulerAsyncPreemption",
    ),
    _counter(
        "scheduler_preemption_goroutines_execution_total",
        "result",
        "Evictions in the background, by how they ended.",
        gate="SchedulerAsyncPreemption",
    ),
    _counter(
        "scheduler_async_api_call_execution_total",
        "call_type result",
        "Calls to the API server made beside the loop.",
        gate="SchedulerAsyncAPICalls",
    ),
    _histogram(
        "scheduler_async_api_call_execution_duration_seconds",
        "call_type result",
        _ATTEMPT,
        "What such a call took.",
        gate="SchedulerAsyncAPICalls",
    ),
    _gauge("scheduler_pending_async_api_calls", "call_type", "Such calls that wait.", gate="SchedulerAsyncAPICalls"),
    _counter(
        "scheduler_resourceclaim_creates_total",
        "status",
        "Claims created for extended resources that devices stand behind.",
        gate="DRAExtendedResource",
    ),
    _counter(
        "scheduler_dra_bindingconditions_allocations_total",
        "profile driver status",
        "Devices with binding conditions that pods waited for.",
        gate="DRADeviceBindingConditions",
    ),
    _histogram(
        "scheduler_dra_bindingconditions_wait_duration_seconds",
        "profile driver status",
        exponential(0.1, 2, 14),
        "How long pods waited for them.",
        gate="DRADeviceBindingConditions",
    ),
    _counter(
        "scheduler_podgroup_schedule_attempts_total",
        "result profile",
        "Attempts to place a pod group, by how they ended.",
        gate="GenericWorkload",
    ),
    _histogram(
        "scheduler_podgroup_scheduling_attempt_duration_seconds",
        "result profile",
        _ATTEMPT,
        "What an attempt for a pod group took.",
        gate="GenericWorkload",
    ),
    _histogram(
        "scheduler_podgroup_scheduling_algorithm_duration_seconds",
        "",
        _ATTEMPT,
        "What a decision about a pod group took.",
        gate="GenericWorkload",
    ),
    _counter("scheduler_volume_binder_cache_requests_total", "operation", "Questions to the books about volumes."),
    _counter(
        "scheduler_volume_scheduling_stage_error_total",
        "operation",
        "Errors while volumes were looked at (predicate), promised (assume) or bound (bind).",
    ),
)

OLD: tuple[Family, ...] = (
    _old("scheduler_e2e_scheduling_latency_microseconds", "What a successful attempt took, binding included."),
    _old("scheduler_scheduling_algorithm_latency_microseconds", "What a decision took."),
    _old("scheduler_binding_latency_microseconds", "What the binding took."),
)

AROUND: tuple[Family, ...] = (
    _counter("rest_client_requests_total", "code method host", "Requests to the API server, by what came back."),
    _histogram("rest_client_request_duration_seconds", "verb host", _REQUEST, "What a request took."),
    _histogram("rest_client_request_size_bytes", "verb host", _BYTES, "How large requests were."),
    _histogram("rest_client_response_size_bytes", "verb host", _BYTES, "How large answers were."),
    _histogram(
        "rest_client_rate_limiter_duration_seconds", "verb host", _REQUEST, "How long a request was held back by our own limit."
    ),
    _counter("rest_client_request_retries_total", "code verb host", "Requests that were sent again."),
    _gauge("leader_election_master_status", "name", "1 while this process holds the lease, else 0."),
    _counter("leader_election_slowpath_total", "name", "Renewals of the lease that needed to read it first."),
    _gauge("workqueue_depth", "name", "Things that wait to be taken in.", _BETA),
    _counter("workqueue_adds_total", "name", "Things that came to be taken in.", _BETA),
    _gauge(
        "kubernetes_build_info",
        "major minor git_version git_commit git_tree_state build_date go_version compiler platform",
        "Always 1; the labels say what is running.",
        _BETA,
    ),
    _gauge("kubernetes_feature_enabled", "name stage", "1 for a feature gate that is on, 0 for one that is off.", _BETA),
    _counter(
        "kubesched_plugin_failures_total",
        "plugin extension_point",
        "Times that a plugin raised, answered nonsense or took too long.",
    ),
    _counter(
        "kubesched_config_reloads_total",
        "result",
        "Changed configuration files that were taken over (success) or refused (error).",
    ),
)

FAMILIES = SCHEDULER + OLD + AROUND
