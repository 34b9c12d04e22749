"""Limits for log lines about what happens thousands of times a second: once a minute, or so many lines a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kubesched.telemetry.logs import Logger

SECONDS = 60.0


class Throttle:
    """Logs one message at most once a minute, with how often it happened since the last line."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._next = float("-inf")
        self._n_since = 0

    def warning(self, log: Logger, message: str, **values: Any) -> None:
        """Log the message, unless it was logged within the last minute."""
        self._n_since += 1
        if self.is_due():
            log.warning(message, **values, **({"times": self._n_since} if self._n_since > 1 else {}))
            self._n_since = 0

    def is_due(self) -> bool:
        """Return whether a minute has passed since this last returned true."""
        now = self._now()
        if now < self._next:
            return False
        self._next = now + SECONDS
        return True


class LineBudget:
    """A token bucket: so many lines a second on average, more in a burst. The rest is counted."""

    def __init__(self, per_second: float, burst: int, now: Callable[[], float] = time.monotonic) -> None:
        self.n_left_out = 0
        self._per_second, self._burst = per_second, burst
        self._now = now
        self._tokens, self._at = float(burst), now()

    def take(self) -> bool:
        """Return whether there is room for one more line."""
        now = self._now()
        # A full bucket after a quiet time: a small cluster has every line in its log, and only a burst is cut short.
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second)
        self._at = now
        if self._tokens < 1.0:
            self.n_left_out += 1
            return False
        self._tokens -= 1.0
        return True
