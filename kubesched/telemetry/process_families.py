"""The families that every component of Kubernetes has, and those that only this program has: rows, no behaviour.

Those of the client, the leader election, the work queues, the informers and of the metrics themselves are the same in 1.36.4
and 1.37.0-rc.1. What begins with `kubesched_` has no counterpart in the reference.
"""

from __future__ import annotations

from kubesched.telemetry.families import BETA, Family, counter, exponential, gauge, histogram

_REQUEST = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
_PROCESSING = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_WORK = exponential(1e-8, 10, 10)
_PAUSES = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_HOUR, _DAY = 3600.0, 86400.0
_AGES = (
    600.0,
    1800.0,
    _HOUR,
    4 * _HOUR,
    _DAY,
    7 * _DAY,
    30 * _DAY,
    90 * _DAY,
    180 * _DAY,
    360 * _DAY,
    4 * 360 * _DAY,
)

KUBERNETES: tuple[Family, ...] = (
    counter("disabled_metrics_total", "", "The count of disabled metrics.", BETA),
    counter("hidden_metrics_total", "", "The count of hidden metrics.", BETA),
    histogram(
        "informer_processing_latency_seconds",
        "name group version resource",
        _PROCESSING,
        "Time taken to process events after popping from the queue.",
    ),
    gauge("informer_queued_items", "name group version resource", "Number of items currently queued in the FIFO."),
    gauge(
        "informer_store_resource_version",
        "name group version resource",
        "The 15 least significant digits of the resource version of the store.",
    ),
    gauge(
        "kubernetes_build_info",
        "major minor git_version git_commit git_tree_state build_date go_version compiler platform",
        "A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, "
        "Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
        BETA,
    ),
    gauge(
        "kubernetes_feature_enabled",
        "name stage",
        "This metric records the data about the stage and enablement of a k8s feature.",
        BETA,
    ),
    gauge(
        "leader_election_master_status",
        "name",
        "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' "
        "is the string used to identify the lease. Please make sure to group by name.",
    ),
    counter(
        "leader_election_slowpath_total",
        "name",
        "Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify the lease. "
        "Please make sure to group by name.",
    ),
    counter(
        "registered_metrics_total",
        "deprecated_version stability_level",
        "The count of registered metrics broken by stability level and deprecation version.",
        BETA,
    ),
    histogram(
        "rest_client_dns_resolution_duration_seconds",
        "host",
        _REQUEST[:-1],
        "DNS resolver latency in seconds. Broken down by host.",
    ),
    counter(
        "rest_client_exec_plugin_call_total",
        "call_status code",
        "Number of calls to an exec plugin, partitioned by the type of event encountered (no_error, "
        "plugin_execution_error, plugin_not_found_error, client_internal_error) and an optional exit code. The exit code "
        "will be set to 0 if and only if the plugin call was successful.",
    ),
    histogram(
        "rest_client_exec_plugin_certificate_rotation_age",
        "",
        _AGES,
        "Histogram of the number of seconds the last auth exec plugin client certificate lived before being rotated. If "
        "auth exec plugin client certificates are unused, histogram will contain no data.",
    ),
    counter(
        "rest_client_exec_plugin_policy_call_total",
        "allowed denied",
        "Number of comparisons of an exec plugin to the plugin policy and allowlist (if any), partitioned by whether or "
        "not the policy permits the plugin",
    ),
    gauge(
        "rest_client_exec_plugin_ttl_seconds",
        "",
        "Gauge of the shortest TTL (time-to-live) of the client certificate(s) managed by the auth exec plugin. The value "
        "is in seconds until certificate expiry (negative if already expired). If auth exec plugins are unused or manage "
        "no TLS certificates, the value will be +INF.",
    ),
    histogram(
        "rest_client_rate_limiter_duration_seconds",
        "verb host",
        _REQUEST,
        "Client side rate limiter latency in seconds. Broken down by verb, and host.",
    ),
    histogram(
        "rest_client_request_duration_seconds",
        "verb host",
        _REQUEST,
        "Request latency in seconds. Broken down by verb, and host.",
    ),
    counter(
        "rest_client_request_retries_total",
        "code verb host",
        "Number of request retries, partitioned by status code, verb, and host.",
    ),
    histogram("rest_client_request_size_bytes", "verb host", _BYTES, "Request size in bytes. Broken down by verb and host."),
    counter(
        "rest_client_requests_total",
        "code method host",
        "Number of HTTP requests, partitioned by status code, method, and host.",
    ),
    histogram("rest_client_response_size_bytes", "verb host", _BYTES, "Response size in bytes. Broken down by verb and host."),
    counter(
        "rest_client_transport_ca_reload_total",
        "reason result",
        "Number of times a CA reload is attempted, partitioned by the result and reason for the reload attempt",
    ),
    gauge("rest_client_transport_cache_entries", "", "Number of transport entries in the internal cache."),
    counter(
        "rest_client_transport_cache_gc_calls_total",
        "result",
        "Number of times a GC cleanup attempts to delete a transport cache entry, partitioned by the result: deleted, skipped",
    ),
    counter(
        "rest_client_transport_cert_rotation_gc_calls_total",
        "",
        "Number of times a cert rotation goroutine cancel func is called via GC cleanup of the associated transport",
    ),
    counter(
        "rest_client_transport_create_calls_total",
        "result",
        "Number of calls to get a new transport, partitioned by the result of the operation hit: obtained from the cache, "
        "miss: created and added to the cache, miss-gc: recreated and added back to the cache after being garbage "
        "collected, uncacheable: created and not cached",
    ),
    gauge(
        "running_managed_controllers", "manager name", "Indicates where instances of a controller are currently running", BETA
    ),
    gauge(
        "version_info",
        "component binary emulation min_compat",
        "Provides the compatibility version info of the component. The component label is the name of the component, "
        "usually kube, but is relevant for aggregated-apiservers.",
    ),
    counter("workqueue_adds_total", "name", "Total number of adds handled by workqueue", BETA),
    gauge("workqueue_depth", "name", "Current depth of workqueue", BETA),
    gauge(
        "workqueue_longest_running_processor_seconds",
        "name",
        "How many seconds has the longest running processor for workqueue been running.",
        BETA,
    ),
    histogram(
        "workqueue_queue_duration_seconds",
        "name",
        _WORK,
        "How long in seconds an item stays in workqueue before being requested.",
        BETA,
    ),
    counter("workqueue_retries_total", "name", "Total number of retries handled by workqueue", BETA),
    gauge(
        "workqueue_unfinished_work_seconds",
        "name",
        "How many seconds of work has done that is in progress and hasn't been observed by work_duration. Large values "
        "indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this increases.",
        BETA,
    ),
    histogram(
        "workqueue_work_duration_seconds", "name", _WORK, "How long in seconds processing an item from workqueue takes.", BETA
    ),
)

OWN: tuple[Family, ...] = (
    counter(
        "kubesched_plugin_failures_total",
        "plugin extension_point",
        "Times that a plugin raised, answered nonsense or took too long.",
    ),
    counter(
        "kubesched_config_reloads_total",
        "result",
        "Changed configuration files that were taken over (success) or refused (error).",
    ),
    histogram(
        "kubesched_gc_pause_seconds",
        "generation",
        _PAUSES,
        "How long Python's cycle collector stopped the program, by the generation that it walked.",
    ),
)
