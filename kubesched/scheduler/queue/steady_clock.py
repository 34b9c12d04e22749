"""A clock for pauses: the time of day when it was made, and from then on only ever forward.

In: a clock. Out: seconds since the epoch that take no part in a step of the clock on the wall. A pod that is to be tried
again in ten seconds is tried in ten seconds, and not in minutes because somebody has put the time right; kube-scheduler's
times carry a monotonic reading for that.
"""

from __future__ import annotations

from kubesched.scheduler.framework import Clock


class SteadyClock:
    """Time that is not put right."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lead = clock.now() - clock.monotonic()

    def now(self) -> float:
        """Return seconds since the epoch, as far as was known in the beginning."""
        return self._clock.monotonic() + self._lead
