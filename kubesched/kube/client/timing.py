"""Clock and random numbers of the client, the waits after failures, and how often a failure is logged.

Clock and random numbers are parameters everywhere, so tests move the clock and know the numbers.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable
from typing import Protocol


class ClientClock(Protocol):
    """The clock as the client needs it."""

    def now(self) -> float:
        """Return seconds since the epoch."""

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait."""


class Chance(Protocol):
    """Randomness; `random.Random` fits."""

    def random(self) -> float:
        """Return a number from 0 up to, but not including, 1."""


class SystemClientClock:
    """The time of this machine."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> Awaitable[None]:
        return asyncio.sleep(seconds)


SYSTEM_CLOCK: ClientClock = SystemClientClock()
SYSTEM_CHANCE: Chance = random.SystemRandom()


FIRST_SECONDS, LONGEST_SECONDS, QUIET_SECONDS = 0.8, 30.0, 120.0
FIRST_REPETITION_SECONDS, LONGEST_REPETITION_SECONDS = 30.0, 600.0


class Backoff:
    """Waits that double, from 0.8 s up to 30 s. Each is stretched by a random part of itself, so that many clients do not come
    back at the same moment. After two quiet minutes the waits start from 0.8 s again."""

    def __init__(self, clock: ClientClock, chance: Chance) -> None:
        self._clock, self._chance = clock, chance
        self._delay = FIRST_SECONDS
        self._last: float | None = None

    def next(self) -> float:
        """Return how many seconds to wait before the next try."""
        now = self._clock.monotonic()
        # Counted from the last failure. A connection that breaks once an hour begins with a short wait each time.
        if self._last is not None and now - self._last > QUIET_SECONDS:
            self._delay = FIRST_SECONDS
        self._last = now
        delay = self._delay
        self._delay = min(delay * 2, LONGEST_SECONDS)
        return delay * (1.0 + self._chance.random())

    async def pause(self) -> None:
        """Wait for the next try."""
        await self._clock.sleep(self.next())


class LogThrottle:
    """Limits how often one part of the program logs its current problem.

    A new problem is logged at once. While it lasts it is logged again after 30 s, then after 60 s, 120 s, up to every ten
    minutes, so that the end of a log still shows it.
    """

    def __init__(self, clock: ClientClock) -> None:
        self.current = ""
        self._clock = clock
        self._again_at = 0.0
        self._pause = FIRST_REPETITION_SECONDS

    def is_worth_saying(self, text: str) -> bool:
        """Note the current problem, and return whether to log it now."""
        now = self._clock.monotonic()
        if text != self.current:
            self.current = text
            self._pause = FIRST_REPETITION_SECONDS
        elif now < self._again_at:
            return False
        else:
            self._pause = min(self._pause * 2, LONGEST_REPETITION_SECONDS)
        self._again_at = now + self._pause
        return True

    def settle(self) -> bool:
        """Note that there is no problem any more; return whether there was one."""
        had_any, self.current = bool(self.current), ""
        return had_any
