"""Decision records as OpenTelemetry spans: one for each attempt, with the plugin calls as its children.

The SDK is an extra (`kubesched[otel]`), imported only if spans are wanted. It samples and sends in a thread of its own. If its
queue is full, spans are dropped; the scheduler never waits for it.
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
"""The extension points of an attempt. The others are called for other pods in between."""
_MOST_CALLS = 1000
"""Of a large pod group's attempt only the first calls become spans."""

Value = str | int | float | bool


class DecisionSpans:
    """Makes a span of every record. Add it to a recorder's listeners."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("kubesched")
        self._calls: list[tuple[str, str, str, int, int]] = []

    def beside(self, observe: PointObserver) -> PointObserver:
        """Return a profile observer that keeps the plugin calls for the next span, and passes them on to another observer."""

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
        """Send the remaining spans."""
        self._provider.shutdown()


def attributes_of(record: DecisionRecord) -> dict[str, Value]:
    """Return a record as a span's attributes, with the names of OpenTelemetry's conventions where there are any."""
    namespace, _, name = record.pod.partition("/")
    attributes: dict[str, Value] = {
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
        attributes["k8s.node.name"] = record.node
    if record.outcome == PLACED:
        attributes |= {
            "kubesched.chosen_by": record.chosen_by,
            "kubesched.total": record.total,
            "kubesched.margin": record.margin,
        }
    if record.preemption is not None:
        attributes |= {
            "kubesched.preemption.node": record.preemption.node,
            "kubesched.preemption.victims": len(record.preemption.victims),
        }
    for each in record.refusals or ():
        key = f"kubesched.refused.{each.plugin}"
        attributes[key] = int(attributes.get(key, 0)) + each.count
    return attributes


def spans_to(endpoint: str) -> DecisionSpans:
    """Return spans that are sent to an OTLP receiver over HTTP. OTEL_ environment variables set headers, sampler and resource.

    Raise SchedulerError if the extra is not installed.
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
