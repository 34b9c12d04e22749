"""The queue of the first releases: pods in the order in which they came, whatever their priority.

It is today's queue with another order. What it was then, a FIFO by name, is what a queue sorted by age is.
"""

from __future__ import annotations

from typing import Any

from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.framework import Plugin


class FirstInFirstOut(Plugin):
    """Sort pods by the time at which they entered the queue."""

    def sort_key(self, pod: PodView, queued_at: float) -> Any:
        return queued_at
