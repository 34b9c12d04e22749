"""What the queue is given: its options, a clock that never goes back, and an observer that counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kubesched.errors import SchedulerError
from kubesched.scheduler.framework import UNSCHEDULABLE_POD, Clock


class QueueError(SchedulerError):
    """A pod that the queue cannot take. The queue is unchanged."""


class Now(Protocol):
    """The clock as the queue needs it."""

    def now(self) -> float:
        """Return seconds since the epoch."""


class SteadyClock:
    """Seconds since the epoch that only ever go forward.

    The time of day is read once, when this is made; after that the monotonic clock is added to it. So a pod that backs off
    for ten seconds waits ten seconds, also if somebody sets the machine's clock back by an hour meanwhile.
    kube-scheduler's times carry a monotonic reading for the same reason.
    """

    def __init__(self, clock: Clock) -> None:
        self._monotonic = clock.monotonic
        self._lead = clock.now() - clock.monotonic()

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self._monotonic() + self._lead


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """How long pods wait, and which features change the queue."""

    initial_backoff_seconds: float = 1.0
    max_backoff_seconds: float = 10.0
    max_waiting_seconds: float = 300.0
    pops_from_backoff: bool = True
    """SchedulerPopFromBackoffQ: pop a pod before its backoff ends if no pod is active."""
    has_extenders: bool = False
    has_pod_groups: bool = False
    asks_hints: bool = True
    """SchedulerQueueingHints: call the plugin's hint for an event, also for changes of the pod itself. Without it every event
    that a plugin declared requeues the pods that it refused, and so does every change of a pod's spec or metadata."""
    taints_announce_nodes: bool = False
    """Whether plugins that wait for new nodes are woken by changed taints too, as before 1.37."""
    pending_pod: str = UNSCHEDULABLE_POD
    """The metrics' name of the resource of a pod that comes without a node."""
    nominates_gated: bool = True
    """Whether a nominated pod counts on its node while a gate keeps it; before 1.37 it does not."""
    waits_for_events: bool = True
    """Whether a refused pod waits for an event. Releases without this retry it as soon as its backoff ends."""
    counts_errors_apart: bool = True
    """Whether the backoff after an error follows the errors in a row. Releases without this count all failed attempts."""
    heeds_own_status: bool = True
    """Whether any change of a pod is an event for it. Releases without this ignore changes of the status, and end the pod's
    backoff at any other change."""


class QueueObserver(Protocol):
    """Counts what happens in the queue. How many pods are where is read from the queue's properties instead."""

    def queue_incoming(self, queue: str, event: str) -> None:
        """Count a pod that enters a sub-queue (active, backoff, unschedulable) because of an event."""

    def unschedulable(self, plugin: str, profile: str, change: int) -> None:
        """Count a pod that a plugin refuses from now on (+1) or no longer (-1)."""

    def hint(self, plugin: str, event: str, answer: str, seconds: float) -> None:
        """Record the answer and the duration of one hint call."""

    def broke(self, plugin: str, point: str, pod: str, error: Exception) -> None:
        """Count a plugin that raised. The queue goes on without its answer."""
