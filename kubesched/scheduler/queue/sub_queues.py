"""The sub-queues, and the ways between them.

In: an entry and where it should go. Out: where it went: a PreEnqueue gate may keep it among the unschedulable. Every entry
of the queue is in exactly one sub-queue, and found by its pod's namespace/name. What gates and the sort raise stays here: a
pod whose plugin breaks waits as if that plugin had gated it, and is tried again like all that wait too long.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kubesched.errors import PluginError
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.framework import ADD, FORCE_ACTIVATE, UNSCHEDULABLE_POD, UPDATE, ClusterEvent, Plugin, blamed
from kubesched.scheduler.queue.active import ActiveQueue
from kubesched.scheduler.queue.backoff import BackoffQueue, Pauses
from kubesched.scheduler.queue.nominated import Nominated
from kubesched.scheduler.queue.observer import QueueObserver
from kubesched.scheduler.queue.queued import QueuedPod
from kubesched.scheduler.queue.requeue_judge import AFTER_BACKOFF, Strategy
from kubesched.scheduler.queue.unschedulable import UnschedulablePods

SortKey = Callable[[PodView, float], Any]
"""(pod, when it was queued) -> what it is ordered by, smallest first"""

log = logging.getLogger(__name__)


class SubQueues:
    """ActiveQueue, backoff and waiting pods. `pops_early` says whether pods may be popped during their pause."""

    __slots__ = (
        "_observer",
        "_sort_key",
        "_sorter",
        "active",
        "backoff",
        "nominated",
        "pod_added",
        "pod_updated",
        "pods",
        "pops_early",
        "unschedulable",
    )

    def __init__(
        self,
        sorter: Plugin | None,
        pauses: Pauses,
        observer: QueueObserver | None,
        nominated: Nominated,
        pending_pod: str = UNSCHEDULABLE_POD,
    ) -> None:
        self.pod_added = ClusterEvent(pending_pod, int(ADD)).label
        self.pod_updated = ClusterEvent(pending_pod, int(UPDATE)).label
        self._sorter = sorter.name if sorter is not None else ""
        self._sort_key: SortKey = sorter.sort_key if sorter is not None else _first_come
        self._observer = observer
        self.pods: dict[str, QueuedPod] = {}
        self.active = ActiveQueue()
        self.backoff = BackoffQueue(pauses)
        self.unschedulable = UnschedulablePods()
        self.nominated = nominated
        self.pops_early = pauses.whole_seconds

    def requeue(self, entry: QueuedPod, strategy: Strategy, label: str, now: float) -> bool:
        """Move an entry on, after its pause if it must; return False if a gate keeps it waiting."""
        if strategy is AFTER_BACKOFF and self.backoff.is_pausing(entry, now):
            return self.to_backoff(entry, label)
        return self.to_active(entry, label, now)

    def to_active(self, entry: QueuedPod, label: str, now: float, *, from_backoff: bool = False) -> bool:
        """Make an entry that waits, or is in no sub-queue, active; return False if a gate keeps it waiting."""
        was_waiting = entry.sub_queue is not None
        if was_waiting:
            self.unschedulable.remove(entry)
        # A pod that pauses passed its gates on the way in, unless popping early is switched off.
        asks_gates = not (from_backoff and self.pops_early)
        if (asks_gates and not self._passes_gates(entry)) or not self._is_sorted(entry):
            self.to_unschedulable(entry, label, is_new=not was_waiting)
            return False
        if entry.initial_attempt is None:
            entry.initial_attempt = now
        self.active.add(entry)
        if self._observer is not None:
            self._observer.queue_incoming(self.active.name, label)
        if label in (self.pod_added, self.pod_updated) and self.nominated.may_change(entry.view):
            self.nominated.add(entry.view)
        return True

    def to_backoff(self, entry: QueuedPod, label: str) -> bool:
        """Let an entry that waits, or is in no sub-queue, pause; return False if a gate keeps it waiting."""
        was_waiting = entry.sub_queue is not None
        if was_waiting:
            self.unschedulable.remove(entry)
        if (self.pops_early and not self._passes_gates(entry)) or not self._is_sorted(entry):
            self.to_unschedulable(entry, label, is_new=not was_waiting)
            return False
        self.backoff.add(entry)
        if self._observer is not None:
            self._observer.queue_incoming(self.backoff.name, label)
        return True

    def to_unschedulable(self, entry: QueuedPod, label: str, *, is_new: bool = True) -> None:
        """Let an entry that is in no sub-queue wait."""
        entry.was_flushed = False
        self.unschedulable.add(entry)
        if is_new and self._observer is not None:
            self._observer.queue_incoming(self.unschedulable.name, label)

    def activate(self, entry: QueuedPod, now: float) -> bool:
        """Make an entry active, pause or not; return False if a gate keeps it waiting."""
        if entry.sub_queue is self.active:
            return True
        from_backoff = entry.sub_queue is self.backoff
        if from_backoff:
            self.backoff.remove(entry)
        return self.to_active(entry, FORCE_ACTIVATE.label, now, from_backoff=from_backoff)

    def replace_pod(self, entry: QueuedPod, pod: PodView) -> None:
        """Give an entry its pod's new version, where it is."""
        sub_queue = entry.sub_queue
        assert sub_queue is not None
        sub_queue.remove(entry)
        entry.view = pod
        if sub_queue is self.unschedulable or self._is_sorted(entry):
            sub_queue.add(entry)
        else:
            self.to_unschedulable(entry, self.pod_updated)

    def forget(self, entry: QueuedPod) -> None:
        """Remove an entry for good.

        The reference takes only waiting pods off the gauge of refusals, so that a pod deleted during its pause is
        counted forever; here every pod is taken off.
        """
        if entry.sub_queue is not None:
            entry.sub_queue.remove(entry)
        del self.pods[entry.view.key]
        self.count_rejectors(entry, -1)

    def count_rejectors(self, entry: QueuedPod, change: int) -> None:
        """Tell the observer that the entry's rejectors begin or cease to keep it."""
        if self._observer is not None:
            for plugin in sorted(entry.rejectors):
                self._observer.unschedulable(plugin, entry.profile.name, change)

    def _passes_gates(self, entry: QueuedPod) -> bool:
        """Ask the PreEnqueue plugins; the one that refuses becomes the pod's gate."""
        profile = entry.profile.profile
        try:
            status = profile.pre_enqueue(entry.view, entry.gating_plugin)
        except PluginError as error:
            self._broke(entry, error)
            return False
        if status.is_success:
            entry.gating_plugin = ""
            return True
        self._gate(entry, status.plugin)
        return False

    def _is_sorted(self, entry: QueuedPod) -> bool:
        """Find the key by which an entry is ordered; False if that cannot be said."""
        try:
            entry.sort_key = self._sort_key(entry.view, entry.timestamp)
        except BaseException as error:  # whatever a plugin raises, the pod must not be lost, nor the process end
            self._broke(entry, blamed(error, self._sorter, "QueueSort", entry.view.key))
            return False
        return True

    def _gate(self, entry: QueuedPod, plugin: str) -> None:
        if self._observer is not None and plugin not in entry.rejectors:
            self._observer.unschedulable(plugin, entry.profile.name, 1)
        entry.unschedulable_plugins |= {plugin}
        entry.gating_plugin = plugin

    def _broke(self, entry: QueuedPod, error: PluginError) -> None:
        log.error("plugin %s broke at %s of pod %s: %s", error.plugin, error.point, entry.view.key, error)
        if self._observer is not None:
            self._observer.broke(error.plugin, error.point, entry.view.key, error)
        self._gate(entry, error.plugin)


def _first_come(pod: PodView, queued_at: float) -> float:
    return queued_at
