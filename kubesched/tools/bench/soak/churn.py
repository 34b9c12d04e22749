"""The users of a soak: create nodes and pods, replace pods at a steady rate, and record what becomes of them.

In: a connection, sizes, a rate. Out: a `Ledger`, fed by a watch of its own. It knows when each pod was created, when it got a
node, and whether it ever got a second one. A request that fails because the API server is down is repeated until it succeeds.
So a pod without a node at the end is the scheduler's fault.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from array import array
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec.structs import replace

from kubesched.errors import ApiError, SchedulerError
from kubesched.kube.api import Namespace, ObjectMeta, Pod, TopLevel
from kubesched.kube.client import MERGE_PATCH, Connection, collection_path
from kubesched.tools.bench import workloads
from kubesched.tools.bench.processes import create, in_parallel, remove, remove_namespace
from kubesched.tools.bench.soak.replicas import LEASE

KINDS = ("basic", "spread", "prefaffinity", "softspread", "affinity")
GREEN_EVERY = 45
"""One pod in 45 has anti-affinity to its kind on its node. With more of them, nodes would run out."""
NODE_CHANGE_EVERY = 10
"""A node label changes with every tenth pod."""
PODS_PER_NODE = 40
"""How many fit: each pod requests 100m, each node has four cores."""
_PODS = collection_path("v1", "pods", workloads.NAMESPACE)
_NODES = collection_path("v1", "nodes")
_TICK_SECONDS = 0.25
_RETRY_SECONDS = 0.5
_MOST_UNDER_WAY = 256


class Ledger:
    """What became of the pods; a sink of a reflector. Times are monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.created: dict[str, float] = {}
        """By name, when each pod without a node was created."""
        self.node_of: dict[str, str] = {}
        self.n_bound = self.n_gone = 0
        self.bound_twice: list[str] = []
        self.overbooked: dict[str, int] = {}
        """The nodes that held too many pods, and how many."""
        self.delays = array("d")
        self.bound_at = array("d")
        self.on_bound: Callable[[float, float], None] = lambda created, now: None
        """Called with the times at which a pod was created and bound."""
        self._pods_on = Counter[str]()
        self._names: list[str] = []
        self.clock = clock

    @property
    def most_on_a_node(self) -> int:
        """Return how many pods the fullest node has."""
        return max(self._pods_on.values(), default=0)

    def names_on(self, nodes: Iterable[str]) -> list[str]:
        """Return the pods of some nodes."""
        wanted = set(nodes)
        return [name for name, node in self.node_of.items() if node in wanted]

    def draw(self, chance: random.Random) -> str | None:
        """Remove a random bound pod from the list of candidates and return its name; None if there is none."""
        while self._names:
            at = chance.randrange(len(self._names))
            self._names[at], self._names[-1] = self._names[-1], self._names[at]
            name = self._names.pop()
            if name in self.node_of:
                return name
        return None

    def deliver(self, kind: str, old: Pod | None, new: Pod | None) -> None:
        """Apply one change of a pod."""
        if new is None:
            assert old is not None
            self._gone(old.metadata.name)
        elif new.spec.node_name:
            self._placed(new.metadata.name, new.spec.node_name)

    def synced(self, kind: str) -> None:
        """Do nothing when the first list is complete."""

    def _placed(self, name: str, node: str) -> None:
        before = self.node_of.get(name)
        if before is not None:
            if before != node:
                self.bound_twice.append(f"{name}: {before}, then {node}")
            return
        self.node_of[name] = node
        self._names.append(name)
        self._pods_on[node] += 1
        if self._pods_on[node] > PODS_PER_NODE:
            self.overbooked[node] = max(self.overbooked.get(node, 0), self._pods_on[node])
        created = self.created.pop(name, None)
        if created is not None:
            now = self.clock()
            self.n_bound += 1
            self.delays.append(now - created)
            self.bound_at.append(now)
            self.on_bound(created, now)

    def _gone(self, name: str) -> None:
        self.created.pop(name, None)
        node = self.node_of.pop(name, None)
        if node is not None:
            self.n_gone += 1
            self._pods_on[node] -= 1


class Users:
    """Create, delete and change objects, so that there are about `pods` pods at any time."""

    def __init__(self, connection: Connection, ledger: Ledger, *, nodes: int, pods: int, rate: float, seed: int) -> None:
        self.n_asked = self.n_node_changes = 0
        self.ledger = ledger
        self._connection = connection
        self.n_nodes, self._n_pods, self._rate = nodes, pods, rate
        self._chance = random.Random(seed)
        self._next = 0
        self._under_way: set[asyncio.Task[None]] = set()

    async def fill(self) -> None:
        """Create the nodes, and pods that already have a node."""
        await self._create(Namespace(metadata=ObjectMeta(name=workloads.NAMESPACE)))
        await in_parallel(map(workloads.node, range(self.n_nodes)), self._create)
        self._next = self._n_pods
        await in_parallel((self._pod(i, f"node-{i % self.n_nodes:05d}") for i in range(self._n_pods)), self._create)

    async def churn(self, until: Callable[[], bool]) -> None:
        """Create and delete pods at the rate, and change node labels, until `until` returns true."""
        begun, n_due = time.monotonic(), 0.0
        while not until():
            n_wanted = int((time.monotonic() - begun) * self._rate - n_due)
            n_due += n_wanted
            for _ in range(n_wanted):
                self._start(self._create_one())
            n_extra = len(self.ledger.node_of) + len(self.ledger.created) - self._n_pods
            for _ in range(min(n_extra, 2 * n_wanted + 2)):
                name = self.ledger.draw(self._chance)
                if name is not None:
                    self._start(self._remove(f"{_PODS}/{name}?gracePeriodSeconds=0"))
            await asyncio.sleep(_TICK_SECONDS)
            while len(self._under_way) > _MOST_UNDER_WAY:  # the API server is down, or slower than the rate
                await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)

    async def lose_nodes(self, count: int) -> list[int]:
        """Delete random nodes and their pods, as the pod garbage collector does; return the numbers of the nodes."""
        lost = self._chance.sample(range(self.n_nodes), min(count, self.n_nodes // 2))
        await in_parallel((f"{_NODES}/node-{i:05d}" for i in lost), self._remove)
        await self.clear_nodes(lost)
        return lost

    async def clear_nodes(self, lost: Iterable[int]) -> None:
        """Delete the pods of lost nodes; some may have been bound since the nodes were deleted."""
        names = self.ledger.names_on(f"node-{i:05d}" for i in lost)
        # A few at a time: behind thousands of requests new pods would be created late, and that would be measured.
        await in_parallel((f"{_PODS}/{name}?gracePeriodSeconds=0" for name in names), self._remove)

    async def bring_back(self, lost: Iterable[int]) -> None:
        """Create lost nodes again, empty."""
        await self.clear_nodes(lost)
        await in_parallel(map(workloads.node, lost), self._create)

    async def finish(self) -> None:
        """Wait until all requests are done."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def empty(self) -> None:
        """Delete all that was created."""
        await self._remove(f"{_PODS}?gracePeriodSeconds=0")
        await in_parallel((f"{_NODES}/node-{i:05d}" for i in range(self.n_nodes)), self._remove)
        await self._remove(f"{collection_path('coordination.k8s.io/v1', 'leases', 'kube-system')}/{LEASE}")
        await self._retried(partial(remove_namespace, self._connection, workloads.NAMESPACE))

    async def _create_one(self) -> None:
        number, self._next = self._next, self._next + 1
        self.n_asked += 1
        pod = self._pod(number)
        if number % NODE_CHANGE_EVERY == 0:
            await self._change_a_node(number)

        async def send() -> None:
            if (
                pod.metadata.name not in self.ledger.node_of
            ):  # again at each try: until one succeeds, the scheduler cannot see the pod
                self.ledger.created[pod.metadata.name] = self.ledger.clock()
            await create(self._connection, pod)

        await self._retried(send)

    async def _change_a_node(self, turn: int) -> None:
        path = f"{_NODES}/node-{self._chance.randrange(self.n_nodes):05d}"
        body = json.dumps({"metadata": {"labels": {"turn": str(turn // NODE_CHANGE_EVERY % 7)}}}).encode()
        with suppress(SchedulerError):  # the node may be lost now
            await self._connection.request("PATCH", path, body, MERGE_PATCH)
            self.n_node_changes += 1

    def _pod(self, number: int, node: str = "") -> Pod:
        kind = "antiaffinity" if number % GREEN_EVERY == 0 and not node else KINDS[number % len(KINDS)]
        pod = workloads.pod(number, kind)
        return replace(pod, spec=replace(pod.spec, node_name=node)) if node else pod

    async def _create(self, obj: TopLevel) -> None:
        await self._retried(partial(create, self._connection, obj))

    async def _remove(self, path: str) -> None:
        await self._retried(partial(remove, self._connection, path))

    async def _retried(self, send: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Call `send` until it succeeds; raise what the API server refuses with a 4xx status other than 429."""
        while True:
            try:
                return await send()
            except ApiError as error:
                if 400 <= error.status < 500 and error.status != 429:
                    raise
            except SchedulerError:
                pass
            await asyncio.sleep(_RETRY_SECONDS)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            self._under_way.discard(task)
            if not task.cancelled():
                task.result()

        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(ended)
