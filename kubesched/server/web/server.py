"""The listeners: HTTPS on the secure port, and plain HTTP on the port of old releases.

In: an application and the serving flags. Out: a running server, which gives requests five seconds when it stops. It starts
before anything else of the scheduler, so that a probe can tell "not ready" from "not there".
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from aiohttp import web

from kubesched.errors import ConfigError
from kubesched.http import Listener
from kubesched.server.web.access.certificates import Pair
from kubesched.server.web.access.delegated_access import DelegatedAccess
from kubesched.server.web.access.tls import ServingTls
from kubesched.server.web.page.live import STOPPING
from kubesched.telemetry.logs import logger

if TYPE_CHECKING:
    from kubesched.server.options.options import Serving

log = logger(__name__)

GRACE_SECONDS = 5.0  # for requests under way when the server stops
KEEPALIVE_SECONDS = 90.0
MOST_CONNECTIONS = 256  # callers are probes, Prometheus and people
SHARE_OF_FILES = 0.125
LOOKUP_EVERY_SECONDS = 60.0  # the cluster's authentication ConfigMap is read again
INSECURE_PORT = 10251


def check_supported(settings: Serving) -> None:
    """Refuse settings that cannot be honoured. --disable-http2-serving is fine: HTTP/2 is never served."""
    if settings.http2_max_streams_per_connection:
        detail = "this scheduler serves HTTP/1.1 only, so there are no HTTP/2 streams to limit"
        raise ConfigError("", f"--http2-max-streams-per-connection: {detail}")


class Server:
    """One listener."""

    def __init__(
        self,
        app: web.Application,
        host: str,
        port: int,
        tls: ServingTls | None = None,
        *,
        shares_port: bool = False,
        shares_address: bool = False,
    ) -> None:
        self._stopping = app[STOPPING] = asyncio.Event()
        self._runner = web.AppRunner(app, shutdown_timeout=GRACE_SECONDS)
        self._host, self._wanted_port = host, port
        self._tls = tls
        self._shares_port, self._shares_address = shares_port, shares_address
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def port(self) -> int:
        """Return the port that is listened on."""
        return int(self._runner.addresses[0][1])

    @property
    def certificate(self) -> Pair | None:
        """Return the certificate that is served just now to callers that name no server; None without TLS."""
        return self._tls.pair if self._tls is not None else None

    async def start(self) -> None:
        """Listen; raise `ConfigError` if the address is not available."""
        await self._runner.setup()
        # Like Go, asyncio sets SO_REUSEADDR on listeners by itself; the flag can only make sure of it.
        site = Listener(
            self._runner,
            self._host,
            self._wanted_port,
            most=MOST_CONNECTIONS,
            share=SHARE_OF_FILES,
            tls=self._tls.context if self._tls is not None else None,
            reuse_port=self._shares_port or None,
            reuse_address=self._shares_address or None,
            access_log=None,
            keepalive_timeout=KEEPALIVE_SECONDS,
        )
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            where = f"[{self._host}]" if ":" in self._host else self._host
            reason = os.strerror(error.errno).lower() if error.errno else str(error)
            detail = f"failed to listen on {where}:{self._wanted_port}: {reason}"
            raise ConfigError("", f"failed to create listener: {detail}") from error
        kind = "Serving securely" if self._tls is not None else "Serving insecurely"
        log.info(f"{kind} on {self._address()}")

    def keep(self, work: Awaitable[None]) -> None:
        """Run a task as long as the server."""
        self._tasks.append(asyncio.ensure_future(work))

    async def stop(self) -> None:
        """Accept no more requests, and give those under way five seconds."""
        self._stopping.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        address = self._address()
        await self._runner.cleanup()
        log.info("Stopped listening", address=address)

    def _address(self) -> str:
        host, port = self._runner.addresses[0][:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def serve(app: web.Application, settings: Serving, access: DelegatedAccess) -> Server | None:
    """Serve an application as the flags say; return None if the secure port is 0."""
    check_supported(settings)
    if not settings.secure_port:
        return None
    # Making a key takes a good part of a second of pure computing, which is the event loop's to lose.
    tls = await asyncio.to_thread(ServingTls, settings, access.trust)
    server = Server(
        app,
        settings.bind_address,
        settings.secure_port,
        tls,
        shares_port=settings.permit_port_sharing,
        shares_address=settings.permit_address_sharing,
    )
    await server.start()
    if access.lookup is not None:

        async def look_up_again() -> None:
            while True:
                await asyncio.sleep(LOOKUP_EVERY_SECONDS)
                await access.look_up(tolerates_failure=True)
                tls.refresh()

        server.keep(look_up_again())
    return server


async def serve_insecurely(app: web.Application, host: str = "0.0.0.0", port: int = INSECURE_PORT) -> Server:
    """Serve the plain port of old releases, open to all."""
    server = Server(app, host, port)
    await server.start()
    return server
