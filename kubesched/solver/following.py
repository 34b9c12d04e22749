"""Follow a live cluster in a background thread, and never write to it.

In: credentials. Out: every change, handed to a `Cluster`. The thread has an event loop of its own with the reflectors of `run`.
What may not be listed is left out, with a warning in the log; without pods or nodes there is no cluster to follow.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING, Any

from kubesched.errors import SchedulerError
from kubesched.kube.client import CredentialSource, Reflectors, connect, watch_set

if TYPE_CHECKING:
    from kubesched.solver.cluster import Cluster

log = logging.getLogger(__name__)
_QPS = 50.0
_AGAIN_SECONDS = 0.02
"""How soon changes that had to wait for a world are tried again."""


class Follower:
    """A thread that follows a cluster. It is the sink of its reflectors."""

    def __init__(self, cluster: Cluster, source: CredentialSource) -> None:
        self._cluster = cluster
        self._source = source
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_waiting = False
        self._started = threading.Event()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="kubesched-follower", daemon=True)

    def start(self) -> None:
        """Begin, and return when the first lists are in; raise what prevents it."""
        self._thread.start()
        self._started.wait()
        if self._problem is not None:
            raise self._problem

    def stop(self) -> None:
        """End, and wait until the thread has."""
        loop, task = self._loop, self._task
        if loop is not None and task is not None and self._thread.is_alive():
            loop.call_soon_threadsafe(task.cancel)
        self._thread.join()

    @property
    def problem(self) -> BaseException | None:
        """Return why it follows no more; None while it does, and after `stop`."""
        return self._problem

    # In the thread

    def _run(self) -> None:
        try:
            asyncio.run(self._follow())
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # whatever it is, who waits for the start is told
            self._problem = error
            log.error("the cluster is not followed any more: %s", error)
        finally:
            self._started.set()

    async def _follow(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        connection = await connect(self._source, name="solver", qps=_QPS, burst=int(2 * _QPS))
        try:
            engine, gates = self._cluster.engine, self._cluster.gates
            custom = [name for name in engine.queue.watched_resources() if name.count(".") >= 2 and "/" not in name]
            rows = watch_set([name for name, is_on in gates.states.items() if is_on], custom)
            reflectors = await Reflectors.prepare(connection, rows, self, streams=gates.is_enabled("WatchListClient"))
            for row in rows:
                if row.is_indispensable:
                    if (version := reflectors.served.version_of(row)) is None:
                        raise SchedulerError(f"{connection.server} does not serve {row.plural}: is it a Kubernetes API server?")
                    await connection.request("GET", f"{row.path(version)}?limit=1")  # raises Forbidden if we may not
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(reflectors.run())
                await reflectors.wait_synced()
                self._started.set()
        finally:
            await connection.close()

    def deliver(self, kind: str, old: Any | None, new: Any | None) -> None:
        """Hand on a change; one that has to wait for a world is tried again soon."""
        if not self._cluster.arrived(kind, old, new) and not self._is_waiting:
            self._is_waiting = True
            asyncio.get_running_loop().call_later(_AGAIN_SECONDS, self._again)

    def _again(self) -> None:
        self._is_waiting = not self._cluster.take_in()
        if self._is_waiting:
            asyncio.get_running_loop().call_later(_AGAIN_SECONDS, self._again)

    def synced(self, kind: str) -> None:
        """Hear that the first list of a kind is in."""
