"""The transport: one pool of HTTP connections to one API server, with TLS and credentials.

Reads go through aiohttp. Writes go through the faster `write_pool`, unless there is a proxy. Every failure becomes one of two
exceptions, and the difference decides what a caller may repeat:

    Unreachable   the request was not sent: no connection, bad certificate, unknown name
    AnswerLost    it was sent and may have been carried out: time-out, broken connection, an answer that is no HTTP

The message says where the address comes from, because that is what people have to correct. Nothing is repeated here, and
status codes have no meaning here. Answers are requested in gzip. If a proxy spoils that, compression is switched off.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

import aiohttp
from aiohttp import hdrs
from aiohttp.http_exceptions import ContentEncodingError
from multidict import CIMultiDict
from yarl import URL

from kubesched.errors import AnswerLost, ConfigError, SchedulerError, Unreachable
from kubesched.kube.client.credentials import Credentials, CredentialSource
from kubesched.kube.client.timing import SYSTEM_CLOCK, ClientClock
from kubesched.kube.client.writes.write_pool import CONNECT_TIMEOUT_SECONDS, NotConnected, WritePool, make_watchful

RENEW_EVERY_SECONDS = 60.0
GATHER_SECONDS = 0.005  # at 2,000 events a second this makes one wake-up of ten
ENOUGH_BYTES = 1 << 16
READ_BUFFER_BYTES = 1 << 18  # larger chunks of a watch are parsed with fewer calls
LARGEST_ANSWER_BYTES = 1 << 30  # unpacked: pages of 2,000 objects of half a MiB each
GZIP_BEGINS = b"\x1f\x8b"

log = logging.getLogger(__name__)


def time_limit(seconds: float) -> aiohttp.ClientTimeout:
    """Return the time limit of a whole request."""
    return aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_TIMEOUT_SECONDS)


class Answer(NamedTuple):
    """Status, Retry-After and body of an answer."""

    status: int
    retry_after: str | None
    body: bytes


class Transport:
    """The pool. Make one with `open`; close it when done."""

    def __init__(self, source: CredentialSource, credentials: Credentials, clock: ClientClock) -> None:
        self.credentials = credentials
        self._source = source
        self._clock = clock
        self._renew_at = clock.monotonic() + RENEW_EVERY_SECONDS
        self._renewing = asyncio.Lock()
        self._certificates = _certificate_marks(credentials)
        self._retired: list[aiohttp.ClientSession] = []
        self._without_gzip = False
        self._adopt(credentials)
        self._session, self._write_pool = self._new_pool()

    @classmethod
    async def open(cls, source: CredentialSource, clock: ClientClock = SYSTEM_CLOCK) -> Transport:
        """Load the credentials and make the pool. Connects to nothing yet."""
        return cls(source, await source.load(), clock)

    async def close(self) -> None:
        """Close every connection, watches included."""
        self._write_pool.close()
        for session in (*self._retired, self._session):
            await session.close()

    async def send(
        self,
        method: str,
        path: str,
        headers: CIMultiDict[str],
        body: bytes | None,
        limit: aiohttp.ClientTimeout,
        before_write: Callable[[], None] = lambda: None,
    ) -> Answer:
        """Send one request and read the whole answer. `before_write` is called right before a write is sent, and may raise."""
        if self._session.closed:  # otherwise a read after a lost answer would repeat forever
            raise SchedulerError(f"{method} {path.partition('?')[0]}: the client is closed")
        if self._clock.monotonic() >= self._renew_at:
            await self.renew(refused=False)
        # The write pool speaks to the server itself; it knows no proxies.
        if method != "GET" and self._proxy is None:
            return await self._write(method, path, headers, body or b"", limit.total or 0.0, before_write)
        if method != "GET":
            before_write()
        try:
            async with self._session.request(
                method,
                URL(self._base + path, encoded=True),
                data=body,
                headers=self._signed(headers),
                proxy=self._proxy,
                server_hostname=self.credentials.tls_server_name,
                timeout=limit,
                allow_redirects=False,
            ) as response:
                body = await self._whole(response, f"{method} {path.partition('?')[0]}")
                return Answer(response.status, response.headers.get("Retry-After"), body)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._broken(error, f"{method} {path.partition('?')[0]}") from error

    async def _write(
        self,
        method: str,
        path: str,
        headers: CIMultiDict[str],
        body: bytes,
        seconds: float,
        before_write: Callable[[], None],
    ) -> Answer:
        # All header lines but Content-Length are the same from one write to the next, so they are made once.
        _, fixed = self._heads.get(id(headers)) or self._head(headers)
        head = f"{method} {self._prefix}{path} HTTP/1.1\r\n{fixed}Content-Length: {len(body)}\r\n\r\n"
        try:
            reply = await self._write_pool.send(head.encode("latin-1") + body, seconds, before_write)
        except (NotConnected, OSError, TimeoutError) as error:
            raise self._broken(error, f"{method} {path.partition('?')[0]}") from error
        return Answer(reply.status, reply.header("Retry-After") if reply.status >= 400 else None, reply.body)

    def _head(self, headers: CIMultiDict[str]) -> tuple[CIMultiDict[str], str]:
        """Return the header lines that all requests with these headers share, and cache them."""
        signed = self._signed(headers).copy()
        signed["Host"] = urlsplit(self._base).netloc
        signed.popall("Accept-Encoding", None)  # answers to writes are small
        text = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
        if len(text.splitlines()) != len(signed):
            raise Unreachable(f"{self._base}: a credential from {self.credentials.origin} has a line break in it")
        made = self._heads[id(headers)] = headers, text  # holding them, so that nothing else gets their address
        return made

    @asynccontextmanager
    async def stream(self, path: str, headers: CIMultiDict[str], longest_silence: float) -> AsyncIterator[Stream]:
        """Open a GET whose answer arrives in pieces. The connection is closed at the end."""
        if self._clock.monotonic() >= self._renew_at:
            await self.renew(refused=False)
        what = f"GET {path.partition('?')[0]}"
        # No limit for the whole: a watch lives for minutes. Each read has one.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_SECONDS, sock_read=longest_silence)
        try:
            response = await self._session.get(
                URL(self._base + path, encoded=True),
                headers=self._signed(headers),
                proxy=self._proxy,
                server_hostname=self.credentials.tls_server_name,
                timeout=timeout,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._broken(error, what) from error
        try:
            yield Stream(self, response, what)
        finally:
            response.close()

    async def renew(self, *, refused: bool) -> bool:
        """Load fresh credentials; return whether they differ. If there are none the old ones stay, because the server's refusal
        explains more than a missing file."""
        before = self.credentials
        async with self._renewing:
            # Many requests may get a 401 at the same moment. The first one reloads, the others find its result.
            if self.credentials is not before:
                return True  # another request did it meanwhile
            self._renew_at = self._clock.monotonic() + RENEW_EVERY_SECONDS
            try:
                fresh = await self._source.renew(refused=refused)
            except ConfigError as error:
                log.warning("credentials could not be renewed, going on with the old ones: %s", error)
                return False
            # The files keep their names when certificates are rotated, so their times are compared too.
            marks = _certificate_marks(fresh)
            if fresh == before and marks == self._certificates:
                return False
            replace_session = marks != self._certificates
            self._certificates = marks
            self._adopt(fresh)
            if replace_session:
                # Open connections keep the old certificate. Their watches end by themselves; new requests use a new pool.
                for session in self._retired:
                    await session.close()
                self._retired = [self._session]
                self._write_pool.retire()
                self._session, self._write_pool = self._new_pool()
            return True

    def _adopt(self, credentials: Credentials) -> None:
        self.credentials = credentials
        self._base = credentials.server
        self._prefix = urlsplit(credentials.server).path
        self._heads: dict[int, tuple[CIMultiDict[str], str]] = {}
        self._proxy = credentials.proxy or _proxy_from_environment(credentials.server)

    def _signed(self, headers: CIMultiDict[str]) -> CIMultiDict[str]:
        credentials = self.credentials
        # Client certificates need no header: nearly every request then shares one mapping.
        if not credentials.authorization and not credentials.impersonation and not self._without_gzip:
            return headers
        signed = headers.copy()
        if self._without_gzip:
            signed[hdrs.ACCEPT_ENCODING] = "identity"
        if credentials.authorization:
            signed[hdrs.AUTHORIZATION] = credentials.authorization
        signed.extend(credentials.impersonation)
        return signed

    def _new_pool(self) -> tuple[aiohttp.ClientSession, WritePool]:
        tls = _tls(self.credentials) if self._base.startswith("https") else None
        connector = aiohttp.TCPConnector(
            limit=0,  # each client has its own limit, so a stuck one cannot keep the lease from being renewed
            ssl=tls or True,
            keepalive_timeout=90.0,
            socket_factory=_watchful_socket,
        )
        session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), read_bufsize=READ_BUFFER_BYTES
        )
        # aiohttp would silently send a PUT or DELETE again when the connection breaks. A replaced object then looks like a
        # conflict with ourselves. The caller decides about repeating. There is no public switch.
        session._retry_connection = False
        parts = urlsplit(self._base)
        port = parts.port or (443 if tls is not None else 80)
        return session, WritePool(parts.hostname or "", port, tls, self.credentials.tls_server_name)

    async def _whole(self, response: aiohttp.ClientResponse, what: str) -> bytes:
        """Return the rest of an answer, unpacked, up to a limit: a small gzip can unpack to gigabytes."""
        body = bytearray()
        while chunk := await response.content.readany():
            body += chunk
            if len(body) > LARGEST_ANSWER_BYTES:
                text = f"{what}: the answer of {self.credentials.server} is larger than {LARGEST_ANSWER_BYTES >> 20} MiB"
                # Repeating a GET would bring the same answer. A write may have been carried out.
                raise SchedulerError(text) if response.method == "GET" else AnswerLost(text)
        if body.startswith(GZIP_BEGINS):
            raise self._spoiled_gzip(what)
        return bytes(body)

    def _spoiled_gzip(self, what: str) -> AnswerLost:
        self._without_gzip = True
        found = "cannot be unpacked, or lacks its Content-Encoding; is there a proxy that changes answers?"
        return AnswerLost(f"{what}: {self.credentials.server}: gzip {found} Asking for no compression from now on")

    def _broken(self, error: BaseException, what: str) -> SchedulerError:
        server, origin = self.credentials.server, self.credentials.origin
        if isinstance(error.__cause__, ContentEncodingError):
            return self._spoiled_gzip(what)
        # Subclasses first. What comes before any byte was sent is Unreachable; what may come after it is AnswerLost.
        if isinstance(error, aiohttp.ClientProxyConnectionError):
            cause = _reason(error.os_error)
            return Unreachable(f"{server}: the proxy {self._proxy} cannot be reached ({cause}); check proxy-url in {origin}")
        if isinstance(error, aiohttp.ClientConnectorError):
            found = getattr(error, "certificate_error", error.os_error)
            return Unreachable(f"{server}: {_no_connection(found, origin)}")
        if isinstance(error, NotConnected):
            return Unreachable(f"{server}: {_no_connection(error.__cause__ or error, origin)}")
        if isinstance(error, aiohttp.ClientHttpProxyError):
            status = f"{error.status} {error.message}"
            return Unreachable(f"{server}: the proxy {self._proxy} answered {status}; check proxy-url in {origin}")
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return Unreachable(f"{server}: {_no_connection(error, origin)}")
        if isinstance(error, TimeoutError):
            return AnswerLost(f"{what}: no answer in time from {server}")
        if isinstance(error, aiohttp.ClientResponseError):
            return AnswerLost(f"{what}: {server} does not speak HTTP as expected ({error.message})")
        return AnswerLost(f"{what}: the connection to {server} broke before the answer was complete")


class Stream:
    """An answer that arrives in pieces."""

    def __init__(self, transport: Transport, response: aiohttp.ClientResponse, what: str) -> None:
        self.status = response.status
        self.headers = response.headers
        self._transport, self._response, self._what = transport, response, what
        self._is_flowing = False

    async def read(self) -> bytes:
        """Wait for data and return it; b"" at the end.

        The first pieces are returned at once. If many small ones follow, the socket is not read for 5 ms at a time, so that
        they arrive together: at 2,000 events a second, waking up for each costs more than decoding it.
        """
        loop = asyncio.get_running_loop()
        try:
            if self._is_flowing:
                await self._gather()
            began = loop.time()
            chunk = await self._response.content.readany()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._transport._broken(error, self._what) from error
        if chunk.startswith(GZIP_BEGINS):
            raise self._transport._spoiled_gzip(self._what)
        self._is_flowing = len(chunk) < ENOUGH_BYTES and loop.time() - began < GATHER_SECONDS
        return chunk

    async def _gather(self) -> None:
        connection = self._response.connection
        wire = connection.transport if connection is not None else None
        # While reading is paused the kernel buffers, and TCP holds the server back if that is not enough. Nothing is lost.
        if wire is None or wire.is_closing():
            return
        wire.pause_reading()
        try:
            await asyncio.sleep(GATHER_SECONDS)
        finally:
            if not wire.is_closing():
                wire.resume_reading()

    async def read_all(self) -> bytes:
        """Return the rest of the answer."""
        try:
            return await self._transport._whole(self._response, self._what)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._transport._broken(error, self._what) from error


def _no_connection(cause: BaseException, origin: str) -> str:
    """Return why there is no connection, and what to check."""
    if isinstance(cause, ssl.CertificateError):
        found = getattr(cause, "verify_message", "") or str(cause)
        return f"its certificate is not trusted ({found}); check certificate-authority and the address in {origin}"
    if isinstance(cause, ssl.SSLError):
        return f"TLS failed ({_reason(cause)}); is it an HTTPS server, and is the client certificate in {origin} right?"
    if isinstance(cause, socket.gaierror):
        return f"the name cannot be resolved ({_reason(cause)}); check the address in {origin}"
    if isinstance(cause, TimeoutError):
        return f"no connection within {CONNECT_TIMEOUT_SECONDS:g} s; the address comes from {origin}"
    if isinstance(cause, ConnectionRefusedError) or f"[Errno {errno.ECONNREFUSED}]" in str(cause):
        return f"connection refused; is the API server running there? The address comes from {origin}"
    if isinstance(cause, ConnectionResetError):  # a plain HTTP server does this at a TLS greeting
        return f"the connection was closed at once; is it an HTTPS server? The address comes from {origin}"
    return f"cannot connect ({_reason(cause)}); the address comes from {origin}"


def _reason(error: BaseException) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _tls(credentials: Credentials) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=credentials.ca_file)
        # CAs made by older tools lack extensions that newer Pythons require. kube-scheduler does not require them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not credentials.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if credentials.cert_file:
            context.load_cert_chain(credentials.cert_file, credentials.key_file)
    except (ssl.SSLError, OSError) as error:
        files = ", ".join(name for name in (credentials.ca_file, credentials.cert_file, credentials.key_file) if name)
        raise ConfigError(credentials.origin, f"certificates cannot be used ({error}): {files}") from error
    return context


def _certificate_marks(credentials: Credentials) -> tuple[tuple[str, int], ...]:
    """Return names and times of the certificate files. They change when certificates are rotated."""
    marks = []
    for name in (credentials.ca_file, credentials.cert_file, credentials.key_file):
        if name:
            try:
                marks.append((name, os.stat(name).st_mtime_ns))
            except OSError:  # the file is being replaced: see the next time
                marks.append((name, 0))
    return tuple(marks)


def _proxy_from_environment(server: str) -> str | None:
    parts = urlsplit(server)
    host = parts.hostname or ""
    # As Go's ProxyFromEnvironment: a proxy is never used for this machine itself.
    if host == "localhost" or host.startswith("127.") or host == "::1" or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def _watchful_socket(address: tuple[object, ...]) -> socket.socket:
    family, kind, proto = address[0], address[1], address[2]
    made = socket.socket(family=family, type=kind, proto=proto)  # type: ignore[arg-type]
    make_watchful(made)
    return made
