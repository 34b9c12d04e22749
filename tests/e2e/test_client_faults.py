"""The client over real sockets with faults in between: all pods bound, none twice, and what we believe equals the API.

Each fault for itself, and everything that is not a matter of sockets, is in tests/chaos, where time and chance follow a seed.

A little scheduler with no plugins stands in for the real one: it takes every pending pod that the reflectors deliver,
binds it round robin, and on failure looks at what it has been told before it tries again, as the engine does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import pytest
from faulty_proxy import Faults, FaultyProxy

from kubesched.embedded import ApiServer, ObjectStore
from kubesched.errors import ApiError, Unreachable
from kubesched.kube.api import codec
from kubesched.kube.api.pod import Pod
from kubesched.kube.client.connection import Connection, connect
from kubesched.kube.client.credentials import AddressSource
from kubesched.kube.client.informers.reflectors import Reflectors
from kubesched.kube.client.informers.resources import watch_set
from kubesched.kube.client.writes.recorder import Broadcaster
from kubesched.kube.client.writes.writer import Writer

N_NODES = 5
N_PODS = 120
PATIENCE_SECONDS = 60.0


class Brisk:
    """Real time, in which pauses after failures are a hundred times shorter."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / 100)


def a_pod(number: int) -> dict[str, Any]:
    return {
        "metadata": {"name": f"p{number}", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}]},
    }


class Cluster:
    """A store, and a record of every node that every pod was ever on."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.nodes_of: dict[str, list[str]] = defaultdict(list)
        store.listen("pods", self._note)

    def _note(self, change: Any) -> None:
        if change.new is None:
            return
        pod = change.new.obj
        node = pod["spec"].get("nodeName")
        seen = self.nodes_of[pod["metadata"]["uid"]]
        if node and (not seen or seen[-1] != node):
            seen.append(node)

    def fill(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            self.store.create("pods", a_pod(number))


class LittleScheduler:
    """Binds what is pending."""

    def __init__(self, connection: Connection) -> None:
        self.writer = Writer(connection)
        self.broadcaster = Broadcaster(connection.sibling("events", qps=-1))
        self.recorder = self.broadcaster.recorder("default-scheduler")
        self.cache: dict[str, dict[str, Any]] = defaultdict(dict)
        self.pending: asyncio.Queue[str] = asyncio.Queue()
        self.tasks: set[asyncio.Task[None]] = set()
        self.n_failed = 0

    def deliver(self, kind: str, old: Any, new: Any) -> None:
        mine = self.cache[kind]
        key = (old or new).key
        assert mine.get(key) is old, f"{kind} {key}: the old object is not the one that was delivered last"
        if new is None:
            del mine[key]
            return
        mine[key] = new
        if kind == "Pod" and not new.spec.node_name and (old is None or old.uid != new.uid):
            self.pending.put_nowait(key)

    def synced(self, kind: str) -> None:
        pass

    async def run(self) -> None:
        numbers = iter(range(1 << 60))
        while True:
            key = await self.pending.get()
            task = asyncio.create_task(self._bind(key, f"n{next(numbers) % N_NODES}"))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _bind(self, key: str, node: str) -> None:
        pod: Pod | None = self.cache["Pod"].get(key)
        if pod is None or pod.spec.node_name:
            return
        try:
            await self.writer.bind(pod, node)
            self.recorder.event(pod, "Normal", "Scheduled", "Binding", f"Successfully assigned {key} to {node}")
        except (ApiError, Unreachable):
            self.n_failed += 1
            await asyncio.sleep(0.02)
            known = self.cache["Pod"].get(key)
            if known is not None and known.uid == pod.uid and not known.spec.node_name:
                self.pending.put_nowait(key)


class Run:
    """One scheduler at work on one cluster through one proxy."""

    def __init__(self, cluster: Cluster, proxy: FaultyProxy) -> None:
        self.cluster, self.proxy = cluster, proxy
        self.scheduler: LittleScheduler
        self.reflectors: Reflectors

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncIterator[Run]:
        connection = await connect(AddressSource(self.proxy.url), qps=-1, clock=Brisk())
        self.scheduler = LittleScheduler(connection)
        while True:
            try:
                chance = random.Random(0)
                self.reflectors = await Reflectors.prepare(connection, watch_set(), self.scheduler, chance)
                break
            except (ApiError, Unreachable):
                await asyncio.sleep(0.01)
        jobs = [self.reflectors.run(), self.scheduler.run(), self.scheduler.broadcaster.run()]
        tasks = [asyncio.create_task(job) for job in jobs]
        try:
            yield self
            for task in tasks:
                assert not task.done(), task
        finally:
            for task in (*tasks, *self.scheduler.tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await connection.close()

    def stored(self) -> list[dict[str, Any]]:
        return list(self.cluster.store.list("pods").items)

    def is_settled(self) -> bool:
        stored = self.stored()
        cache = self.scheduler.cache["Pod"]
        versions = {pod["metadata"]["uid"]: pod["metadata"]["resourceVersion"] for pod in stored}
        return all(pod["spec"].get("nodeName") for pod in stored) and versions == {
            pod.uid: pod.metadata.resource_version for pod in cache.values()
        }

    async def settle(self) -> None:
        """Wait until all is bound and known, and check what must never happen."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.is_settled():
            assert time.monotonic() < deadline, self.difference()
            await asyncio.sleep(0.02)
        twice = {uid: nodes for uid, nodes in self.cluster.nodes_of.items() if len(nodes) > 1}
        assert not twice
        cache = self.scheduler.cache["Pod"]
        for pod in self.stored():
            assert cache[f"default/{pod['metadata']['name']}"] == codec.convert(pod, Pod)

    def difference(self) -> str:
        stored = self.stored()
        cache = self.scheduler.cache["Pod"]
        unbound = [pod["metadata"]["name"] for pod in stored if not pod["spec"].get("nodeName")]
        names = {f"default/{pod['metadata']['name']}" for pod in stored}
        stale = [
            pod["metadata"]["name"]
            for pod in stored
            if (known := cache.get(f"default/{pod['metadata']['name']}")) is None
            or known.metadata.resource_version != pod["metadata"]["resourceVersion"]
        ]
        return f"unbound {unbound}, not known {stale}, known but gone {set(cache) - names}, faults {self.proxy.counts}"


@pytest.fixture
async def run() -> AsyncIterator[Run]:
    async with ApiServer() as server, FaultyProxy(server.url) as proxy:
        for number in range(N_NODES):
            server.store.create("nodes", {"metadata": {"name": f"n{number}"}})
        yield Run(Cluster(server.store), proxy)


async def test_all_faults_together_leave_every_pod_bound_once(run: Run) -> None:
    run.proxy.faults = Faults.all_of_them(0.05)
    run.proxy._chance.seed(0)
    chance = random.Random(0)
    run.cluster.fill(0, N_PODS // 3)
    async with run.at_work():
        for number in range(N_PODS // 3, N_PODS):
            run.cluster.fill(number, 1)
            if chance.random() < 0.2:  # pods also go away, and come back under the same name
                victim = chance.randrange(number)
                with contextlib.suppress(ApiError):
                    run.cluster.store.delete("pods", f"p{victim}", "default", grace_seconds=0)
                    if chance.random() < 0.5:
                        run.cluster.fill(victim, 1)
            await asyncio.sleep(0.002)
        await run.settle()
    assert sum(run.proxy.counts.values()) > 20
    assert len(run.proxy.counts) >= 10


async def test_a_server_that_is_away_for_a_while_is_found_again(run: Run) -> None:
    async with run.at_work():
        run.cluster.fill(0, N_PODS // 2)
        for round_ in range(3):
            async with run.proxy.away():
                run.cluster.fill(N_PODS // 2 + round_, 1)
                run.cluster.store.delete("pods", f"p{round_}", "default", grace_seconds=0)
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.05)
        await run.settle()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while trouble := [each.trouble for each in run.reflectors.by_kind.values() if each.trouble]:
            assert time.monotonic() < deadline, trouble
            await asyncio.sleep(0.01)
    assert run.proxy.counts["away"] == 3


async def test_a_server_that_comes_back_with_nothing_is_followed() -> None:
    server = ApiServer(ObjectStore())
    await server.start()
    async with FaultyProxy(server.url) as proxy:
        run = Run(Cluster(server.store), proxy)
        async with run.at_work():
            run.cluster.fill(0, N_PODS // 2)
            await run.settle()
            await server.stop()
            await asyncio.sleep(0.05)
            server = ApiServer(ObjectStore())
            await server.start()
            try:
                proxy.upstream = server.url
                run.cluster = Cluster(server.store)
                run.cluster.fill(N_PODS // 2, N_PODS // 2)
                await run.settle()
                assert len(run.stored()) == N_PODS // 2
            finally:
                await server.stop()


async def test_events_arrive_through_faults(run: Run) -> None:
    run.proxy.faults = Faults(drop_answer=0.2, drop_request=0.2)
    run.cluster.fill(0, 30)
    async with run.at_work():
        await run.settle()
        await asyncio.wait_for(run.scheduler.broadcaster.drain(), PATIENCE_SECONDS)
    stored = run.cluster.store.list("events").items
    told = sorted((event.get("regarding") or event["involvedObject"])["name"] for event in stored)
    assert told == sorted(f"p{number}" for number in range(30))


# --- many pods --------------------------------------------------------------------------------------------------------

CROWD = """
import asyncio, json, sys
from urllib.parse import parse_qs, urlsplit

N = int(sys.argv[1])
POD = json.dumps(json.load(sys.stdin), separators=(",", ":"))

def item(i):
    return POD.replace("@POD@", str(i)).replace("@SET@", str(i // 50)).replace("@NODE@", str(i % 5000))

async def handle(reader, writer):
    while True:
        head = await reader.readuntil(b"\\r\\n\\r\\n")
        query = {k: v[0] for k, v in parse_qs(urlsplit(head.split()[1].decode()).query).items()}
        if "watch" in query:
            await asyncio.sleep(3600)
        start = int(query.get("continue", 0))
        end = min(N, start + int(query["limit"]))
        meta = {"resourceVersion": "9000000", "continue": str(end) if end < N else ""}
        body = '{"metadata":%s,"items":[%s]}' % (json.dumps(meta), ",".join(map(item, range(start, end))))
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body.encode())
        await writer.drain()

async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""

LISTER = """
import asyncio, json, resource, sys, time
from kubesched.kube.client.connection import connect
from kubesched.kube.client.credentials import AddressSource
from kubesched.kube.client.informers.reflector import Reflector
from kubesched.kube.client.informers.resources import WATCH_SET

class Sink:
    n = 0
    def deliver(self, kind, old, new):
        self.n += 1
    def synced(self, kind):
        pass

async def main():
    connection = await connect(AddressSource(sys.argv[1]), qps=-1)
    sink = Sink()
    reflector = Reflector(connection, WATCH_SET[0], sink, streams=False)
    began = time.process_time()
    task = asyncio.create_task(reflector.run())
    await reflector.wait_synced()
    cpu = time.process_time() - began
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"pods": sink.n, "cpu_seconds": cpu, "rss_mib": rss / 1024}))
    task.cancel()
    await connection.close()

asyncio.run(main())
"""


def a_grown_pod() -> dict[str, Any]:
    """Return a pod as it looks on a cluster, about 3 KB, with numbers to be filled in."""
    times = {"lastProbeTime": None, "lastTransitionTime": "2026-01-01T00:00:00Z", "status": "True"}
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    ca = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    fields = {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:containers": {"f:image": {}}}}
    return {
        "metadata": {
            "name": "web-@SET@-@POD@",
            "generateName": "web-@SET@-",
            "namespace": "team-@SET@",
            "uid": "6ba7b810-9dad-11d1-80b4-@POD@",
            "resourceVersion": "@POD@",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "web-@SET@", "pod-template-hash": "5d4f8c7b9", "tier": "front"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs-@SET@", "controller": True}
            ],
            "managedFields": [{"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": fields}] * 2,
        },
        "spec": {
            "nodeName": "node-@NODE@",
            "volumes": [{"name": "kube-api-access-@POD@", "projected": {"sources": [token, ca], "defaultMode": 420}}],
            "containers": [
                {
                    "name": "web",
                    "image": "example/web:1.2.3",
                    "env": [{"name": f"SETTING_{number}", "value": "x" * 20} for number in range(8)],
                    "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}, "limits": {"memory": "500Mi"}},
                    "volumeMounts": [{"name": "kube-api-access-@POD@", "mountPath": "/var/run/secrets"}],
                }
            ],
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{taint}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for taint in ("not-ready", "unreachable")
            ],
            "schedulerName": "default-scheduler",
            "priority": 0,
            "restartPolicy": "Always",
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": kind, **times} for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")],
            "containerStatuses": [{"name": "web", "ready": True, "containerID": "containerd://" + "a" * 64}],
            "hostIP": "10.0.0.1",
            "podIP": "10.1.0.1",
            "qosClass": "Burstable",
        },
    }


@pytest.mark.nightly
def test_150000_pods_are_listed_in_six_seconds_of_cpu_and_a_third_of_the_memory_allowed() -> None:
    crowd = subprocess.Popen([sys.executable, "-c", CROWD, "150000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert crowd.stdin is not None and crowd.stdout is not None
    try:
        crowd.stdin.write(json.dumps(a_grown_pod()).encode())
        crowd.stdin.close()
        url = f"http://127.0.0.1:{int(crowd.stdout.readline())}"
        done = subprocess.run([sys.executable, "-c", LISTER, url], capture_output=True, check=True, timeout=600)
    finally:
        crowd.kill()
        crowd.wait()
        crowd.stdout.close()
    found = json.loads(done.stdout)
    print(found)
    assert found["pods"] == 150_000
    assert found["cpu_seconds"] < 6.0
    assert found["rss_mib"] < 512
