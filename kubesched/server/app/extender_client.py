"""The HTTP client for extenders: one POST, one answer, with a limit on time and size.

As in kube-scheduler, `httpTimeout` covers everything: name lookup, connecting, sending, and reading headers and body. `post`
blocks, because it is called from the thread that decides. The request itself runs on an event loop in a thread of its own,
which can cancel it when the time is over.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
import threading
from types import SimpleNamespace
from typing import Any

import aiohttp

from kubesched.errors import SchedulerError
from kubesched.scheduler.config import Extender

MAX_ANSWER_BYTES = 64 << 20
DEFAULT_SECONDS = 5.0
"""The limit for an extender without `httpTimeout`; policies of old releases have none."""


class HttpPoster:
    """Posts to extenders, from any thread; keeps connections to them alive."""

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[int, tuple[Extender, ssl.SSLContext]] = {}
        """By id(extender). The extender is kept too, so that no other object gets its id."""

    def post(self, url: str, body: bytes, extender: Extender) -> bytes:
        """Post JSON and return the answer's body."""
        return asyncio.run_coroutine_threadsafe(self._post(url, body, extender), self._started()).result()

    def close(self) -> None:
        """Cancel requests under way, close connections, end the thread."""
        with self._starting:
            loop, self._loop = self._loop, None
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self._end(), loop).result()
            loop.call_soon_threadsafe(loop.stop)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            # Started by the first request: most configurations have no extenders. The lock, because Filter and Bind may come
            # from two threads.
            if self._loop is None:
                self._loop = loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(loop,), name="extenders", daemon=True).start()
            return self._loop

    async def _end(self) -> None:
        # Their callers wait in `result()`, in other threads. Cancelled, they get an exception and go on; otherwise they would
        # wait for a loop that has stopped.
        under_way = asyncio.all_tasks() - {asyncio.current_task()}
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _post(self, url: str, body: bytes, extender: Extender) -> bytes:
        seconds = extender.http_timeout.seconds or DEFAULT_SECONDS
        try:
            # Around everything, also a second try: `httpTimeout` of Go's client covers the whole exchange.
            async with asyncio.timeout(seconds):
                return await self._answer(url, body, extender)
        except TimeoutError as error:
            raise SchedulerError(f"extender at {url}: no answer within {seconds:g} s") from error
        except (OSError, ValueError, aiohttp.ClientError) as error:
            raise SchedulerError(f"extender at {url}: {str(error) or type(error).__name__}") from error

    async def _answer(self, url: str, body: bytes, extender: Extender) -> bytes:
        """Make the exchange; once more if it was tried on an old connection that the other side had closed meanwhile."""
        while True:
            # aiohttp tells only through tracing whether a connection was used before. A failure on a fresh one is final; on an
            # old one the other side may just have closed it, so the request is sent again.
            way = SimpleNamespace(is_old=False)
            try:
                return await self._exchange(url, body, extender, way)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if not way.is_old:
                    raise

    async def _exchange(self, url: str, body: bytes, extender: Extender, way: SimpleNamespace) -> bytes:
        if self._session is None:
            self._session = _new_session()
        is_secure, tls = url.startswith("https:"), extender.tls_config
        async with self._session.post(
            url,
            data=body,
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity"},
            allow_redirects=False,
            ssl=self._context(extender) if is_secure else True,
            server_hostname=(tls.server_name or None) if tls is not None and is_secure else None,
            trace_request_ctx=way,
        ) as response:
            # The announced length is checked before reading, and the real one while reading: a length may be missing, or wrong.
            answer, announced = bytearray(), response.content_length or 0
            while announced <= MAX_ANSWER_BYTES and (chunk := await response.content.readany()):
                answer += chunk
                announced = max(announced, len(answer))
            if announced > MAX_ANSWER_BYTES:
                raise SchedulerError(f"extender at {url}: the answer is larger than {MAX_ANSWER_BYTES >> 20} MiB")
            if response.status != 200:
                verb = url.rsplit("/", 1)[-1]
                raise SchedulerError(f"failed {verb} with extender at URL {url}, code {response.status}")
            return bytes(answer)

    def _context(self, extender: Extender) -> ssl.SSLContext:
        known = self._contexts.get(id(extender))
        if known is None:
            known = self._contexts[id(extender)] = extender, _trust(extender)
        return known[1]


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, and close it."""
    loop.run_forever()
    loop.close()


def _new_session() -> aiohttp.ClientSession:
    """Return a session without memory of its own (cookies), limits of its own (time), or kindness to bombs (compression)."""

    async def reused(session: Any, way: Any, params: Any) -> None:
        way.trace_request_ctx.is_old = True

    tracing = aiohttp.TraceConfig()
    tracing.on_connection_reuseconn.append(reused)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trace_configs=[tracing],
    )


def _trust(extender: Extender) -> ssl.SSLContext:
    """Return how to trust an extender: without an authority, HTTPS is not verified, as in the reference."""
    given = extender.tls_config
    context = ssl.create_default_context()
    # As with the API server: newer Pythons ask for more of a certificate than the reference does.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
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
        # Python loads a certificate with its key from files only.
        with tempfile.NamedTemporaryFile() as both:
            both.write(given.cert_data + b"\n" + given.key_data)
            both.flush()
            context.load_cert_chain(both.name)
    elif given.cert_file:
        context.load_cert_chain(given.cert_file, given.key_file or None)
    return context
