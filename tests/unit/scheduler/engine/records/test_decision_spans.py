"""Attempts as spans: the same facts as the record, with the plugins that were called as children."""

from __future__ import annotations

import builtins
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from kubesched.errors import SchedulerError
from kubesched.scheduler.config import Gates
from kubesched.scheduler.engine.assembly import Ports, assemble, default_configuration
from kubesched.scheduler.engine.records.decision_recorder import DecisionRecorder
from kubesched.scheduler.engine.records.decision_spans import DecisionSpans, spans_to
from kubesched.testing import FakeWriter, node, pod
from kubesched.tools.simulation.clock import run_virtually


def spans_of(*objects: Any, provider: TracerProvider | None = None) -> tuple[ReadableSpan, ...]:
    """Return the spans of an engine that is given these and scheduling all it can."""
    exporter, provider = InMemorySpanExporter(), provider or TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans, recorder = DecisionSpans(provider), DecisionRecorder(10)
    recorder.listeners.append(spans)

    async def drive() -> None:
        engine = assemble(default_configuration(), Gates.defaults(), Ports(writer=FakeWriter(), decisions=recorder))
        for profile in engine.profiles.values():
            profile.observe = spans.beside(lambda *_: None)
        for each in objects:
            engine.intake.apply(type(each).__name__, None, each)
        while engine.step():
            pass

    run_virtually(drive())
    spans.close()
    return exporter.get_finished_spans()


def test_an_attempt_is_a_span_with_its_plugins_as_children() -> None:
    spans = spans_of(node("n1", cpu="4"), node("n2", cpu="2"), pod("web", requests={"cpu": "3"}))
    (attempt,) = (span for span in spans if span.name == "schedule")
    told = dict(attempt.attributes or {})
    assert (told["k8s.namespace.name"], told["k8s.pod.name"], told["k8s.node.name"]) == ("default", "web", "n1")
    assert (told["kubesched.outcome"], told["kubesched.chosen_by"], told["kubesched.nodes.feasible"]) == ("placed", "only", 1)
    assert told["kubesched.refused.NodeResourcesFit"] == 1
    children = [span for span in spans if span is not attempt]
    assert "Filter NodeResourcesFit" in {span.name for span in children}
    for child in children:
        assert child.parent is not None and child.parent.span_id == attempt.context.span_id
        assert attempt.start_time <= child.start_time <= child.end_time <= attempt.end_time  # type: ignore[operator]


def test_a_pod_that_fits_nowhere_is_told_with_who_refused_it() -> None:
    (attempt,) = (
        span for span in spans_of(node("n1", cpu="1"), pod("whale", requests={"cpu": "9"})) if span.name == "schedule"
    )
    told = dict(attempt.attributes or {})
    assert told["kubesched.outcome"] == "unschedulable" and told["kubesched.refused.NodeResourcesFit"] == 1
    assert "Insufficient cpu" in str(told["kubesched.sentence"])


def test_what_is_not_sampled_is_not_sent() -> None:
    assert spans_of(node("n1"), pod("web"), provider=TracerProvider(sampler=ALWAYS_OFF)) == ()


def test_without_the_sdk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(SchedulerError, match=r"pip install 'kubesched\[otel\]'"):
        spans_to("http://127.0.0.1:4318/v1/traces")
