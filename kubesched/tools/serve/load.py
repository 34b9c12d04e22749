"""`bench serve`: callers ask a service over gRPC while the cluster that it follows changes.

In: sizes and rates. Out: latencies, and what the processes of the service took. An API server in this process changes the
cluster: pods with a node come and go, nodes are relabelled. The service is the real program, in processes of its own, and the
callers are another process, each with a connection of its own. They ask at fixed times, whether or not the last answer has
come, and a latency counts from the time at which the question was due.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from kubesched.embedded import ApiServer, ObjectStore
from kubesched.errors import SchedulerError
from kubesched.kube.api import codec
from kubesched.scheduler.engine import spare_the_collector
from kubesched.tools.bench import workloads
from kubesched.tools.bench.processes import PROGRAM
from kubesched.tools.serve.descriptors import protocol

_TICK_SECONDS = 0.02
_PATIENCE_SECONDS = 120.0
_SHAPES = 50
_CALLERS = "from kubesched.tools.serve.load import call_from_stdin; call_from_stdin()"


@dataclass(frozen=True, slots=True)
class ServeBench:
    """How large, how often, how long."""

    nodes: int
    pods: int
    callers: int
    rate: float
    """Questions a second, of all callers."""
    changes: float
    """Changes a second."""
    seconds: float


def run(bench: ServeBench, say: Callable[[str], None]) -> dict[str, Any]:
    """Run it and return the figures."""
    with tempfile.TemporaryDirectory(prefix="kubesched-bench-") as scratch:
        return asyncio.run(_run(bench, Path(scratch), say))


async def _run(bench: ServeBench, scratch: Path, say: Callable[[str], None]) -> dict[str, Any]:
    async with ApiServer(ObjectStore()) as server:
        cluster = _Changing(server.store, bench)
        kubeconfig = server.write_kubeconfig(scratch / "kubeconfig")
        words = ("serve", "--insecure", "--secure-port=0", "--grpc-port=0", f"--kubeconfig={kubeconfig}")
        service = await asyncio.create_subprocess_exec(*PROGRAM, *words, stderr=subprocess.PIPE)
        try:
            address = await _address(service)
            await _ready(address)
            say(f"{bench.nodes} nodes and {bench.pods} pods are read")
            changing = asyncio.create_task(cluster.change())
            before = _usage(service.pid)
            began = time.monotonic()
            latencies = await _called(bench, address)
            seconds = time.monotonic() - began
            after = _usage(service.pid)
            changing.cancel()
        finally:
            service.send_signal(signal.SIGTERM)
            await service.wait()
    n_refused = int(np.count_nonzero(latencies < 0))
    good = latencies[latencies >= 0] if n_refused < len(latencies) else np.zeros(1)
    return {
        "nodes": bench.nodes,
        "pods": bench.pods,
        "callers": bench.callers,
        "seconds": round(seconds, 1),
        "questions_per_s": round(len(latencies) / bench.seconds, 1),
        "refused": n_refused,
        "changes_per_s": round(cluster.n_changes / seconds, 1),
        "p50_ms": round(float(np.percentile(good, 50)) * 1000, 2),
        "p99_ms": round(float(np.percentile(good, 99)) * 1000, 2),
        "max_ms": round(float(good.max()) * 1000, 1),
        "service_cpu_percent": round(100 * (after.front_cpu - before.front_cpu) / seconds, 1),
        "follower_cpu_percent": round(100 * (after.follower_cpu - before.follower_cpu) / seconds, 1),
        "service_mib": [before.front_mib, after.front_mib],
        "follower_mib": [before.follower_mib, after.follower_mib],
    }


class _Changing:
    """A cluster in which pods come and go."""

    def __init__(self, store: ObjectStore, bench: ServeBench) -> None:
        self._store, self._bench = store, bench
        self.n_changes = 0
        self._number = 0
        self._pods: deque[str] = deque()
        store.create("namespaces", {"metadata": {"name": workloads.NAMESPACE}})
        for i in range(bench.nodes):
            store.create("nodes", codec.to_dict(workloads.node(i)))
        for _ in range(bench.pods):
            self._come()

    async def change(self) -> None:
        """Change the cluster at the rate that is asked for, until cancelled."""
        began = time.monotonic()
        while True:
            due = int((time.monotonic() - began) * self._bench.changes)
            while self.n_changes < due:
                (self._come, self._go, self._come, self._go, self._relabel)[self.n_changes % 5]()
                self.n_changes += 1
                if self.n_changes % 10 == 0:
                    await asyncio.sleep(0)
            await asyncio.sleep(_TICK_SECONDS)

    def _come(self) -> None:
        pod = codec.to_dict(workloads.pod(self._number, "basic"))
        pod["spec"]["nodeName"] = workloads.node(self._number % self._bench.nodes).metadata.name
        self._store.create("pods", pod, workloads.NAMESPACE)
        self._pods.append(pod["metadata"]["name"])
        self._number += 1

    def _go(self) -> None:
        if self._pods:
            self._store.delete("pods", self._pods.popleft(), workloads.NAMESPACE, grace_seconds=0)

    def _relabel(self) -> None:
        name = workloads.node(self.n_changes % self._bench.nodes).metadata.name
        self._store.patch("nodes", name, {"metadata": {"labels": {"bench": f"v{self.n_changes % 7}"}}})


async def _address(service: asyncio.subprocess.Process) -> str:
    """Return where gRPC is served, as the program says on stderr; what it says later is dropped."""
    assert service.stderr is not None
    while line := (await service.stderr.readline()).decode():
        if line.startswith("Serving gRPC on "):
            asyncio.create_task(_drop(service.stderr))  # noqa: RUF006
            return line.split()[-1]
    raise SchedulerError("the service did not start")


async def _drop(stream: asyncio.StreamReader) -> None:
    while await stream.read(1 << 16):
        pass


async def _ready(address: str) -> None:
    """Wait until the service has read the cluster."""
    ends = time.monotonic() + _PATIENCE_SECONDS
    async with grpc.aio.insecure_channel(address) as channel:
        ask = _fits(channel)
        while True:
            try:
                await ask(_questions()[0])
                return
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE or time.monotonic() > ends:
                    raise SchedulerError(f"the service does not answer: {error.details()}") from error
            await asyncio.sleep(0.1)


def _fits(channel: grpc.aio.Channel) -> Any:
    method = protocol("solver").services["kubesched.v1.Solver"]["Fits"]
    return channel.unary_unary(
        "/kubesched.v1.Solver/Fits",
        request_serializer=method.request.SerializeToString,
        response_deserializer=method.answer.FromString,
    )


def _questions() -> list[Any]:
    """Return questions about pods of several shapes."""
    message = protocol("solver").messages["FitsRequest"]
    found = []
    for i in range(_SHAPES):
        pod = codec.to_dict(workloads.pod(i, "mixed" if i % 4 == 0 else "basic"))
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = f"{100 + 10 * i}m"
        found.append(message(pod=json.dumps(pod).encode()))
    return found


# The callers


async def _called(bench: ServeBench, address: str) -> Any:
    """Return the latencies of all questions in seconds, -1 for those that were refused: asked in a process of its own."""
    asked = json.dumps({"address": address, "callers": bench.callers, "rate": bench.rate, "seconds": bench.seconds})
    words = (sys.executable, "-c", _CALLERS)
    pipe = subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe)
    told, _ = await process.communicate(asked.encode())
    if process.returncode:
        raise SchedulerError("the callers ended too early")
    return np.frombuffer(told, dtype=np.float64)


def call_from_stdin() -> None:
    """Be the process of the callers: read what to ask, write the latencies."""
    asked = json.loads(sys.stdin.read())
    spare_the_collector()
    latencies = asyncio.run(_call_all(asked["address"], asked["callers"], asked["rate"], asked["seconds"]))
    sys.stdout.buffer.write(np.array(latencies, dtype=np.float64).tobytes())


async def _call_all(address: str, n_callers: int, rate: float, seconds: float) -> list[float]:
    found: list[float] = []
    each, questions = rate / n_callers, _questions()
    connected = asyncio.Barrier(n_callers)

    async def call(caller: int) -> None:
        # Without a pool of its own a channel would share the connection of the others.
        async with grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            ask = _fits(channel)
            await ask(questions[0])
            await connected.wait()
            began, under_way = time.perf_counter(), set[asyncio.Task[None]]()
            for i in range(int(seconds * each)):
                due = began + (i + caller / n_callers) / each
                await asyncio.sleep(max(due - time.perf_counter(), 0.0))
                task = asyncio.create_task(ask_one(ask, questions[(i * n_callers + caller) % len(questions)], due))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            await asyncio.gather(*under_way)

    async def ask_one(ask: Any, question: Any, due: float) -> None:
        try:
            await ask(question, timeout=10)
            found.append(time.perf_counter() - due)
        except grpc.aio.AioRpcError:
            found.append(-1.0)

    await asyncio.gather(*map(call, range(n_callers)))
    return found


# What the processes took


@dataclass(frozen=True, slots=True)
class _Usage:
    front_cpu: float
    follower_cpu: float
    front_mib: float
    follower_mib: float


def _usage(pid: int) -> _Usage:
    """Return what the service has used so far: the process that callers reach, and those below it. Memory that they share
    counts in part for each."""
    below = _descendants(pid)
    return _Usage(_cpu(pid), sum(map(_cpu, below)), _mib(pid), round(sum(map(_mib, below)), 1))


def _descendants(pid: int) -> list[int]:
    found = []
    for child in _told(f"/proc/{pid}/task/{pid}/children").split():
        found += [int(child), *_descendants(int(child))]
    return found


def _cpu(pid: int) -> float:
    fields = _told(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _mib(pid: int) -> float:
    lines = _told(f"/proc/{pid}/smaps_rollup").splitlines()
    return sum(round(int(line.split()[1]) / 1024, 1) for line in lines if line.startswith("Pss:"))


def _told(path: str) -> str:
    """Return what the kernel tells of a process; nothing of a fork that is gone meanwhile."""
    try:
        return Path(path).read_text(encoding="ascii")
    except OSError:
        return ""
