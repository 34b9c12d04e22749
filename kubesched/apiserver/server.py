"""The API server: a store behind HTTP, started and stopped.

In: where to listen and what to keep. Out: a running server, its address and a kubeconfig for it.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from types import TracebackType
from typing import Any

from aiohttp import web

from kubesched.apiserver.http import MAX_BODY_BYTES, HttpFace
from kubesched.apiserver.store import Store
from kubesched.errors import ConfigError

_KEEPALIVE_SECONDS = 300.0


class ApiServer:
    """Serves a store over HTTP until it is stopped; also an asynchronous context manager."""

    def __init__(
        self,
        store: Store | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        bookmark_seconds: float = 60.0,
        stall_seconds: float = 30.0,
    ) -> None:
        """Prepare a server; `port` 0 lets the system choose one."""
        self.store = store or Store()
        self.host = host
        self.port = port
        self._face = HttpFace(self.store.context, bookmark_seconds, stall_seconds)
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        """The address clients use."""
        return f"http://{self.host}:{self.port}"

    async def start(self) -> None:
        """Begin to listen."""
        server = web.Server(
            self._face.handle,
            request_factory=_make_request,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=_KEEPALIVE_SECONDS,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await self._runner.setup()
        await self._listen(self._runner, self.port, None)

    async def _listen(self, runner: web.ServerRunner, port: int, tls: ssl.SSLContext | None) -> None:
        site = web.TCPSite(runner, self.host, port, ssl_context=tls)
        try:
            await site.start()
        except OSError as error:
            raise ConfigError("port", f"cannot listen on {self.host}:{port}: {error.strerror or error}") from error
        self.port = int(runner.addresses[0][1])

    async def stop(self) -> None:
        """End every watch, answer nobody any more, and close the store."""
        self.store.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> ApiServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


def _make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: asyncio.Task[None]) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES)


def write_kubeconfig(path: Path, url: str, token: str = "", authority: Path | None = None) -> None:
    """Write a kubeconfig for one server and one user."""
    cluster: dict[str, Any] = {"server": url}
    if authority is not None:
        cluster["certificate-authority"] = str(authority)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kubesched", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": token} if token else {}}],
        "contexts": [{"name": "kubesched", "context": {"cluster": "kubesched", "user": "admin"}}],
        "current-context": "kubesched",
    }
    path.write_text(json.dumps(document, indent=2) + "\n")
