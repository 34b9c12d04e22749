"""The reporter: it fits both observers, counts, and says what the reference says."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kubesched.kube.client.connection import Observers
from kubesched.scheduler.engine.observer import EngineObserver as EngineObserver
from kubesched.scheduler.framework.ports import Meter
from kubesched.scheduler.framework.preemption.preempting import Preemption
from kubesched.scheduler.queue import QueueObserver
from kubesched.telemetry import Metrics, Reporter
from kubesched.telemetry.log_lines import TextFormatter
from kubesched.telemetry.logs import set_verbosity


@dataclass(frozen=True)
class Pod:
    key: str = "team-b/web-3"


@pytest.fixture
def said() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter())
    ours = logging.getLogger("kubesched.telemetry.reporting")
    ours.addHandler(handler)
    yield stream
    ours.removeHandler(handler)
    set_verbosity(0)


@pytest.fixture
def reporter() -> Reporter:
    return Reporter(Metrics())


def test_it_fits_the_engine_and_the_queue(reporter: Reporter) -> None:
    engine: EngineObserver = reporter
    queue: QueueObserver = reporter
    engine.attempt_ended("scheduled", "p", 0.1)
    queue.queue_incoming("active", "PodAdd")
    metrics = reporter.metrics
    assert metrics.counters["scheduler_schedule_attempts_total"]["scheduled", "p"] == 1
    assert metrics.counters["scheduler_queue_incoming_pods_total"]["active", "PodAdd"] == 1


def test_outcomes_are_said_from_verbosity_two_on(reporter: Reporter, said: io.StringIO) -> None:
    set_verbosity(1)
    reporter.pod_bound(Pod(), "n1", 2, 1.5, False)
    reporter.pod_failed(Pod(), "Unschedulable", "0/1 nodes are available")
    assert said.getvalue() == ""
    set_verbosity(2)
    reporter.pod_bound(Pod(), "n1", 2, 1.5, False)
    reporter.pod_failed(Pod(), "Unschedulable", "0/1 nodes are available")
    bound, failed = said.getvalue().splitlines()
    assert bound.endswith('"Successfully bound pod to node" pod="team-b/web-3" node="n1" attempts=2')
    assert failed.endswith('"Unable to schedule pod; no fit; waiting" pod="team-b/web-3" err="0/1 nodes are available"')


def test_errors_are_always_said(reporter: Reporter, said: io.StringIO) -> None:
    set_verbosity(0)
    reporter.pod_failed(Pod(), "SchedulerError", "no answer")
    reporter.write_failed(Pod(), "status", ValueError("refused"))
    reporter.plugin_broke("NodeName", "Filter", Pod(), ValueError("oops"))
    reporter.broke("NodeName", "QueueingHint", "team-b/web-3", ValueError("oops"))
    lines = said.getvalue().splitlines()
    assert all(line.startswith("E") for line in lines)
    assert lines[0].endswith('"Error scheduling pod; retrying" err="no answer" pod="team-b/web-3"')
    assert 'plugin="NodeName" extensionPoint="QueueingHint" pod="team-b/web-3"' in lines[2]
    assert len(lines) == 3
    failures = reporter.metrics.counters["kubesched_plugin_failures_total"]
    assert dict(failures) == {("NodeName", "Filter"): 1, ("NodeName", "QueueingHint"): 1}


def test_everything_told_is_counted(reporter: Reporter) -> None:
    reporter.decided(0.1)
    reporter.pod_bound(Pod(), "n1", 2, 1.5, True)
    reporter.permit_waited("Success", 2.0)
    reporter.bindings(+1)
    reporter.bindings(+1)
    reporter.bindings(-1)
    reporter.preempted(Preemption("n1", (None,) * 3, 1), "pod")  # type: ignore[arg-type]
    reporter.evictions_ended("error", 4.0, "pod")
    reporter.event_handled("NodeAdd", 0.1)
    reporter.hint("NodeName", "NodeAdd", "Queue", 0.1)
    reporter.unschedulable("NodeName", "p", 1)
    metrics = reporter.metrics
    assert metrics.gauges["scheduler_goroutines"][("binding",)] == 1
    assert metrics.gauges["scheduler_unschedulable_pods"]["NodeName", "p"] == 1
    assert metrics.counters["scheduler_pod_scheduled_after_flush_total"][()] == 1
    assert metrics.counters["scheduler_preemption_goroutines_execution_total"][("error",)] == 1
    for name, labels in [
        ("scheduling_algorithm_duration_seconds", ()),
        ("permit_wait_duration_seconds", ("Success",)),
        ("preemption_victims", ()),
        ("event_handling_duration_seconds", ("NodeAdd",)),
        ("queueing_hint_execution_duration_seconds", ("NodeName", "NodeAdd", "Queue")),
    ]:
        assert metrics.histograms[f"scheduler_{name}"][labels].read()[0][-1] == 1, name


def test_lots_are_drawn_for_each_decision(reporter: Reporter) -> None:
    drawn = set()
    for _ in range(500):
        reporter.decided(0.1)
        drawn.add(reporter.metrics.is_sampling)
    assert drawn == {True, False}


def test_preemption_is_counted_when_its_plugin_was_asked() -> None:
    metrics = Metrics()
    observe = metrics.observer("p")
    observe("PostFilter", "DefaultPreemption", "Unschedulable", 0.1)
    observe("PostFilter", "Other", "Unschedulable", 0.1)
    assert metrics.counters["scheduler_preemption_attempts_total"][()] == 1


def test_plugins_count_what_only_they_know() -> None:
    metrics = Metrics()
    meter: Meter = metrics
    meter.claim_created("success")
    meter.volume_error("bind")
    meter.device_bound("p", "d", "timeout")
    meter.device_waited("p", "d", "timeout", 2.0)
    assert metrics.counters["scheduler_resourceclaim_creates_total"][("success",)] == 1
    assert metrics.counters["scheduler_volume_scheduling_stage_error_total"][("bind",)] == 1


def test_a_connection_reports_its_requests() -> None:
    metrics = Metrics()
    observers = Observers(*metrics.rest_observers("api:6443"))
    assert observers.answer is not None
    assert observers.wait is not None
    assert observers.retry is not None
    observers.answer("GET", "<error>", 1.0)
    observers.wait("GET", 0.5)
    observers.retry("GET", "429")
    assert metrics.counters["rest_client_requests_total"]["<error>", "GET", "api:6443"] == 1
    assert metrics.counters["rest_client_request_retries_total"]["429", "GET", "api:6443"] == 1
    assert metrics.histograms["rest_client_rate_limiter_duration_seconds"]["GET", "api:6443"].read()[1] == 0.5
    assert not metrics.histograms["rest_client_request_size_bytes"]


def test_errors_without_end_do_not_fill_the_disk_either(said: io.StringIO) -> None:
    reporter = Reporter(Metrics(), lambda: 0.0)
    set_verbosity(0)
    for _ in range(10_000):
        reporter.pod_failed(Pod(), "SchedulerError", 'running Permit plugin "Clumsy": KeyError: 1')
    assert said.getvalue().count("Error scheduling pod; retrying") == 2000


def test_refusals_without_end_do_not_fill_the_disk_at_verbosity_two(said: io.StringIO) -> None:
    now = 0.0
    reporter = Reporter(Metrics(), lambda: now)
    set_verbosity(2)
    for second in range(120):
        now = float(second)
        for _ in range(100):
            reporter.pod_failed(Pod(), "Unschedulable", "0/1 nodes are available")
    lines = said.getvalue().splitlines()
    outcomes = sum("no fit; waiting" in line for line in lines)
    assert 2000 + 119 * 20 - 1 <= outcomes <= 2000 + 120 * 20, "of 12,000"
    assert len(lines) - outcomes == 2, "a line a minute says that some are missing"
    said.truncate(0)
    set_verbosity(3)
    for _ in range(5000):
        reporter.pod_failed(Pod(), "Unschedulable", "0/1 nodes are available")
    assert said.getvalue().count("no fit; waiting") == 5000
