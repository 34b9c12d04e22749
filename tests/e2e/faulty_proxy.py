"""A proxy between a client and an API server that does to the traffic what bad networks do, by seeded chance.

In: requests. Out: the server's answers, except that requests are dropped before or after they were carried out,
delayed, sent twice, refused with 429 or 503; answers are cut short; watches are cut in the middle of a line, repeat
lines, or end in 410. `counts` says how often each was done, so that a test can tell that it tested something. `away()`
closes the door.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


@dataclass(frozen=True)
class Faults:
    """How likely each fault is, from 0 to 1; for watches, per chunk."""

    drop_request: float = 0.0  # the connection breaks and the server never heard of it
    drop_answer: float = 0.0  # the server did it, and the answer is lost
    truncate_answer: float = 0.0  # the answer ends early
    send_twice: float = 0.0  # the server hears it twice; the second answer is passed on
    delay: float = 0.0  # up to `longest_delay` seconds before the request, and as much before the answer
    too_many: float = 0.0  # 429 with Retry-After, not passed on
    unavailable: float = 0.0  # 503 without Retry-After, not passed on
    gone: float = 0.0  # a watch is refused with 410
    cut_watch: float = 0.0  # a watch ends in the middle of a line
    end_watch: float = 0.0  # a watch ends cleanly
    expire_watch: float = 0.0  # a watch ends with an ERROR line of 410
    repeat_lines: float = 0.0  # lines of a watch come twice
    longest_delay: float = 0.02

    @classmethod
    def all_of_them(cls, chance: float) -> Faults:
        """Return every fault with the same chance."""
        names = [field.name for field in fields(cls) if field.name != "longest_delay"]
        return cls(**dict.fromkeys(names, chance))


class FaultyProxy:
    """Listens on a port of its own and forwards to `upstream`, which may be changed while it runs."""

    def __init__(self, upstream: str, faults: Faults | None = None, seed: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.upstream = upstream
        self._tls = tls or True
        self.faults = faults or Faults()
        self.counts: Counter[str] = Counter()
        self.port = 0
        self._chance = random.Random(seed)
        self._runner: web.AppRunner | None = None
        self._session: aiohttp.ClientSession | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Open the door."""
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)

    async def stop(self) -> None:
        """Close the door and break what is under way."""
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Refuse every connection for a while."""
        await self.stop()
        self.counts["away"] += 1
        try:
            yield
        finally:
            await self.start()

    async def __aenter__(self) -> FaultyProxy:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # --- one request --------------------------------------------------------------------------------------------------

    def _happens(self, name: str) -> bool:
        happens = self._chance.random() < getattr(self.faults, name)
        if happens:
            self.counts[name] += 1
        return happens

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        is_watch = request.query.get("watch") in ("true", "1")
        if self._happens("delay"):
            await asyncio.sleep(self._chance.random() * self.faults.longest_delay)
        if self._happens("drop_request"):
            return _hang_up(request)
        if self._happens("too_many"):
            return _status(429, "TooManyRequests", {"Retry-After": "0"})
        if self._happens("unavailable"):
            return _status(503, "ServiceUnavailable")
        if is_watch:
            if self._happens("gone"):
                return _status(410, "Expired")
            return await self._watch(request)
        if self._happens("send_twice"):
            async with self._forward(request, body) as first:
                await first.read()
        async with self._forward(request, body) as upstream:
            answer = await upstream.read()
            status, headers = upstream.status, _passed_on(upstream.headers)
        if self._happens("delay"):
            await asyncio.sleep(self._chance.random() * self.faults.longest_delay)
        if self._happens("drop_answer"):
            return _hang_up(request)
        if answer and self._happens("truncate_answer"):
            response = web.StreamResponse(status=status, headers={**headers, "Content-Length": str(len(answer))})
            await response.prepare(request)
            await response.write(answer[: self._chance.randrange(len(answer))])
            return _hang_up(request)
        return web.Response(status=status, headers=headers, body=answer)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        async with self._forward(request, b"") as upstream:
            response = web.StreamResponse(status=upstream.status, headers=_passed_on(upstream.headers))
            await response.prepare(request)
            async for chunk in upstream.content.iter_any():
                if self._happens("cut_watch"):
                    await response.write(chunk[: max(1, len(chunk) // 2)])
                    return _hang_up(request)
                await response.write(chunk)
                if chunk.endswith(b"\n") and self._happens("repeat_lines"):
                    start = chunk.find(b"\n") + 1  # the first line may have begun in an earlier chunk
                    await response.write(chunk[start:])
                if chunk.endswith(b"\n") and self._happens("expire_watch"):
                    failure = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired"}
                    await response.write(json.dumps({"type": "ERROR", "object": failure}).encode() + b"\n")
                    return response
                if self._happens("end_watch"):
                    return response
        return response

    @asynccontextmanager
    async def _forward(self, request: web.Request, body: bytes) -> AsyncIterator[aiohttp.ClientResponse]:
        assert self._session is not None
        headers = CIMultiDict(_passed_on(request.headers))
        if self.faults.repeat_lines or self.faults.expire_watch:
            headers["Accept-Encoding"] = "identity"  # lines are added to what comes
        try:
            async with self._session.request(
                request.method,
                f"{self.upstream}{request.raw_path}",
                headers=headers,
                data=body or None,
                timeout=aiohttp.ClientTimeout(total=None),
            ) as upstream:
                yield upstream
        except aiohttp.ClientError as error:
            self.counts["upstream away"] += 1
            _hang_up(request)
            raise asyncio.CancelledError from error


class Recorder(FaultyProxy):
    """A proxy that does no harm and remembers the verb of every request."""

    def __init__(self, upstream: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(upstream, tls=tls)
        self.asked: list[tuple[str, str]] = []

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.method, request.path))
        return await super()._handle(request)


def _hang_up(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _passed_on(headers: aiohttp.typedefs.LooseHeaders) -> dict[str, str]:
    return {name: text for name, text in dict(headers).items() if name.lower() not in _HOP_BY_HOP}


def _status(code: int, reason: str, headers: dict[str, str] | None = None) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return web.json_response(body, status=code, headers=headers)
