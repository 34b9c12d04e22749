"""Fakes of the ports of a plugin (`framework/ports.py`): clock, writer and event recorder. They record every call.

Nothing waits in real time, and nothing uses the network.

    clock, writer, recorder = FakeClock(jumps=True), FakeWriter(objects), FakeRecorder()
    plugin = QuietNodes(None, EngineHandle(objects, clock=clock, writer=writer, recorder=recorder))
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from kubesched.scheduler.cluster import Objects, PodView

_TURNS = 50  # of the event loop: more than anything needs that waits for nothing but other tasks


async def settle() -> None:
    """Let all tasks run until each waits for time or an event."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


class FakeClock:
    """A clock that a test moves. A sleep ends by `advance` or `run`; with `jumps`, it moves the clock and returns at once. `at`
    has functions to call when a sleep has passed a moment."""

    def __init__(self, now: float = 1_700_000_000.0, *, jumps: bool = False) -> None:
        self.time = now
        self.slept: list[float] = []
        self.at: dict[float, Callable[[], Any]] = {}
        self._jumps = jumps
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self.time

    def monotonic(self) -> float:
        """Return the same."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has moved that far; with `jumps`, move it."""
        self.slept.append(seconds)
        if self._jumps:
            self.time += seconds
            for moment in sorted(moment for moment in self.at if moment <= self.time):
                self.at.pop(moment)()
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.time + max(seconds, 0.0), next(self._numbers), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move the clock. Sleepers wake in order, and each runs until it waits again."""
        end = self.time + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            await self._wake_next()
        self.time = end

    async def run(self, work: Awaitable[Any], limit: float = 3600.0) -> Any:
        """Run the work to its end and skip its sleeps, up to `limit` seconds."""
        task = asyncio.ensure_future(work)
        end = self.time + limit
        while not task.done():
            await settle()
            if task.done():
                break
            if not self._sleepers or self._sleepers[0][0] > end:
                task.cancel()
                raise AssertionError("the work neither ends nor sleeps")
            await self._wake_next()
        return await task

    async def _wake_next(self) -> None:
        when, _, future = heapq.heappop(self._sleepers)
        self.time = max(self.time, when)
        if not future.done():
            future.set_result(None)
        await settle()


class Call(NamedTuple):
    """One write. `verb` is `bind`, `patch`, `delete`, `create`, `update` or `update/SUBRESOURCE`."""

    verb: str
    name: str
    body: Any


class FakeWriter:
    """The API's write side in memory. It records calls, and gives stored objects new versions.

    `objects`, if given, is updated as by a watch. `failures` are the errors of the next calls, in order (None: no error).
    `fails` are errors by (verb, name). `hold` makes calls about a name wait for an event.
    """

    def __init__(self, objects: Objects | None = None) -> None:
        self.objects = objects
        self.calls: list[Call] = []
        self.written: list[Any] = []
        self.failures: list[Exception | None] = []
        self.fails: dict[tuple[str, str], Exception] = {}
        self.hold: dict[str, asyncio.Event] = {}
        self._version = 100

    @property
    def lines(self) -> list[str]:
        """Return the calls as `verb name`."""
        return [f"{call.verb} {call.name}" for call in self.calls]

    def said(self, verb: str) -> list[str]:
        """Return the names of the calls with a verb."""
        return [call.name for call in self.calls if call.verb == verb]

    async def bind(self, pod: PodView, node_name: str) -> None:
        """Record a binding; the body is the node's name."""
        await self._call("bind", pod.name, node_name)

    async def patch_pod_status(self, pod: PodView, status: Mapping[str, Any]) -> None:
        """Record a patch of a pod's status."""
        await self._call("patch", pod.name, dict(status))

    async def patch_status(self, obj: Any, status: Mapping[str, Any]) -> None:
        """Record a patch of another object's status."""
        await self._call("patch", obj.metadata.name, dict(status))

    async def delete_pod(self, pod: PodView) -> None:
        """Record a pod's deletion."""
        await self._call("delete", pod.name, None)

    async def update(self, changed: Any, subresource: str = "") -> Any:
        """Store an object with a new version."""
        await self._call(f"update/{subresource}" if subresource else "update", changed.metadata.name, changed)
        return self._store(changed)

    async def create(self, obj: Any) -> Any:
        """Store a new object. With `generateName` its name gets a 1 at the end."""
        meta = obj.metadata
        name = meta.name or f"{meta.generate_name}1"
        await self._call("create", name, obj)
        return self._store(obj, name=name, uid=meta.uid or "created")

    async def delete(self, obj: Any) -> None:
        """Remove an object."""
        await self._call("delete", obj.metadata.name, None)
        if self.objects is not None:
            self.objects.drop(type(obj), obj.metadata.name, obj.metadata.namespace)

    async def _call(self, verb: str, name: str, body: Any) -> None:
        self.calls.append(Call(verb, name, body))
        if name in self.hold:
            await self.hold[name].wait()
        error = self.failures.pop(0) if self.failures else self.fails.get((verb, name))
        if error is not None:
            raise error

    def _store(self, obj: Any, **identity: str) -> Any:
        self._version += 1
        meta = msgspec.structs.replace(obj.metadata, resource_version=str(self._version), **identity)
        stored = msgspec.structs.replace(obj, metadata=meta)
        self.written.append(stored)
        if self.objects is not None:
            self.objects.put(stored)
        return stored


class RecordedEvent(NamedTuple):
    """One event about a pod."""

    name: str
    kind: str
    reason: str
    action: str
    note: str


class FakeRecorder:
    """Records events."""

    def __init__(self) -> None:
        self.events: list[RecordedEvent] = []

    def event(self, regarding: PodView, kind: str, reason: str, action: str, note: str) -> None:
        """Record an event."""
        self.events.append(RecordedEvent(regarding.name, kind, reason, action, note))
