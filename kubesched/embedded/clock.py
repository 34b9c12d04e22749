"""Time, handed in: what the server and its fake cluster need of a clock.

`RealClock` lives on the running event loop. `ManualClock` moves only when told and runs what is due on the way, in
order of time and then of arming, so the same history always plays the same.
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
    """What `call_later` returns."""

    def cancel(self) -> None:
        """Make sure that the callback does not run any more."""


class ServerClock(Protocol):
    """Seconds since the epoch, seconds to measure how long something takes, and callbacks later."""

    def now(self) -> float:
        """Return seconds since the epoch."""

    def monotonic(self) -> float:
        """Return seconds that go on evenly, whatever becomes of the wall clock."""

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` once, `delay_seconds` from now."""


class RealClock:
    """Wall time and the timers of the running event loop."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay_seconds, callback)


class ManualTimer:
    """One armed callback of a virtual clock."""

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
        if len(self._timers) >= self._most_timers:
            self._timers = [one for one in self._timers if not one[2].cancelled]
            heapq.heapify(self._timers)
            self._most_timers = max(_FEWEST_SWEPT, 2 * len(self._timers))
        timer = ManualTimer(callback)
        heapq.heappush(self._timers, (self._now + max(0.0, delay_seconds), next(self._order), timer))
        return timer

    def run_next(self, until: float = float("inf")) -> bool:
        """Move to the next armed callback not later than `until` and run it; say whether there was one."""
        while self._timers and self._timers[0][0] <= until:
            due, _, timer = heapq.heappop(self._timers)
            if timer.cancelled:
                continue
            self._now = max(self._now, due)
            timer.callback()
            return True
        return False

    def advance(self, seconds: float) -> None:
        """Move `seconds` ahead, running everything that falls due, including what that arms in turn."""
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
    """Return the seconds since the epoch that an API timestamp names; ValueError if it names none."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
