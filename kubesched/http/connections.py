"""Connections: how many there may be, and how long a request's headers may take.

In: accepted connections. Out: aiohttp's request handler with limits. The headers of a request must be complete within 30
seconds of its first byte, or of the start of the connection. If there are as many connections as allowed, a new one replaces
the one that has been idle longest; one that is being answered, such as a watch, is never closed. What a client sends is never
logged: it may contain a bearer token.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from aiohttp import web
from aiohttp.http import HttpProcessingError

from kubesched.telemetry.logs import logger
from kubesched.telemetry.throttle import Throttle

HEADER_SECONDS = 30.0

log = logger(__name__)
_malformed, _broken = Throttle(), Throttle()


def source_address(request: web.BaseRequest) -> str:
    """Return the address of a request's sender; IPv4 addresses as such, although the socket serves both families."""
    return (request.remote or "").removeprefix("::ffff:")


class Closable(Protocol):
    """A connection that can be closed."""

    def give_way(self) -> None:
        """Close the connection."""
        ...


class Connections:
    """The connections of one server. Idle ones are kept in the order in which they became idle."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._idle: dict[Closable, None] = {}
        self._busy: set[Closable] = set()

    def __len__(self) -> int:
        return len(self._idle) + len(self._busy)

    def make_room(self) -> bool:
        """Close an idle connection if the limit is reached; return whether there is room."""
        return len(self) < self._most or self.close_one()

    def close_one(self) -> bool:
        """Close the connection that has been idle longest; return whether there was one."""
        longest = next(iter(self._idle), None)
        if longest is None:
            return False
        self.remove(longest)
        longest.give_way()
        return True

    def idle(self, one: Closable) -> None:
        """Note that a connection is idle from now on."""
        self.remove(one)
        self._idle[one] = None

    def busy(self, one: Closable) -> None:
        """Note that a connection is being answered."""
        self.remove(one)
        self._busy.add(one)

    def remove(self, one: Closable) -> None:
        """Forget a closed connection."""
        self._idle.pop(one, None)
        self._busy.discard(one)


class TimedHandler(web.RequestHandler):
    """One HTTP connection, with a time limit for headers."""

    def __init__(self, connections: Connections, header_seconds: float, manager: web.Server, **settings: Any) -> None:
        super().__init__(manager, loop=asyncio.get_running_loop(), **settings)
        self._connections = connections
        self._header_seconds = header_seconds
        self._is_idle = True
        self._deadline: asyncio.TimerHandle | None = None

    def give_way(self) -> None:
        """Close the connection."""
        self.force_close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; the headers have to arrive in time."""
        super().connection_made(transport)
        self._connections.idle(self)
        self._start_deadline()

    def connection_lost(self, exc: BaseException | None) -> None:
        """End."""
        self._stop_deadline()
        self._connections.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request. Until its headers are complete, the time limit applies."""
        super().data_received(data)
        if not self._is_idle:
            return
        if self._messages:
            self._is_idle = False
            self._stop_deadline()
            self._connections.busy(self)
        elif self._deadline is None:
            self._start_deadline()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Answer. The connection is idle after that, unless the next request is here already."""
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            if self.transport is not None and not self._messages:
                self._is_idle = True
                self._connections.idle(self)

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer a request that is not HTTP, without repeating any of it in the log or the answer."""
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        _malformed.warning(log, "A malformed HTTP request was refused", srcIP=source_address(request), err=type(exc).__name__)
        answer = web.Response(text="Bad Request\n", status=400)
        answer.force_close()
        return answer

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log the type of an error only: its text may quote the request."""
        error = kw.get("exc_info")
        _broken.warning(log, "An HTTP connection broke", err=type(error).__name__)

    def _start_deadline(self) -> None:
        self._deadline = asyncio.get_running_loop().call_later(self._header_seconds, self._too_late)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        self.force_close()
