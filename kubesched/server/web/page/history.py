"""The history of the last hours in even steps: pods bound, waiting, latency, and how full the cluster was.

In: every pod that is bound or evicted, and the engine every few seconds. Out: columns, one list for each figure. The size is
bounded: four hours in steps of five seconds are about 300 KB.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from kubesched.scheduler.cluster import CPU, MEMORY, fragmentation
from kubesched.scheduler.engine import Engine
from kubesched.server.web.page.node_columns import shares
from kubesched.server.web.page.queue_data import counts_of

STEP_SECONDS = 5.0
STEPS = 2880
_MOST_SIZES = 1000
_MOST_LATENCIES = 2000
"""Latencies that are kept of one step; of more, every so manieth is."""


class Step(NamedTuple):
    """The figures of one step. Latencies are seconds from when a pod could first be tried; None if nothing was bound."""

    at: float
    bound: float
    """Pods bound a second."""
    active: int
    backoff: int
    unschedulable: int
    gated: int
    p50: float | None
    p99: float | None
    cpu: float
    memory: float
    evicted: int
    """Pods that were chosen to be evicted for others."""
    nodes: int
    cordoned: int
    fragmented: float
    """Share of the free cpu that is of no use to pods of the usual size."""


class History:
    """Collects the figures."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._steps: deque[Step] = deque(maxlen=STEPS)
        self._latencies: list[float] = []
        self._n_bound = self._n_evicted = 0
        self._every = 1
        self._last = now()

    def bound(self, seconds: float) -> None:
        """Note how long a pod took. Of many pods in a step every second, fourth... latency is kept."""
        if self._n_bound % self._every == 0:
            self._latencies.append(seconds)
            if len(self._latencies) == _MOST_LATENCIES:
                self._latencies = self._latencies[::2]
                self._every *= 2
        self._n_bound += 1

    def evicted(self, victims: int) -> None:
        """Note how many pods are evicted for another one."""
        self._n_evicted += victims

    def step(self, engine: Engine) -> None:
        """End a step: record its figures."""
        now = self._now()
        snapshot = engine.store.snapshot()
        counts, full, latencies = counts_of(engine), shares(snapshot), sorted(self._latencies)
        self._steps.append(
            Step(
                at=now,
                bound=self._n_bound / max(now - self._last, 1e-3),
                active=counts["active"],
                backoff=counts["backoff"],
                unschedulable=counts["unschedulable"],
                gated=counts["gated"],
                p50=_percentile(latencies, 50),
                p99=_percentile(latencies, 99),
                cpu=full.get("cpu", 0.0),
                memory=full.get("memory", 0.0),
                evicted=self._n_evicted,
                nodes=snapshot.n,
                cordoned=int(np.count_nonzero(snapshot.is_unschedulable)),
                fragmented=fragmented(engine),
            )
        )
        self._latencies, self._every, self._n_bound, self._n_evicted, self._last = [], 1, 0, 0, now

    async def keep(self, engine: Callable[[], Engine | None]) -> None:
        """Record a step every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(STEP_SECONDS)
            running = engine()
            if running is not None:
                self.step(running)

    def columns(self, after: float = 0.0) -> dict[str, Any]:
        """Return the steps after a time, oldest first, a list for each figure."""
        steps = [step for step in self._steps if step.at > after]
        return {"stepSeconds": STEP_SECONDS, **{name: [getattr(step, name) for step in steps] for name in Step._fields}}


def fragmented(engine: Engine) -> float:
    """Return the share of the free cpu that is left when nodes are filled with pods of the usual size: the median of the pods
    on nodes, of which some are looked at."""
    nodes = engine.store.snapshot()
    sizes = [dict(pod.requests) for pod in islice(engine.store.pods(), _MOST_SIZES)]
    if not sizes:
        return 0.0
    cpu, memory = (sorted(size.get(resource, 0) for size in sizes)[len(sizes) // 2] for resource in (CPU, MEMORY))
    return round(fragmentation(nodes, cpu, memory, ~nodes.is_unschedulable), 4)


def _percentile(ordered: list[float], percent: int) -> float | None:
    """Return the smallest value that this percentage of the values does not exceed."""
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1] if ordered else None
