"""The families of kube-scheduler itself, release by release: rows, no behaviour.

Written down from the sources of 1.36.4 and 1.37.0-rc.1; `tests/unit/telemetry/reference_families.tsv` is what they are held
against. A row without a release is the same in both.
"""

from __future__ import annotations

from kubesched.telemetry.families import BETA, STABLE, Family, Kind, changed_in_1_37, counter, exponential, gauge, histogram

_ATTEMPT = exponential(0.001, 2, 15)
_POINT = exponential(0.0001, 2, 12)
_PLUGIN = exponential(0.00001, 1.5, 20)
_SLI = exponential(0.01, 2, 20)
_BATCH = exponential(0.00001, 2, 12)
_UNITS = exponential(1, 2, 11)
_PREEMPTION = exponential(0.001, 2, 16)
_OLD = exponential(1000, 2, 15)

SCHEDULER: tuple[Family, ...] = (
    counter(
        "scheduler_schedule_attempts_total",
        "result profile",
        "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while "
        "'error' means an internal scheduler problem.",
        STABLE,
    ),
    histogram("scheduler_event_handling_duration_seconds", "event", _POINT, "Event handling latency in seconds."),
    histogram(
        "scheduler_scheduling_attempt_duration_seconds",
        "result profile",
        _ATTEMPT,
        "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
        STABLE,
    ),
    *changed_in_1_37(
        histogram("scheduler_scheduling_algorithm_duration_seconds", "", _ATTEMPT, "Scheduling algorithm latency in seconds"),
        stability=BETA,
    ),
    *changed_in_1_37(
        histogram("scheduler_preemption_victims", "", exponential(1, 2, 7), "Number of selected preemption victims", STABLE),
        help="Number of selected preemption victims for preemption initiated by a single pod",
    ),
    counter("scheduler_preemption_attempts_total", "", "Total preemption attempts in the cluster till now", STABLE),
    *changed_in_1_37(
        gauge(
            "scheduler_pending_pods",
            "queue",
            "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means number of "
            "pods in backoffQ; 'unschedulable' means number of pods in unschedulablePods that the scheduler attempted to "
            "schedule and failed; 'gated' is the number of unschedulable pods that the scheduler never attempted to schedule "
            "because they are gated.",
            STABLE,
        ),
        help=(
            "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means number "
            "of pods in backoffQ; 'unschedulable' means number of pods in unschedulableEntities that the scheduler "
            "attempted to schedule and failed; 'gated' is the number of unschedulable pods that the scheduler never "
            "attempted to schedule because they are gated; 'incomplete' means number of pods in incompletePodGroupPods; "
            "'pending' means number of pods in pendingPodGroupPods."
        ),
    ),
    gauge(
        "scheduler_queued_entities",
        "queue type",
        "Number of queued scheduling entities ('pod' or 'podgroup'; 'pod' stands for individual pods that are not members "
        "of any podgroup) by the queue type. 'active' means number of entities in activeQ; 'backoff' means number of "
        "entities in backoffQ; 'unschedulable' means number of entities in unschedulableEntities that the scheduler "
        "attempted to schedule and failed; 'gated' is the number of unschedulable entities that the scheduler never "
        "attempted to schedule because they are gated.",
        since=(1, 37),
    ),
    *changed_in_1_37(
        gauge(
            "scheduler_inflight_events",
            "event",
            "Number of events currently tracked in the scheduling queue.",
            gate="SchedulerQueueingHints",
        ),
        gate="",
    ),
    gauge("scheduler_goroutines", "operation", "Number of running goroutines split by the work they do such as binding.", BETA),
    counter("scheduler_batch_attempts_total", "profile result", "Counts of results when we attempt to use batching."),
    counter("scheduler_batch_cache_flushed_total", "profile reason", "Counts of cache flushes by reason."),
    counter(
        "scheduler_batch_rescore_attempts_total",
        "profile",
        "Counts of rescore attempts during opportunistic batching.",
        since=(1, 37),
    ),
    histogram(
        "scheduler_pod_scheduling_sli_duration_seconds",
        "attempts",
        _SLI,
        "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might involve "
        "multiple scheduling attempts.",
        BETA,
    ),
    histogram(
        "scheduler_pod_scheduling_attempts",
        "",
        exponential(1, 2, 5),
        "Number of attempts to successfully schedule a pod.",
        STABLE,
    ),
    *changed_in_1_37(
        counter(
            "scheduler_pod_scheduled_after_flush_total",
            "",
            "Number of pods that were successfully scheduled after being flushed from unschedulablePods due to timeout. This "
            "metric helps detect potential queueing hint misconfigurations or event handling issues.",
        ),
        help=(
            "Number of pods that were successfully scheduled after being flushed from unschedulableEntities due to "
            "timeout. This metric helps detect potential queueing hint misconfigurations or event handling issues."
        ),
    ),
    counter(
        "scheduler_pre_queueing_hint_evaluations_total",
        "plugin result",
        "Number of PreQueueingHint evaluations, labeled by plugin and result (all_pods or narrowed).",
        since=(1, 37),
    ),
    histogram(
        "scheduler_framework_extension_point_duration_seconds",
        "extension_point status profile",
        _POINT,
        "Latency for running all plugins of a specific extension point.",
        STABLE,
    ),
    *changed_in_1_37(
        histogram(
            "scheduler_plugin_execution_duration_seconds",
            "plugin extension_point status",
            _PLUGIN,
            "Duration for running a plugin at a specific extension point.",
        ),
        stability=BETA,
    ),
    *changed_in_1_37(
        histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "plugin event hint",
            _PLUGIN,
            "Duration for running a queueing hint function of a plugin.",
            gate="SchedulerQueueingHints",
        ),
        gate="",
    ),
    counter(
        "scheduler_queue_incoming_pods_total",
        "queue event",
        "Number of pods added to scheduling queues by event and queue type.",
        STABLE,
    ),
    counter(
        "scheduler_queue_incoming_entities_total",
        "queue event type",
        "Number of scheduling entities added to scheduling queues by event, queue type, and entity type. Entity types are "
        "either 'pod' (for individual pods that are not members of any podgroup) or 'podgroup'.",
        since=(1, 37),
    ),
    histogram("scheduler_permit_wait_duration_seconds", "result", _ATTEMPT, "Duration of waiting on permit.", BETA),
    gauge("scheduler_cache_size", "type", "Number of nodes, pods, and assumed (bound) pods in the scheduler cache."),
    gauge(
        "scheduler_unschedulable_pods",
        "plugin profile",
        "The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all plugins that "
        "caused it to not schedule and so this metric have meaning only when broken down by plugin.",
        BETA,
    ),
    counter(
        "scheduler_plugin_evaluation_total",
        "plugin extension_point profile",
        "Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter, Filter, "
        "PreScore, and Score).",
        BETA,
    ),
    *changed_in_1_37(
        histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "result",
            _SLI,
            "Duration in seconds for running goroutines for the preemption.",
            gate="SchedulerAsyncPreemption",
        ),
        deprecated=(1, 37),
    ),
    counter(
        "scheduler_preemption_goroutines_execution_total",
        "result",
        "Number of preemption goroutines executed.",
        gate="SchedulerAsyncPreemption",
    ),
    counter(
        "scheduler_async_api_call_execution_total",
        "call_type result",
        "Total number of API calls executed by the async dispatcher.",
        gate="SchedulerAsyncAPICalls",
    ),
    histogram(
        "scheduler_async_api_call_execution_duration_seconds",
        "call_type result",
        _ATTEMPT,
        "Duration in seconds for executing API call in the async dispatcher.",
        gate="SchedulerAsyncAPICalls",
    ),
    gauge(
        "scheduler_pending_async_api_calls",
        "call_type",
        "Number of API calls currently pending in the async queue.",
        gate="SchedulerAsyncAPICalls",
    ),
    counter(
        "scheduler_dra_bindingconditions_allocations_total",
        "profile driver status",
        "Number of allocations using devices with BindingConditions, counted per driver per scheduling attempt",
        gate="DRADeviceBindingConditions",
    ),
    histogram(
        "scheduler_dra_bindingconditions_wait_duration_seconds",
        "profile driver status",
        exponential(0.1, 2, 14),
        "Time in seconds spent waiting for BindingConditions to be satisfied during PreBind.",
        gate="DRADeviceBindingConditions",
    ),
    histogram("scheduler_get_node_hint_duration_seconds", "hinted profile", _BATCH, "Latency for getting a node hint."),
    *changed_in_1_37(
        histogram("scheduler_store_schedule_results_duration_seconds", "profile", _BATCH, "Latency for getting a no."),
        help="Latency for storing scheduling results.",
    ),
    histogram(
        "scheduler_batch_rescore_duration_seconds",
        "profile",
        _BATCH,
        "Latency for rescoring a node during opportunistic batching.",
        since=(1, 37),
    ),
    counter(
        "scheduler_podgroup_schedule_attempts_total",
        "result profile",
        "Number of attempts to schedule pod group, by the result. 'unschedulable' means a pod group could not be "
        "scheduled, while 'error' means an internal scheduler problem.",
        gate="GenericWorkload",
    ),
    *changed_in_1_37(
        histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "result profile",
            _ATTEMPT,
            "Pod group scheduling attempt latency in seconds (scheduling algorithm + binding)",
            gate="GenericWorkload",
        ),
        help="Pod group scheduling attempt latency in seconds",
    ),
    histogram(
        "scheduler_podgroup_scheduling_algorithm_duration_seconds",
        "",
        _ATTEMPT,
        "Pod group scheduling algorithm latency in seconds",
        gate="GenericWorkload",
    ),
    counter(
        "scheduler_workload_preemption_attempts_total",
        "result",
        "Total preemption attempts initiated by workload (including pod groups) in the cluster till now.",
        gate="GenericWorkload",
        since=(1, 37),
    ),
    histogram(
        "scheduler_workload_preemption_victims",
        "",
        _UNITS,
        "Number of pod preemption victims caused by workload preemption.",
        gate="GenericWorkload",
        since=(1, 37),
    ),
    histogram(
        "scheduler_preemption_workload_disruptions",
        "preemptor",
        _UNITS,
        "Number of workload preemption units being preempted. A single preemption unit can be all pods in a pod group (in "
        "case of DisruptionMode=all), or a single pod (in case of DisruptionMode=single).",
        gate="GenericWorkload",
        since=(1, 37),
    ),
    histogram(
        "scheduler_preemption_evaluation_duration_seconds",
        "preemptor result",
        _PREEMPTION,
        "Duration in seconds for identifying the target preemption victims.",
        gate="GenericWorkload",
        since=(1, 37),
    ),
    histogram(
        "scheduler_preemption_execution_duration_seconds",
        "preemptor result",
        _PREEMPTION,
        "Duration in seconds for preempting the target preemption victims. With async preemption enabled, preemption "
        "execution does not block the scheduling of other pods.",
        gate="GenericWorkload",
        since=(1, 37),
    ),
    counter(
        "scheduler_preemption_pdb_violations_total",
        "preemptor",
        "Total number of pod disruption budget violations caused by preemption.",
        gate="GenericWorkload",
        since=(1, 37),
    ),
    counter(
        "scheduler_generated_placements_total",
        "profile",
        "Number of candidate placements generated when scheduling pod groups.",
        gate="TopologyAwareWorkloadScheduling",
        since=(1, 37),
    ),
    counter(
        "scheduler_placement_evaluations_total",
        "result profile",
        "Number of candidate placements evaluated when scheduling pod groups, by result. 'feasible' means the pod group "
        "fit into the placement, while 'infeasible' means it did not.",
        gate="TopologyAwareWorkloadScheduling",
        since=(1, 37),
    ),
    histogram(
        "scheduler_placement_evaluation_duration_seconds",
        "result profile",
        _ATTEMPT,
        "Latency in seconds of evaluating a single candidate placement when scheduling pod groups, by result. 'feasible' "
        "means the pod group fit into the placement, while 'infeasible' means it did not.",
        gate="TopologyAwareWorkloadScheduling",
        since=(1, 37),
    ),
    counter("scheduler_volume_binder_cache_requests_total", "operation", "Total number for request volume binding cache"),
    counter("scheduler_volume_scheduling_stage_error_total", "operation", "Volume scheduling stage error count"),
    counter(
        "dynamic_resource_allocation_resourceclaim_creates_total",
        "status admin_access owner_api_group owner_api_kind",
        "Number of ResourceClaims creation requests, categorized by creation status, admin access, and owning API group "
        "and kind (either Pod or scheduling.k8s.io/PodGroup)",
        gate="DRAExtendedResource",
        since=(1, 37),
    ),
    counter(
        "scheduler_resourceclaim_creates_total",
        "status",
        "Number of ResourceClaims creation requests within scheduler",
        gate="DRAExtendedResource",
        until=(1, 36),
    ),
)


def _old(name: str, text: str) -> Family:
    return Family(name, Kind.HISTOGRAM, (), text, bounds=_OLD, is_legacy=True)


OLD: tuple[Family, ...] = (
    _old("scheduler_e2e_scheduling_latency_microseconds", "E2e scheduling latency (scheduling algorithm + binding)"),
    _old("scheduler_scheduling_algorithm_latency_microseconds", "Scheduling algorithm latency"),
    _old("scheduler_binding_latency_microseconds", "Binding latency"),
)
