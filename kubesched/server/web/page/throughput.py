"""Pods bound a second: a reporter that also counts.

In: the engine's calls, which go to metrics and Events as with every reporter. Out: how many pods were bound in each of the
last 60 seconds, and the history.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kubesched.server.web.page.history import History
from kubesched.telemetry import Metrics, Reporter
from kubesched.telemetry.reporting import Evicting, Keyed

SECONDS = 60
_RECENT_SECONDS = 5


class Throughput(Reporter):
    """Reports and counts."""

    def __init__(self, metrics: Metrics, now: Callable[[], float] = time.time) -> None:
        super().__init__(metrics)
        self._now = now
        self.n_bound = 0
        self._bound_in = [0] * SECONDS
        self._second = int(now())
        self.history = History(now)

    def pod_bound(self, pod: Keyed, node_name: str, attempts: int, seconds_since_first: float, was_flushed: bool) -> None:
        """Count a pod that was placed."""
        super().pod_bound(pod, node_name, attempts, seconds_since_first, was_flushed)
        self._turn_to(int(self._now()))
        self.n_bound += 1
        self.history.bound(seconds_since_first)
        self._bound_in[self._second % SECONDS] += 1

    def preempted(self, preemption: Evicting, preemptor: str) -> None:
        """Count the pods that a preemption evicts."""
        super().preempted(preemption, preemptor)
        self.history.evicted(len(preemption.victims))

    def per_second(self) -> list[int]:
        """Return how many pods were bound in each of the last seconds, oldest first; the current one is the last."""
        self._turn_to(int(self._now()))
        cut = self._second % SECONDS + 1
        return self._bound_in[cut:] + self._bound_in[:cut]

    def pods_per_second(self) -> float:
        """Return how many pods were bound a second in the last five whole seconds."""
        return sum(self.per_second()[-1 - _RECENT_SECONDS : -1]) / _RECENT_SECONDS

    def _turn_to(self, second: int) -> None:
        """Clear the counts of the seconds that have passed. A clock that goes back changes nothing."""
        for passed in range(max(self._second + 1, second - SECONDS + 1), second + 1):
            self._bound_in[passed % SECONDS] = 0
        self._second = max(self._second, second)
