"""What happens to a pod whose attempt failed: back to the queue, an event for people, a condition for programs.

In: the queued pod, what went wrong, which plugins refused it. Out: the pod parked (or let go, if it is gone or bound by
now), `FailedScheduling` recorded, and one patch of the pod's status if anything in it changes. Patches are sent beside the
loop; that one fails is noted and changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from kubesched.errors import PluginRaised, SchedulerError
from kubesched.kube.api.meta import format_time
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.deciding.failure import Failure
from kubesched.scheduler.engine.observer import EngineObserver
from kubesched.scheduler.engine.records.decision_recorder import DecisionRecorder
from kubesched.scheduler.engine.records.tried import Tried
from kubesched.scheduler.framework.ports import Clock, Recorder, Writer
from kubesched.scheduler.queue import Queue, QueueError
from kubesched.scheduler.queue.queued import QueuedPod
from kubesched.telemetry.throttle import Throttle

log = logging.getLogger(__name__)
_tracebacks: dict[tuple[str, str, type[BaseException]], Throttle] = {}

LONGEST_NOTE_BYTES = 1024
_CUT = b" ..."
_MOST_BYTES_OF_A_CHARACTER = 4

Spawn = Callable[[Coroutine[Any, Any, None]], None]


def explain(error: Exception, pod: PodView, observer: EngineObserver) -> str:
    """Return what a pod is told of an error that ended its attempt. A plugin that broke is named, in the log and to
    whoever counts; so is our own fault, as nobody's plugin. What was raised on purpose speaks for itself."""
    if isinstance(error, SchedulerError) and not isinstance(error, PluginRaised):
        return str(error)
    plugin, point = (error.plugin, error.point) if isinstance(error, PluginRaised) else ("", "")
    observer.plugin_broke(plugin, point, pod, error)
    # Every pod meets a broken plugin, at every attempt: the log has its traceback once a minute, metrics and events have all.
    if _tracebacks.setdefault((plugin, point, type(error.__cause__ or error)), Throttle()).is_due():
        if plugin:
            log.error("plugin %s broke at %s for pod %s: %s", plugin, point, pod.key, error, exc_info=error)
        else:
            log.error("the attempt of pod %s broke: %s", pod.key, error, exc_info=error)
    return str(error) or type(error).__name__


class Failures:
    """Takes failed attempts and does with them what must be done."""

    def __init__(
        self,
        queue: Queue,
        lookup: Callable[[str], PodView | None],
        writer: Writer,
        recorder: Recorder,
        clock: Clock,
        observer: EngineObserver,
        spawn: Spawn,
        decisions: DecisionRecorder | None = None,
    ) -> None:
        self._decisions = decisions
        self._queue = queue
        self._lookup = lookup
        self._writer = writer
        self._recorder = recorder
        self._clock = clock
        self._observer = observer
        self._spawn = spawn
        self.writes = True
        """Whether statuses are written; a benchmark of decisions does without."""

    def end(self, tried: Tried, failure: Failure, node_name: str = "") -> None:
        """Count an attempt that failed, or one whose booking on a node was undone, and do the rest."""
        if self._decisions is not None:
            self._decisions.failed(tried, failure, node_name)
        result = "unschedulable" if failure.is_rejection else "error"
        self._observer.attempt_ended(result, tried.profile.name, self._clock.monotonic() - tried.started)
        self.handle(tried.queued, failure)

    def handle(self, queued: QueuedPod, failure: Failure) -> None:
        """Requeue a pod whose attempt failed, and tell the world."""
        tried = queued.view
        newest = self._lookup(tried.key)
        if newest is not None and newest.uid != tried.uid:
            self._queue.done(tried.uid)  # another pod of that name by now: it has been queued on its own account
            return
        if newest is None:
            self._queue.done(tried.uid)  # gone, or bound by somebody else
        else:
            refused = failure.diagnosis.unschedulable_plugins if failure.diagnosis is not None else ()
            pending = failure.diagnosis.pending_plugins if failure.diagnosis is not None else ()
            try:
                self._queue.park(queued, refused, pending, newest)
            except QueueError as error:
                log.error("pod %s: %s", tried.key, error)  # it is queued already, so it is not lost
        pod = newest or tried
        self._observer.pod_failed(pod, failure.reason, failure.message)
        if newest is not None:
            self._queue.nominations.add(pod, failure.nomination)
        if failure.is_silent:
            return
        self._recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", truncated(failure.message))
        patch = self._patch(pod.pod, failure, queued.has_unseen_nomination)
        if patch and self.writes:
            if "nominatedNodeName" in patch:
                queued.has_unseen_nomination = False
            self._spawn(self._write(queued, pod, patch))

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
                "lastTransitionTime": kept or format_time(self._clock.now()),
            }
            if pod.metadata.generation:
                condition["observedGeneration"] = pod.metadata.generation
            patch["conditions"] = [condition]
        return patch

    async def _write(self, queued: QueuedPod, pod: PodView, patch: dict[str, Any]) -> None:
        try:
            await self._writer.patch_pod_status(pod, patch)
        except SchedulerError as error:
            if "nominatedNodeName" in patch:
                queued.has_unseen_nomination = True
            self._observer.write_failed(pod, "status", error)


def truncated(message: str) -> str:
    """Return a message cut to what an event's note may hold."""
    if len(message) * _MOST_BYTES_OF_A_CHARACTER <= LONGEST_NOTE_BYTES:
        return message
    data = message.encode()
    if len(data) <= LONGEST_NOTE_BYTES:
        return message
    return (data[: LONGEST_NOTE_BYTES - len(_CUT)] + _CUT).decode(errors="ignore")
