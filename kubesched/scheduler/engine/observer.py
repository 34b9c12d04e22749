"""The observer: the engine reports results, durations and failures to it, for metrics and logs."""

from __future__ import annotations

from typing import Protocol

from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.framework import Preemption


class EngineObserver(Protocol):
    """Counts and logs what the engine does. Calls must be cheap and must not raise. A subclass overrides what it counts."""

    def attempt_ended(self, result: str, profile: str, seconds: float) -> None:
        """One attempt is over: `result` is scheduled, unschedulable or error."""
        return

    def decided(self, seconds: float) -> None:
        """Deciding one attempt took so long (Filter to Score, without Reserve and the binding)."""
        return

    def pod_bound(self, pod: PodView, node_name: str, attempts: int, seconds_since_first: float, was_flushed: bool) -> None:
        """A pod is bound, after so many attempts and so long after it first could be tried."""
        return

    def pod_failed(self, pod: PodView, reason: str, message: str) -> None:
        """An attempt ended without a binding."""
        return

    def pod_gone(self, pod: PodView, message: str) -> None:
        """An attempt ended without a binding, and its pod does not exist any more."""
        return

    def plugin_broke(self, plugin: str, point: str, pod: PodView, error: BaseException) -> None:
        """A plugin raised, or returned what the contract does not allow."""
        return

    def write_failed(self, pod: PodView, what: str, error: Exception) -> None:
        """The API server refused a write that the attempt does not depend on."""
        return

    def permit_waited(self, result: str, seconds: float) -> None:
        """A pod waited at Permit."""
        return

    def bindings(self, change: int) -> None:
        """A binding cycle began (+1) or ended (-1)."""
        return

    def preempted(self, preemption: Preemption, preemptor: str) -> None:
        """A preemption was begun, for a pod, podgroup or compositepodgroup."""
        return

    def placement_tried(self, is_feasible: bool, profile: str, seconds: float) -> None:
        """A pod group was tried in one of its placements."""
        return

    def evictions_ended(self, result: str, seconds: float, preemptor: str) -> None:
        """The evictions of a preemption in the background are over: `result` is success or error."""
        return

    def event_handled(self, event: str, seconds: float) -> None:
        """A change of an API object was taken in."""
        return

    def group_decided(self, seconds: float) -> None:
        """A decision about a pod group took so long."""
        return

    def group_ended(self, group: str, result: str, profile: str, members: int, seconds: float) -> None:
        """One attempt for a pod group is over: `result` is scheduled, unschedulable, waiting_on_preemption or error."""
        return


class NoObserver(EngineObserver):
    """Counts nothing."""
