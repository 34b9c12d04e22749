"""How long Python's garbage collector stops the program, as a histogram.

The interpreter calls us before and after every collection, in any thread, perhaps in the middle of the code that sorts
samples. So durations are only queued here, and sorted when metrics are scraped.
"""

from __future__ import annotations

import gc
import time
import weakref
from collections import deque

from kubesched.telemetry.samples import Histogram

_MOST_UNREAD = 100_000
"""How many durations are kept until a scrape. More are dropped, in case there never is one."""


class GcPauses:
    """Times collections for as long as this object exists."""

    def __init__(self) -> None:
        self._unread: deque[tuple[int, float]] = deque(maxlen=_MOST_UNREAD)
        self._began = 0.0
        # Weak, because `gc.callbacks` lives as long as the process: a registry that is thrown away, as in tests, must not be
        # kept alive by it.
        mine = weakref.WeakMethod(self._take)

        def call(phase: str, info: dict[str, int]) -> None:
            take = mine()
            if take is not None:
                take(phase, info)

        gc.callbacks.append(call)
        weakref.finalize(self, gc.callbacks.remove, call)

    def _take(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self._unread.append((info["generation"], time.perf_counter() - self._began))

    def hand_over(self, histogram: Histogram) -> None:
        """Put the queued durations into a histogram, by generation."""
        while self._unread:
            generation, seconds = self._unread.popleft()
            histogram.observe((str(generation),), seconds)
