"""The wire to HTTP extenders: one POST, one answer, within a time and a size.

In: an address, a JSON body, how to trust the other side. Out: the answer's body, or one line that says why there is none.
Calls wait, on purpose: they are made from the thread of an attempt.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import tempfile
from typing import Protocol
from urllib.parse import urlsplit

from kubesched.errors import SchedulerError

MAX_ANSWER_BYTES = 64 << 20


class Tls(Protocol):
    """What of an extender's configuration says how to trust it."""

    @property
    def insecure(self) -> bool: ...
    @property
    def server_name(self) -> str: ...
    @property
    def cert_file(self) -> str: ...
    @property
    def key_file(self) -> str: ...
    @property
    def ca_file(self) -> str: ...
    @property
    def cert_data(self) -> bytes: ...
    @property
    def key_data(self) -> bytes: ...
    @property
    def ca_data(self) -> bytes: ...


class Seconds(Protocol):
    """A length of time."""

    @property
    def seconds(self) -> float: ...


class Target(Protocol):
    """What of an extender's configuration says how to reach it."""

    @property
    def tls_config(self) -> Tls | None: ...
    @property
    def http_timeout(self) -> Seconds: ...


class HttpPoster:
    """Posts to extenders; keeps a connection to each alive."""

    def __init__(self) -> None:
        self._open: dict[str, http.client.HTTPConnection] = {}
        self._contexts: dict[int, ssl.SSLContext] = {}

    def post(self, url: str, body: bytes, extender: Target) -> bytes:
        """Post JSON and return the answer's body."""
        parts = urlsplit(url)
        is_secure = parts.scheme == "https"
        key = f"{'https' if is_secure else 'http'}://{parts.netloc}"
        seconds = extender.http_timeout.seconds
        for is_fresh in (key not in self._open, True):
            connection = self._open.pop(key, None)
            try:
                if connection is None or is_fresh:
                    connection = self._connect(parts.netloc, is_secure, extender, seconds)
                answer = self._exchange(connection, parts.path or "/", body, url)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
                _close(connection)
                if is_fresh:
                    raise SchedulerError(f"extender at {url}: {error}") from error
                continue  # an old connection that the other side had closed meanwhile
            except (OSError, http.client.HTTPException) as error:
                _close(connection)
                what = f"no answer within {seconds:g} s" if isinstance(error, TimeoutError) else str(error)
                raise SchedulerError(f"extender at {url}: {what}") from error
            self._open[key] = connection
            return answer
        raise SchedulerError(f"extender at {url}: the connection was closed")

    def _exchange(self, connection: http.client.HTTPConnection, path: str, body: bytes, url: str) -> bytes:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read(MAX_ANSWER_BYTES + 1)
        if len(answer) > MAX_ANSWER_BYTES:
            connection.close()
            raise SchedulerError(f"extender at {url}: the answer is larger than {MAX_ANSWER_BYTES >> 20} MiB")
        if response.status != 200:
            verb = path.rsplit("/", 1)[-1]
            raise SchedulerError(f"failed {verb} with extender at URL {url}, code {response.status}")
        return answer

    def _connect(self, netloc: str, is_secure: bool, extender: Target, seconds: float) -> http.client.HTTPConnection:
        if not is_secure:
            return http.client.HTTPConnection(netloc, timeout=seconds)
        connection = http.client.HTTPSConnection(netloc, timeout=seconds, context=self._context(extender))
        named = extender.tls_config.server_name if extender.tls_config is not None else ""
        if named:
            self._secure_as(connection, named, self._context(extender), seconds)
        return connection

    @staticmethod
    def _secure_as(connection: http.client.HTTPSConnection, name: str, context: ssl.SSLContext, seconds: float) -> None:
        """Connect now, expecting a certificate for another name than the address has."""
        plain = socket.create_connection((connection.host, connection.port), seconds)
        connection.sock = context.wrap_socket(plain, server_hostname=name)

    def _context(self, extender: Target) -> ssl.SSLContext:
        context = self._contexts.get(id(extender))
        if context is None:
            context = self._contexts[id(extender)] = _trust(extender)
        return context


def _close(connection: http.client.HTTPConnection | None) -> None:
    if connection is not None:
        connection.close()


def _trust(extender: Target) -> ssl.SSLContext:
    """Return how to trust an extender: without an authority, HTTPS is not verified, as in the reference."""
    given = extender.tls_config
    context = ssl.create_default_context()
    if given is None or given.insecure or not (given.ca_file or given.ca_data):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if given is None:
        return context
    if given.ca_data:
        context.load_verify_locations(cadata=given.ca_data.decode())
    elif given.ca_file:
        context.load_verify_locations(given.ca_file)
    if given.cert_data and given.key_data:
        with tempfile.NamedTemporaryFile() as both:
            both.write(given.cert_data + b"\n" + given.key_data)
            both.flush()
            context.load_cert_chain(both.name)
    elif given.cert_file:
        context.load_cert_chain(given.cert_file, given.key_file or None)
    return context
