"""What the queue tells whoever counts: a small protocol, so that metrics know names and not rooms."""

from __future__ import annotations

from typing import Protocol

QUEUED, SKIPPED, BROKE = "Queue", "QueueSkip", "Error"
"""What a hint can say, in the words of the metric."""


class QueueObserver(Protocol):
    """Is told what happens in the queue; how many pods are where is read from the queue's properties instead."""

    def queue_incoming(self, queue: str, event: str) -> None:
        """Count a pod that came to a queue (active, backoff, unschedulable), and why."""
        ...

    def unschedulable(self, plugin: str, profile: str, change: int) -> None:
        """Count a pod that a plugin begins (+1) or ceases (-1) to keep from being placed."""
        ...

    def hint(self, plugin: str, event: str, answer: str, seconds: float) -> None:
        """Take the time that a hint took, with its answer."""
        ...

    def broke(self, plugin: str, point: str, pod: str, error: Exception) -> None:
        """Take notice that a plugin raised; the queue went on without its answer."""
        ...
