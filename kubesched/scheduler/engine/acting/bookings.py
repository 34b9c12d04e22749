"""Bookings: a pod from the decision for a node to bound, or back to the queue.

Binding takes milliseconds of network, deciding takes microseconds. So the pod is *assumed*: the store counts it on its node at
once, and the next pod is decided as if it ran there. The binding follows in a task of its own. Three things can happen:

    web-1 decided for node a    assume: a has 2 CPUs less, in memory alone
      bound, seen by the watch  confirm: the store replaces the assumed pod by the real one; nothing else changes binding
      failed            forget: a has its 2 CPUs back, Unreserve runs, pods that wait for room are woken, web-1 is parked
      bound, never seen         the booking stays, as in kube-scheduler today, or expires after `assumed_ttl_seconds`

Only the engine's loop calls this file.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from kubesched.errors import PluginError, SchedulerError
from kubesched.kube.api import Pod, ResourceClaim
from kubesched.scheduler.cluster import DeviceClaims, PodView
from kubesched.scheduler.engine.acting.binding import LONGEST_WAIT_SECONDS, Binder, WaitingPod, WaitingPods
from kubesched.scheduler.engine.acting.failures import Failures
from kubesched.scheduler.engine.arrivals.inbox import AssumedBinding, LoopCall
from kubesched.scheduler.engine.arrivals.intake import CLAIM_CHANGED, POD_WENT
from kubesched.scheduler.engine.core import Core
from kubesched.scheduler.engine.deciding.failure import Failure, explain, refused_on_node
from kubesched.scheduler.engine.records.decision_recorder import Tried
from kubesched.scheduler.framework import CLEAR, CycleState, Profile, Status

log = logging.getLogger(__name__)

PODS_TO_ACTIVATE = "kubernetes.io/pods-to-activate"


class Bookings:
    """The pods that are assumed and not bound yet."""

    def __init__(
        self,
        core: Core,
        waiting: WaitingPods,
        failures: Failures,
        binder: Binder,
        assumed_ttl_seconds: float | None = None,
    ) -> None:
        self._core = core
        self._store = core.store
        self._claims = core.store.objects.shared(DeviceClaims)
        self._claims.freed = self._settled
        self._waiting = waiting
        self._failures = failures
        self._assumed_ttl_seconds = assumed_ttl_seconds
        self._under_way: dict[str, AssumedBinding] = {}
        self.binder = binder
        self.hand_over: Callable[[AssumedBinding], None] = lambda binding: core.spawn(binder.carry_out(binding))
        """Start the binding cycle of a booked pod. A benchmark of decisions replaces this."""

    def __len__(self) -> int:
        return len(self._under_way)

    def book(self, tried: Tried, node_name: str) -> None:
        """Assume a pod, run Reserve and Permit, and start its binding cycle. If a plugin refuses, take everything back and
        fail."""
        made, profile = tried.made, tried.profile
        assert made is not None
        state = made.state
        # The pod is counted before Reserve, as in kube-scheduler: a plugin that looks at the node sees the pod there.
        booked = self._store.assume(made.pod_as_booked(node_name, self._store), node_name)
        # The pod is counted on its node now. Its nomination would count it a second time for pods of lower priority.
        self._core.queue.nominations.drop(booked.uid)
        binding = AssumedBinding(tried.queued, booked, node_name, state, profile, tried.started)
        try:
            status = profile.reserve(booked, node_name, state)
            # Permit may answer Wait: then `limits` has the plugins that want to wait, each with its time limit in seconds.
            limits: dict[str, float] = {}
            if status.is_success:
                status, limits = profile.permit(booked, node_name, state)
            if status.is_success or limits:
                if limits:
                    limits = {plugin: min(seconds, LONGEST_WAIT_SECONDS) for plugin, seconds in limits.items()}
                    self._waiting.add(WaitingPod(booked, node_name, limits))
                # Kept quirk: pods to activate are read twice, here after Permit and in `bound` after PostBind. `_activate`
                # empties the dict, so what is there the second time was added by the binding cycle.
                if asked_for := state.find(PODS_TO_ACTIVATE):
                    self._activate(asked_for)
                # Read now: once the binding is undone, the claims do not know this pod any more. `_wake_after` needs them to
                # wake the pods that wait for these devices.
                binding.promised = self._claims.promised_to(booked.uid)
                self._under_way[booked.uid] = binding
                if self._core.decisions is not None:
                    binding.decision = self._core.decisions.placed(tried)
                # The last step that may fail, and everything above it is undone by `undo`. The task starts at the next `await`
                # of the loop, so `_under_way` and `_waiting` are complete before it looks.
                self.hand_over(binding)
                return
        except BaseException:  # take the booking back first, whatever was raised
            self.undo(binding)
            raise
        self.undo(binding)
        self._failures.end(tried, refused_on_node(node_name, status))

    def _activate(self, pods: dict[str, PodView]) -> None:
        """Activate the pods that plugins put into the state under PodsToActivate."""
        self._core.queue.activate(list(pods.values()))
        pods.clear()

    def undo(self, binding: AssumedBinding) -> bool:
        """Take a booking back; return False if the API server has bound the pod after all, so that the store keeps it."""
        uid = binding.booked.uid
        self._under_way.pop(uid, None)
        self._waiting.remove(uid)
        # Unreserve before forget, as in kube-scheduler: a plugin may look at the node and must still find the pod there.
        self.unreserve(binding.profile, binding.booked, binding.node_name, binding.state)
        try:
            self._store.forget(uid)
        except SchedulerError as error:
            log.warning("%s", error)  # the API server has bound it after all
            return False
        return True

    def is_under_way(self, binding: AssumedBinding) -> bool:
        """Return whether a binding is neither over nor taken back."""
        return self._under_way.get(binding.booked.uid) is binding

    def take_out(self, uid: str) -> AssumedBinding | None:
        """Take back what is reserved for a booked pod that is about to leave its node; return its binding.

        None if the pod is not booked here.
        """
        binding = self._under_way.pop(uid, None)
        if binding is not None:
            self.unreserve(binding.profile, binding.booked, binding.node_name, binding.state)
        return binding

    def put_back(self, binding: AssumedBinding) -> None:
        """Undo `take_out`: reserve the same again."""
        binding.profile.reserve(binding.booked, binding.node_name, binding.state)
        self._under_way[binding.booked.uid] = binding

    def unreserve(self, profile: Profile, booked: PodView, node_name: str, state: CycleState) -> None:
        """Call Unreserve. A plugin that raises does not stop the others, and the booking goes anyway."""
        try:
            profile.unreserve(booked, node_name, state)
        except PluginError as error:
            explain(error, booked, self._core.observer)

    # What the binding cycle reports

    def bound(self, binding: AssumedBinding) -> None:
        """Report a bound pod: metrics, event, PostBind."""
        self._under_way.pop(binding.booked.uid, None)
        queued, pod, node_name = binding.queued, binding.booked, binding.node_name
        # The booking itself stays in the store: the watch's event confirms it, before or after this. Both orders are fine,
        # because neither needs the other.
        now = self._core.queue.now()
        self._core.observer.attempt_ended(
            "scheduled", binding.profile.name, self._core.handle.clock.monotonic() - binding.started
        )
        first = queued.initial_attempt if queued.initial_attempt is not None else now
        self._core.observer.pod_bound(pod, node_name, queued.attempts, now - first, queued.was_flushed)
        if binding.decision is not None and self._core.decisions is not None:
            self._core.decisions.ring.bound(binding.decision, now - first)
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node_name}"
        self._core.handle.recorder.event(pod, "Normal", "Scheduled", "Binding", note)
        try:
            binding.profile.post_bind(pod, node_name, binding.state)
        except PluginError as error:
            explain(error, pod, self._core.observer)
        if asked_for := binding.state.find(PODS_TO_ACTIVATE):
            self._activate(asked_for)
        # Counted from the end of Bind, not from assume: a pod that waits at Permit for ten minutes has not been lost.
        if self._assumed_ttl_seconds is not None:
            expiry = LoopCall(partial(self._expire, pod.uid))
            asyncio.get_running_loop().call_later(self._assumed_ttl_seconds, self._core.inbox.post, expiry)

    def _expire(self, uid: str) -> None:
        """Forget a booking that no watch event ever confirmed."""
        if self._store.is_assumed(uid):
            gone = self._store.forget(uid)
            if gone is not None:
                log.warning("pod %s was bound to %s but never seen there; its booking expired", gone.key, gone.node_name)
                self._core.latest.queue.wake(POD_WENT, gone.pod, None)

    def bind_failed(self, binding: AssumedBinding, status: Status) -> None:
        """Take the booking back, and let the pod's attempt fail."""
        pod = binding.booked
        # First of all, so that every wake-up below sees the room free. If the API server has bound the pod after all (a lost
        # answer, and the watch was faster), the room is taken, and nobody is woken.
        is_forgotten = self.undo(binding)
        # A plugin refused at Permit: the pod waits for that plugin's events. That its room is free again must not wake the pod
        # itself (`leaving_out`): it would be tried at once and refused again. After Permit no plugin refused it, so it goes to
        # backoff anyway.
        if status.is_rejected and not binding.is_released:
            # Fail before wake. The other way round the wake-up would be kept as an event that happened during the pod's own
            # attempt, and parking it would send it to backoff at once. kube-scheduler defers the wake-up for this reason.
            self._fail(binding, refused_on_node(binding.node_name, status))
            if is_forgotten:
                self._wake_after(pod.pod, binding.promised, leaving_out=pod.uid)
            return
        if is_forgotten:
            self._wake_after(pod.pod, binding.promised)
        silent = not status.message
        self._fail(binding, Failure(status.message, status.is_rejected, None, CLEAR, is_silent=silent, is_gone=status.is_gone))

    def _fail(self, binding: AssumedBinding, failure: Failure) -> None:
        self._failures.end(Tried(binding.queued, binding.profile, binding.started), failure, binding.node_name)

    def _wake_after(self, gone: Pod, promised: Sequence[ResourceClaim], leaving_out: str = "") -> None:
        """Wake the pods that may take the room, or the devices, of a pod whose binding failed.

        kube-scheduler wakes for devices only when a claim's status changes in the API. A claim that was allocated in memory
        alone never does, so there pods wait for its devices until another claim changes, or for five minutes. Here they are
        woken at once. If the claim's write is still under way, its devices are free only when that has ended; then the inbox
        brings it.
        """
        concerns = (lambda waiting: waiting.uid != leaving_out) if leaving_out else None
        self._core.queue.wake(POD_WENT, gone, None, concerns)
        for claim in promised:
            if not self._claims.when_settled(claim.metadata.uid, partial(self._settled, claim)):
                self._wake_for_devices(claim, concerns)

    def _settled(self, claim: ResourceClaim) -> None:
        self._core.inbox.post(LoopCall(partial(self._wake_for_devices, claim)))

    def _wake_for_devices(self, claim: ResourceClaim, concerns: Callable[[PodView], bool] | None = None) -> None:
        """Wake the pods that may take a claim's devices, unless the claim has them after all."""
        # A claim may be shared: another pod's Reserve may have put the same allocation into it meanwhile.
        if not self._claims.has_devices(claim):
            freed = msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, allocation=None))
            self._core.latest.queue.wake(CLAIM_CHANGED, claim, freed, concerns)
