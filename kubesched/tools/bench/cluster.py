"""Throughput through an API server: nodes and pods are created, a scheduler is started, and its bindings are timed.

In: a kind of pods, how many, and where the API server is. Out: pods a second, CPU per pod and memory of the scheduler, and the
time from its start to the first binding. Scheduler and API server are processes of their own, as on a cluster.

All pods are pending when the scheduler starts. With a rate, pods are created during the run, and the time that each one waits
is measured. With `bare`, a client takes the place of the scheduler and binds the pods round robin: that is the limit of the API
server. A given API server must have no other nodes, because their kubelets would start the pods. What was created is deleted
at the end.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from kubesched.errors import SchedulerError
from kubesched.kube.api import Namespace, ObjectMeta, ObjectReference
from kubesched.kube.client import Broadcaster, Connection, Writer, collection_path
from kubesched.tools.bench import workloads
from kubesched.tools.bench.processes import (
    PROGRAM,
    api_server,
    at_a_rate,
    connected,
    cpu_seconds,
    create,
    in_parallel,
    last_line,
    refuse_nodes_of_others,
    remove,
    remove_namespace,
    rss_mib,
    start,
    start_scheduler,
    wait_for_end,
)

KINDS = tuple(kind for kind in workloads.SCHEDULER_PERF_KINDS if kind not in ("churn", "csi"))
LEASE = "kubesched-bench"
BARE_WRITERS = 256
"""How many bindings the bare client sends at a time: enough to keep the API server busy."""
_PODS = collection_path("v1", "pods", workloads.NAMESPACE)
_LEASES = collection_path("coordination.k8s.io/v1", "leases", "kube-system")
_NAME = re.compile(rb'"name":"(pod-\d+)"')
_NODE = re.compile(rb'"nodeName":"([^"]+)"')
_ADDED = b'{"type":"ADDED"'
_NODE_NAME = re.compile(r"node-\d{5}")


@dataclass(frozen=True, slots=True)
class ClusterBench:
    """What to measure. Without a kubeconfig, the embedded API server is started."""

    kind: str = "basic"
    nodes: int = 1000
    pods: int = 3000
    init: int = 0
    """Pods that run already."""
    kubeconfig: str = ""
    timeout_seconds: float = 600.0
    bare: bool = False
    """Whether a bare client binds the pods instead of a scheduler."""
    rate: float = 0.0
    """Pods created per second once a first one is bound; 0 creates all of them before the scheduler starts."""


@dataclass(slots=True)
class Bindings:
    """When each pod was first seen on a node."""

    seen: dict[bytes, float] = field(default_factory=dict)
    nodes: dict[bytes, bytes] = field(default_factory=dict)
    start_cpu_seconds: float | None = None
    came: dict[bytes, float] = field(default_factory=dict)
    """When pods that were created during the run were first seen."""

    def take(self, lines: bytes, now: float) -> None:
        """Read lines of a watch on pods."""
        for line in lines.split(b"\n"):
            name = _NAME.search(line)
            if name is None:
                continue
            if line.startswith(_ADDED):
                self.came[name[1]] = now
            node = _NODE.search(line)
            if node is not None and name[1] not in self.seen:
                self.seen[name[1]] = now
                self.nodes[name[1]] = node[1]

    def wait_ms(self, percent: int) -> float:
        """Return a percentile of the time between a pod's creation and its binding, both as the watch saw them."""
        waits = [bound - self.came[name] for name, bound in self.seen.items() if name in self.came]
        return round(float(np.percentile(waits, percent)) * 1000, 1) if waits else 0.0

    def steady_rate(self) -> float:
        """Return pods a second without the first and the last 5 % of the bindings."""
        times = sorted(self.seen.values())
        low, high = int(len(times) * 0.05), int(len(times) * 0.95)
        return (high - low) / (times[high] - times[low]) if len(times) > 40 and times[high] > times[low] else 0.0


async def run(bench: ClusterBench, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Make the cluster, let the scheduler run, and return the figures."""
    with tempfile.TemporaryDirectory(prefix="kubesched-bench-") as scratch:
        file = Path(scratch) / "kubeconfig"
        words = ("apiserver", "--no-world", "--port", "0", "--kubeconfig-out", str(file))
        server = api_server(bench.kubeconfig, (*PROGRAM, *words), file)
        async with server as kubeconfig, connected(kubeconfig) as connection:
            await refuse_nodes_of_others(connection, _NODE_NAME.fullmatch)
            await create(connection, Namespace(metadata=ObjectMeta(name=workloads.NAMESPACE)))
            objects = workloads.cluster(bench.kind, bench.nodes, bench.init, bench.pods)
            await in_parallel(objects, partial(create, connection))
            # With a rate the first pod is created here, too: the others follow when it is bound, so the scheduler is ready.
            n_waiting = 1 if bench.rate else bench.pods
            await in_parallel(islice(workloads.pods(bench.pods, bench.kind), n_waiting), partial(create, connection))
            try:
                return await _measure(connection, bench, kubeconfig, Path(scratch), progress)
            finally:
                if bench.kubeconfig:
                    await _empty(connection, bench)


async def _measure(
    connection: Connection, bench: ClusterBench, kubeconfig: str, scratch: Path, progress: Callable[[int], None] | None
) -> dict[str, Any]:
    """Start the scheduler, follow its bindings until all pods are bound, stop it, and return the figures."""
    version = json.loads(await connection.request("GET", f"{_PODS}?limit=1"))["metadata"]["resourceVersion"]
    bindings = Bindings()
    if bench.bare:
        call = f"bind_in_turn({kubeconfig!r}, {bench.nodes}, {bench.pods})"
        command = (sys.executable, "-c", f"from {__name__} import bind_in_turn; {call}")
        process = start(command, scratch / "scheduler.log")
    else:
        election = {"leaderElection": {"leaderElect": True, "resourceName": LEASE}}
        process = start_scheduler(kubeconfig, scratch, election, ("--secure-port=0",))
    started = time.monotonic()
    try:
        tasks = {asyncio.create_task(_watch(connection, version, bench, bindings, process, progress))}
        if bench.rate:
            tasks.add(asyncio.create_task(_create_at_rate(connection, bench, bindings, process)))
        done, _ = await asyncio.wait(tasks, timeout=bench.timeout_seconds, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()
    finally:
        process.send_signal(signal.SIGTERM)
        usage = await asyncio.to_thread(wait_for_end, process)
    if not bindings.seen:
        raise SchedulerError(f"no pod was bound: {last_line(scratch / 'scheduler.log')}")
    return _figures(bench, bindings, started, usage)


async def _create_at_rate(
    connection: Connection, bench: ClusterBench, bindings: Bindings, process: subprocess.Popen[bytes]
) -> None:
    """Create all pods but the first, once that one is bound."""
    while not bindings.seen:
        if process.poll() is not None:
            return
        await asyncio.sleep(0.02)
    await at_a_rate(islice(workloads.pods(bench.pods, bench.kind), 1, None), partial(create, connection), bench.rate)


def bind_in_turn(kubeconfig: str, n_nodes: int, n_pods: int) -> None:
    """Bind the pods to the nodes round robin, as fast as the API server answers, and wait for SIGTERM.

    The requests are those of the scheduler: a binding and an event for each pod.
    """

    async def bind_all() -> None:
        async with connected(kubeconfig) as connection:
            writer, events = Writer(connection), Broadcaster(connection)
            writing, recorder = asyncio.create_task(events.run()), events.recorder("bare-client")

            async def bind(number: int) -> None:
                pod, node = ObjectReference(name=f"pod-{number}", namespace=workloads.NAMESPACE), f"node-{number % n_nodes:05d}"
                await writer.bind(pod, node)
                recorder.event(pod, "Normal", "Scheduled", "Binding", f"Successfully assigned {pod.name} to {node}")

            await in_parallel(range(n_pods), bind, BARE_WRITERS)
            await writing

    asyncio.run(bind_all())


async def _watch(
    connection: Connection,
    version: str,
    bench: ClusterBench,
    bindings: Bindings,
    process: subprocess.Popen[bytes],
    progress: Callable[[int], None] | None,
) -> None:
    """Record bindings until all pods are bound or the scheduler has ended."""
    path = f"{_PODS}?watch=true&resourceVersion={version}&timeoutSeconds={int(bench.timeout_seconds) + 60}"
    rest = b""
    async with connection.stream(path, longest_silence=bench.timeout_seconds + 60) as stream:
        while len(bindings.seen) < bench.pods:
            try:
                async with asyncio.timeout(5.0):
                    chunk = await stream.read()
            except TimeoutError:
                if process.poll() is not None:
                    return
                continue
            if not chunk:
                raise SchedulerError("the API server ended the watch that bindings are timed by")
            lines, _, rest = (rest + chunk).rpartition(b"\n")
            bindings.take(lines, time.monotonic())
            if bindings.seen and bindings.start_cpu_seconds is None:
                bindings.start_cpu_seconds = cpu_seconds(process.pid)
            if progress is not None:
                progress(len(bindings.seen))


def _figures(bench: ClusterBench, bindings: Bindings, started: float, usage: resource.struct_rusage) -> dict[str, Any]:
    times = bindings.seen.values()
    cpu = usage.ru_utime + usage.ru_stime
    begun = bindings.start_cpu_seconds
    waits = {"wait_p50_ms": bindings.wait_ms(50), "wait_p99_ms": bindings.wait_ms(99)} if bench.rate else {}
    return {
        "kind": bench.kind if not bench.bare else f"{bench.kind}, bare client",
        "nodes": bench.nodes,
        "init": bench.init,
        "pods": bench.pods,
        "bound": len(times),
        "pods_per_s": round(len(times) / (max(times) - started), 1),
        "steady_pods_per_s": round(bindings.steady_rate(), 1),
        "first_bind_s": round(min(times) - started, 2),
        "cpu_ms_per_pod": round(cpu * 1000 / len(times), 3),
        "steady_cpu_ms_per_pod": round((cpu - begun) * 1000 / len(times), 3) if begun is not None else None,
        "rss_mib": rss_mib(usage),
        "nodes_used": len(set(bindings.nodes.values())),
        **waits,
    }


async def _empty(connection: Connection, bench: ClusterBench) -> None:
    """Delete the objects that were created."""
    paths = [f"{collection_path('v1', 'nodes')}/node-{i:05d}" for i in range(bench.nodes)]
    if bench.kind == "dra":
        paths += [f"{collection_path('resource.k8s.io/v1', 'resourceslices')}/slice-{i:05d}" for i in range(bench.nodes)]
        paths.append(f"{collection_path('resource.k8s.io/v1', 'deviceclasses')}/{workloads.DEVICE_CLASS}")
    paths.append(f"{_LEASES}/{LEASE}")
    await connection.request("DELETE", f"{_PODS}?gracePeriodSeconds=0")
    await in_parallel(paths, partial(remove, connection))
    await remove_namespace(connection, workloads.NAMESPACE)
