"""Virtual time: hours of waiting pass in milliseconds, and are the same in every run.

The clock of this event loop stands still while a task is ready, and jumps to the next timer when none is. Code that waits with
asyncio (sleeps, timers, timeouts) runs on it unchanged. There is no real input or output on such a loop, so a run depends on
nothing outside.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

EPOCH = 1_767_225_600.0
"""2026-01-01T00:00:00Z, where virtual time begins."""


class _NoWaiting(selectors.SelectSelector):
    """Returns at once, and advances the loop's clock by the time that it would have waited."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0:  # a task is ready; calls from other threads wait until none is
            return []
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everything waits for something that will never happen in virtual time")
        if not ready and timeout:
            self._loop.advance(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        self._virtual_seconds = 0.0
        super().__init__(_NoWaiting(self))

    def time(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return self._virtual_seconds

    @property
    def has_ready_tasks(self) -> bool:
        """Return whether a task other than the caller is ready to run."""
        return bool(self._ready)  # type: ignore[attr-defined]

    async def pass_time(self, until: float) -> None:
        """Advance the clock to a time, or to the next timer if that is earlier. No task may be ready.

        It has the effect of a sleep at a tenth of its cost.
        """
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        self.advance((min(timers[0].when(), until) if timers else until) - self._virtual_seconds)
        if timers:
            await asyncio.sleep(0)

    def advance(self, seconds: float) -> None:
        """Advance the clock."""
        # Rounding may leave a timer just short of due. A minimal step keeps the loop from standing still.
        self._virtual_seconds += max(seconds, 1e-9)


class VirtualClock:
    """The Clock port on a virtual loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch: float = EPOCH) -> None:
        self._loop = loop
        self._epoch = epoch

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self._epoch + self._loop.time()

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    loop = VirtualLoop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main)
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:  # their cleanup may take several turns of the loop
            loop.run_until_complete(asyncio.wait(tasks))
        asyncio.set_event_loop(None)
        loop.close()
