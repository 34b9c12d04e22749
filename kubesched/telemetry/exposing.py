"""Metrics as Prometheus reads them: a collector over what the facade wrote down, and the text of a registry.

In: `Metrics` and a registry. Out: the text format, or protobuf for who prefers it, where histograms may have native buckets.
Label values that are not on the allow list are added up under `unexpected`. The three latencies of the old write-ups
are the modern ones in microseconds.

A scrape happens on the event loop, between two decisions, so it has to be quick. The library makes an object of every
line: 560 histogram series took it 265 ms of CPU. Our own families keep the unchanging part of each line and only put
the numbers in, which takes 11 ms; the library's way is still there for whoever asks a registry for samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from kubesched.telemetry import protobuf
from kubesched.telemetry.families import Family, Kind
from kubesched.telemetry.gc_pauses import GcPauses
from kubesched.telemetry.metrics import Metrics
from kubesched.telemetry.samples import Histogram, Labels, Samples, new_counts

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
UNEXPECTED = "unexpected"
_MICROSECONDS = 1e6


class KeptFamily(Metric):
    """One of our families at the moment of a scrape: text at once, the library's samples when asked for."""

    def __init__(self, family: Family, render: Callable[[], str], encode: Callable[[], bytes]) -> None:
        name = family.name.removesuffix("_total") if family.kind is Kind.COUNTER else family.name
        super().__init__(name, family.shown_help, family.kind.value)
        self.render = render
        self.encode = encode

    @property
    def samples(self) -> list[Sample]:
        """Return the samples of the text."""
        return [sample for family in text_string_to_metric_families(self.render()) for sample in family.samples]

    @samples.setter
    def samples(self, _: list[Sample]) -> None:
        """Ignore the empty list that the library begins with."""


class MetricsCollector(Collector):
    """Reads the facade whenever a registry is asked."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        # What never changes is made once: the head of a family here, the beginnings of a series' lines in `_starts`. A scrape
        # of 560 histogram series then mostly joins strings.
        self._heads = {family.name: _head(family) for family in metrics.shown}
        self._starts: dict[tuple[str, Labels], tuple[str, ...]] = {}
        self._pauses = GcPauses()

    def describe(self) -> Iterable[Metric]:
        """Return the names, so that registering asks nobody for sizes."""
        return [Metric(family.name, family.shown_help, family.kind.value) for family in self._metrics.shown]

    def collect(self) -> Iterator[Metric]:
        """Yield every family that is shown."""
        # In the loop's thread, where histograms may be written.
        self._pauses.hand_over(self._metrics.histograms["kubesched_gc_pause_seconds"])
        for family in self._metrics.shown:
            show = self._histogram if family.kind is Kind.HISTOGRAM else self._numbers
            yield KeptFamily(family, partial(show, family), partial(self._encoded, family))

    def _encoded(self, family: Family) -> bytes:
        """Return a family's protobuf."""
        metrics = []
        if family.kind is Kind.HISTOGRAM:
            for labels, series in list(self._merged(family).items()):
                counts, summed = series.read()
                pairs = dict(zip(family.labels, labels, strict=True))
                metrics.append(protobuf.histogram(pairs, family.bounds, counts, summed, series.native))
        else:
            for labels, value in list(self._values(family).items()):
                metrics.append(protobuf.number(family.kind.value, dict(zip(family.labels, labels, strict=True)), value))
        return protobuf.family(family.name, family.shown_help, family.kind.value, metrics) if metrics else b""

    def _values(self, family: Family) -> Mapping[Labels, float]:
        values = self._metrics.values(family)
        if self._metrics.settings.allowed_label_values:
            merged = new_counts()
            for labels, value in list(values.items()):
                merged[self._allowed(family, labels)] += value
            values = merged
        # As Prometheus' client for Go: a metric without labels is shown as 0 before it was ever counted, one with labels is not
        # shown at all.
        if not family.labels and not values:
            values = {(): 0.0}
        return values

    def _numbers(self, family: Family) -> str:
        parts = [self._heads[family.name]]
        # A copy: with extenders another thread may add a series while this one renders.
        for labels, value in list(self._values(family).items()):
            parts.append(f"{self._starts_of(family, labels)[0]}{_number(value)}\n")
        return "".join(parts)

    def _histogram(self, family: Family) -> str:
        parts = [self._heads[family.name]]
        for labels, series in list(self._merged(family).items()):
            *buckets, all_of_them, total = self._starts_of(family, labels)
            counts, summed = series.read()
            parts.extend([f"{start}{count}\n" for start, count in zip(buckets, counts, strict=True)])
            parts.append(f"{total}{_number(summed)}\n{all_of_them}{counts[-1]}\n")
        return "".join(parts)

    def _merged(self, family: Family) -> Mapping[Labels, Samples]:
        # The usual case needs no copy: no label values are restricted, and the family has series of its own.
        if not family.is_legacy and family.labels and not self._metrics.settings.allowed_label_values:
            return self._metrics.histograms[family.name]
        merged = Histogram(family.bounds, self._metrics.settings.has_native_histograms)
        if not family.labels:
            merged[()]  # shown although nothing was written to it
        for labels, series, scale in self._series(family):
            merged[self._allowed(family, labels)].merge(series, scale)
        return merged

    def _series(self, family: Family) -> Iterator[tuple[Labels, Samples, float]]:
        books = self._metrics.histograms
        # Old names for what is measured today, in microseconds. Their bounds are today's, multiplied, so that buckets can be
        # taken over one to one.
        if family.name == "scheduler_e2e_scheduling_latency_microseconds":
            for (result, _), series in list(books["scheduler_scheduling_attempt_duration_seconds"].items()):
                if result == "scheduled":
                    yield (), series, _MICROSECONDS
        elif family.name == "scheduler_scheduling_algorithm_latency_microseconds":
            for series in list(books["scheduler_scheduling_algorithm_duration_seconds"].values()):
                yield (), series, _MICROSECONDS
        else:
            for labels, series in list(books[family.name].items()):
                yield labels, series, 1.0

    def _allowed(self, family: Family, labels: Labels) -> Labels:
        allowed = self._metrics.settings.allowed_label_values
        if not allowed:
            return labels
        return tuple(
            # `(value,)`: a label without an allow list allows whatever it has.
            value if value in allowed.get((family.name, name), (value,)) else UNEXPECTED
            for name, value in zip(family.labels, labels, strict=True)
        )

    def _starts_of(self, family: Family, labels: Labels) -> tuple[str, ...]:
        """Return what the lines of a series begin with; of a histogram the buckets, then the count, then the sum."""
        key = (family.name, labels)
        known = self._starts.get(key)
        if known is None:
            known = self._starts[key] = _starts(family, labels)
        return known


def register(metrics: Metrics, registry: CollectorRegistry) -> CollectorRegistry:
    """Put our metrics, the process's and the interpreter's into a registry, and return it."""
    registry.register(MetricsCollector(metrics))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def exposition(registry: CollectorRegistry) -> bytes:
    """Return a registry's text, in the format of `CONTENT_TYPE`."""
    parts = []
    # Families of the Prometheus library (process, platform, gc) are few, and are rendered by the library itself.
    others = _Others([])
    for metric in registry.collect():
        if isinstance(metric, KeptFamily):
            parts.append(metric.render())
        else:
            others.metrics.append(metric)
    return "".join(parts).encode() + generate_latest(others)


def encoded(registry: CollectorRegistry) -> bytes:
    """Return a registry's protobuf, in the format of `protobuf.CONTENT_TYPE`."""
    return b"".join(
        metric.encode() if isinstance(metric, KeptFamily) else _encoded_by_hand(metric) for metric in registry.collect()
    )


def _encoded_by_hand(metric: Metric) -> bytes:
    """Return a family of the library's: counters, gauges and what it calls info, which is a gauge on the wire."""
    kind = metric.type if metric.type in ("counter", "gauge") else "gauge"
    # `_created` lines are an addition of the library; Go has none.
    samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
    if not samples:
        return b""
    metrics = [protobuf.number(kind, sample.labels, sample.value) for sample in samples]
    return protobuf.family(samples[0].name, metric.documentation, kind, metrics)


class _Others(Collector):
    """Metrics that the library renders."""

    def __init__(self, metrics: list[Metric]) -> None:
        self.metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """Return them."""
        return self.metrics


def _head(family: Family) -> str:
    return f"# HELP {family.name} {_escaped(family.shown_help)}\n# TYPE {family.name} {family.kind.value}\n"


def _starts(family: Family, labels: Labels) -> tuple[str, ...]:
    pairs = dict(zip(family.labels, labels, strict=True))
    if family.kind is not Kind.HISTOGRAM:
        return (_start(family.name, pairs),)
    bounds = [*(_bound(bound) for bound in family.bounds), "+Inf"]
    buckets = [_start(f"{family.name}_bucket", {**pairs, "le": bound}) for bound in bounds]
    return (*buckets, _start(f"{family.name}_count", pairs), _start(f"{family.name}_sum", pairs))


def _start(name: str, pairs: Mapping[str, str]) -> str:
    inside = ",".join(f'{key}="{_quoted(value)}"' for key, value in sorted(pairs.items()))
    return f"{name}{{{inside}}} " if inside else f"{name} "


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def _bound(bound: float) -> str:
    """Return a bound as Go prints it: without a trailing `.0`."""
    return repr(float(bound)).removesuffix(".0")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))
