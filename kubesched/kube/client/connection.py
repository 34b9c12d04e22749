"""A connection to the API server, with a name, a rate limit and the rules for repeating requests.

    answer                        repeated
    429 or 5xx with Retry-After   any verb, up to ten times: the server says that it did nothing
    connection broken             GET only: a write may have been carried out
    401                           once, if renewed credentials differ from the refused ones
    anything else                 no: only the caller knows whether it is safe to do it twice (see writes/writer.py)

Scheduler, events and leader election have a connection each (`sibling`), over one pool. So a burst of events cannot use up the
rate limit that the lease needs.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata

from multidict import CIMultiDict

from kubesched.errors import AnswerLost, SchedulerError
from kubesched.kube.client.api_errors import refusal
from kubesched.kube.client.credentials import CredentialSource
from kubesched.kube.client.limiter import DEFAULT_BURST, DEFAULT_QPS, TokenBucket
from kubesched.kube.client.timing import SYSTEM_CLOCK, ClientClock
from kubesched.kube.client.transport import Answer, Stream, Transport, time_limit

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
DEFAULT_TIMEOUT_SECONDS = 65.0  # API servers give up after 60 themselves
MAX_RETRIES = 10
BROKEN_GET_PAUSE_SECONDS = 1.0

MAX_IN_FLIGHT = 64  # requests of one client, each on a TLS connection of its own with 256 KiB of buffer; watches aside

RequestObserver = Callable[[str, str, float], None]
"""Called after every answer with verb, status code (`<error>` if there was none) and seconds."""

WaitObserver = Callable[[str, float], None]
"""Called for every request with verb and the seconds that our rate limit delays it."""

RetryObserver = Callable[[str, str], None]
"""Called for every repeated request with verb and the status code before."""


@dataclass(frozen=True, slots=True)
class Observers:
    """Callbacks about requests, for metrics."""

    answer: RequestObserver | None = None
    wait: WaitObserver | None = None
    retry: RetryObserver | None = None


async def connect(
    source: CredentialSource,
    *,
    name: str = "scheduler",
    qps: float = DEFAULT_QPS,
    burst: int = DEFAULT_BURST,
    compress: bool = True,
    clock: ClientClock = SYSTEM_CLOCK,
    observers: Observers | None = None,
) -> Connection:
    """Load credentials and return a connection. Nothing is sent yet, so this works while the API server is away."""
    transport = await Transport.open(source, clock)
    return Connection(transport, name=name, qps=qps, burst=burst, compress=compress, clock=clock, observers=observers)


class Connection:
    """One client of the API server."""

    def __init__(
        self,
        transport: Transport,
        *,
        name: str = "scheduler",
        qps: float = DEFAULT_QPS,
        burst: int = DEFAULT_BURST,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        compress: bool = True,
        clock: ClientClock = SYSTEM_CLOCK,
        observers: Observers | None = None,
    ) -> None:
        self.name = name
        self.clock = clock
        self._transport = transport
        self._limiter = TokenBucket(qps, burst, clock, name)
        self._qps, self._burst, self._compress = qps, burst, compress
        self._time_limit = time_limit(timeout)
        self._observers = observers or Observers()
        self._in_flight = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._headers = CIMultiDict(
            {
                "User-Agent": _user_agent(name),
                "Accept": JSON,
                "Accept-Encoding": "gzip" if compress else "identity",
            }
        )
        self._headers_by_type: dict[str, CIMultiDict[str]] = {}

    def require_lead(self, what: str) -> None:
        """Raise `LeaseLost` if we may not write now. Here, without a lease, we always may (see leases/fencing.py)."""

    @property
    def server(self) -> str:
        """Return the address of the API server."""
        return self._transport.credentials.server

    @property
    def origin(self) -> str:
        """Return where the address and the credentials come from, for messages."""
        return self._transport.credentials.origin

    def sibling(
        self, name: str, *, qps: float | None = None, burst: int | None = None, timeout: float | None = None
    ) -> Connection:
        """Return a client of the same server with a rate limit of its own."""
        return Connection(
            self._transport,
            name=name,
            qps=self._qps if qps is None else qps,
            burst=self._burst if burst is None else burst,
            timeout=DEFAULT_TIMEOUT_SECONDS if timeout is None else timeout,
            compress=self._compress,
            clock=self.clock,
            observers=self._observers,
        )

    async def close(self) -> None:
        """Close the pool, for all siblings."""
        await self._transport.close()

    async def request(self, method: str, path: str, body: bytes | None = None, content_type: str = JSON) -> bytes:
        """Send a request and return the answer's body. `path` carries the query and is already escaped."""
        headers = self._headers if body is None else self._headers_for(content_type)
        n_retries, renewed = 0, False
        while True:
            # Before the semaphore: a request that waits for its token must not keep one of the 64 places. A repeated request
            # takes a token again.
            wait = self._limiter.take()
            if self._observers.wait is not None:
                self._observers.wait(method, wait)
            if wait > 0.0:
                await self.clock.sleep(wait)
            try:
                async with self._in_flight:
                    answer = await self._timed(method, path, headers, body)
            except AnswerLost as error:
                # A time-out is not repeated: the caller has waited long enough, and the server is slow already.
                if method != "GET" or n_retries >= MAX_RETRIES or isinstance(error.__cause__, TimeoutError):
                    raise
                n_retries += 1
                await self._pause(method, "<error>", BROKEN_GET_PAUSE_SECONDS)
                continue
            if answer.status < 300:
                return answer.body
            # Once: tokens expire, and the new one may be in the file. A second 401 is the server's answer.
            if answer.status == 401 and not renewed:
                renewed = True
                if await self._transport.renew(refused=True):
                    continue
            refused = refusal(answer.status, answer.body, f"{method} {path}", answer.retry_after)
            # As client-go: an answer with Retry-After is repeated, of a write too; one without is the caller's to judge.
            if answer.retry_after is None or refused.retry_after is None or n_retries >= MAX_RETRIES:
                raise refused
            if answer.status != 429 and answer.status < 500:
                raise refused
            n_retries += 1
            await self._pause(method, str(answer.status), refused.retry_after)

    @asynccontextmanager
    async def stream(self, path: str, longest_silence: float) -> AsyncIterator[Stream]:
        """Open a watch. It counts as one request for the rate limit. An error status is raised."""
        await self._limiter.acquire()
        async with self._transport.stream(path, self._headers, longest_silence) as stream:
            if stream.status >= 300:
                if stream.status == 401:
                    await self._transport.renew(refused=True)  # for the next try
                raise refusal(stream.status, await stream.read_all(), f"GET {path}", stream.headers.get("Retry-After"))
            yield stream

    async def _pause(self, method: str, code: str, seconds: float) -> None:
        if self._observers.retry is not None:
            self._observers.retry(method, code)
        await self.clock.sleep(seconds)

    async def _timed(self, method: str, path: str, headers: CIMultiDict[str], body: bytes | None) -> Answer:
        observe, began = self._observers.answer, self.clock.monotonic()
        try:
            answer = await self._transport.send(
                method, path, headers, body, self._time_limit, lambda: self.require_lead(f"{method} {path}")
            )
        except SchedulerError:
            if observe is not None:
                observe(method, "<error>", self.clock.monotonic() - began)
            raise
        if observe is not None:
            observe(method, str(answer.status), self.clock.monotonic() - began)
        return answer

    def _headers_for(self, content_type: str) -> CIMultiDict[str]:
        headers = self._headers_by_type.get(content_type)
        if headers is None:
            headers = self._headers.copy()
            headers["Content-Type"] = content_type
            self._headers_by_type[content_type] = headers
        return headers


@cache
def _user_agent(name: str) -> str:
    try:
        version = metadata.version("kubesched")
    except metadata.PackageNotFoundError:  # run from a checkout that was never installed
        version = "0"
    machine = f"{platform.system()}/{platform.machine()}".lower()
    return f"kubesched/{version} ({machine})" + (f"/{name}" if name else "")
