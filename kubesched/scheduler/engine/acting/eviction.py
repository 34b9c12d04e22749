"""Evictions: carry out a preemption that PostFilter proposed.

Each victim gets the condition DisruptionTarget, is deleted, and a Preempted event says why. Pods of lower priority that are
nominated to the same node lose their nomination. A victim that is assumed but not bound yet is not deleted: its binding is
cancelled, and it is tried again.

In the background (SchedulerAsyncPreemption, the default), with victims v1, v2 and v3:

    1  `high` is gated: its plugin keeps it out of the active queue (framework/preemption/preempting)
    2  v1 and v2 are deleted at the same time
    3  v3 is deleted last. The event of its deletion wakes `high`, and by then the whole room is free

If an eviction fails, `high` is tried again at once. In the foreground, the older way, all victims are deleted at the same time
and the attempt of `high` fails when that is done. Until then no other pod is tried, as it might take the room.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kubesched.errors import NotFound, SchedulerError
from kubesched.kube.api import Pod, format_time
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.acting.binding import Binder, WaitingPods
from kubesched.scheduler.engine.arrivals.inbox import LoopCall
from kubesched.scheduler.engine.core import Core
from kubesched.scheduler.engine.deciding.preemptor import Preemptor
from kubesched.scheduler.framework import Preemption

DISRUPTION_TARGET = "DisruptionTarget"
BY_SCHEDULER = "PreemptionByScheduler"
MESSAGE = "preempting to accommodate a higher priority"
IN_MEMORY = " (in kube-scheduler memory)."
AWAKE = ("active", "backoff")
"""The sub-queues of a pod that waits for no event."""

Lookup = Callable[[str], PodView | None]
"""Finds a pod without a node by its namespace/name."""
Then = Callable[[str], None]
"""Called in the loop when a preemption in the foreground is over, with what went wrong or an empty text."""

log = logging.getLogger(__name__)


class CarriesOut(Protocol):
    """Carries out preemptions."""

    in_background: bool
    n_waited_for: int
    """How many preemptions in the foreground are under way."""

    def carry_out(self, preemptor: Preemptor, preemption: Preemption, then: Then | None = None) -> None:
        """Begin a preemption, before the preemptor is back in the queue. `then` is called later, when a preemption in the
        foreground is over."""
        ...


class Evictions:
    """Evicts victims in tasks beside the loop."""

    def __init__(
        self, core: Core, pending: Lookup, waiting: WaitingPods, binder: Binder, *, in_background: bool = True
    ) -> None:
        """`pending` finds the newest version of a pod without a node."""
        self._core = core
        self._handle = core.handle
        self._pending = pending
        self._waiting = waiting
        self._binder = binder
        self.in_background = in_background
        self.n_waited_for = 0

    def carry_out(self, preemptor: Preemptor, preemption: Preemption, then: Then | None = None) -> None:
        """Begin a preemption, as `CarriesOut` says."""
        # Pods of lower priority that are nominated here counted on room that the preemptor takes. Without their nomination they
        # are free to look for another node. Only a name that is in the API needs a write.
        on_node = self._core.queue.nominations.on_node(preemption.node_name)
        below = [self._pending(pod.key) or pod for pod in on_node if pod.priority < preemptor.priority]
        displaced = [pod for pod in below if pod.pod.status.nominated_node_name]
        if not self.in_background:
            self._core.observer.preempted(preemption, preemptor.kind)
            self.n_waited_for += 1
            self._core.spawn(self._evict_first(preemptor, preemption, displaced, then))
        # If all victims are leaving already there is nothing to send. The preemptor is not gated then: the deletions under way
        # wake it.
        elif preemption.to_evict:
            self._core.observer.preempted(preemption, preemptor.kind)
            # Before the task starts, in the same step of the loop: the pod is parked next, and the gate must hold by then.
            self._handle.preempting.begin(preemptor.uid)
            self._core.spawn(self._evict_meanwhile(preemptor, preemption, displaced))

    async def _evict_first(
        self, preemptor: Preemptor, preemption: Preemption, displaced: Sequence[PodView], then: Then | None
    ) -> None:
        problem = "the evictions were broken off"
        try:
            await self._evict_all(preemptor, preemption, preemption.to_evict)
            problem = ""
            await self._clear_nominations(displaced)
        except SchedulerError as error:
            problem = str(error)
            log.error("%s %s: preemption on node %s failed: %s", preemptor.kind, preemptor.key, preemption.node_name, error)
        finally:
            # After a reload another engine may have the preemptor. `_end_first` looks.
            self._core.inbox.post(LoopCall(lambda: self._end_first(then, problem)))

    def _end_first(self, then: Then | None, problem: str) -> None:
        # Always, also after an error or a reload: with a count that stays above 0 no pod would ever be tried again.
        self.n_waited_for -= 1
        if then is not None and self._core.successor is None:
            then(problem)

    async def _evict_meanwhile(self, preemptor: Preemptor, preemption: Preemption, displaced: Sequence[PodView]) -> None:
        started = self._handle.clock.monotonic()
        preempting = self._handle.preempting
        *others, last = preemption.to_evict
        is_done = False
        try:
            is_clear = await self._clear_nominations(displaced)
            # Why the last one is alone. With all victims at once the deletion of the last could arrive while the preemptor is
            # still gated: its wake-up would be ignored, and nothing else would wake it.
            #   delete v1, v2      `high` is gated; the events of v1 and v2 do not wake it
            #   await_last(v3)     the gate opens as soon as the store shows v3 gone or leaving
            #   delete v3          its event may come before our answer: the gate is open, and `high` is woken
            await self._evict_all(preemptor, preemption, others)
            preempting.await_last(preemptor.uid, last)
            await self._evict(preemptor, preemption, last)
            is_done = is_clear
        except SchedulerError as error:
            log.error("%s %s: preemption on node %s failed: %s", preemptor.kind, preemptor.key, preemption.node_name, error)
        finally:
            seconds = self._handle.clock.monotonic() - started
            self._core.observer.evictions_ended("success" if is_done else "error", seconds, preemptor.kind)
            awaited = last if is_done else None
            self._core.inbox.post(LoopCall(lambda: self._end(preemptor, awaited)))

    def _end(self, preemptor: Preemptor, awaited: PodView | None) -> None:
        """Let the preemptor be tried again.

        Usually the deletion of its last victim (`awaited`) will wake it. Nothing would wake it in two cases, so it is
        activated here: an eviction failed (`awaited` is None); or the victim left the store while the preemptor was still
        gated. The second case happens if two members of a gang have the same victim, or if the victim's own binding failed
        meanwhile.
        """
        queue = self._core.latest.queue
        self._handle.preempting.end(preemptor.uid)
        if awaited is None:
            queue.activate(preemptor.pods)
        elif self._core.store.pod(awaited.uid) is None:
            queue.activate(pod for pod in preemptor.pods if queue.place_of(pod.key) not in AWAKE)
        else:
            # kube-scheduler asks the gates of a group again after it has written the status of each member, after the
            # evictions.
            asks_all = preemptor.kind != "pod" and self._handle.gates.behaviour.judges_groups_whole
            queue.ask_gates(pod for pod in preemptor.pods if asks_all or self._is_only_gated(pod))

    def _is_only_gated(self, pod: PodView) -> bool:
        """Return whether the gate is the only plugin that keeps a preemptor, so that no event would wake it.

        Before, the plugins that refused it wait for the victims' deletion. A queue that took the pod over at a reload does not
        know them.
        """
        entry = self._core.latest.queue.find(pod.key)
        return entry is not None and entry.rejectors == {entry.gating_plugin}

    async def _evict_all(self, preemptor: Preemptor, preemption: Preemption, victims: Sequence[PodView]) -> None:
        """Evict victims at the same time. If any failed, raise the first error when all are done."""
        # Wait for all, also after an error: the preemptor must not be tried again while some deletions are still being sent.
        results = await asyncio.gather(
            *(self._evict(preemptor, preemption, victim) for victim in victims), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _evict(self, preemptor: Preemptor, preemption: Preemption, victim: PodView) -> None:
        """Delete a victim, unless it is gone; or cancel the binding of one that is not bound yet."""
        note = f"Preempted by {preemptor.kind} {preemptor.uid} on node {preemption.node_name}"
        waiting, plugin, is_unbound = self._waiting.get(victim.uid), preemption.plugin, False
        # A victim that is only assumed has no process to stop. Deleting it would lose the pod; cancelling its binding frees the
        # same room, and it is tried again.
        if waiting is not None:
            is_unbound = waiting.preempt(plugin, "preempted")
        elif self._binder.is_pre_binding(victim.uid):
            is_unbound = self._binder.call_off(victim.uid, f"preempted by {plugin}")
        if is_unbound:
            note += IN_MEMORY
        else:
            writer = self._handle.writer
            try:
                condition = self._condition(victim.pod, preemptor)
                if condition is not None:
                    await writer.patch_pod_status(victim, {"conditions": [condition]})
                await writer.delete_pod(victim)
            # Gone already, so the room is free: this is a success, without an event.
            except NotFound:
                return
        self._handle.recorder.event(victim, "Normal", "Preempted", "Preempting", note)

    def _condition(self, victim: Pod, preemptor: Preemptor) -> dict[str, Any] | None:
        """Return the condition that says why the victim is deleted; None if it has that already."""
        message = f"{preemptor.scheduler_name}: {MESSAGE} {preemptor.kind}"
        old = next((c for c in victim.status.conditions if c.type == DISRUPTION_TARGET), None)
        kept = None
        if old is not None and old.status == "True":
            # A patch that changes nothing is not sent, as in kube-scheduler.
            if (old.reason, old.message) == (BY_SCHEDULER, message) and old.last_probe_time is None:
                return None
            kept = old.last_transition_time
        condition: dict[str, Any] = {
            "type": DISRUPTION_TARGET,
            "status": "True",
            "reason": BY_SCHEDULER,
            "message": message,
            "lastProbeTime": None,
            "lastTransitionTime": kept or format_time(self._handle.clock.now()),
        }
        if victim.metadata.generation:
            condition["observedGeneration"] = victim.metadata.generation
        return condition

    async def _clear_nominations(self, displaced: Sequence[PodView]) -> bool:
        """Clear nominatedNodeName of pods that lose their node to the preemptor; return whether every write succeeded."""
        is_clear = True
        for pod in displaced:
            try:
                await self._handle.writer.patch_pod_status(pod, {"nominatedNodeName": None})
            except SchedulerError as error:
                is_clear = False
                log.error("pod %s: cannot clear nominatedNodeName: %s", pod.key, error)
        return is_clear
