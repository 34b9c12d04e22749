"""The wire: one pool of kept-alive HTTP connections to one API server, with its TLS and its credentials.

In: a method, a path, headers, a body. Out: status, headers and body, or a stream of chunks. What aiohttp raises becomes
`Unreachable` (nothing went out) or `AnswerLost` (it may have been carried out), in one line that says where the address
comes from. Nothing is retried here, and no status code has a meaning here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

import aiohttp
from aiohttp import hdrs
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from kubesched.client.credentials import Credentials, CredentialSource
from kubesched.client.timing import SYSTEM_CLOCK, Clock
from kubesched.errors import AnswerLost, ConfigError, SchedulerError, Unreachable

CONNECT_TIMEOUT_SECONDS = 30.0
RENEW_EVERY_SECONDS = 60.0
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
GATHER_SECONDS = 0.005  # at 2,000 events a second this makes one wake-up of ten
ENOUGH_BYTES = 1 << 16
READ_BUFFER_BYTES = 1 << 18  # larger chunks of a watch are parsed with fewer calls

log = logging.getLogger(__name__)


def time_limit(seconds: float) -> aiohttp.ClientTimeout:
    """Return the time that a whole request may take."""
    return aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_TIMEOUT_SECONDS)


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes


class Transport:
    """The pool. Make one with `open`; close it when done."""

    def __init__(self, source: CredentialSource, credentials: Credentials, clock: Clock) -> None:
        self.credentials = credentials
        self._source = source
        self._clock = clock
        self._renew_at = clock.monotonic() + RENEW_EVERY_SECONDS
        self._renewing = asyncio.Lock()
        self._certificates = _certificate_marks(credentials)
        self._retired: list[aiohttp.ClientSession] = []
        self._adopt(credentials)
        self._session = self._new_session()

    @classmethod
    async def open(cls, source: CredentialSource, clock: Clock = SYSTEM_CLOCK) -> Transport:
        """Load the credentials and make the pool. Connects to nothing yet."""
        return cls(source, await source.load(), clock)

    async def close(self) -> None:
        """Close every connection, watches included."""
        for session in (*self._retired, self._session):
            await session.close()

    async def send(
        self, method: str, path: str, headers: CIMultiDict[str], body: bytes | None, limit: aiohttp.ClientTimeout
    ) -> Answer:
        """Send one request and read the whole answer."""
        if self._clock.monotonic() >= self._renew_at:
            await self.renew(refused=False)
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
                return Answer(response.status, response.headers, await response.read())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._broken(error, f"{method} {path.partition('?')[0]}") from error

    @asynccontextmanager
    async def stream(self, path: str, headers: CIMultiDict[str], longest_silence: float) -> AsyncIterator[Stream]:
        """Open a GET whose answer arrives bit by bit; the connection is closed on leaving."""
        if self._clock.monotonic() >= self._renew_at:
            await self.renew(refused=False)
        what = f"GET {path.partition('?')[0]}"
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
        """Ask the source for credentials that still hold; return whether they differ from the last.

        When it has none, the old ones stay: the server's refusal says more to the one who asked than a file's absence.
        """
        before = self.credentials
        async with self._renewing:
            if self.credentials is not before:
                return True  # somebody else did it while we waited
            self._renew_at = self._clock.monotonic() + RENEW_EVERY_SECONDS
            try:
                fresh = await self._source.renew(refused=refused)
            except ConfigError as error:
                log.warning("credentials could not be renewed, going on with the old ones: %s", error)
                return False
            marks = _certificate_marks(fresh)
            if fresh == before and marks == self._certificates:
                return False
            replace_session = marks != self._certificates
            self._certificates = marks
            self._adopt(fresh)
            if replace_session:
                # A kept-alive connection goes on being the old certificate's; watches on it may run out by themselves.
                for session in self._retired:
                    await session.close()
                self._retired = [self._session]
                self._session = self._new_session()
            return True

    def _adopt(self, credentials: Credentials) -> None:
        self.credentials = credentials
        self._base = credentials.server
        self._proxy = credentials.proxy or _proxy_from_environment(credentials.server)

    def _signed(self, headers: CIMultiDict[str]) -> CIMultiDict[str]:
        credentials = self.credentials
        if not credentials.authorization and not credentials.impersonation:
            return headers
        signed = headers.copy()
        if credentials.authorization:
            signed[hdrs.AUTHORIZATION] = credentials.authorization
        signed.extend(credentials.impersonation)
        return signed

    def _new_session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=0,  # each client limits itself, so that one that is stuck cannot keep the lease from being renewed
            ssl=_tls(self.credentials) if self._base.startswith("https") else True,
            keepalive_timeout=90.0,
            socket_factory=_watchful_socket,
        )
        session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), read_bufsize=READ_BUFFER_BYTES
        )
        # aiohttp would send a PUT or DELETE a second time when the connection breaks, without telling: a replaced
        # object then looks like a conflict with ourselves. Whoever asked decides about that. There is no public switch.
        session._retry_connection = False
        return session

    def _broken(self, error: BaseException, what: str) -> SchedulerError:
        server, origin = self.credentials.server, self.credentials.origin
        if isinstance(error, aiohttp.ClientConnectorError):
            return Unreachable(f"{server}: {_no_connection(error, origin, self._proxy)}")
        if isinstance(error, aiohttp.ClientHttpProxyError):
            said = f"{error.status} {error.message}"
            return Unreachable(f"{server}: the proxy {self._proxy} answered {said}; check proxy-url in {origin}")
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return Unreachable(f"{server}: no connection within {CONNECT_TIMEOUT_SECONDS:g} s; address from {origin}")
        if isinstance(error, TimeoutError):
            return AnswerLost(f"{what}: no answer in time from {server}")
        if isinstance(error, aiohttp.ClientResponseError):
            return AnswerLost(f"{what}: {server} does not speak HTTP as expected ({error.message})")
        return AnswerLost(f"{what}: the connection to {server} broke before the answer was complete")


class Stream:
    """An answer in the making."""

    def __init__(self, transport: Transport, response: aiohttp.ClientResponse, what: str) -> None:
        self.status = response.status
        self.headers = response.headers
        self._transport, self._response, self._what = transport, response, what
        self._is_flowing = False

    async def read(self) -> bytes:
        """Return what has arrived, waiting for something to; b"" at the end.

        The first pieces come at once. When many small ones follow each other, the socket is left alone for a few
        milliseconds in between, so that they arrive together: waking up for each costs more than decoding it.
        """
        loop = asyncio.get_running_loop()
        try:
            if self._is_flowing:
                await self._gather()
            began = loop.time()
            chunk = await self._response.content.readany()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._transport._broken(error, self._what) from error
        self._is_flowing = len(chunk) < ENOUGH_BYTES and loop.time() - began < GATHER_SECONDS
        return chunk

    async def _gather(self) -> None:
        connection = self._response.connection
        wire = connection.transport if connection is not None else None
        if wire is None or wire.is_closing():
            return
        wire.pause_reading()
        try:
            await asyncio.sleep(GATHER_SECONDS)
        finally:
            if not wire.is_closing():
                wire.resume_reading()

    async def read_all(self) -> bytes:
        """Return the whole rest."""
        try:
            return await self._response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._transport._broken(error, self._what) from error


def _no_connection(error: aiohttp.ClientConnectorError, origin: str, proxy: str | None) -> str:
    """Return why no connection came about, and what to look at."""
    cause = error.os_error.strerror or str(error.os_error)
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
        return f"its certificate is not trusted ({cause}); check certificate-authority and the address in {origin}"
    if isinstance(error, aiohttp.ClientSSLError):
        return f"TLS failed ({cause}); is it an HTTPS server, and is the client certificate in {origin} right?"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"the proxy {proxy} cannot be reached ({cause}); check proxy-url in {origin} and HTTPS_PROXY"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the name cannot be resolved ({cause}); check the address in {origin}"
    if isinstance(error.os_error, ConnectionRefusedError):
        return f"connection refused; is the API server running there? The address comes from {origin}"
    return f"cannot connect ({cause}); the address comes from {origin}"


def _tls(credentials: Credentials) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=credentials.ca_file)
        # Cluster CAs made by older tools lack extensions that newer Pythons would insist on; the reference does not.
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
    """Return names and times of the certificate files, to notice that they were rotated."""
    marks = []
    for name in (credentials.ca_file, credentials.cert_file, credentials.key_file):
        if name:
            try:
                marks.append((name, os.stat(name).st_mtime_ns))
            except OSError:  # the file is being replaced: the next look will tell
                marks.append((name, 0))
    return tuple(marks)


def _proxy_from_environment(server: str) -> str | None:
    parts = urlsplit(server)
    host = parts.hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1" or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def _watchful_socket(address: tuple[object, ...]) -> socket.socket:
    """Return a socket that notices a dead peer within a minute, because a watch may be silent for much longer."""
    family, kind, proto = address[0], address[1], address[2]
    made = socket.socket(family=family, type=kind, proto=proto)  # type: ignore[arg-type]
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE.items():
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made
