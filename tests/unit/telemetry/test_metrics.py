"""Metrics: names, labels, buckets and values, as a scraper sees them."""

from __future__ import annotations

import gc
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kubesched.scheduler.queue import QueueObserver
from kubesched.telemetry import exposing
from kubesched.telemetry.exposing import MetricsCollector, encoded, exposition, register
from kubesched.telemetry.families import Family, Kind, exponential, hidden, selected
from kubesched.telemetry.metrics import FAMILIES, Metrics, MetricsSettings
from kubesched.telemetry.samples import FULL, Samples


class Scraped(dict[str, float]):
    """Samples by name and labels; the order of labels does not matter."""

    def __missing__(self, name: str) -> float:
        return self[_sorted(name)] if _sorted(name) != name else super().__getitem__(name)


def _sorted(name: str) -> str:
    metric, _, labels = name.removesuffix("}").partition("{")
    return f"{metric}{{{','.join(sorted(labels.split(',')))}}}" if labels else metric


def scrape(metrics: Metrics) -> Scraped:
    """Return every sample that a scraper sees."""
    body = exposition(register(metrics, CollectorRegistry()))
    found = Scraped()
    for family in text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sample.labels.items())
            found[_sorted(f"{sample.name}{{{labels}}}" if labels else sample.name)] = sample.value
    return found


def test_bounds_are_multiplied_step_by_step() -> None:
    assert exponential(0.00001, 1.5, 4) == (1e-05, 1e-05 * 1.5, 1e-05 * 1.5 * 1.5, 1e-05 * 1.5 * 1.5 * 1.5)


def test_an_untouched_scheduler_shows_zeros_where_there_are_no_labels() -> None:
    shown = scrape(Metrics())
    assert shown["scheduler_preemption_attempts_total"] == 0
    assert shown["scheduler_preemption_victims_bucket{le=64}"] == 0
    assert shown["scheduler_preemption_victims_count"] == 0
    assert not any(name.startswith("scheduler_schedule_attempts_total") for name in shown)


def test_bounds_are_printed_as_go_prints_them() -> None:
    body = exposition(register(Metrics(), CollectorRegistry()))
    assert b'scheduler_preemption_victims_bucket{le="64"} 0\n' in body
    assert b'scheduler_scheduling_algorithm_duration_seconds_bucket{le="0.001"} 0\n' in body


def record_everything(metrics: Metrics) -> None:
    metrics.schedule_attempts("scheduled", "p", 0.5)
    metrics.algorithm(0.003)
    metrics.pod_scheduled(20, 3.0, True)
    metrics.extension_point("Filter", "Success", "p", 0.001)
    metrics.plugin_execution("NodeName", "Filter", "Success", 0.001)
    metrics.permit_wait("Success", 2.0)
    metrics.queue_incoming("active", "PodAdd")
    metrics.unschedulable("NodeName", "p", 1)
    metrics.hint("NodeName", "NodeAdd", "Queue", 0.00002)
    metrics.event_handling("NodeAdd", 0.001)
    metrics.working("binding", 1)
    metrics.preemption_victims(3, 2)
    metrics.transport_opened()
    metrics.observer("p")("PostFilter", "DefaultPreemption", "Success", 0.25)
    metrics.observer("p")("PodGroupPostFilter", "DefaultPreemption", "Success", 0.001)
    metrics.preemption_victims(2, 0, 1, "podgroup")
    metrics.placement_evaluated("feasible", "p", 0.001)
    metrics.preemption_finished("error", 1.5)
    metrics.claim_created("failure")
    metrics.device_bound("p", "d", "timeout")
    metrics.device_waited("p", "d", "timeout", 9.0)
    metrics.volume_error("bind")
    metrics.group_attempts("waiting_on_preemption", "p", 1.0)
    metrics.group_algorithm(1.0)
    answered, waited, retried = metrics.rest_observers("h")
    answered("GET", "200", 0.1)
    waited("GET", 0.2)
    retried("GET", "429")
    metrics.leading("kube-scheduler", True)
    metrics.slow_renewal("kube-scheduler")
    metrics.config_reloaded("error")
    metrics.plugin_failed("NodeName", "Filter")
    metrics.watch(
        pending_pods=lambda: {"active": 4},
        inflight_events=lambda: {"NodeAdd": 2},
        cache_size=lambda: {"nodes": 5},
        waiting=lambda: {"inbox": 1},
        informer_items=lambda: {("kube-scheduler", "", "v1", "pods"): 7},
        informer_versions=lambda: {("kube-scheduler", "", "v1", "pods"): 12},
    )


RECORDED = [
    ("scheduler_schedule_attempts_total{result=scheduled,profile=p}", 1),
    ("scheduler_scheduling_attempt_duration_seconds_bucket{result=scheduled,profile=p,le=0.256}", 0),
    ("scheduler_scheduling_attempt_duration_seconds_bucket{result=scheduled,profile=p,le=0.512}", 1),
    ("scheduler_scheduling_attempt_duration_seconds_sum{result=scheduled,profile=p}", 0.5),
    ("scheduler_scheduling_algorithm_duration_seconds_sum", 0.003),
    ("scheduler_pod_scheduling_attempts_bucket{le=16}", 0),
    ("scheduler_pod_scheduling_attempts_bucket{le=+Inf}", 1),
    ("scheduler_pod_scheduling_sli_duration_seconds_sum{attempts=15+}", 3),
    ("scheduler_pod_scheduled_after_flush_total", 1),
    ("scheduler_framework_extension_point_duration_seconds_count{extension_point=Filter,status=Success,profile=p}", 1),
    ("scheduler_plugin_execution_duration_seconds_count{plugin=NodeName,extension_point=Filter,status=Success}", 1),
    ("scheduler_permit_wait_duration_seconds_sum{result=Success}", 2),
    ("scheduler_queue_incoming_pods_total{queue=active,event=PodAdd}", 1),
    ("scheduler_queue_incoming_entities_total{queue=active,event=PodAdd,type=pod}", 1),
    ("scheduler_unschedulable_pods{plugin=NodeName,profile=p}", 1),
    ("scheduler_queueing_hint_execution_duration_seconds_count{plugin=NodeName,event=NodeAdd,hint=Queue}", 1),
    ("scheduler_event_handling_duration_seconds_count{event=NodeAdd}", 1),
    ("scheduler_goroutines{operation=binding}", 1),
    ("scheduler_preemption_attempts_total", 1),
    ("scheduler_preemption_pdb_violations_total{preemptor=pod}", 2),
    ("scheduler_preemption_evaluation_duration_seconds_sum{preemptor=pod,result=Success}", 0.25),
    ("scheduler_preemption_execution_duration_seconds_sum{preemptor=pod,result=error}", 1.5),
    ("rest_client_transport_cache_entries", 1),
    ("rest_client_transport_create_calls_total{result=miss}", 1),
    ("rest_client_exec_plugin_ttl_seconds", float("inf")),
    ("scheduler_preemption_victims_bucket{le=2}", 0),
    ("scheduler_preemption_victims_bucket{le=4}", 1),
    ("scheduler_preemption_goroutines_execution_total{result=error}", 1),
    ("scheduler_preemption_goroutines_duration_seconds_sum{result=error}", 1.5),
    (
        "dynamic_resource_allocation_resourceclaim_creates_total"
        "{status=failure,admin_access=false,owner_api_group=,owner_api_kind=Pod}",
        1,
    ),
    ("scheduler_dra_bindingconditions_allocations_total{profile=p,driver=d,status=timeout}", 1),
    ("scheduler_dra_bindingconditions_wait_duration_seconds_sum{profile=p,driver=d,status=timeout}", 9),
    ("scheduler_volume_scheduling_stage_error_total{operation=bind}", 1),
    ("scheduler_podgroup_schedule_attempts_total{result=waiting_on_preemption,profile=p}", 1),
    ("scheduler_podgroup_scheduling_attempt_duration_seconds_sum{result=waiting_on_preemption,profile=p}", 1),
    ("scheduler_podgroup_scheduling_algorithm_duration_seconds_count", 1),
    ("rest_client_requests_total{code=200,method=GET,host=h}", 1),
    ("rest_client_request_duration_seconds_count{verb=GET,host=h}", 1),
    ("rest_client_rate_limiter_duration_seconds_sum{verb=GET,host=h}", 0.2),
    ("rest_client_request_retries_total{code=429,verb=GET,host=h}", 1),
    ("leader_election_master_status{name=kube-scheduler}", 1),
    ("leader_election_slowpath_total{name=kube-scheduler}", 1),
    ("kubesched_config_reloads_total{result=error}", 1),
    ("kubesched_plugin_failures_total{plugin=NodeName,extension_point=Filter}", 1),
    ("scheduler_pending_pods{queue=active}", 4),
    ("scheduler_queued_entities{queue=active,type=pod}", 4),
    ("informer_queued_items{name=kube-scheduler,group=,version=v1,resource=pods}", 7),
    ("informer_store_resource_version{name=kube-scheduler,group=,version=v1,resource=pods}", 12),
    ("workqueue_work_duration_seconds_count{name=inbox}", 1),
    ("scheduler_inflight_events{event=NodeAdd}", 2),
    ("scheduler_cache_size{type=nodes}", 5),
    ("workqueue_depth{name=inbox}", 1),
]


def test_reloads_are_counted_from_zero_so_that_the_first_refusal_is_an_increase() -> None:
    metrics = Metrics()
    for _ in range(2):
        assert scrape(metrics)["kubesched_config_reloads_total{result=error}"] == 0
        metrics.config_reloaded("error")
        metrics.reset()


@pytest.fixture(scope="module")
def recorded() -> Scraped:
    metrics = Metrics()
    record_everything(metrics)
    return scrape(metrics)


@pytest.mark.parametrize(("name", "value"), RECORDED, ids=[case[0] for case in RECORDED])
def test_what_is_recorded_is_shown(name: str, value: float, recorded: Scraped) -> None:
    assert recorded[name] == pytest.approx(value)


EMPTY = (
    (Path(__file__).parents[3] / "docs" / "reference" / "metrics.md")
    .read_text(encoding="utf-8")
    .partition("## Declared and empty")[2]
    .partition("\n## ")[0]
)
"""What docs/reference/metrics.md says about families of parts that only the reference has."""


def test_the_facade_can_fill_every_family_but_those_that_the_documentation_calls_empty() -> None:
    settings = MetricsSettings(
        disabled=("x",), is_legacy=True, build={"major": "1"}, versions={"component": "kube"}, features=(("X", "BETA", True),)
    )
    gone = Family("scheduler_gone", Kind.COUNTER, (), "Gone.", deprecated=(1, 35))
    metrics = Metrics(settings, families=(*FAMILIES, gone))
    metrics.extension_point("Bind", "Success", "p", 0.1)
    metrics.observer("p")("Filter", "NodeName", "Success", 0.001)
    metrics.api_call_finished("pod_binding", "success", 0.1)
    metrics.watch(pending_calls=lambda: {"pod_binding": 1})
    record_everything(metrics)
    registry = register(metrics, CollectorRegistry())
    gc.collect()
    lines = exposition(registry).decode().split("\n")
    shown = {family.name for family in metrics.shown}
    filled = {name for name in shown if any(line.startswith(name) and not line.endswith(" 0") for line in lines)}
    empty = {name for row in EMPTY.splitlines() for name in re.findall("`([a-z_]+)`", row.partition(" | ")[0])}
    assert shown - filled == empty


def test_many_samples_are_sorted_in_before_anybody_reads() -> None:
    metrics = Metrics()
    for _ in range(3 * FULL + 7):
        metrics.extension_point("Filter", "Success", "p", 0.001)
        metrics.hint("a", "b", "Queue", 0.001)
    for book in ("framework_extension_point_duration_seconds", "queueing_hint_execution_duration_seconds"):
        (series,) = metrics.histograms[f"scheduler_{book}"].values()
        assert len(series) == 7
        counts, total = series.read()
        assert counts[-1] == 3 * FULL + 7
        assert total == pytest.approx(0.001 * (3 * FULL + 7))


def test_a_sample_on_a_bound_belongs_to_that_bucket() -> None:
    series = Samples((1.0, 2.0))
    series.extend([0.5, 1.0, 1.5, 2.0, 2.5])
    assert series.read() == ([2, 4, 5], 7.5)
    series.append(1.0)
    assert series.read() == ([3, 5, 6], 8.5)


def test_reading_twice_counts_once() -> None:
    metrics = Metrics()
    metrics.algorithm(1.0)
    assert scrape(metrics) != {}
    assert scrape(metrics)["scheduler_scheduling_algorithm_duration_seconds_count"] == 1


def test_a_reset_forgets_what_was_and_keeps_what_is() -> None:
    metrics = Metrics()
    record_everything(metrics)
    metrics.reset()
    shown = scrape(metrics)
    assert not any(name.startswith("scheduler_schedule_attempts_total") for name in shown)
    assert shown["scheduler_scheduling_algorithm_duration_seconds_count"] == 0
    assert shown["scheduler_unschedulable_pods{plugin=NodeName,profile=p}"] == 1
    assert shown["scheduler_pending_pods{queue=active}"] == 4
    metrics.extension_point("Filter", "Success", "p", 0.001)
    name = "scheduler_framework_extension_point_duration_seconds_count{extension_point=Filter,status=Success,profile=p}"
    assert scrape(metrics)[name] == 1


def test_a_disabled_metric_is_not_there() -> None:
    metrics = Metrics(MetricsSettings(disabled=("scheduler_preemption_victims",)))
    metrics.preemption_victims(1)
    shown = scrape(metrics)
    assert not any(name.startswith("scheduler_preemption_victims") for name in shown)
    assert "scheduler_preemption_attempts_total" in shown


def test_a_gate_that_is_off_takes_its_metrics_away() -> None:
    names = {family.name for family in selected(FAMILIES, lambda gate: False)}
    assert "scheduler_podgroup_schedule_attempts_total" not in names
    assert "scheduler_preemption_goroutines_execution_total" not in names
    assert "scheduler_schedule_attempts_total" in names
    assert not any("microseconds" in name for name in names)


def test_labels_that_are_not_allowed_are_added_up_as_unexpected() -> None:
    allowed = {
        ("scheduler_schedule_attempts_total", "profile"): frozenset({"a"}),
        ("scheduler_scheduling_attempt_duration_seconds", "profile"): frozenset({"a"}),
    }
    metrics = Metrics(MetricsSettings(allowed_label_values=allowed))
    for profile in ("a", "b", "c"):
        metrics.schedule_attempts("scheduled", profile, 1.0)
    shown = scrape(metrics)
    assert shown["scheduler_schedule_attempts_total{result=scheduled,profile=a}"] == 1
    assert shown["scheduler_schedule_attempts_total{result=scheduled,profile=unexpected}"] == 2
    assert shown["scheduler_scheduling_attempt_duration_seconds_sum{result=scheduled,profile=unexpected}"] == 2
    assert not any("profile=b" in name for name in shown)


def test_a_deprecated_metric_is_hidden_a_release_later_unless_asked_for() -> None:
    old = Family("scheduler_old", Kind.COUNTER, (), "Old.", deprecated=(1, 35))
    assert hidden(old, "")
    assert not hidden(old, "1.35")
    assert not hidden(old, "", release=(1, 35))
    assert old.shown_help == "[ALPHA] (Deprecated since 1.35.0) Old."
    hiding = scrape(Metrics(families=(*FAMILIES, old)))
    showing = scrape(Metrics(MetricsSettings(shown_for="1.35"), families=(*FAMILIES, old)))
    told = "registered_metrics_total{deprecated_version=1.35.0,stability_level=ALPHA}"
    assert set(showing) - set(hiding) == {"scheduler_old_total", told}
    assert (hiding["hidden_metrics_total"], showing["hidden_metrics_total"]) == (1, 0)


def test_the_old_latencies_are_the_new_ones_in_microseconds() -> None:
    metrics = Metrics(MetricsSettings(is_legacy=True))
    metrics.schedule_attempts("scheduled", "a", 0.0015)
    metrics.schedule_attempts("scheduled", "b", 0.0005)
    metrics.schedule_attempts("unschedulable", "a", 9.0)
    metrics.algorithm(0.004)
    metrics.extension_point("Bind", "Success", "a", 0.0025)
    shown = scrape(metrics)
    assert shown["scheduler_e2e_scheduling_latency_microseconds_count"] == 2
    assert shown["scheduler_e2e_scheduling_latency_microseconds_sum"] == pytest.approx(2000)
    assert shown["scheduler_e2e_scheduling_latency_microseconds_bucket{le=1000}"] == 1
    assert shown["scheduler_scheduling_algorithm_latency_microseconds_sum"] == pytest.approx(4000)
    assert shown["scheduler_binding_latency_microseconds_bucket{le=2000}"] == 0
    assert shown["scheduler_binding_latency_microseconds_bucket{le=4000}"] == 1
    assert not any("microseconds" in name for name in scrape(Metrics()))


def test_features_and_the_build_are_shown() -> None:
    build = {"major": "1", "minor": "36", "git_version": "v1.36.4", "platform": "linux/amd64"}
    settings = MetricsSettings(features=(("A", "ALPHA", False), ("B", "", True)), build=build)
    shown = scrape(Metrics(settings))
    assert shown["kubernetes_feature_enabled{name=A,stage=ALPHA}"] == 0
    assert shown["kubernetes_feature_enabled{name=B,stage=}"] == 1
    (info,) = [name for name in shown if name.startswith("kubernetes_build_info")]
    assert "git_version=v1.36.4" in info


def test_the_process_and_the_interpreter_are_shown() -> None:
    shown = scrape(Metrics())
    assert shown["process_resident_memory_bytes"] > 0
    assert shown["process_cpu_seconds_total"] > 0
    assert any(name.startswith("python_gc_collections_total") for name in shown)


def test_single_plugins_are_timed_in_a_tenth_of_the_attempts() -> None:
    metrics = Metrics(chance=random.Random(1))
    observe = metrics.observer("p")
    for _ in range(2000):
        metrics.begin_attempt()
        observe("Filter", "NodeName", "Success", 0.001)
    shown = scrape(metrics)
    labels = "plugin=NodeName,extension_point=Filter,status=Success"
    timed = shown[f"scheduler_plugin_execution_duration_seconds_count{{{labels}}}"]
    assert 140 <= timed <= 260
    assert shown["scheduler_plugin_evaluation_total{plugin=NodeName,extension_point=Filter,profile=p}"] == 2000


def test_a_profiles_observer_sorts_points_from_plugins() -> None:
    metrics = Metrics()
    observe = metrics.observer("p")
    observe("Filter", "", "Success", 0.1)
    observe("PreFilter", "NodeName", "Skip", 0.1)
    observe("Reserve", "NodeName", "Success", 0.1)
    shown = scrape(metrics)
    name = "scheduler_framework_extension_point_duration_seconds_count{extension_point=Filter,status=Success,profile=p}"
    assert shown[name] == 1
    assert not any(name.startswith("scheduler_plugin_evaluation_total") for name in shown)


def test_the_facade_is_an_observer_of_the_queue() -> None:
    metrics = Metrics()
    observer: QueueObserver = metrics
    observer.queue_incoming("backoff", "ScheduleAttemptFailure")
    observer.unschedulable("NodeName", "p", 1)
    observer.unschedulable("NodeName", "p", -1)
    observer.hint("NodeName", "NodeAdd", "Error", 0.001)
    observer.broke("NodeName", "QueueingHint", "ns/p", ValueError("x"))
    shown = scrape(metrics)
    assert shown["scheduler_unschedulable_pods{plugin=NodeName,profile=p}"] == 0
    assert shown["kubesched_plugin_failures_total{plugin=NodeName,extension_point=QueueingHint}"] == 1


def test_a_call_is_cheap() -> None:
    """Compared with calling nothing at all, because this may run on a busy machine; a quiet one shows 0.2 us."""
    metrics = Metrics()

    def nothing(point: str, status: str, profile: str, seconds: float) -> None:
        pass

    def cost(call: object) -> float:
        best = float("inf")
        for _ in range(30):
            started = time.process_time()
            for _ in range(3000):
                call("Filter", "Success", "default-scheduler", 0.0003)  # type: ignore[operator]
            best = min(best, time.process_time() - started)
        return best / 3000

    assert cost(metrics.extension_point) < 12 * cost(nothing) + 1e-7


def test_the_librarys_own_encoder_reads_the_same_from_the_registry() -> None:
    metrics = Metrics(MetricsSettings(features=(('a "b" \\ c', "ALPHA", True),)))
    record_everything(metrics)
    registry = CollectorRegistry()
    registry.register(MetricsCollector(metrics))
    gc.disable()  # a pause between the two would be in one of them only
    try:
        ours = list(text_string_to_metric_families(exposition(registry).decode()))
        theirs = list(text_string_to_metric_families(generate_latest(registry).decode()))
    finally:
        gc.enable()
    assert [(one.name, one.type, one.documentation) for one in ours] == [
        (one.name, one.type, one.documentation) for one in theirs
    ]
    assert [one.samples for one in ours] == [one.samples for one in theirs]


def test_a_scrape_of_many_series_is_many_times_cheaper_than_the_librarys() -> None:
    metrics = Metrics()
    for number in range(200):
        metrics.hint(f"plugin-{number}", "NodeAdd", "Queue", 0.001)
    registry = CollectorRegistry()
    registry.register(MetricsCollector(metrics))

    def cost(scrape: Callable[[CollectorRegistry], bytes]) -> float:
        best = float("inf")
        for _ in range(3):
            started = time.process_time()
            scrape(registry)
            best = min(best, time.process_time() - started)
        return best

    exposition(registry)
    assert cost(exposition) * 5 < cost(generate_latest)


def test_pauses_of_the_collector_are_shown_by_generation_as_long_as_somebody_reads_them() -> None:
    def n_shown(registry: CollectorRegistry) -> int:
        found = re.search(rb'kubesched_gc_pause_seconds_count{generation="2"} (\d+)\n', exposition(registry))
        return int(found[1]) if found is not None else 0

    registry = register(Metrics(), CollectorRegistry())
    n_callbacks = len(gc.callbacks)
    gc.collect()
    n_first = n_shown(registry)
    gc.collect()
    assert 0 < n_first < n_shown(registry)
    del registry
    gc.collect()
    assert len(gc.callbacks) < n_callbacks


@pytest.mark.parametrize("write_out", [exposition, encoded])
def test_a_series_that_comes_during_a_scrape_does_not_break_it(
    write_out: Callable[[CollectorRegistry], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With extenders a decision counts in a thread of its own while the event loop serves a scrape."""
    metrics = Metrics()
    metrics.schedule_attempts("scheduled", "first", 0.1)
    registry = register(metrics, CollectorRegistry())
    for module, name in ((exposing, "_starts"), (exposing.protobuf, "number"), (exposing.protobuf, "histogram")):
        render = getattr(module, name)

        def meanwhile(*given: object, render: Callable[..., object] = render) -> object:
            metrics.schedule_attempts("scheduled", f"profile-{len(metrics.counters['scheduler_schedule_attempts_total'])}", 0.1)
            return render(*given)

        monkeypatch.setattr(module, name, meanwhile)
    assert b"first" in write_out(registry)
