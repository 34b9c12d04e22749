"""Runs the operations of a workload, one after another.

In: a workload, a connection to an API server, and the histograms of the scheduler that runs there. Out: one row of figures for
each collection of metrics. Churn, and deletions that need no waiting, run in the background until the workload ends. Their
errors end the workload.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from kubesched.errors import ApiError, ConfigError, SchedulerError
from kubesched.kube.api import Node, ResourceClaim, codec
from kubesched.kube.client import list_objects
from kubesched.scheduler import config
from kubesched.tools.bench.perf import cases, collecting, devices, objects
from kubesched.tools.bench.perf import operations as ops
from kubesched.tools.bench.perf.cases import Workload
from kubesched.tools.bench.perf.collecting import Buckets, Throughput
from kubesched.tools.bench.perf.informer import PodInformer, SeenPod
from kubesched.tools.bench.perf.objects import NewPod, Object
from kubesched.tools.bench.perf.rest import Rest
from kubesched.tools.bench.processes import in_parallel

ReadAttempts = Callable[[], Awaitable[Buckets]]
"""Returns the scheduler's histogram of the attempts that placed a pod."""

_CHURN_SECONDS = 0.5


@dataclass(slots=True)
class _Collection:
    """A collection of metrics that has begun and not ended."""

    name: str
    throughput: Throughput
    attempts: Buckets
    ends: contextlib.ExitStack
    sampling: asyncio.Task[None]


class Executor:
    """Runs one workload: call `run`, then `close`, also after an error."""

    def __init__(
        self, workload: Workload, rest: Rest, informer: PodInformer, attempts: ReadAttempts, *, patience: float = 600.0
    ) -> None:
        self.workload = workload
        self.rows: list[dict[str, Any]] = []
        self._rest = rest
        self._informer = informer
        self._attempts = attempts
        self._patience = patience
        self._n_pending: dict[str, int] = {}
        """By namespace, the number of created pods that no operation has waited for yet."""
        self._n_nodes = 0
        self._collection: _Collection | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._run: Mapping[type[ops.Operation], Callable[[Any, int], Awaitable[None]]] = {
            ops.AllocResourceClaims: self._alloc_resource_claims,
            ops.Barrier: self._barrier,
            ops.Churn: self._churn,
            ops.CreateAny: self._create_any,
            ops.CreateNamespaces: self._create_namespaces,
            ops.CreateNodes: self._create_nodes,
            ops.CreatePodGroups: self._create_any,
            ops.CreatePods: self._create_pods,
            ops.CreateResourceClaims: self._create_resource_claims,
            ops.CreateResourceDriver: self._create_resource_driver,
            ops.DeletePods: self._delete_pods,
            ops.Sleep: lambda operation, _: asyncio.sleep(operation.seconds),
            ops.StartCollectingMetrics: lambda each, _: self._begin_collection(each.name, each.namespaces, each.label_selector),
            ops.StopCollectingMetrics: lambda operation, _: self._end_collection(),
            ops.UpdateAny: self._update_any,
        }

    async def run(self, progress: Callable[[str], None] | None = None) -> None:
        """Run all operations; an error names the number of the operation that failed."""
        for number, operation in enumerate(self.workload.operations):
            if progress is not None:
                progress(operation.opcode)
            try:
                await self._run[type(operation)](operation, number)
                self._raise_background_errors()
            except SchedulerError as error:
                raise SchedulerError(f"operation {number}, {operation.opcode}: {error}") from error

    async def close(self) -> None:
        """Cancel the tasks in the background, and end the collection of metrics."""
        if self._collection is not None:
            self._collection.ends.close()
            self._collection.sampling.cancel()
            await asyncio.gather(self._collection.sampling, return_exceptions=True)
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        self._background.add(asyncio.create_task(work))

    def _raise_background_errors(self) -> None:
        for task in [task for task in self._background if task.done()]:
            self._background.remove(task)
            task.result()

    async def _ensure_namespace(self, name: str) -> None:
        """Create a namespace the first time that an operation names it."""
        if name not in self._n_pending:
            await self._rest.ensure_namespace(name)
            self._n_pending[name] = 0

    # Nodes and namespaces

    async def _create_nodes(self, operation: ops.CreateNodes, number: int) -> None:
        """Create nodes, each before its CSINode. Their numbers go on from those of earlier operations."""

        async def create(made: tuple[Object, Object | None]) -> None:
            node, csi_node = made
            await self._rest.create(node)
            if csi_node is not None:
                await self._rest.create(csi_node)

        await in_parallel(objects.nodes(operation, self.workload, number, self._n_nodes), create)
        self._n_nodes += operation.count

    async def _create_namespaces(self, operation: ops.CreateNamespaces, number: int) -> None:
        """Create namespaces PREFIX-0, PREFIX-1, ..., unless an earlier operation did."""
        path = operation.namespace_template_path
        base = cases.plain(self.workload.file(path)) if path else {}
        for i in range(operation.count):
            name = f"{operation.prefix}-{i}"
            if name not in self._n_pending:
                meta = {**(base.get("metadata") or {}), "name": name}
                await self._rest.create({**base, "apiVersion": "v1", "kind": "Namespace", "metadata": meta})
                self._n_pending[name] = 0

    # Pods

    async def _create_pods(self, operation: ops.CreatePods, number: int) -> None:
        """Create pods. By default wait until all have a node; with `collectMetrics`, measure meanwhile."""
        namespace = operation.namespace if operation.namespace is not None else f"namespace-{number}"
        await self._ensure_namespace(namespace)
        pods = objects.pods(operation, self.workload, namespace)
        if operation.collect_metrics:
            await self._begin_collection(namespace, [namespace], {})
        if operation.steady_state:
            await self._keep_steady(operation, namespace, pods)
        else:
            await in_parallel(pods, lambda pod: self._create_pod(pod, namespace))
        if operation.skip_wait_to_completion:
            self._n_pending[namespace] += operation.count
        elif not operation.steady_state:
            await self._informer.wait(namespace, operation.count, self._patience)
        if operation.collect_metrics:
            await self._end_collection()

    async def _create_pod(self, new: NewPod, namespace: str) -> None:
        """Create a pod, after its volume and claim, which are marked as bound."""
        if new.claim is not None and new.volume is not None:
            await self._rest.create(new.claim, namespace)
            await self._rest.set_status(new.claim, namespace, {"phase": "Bound"})
            await self._rest.create(new.volume)
            await self._rest.set_status(new.volume, "", {"phase": "Bound"})
        await self._rest.create(new.pod, namespace)

    async def _keep_steady(self, operation: ops.CreatePods, namespace: str, pods: list[NewPod]) -> None:
        """Keep the same number of pods pending until the time is up: delete a pod that was placed, and create another one."""
        placed: asyncio.Queue[SeenPod] = asyncio.Queue()
        n_placed = 0

        async def create(some: list[NewPod]) -> None:
            await in_parallel(some, lambda pod: self._create_pod(pod, namespace))

        def take(pod: SeenPod, now: float) -> None:
            if pod.namespace == namespace:
                placed.put_nowait(pod)

        with self._informer.listening(take), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(operation.seconds):
                await create(pods)
                while True:
                    pod = await placed.get()
                    n_placed += 1
                    if self.workload.release > config.OLDEST_RECORDED:  # one by one since 1.37, all together before
                        await self._rest.delete_pod(namespace, pod.name, at_once=True)
                        await create(pods[:1])
                    elif n_placed % len(pods) == 0:
                        await self._rest.delete_pods(namespace, {}, at_once=True)
                        await create(pods)
        if not n_placed:
            raise SchedulerError(f"no pod at all was scheduled in {operation.duration}")

    async def _delete_pods(self, operation: ops.DeletePods, number: int) -> None:
        """Delete the pods that match, at a rate if there is one; with `skipWaitToCompletion` in the background."""
        doomed = self._informer.pods(operation.namespace, operation.label_selector)

        async def delete() -> None:
            if not operation.delete_pods_per_second:
                await self._rest.delete_pods(operation.namespace, operation.label_selector)
                return
            async for pod in _paced(doomed, operation.delete_pods_per_second):
                await self._rest.delete_pod(pod.namespace, pod.name)

        if operation.skip_wait_to_completion:
            self._run_in_background(delete())
        else:
            await delete()

    async def _barrier(self, operation: ops.Barrier, number: int) -> None:
        """Wait until the created pods have a node, or with `Attempted` a first attempt; by default in all namespaces."""
        namespaces = operation.namespaces or list(self._n_pending)
        unknown = [name for name in namespaces if name not in self._n_pending]
        if unknown:
            raise ConfigError("", f"the namespace {unknown[0]} is not known")
        tried = operation.stage_requirement == "Attempted"
        for name in namespaces:
            wanted = self._n_pending[name]
            await self._informer.wait(name, wanted, self._patience, selector=operation.label_selector, tried=tried)
        if not tried:
            for name in namespaces:
                self._n_pending[name] = 0

    async def _churn(self, operation: ops.Churn, number: int) -> None:
        namespace = operation.namespace if operation.namespace is not None else f"namespace-{number}"
        await self._rest.ensure_namespace(namespace)
        templates = [cases.plain(self.workload.file(path)) for path in operation.template_paths]
        places = [namespace if await self._rest.is_namespaced(template) else "" for template in templates]
        seconds = operation.interval_milliseconds / 1000 or _CHURN_SECONDS
        recreates = operation.mode == "recreate"

        # `create` makes new objects in each round, up to `number` rounds. `recreate` has up to `number` objects of each
        # template: it creates one in each round until all exist, then deletes one in each round until none does, and so on.
        async def churn() -> None:
            alive: dict[tuple[int, int], str] = {}
            turn = 0
            while recreates or not operation.number or turn < operation.number:
                await asyncio.sleep(seconds)
                for i, (template, where) in enumerate(zip(templates, places, strict=True)):
                    slot = (i, turn % operation.number) if recreates else (i, turn)
                    if recreates and (name := alive.pop(slot, "")):
                        await self._rest.delete(template, where, name)
                        continue
                    with contextlib.suppress(ApiError):  # the previous pod of this name may still be terminating
                        alive[slot] = await self._rest.create(template, where)
                turn += 1

        self._run_in_background(churn())

    # Any object

    async def _create_any(self, operation: ops.CreateAny, number: int) -> None:
        """Create objects of any kind from a template; an unknown field is an error."""
        if operation.namespace:
            await self._ensure_namespace(operation.namespace)
        file, counts = self.workload.file(operation.template_path), not isinstance(operation, ops.CreatePodGroups)
        made = objects.rendered(file, operation.template_params, operation.count, counts=counts)
        await in_parallel(made, lambda obj: self._create_strictly(obj, operation.namespace))

    async def _create_strictly(self, obj: Object, namespace: str) -> None:
        await self._rest.create(obj, namespace, strict=True)

    async def _update_any(self, operation: ops.UpdateAny, number: int) -> None:
        """Replace objects of any kind, or a subresource of them, at a rate if there is one."""
        if operation.namespace:
            await self._ensure_namespace(operation.namespace)
        file = self.workload.file(operation.template_path)
        made = list(objects.rendered(file, operation.template_params, operation.count))
        async for obj in _paced(made, operation.update_per_second):
            await self._rest.update(obj, operation.namespace, operation.subresources)

    # Devices

    async def _create_resource_claims(self, operation: ops.CreateResourceClaims, number: int) -> None:
        """Create copies of a claim; its template has a generateName."""
        await self._ensure_namespace(operation.namespace)
        claim = cases.plain(self.workload.file(operation.template_path))
        await in_parallel([claim] * operation.count, lambda one: self._create_strictly(one, operation.namespace))

    async def _create_resource_driver(self, operation: ops.CreateResourceDriver, number: int) -> None:
        """Publish a ResourceSlice for each node whose name matches the pattern."""
        found = await list_objects(self._rest.connection, Node)
        names = [node.metadata.name for node in found if fnmatch.fnmatchcase(node.metadata.name, operation.nodes)]

        async def publish(name: str) -> None:
            await self._rest.create(objects.resource_slice(operation.driver_name, name, operation.max_claims_per_node))

        await in_parallel(names, publish)

    async def _alloc_resource_claims(self, operation: ops.AllocResourceClaims, number: int) -> None:
        """Write an allocation to each claim that has none."""
        connection = self._rest.connection
        found = await devices.read_cluster(connection)
        claims = [
            one for one in found if isinstance(one, ResourceClaim) and operation.namespace in ("", one.metadata.namespace)
        ]
        for claim, allocation in devices.allocations(found, claims, self.workload.set_gates):
            obj = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": claim.metadata.name}}
            status = {"allocation": codec.to_dict(allocation)}
            await self._rest.set_status(obj, claim.metadata.namespace, status)

    # Metrics

    async def _begin_collection(self, name: str, namespaces: list[str], selector: Mapping[str, str]) -> None:
        """Start to sample throughput, and remember the present histogram of attempts."""
        if self._collection is not None:
            raise ConfigError("", "metrics are being collected already")
        attempts = await self._attempts()
        throughput = Throughput(namespaces, selector)
        ends = contextlib.ExitStack()
        ends.enter_context(self._informer.listening(throughput.take))
        self._collection = _Collection(name, throughput, attempts, ends, asyncio.create_task(throughput.run()))

    async def _end_collection(self) -> None:
        """Stop sampling, and add a row of figures."""
        collection = self._collection
        if collection is None:
            raise ConfigError("", "no metrics are being collected")
        self._collection = None
        collection.ends.close()
        collection.sampling.cancel()
        await asyncio.gather(collection.sampling, return_exceptions=True)
        attempts = collecting.latency_ms(collection.attempts, await self._attempts())
        self.rows.append({"collection": collection.name, **collection.throughput.figures(), "attempt_ms": attempts})


async def _paced(items: list[Any], per_second: int) -> Any:
    """Yield items at a rate; without a rate, without a pause."""
    due = time.monotonic()
    for item in items:
        if per_second:
            due += 1.0 / per_second
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        yield item
