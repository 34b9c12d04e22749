"""The API dispatcher (gate SchedulerAsyncAPICalls): one call about a pod at a time, and waiting calls about a pod are merged.

    waiting or under way   next call      what happens
    status patch           status patch   merged into one patch
    status patch           binding        the binding replaces a patch that waits: it is out of date once the pod is bound
    binding                status patch   the patch is dropped

The caller of a merged or dropped call returns at once, as if it had succeeded. An error goes to the caller of the call that
was sent. All other writes go straight through.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from kubesched.kube.client.connection import Connection
from kubesched.kube.client.timing import SYSTEM_CHANCE, Chance
from kubesched.kube.client.writes.writer import Named, Writer

STATUS_PATCH, BINDING = "pod_status_patch", "pod_binding"
_RELEVANCE = {STATUS_PATCH: 1, BINDING: 2}

Finished = Callable[[str, str, float], None]
"""Called after each call that was sent, with its kind, success or error, and its seconds."""


class _Call:
    """One call about a pod. `status` is the patch of a status patch."""

    __slots__ = ("done", "kind", "send", "status")

    def __init__(self, kind: str, send: Callable[[_Call], Awaitable[None]], status: Mapping[str, Any]) -> None:
        self.kind = kind
        self.send = send
        self.status = dict(status)
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def finish(self, error: BaseException | None = None) -> None:
        """Let the caller return, unless it was cancelled."""
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


class ApiDispatcher(Writer):
    """A writer that merges the calls about a pod."""

    def __init__(
        self,
        connection: Connection,
        parallelism: int,
        finished: Finished = lambda kind, result, seconds: None,
        chance: Chance = SYSTEM_CHANCE,
    ) -> None:
        super().__init__(connection, chance)
        self._parallelism = parallelism
        self._finished = finished
        self._waiting: dict[str, _Call] = {}
        self._under_way: dict[str, _Call] = {}
        self._ready: deque[str] = deque()
        """The pods whose call waits and about which none is under way."""
        self._tasks: set[asyncio.Task[None]] = set()

    def pending(self) -> dict[str, int]:
        """Return how many calls of each kind wait because too many are under way."""
        counts = Counter(self._waiting[uid].kind for uid in self._ready)
        return {kind: counts[kind] for kind in _RELEVANCE}

    async def bind(self, pod: Named, node_name: str) -> None:
        """Bind, after the call about the pod that is under way."""
        send = super().bind
        await self._add(pod.uid, _Call(BINDING, lambda _: send(pod, node_name), {}))

    async def patch_pod_status(self, pod: Named, status: Mapping[str, Any]) -> None:
        """Patch a status, merged with the patches that wait."""
        send = super().patch_pod_status
        await self._add(pod.uid, _Call(STATUS_PATCH, lambda call: send(pod, call.status), status))

    async def _add(self, uid: str, call: _Call) -> None:
        # The newest call about the pod: there are two if one waits behind the one under way.
        before = self._waiting.get(uid) or self._under_way.get(uid)
        if before is not None and _RELEVANCE[call.kind] < _RELEVANCE[before.kind]:
            return
        if before is not None and before.kind == call.kind:
            # Also with the patch under way, as in kube-scheduler: if that one fails, its fields go out again with this one.
            call.status = {**before.status, **call.status}
        replaced = self._waiting.get(uid)
        self._waiting[uid] = call
        if replaced is not None:
            replaced.finish()
        # With a call under way the pod becomes ready when that one ends (`_send`). So calls about one pod never overtake each
        # other.
        elif uid not in self._under_way:
            self._ready.append(uid)
        self._send_ready()
        await call.done

    def _send_ready(self) -> None:
        while self._ready and len(self._under_way) < self._parallelism:
            uid = self._ready.popleft()
            call = self._under_way[uid] = self._waiting.pop(uid)
            task = asyncio.get_running_loop().create_task(self._send(uid, call))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(self, uid: str, call: _Call) -> None:
        started, result = self._clock.monotonic(), "error"
        error: BaseException | None = None
        try:
            await call.send(call)
            result = "success"
        except asyncio.CancelledError:
            call.done.cancel()
            raise
        except Exception as problem:  # it goes to the caller
            error = problem
        finally:
            self._finished(call.kind, result, self._clock.monotonic() - started)
            # Order: free the place first, so that the next call of this pod is ready before `_send_ready` fills the places.
            del self._under_way[uid]
            if uid in self._waiting:
                self._ready.append(uid)
            call.finish(error)
            self._send_ready()
