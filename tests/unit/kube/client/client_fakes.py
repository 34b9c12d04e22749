"""What the tests of this room hand in instead of time, chance and a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from kubesched.errors import AnswerLost, SchedulerError
from kubesched.kube.client.api_errors import refusal
from kubesched.kube.client.leases.fencing import LeaseLost
from kubesched.testing.fakes import FakeClock


class FakeChance:
    """Chance that always says the same."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


Reply = bytes | dict[str, Any] | SchedulerError | Callable[[str, str, bytes | None], Any]


def status(code: int, reason: str, message: str = "", **details: Any) -> SchedulerError:
    """Return what a connection raises when the server refuses."""
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message or reason}
    if details:
        body["details"] = details
    return refusal(code, json.dumps(body).encode(), "test")


class FakeConnection:
    """A connection that answers from a script and remembers what it was asked.

    `replies` are taken in order by `request`; `streams` by `stream`. A stream is a list of chunks; an exception in it
    is raised, and a stream that ends without one ends cleanly. `HANG` waits for ever, a number so many seconds.
    """

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.requests: list[tuple[str, str, Any]] = []
        self.watches: list[str] = []
        self.replies: list[Reply] = []
        self.streams: list[list[Any] | SchedulerError] = []
        self.server, self.origin = "https://cluster", "test"
        self.leads = True

    def require_lead(self, what: str) -> None:
        if not self.leads:
            raise LeaseLost(what)

    async def request(self, method: str, path: str, body: bytes | None = None, content_type: str = "") -> bytes:
        self.requests.append((method, path, json.loads(body) if body else None))
        if not self.replies:
            raise AssertionError(f"nobody expected {method} {path}")
        reply = self.replies.pop(0)
        if callable(reply):
            reply = reply(method, path, body)
            if asyncio.iscoroutine(reply):
                reply = await reply
        if isinstance(reply, SchedulerError):
            raise reply
        return reply if isinstance(reply, bytes) else json.dumps(reply).encode()

    @asynccontextmanager
    async def stream(self, path: str, longest_silence: float) -> AsyncIterator[Any]:
        self.watches.append(path)
        script = self.streams.pop(0) if self.streams else [HANG]
        if isinstance(script, SchedulerError):
            raise script
        yield _FakeStream(list(script))


HANG = object()


class _FakeStream:
    def __init__(self, script: list[Any]) -> None:
        self._script = script

    async def read(self) -> bytes:
        await asyncio.sleep(0)
        if not self._script:
            return b""
        chunk = self._script.pop(0)
        if chunk is HANG:
            await asyncio.Event().wait()
        if isinstance(chunk, float):
            await asyncio.sleep(chunk)
            return await self.read()
        if isinstance(chunk, SchedulerError):
            raise chunk
        assert isinstance(chunk, bytes)
        return chunk


BOUND = {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}
"""How the API answers a binding."""


def broken() -> AnswerLost:
    return AnswerLost("the connection broke")


def pod(name: str, version: int, *, uid: str = "", node: str = "", **meta: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "a",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            **meta,
        },
        "spec": {"nodeName": node, "containers": [{"name": "c"}]} if node else {"containers": [{"name": "c"}]},
    }


def line(verb: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": verb, "object": obj}).encode() + b"\n"


def bookmark(version: int, *, ends_list: bool = False) -> bytes:
    meta: dict[str, Any] = {"resourceVersion": str(version)}
    if ends_list:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return line("BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": meta})


def gone_line() -> bytes:
    return line("ERROR", {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"})


def page(version: int, *pods: dict[str, Any], token: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version), "continue": token}, "items": list(pods)}
