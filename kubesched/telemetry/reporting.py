"""The reporter: the observer of engine and queue that counts in metrics and writes log lines.

It fits their observer protocols without importing them. Log lines have kube-scheduler's texts and verbosity. It never raises
and never waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sized
from typing import Protocol

from kubesched.telemetry.logs import logger
from kubesched.telemetry.metrics import Metrics
from kubesched.telemetry.throttle import LineBudget, Throttle

log = logger(__name__)

OUTCOMES_A_SECOND, OUTCOMES_BURST = 20.0, 2000
"""How many results of attempts are logged a second at verbosity 2. kube-scheduler logs all of them, but decides far fewer."""
BINDING = "binding"
UNSCHEDULABLE = "Unschedulable"
HINT = "QueueingHint"
_GROUP_ENDED = {
    "scheduled": "Successfully scheduled a pod group",
    "unschedulable": "Unable to schedule a pod group",
    "waiting_on_preemption": "Pod group is waiting for preemption",
}


class Keyed(Protocol):
    """A pod, as far as a log line needs it."""

    @property
    def key(self) -> str:
        """Return namespace/name."""


class Evicting(Protocol):
    """A preemption: its victims, how many violate a disruption budget, and how many groups are among them."""

    @property
    def victims(self) -> Sized: ...

    @property
    def violations(self) -> int: ...

    @property
    def disruptions(self) -> int: ...


class Reporter:
    """Counts and logs what happens."""

    def __init__(self, metrics: Metrics, now: Callable[[], float] = time.monotonic) -> None:
        self.metrics = metrics
        self._outcomes = LineBudget(OUTCOMES_A_SECOND, OUTCOMES_BURST, now)
        self._left_out = Throttle(now)
        metrics.begin_attempt()
        # What is counted and not logged goes straight to the metrics.
        self.attempt_ended = metrics.schedule_attempts
        self.permit_waited = metrics.permit_wait
        self.evictions_ended = metrics.preemption_finished
        self.event_handled = metrics.event_handling
        self.group_decided = metrics.group_algorithm
        self.queue_incoming = metrics.queue_incoming
        self.unschedulable = metrics.unschedulable
        self.hint = metrics.hint

    def _may_log(self) -> bool:
        """Return whether the result of an attempt may be logged: always at verbosity 3, at 2 within a limit."""
        # A thousand pods a second would make a thousand lines, which cost more than the decisions.
        if log.level > 2 or self._outcomes.take():
            return True
        if self._left_out.is_due():
            log.v(2).info("Outcomes of attempts are left out of the log; -v=3 has them all", soFar=self._outcomes.n_left_out)
        return False

    # Attempts

    def decided(self, seconds: float) -> None:
        """Record the duration of a decision, and choose at random whether plugins are timed in the next one."""
        # In this order: the decision that has just ended was sampled, or not, by the choice before it.
        self.metrics.algorithm(seconds)
        self.metrics.begin_attempt()

    def pod_bound(self, pod: Keyed, node_name: str, attempts: int, seconds_since_first: float, was_flushed: bool) -> None:
        """Count a pod that was placed."""
        self.metrics.pod_scheduled(attempts, seconds_since_first, was_flushed)
        if log.level >= 2 and self._may_log():
            log.v(2).info("Successfully bound pod to node", pod=pod.key, node=node_name, attempts=attempts)

    def pod_failed(self, pod: Keyed, reason: str, message: str) -> None:
        """Log why a pod was not placed: as an error, unless it just does not fit."""
        # `_may_log` comes last in each condition: it takes from the budget, which only lines that would be written may do.
        if reason != UNSCHEDULABLE and self._may_log():
            log.error("Error scheduling pod; retrying", err=message, pod=pod.key)
        elif reason == UNSCHEDULABLE and log.level >= 2 and self._may_log():
            log.v(2).info("Unable to schedule pod; no fit; waiting", pod=pod.key, err=message)

    def pod_gone(self, pod: Keyed, message: str) -> None:
        """Log that the pod of an attempt does not exist any more. This is no error."""
        if log.level >= 2 and self._may_log():
            log.v(2).info("Pod doesn't exist any more", pod=pod.key, err=message)

    def plugin_broke(self, plugin: str, point: str, pod: Keyed, error: BaseException) -> None:
        """Count a plugin that raised or returned an invalid answer. The engine has logged it with its traceback."""
        self.metrics.plugin_failed(plugin, point)

    def write_failed(self, pod: Keyed, what: str, error: Exception) -> None:
        """Log that the API server refused a write that the attempt does not depend on."""
        log.error("Error updating pod", err=error, pod=pod.key, what=what)

    # Binding and preemption

    def bindings(self, change: int) -> None:
        """Count the binding cycles under way."""
        self.metrics.working(BINDING, change)

    def preempted(self, preemption: Evicting, preemptor: str) -> None:
        """Record how many pods a preemption evicts, how many violate a budget, and how many groups are hit."""
        found = preemption
        self.metrics.preemption_victims(len(found.victims), found.violations, found.disruptions, preemptor)

    def placement_tried(self, is_feasible: bool, profile: str, seconds: float) -> None:
        """Record the result of trying a pod group in one placement."""
        self.metrics.placement_evaluated("feasible" if is_feasible else "infeasible", profile, seconds)

    # Pod groups

    def group_ended(self, group: str, result: str, profile: str, members: int, seconds: float) -> None:
        """Count and log the result of an attempt for a pod group."""
        self.metrics.group_attempts(result, profile, seconds)
        if result == "error":
            log.error("Error scheduling pod group", err="see its pods", podGroup=group, errorPods=members)
        elif log.level >= 2:
            log.v(2).info(_GROUP_ENDED[result], podGroup=group, pods=members)

    # The queue

    def broke(self, plugin: str, point: str, pod: str, error: Exception) -> None:
        """Count a plugin that raised in the queue. A hint's error is logged here, others by the queue."""
        self.metrics.plugin_failed(plugin, point)
        if point == HINT:
            log.error("Plugin failed", err=error, plugin=plugin, extensionPoint=point, pod=pod)
