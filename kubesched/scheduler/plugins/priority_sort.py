"""PrioritySort: the pod with the higher priority is tried first, among equals the one that waits longer."""

from __future__ import annotations

from kubesched.scheduler.framework import Plugin, PodView


class PrioritySort(Plugin):
    def sort_key(self, pod: PodView, queued_at: float) -> tuple[int, float]:
        return -pod.priority, queued_at
