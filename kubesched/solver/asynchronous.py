"""The solver for programs that run on asyncio: the same questions, answered in a thread of their own.

In: a cluster. Out: coroutines with the same names and arguments. Questions are answered one after the other, in the order in
which they were asked; while a world is open, questions to the cluster wait for it.

    cluster = AsyncCluster(Cluster.from_kubeconfig())
    async with cluster.what_if() as world:
        await world.drain("node-7")
        result = await world.place()
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from kubesched.kube.api import Pod
from kubesched.solver.cheapest import NewNodes, NodeTemplate
from kubesched.solver.cluster import Cluster
from kubesched.solver.objects import Given
from kubesched.solver.results import Fits, Placement, Room
from kubesched.solver.world import World

T = TypeVar("T")


class _Thread:
    """One thread that answers."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="kubesched-solver")

    async def run(self, call: Callable[..., T], *args: Any, **more: Any) -> T:
        """Return what a call returns; one that was begun is waited for, also if nobody wants its answer any more."""
        work = asyncio.get_running_loop().run_in_executor(self._pool, partial(call, *args, **more))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            raise

    def stop(self) -> None:
        """End the thread."""
        self._pool.shutdown(wait=False)


class AsyncCluster:
    """A `Cluster` whose questions are awaited."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._thread = _Thread()
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> AsyncCluster:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the cluster, after the questions that are under way."""
        await self._ask(self.cluster.close)
        self._thread.stop()

    async def _ask(self, call: Callable[..., T], *args: Any, **more: Any) -> T:
        async with self._turn:
            return await self._thread.run(call, *args, **more)

    async def fits(self, pod: Given | str, *, nodes: bool = True) -> Fits:
        """See `Cluster.fits`."""
        return await self._ask(self.cluster.fits, pod, nodes=nodes)

    async def why(self, pod: Given | str, *, top: int = 5, preempt: bool = False) -> dict[str, Any]:
        """See `Cluster.why`."""
        return await self._ask(self.cluster.why, pod, top=top, preempt=preempt)

    async def place(self, pods: Iterable[Given | str], *, preempt: bool = False) -> Placement:
        """See `Cluster.place`."""
        return await self._ask(self.cluster.place, pods, preempt=preempt)

    async def capacity(self, pod: Given | str, *, limit: int | None = None) -> Room:
        """See `Cluster.capacity`."""
        return await self._ask(self.cluster.capacity, pod, limit=limit)

    async def cheapest_nodes(self, pods: Iterable[Given | str], templates: Sequence[NodeTemplate]) -> NewNodes:
        """See `Cluster.cheapest_nodes`."""
        return await self._ask(self.cluster.cheapest_nodes, pods, templates)

    async def pending(self) -> list[Pod]:
        """See `Cluster.pending`."""
        return await self._ask(self.cluster.pending)

    async def apply(self, old: Given | None, new: Given | None) -> None:
        """See `Cluster.apply`."""
        await self._ask(self.cluster.apply, old, new)

    async def put(self, *objects: Given) -> None:
        """See `Cluster.put`."""
        await self._ask(self.cluster.put, *objects)

    async def remove(self, *objects: Given) -> None:
        """See `Cluster.remove`."""
        await self._ask(self.cluster.remove, *objects)

    async def changed(self, version: int, seconds: float | None = None) -> int:
        """See `Cluster.changed`. Nobody else waits meanwhile: the wait has a thread of its own."""
        return await asyncio.to_thread(self.cluster.changed, version, seconds)

    def what_if(self) -> AsyncWorld:
        """Open a world with `async with`; see `Cluster.what_if`."""
        return AsyncWorld(self._thread, self.cluster.what_if(), self._turn)


class AsyncWorld:
    """A `World` whose changes and questions are awaited."""

    def __init__(self, thread: _Thread, world: World, turn: asyncio.Lock | None = None) -> None:
        """`turn` is held from opening to closing; a world inside another one needs none."""
        self._thread = thread
        self._world = world
        self._turn = turn

    async def __aenter__(self) -> AsyncWorld:
        if self._turn is not None:
            await self._turn.acquire()
        try:
            await self._thread.run(self._world.__enter__)
        except BaseException:  # it may have opened before the wait for it was cancelled
            await self._thread.run(self._world.close)
            self._let_go()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._thread.run(self._world.close)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if self._turn is not None:
            self._turn.release()

    def what_if(self) -> AsyncWorld:
        """See `World.what_if`."""
        return AsyncWorld(self._thread, self._world.what_if())

    async def add_nodes(self, template: Given, count: int = 1) -> list[str]:
        """See `World.add_nodes`."""
        return await self._thread.run(self._world.add_nodes, template, count)

    async def remove_node(self, name: str) -> list[str]:
        """See `World.remove_node`."""
        return await self._thread.run(self._world.remove_node, name)

    async def cordon(self, name: str, *, on: bool = True) -> None:
        """See `World.cordon`."""
        await self._thread.run(self._world.cordon, name, on=on)

    async def drain(self, name: str) -> list[str]:
        """See `World.drain`."""
        return await self._thread.run(self._world.drain, name)

    async def add(self, objects: Iterable[Given]) -> None:
        """See `World.add`."""
        await self._thread.run(self._world.add, objects)

    async def delete(self, *pods: Given | str) -> None:
        """See `World.delete`."""
        await self._thread.run(self._world.delete, *pods)

    async def place(self, pods: Iterable[Given | str] = (), *, preempt: bool = False) -> Placement:
        """See `World.place`."""
        return await self._thread.run(self._world.place, pods, preempt=preempt)

    async def fits(self, pod: Given | str, *, nodes: bool = True) -> Fits:
        """See `World.fits`."""
        return await self._thread.run(self._world.fits, pod, nodes=nodes)

    async def why(self, pod: Given | str, *, top: int = 5, preempt: bool = False) -> dict[str, Any]:
        """See `World.why`."""
        return await self._thread.run(self._world.why, pod, top=top, preempt=preempt)

    async def capacity(self, pod: Given | str, *, limit: int | None = None) -> Room:
        """See `World.capacity`."""
        return await self._thread.run(self._world.capacity, pod, limit=limit)

    async def cheapest_nodes(self, pods: Iterable[Given | str], templates: Sequence[NodeTemplate]) -> NewNodes:
        """See `World.cheapest_nodes`."""
        return await self._thread.run(self._world.cheapest_nodes, pods, templates)
