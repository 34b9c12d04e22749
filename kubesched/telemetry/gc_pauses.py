"""How long Python's cycle collector stops the program.

In: the interpreter's call before and after every collection, in whichever thread it happens. Out: samples for a histogram, when
somebody reads it. A collection may begin in the middle of the very code that sorts samples, so here they only queue up.
"""

from __future__ import annotations

import gc
import time
import weakref
from collections import deque

from kubesched.telemetry.samples import Histogram

_MOST_UNREAD = 100_000
"""Pauses that wait for a reader: days of them, and a bound for a program that nobody asks."""


class GcPauses:
    """Times collections for as long as somebody holds it."""

    def __init__(self) -> None:
        self._unread: deque[tuple[int, float]] = deque(maxlen=_MOST_UNREAD)
        self._began = 0.0
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
        """Write down what has queued up, by generation."""
        while self._unread:
            generation, seconds = self._unread.popleft()
            histogram.observe((str(generation),), seconds)
