"""The clocks of the server and its fake cluster: wall time, or virtual time that a test moves.

`RealClock` uses the running event loop. `ManualClock` moves only when a caller moves it, and runs the timers that fall due on
the way, by time and then in the order in which they were set. So the same history always gives the same result.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

from kubesched.kube.api import format_time

_FEWEST_SWEPT = 128  # timers of a virtual clock, before it looks for cancelled ones


class Timer(Protocol):
    """A callback that is still to come."""

    def cancel(self) -> None:
        """Prevent the callback, if it has not run."""


class ServerClock(Protocol):
    """What a clock can do: the time of day, a time to measure with, and callbacks."""

    def now(self) -> float:
        """Return seconds since the epoch."""

    def monotonic(self) -> float:
        """Return seconds that never go back, also when the wall clock is set."""

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` once, `delay_seconds` from now."""


class RealClock:
    """Wall time, and the timers of the running event loop."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay_seconds, callback)


class ManualTimer:
    """One callback of a virtual clock."""

    __slots__ = ("callback", "cancelled")

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualClock:
    """A clock that stands still until `advance` or `run_next` moves it."""

    def __init__(self, start: float = 1_767_225_600.0) -> None:  # 2026-01-01T00:00:00Z
        self._now = start
        self._order = itertools.count()
        self._timers: list[tuple[float, int, ManualTimer]] = []
        self._most_timers = _FEWEST_SWEPT

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        """Set a timer. Cancelled timers are swept out when the heap has doubled, so it stays as large as what is pending."""
        if len(self._timers) >= self._most_timers:
            self._timers = [one for one in self._timers if not one[2].cancelled]
            heapq.heapify(self._timers)
            self._most_timers = max(_FEWEST_SWEPT, 2 * len(self._timers))
        timer = ManualTimer(callback)
        heapq.heappush(self._timers, (self._now + max(0.0, delay_seconds), next(self._order), timer))
        return timer

    def run_next(self, until: float = float("inf")) -> bool:
        """Move to the next timer that is due by `until` and run it; return whether there was one."""
        while self._timers and self._timers[0][0] <= until:
            due, _, timer = heapq.heappop(self._timers)
            if timer.cancelled:
                continue
            self._now = max(self._now, due)
            timer.callback()
            return True
        return False

    def advance(self, seconds: float) -> None:
        """Move `seconds` ahead and run every timer that falls due, also those that timers set on the way."""
        until = self._now + seconds
        while self.run_next(until):
            pass
        self._now = until


def timestamp(seconds: float) -> str:
    """Return `seconds` as the API writes metav1.Time, to the second."""
    return _stamp(int(seconds))


_stamp = lru_cache(maxsize=256)(format_time)  # thousands of objects a second carry the same one


@lru_cache(maxsize=4096)
def seconds_of(text: str) -> float:
    """Return the seconds since the epoch of an API timestamp; ValueError for a text that is none. Without a zone it is UTC."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
