"""An API server and a scheduler to run a workload on.

In: a workload, and the kubeconfig of an API server if one is given. Out: a kubeconfig to write with, and a scheduler with the
workload's configuration and gates that is ready before anything is created. Both are processes of their own, as on a real
cluster, so that neither waits for the other or for the benchmark within one interpreter.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from kubesched.errors import SchedulerError
from kubesched.tools.bench import processes
from kubesched.tools.bench.perf.cases import Workload
from kubesched.tools.bench.perf.collecting import ATTEMPT, Buckets, histogram

_OPEN_PATHS = "/healthz,/livez,/readyz,/metrics"
_READY_WITHIN_SECONDS = 60.0
_SCHEDULED = {"result": "scheduled"}


def api_server(kubeconfig: str, scratch: Path) -> contextlib.AbstractAsyncContextManager[str]:
    """Lend the kubeconfig of the given API server, or of an embedded one with the controllers that a benchmark needs."""
    file = scratch / "kubeconfig"
    return processes.api_server(kubeconfig, (sys.executable, "-m", "kubesched.tools.bench.perf.controllers", str(file)), file)


class RunningScheduler:
    """A scheduler that works until its context ends."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path, session: aiohttp.ClientSession) -> None:
        self._process = process
        self._url = f"https://127.0.0.1:{port}"
        self._log = log
        self._session = session
        self.cpu_seconds = 0.0
        self.rss_mib = 0

    async def attempts(self) -> Buckets:
        """Return how long the attempts took that placed a pod."""
        async with self._session.get(f"{self._url}/metrics") as answer:
            text = await answer.text()
        return await asyncio.to_thread(histogram, text, ATTEMPT, _SCHEDULED)

    async def wait_ready(self) -> None:
        """Wait until it has read what there is; raise with its last words if it ends before."""
        try:
            async with asyncio.timeout(_READY_WITHIN_SECONDS):
                while not await self._is_ready():
                    self._raise_if_ended()
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise SchedulerError(f"the scheduler is not ready: {processes.last_line(self._log)}") from None

    async def _is_ready(self) -> bool:
        try:
            async with self._session.get(f"{self._url}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    async def watch_over(self) -> None:
        """Raise as soon as it has ended."""
        while True:
            self._raise_if_ended()
            await asyncio.sleep(0.5)

    def _raise_if_ended(self) -> None:
        if self._process.poll() is not None:
            raise SchedulerError(f"the scheduler has ended: {processes.last_line(self._log)}")

    async def end(self) -> None:
        """Stop it, and take note of what it used."""
        if self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        usage = await asyncio.to_thread(processes.wait_for_end, self._process)
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
        self.rss_mib = processes.rss_mib(usage)


@contextlib.asynccontextmanager
async def scheduler(workload: Workload, kubeconfig: str, scratch: Path) -> AsyncIterator[RunningScheduler]:
    """Run a scheduler as the workload wants it."""
    port = processes.free_port()
    flags = [
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={scratch / 'pki'}",
        f"--authorization-always-allow-paths={_OPEN_PATHS}",
    ]
    flags.append("--emulated-version={}.{}".format(*workload.emulated))
    if workload.gates:
        flags.append("--feature-gates=" + ",".join(f"{name}={str(on).lower()}" for name, on in workload.gates.items()))
    configuration = {**_configuration(workload), "leaderElection": {"leaderElect": False}}
    process = processes.start_scheduler(kubeconfig, scratch, configuration, flags)
    connector = aiohttp.TCPConnector(ssl=False)  # it signs its own certificate, and listens to this machine alone
    async with aiohttp.ClientSession(connector=connector) as session:
        running = RunningScheduler(process, port, scratch / "scheduler.log", session)
        try:
            await running.wait_ready()
            yield running
        finally:
            await running.end()


def _configuration(workload: Workload) -> dict[str, Any]:
    if workload.scheduler_config is None:
        return {}
    tree: dict[str, Any] = msgspec.yaml.decode(workload.scheduler_config.read_bytes(), type=dict[str, Any])
    return tree
