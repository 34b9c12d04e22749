"""The processes of a benchmark: an API server, a scheduler, and a client of the API server.

In: command lines and configurations. Out: running processes, the CPU and memory that they used, and the last line of the log of
one that did not start. The caller ends a process that it starts here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kubesched.errors import AlreadyExists, ConfigError, NotFound, SchedulerError
from kubesched.kube.api import INFO, Pod, TopLevel, codec
from kubesched.kube.client import Connection, KubeconfigSource, Reflector, Sink, Watched, collection_path, connect

PROGRAM = (sys.executable, "-c", "from kubesched.cli import main; main()")
N_WRITERS = 32
_PATIENCE_SECONDS = 30.0
T = TypeVar("T")


@contextlib.asynccontextmanager
async def api_server(given: str, command: Sequence[str], kubeconfig: Path) -> AsyncIterator[str]:
    """Yield the given kubeconfig; if it is empty, start an API server and yield the kubeconfig that it writes.

    The command prints a line when it listens, and has written its kubeconfig before. It ends with the context.
    """
    if given:
        yield given
        return
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    try:
        assert process.stdout is not None
        first = await process.stdout.readline()
        if not await asyncio.to_thread(kubeconfig.exists):
            raise SchedulerError(f"the embedded API server did not start: {first.decode().strip()}")
        yield str(kubeconfig)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@contextlib.asynccontextmanager
async def connected(kubeconfig: str) -> AsyncIterator[Connection]:
    """Yield a client without a rate limit."""
    connection = await connect(KubeconfigSource(kubeconfig), name="bench", qps=-1)
    try:
        yield connection
    finally:
        await connection.close()


@contextlib.asynccontextmanager
async def following_pods(connection: Connection, sink: Sink) -> AsyncIterator[None]:
    """Deliver all pods to a sink while the context lasts. The first list is delivered before it begins."""
    reflector = Reflector(connection, Watched("Pod", Pod, "pods", ("v1",)), sink)
    task = asyncio.create_task(reflector.run())
    try:
        await reflector.wait_synced()
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def refuse_nodes_of_others(connection: Connection, ours: Callable[[str], object]) -> None:
    """Raise if the cluster has nodes that are not ours: their kubelets would start the pods of a benchmark."""
    body = await connection.request("GET", collection_path("v1", "nodes"))
    names = [item["metadata"]["name"] for item in json.loads(body)["items"]]
    others = [name for name in names if not ours(name)]
    if others:
        what = f"the cluster has {len(others)} nodes of its own, {others[0]} among them"
        raise ConfigError("--kubeconfig", f"{what}; pods of a benchmark would start there. Use a cluster without nodes")


async def create(connection: Connection, obj: TopLevel) -> None:
    """Create an object unless it exists: an earlier run left it, or the answer to an earlier request was lost."""
    info = INFO[type(obj)]
    path = collection_path(info.api_version, info.plural, obj.metadata.namespace if info.namespaced else "")
    with contextlib.suppress(AlreadyExists):
        await connection.request("POST", path, codec.encode(obj))


async def remove(connection: Connection, path: str) -> None:
    """Delete an object if it exists."""
    with contextlib.suppress(NotFound):
        await connection.request("DELETE", path)


async def remove_namespace(connection: Connection, name: str, patience_seconds: float = 20.0) -> None:
    """Delete an empty namespace.

    An API server without controllers leaves the finalizer in place, and the namespace would stay terminating and refuse the
    pods of the next run. So the finalizer is removed here if no controller reports conditions in time.
    """
    path = f"{collection_path('v1', 'namespaces')}/{name}"
    deadline = time.monotonic() + patience_seconds
    with contextlib.suppress(NotFound):
        await connection.request("DELETE", path)
        while True:
            found = json.loads(await connection.request("GET", path))
            if found.get("status", {}).get("conditions"):  # written by the namespace controller
                return
            if time.monotonic() >= deadline:
                break
            await asyncio.sleep(0.5)
        found["spec"]["finalizers"] = []
        await connection.request("PUT", f"{path}/finalize", json.dumps(found).encode())


async def in_parallel(items: Iterable[T], work: Callable[[T], Awaitable[None]], at_a_time: int = N_WRITERS) -> None:
    """Call `work` for all items, `at_a_time` of them at once; raise the first error."""
    waiting = iter(items)

    async def take() -> None:
        for item in waiting:
            await work(item)

    async with _together() as tasks:
        for _ in range(at_a_time):
            tasks.create_task(take())


async def at_a_rate(items: Iterable[T], work: Callable[[T], Coroutine[Any, Any, None]], per_second: float) -> None:
    """Start `work` for `per_second` items a second, also while earlier ones are not done; raise the first error."""
    due = time.monotonic()
    async with _together() as tasks:
        for item in items:
            due += 1.0 / per_second
            await asyncio.sleep(due - time.monotonic())
            tasks.create_task(work(item))


@contextlib.asynccontextmanager
async def _together() -> AsyncIterator[asyncio.TaskGroup]:
    """Yield a group of tasks; raise its first error by itself, without the exception group around it."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except* SchedulerError as failures:
        first: BaseException = failures
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None


def free_port() -> int:
    """Return a TCP port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def start(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a process whose output goes to a file."""
    with log.open("wb") as out:
        return subprocess.Popen(command, stdout=out, stderr=out)


def start_scheduler(
    kubeconfig: str, scratch: Path, configuration: Mapping[str, Any], flags: Sequence[str]
) -> subprocess.Popen[bytes]:
    """Start `kubesched run` without a limit on requests, so that the limit is not measured; it logs to `scheduler.log`."""
    client = {"kubeconfig": str(Path(kubeconfig).resolve()), "qps": 100_000, "burst": 100_000}
    written = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **configuration,
        "clientConnection": client,
    }
    file = scratch / "scheduler.yaml"
    file.write_text(json.dumps(written))
    return start((*PROGRAM, "run", f"--config={file}", *flags), scratch / "scheduler.log")


def wait_for_end(process: subprocess.Popen[bytes]) -> resource.struct_rusage:
    """Wait for a process that was sent a signal, kill it after 30 s, and return its usage."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage
        if time.monotonic() > deadline:
            process.kill()
        time.sleep(0.02)


def cpu_seconds(pid: int) -> float | None:
    """Return the CPU seconds of a running process; None where the system has no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mib(usage: resource.struct_rusage) -> int:
    """Return the peak memory of a process."""
    return usage.ru_maxrss // (1024 if sys.platform.startswith("linux") else 1 << 20)


_KLOG_HEADER = re.compile(r"^[IWEF]\d{4} [\d:.]+ +\d+ [^]]+\] ")


def last_line(log: Path) -> str:
    """Return the last line of a log without time and source line."""
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return _KLOG_HEADER.sub("", lines[-1]) if lines else "it said nothing"
