"""Run one workload: start a cluster, run the operations, and compare the figures with the threshold.

In: a workload, and a kubeconfig or none. Out: one row for each collection of metrics, or one row with an error.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubesched.errors import SchedulerError
from kubesched.tools.bench.perf import cluster
from kubesched.tools.bench.perf.cases import Workload
from kubesched.tools.bench.perf.executor import Executor
from kubesched.tools.bench.perf.informer import PodInformer
from kubesched.tools.bench.perf.rest import Rest
from kubesched.tools.bench.processes import connected, following_pods, refuse_nodes_of_others


async def run(
    workload: Workload, kubeconfig: str = "", *, patience: float = 600.0, progress: Callable[[str], None] | None = None
) -> list[dict[str, Any]]:
    """Run a workload and return its rows; an error becomes a row."""
    if workload.problem:
        return [_row(workload, error=workload.problem)]
    try:
        with tempfile.TemporaryDirectory(prefix="kubesched-perf-") as scratch:
            return await _run(workload, kubeconfig, Path(scratch), patience, progress)
    except SchedulerError as error:
        return [_row(workload, error=str(error))]


async def _run(
    workload: Workload, kubeconfig: str, scratch: Path, patience: float, progress: Callable[[str], None] | None
) -> list[dict[str, Any]]:
    informer = PodInformer()
    async with cluster.api_server(kubeconfig, scratch) as server, connected(server) as connection:
        await refuse_nodes_of_others(connection, lambda name: False)
        rest = Rest(connection)
        try:
            async with cluster.scheduler(workload, server, scratch) as scheduler, following_pods(connection, informer):
                executor = Executor(workload, rest, informer, scheduler.attempts, patience=patience)
                try:
                    await _first_of(executor.run(progress), scheduler.watch_over())
                finally:
                    await executor.close()
        finally:
            if kubeconfig:
                await rest.remove_all()
    used: dict[str, Any] = {"scheduler_cpu_s": round(scheduler.cpu_seconds, 2), "rss_mib": scheduler.rss_mib}
    return [_row(workload, **row, **used) for row in executor.rows]


async def _first_of(work: Any, watch: Any) -> None:
    """Wait for the work; raise what `watch` raises if that is first."""
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(watch)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _row(workload: Workload, *, error: str | None = None, **figures: Any) -> dict[str, Any]:
    """Return a row. All rows begin with the same fields."""
    percentiles = figures.get("throughput_percentiles") or {}
    measured = figures.get("throughput") if workload.bucket == "Average" else percentiles.get(workload.bucket)
    threshold = workload.threshold
    ratio = round(measured / threshold, 2) if measured is not None and threshold else None
    first = {"case": workload.case, "workload": workload.name, "throughput": figures.pop("throughput", None)}
    gates = dict(workload.gates)
    return {**first, "threshold": threshold, "ratio": ratio, "error": error, **figures, "feature_gates": gates}
