"""Watch streams: the events of one watch as lines of a chunked response.

In: a request. Out: a line for each event, bookmarks if asked for, and an end: after the client's timeout, when the client
disconnects or stops reading, or when the server stops.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from aiohttp import web

from kubesched.embedded.api_errors import status_of
from kubesched.embedded.http.encoding import JSON, Form, encode
from kubesched.embedded.http.request_parsing import flag, number
from kubesched.embedded.schema.resources import Resource
from kubesched.embedded.storage.watch import Entry, Watch, bookmark
from kubesched.embedded.verbs.context import Context
from kubesched.embedded.verbs.reading import ListQuery, open_watch
from kubesched.errors import Gone

_SHORTEST_DEFAULT_SECONDS = 1800.0
_CHUNK_BYTES = 256 * 1024  # a chunk is sent when it is this large


async def stream_watch(
    context: Context,
    request: web.BaseRequest,
    resource: Resource,
    query: ListQuery,
    writer: tuple[Form, Callable[[Entry], bytes]],
    bookmark_seconds: float,
    stall_seconds: float,
) -> web.StreamResponse:
    """Answer a watch request; return when the stream has ended."""
    arguments = request.rel_url.query
    bookmarks = flag(arguments, "allowWatchBookmarks")
    timeout = _timeout(number(arguments, "timeoutSeconds"))
    response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache, private"})
    try:
        watch, version = open_watch(context, resource, query)
    except Gone as error:
        await response.prepare(request)
        await response.write(b'{"type":"ERROR","object":%b}\n' % encode(status_of(error)))
        return response
    try:
        response.enable_chunked_encoding()
        await response.prepare(request)
        ending = b""
        if query.send_initial_events and bookmarks:
            ending = bookmark(resource.kind, resource.api_version, version, is_initial_end=True)
        stream = _Stream(response, watch, resource, writer, stall_seconds)
        await stream.send_buffered(ending)
        await stream.run(context, timeout, bookmark_seconds if bookmarks else None)
    except (TimeoutError, ConnectionError):
        if request.transport is not None:
            request.transport.abort()  # it does not read; a polite end would wait for it
    finally:
        watch.close()
    return response


class _Stream:
    """One response that carries one watch."""

    def __init__(
        self,
        response: web.StreamResponse,
        watch: Watch,
        resource: Resource,
        writer: tuple[Form, Callable[[Entry], bytes]],
        stall_seconds: float,
    ) -> None:
        self._response = response
        self._watch = watch
        self._resource = resource
        form, self._encode = writer
        self._frame_key = (form, resource.api_version)
        self._stall_seconds = stall_seconds

    async def send_buffered(self, ending: bytes = b"") -> None:
        """Send what is buffered, in chunks of at most 256 KiB or one event."""
        lines: list[bytes] = []
        size = 0
        for event in self._watch.drain():
            line = event.frame(self._frame_key, self._encode)
            lines.append(line)
            size += len(line)
            if size > _CHUNK_BYTES:
                await self._send(b"".join(lines))
                lines, size = [], 0
        if ending:
            lines.append(ending)
        if lines:
            await self._send(b"".join(lines))

    async def run(self, context: Context, seconds: float, bookmark_seconds: float | None) -> None:
        """Send events until the time is over or the watch is closed."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        marked = context.storage.version  # a last bookmark is worth sending only if it says something new
        next_bookmark = loop.time() + bookmark_seconds if bookmark_seconds else end
        while not self._watch.closed:
            pause = min(end, next_bookmark) - loop.time()
            if pause > 0:
                try:
                    async with asyncio.timeout(pause):
                        await self._watch.arrived()
                except TimeoutError:
                    pass
            mark = b""
            is_due = loop.time() >= next_bookmark or (loop.time() >= end and marked != context.storage.version)
            if bookmark_seconds and is_due:
                # Everything up to the current version is in the buffer, so after sending it this is true.
                marked = context.storage.version
                mark = bookmark(self._resource.kind, self._resource.api_version, marked)
                next_bookmark = loop.time() + bookmark_seconds
            await self.send_buffered(mark)
            if loop.time() >= end:
                return

    async def _send(self, data: bytes) -> None:
        """Write to the client; TimeoutError if it does not read."""
        async with asyncio.timeout(self._stall_seconds):
            await self._response.write(data)


def _timeout(seconds: int | None) -> float:
    """Return how long a stream lasts: as the client says, or 30 to 60 minutes, spread so that clients do not all return at
    once.
    """
    if not seconds or seconds < 0:
        return _SHORTEST_DEFAULT_SECONDS * (1 + random.random())  # spread, so that clients do not return all at once
    return float(seconds)
