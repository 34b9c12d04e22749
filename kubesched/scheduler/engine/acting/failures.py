"""What happens to a pod whose attempt failed: back to the queue, an event for people, a condition for programs.

In: the queued pod, what went wrong, which plugins refused it. Out: the pod parked (or let go, if it is gone or bound by
now), `FailedScheduling` recorded, and one patch of the pod's status if anything in it changes. Patches are sent beside the
loop; that one fails is noted and changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kubesched.errors import NotFound, SchedulerError
from kubesched.kube.api import Pod, format_time
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.core import Core
from kubesched.scheduler.engine.deciding.failure import Failure
from kubesched.scheduler.engine.records.tried import Tried
from kubesched.scheduler.queue import QueuedPod, QueueError

log = logging.getLogger(__name__)

LONGEST_NOTE_BYTES = 1024
_CUT = b" ..."
_MOST_BYTES_OF_A_CHARACTER = 4


class Failures:
    """Takes failed attempts and does with them what must be done."""

    def __init__(self, core: Core, lookup: Callable[[str], PodView | None]) -> None:
        """`lookup` finds the newest version of a pod without a node, by namespace/name."""
        self._core = core
        self._lookup = lookup
        self.writes = True
        """Whether statuses are written; a benchmark of decisions does without."""

    def end(self, tried: Tried, failure: Failure, node_name: str = "") -> None:
        """Count an attempt that failed, or one whose booking on a node was undone, and do the rest."""
        core = self._core
        if core.decisions is not None:
            core.decisions.failed(tried, failure, node_name)
        result = "unschedulable" if failure.is_rejection else "error"
        core.observer.attempt_ended(result, tried.profile.name, core.handle.clock.monotonic() - tried.started)
        self.handle(tried.queued, failure)

    def handle(self, queued: QueuedPod, failure: Failure) -> None:
        """Requeue a pod whose attempt failed, and tell the world."""
        tried = queued.view
        newest = self._lookup(tried.key)
        if newest is not None and newest.uid != tried.uid:
            self._core.queue.done(tried.uid)  # another pod of that name by now: it has been queued on its own account
            return
        if newest is None:
            self._core.queue.done(tried.uid)  # gone, or bound by somebody else
        else:
            refused = failure.diagnosis.unschedulable_plugins if failure.diagnosis is not None else ()
            pending = failure.diagnosis.pending_plugins if failure.diagnosis is not None else ()
            try:
                self._core.queue.park(queued, refused, pending, newest)
            except QueueError as error:
                log.error("pod %s: %s", tried.key, error)  # it is queued already, so it is not lost
        pod = newest or tried
        is_gone = failure.is_gone or (newest is None and self._core.store.pod(tried.uid) is None)
        if is_gone:
            self._core.observer.pod_gone(pod, failure.message)
        else:
            self._core.observer.pod_failed(pod, failure.reason, failure.message)
        if newest is not None:
            self._core.queue.nominations.add(pod, failure.nomination)
        if failure.is_silent:
            return
        self._core.handle.recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", truncated(failure.message))
        if is_gone or not self.writes:
            return  # a status that nobody has cannot be written
        patch = self._patch(pod.pod, failure, queued.has_unseen_nomination)
        if patch:
            if "nominatedNodeName" in patch:
                queued.has_unseen_nomination = False
            self._core.spawn(self._write(queued, pod, patch))

    def _patch(self, pod: Pod, failure: Failure, is_unseen: bool) -> dict[str, Any]:
        """Return what of the pod's status must change; empty if nothing."""
        patch: dict[str, Any] = {}
        nominated = failure.nomination.node_name if failure.nomination is not None else None
        # The reference compares with what it has seen. A binding that fails before the watch tells of the announcement, or
        # while nobody hears that it is taken back, leaves it standing there: it then keeps a place until the pod is tried
        # again, which for a member of a gang is when its gang is complete.
        if nominated is not None and (nominated != pod.status.nominated_node_name or is_unseen):
            patch["nominatedNodeName"] = nominated or None
        old = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
        if old is None or (old.status, old.reason, old.message) != ("False", failure.reason, failure.message):
            kept = old.last_transition_time if old is not None and old.status == "False" else None
            condition: dict[str, Any] = {
                "type": "PodScheduled",
                "status": "False",
                "reason": failure.reason,
                "message": failure.message,
                "lastProbeTime": None,
                "lastTransitionTime": kept or format_time(self._core.handle.clock.now()),
            }
            if pod.metadata.generation:
                condition["observedGeneration"] = pod.metadata.generation
            patch["conditions"] = [condition]
        return patch

    async def _write(self, queued: QueuedPod, pod: PodView, patch: dict[str, Any]) -> None:
        try:
            await self._core.handle.writer.patch_pod_status(pod, patch)
        except SchedulerError as error:
            if "nominatedNodeName" in patch:
                queued.has_unseen_nomination = True
            if not isinstance(error, NotFound):
                self._core.observer.write_failed(pod, "status", error)


def truncated(message: str) -> str:
    """Return a message cut to what an event's note may hold."""
    if len(message) * _MOST_BYTES_OF_A_CHARACTER <= LONGEST_NOTE_BYTES:
        return message
    data = message.encode()
    if len(data) <= LONGEST_NOTE_BYTES:
        return message
    return (data[: LONGEST_NOTE_BYTES - len(_CUT)] + _CUT).decode(errors="ignore")
