"""Time and chance, as this room needs them; how long to wait after a failure, and how often to log it.

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

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait."""


class Chance(Protocol):
    """Randomness; `random.Random` fits."""

    def random(self) -> float:
        """Return a number from 0 up to, but not including, 1."""


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


FIRST_SECONDS, LONGEST_SECONDS, QUIET_SECONDS = 0.8, 30.0, 120.0
FIRST_REPETITION_SECONDS, LONGEST_UNSAID_SECONDS = 30.0, 600.0


class Backoff:
    """Waiting times that double up to the longest, each stretched by up to as much again; quiet starts them over."""

    def __init__(self, clock: ClientClock, chance: Chance) -> None:
        self._clock, self._chance = clock, chance
        self._delay = FIRST_SECONDS
        self._last: float | None = None

    def next(self) -> float:
        """Return how many seconds to wait before the next try."""
        now = self._clock.monotonic()
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
    """What one part of the program has to complain about; one thing at a time.

    A complaint is logged at once when it is new. While it lasts it is logged again after half a minute, and then after twice as
    long each time, up to once in ten minutes, so that a log's end still shows it.
    """

    def __init__(self, clock: ClientClock) -> None:
        self.current = ""
        self._clock = clock
        self._again_at = 0.0
        self._pause = FIRST_REPETITION_SECONDS

    def is_worth_saying(self, text: str) -> bool:
        """Take notice of a complaint, and return whether to log it now."""
        now = self._clock.monotonic()
        if text != self.current:
            self.current = text
            self._pause = FIRST_REPETITION_SECONDS
        elif now < self._again_at:
            return False
        else:
            self._pause = min(self._pause * 2, LONGEST_UNSAID_SECONDS)
        self._again_at = now + self._pause
        return True

    def settle(self) -> bool:
        """Forget it, because all is well; return whether there was anything to forget."""
        had_any, self.current = bool(self.current), ""
        return had_any
