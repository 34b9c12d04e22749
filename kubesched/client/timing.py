"""Time and chance, as this room needs them, and how long to wait after a failure.

Nothing here reads a clock or rolls dice on its own; a test hands in a clock that it moves and a chance that it knows.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable
from typing import Protocol


class ClientClock(Protocol):
    """Time."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""
        ...

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait."""
        ...


class Chance(Protocol):
    """Randomness; `random.Random` fits."""

    def random(self) -> float:
        """Return a number from 0 up to, but not including, 1."""
        ...


class SystemClientClock:
    """The clock on the wall."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> Awaitable[None]:
        return asyncio.sleep(seconds)


SYSTEM_CLOCK: ClientClock = SystemClientClock()
SYSTEM_CHANCE: Chance = random.SystemRandom()


class Backoff:
    """Waiting times that double up to a cap, each stretched by up to `jitter` of itself; quiet starts them over."""

    def __init__(
        self,
        clock: ClientClock,
        chance: Chance,
        *,
        first: float = 0.8,
        cap: float = 30.0,
        factor: float = 2.0,
        jitter: float = 1.0,
        quiet: float = 120.0,
    ) -> None:
        self._clock, self._chance = clock, chance
        self._first, self._cap, self._factor, self._jitter, self._quiet = first, cap, factor, jitter, quiet
        self._delay = first
        self._last: float | None = None

    def next(self) -> float:
        """Return how many seconds to wait before the next try."""
        now = self._clock.monotonic()
        if self._last is not None and now - self._last > self._quiet:
            self._delay = self._first
        self._last = now
        delay = self._delay
        self._delay = min(delay * self._factor, self._cap)
        return delay * (1.0 + self._jitter * self._chance.random())

    async def pause(self) -> None:
        """Wait for the next try."""
        await self._clock.sleep(self.next())
