"""Failed attempts: the pod goes back to the queue, gets a FailedScheduling event, and its status says why.

A pod that is gone or bound by now is not parked. The status is patched only if its PodScheduled condition or its nominated node
changes. The patch is sent in a task of its own; a failed one is logged and changes nothing.
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
from kubesched.scheduler.engine.records.decision_recorder import Tried
from kubesched.scheduler.queue import QueuedPod, QueueError

log = logging.getLogger(__name__)

LONGEST_NOTE_BYTES = 1024
_CUT = b" ..."
_MOST_BYTES_OF_A_CHARACTER = 4


class Failures:
    """Ends failed attempts."""

    def __init__(self, core: Core, lookup: Callable[[str], PodView | None]) -> None:
        """`lookup` finds the newest version of a pod without a node, by namespace/name."""
        self._core = core
        self._lookup = lookup
        self.writes = True
        """Whether statuses are written. A benchmark of decisions switches this off."""

    def end(self, tried: Tried, failure: Failure, node_name: str = "") -> None:
        """End an attempt that failed, or one whose booking on a node was taken back."""
        core = self._core
        if core.decisions is not None:
            core.decisions.failed(tried, failure, node_name)
        result = "unschedulable" if failure.is_rejection else "error"
        core.observer.attempt_ended(result, tried.profile.name, core.handle.clock.monotonic() - tried.started)
        self.handle(tried.queued, failure)

    def handle(self, queued: QueuedPod, failure: Failure) -> None:
        """Park a pod whose attempt failed, and report it by event and status."""
        tried = queued.view
        # The pod may have changed since it was popped. The newest version is parked: with the tried one, a toleration that was
        # added meanwhile would be lost until the next update.
        newest = self._lookup(tried.key)
        if newest is not None and newest.uid != tried.uid:
            self._core.queue.done(tried.uid)  # another pod has this name by now, and is queued itself
            return
        if newest is None:
            self._core.queue.done(tried.uid)  # gone, or bound by another scheduler
        else:
            # Without a diagnosis both are empty. Then no event can be named that would help, and the pod goes to backoff:
            # something broke, or there is no node.
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
            # At once, and not when the patch comes back by the watch: until then the room that this pod's victims leave would
            # be given to the next pod. None leaves what the pod's status says, CLEAR takes the nomination away.
            self._core.queue.nominations.add(pod, failure.nomination)
        if failure.is_silent:
            return
        self._core.handle.recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", truncated(failure.message))
        if is_gone or not self.writes:
            return
        patch = self._patch(pod.pod, failure, queued.has_unseen_nomination)
        if patch:
            if "nominatedNodeName" in patch:
                queued.has_unseen_nomination = False
            self._core.spawn(self._write(queued, pod, patch))

    def _patch(self, pod: Pod, failure: Failure, is_unseen: bool) -> dict[str, Any]:
        """Return the patch of the pod's status; empty if nothing changes."""
        patch: dict[str, Any] = {}
        nominated = failure.nomination.node_name if failure.nomination is not None else None
        # kube-scheduler compares with the pod that it has seen. If our write of nominatedNodeName has not come back by the
        # watch yet, it sees no difference and leaves the old name there: the pod then keeps room on that node until it is
        # tried again, and a member of a gang is tried again only when its gang is complete. `is_unseen` covers this.
        if nominated is not None and (nominated != pod.status.nominated_node_name or is_unseen):
            patch["nominatedNodeName"] = nominated or None
        old = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
        if old is None or (old.status, old.reason, old.message) != ("False", failure.reason, failure.message):
            # As in Kubernetes, the time changes only if the status does; another reason or message keeps it.
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
    """Return a message, cut to the 1024 bytes that an event's note may have."""
    if len(message) * _MOST_BYTES_OF_A_CHARACTER <= LONGEST_NOTE_BYTES:
        return message
    data = message.encode()
    if len(data) <= LONGEST_NOTE_BYTES:
        return message
    return (data[: LONGEST_NOTE_BYTES - len(_CUT)] + _CUT).decode(errors="ignore")
