"""Random numbers for plugins: seeded, and seeded again for each attempt.

With the cache plugins are called less often than without it, and both must decide alike. So the numbers of an attempt follow
from the seed and the attempt's number, not from the calls of earlier attempts.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random


class RandomByAttempt:
    """The Random port; `attempt` says which attempt it is."""

    def __init__(self, seed: int, attempt: Callable[[], int]) -> None:
        self._seed = seed
        self._attempt = attempt
        self._last = -1
        self._random = Random()

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 to stop - 1."""
        if self._attempt() != self._last:
            self._last = self._attempt()
            self._random.seed(f"{self._seed}/{self._last}")
        return self._random.randrange(stop)
