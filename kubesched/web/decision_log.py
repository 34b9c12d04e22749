"""The decision log: what was decided lately, and how fast. A reporter that also remembers.

In: the engine's calls, which it counts and words like every reporter. Out: the last few hundred decisions, and how many
pods were bound in each of the last seconds. What it keeps is bounded, and keeping it costs a microsecond a pod.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from kubesched.telemetry import Metrics, Reporter
from kubesched.telemetry.reporting import Keyed

DECISIONS = 200
SECONDS = 60
_RECENT_SECONDS = 5


class LoggedDecision(NamedTuple):
    """One decision that was carried out, or an attempt that came to nothing (`node` is empty then)."""

    at: float
    pod: str
    node: str
    message: str
    attempts: int
    """How often the pod was tried; of one that was refused, how often in a row it was told the same."""
    seconds: float
    """How long after it could first be tried the pod was bound."""


class DecisionLog(Reporter):
    """Counts, says and remembers what happens."""

    def __init__(self, metrics: Metrics, now: Callable[[], float] = time.time) -> None:
        super().__init__(metrics)
        self._now = now
        self.decisions: deque[LoggedDecision] = deque(maxlen=DECISIONS)
        self.n_bound = 0
        self._bound_in = [0] * SECONDS
        self._second = int(now())

    def pod_bound(self, pod: Keyed, node_name: str, attempts: int, seconds_since_first: float, was_flushed: bool) -> None:
        """Count and remember a pod that was placed."""
        super().pod_bound(pod, node_name, attempts, seconds_since_first, was_flushed)
        now = self._now()
        self._turn_to(int(now))
        self.n_bound += 1
        self._bound_in[self._second % SECONDS] += 1
        self.decisions.append(LoggedDecision(now, pod.key, node_name, "", attempts, seconds_since_first))

    def pod_failed(self, pod: Keyed, reason: str, message: str) -> None:
        """Say and remember why a pod was not placed."""
        super().pod_failed(pod, reason, message)
        last = self.decisions[-1] if self.decisions else None
        if last is not None and (last.pod, last.node, last.message) == (pod.key, "", message):
            self.decisions[-1] = last._replace(at=self._now(), attempts=last.attempts + 1)
        else:
            self.decisions.append(LoggedDecision(self._now(), pod.key, "", message, 1, 0.0))

    def per_second(self) -> list[int]:
        """Return how many pods were bound in each of the last seconds, oldest first; the current one is the last."""
        self._turn_to(int(self._now()))
        cut = self._second % SECONDS + 1
        return self._bound_in[cut:] + self._bound_in[:cut]

    def pods_per_second(self) -> float:
        """Return how many pods were bound a second lately, the second under way left out."""
        return sum(self.per_second()[-1 - _RECENT_SECONDS : -1]) / _RECENT_SECONDS

    def _turn_to(self, second: int) -> None:
        """Empty the counts of the seconds that have passed; a clock that goes back changes nothing."""
        for passed in range(max(self._second + 1, second - SECONDS + 1), second + 1):
            self._bound_in[passed % SECONDS] = 0
        self._second = max(self._second, second)
