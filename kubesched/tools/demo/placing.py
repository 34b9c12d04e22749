"""Follows how a demo places its pods, until all are placed or tried."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from kubesched.embedded import ObjectStore
from kubesched.server.app import Scheduler

_STUCK_SECONDS = 60.0
"""After this time without a change the demo continues with the pods that are placed."""
_TICK_SECONDS = 0.1
_STEADY_TICKS = 3


class Tally:
    """Counts pods, and those with a node, from changes, as listing thousands of pods is slow."""

    def __init__(self, store: ObjectStore) -> None:
        self._has_node: dict[str, bool] = {}
        self.n_placed = 0
        for pod in store.list("pods").items:
            self._put(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}", pod)
        store.listen("pods", lambda change: self._put(change.key, change.new.obj if change.new is not None else None))

    @property
    def n_pods(self) -> int:
        """Return how many pods there are."""
        return len(self._has_node)

    def _put(self, key: str, pod: dict[str, Any] | None) -> None:
        self.n_placed -= self._has_node.pop(key, False)
        if pod is not None:
            has_node = self._has_node[key] = bool(pod["spec"].get("nodeName"))
            self.n_placed += has_node


class Placing(NamedTuple):
    """The progress at one moment."""

    has_changed: bool
    pods_a_second: float


async def placing(store: ObjectStore, scheduler: Scheduler, tally: Tally, stopped: asyncio.Event) -> AsyncIterator[Placing]:
    """Yield the progress ten times a second, until every pod is placed or was tried."""
    loop = asyncio.get_running_loop()
    began_at = changed_at = loop.time()
    before: tuple[int, ...] = ()
    steady = 0
    while steady < _STEADY_TICKS and loop.time() - changed_at < _STUCK_SECONDS and not stopped.is_set():
        now = (tally.n_placed, tally.n_pods, *_taken_in(scheduler))
        has_changed, before = now != before, now
        changed_at = loop.time() if has_changed else changed_at
        is_done = not has_changed and tally.n_pods >= _n_wanted(store) and _has_tried(scheduler, tally)
        steady = steady + 1 if is_done else 0
        n_bound = scheduler.throughput.n_bound
        began_at = began_at if n_bound else loop.time()
        yield Placing(has_changed, n_bound / max(changed_at - began_at, 1.0))
        await asyncio.sleep(_TICK_SECONDS)


def _n_wanted(store: ObjectStore) -> int:
    """Return how many pods the workloads want."""
    makers = [*store.list("deployments").items, *store.list("statefulsets").items]
    replicas = sum(int(maker["spec"].get("replicas", 1)) for maker in makers)
    return replicas + sum(int(job["spec"].get("completions", 1)) for job in store.list("jobs").items)


def _taken_in(scheduler: Scheduler) -> tuple[int, ...]:
    """Return how many nodes and pods the scheduler has read, as numbers that change while it reads."""
    engine = scheduler.engine
    return () if engine is None else (len(engine.store.nodes), len(engine.queue), engine.queue.n_active)


def _has_tried(scheduler: Scheduler, tally: Tally) -> bool:
    """Return whether every pod has a node or was refused at least once."""
    engine = scheduler.engine
    if engine is None or not scheduler.is_synced:
        return False
    refused = sum(1 for entry in engine.queue if entry.attempts or entry.is_gated)
    return tally.n_placed + refused >= tally.n_pods and not engine.queue.n_in_flight
