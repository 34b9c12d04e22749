"""Runs a soak, from the first node to the report.

In: sizes, a rate, a duration, the faults. Out: the report. It is also published every two minutes, so that a run that is killed
leaves one. A run that is stopped early reports on the time until then.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubesched.errors import SchedulerError
from kubesched.tools.bench import workloads
from kubesched.tools.bench.processes import connected, following_pods, last_line, refuse_nodes_of_others
from kubesched.tools.bench.soak import faults
from kubesched.tools.bench.soak.churn import Ledger, Users
from kubesched.tools.bench.soak.faults import Faults
from kubesched.tools.bench.soak.replicas import Replicas
from kubesched.tools.bench.soak.report import Measured, document

REPORT_EVERY_SECONDS = 120.0
_START_SECONDS = 180.0
SETTLE_SECONDS = 240.0
"""How long after the churn, or after the last binding, a pod may be pending. It is less than the five minutes after which the
queue tries every pod again, so a pod whose wake-up was lost is found."""


@dataclass(frozen=True, slots=True)
class Soak:
    """What to run. Without a kubeconfig, the embedded API server is started."""

    nodes: int = 5000
    pods: int = 150_000
    duration_seconds: float = 3600.0
    rate: float = 20.0
    """Pods created per second, and as many deleted."""
    schedulers: int = 2
    fault_seconds: float = 300.0
    kinds_of_faults: tuple[str, ...] = faults.KINDS
    sample_seconds: float = 10.0
    kubeconfig: str = ""
    seed: int = 0


async def run(
    soak: Soak,
    stopped: asyncio.Event,
    say: Callable[[str], None] = lambda text: None,
    publish: Callable[[dict[str, Any]], None] = lambda report: None,
) -> dict[str, Any]:
    """Run it, and return the report."""
    with tempfile.TemporaryDirectory(prefix="kubesched-soak-") as folder:
        replicas = Replicas(Path(folder), soak.schedulers, soak.kubeconfig)
        try:
            await replicas.start_server()
            async with connected(replicas.kubeconfig) as connection:
                await refuse_nodes_of_others(connection, lambda name: name.startswith("node-"))
                ledger = Ledger()
                users = Users(connection, ledger, nodes=soak.nodes, pods=soak.pods, rate=soak.rate, seed=soak.seed)
                try:
                    began = time.monotonic()
                    await users.fill()
                    say(f"{soak.nodes} nodes and {soak.pods} pods were created in {time.monotonic() - began:.0f} s")
                    async with following_pods(connection, ledger):
                        await _lead(replicas)
                        running = _Running(soak, replicas, users, stopped, publish)
                        await running.churn()
                        say("Churn is over; waiting for the last pods")
                        report = await running.settled()
                        publish(report)  # before the cleanup, which takes minutes for a large cluster and may fail
                        return report
                finally:
                    if soak.kubeconfig:
                        await replicas.stop()
                        await _tidy(users, say)
        finally:
            await replicas.stop()


async def _tidy(users: Users, say: Callable[[str], None]) -> None:
    """Delete what was created in a given cluster. An error is printed, not raised, so that the report is not lost."""
    say("Removing nodes and pods")
    try:
        await users.empty()
    except SchedulerError as error:
        say(f"Nodes and pods are left over in namespace {workloads.NAMESPACE}: {error}")


async def _lead(replicas: Replicas) -> None:
    """Start the schedulers, and wait until one leads."""
    deadline = time.monotonic() + _START_SECONDS
    while replicas.leader is None:
        if time.monotonic() > deadline:
            last = last_line(replicas.schedulers[0].log)
            raise SchedulerError(f"no scheduler leads after {_START_SECONDS:g} s: {last}")
        await replicas.look()
        await asyncio.sleep(0.5)


class _Running:
    """The part of a soak in which pods are replaced and measured."""

    def __init__(
        self, soak: Soak, replicas: Replicas, users: Users, stopped: asyncio.Event, publish: Callable[[dict[str, Any]], None]
    ) -> None:
        self._soak, self._replicas, self._users, self._publish = soak, replicas, users, publish
        self._faults = Faults(replicas, users, soak.kinds_of_faults)
        self._began = time.monotonic()
        self._ends = self._began + soak.duration_seconds
        self._stopped = stopped
        self._measured = Measured(soak, self._began, users, replicas, self._faults)

    def _is_over(self) -> bool:
        return self._stopped.is_set() or time.monotonic() >= self._ends

    async def churn(self) -> None:
        """Replace pods, cause faults, and measure, until the time is up."""
        measuring = asyncio.create_task(self._measure())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._users.churn(self._is_over))
            tasks.create_task(self._faults.run(self._soak.fault_seconds, self._is_over))
        self._measured.churn_seconds = time.monotonic() - self._began
        await self._users.finish()
        measuring.cancel()
        await asyncio.gather(measuring, return_exceptions=True)
        if measuring.done() and not measuring.cancelled():
            measuring.result()

    async def settled(self) -> dict[str, Any]:
        """Wait until all pods have a node or the time for it is up; stop the schedulers, and return the report."""
        ledger, since = self._users.ledger, time.monotonic()
        while ledger.created and time.monotonic() < max((since, *ledger.bound_at[-1:])) + SETTLE_SECONDS:
            await asyncio.sleep(0.5)
            await self._replicas.look()
        await self._sample()
        await self._replicas.stop(server=False)
        self._take_decisions()  # only now: a scheduler writes its decision log with a delay
        return document(self._measured, is_final=True)

    async def _measure(self) -> None:
        """Take samples, and publish the report now and then."""
        published = time.monotonic()
        while True:
            await self._sample()
            if time.monotonic() - published > REPORT_EVERY_SECONDS:
                published = time.monotonic()
                self._publish(document(self._measured))
            await asyncio.sleep(self._soak.sample_seconds)

    async def _sample(self) -> None:
        await self._replicas.look()
        self._take_decisions()
        self._measured.sample(time.monotonic(), os.getloadavg()[0])

    def _take_decisions(self) -> None:
        for replica in self._replicas.all:
            self._measured.decisions.extend(decided.latency_seconds for decided in replica.new_decisions())
