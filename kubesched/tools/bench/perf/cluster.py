"""An API server and a scheduler to run a workload on.

In: a workload, and the kubeconfig of an API server if there is one. Out: a kubeconfig, and a scheduler with the workload's
configuration and gates. The scheduler is ready before the first object is created. Each is a process of its own, as on a real
cluster, so they share no interpreter with each other or with the benchmark.
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
    """Yield the given kubeconfig, or that of an embedded API server with the controllers that the workloads need."""
    file = scratch / "kubeconfig"
    return processes.api_server(kubeconfig, (sys.executable, "-m", "kubesched.tools.bench.perf.controllers", str(file)), file)


class RunningScheduler:
    """A scheduler process."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path, session: aiohttp.ClientSession) -> None:
        self._process = process
        self._url = f"https://127.0.0.1:{port}"
        self._log = log
        self._session = session
        self.cpu_seconds = 0.0
        self.rss_mib = 0

    async def attempts(self) -> Buckets:
        """Return the histogram of the attempts that placed a pod."""
        async with self._session.get(f"{self._url}/metrics") as answer:
            text = await answer.text()
        return await asyncio.to_thread(histogram, text, ATTEMPT, _SCHEDULED)

    async def wait_ready(self) -> None:
        """Wait until the scheduler has read the cluster; raise with the last line of its log if it ends before."""
        try:
            async with asyncio.timeout(_READY_WITHIN_SECONDS):
                while True:
                    with contextlib.suppress(aiohttp.ClientError):
                        async with self._session.get(f"{self._url}/readyz") as answer:
                            if answer.status == 200:
                                return
                    self._raise_if_ended()
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise SchedulerError(f"the scheduler is not ready: {processes.last_line(self._log)}") from None

    async def watch_over(self) -> None:
        """Raise SchedulerError when the process ends."""
        while True:
            self._raise_if_ended()
            await asyncio.sleep(0.5)

    def _raise_if_ended(self) -> None:
        if self._process.poll() is not None:
            raise SchedulerError(f"the scheduler has ended: {processes.last_line(self._log)}")

    async def end(self) -> None:
        """Stop the process, and keep the CPU and memory that it used."""
        if self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        usage = await asyncio.to_thread(processes.wait_for_end, self._process)
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
        self.rss_mib = processes.rss_mib(usage)


@contextlib.asynccontextmanager
async def scheduler(workload: Workload, kubeconfig: str, scratch: Path) -> AsyncIterator[RunningScheduler]:
    """Run a scheduler with the configuration and the gates of a workload."""
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
    configuration: dict[str, Any] = {}
    if workload.scheduler_config is not None:
        configuration = msgspec.yaml.decode(workload.scheduler_config.read_bytes(), type=dict[str, Any])
    configuration["leaderElection"] = {"leaderElect": False}
    process = processes.start_scheduler(kubeconfig, scratch, configuration, flags)
    connector = aiohttp.TCPConnector(ssl=False)  # its certificate is self-signed, and it listens on this machine only
    async with aiohttp.ClientSession(connector=connector) as session:
        running = RunningScheduler(process, port, scratch / "scheduler.log", session)
        try:
            await running.wait_ready()
            yield running
        finally:
            await running.end()
