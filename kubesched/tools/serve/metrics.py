"""What the service counts: questions by call and by what became of them, and how it fares."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.process_collector import ProcessCollector

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class ServeMetrics:
    """The families of /metrics."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._questions = Counter(
            "kubesched_serve_questions",
            "Questions by call and by the code of gRPC that they were answered with; OK for those that have an answer.",
            ("call", "code"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "kubesched_serve_question_duration_seconds",
            "How long questions took, waiting for their turn included.",
            ("call",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._forks = Counter(
            "kubesched_serve_forks", "Questions that were answered in a process of their own.", registry=self.registry
        )
        self._restarts = Counter(
            "kubesched_serve_follower_ends",
            "How often the process that follows the cluster has ended.",
            registry=self.registry,
        )
        self._checks = Counter(
            "kubesched_serve_admission_checks",
            "Kueue workloads that were checked, by the state that they were given.",
            ("state",),
            registry=self.registry,
        )
        Gauge("kubesched_serve_start_time_seconds", "When the service started.", registry=self.registry).set(time.time())

    def watch(self, *, sessions: Callable[[], int], waiting: Callable[[], int], ready: Callable[[], bool]) -> None:
        """Read these at every scrape."""
        for name, text, read in (
            ("sessions", "Sessions that are there.", sessions),
            ("waiting_questions", "Questions that wait for their turn.", waiting),
            ("ready", "Whether the live cluster has been read and questions about it are answered.", ready),
        ):
            gauge = Gauge(f"kubesched_serve_{name}", text, registry=self.registry)
            gauge.set_function(partial(_number, read))

    def answered(self, call: str, code: str, seconds: float) -> None:
        """Count a question."""
        self._questions.labels(call, code or "OK").inc()
        self._seconds.labels(call).observe(seconds)

    def forked(self) -> None:
        """Count a fork."""
        self._forks.inc()

    def restarted(self) -> None:
        """Count an end of the follower."""
        self._restarts.inc()

    def checked(self, state: str) -> None:
        """Count an admission check."""
        self._checks.labels(state).inc()


def _number(read: Callable[[], float]) -> float:
    return float(read())
