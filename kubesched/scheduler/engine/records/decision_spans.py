"""Attempts as OpenTelemetry spans: one for each record, with the calls of plugins that it was decided by as its children.

In: records as they are kept, and what profiles observe of their plugins. Out: spans, to where the tracer provider sends them.
The SDK is an extra (`kubesched[otel]`) and is imported only where somebody asks for spans; it samples and batches in a thread
of its own, and what its queue does not hold is lost, never waited for. Nothing here decides anything.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kubesched.errors import SchedulerError
from kubesched.scheduler.engine.records.decision_record import ERROR, PLACED, DecisionRecord, sentence
from kubesched.scheduler.framework import PointObserver

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_DECIDING = frozenset({"PreFilter", "Filter", "PostFilter", "PreScore", "Score", "NormalizeScore", "Reserve", "Permit"})
"""The points that belong to an attempt; the others are called about other pods in between."""
_MOST_CALLS = 1000
"""Of a pod group's attempt there may be many more; they are all alike."""

Value = str | int | float | bool


class DecisionSpans:
    """Makes a span of every record; to be put among a recorder's listeners."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("kubesched")
        self._calls: list[tuple[str, str, str, int, int]] = []

    def beside(self, observe: PointObserver) -> PointObserver:
        """Return an observer of a profile that takes down the calls of plugins, and tells another one."""

        def observe_both(point: str, plugin: str, status: str, seconds: float) -> None:
            observe(point, plugin, status, seconds)
            if plugin and point in _DECIDING and len(self._calls) < _MOST_CALLS:
                ended = time.time_ns()
                self._calls.append((point, plugin, status, ended - int(seconds * 1e9), ended))

        return observe_both

    def __call__(self, record: DecisionRecord) -> None:
        """Take in a record."""
        from opentelemetry.trace import Status, StatusCode, set_span_in_context

        calls, self._calls = self._calls, []
        ended = time.time_ns()
        began = min([ended - int(record.latency_seconds * 1e9), *(call[3] for call in calls[:1])])
        span = self._tracer.start_span("schedule", start_time=began, attributes=attributes_of(record))
        if span.is_recording():
            if record.outcome == ERROR:
                span.set_status(Status(StatusCode.ERROR, record.message))
            within = set_span_in_context(span)
            for point, plugin, status, call_began, call_ended in calls:
                facts = {"kubesched.plugin": plugin, "kubesched.extension_point": point, "kubesched.status": status}
                child = self._tracer.start_span(f"{point} {plugin}", within, start_time=call_began, attributes=facts)
                child.end(call_ended)
        span.end(ended)

    def close(self) -> None:
        """Send what is held back."""
        self._provider.shutdown()


def attributes_of(record: DecisionRecord) -> dict[str, Value]:
    """Return a record as a span's attributes; names of OpenTelemetry's own conventions where it has any."""
    namespace, _, name = record.pod.partition("/")
    told: dict[str, Value] = {
        "k8s.namespace.name": namespace,
        "k8s.pod.name": name,
        "k8s.pod.uid": record.uid,
        "kubesched.scheduler": record.scheduler,
        "kubesched.outcome": record.outcome,
        "kubesched.sentence": sentence(record),
        "kubesched.attempt": record.attempt,
        "kubesched.sequence": record.sequence,
        "kubesched.nodes": record.node_count,
        "kubesched.nodes.evaluated": record.evaluated,
        "kubesched.nodes.feasible": record.feasible,
    }
    if record.node:
        told["k8s.node.name"] = record.node
    if record.outcome == PLACED:
        told |= {"kubesched.chosen_by": record.chosen_by, "kubesched.total": record.total, "kubesched.margin": record.margin}
    if record.preemption is not None:
        told |= {
            "kubesched.preemption.node": record.preemption.node,
            "kubesched.preemption.victims": len(record.preemption.victims),
        }
    for each in record.refusals or ():
        key = f"kubesched.refused.{each.plugin}"
        told[key] = int(told.get(key, 0)) + each.count
    return told


def spans_to(endpoint: str) -> DecisionSpans:
    """Return what sends spans to an OTLP receiver over HTTP; OTEL_ variables say the rest (headers, sampler, resource).

    Raise SchedulerError where the extra is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise SchedulerError("--otlp-endpoint needs OpenTelemetry's SDK: pip install 'kubesched[otel]'") from error
    provider = TracerProvider(resource=Resource.create({"service.name": "kubesched"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return DecisionSpans(provider)
