"""The processes of a benchmark: an API server and a scheduler, each on its own, and a client of the one.

In: command lines and configurations. Out: running programs, what they used in the end, and the last line that they said where
one did not start. Whoever starts a process here ends it.
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
    """Lend the kubeconfig of the given API server; or run one that writes a kubeconfig, says a line, and ends with the
    context."""
    if given:
        yield given
        return
    process = _start(command)
    try:
        await asyncio.to_thread(_wait_for_start, process, kubeconfig)
        yield str(kubeconfig)
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)


def _start(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _wait_for_start(process: subprocess.Popen[str], kubeconfig: Path) -> None:
    """Wait for the first line; the kubeconfig is written before it."""
    assert process.stdout is not None
    first = process.stdout.readline()
    if not kubeconfig.exists():
        raise SchedulerError(f"the embedded API server did not start: {first.strip()}")


@contextlib.asynccontextmanager
async def connected(kubeconfig: str) -> AsyncIterator[Connection]:
    """Lend a client without a limit of its own."""
    connection = await connect(KubeconfigSource(kubeconfig), name="bench", qps=-1)
    try:
        yield connection
    finally:
        await connection.close()


@contextlib.asynccontextmanager
async def following_pods(connection: Connection, sink: Sink) -> AsyncIterator[None]:
    """Tell a sink of all pods, from the first list on, for as long as the context lasts."""
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
    """Create an object, unless it is there already: left over from what was broken off, or since an answer was lost."""
    info = INFO[type(obj)]
    path = collection_path(info.api_version, info.plural, obj.metadata.namespace if info.namespaced else "")
    with contextlib.suppress(AlreadyExists):
        await connection.request("POST", path, codec.encode(obj))


async def remove(connection: Connection, path: str) -> None:
    """Remove an object, if it is there."""
    with contextlib.suppress(NotFound):
        await connection.request("DELETE", path)


async def remove_namespace(connection: Connection, name: str, patience_seconds: float = 20.0) -> None:
    """Remove an empty namespace. Where nobody takes care of its end, an API server without controllers, that is done here:
    it would stay half removed and take no pods from the next run."""
    path = f"{collection_path('v1', 'namespaces')}/{name}"
    deadline = time.monotonic() + patience_seconds
    with contextlib.suppress(NotFound):
        await connection.request("DELETE", path)
        while True:
            found = json.loads(await connection.request("GET", path))
            if found.get("status", {}).get("conditions"):  # a controller is at it, and says how far
                return
            if time.monotonic() >= deadline:
                break
            await asyncio.sleep(0.5)
        found["spec"]["finalizers"] = []
        await connection.request("PUT", f"{path}/finalize", json.dumps(found).encode())


async def in_parallel(items: Iterable[T], work: Callable[[T], Awaitable[None]], at_a_time: int = N_WRITERS) -> None:
    """Work on all items, some at a time; raise what the first failure raised."""
    waiting = iter(items)

    async def take() -> None:
        for item in waiting:
            await work(item)

    async with _together() as tasks:
        for _ in range(at_a_time):
            tasks.create_task(take())


async def at_a_rate(items: Iterable[T], work: Callable[[T], Coroutine[Any, Any, None]], per_second: float) -> None:
    """Work on each item when it is due, however many before it are not done yet; raise what the first failure raised."""
    due = time.monotonic()
    async with _together() as tasks:
        for item in items:
            due += 1.0 / per_second
            await asyncio.sleep(due - time.monotonic())
            tasks.create_task(work(item))


@contextlib.asynccontextmanager
async def _together() -> AsyncIterator[asyncio.TaskGroup]:
    """Lend a group of tasks; raise what the first failure raised."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except* SchedulerError as failures:
        first: BaseException = failures
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None


def free_port() -> int:
    """Return a port that nobody listens on just now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def start(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a process; what it says goes to a file."""
    with log.open("wb") as out:
        return subprocess.Popen(command, stdout=out, stderr=out)


def start_scheduler(
    kubeconfig: str, scratch: Path, configuration: Mapping[str, Any], flags: Sequence[str]
) -> subprocess.Popen[bytes]:
    """Start `kubesched run`; what it says goes to `scheduler.log`."""
    client = {"kubeconfig": str(Path(kubeconfig).resolve()), "qps": 100_000, "burst": 100_000}
    written = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **configuration,
        "clientConnection": client,  # no limit on requests, so that the limit is not what is measured
    }
    file = scratch / "scheduler.yaml"
    file.write_text(json.dumps(written))
    return start((*PROGRAM, "run", f"--config={file}", *flags), scratch / "scheduler.log")


def wait_for_end(process: subprocess.Popen[bytes]) -> resource.struct_rusage:
    """Wait for a process that was told to end, and return what it used."""
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
    """Return the CPU that a running process has used, where the system tells."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mib(usage: resource.struct_rusage) -> int:
    """Return the most memory that a process had."""
    return usage.ru_maxrss // (1024 if sys.platform.startswith("linux") else 1 << 20)


_KLOG_HEADER = re.compile(r"^[IWEF]\d{4} [\d:.]+ +\d+ [^]]+\] ")


def last_line(log: Path) -> str:
    """Return the last thing that a program said, without when and where."""
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return _KLOG_HEADER.sub("", lines[-1]) if lines else "it said nothing"
