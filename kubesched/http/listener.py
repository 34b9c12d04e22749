"""The listener: accepts connections for an aiohttp server, as many as the process can afford.

In: a runner and an address. Out: connections that are served within limits from their first byte on. asyncio's own accepting
is not used: when the process runs out of files, it retries thousands of times, with a log line each. Here an idle connection
is closed, or accepting pauses for a second, and that is logged once a minute. A TLS handshake counts as a connection and has
its time limit too.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from typing import Any

from aiohttp import web

from kubesched.http.connections import HEADER_SECONDS, Connections, TimedHandler
from kubesched.telemetry.logs import logger
from kubesched.telemetry.throttle import Throttle

try:
    import resource
except ImportError:  # Windows has no limit of this kind
    resource = None  # type: ignore[assignment]

PAUSE_SECONDS = 1.0
TURN_SECONDS = 0.001  # time for a connection to close
BACKLOG = 1024
ALL_INTERFACES = ("0.0.0.0", "::")

log = logger(__name__)
_full, _failed = Throttle(), Throttle()


def raise_file_limit() -> None:
    """Allow this process as many open files, which include connections, as the system permits."""
    if resource is None:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # some systems name a limit that they do not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def affordable(most: int, share: float) -> int:
    """Return how many connections a server may have that gets this share of the open files."""
    if resource is None:
        return most
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if soft == resource.RLIM_INFINITY else min(most, int(soft * share))


def both_families(host: str, port: int, reuse_port: bool | None) -> socket.socket | None:
    """Return a socket for all interfaces of IPv6 and IPv4; None if another address is wanted, or there is no IPv6.

    Go takes either wildcard for both families, so kube-scheduler's default of 0.0.0.0 answers at [::1] as well.
    """
    if host not in ALL_INTERFACES or not socket.has_dualstack_ipv6():
        return None
    try:
        return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, reuse_port=bool(reuse_port))
    except OSError as error:
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):  # the kernel knows IPv6, and it is switched off
            return None
        raise


class Listener(web.BaseSite):
    """Listens on one address for a runner that has been set up."""

    def __init__(
        self,
        runner: web.BaseRunner,
        host: str,
        port: int,
        *,
        most: int,
        share: float,
        tls: ssl.SSLContext | None = None,
        header_seconds: float = HEADER_SECONDS,
        reuse_address: bool | None = None,
        reuse_port: bool | None = None,
        **handler_settings: Any,
    ) -> None:
        super().__init__(runner, ssl_context=tls)
        self._host, self._port, self._tls = host, port, tls
        self._reuse_address, self._reuse_port = reuse_address, reuse_port
        self._header_seconds = header_seconds
        self._handler_settings = handler_settings
        self._most = affordable(most, share)
        self._connections = Connections(self._most)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        """Return the address for log lines."""
        return f"{'https' if self._tls is not None else 'http'}://{self._host}:{self._port}"

    async def start(self) -> None:
        """Bind and begin to accept; raise `OSError` if the address is not available."""
        await super().start()
        loop = asyncio.get_running_loop()
        # Made by asyncio for its handling of names and of their addresses, and not started: it only holds the sockets.
        if (every := both_families(self._host, self._port, self._reuse_port)) is not None:
            bound = await loop.create_server(asyncio.Protocol, sock=every, start_serving=False)
        else:
            bound = await loop.create_server(
                asyncio.Protocol,
                self._host,
                self._port,
                reuse_address=self._reuse_address,
                reuse_port=self._reuse_port,
                start_serving=False,
            )
        self._server = bound
        for one in bound.sockets:
            listening = one.dup()
            listening.listen(BACKLOG)
            listening.setblocking(False)
            self._begin(self._accept(listening))

    async def stop(self) -> None:
        """Stop accepting. Open connections are the runner's to close."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await super().stop()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listening:
            while True:
                try:
                    accepted, _ = await loop.sock_accept(listening)
                except OSError as error:
                    if error.errno != errno.ECONNABORTED:  # the client is gone already
                        _failed.warning(log, "Cannot accept connections", address=self.name, err=error)
                        await asyncio.sleep(TURN_SECONDS if self._connections.close_one() else PAUSE_SECONDS)
                    continue
                if self._connections.make_room():
                    self._begin(_Greeting(self, accepted).run())
                else:
                    _full.warning(log, "Too many connections, all of them busy", address=self.name, most=self._most)
                    accepted.close()

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Greeting:
    """A connection before its first request: TLS may still be negotiated."""

    def __init__(self, listener: Listener, accepted: socket.socket) -> None:
        self._listener, self._accepted = listener, accepted
        self._task: asyncio.Task[Any] | None = None
        listener._connections.idle(self)

    def give_way(self) -> None:
        """Close the connection."""
        if self._task is not None:
            self._task.cancel()

    async def run(self) -> None:
        """Do the TLS handshake, if there is one, and hand the connection to a request handler."""
        listener = self._listener
        self._task = asyncio.current_task()
        limit = listener._header_seconds if listener._tls is not None else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._handler, self._accepted, ssl=listener._tls, ssl_handshake_timeout=limit
            )
        except OSError:  # TLS that fails, or takes too long, is the other side's affair
            self._accepted.close()
        except asyncio.CancelledError:
            self._accepted.close()
            raise
        finally:
            listener._connections.remove(self)

    def _handler(self) -> TimedHandler:
        listener = self._listener
        assert listener._runner.server is not None
        return TimedHandler(
            listener._connections, listener._header_seconds, listener._runner.server, **listener._handler_settings
        )
