"""The embedded API server's own speed: in memory, over HTTP, and from a write to a hundred readers.

usage: bench/apiserver.py [--nodes 5000] [--pods 50000] [--requests 10000] [--watchers 100] [-o table|json]

In memory: creations and bindings a second of CPU, and the resident memory of a process that holds all of it.
Over HTTP: `kubesched apiserver` in a process of its own, so that its CPU can be told from the client's. A request costs
what it costs the server; how many fit into a second of one core is 1 / that. Watch: the time from a client's write until
the last of the readers has the event, the median and the worst of a hundred writes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from kubesched.cli.bench import print_figures
from kubesched.embedded import ObjectStore

N_CLIENTS = 16
N_MARKS = 100
CAPACITY = {"cpu": "4", "memory": "32Gi", "pods": "110"}
ASKED = {"cpu": "100m", "memory": "500Mi"}
PODS = "/api/v1/namespaces/default/pods"


def a_node(number: int) -> dict[str, Any]:
    name = f"node-{number}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 10}"}
    status = {"capacity": CAPACITY, "allocatable": CAPACITY, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def a_pod(number: int) -> dict[str, Any]:
    container = {"name": "main", "image": "app:1", "resources": {"requests": ASKED, "limits": ASKED}}
    metadata = {"name": f"pod-{number}", "namespace": "default", "labels": {"color": "blue"}}
    return {"metadata": metadata, "spec": {"containers": [container]}}


def in_memory(n_nodes: int, n_pods: int) -> dict[str, Any]:
    """Measure the store without HTTP; run this in a process of its own, so that the memory is the store's."""
    store = ObjectStore()
    for number in range(n_nodes):
        store.create("nodes", a_node(number))
    began = time.process_time()
    for number in range(n_pods):
        store.create("pods", a_pod(number))
    created = time.process_time()
    for number in range(n_pods):
        store.bind("default", f"pod-{number}", f"node-{number % n_nodes}")
    bound = time.process_time()
    return {
        "creations_per_s": round(n_pods / (created - began)),
        "bindings_per_s": round(n_pods / (bound - created)),
        "rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def cpu_seconds(pid: int) -> float:
    """Return what a process has used so far, in user and system time."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def over_http(url: str, pid: int, n_nodes: int, n_requests: int, n_watchers: int) -> dict[str, Any]:
    """Measure a server in another process."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(url, connector=connector) as session:

        async def post(path: str, body: dict[str, Any]) -> None:
            async with session.post(path, json=body) as answer:
                assert answer.status == 201, await answer.text()
                await answer.read()

        async def create(number: int) -> None:
            await post(PODS, a_pod(number))

        async def bind(number: int) -> None:
            target = {"kind": "Node", "name": f"node-{number % n_nodes}"}
            await post(f"{PODS}/pod-{number}/binding", {"metadata": {"name": f"pod-{number}"}, "target": target})

        await _many(n_nodes, lambda number: post("/api/v1/nodes", a_node(number)))
        created = await _measured(pid, n_requests, create)
        bound = await _measured(pid, n_requests, bind)
        delays = await _delays(session, n_watchers)
    return {
        "http_creations_per_core_s": created["per_core_second"],
        "http_creations_per_s": created["per_second"],
        "http_bindings_per_core_s": bound["per_core_second"],
        "http_bindings_per_s": bound["per_second"],
        "watch_median_ms": round(1000 * statistics.median(delays), 1),
        "watch_worst_ms": round(1000 * max(delays), 1),
    }


async def _measured(pid: int, count: int, do: Callable[[int], Awaitable[None]]) -> dict[str, int]:
    cpu, began = cpu_seconds(pid), time.perf_counter()
    await _many(count, do)
    used, took = cpu_seconds(pid) - cpu, time.perf_counter() - began
    return {"per_core_second": round(count / used), "per_second": round(count / took)}


async def _many(count: int, do: Callable[[int], Awaitable[None]]) -> None:
    """Do something `count` times from as many clients as keep a server busy."""
    numbers = iter(range(count))

    async def one_client() -> None:
        for number in numbers:
            await do(number)

    await asyncio.gather(*(one_client() for _ in range(N_CLIENTS)))


async def _delays(session: aiohttp.ClientSession, n_watchers: int) -> list[float]:
    """Return, for each of a hundred writes, how long it took until the last reader had it."""
    arrivals: asyncio.Queue[float] = asyncio.Queue()
    readers: list[aiohttp.ClientResponse] = []
    for _ in range(n_watchers):
        params = {"watch": "1", "resourceVersion": await _version(session)}
        readers.append(await session.get("/api/v1/namespaces/default/configmaps", params=params))

    async def read(answer: aiohttp.ClientResponse) -> None:
        while await answer.content.readline():
            arrivals.put_nowait(time.perf_counter())

    reading = [asyncio.create_task(read(answer)) for answer in readers]
    delays = []
    for number in range(N_MARKS):
        began = time.perf_counter()
        body = {"metadata": {"name": f"mark-{number}"}}
        async with session.post("/api/v1/namespaces/default/configmaps", json=body) as answer:
            await answer.read()
        arrived = [await arrivals.get() for _ in range(n_watchers)]
        delays.append(max(arrived) - began)
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)
    for answer in readers:
        answer.close()
    return delays


async def _version(session: aiohttp.ClientSession) -> str:
    async with session.get("/api/v1/namespaces/default/configmaps") as answer:
        return str((await answer.json())["metadata"]["resourceVersion"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--watchers", type=int, default=100)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.add_argument("--in-memory", action="store_true", help="only this part, as JSON")
    given = parser.parse_args()
    if given.in_memory:
        print(json.dumps(in_memory(given.nodes, given.pods)))
        return
    again = [sys.executable, __file__, "--in-memory", "--nodes", str(given.nodes), "--pods", str(given.pods)]
    figures = json.loads(subprocess.run(again, check=True, capture_output=True, text=True).stdout)
    program = [sys.executable, "-c", "from kubesched.cli import main; main()", "apiserver", "--no-world", "--port", "0"]
    server = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        figures |= asyncio.run(over_http(url, server.pid, given.nodes, given.requests, given.watchers))
    finally:
        server.terminate()
        server.wait()
    rows = [{"figure": name, "value": value} for name, value in figures.items()]
    print_figures(rows if given.output == "table" else [figures], given.output)


if __name__ == "__main__":
    main()
