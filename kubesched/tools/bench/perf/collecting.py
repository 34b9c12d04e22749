"""Throughput and latency, computed as scheduler_perf computes them.

In: pods that get a node, and the scheduler's metrics before and after. Out: one row of figures.

Throughput is sampled every second, from the first second after a pod got a node. A second without a placement is averaged with
the seconds up to the next placement: after 300 pods, none, none and 60 pods the samples are 300, 20, 20, 20. Percentiles of
throughput are those of the samples, so Perc99 is near the best second. Percentiles of attempt latency come from the buckets of
the scheduler's histogram. The wait of a pod, from its creation to its binding, is measured here.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from kubesched.tools.bench.perf.informer import SeenPod
from kubesched.tools.simulation.measures import percentile

SAMPLE_SECONDS = 1.0
ATTEMPT = "scheduler_scheduling_attempt_duration_seconds"
_PERCENTS = (50, 90, 95, 99)

Buckets = Mapping[float, float]
"""Counts of a histogram: each upper bound, and how many observations are at or below it."""


class Throughput:
    """Counts the pods of some namespaces that get a node, and samples their number."""

    def __init__(
        self, namespaces: Iterable[str], selector: Mapping[str, str] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._namespaces = frozenset(namespaces)
        self._selector = selector or {}
        self._clock = clock
        self.began_at = clock()
        self.last_at = self.began_at
        self.n_scheduled = 0
        self.waits: list[float] = []
        self.samples: list[float] = []
        self._sampled_at: float | None = None
        self._n_sampled = 0
        self._n_idle = 0

    def take(self, pod: SeenPod, now: float) -> None:
        """Count a pod that just got a node."""
        if pod.namespace in self._namespaces and pod.matches(self._selector):
            self.n_scheduled += 1
            self.last_at = now
            self.waits.append(now - pod.seen_at)

    async def run(self) -> None:
        """Sample until cancelled, at times that do not drift."""
        due = self._clock()
        while True:
            due += SAMPLE_SECONDS
            await asyncio.sleep(max(0.0, due - self._clock()))
            self.sample(self._clock())

    def sample(self, now: float) -> None:
        """Take a sample."""
        if not self.n_scheduled:
            return
        if self._sampled_at is None:  # the first second is cut off at an arbitrary place
            self._sampled_at, self._n_sampled = now, self.n_scheduled
            return
        fresh = self.n_scheduled - self._n_sampled
        if not fresh:
            self._n_idle += 1
            return
        self.samples += [fresh / (now - self._sampled_at)] * (self._n_idle + 1)
        self._sampled_at, self._n_sampled, self._n_idle = now, self.n_scheduled, 0

    def figures(self) -> dict[str, Any]:
        """Return the figures. In a run too short for a sample, throughput is pods over elapsed time."""
        seconds = self.last_at - self.began_at
        samples, waits = sorted(self.samples), sorted(1000 * wait for wait in self.waits)
        overall = self.n_scheduled / seconds if seconds > 0 else None
        mean = sum(self.samples) / len(self.samples) if self.samples else overall
        return {
            "throughput": _rounded(mean),
            "throughput_percentiles": {f"Perc{p}": _rounded(percentile(samples, p)) for p in _PERCENTS} if samples else None,
            "samples": len(self.samples),
            "scheduled": self.n_scheduled,
            "seconds": round(seconds, 2),
            "wait_ms": {f"p{p}": _rounded(percentile(waits, p)) for p in _PERCENTS} if waits else None,
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


# The scheduler's own histograms


def histogram(text: str, name: str, labels: Mapping[str, str]) -> Buckets:
    """Return the buckets of a histogram in the text of /metrics, summed over all series with these labels."""
    found: dict[float, float] = {}
    for family in text_string_to_metric_families(text):
        if family.name != name:
            continue
        for sample in family.samples:
            if sample.name == f"{name}_bucket" and all(sample.labels.get(key) == value for key, value in labels.items()):
                bound = float(sample.labels["le"])
                found[bound] = found.get(bound, 0.0) + sample.value
    return found


def quantile(buckets: Buckets, share: float) -> float | None:
    """Return a quantile, interpolated within its bucket; for the last bucket, which has no bound, its lower bound."""
    bounds = sorted(buckets)
    total = buckets[bounds[-1]] if bounds else 0.0
    if total <= 0:
        return None
    rank = share * total
    lower, below = 0.0, 0.0
    for bound in bounds:
        if buckets[bound] >= rank:
            if math.isinf(bound):
                return lower
            inside = buckets[bound] - below
            return lower + (bound - lower) * (rank - below) / inside if inside else bound
        lower, below = bound, buckets[bound]
    return lower


def latency_ms(before: Buckets, after: Buckets) -> dict[str, float | None] | None:
    """Return percentiles, in milliseconds, of the observations between two readings of a histogram in seconds."""
    found = {bound: count - before.get(bound, 0.0) for bound, count in after.items()}
    if quantile(found, 0.5) is None:
        return None
    return {f"p{percent}": _rounded(1000 * (quantile(found, percent / 100) or 0.0)) for percent in _PERCENTS}
