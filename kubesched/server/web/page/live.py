"""Live updates: the state as server-sent events, whenever it has changed.

In: the data of an engine. Out: a stream of `state` events, each the document of /ui/api/state without the columns that the
stream has sent already. A stream ends after five minutes, so that authorization is checked again, and when the server stops;
the browser reconnects. The number of streams is limited.
"""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
from aiohttp import web

from kubesched.server.web.page.data import EnginePageData, NotReady, Versions
from kubesched.server.web.responses import PAGE_HEADERS

MOST_STREAMS = 64  # each is an open connection
STOPPING = web.AppKey("stopping", asyncio.Event)
"""Set when the server of an application stops, which no stream may hold up."""
TICK_SECONDS = 0.5
STREAM_SECONDS = 300.0  # then authorization is checked again
QUIET_SECONDS = 15.0
"""After so long without news a comment is sent, by which both sides notice a connection that is gone."""
_encode = msgspec.json.Encoder().encode


def versions_of(request: web.Request) -> Versions:
    """Return the versions that a client names."""
    return Versions(request.query.get("nodes", ""), request.query.get("usage", ""))


class LiveStreams:
    """The streams of one server."""

    def __init__(self, page_data: EnginePageData) -> None:
        self._page_data = page_data
        self._n_open = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Send events until the client disconnects, the time is over or the server stops."""
        if self._n_open >= MOST_STREAMS:
            raise NotReady(f"{MOST_STREAMS} pages are open already")
        seen = versions_of(request)
        answer = web.StreamResponse(headers={**PAGE_HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        self._n_open += 1
        try:
            self._page_data.state(seen)  # says that it is not ready before anything is sent
            await answer.prepare(request)
            with contextlib.suppress(ConnectionError, asyncio.TimeoutError, NotReady):
                async with asyncio.timeout(STREAM_SECONDS):
                    await self._send(request, answer, seen)
        finally:
            self._n_open -= 1
        return answer

    async def _send(self, request: web.Request, answer: web.StreamResponse, seen: Versions) -> None:
        loop = asyncio.get_running_loop()
        last, sent_at = b"", 0.0
        stopping = request.app.get(STOPPING)
        while request.transport is not None and not request.transport.is_closing():
            picture = self._page_data.state(seen)
            body = _encode(picture)
            if body != last:
                await answer.write(b"event: state\ndata: " + body + b"\n\n")
                seen, sent_at = Versions(**picture["versions"]), loop.time()
                # What was sent is compared without the columns, which the next picture leaves out.
                last = _encode({name: value for name, value in picture.items() if name not in ("nodes", "usage")})
            elif loop.time() - sent_at > QUIET_SECONDS:
                await answer.write(b": still here\n\n")
                sent_at = loop.time()
            if stopping is None:
                await asyncio.sleep(TICK_SECONDS)
                continue
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(stopping.wait(), TICK_SECONDS)
                return
