"""The embedded API server: a store behind HTTP and HTTPS.

In: where to listen, where to keep certificates, which tokens are valid. Out: a running server, its addresses, and a
kubeconfig.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from aiohttp import web

from kubesched.embedded.http.access import AUTHENTICATION_CONFIG, Access, User
from kubesched.embedded.http.certificates import Certificate, authority_alone, serving_certificate
from kubesched.embedded.http.routes import MAX_BODY_BYTES, HttpFace
from kubesched.embedded.store import ObjectStore
from kubesched.errors import AlreadyExists, ConfigError
from kubesched.files import write_private
from kubesched.http import Listener, Origins

_KEEPALIVE_SECONDS = 300.0  # clients keep connections open between requests
_MOST_CONNECTIONS = 16384
_SHARE_OF_FILES = 0.75  # of the open files that the process may have


class ApiServer:
    """Serves a store until it is stopped; also an asynchronous context manager."""

    def __init__(
        self,
        store: ObjectStore | None = None,
        *,
        host: str = "127.0.0.1",
        port: int | None = 0,
        secure_port: int | None = None,
        certificate_dir: Path | None = None,
        tokens: Mapping[str, User] | None = None,
        bookmark_seconds: float = 60.0,
        stall_seconds: float = 30.0,
    ) -> None:
        """Prepare a server. A port of 0 lets the system choose, None does not listen; HTTPS needs `certificate_dir`.

        Without `tokens` everybody is an administrator, but for pages of other web sites.
        """
        if secure_port is not None and certificate_dir is None:
            raise ConfigError("secure-port", "HTTPS needs a directory for its certificate")
        self.store = store or ObjectStore()
        self.host = host
        self.port = port
        self.secure_port = secure_port
        self.certificate: Certificate | None = None
        self._certificate_dir = certificate_dir
        access = Access(self.store.context, tokens)
        origins = Origins(host) if tokens is None else None
        self._face = HttpFace(self.store.context, access, origins, bookmark_seconds, stall_seconds)
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        """The address clients use: HTTPS when there is one."""
        if self.secure_port is not None:
            return f"https://{self._reachable_host}:{self.secure_port}"
        return f"http://{self._reachable_host}:{self.port}"

    @property
    def _reachable_host(self) -> str:
        return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)

    async def start(self) -> None:
        """Listen. Whatever fails, what was opened is closed again."""
        server = web.Server(self._face.handle, request_factory=_make_request, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            if self.port is not None:
                self.port = await self._listen(self._runner, self.port, None)
            if self.secure_port is not None and self._certificate_dir is not None:
                hosts = list(dict.fromkeys(["localhost", "127.0.0.1", self._reachable_host]))
                self.certificate = serving_certificate(self._certificate_dir, hosts)
                self.secure_port = await self._listen(self._runner, self.secure_port, self.certificate.context())
        except BaseException:  # whatever it is, what was opened is closed first
            await self.stop()
            raise
        if self.port is not None or self.secure_port is not None:
            self._tell_whom_to_trust()

    def _tell_whom_to_trust(self) -> None:
        """Create the ConfigMap from which schedulers and extension servers learn which client certificates to trust.

        Its authorities sign nothing: their keys are thrown away, for this server knows no client certificates. Without the
        ConfigMap, or without authorities in it, a kube-scheduler warns for as long as it runs.
        """
        ca = (
            self.certificate.authority.read_text("utf-8")
            if self.certificate is not None
            else authority_alone("kubesched-client-ca")
        )
        data = {
            "client-ca-file": ca,
            "requestheader-allowed-names": '["front-proxy-client"]',
            "requestheader-client-ca-file": authority_alone("kubesched-front-proxy-ca"),
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-uid-headers": '["X-Remote-Uid"]',
            "requestheader-username-headers": '["X-Remote-User"]',
        }
        with contextlib.suppress(AlreadyExists):
            self.store.create("configmaps", {"metadata": {"name": AUTHENTICATION_CONFIG}, "data": data}, "kube-system")

    async def _listen(self, runner: web.ServerRunner, port: int, tls: ssl.SSLContext | None) -> int:
        """Listen on one port and return its number."""
        site = Listener(
            runner,
            self.host,
            port,
            most=_MOST_CONNECTIONS,
            share=_SHARE_OF_FILES,
            tls=tls,
            access_log=None,
            keepalive_timeout=_KEEPALIVE_SECONDS,
        )
        try:
            await site.start()
        except OSError as error:
            flag = "secure-port" if tls is not None else "port"
            raise ConfigError(flag, f"cannot listen on {self.host}:{port}: {error.strerror or error}") from error
        return int(runner.addresses[-1][1])

    def connection(self) -> asyncio.Protocol:
        """Return the server's end of one connection, for tests and simulations that bring their own transport."""
        assert self._runner is not None and self._runner.server is not None
        return self._runner.server()

    async def stop(self) -> None:
        """End every watch, stop answering, and close the store."""
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

    def write_kubeconfig(self, path: Path, token: str = "") -> Path:
        """Write a kubeconfig for this running server and return its path."""
        cluster: dict[str, Any] = {"server": self.url}
        if self.certificate is not None:
            cluster["certificate-authority-data"] = base64.b64encode(self.certificate.authority.read_bytes()).decode()
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "kubesched", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": token} if token else {}}],
            "contexts": [{"name": "kubesched", "context": {"cluster": "kubesched", "user": "admin"}}],
            "current-context": "kubesched",
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, json.dumps(document, indent=2).encode() + b"\n")  # JSON is YAML, and needs no library here
        return path


def _make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: asyncio.Task[None]) -> web.BaseRequest:
    """Make a request object as aiohttp does, with a limit on its body."""
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES)
