"""Metrics as Prometheus reads them: a collector over what the facade wrote down, and the text of a registry.

In: `Metrics`, a registry, an Accept header. Out: bytes and their content type. Label values that are not on the allow
list are added up under `unexpected`. The three latencies of the old write-ups are the modern ones in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from kubesched.telemetry.families import Family, Kind
from kubesched.telemetry.metrics import Metrics
from kubesched.telemetry.samples import Histogram, Labels, Samples, new_counts

UNEXPECTED = "unexpected"
_MICROSECONDS = 1e6


class MetricsCollector(Collector):
    """Reads the facade whenever a registry is asked."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        """Return the names, so that registering asks nobody for sizes."""
        return [Metric(family.name, family.shown_help, family.kind.value) for family in self._metrics.shown]

    def collect(self) -> Iterator[Metric]:
        """Yield every family that is shown."""
        for family in self._metrics.shown:
            if family.kind is Kind.HISTOGRAM:
                yield self._histogram(family)
            else:
                yield self._numbers(family)

    def _numbers(self, family: Family) -> Metric:
        merged = new_counts()
        if not family.labels:
            merged[()] = 0.0
        for labels, value in self._metrics.values(family).items():
            merged[self._allowed(family, labels)] += value
        shown: CounterMetricFamily | GaugeMetricFamily
        if family.kind is Kind.COUNTER:
            shown = CounterMetricFamily(family.name, family.shown_help, labels=family.labels)
        else:
            shown = GaugeMetricFamily(family.name, family.shown_help, labels=family.labels)
        for labels, value in merged.items():
            shown.add_metric(labels, value)
        return shown

    def _histogram(self, family: Family) -> Metric:
        merged = Histogram(family.bounds)
        if not family.labels:
            merged[()] = Samples(family.bounds)
        for labels, series, scale in self._series(family):
            merged[self._allowed(family, labels)].merge(series, scale)
        shown = HistogramMetricFamily(family.name, family.shown_help, labels=family.labels)
        names = [*(_shown(bound) for bound in family.bounds), "+Inf"]
        for labels, series in merged.items():
            counts, total = series.read()
            shown.add_metric(labels, list(zip(names, counts, strict=True)), total)
        return shown

    def _series(self, family: Family) -> Iterator[tuple[Labels, Samples, float]]:
        books = self._metrics.histograms
        if family.name == "scheduler_e2e_scheduling_latency_microseconds":
            for (result, _), series in books["scheduler_scheduling_attempt_duration_seconds"].items():
                if result == "scheduled":
                    yield (), series, _MICROSECONDS
        elif family.name == "scheduler_scheduling_algorithm_latency_microseconds":
            for series in books["scheduler_scheduling_algorithm_duration_seconds"].values():
                yield (), series, _MICROSECONDS
        else:
            for labels, series in books[family.name].items():
                yield labels, series, 1.0

    def _allowed(self, family: Family, labels: Labels) -> Labels:
        allowed = self._metrics.settings.allowed_label_values
        if not allowed:
            return labels
        return tuple(
            value if value in allowed.get((family.name, name), (value,)) else UNEXPECTED
            for name, value in zip(family.labels, labels, strict=True)
        )


def _shown(bound: float) -> str:
    """Return a bound as Go prints it: no trailing `.0`, an exponent of two digits."""
    text = repr(float(bound))
    return text.removesuffix(".0")


def register(metrics: Metrics, registry: CollectorRegistry) -> CollectorRegistry:
    """Put our metrics, the process's and the interpreter's into a registry, and return it."""
    registry.register(MetricsCollector(metrics))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def exposition(registry: CollectorRegistry, accept: str = "") -> tuple[bytes, str]:
    """Return a registry's text in the format that is asked for, and its content type."""
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type

