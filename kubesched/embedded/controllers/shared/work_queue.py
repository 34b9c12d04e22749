"""Work queues: keys to reconcile, each once, on the clock.

In: keys, from changes in the store and from timers. Out: calls of `reconcile`, one key at a time, and never inside the write
that caused it. A key that fails is tried again later, each time after a longer pause: up to 30 seconds. If the API refused,
that is all. Any other error is also raised, because it is a bug; the other keys still get their turn. A reconcile returns in
how many seconds it wants to be called again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kubesched.embedded.clock import ServerClock, Timer
from kubesched.errors import ApiError, NotFound

BATCH = 64  # keys per turn, so that requests get their turn too
FIRST_RETRY_SECONDS = 0.05  # doubled with each failure
LONGEST_RETRY_SECONDS = 30.0
_logger = logging.getLogger(__name__)


class Worker:
    """One queue with its function."""

    def __init__(self, clock: ServerClock, name: str, reconcile: Callable[[str], float | None]) -> None:
        self._clock = clock
        self._name = name
        self._reconcile = reconcile
        self._ready: dict[str, None] = {}
        self._later: dict[str, tuple[float, Timer]] = {}
        self._failures: dict[str, int] = {}
        self._turn: Timer | None = None
        self._stopped = False

    def add(self, key: str, delay_seconds: float = 0.0) -> None:
        """Reconcile `key` after a delay, or sooner if that is planned already."""
        if self._stopped:
            return
        if delay_seconds <= 0:
            self._ready[key] = None
            if self._turn is None:
                self._turn = self._clock.call_later(0.0, self._work)
            return
        due = self._clock.monotonic() + delay_seconds
        planned = self._later.get(key)
        if planned is not None:
            if planned[0] <= due:
                return
            planned[1].cancel()
        self._later[key] = (due, self._clock.call_later(delay_seconds, lambda: self._arrive(key)))

    def forget(self, key: str) -> None:
        """Cancel what is planned for an object that is gone."""
        self._failures.pop(key, None)
        planned = self._later.pop(key, None)
        if planned is not None:
            planned[1].cancel()

    def stop(self) -> None:
        self._stopped = True
        if self._turn is not None:
            self._turn.cancel()
        for _, timer in self._later.values():
            timer.cancel()

    def _arrive(self, key: str) -> None:
        self._later.pop(key, None)
        self.add(key)

    def _work(self) -> None:
        """Reconcile up to 64 keys, then let requests have the event loop."""
        self._turn = None
        try:
            for _ in range(min(BATCH, len(self._ready))):
                key = next(iter(self._ready))
                del self._ready[key]
                self._look_at(key)
        finally:
            if self._ready and self._turn is None and not self._stopped:
                self._turn = self._clock.call_later(0.0, self._work)

    def _look_at(self, key: str) -> None:
        """Reconcile one key and plan the next time."""
        try:
            again = self._reconcile(key)
        except NotFound:
            self._failures.pop(key, None)  # it went away meanwhile; its own change brings what follows
            return
        except (ApiError, OSError) as error:  # what the disk refuses, the API has not stored either
            _logger.debug("%s %s: %s", self._name, key, error)
            self._retry(key)
            return
        except Exception:
            self._retry(key)
            raise
        self._failures.pop(key, None)
        if again is not None:
            self.add(key, max(again, 0.001))

    def _retry(self, key: str) -> None:
        """Plan another try, twice as far away as the one before."""
        n_failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.add(key, min(FIRST_RETRY_SECONDS * 2 ** min(n_failures, 16), LONGEST_RETRY_SECONDS))
