"""The client's own rate limit: `clientConnection.qps` requests a second, with bursts of `burst`.

A token bucket. If it is empty, a request takes a token that is still to come and waits for it, so requests leave in the order
in which they came. With qps 50 and an empty bucket, three requests wait 20, 40 and 60 ms. If requests wait for a second or
more the log says that this limit, and not the scheduler, holds throughput; at most every ten seconds.
"""

from __future__ import annotations

import logging

from kubesched.kube.client.timing import ClientClock

DEFAULT_QPS = 50.0
DEFAULT_BURST = 100
LONG_WAIT_SECONDS = 1.0
REPORT_EVERY_SECONDS = 10.0

log = logging.getLogger(__name__)


class TokenBucket:
    """Tokens that come in at `qps` a second, up to `burst`. A `qps` of 0 means the default, a negative one no limit."""

    def __init__(self, qps: float, burst: int, clock: ClientClock, name: str = "") -> None:
        self.qps = qps or DEFAULT_QPS
        self.burst = burst or DEFAULT_BURST
        self._clock = clock
        self._name = name
        self._tokens = float(self.burst)
        self._filled_at = clock.monotonic()
        self._reported_at: float | None = None
        self._n_held = 0
        self._longest = 0.0

    @property
    def is_limited(self) -> bool:
        return self.qps > 0

    def take(self) -> float:
        """Take the next token, and return the seconds until it comes."""
        if self.qps < 0:
            return 0.0
        now = self._clock.monotonic()
        # Below zero the bucket has given tokens away that are still to come. So each request knows its own wait at once, and no
        # queue is needed.
        self._tokens = min(float(self.burst), self._tokens + (now - self._filled_at) * self.qps) - 1.0
        self._filled_at = now
        if self._tokens >= 0.0:
            return 0.0
        wait = -self._tokens / self.qps
        if wait >= LONG_WAIT_SECONDS:
            self._report(now, wait)
        return wait

    async def acquire(self) -> None:
        """Wait until a request may go out."""
        wait = self.take()
        if wait > 0.0:
            await self._clock.sleep(wait)

    def _report(self, now: float, wait: float) -> None:
        self._n_held += 1
        self._longest = max(self._longest, wait)
        if self._reported_at is not None and now - self._reported_at < REPORT_EVERY_SECONDS:
            return
        log.warning(
            "client-side throttling holds throughput: %d requests%s had to wait, the longest %.1f s, under a limit of "
            "%g a second with bursts of %d; raise clientConnection.qps and clientConnection.burst to go faster",
            self._n_held,
            f" of client {self._name}" if self._name else "",
            self._longest,
            self.qps,
            self.burst,
        )
        self._reported_at = now
        self._n_held = 0
        self._longest = 0.0
