"""Saying at most once a minute what a stranger can make happen a thousand times a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kubesched.telemetry.logs import Logger

SECONDS = 60.0


class Throttle:
    """One thing to say. A line tells how often it happened since the one before."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._next = float("-inf")
        self._n_since = 0

    def warning(self, log: Logger, message: str, **values: Any) -> None:
        """Say it, unless it was said within the last minute."""
        self._n_since += 1
        now = self._now()
        if now >= self._next:
            log.warning(message, **values, **({"times": self._n_since} if self._n_since > 1 else {}))
            self._next, self._n_since = now + SECONDS, 0
