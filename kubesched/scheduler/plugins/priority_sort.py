"""PrioritySort: the pod with the higher priority goes first, among equals the one that waited longer."""

from __future__ import annotations

from kubesched.scheduler.framework import Plugin, PodView


class PrioritySort(Plugin):
    def sort_key(self, pod: PodView, queued_at: float) -> tuple[int, float]:
        return -pod.priority, queued_at
