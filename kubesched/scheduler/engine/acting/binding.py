"""The binding cycle of an assumed pod: wait at Permit, PreBind, Bind.

Each cycle is a task of its own, so many pods are being bound while the loop decides the next ones. A cycle changes neither the
store nor the queue. It ends by posting `Bound` or `BindFailed` to the inbox, and the loop does the rest (`bookings.py`).

Two pods on one core; `L` is the loop, `1` and `2` are their binding cycles:

    L   decide 1, assume, Reserve, Permit; create cycle 1
    L   decide 2 as if 1 ran already; assume, Reserve, Permit; create cycle 2
    1   PreBindPreFlight, Bind: the request is sent
    2   PreBindPreFlight, Bind: the request is sent
    L   the watch has pod 2 with its node: the store confirms it
    2   the answer comes: Bound is posted
    1   the answer is an error: BindFailed is posted
    L   Bound: event and metrics for 2. BindFailed: 1 is forgotten, and pods that wait for room are woken
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence

from kubesched.errors import NotFound, SchedulerError
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.config import Duration
from kubesched.scheduler.engine.arrivals.inbox import AssumedBinding, BindFailed, Bound, PastPermit
from kubesched.scheduler.engine.core import Core
from kubesched.scheduler.engine.deciding.extenders import Extenders
from kubesched.scheduler.engine.deciding.failure import explain
from kubesched.scheduler.framework import SUCCESS, Code, Plugin, Status, failed

LONGEST_WAIT_SECONDS = 15 * 60.0
SIBLING_FAILED = "some other PreBind operation failed"


class WaitingPod:
    """One pod at Permit: assumed, and held until every plugin that said Wait allows it, or one refuses it.

    The first decision counts. It is kept if it comes before the binding cycle asks for it: a gang's last member may allow the
    first one before the first one's task has even started.
    """

    __slots__ = ("_decision", "_timers", "node_name", "pod")

    def __init__(self, pod: PodView, node_name: str, limits: Mapping[str, float]) -> None:
        self.pod = pod
        self.node_name = node_name
        loop = asyncio.get_running_loop()
        self._decision: asyncio.Future[Status] = loop.create_future()
        # One timer for each plugin that said Wait. The first that fires refuses the pod, as in kube-scheduler.
        self._timers = {
            plugin: loop.call_later(max(seconds, 0.0), self._time_out, plugin, seconds) for plugin, seconds in limits.items()
        }

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """Return the plugins that have not allowed the pod yet."""
        return tuple(self._timers)

    def allow(self, plugin: str) -> None:
        """Allow the pod on behalf of one plugin; when the last one has, the pod goes on."""
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
            if not self._timers:
                self._decide(SUCCESS)

    def reject(self, plugin: str, message: str) -> bool:
        """Refuse the pod; False if it was decided already."""
        # UNSCHEDULABLE with the plugin's name: the pod is parked under that plugin's wake-ups.
        return self._decide(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """End the pod's attempt because another pod preempts it; False if it was decided already."""
        # ERROR and not UNSCHEDULABLE: no plugin refused the victim, so it waits for no event and goes to backoff.
        return self._decide(Status(Code.ERROR, (message,), plugin))

    async def decision(self) -> Status:
        """Wait for the decision."""
        return await self._decision

    def close(self) -> None:
        """Stop the timers: the decision is not needed any more."""
        for timer in self._timers.values():
            timer.cancel()

    def _time_out(self, plugin: str, seconds: float) -> None:
        self.reject(plugin, f"rejected due to timeout after waiting {Duration.of(seconds=seconds)} at plugin {plugin}")

    def _decide(self, status: Status) -> bool:
        # An allow, a refusal and a timer may meet in one round of the loop. The first one wins, and the others learn it from
        # False.
        if self._decision.done():
            return False
        self._decision.set_result(status)
        return True


class WaitingPods:
    """All pods at Permit, of all profiles, by uid. Plugins reach them through the handle."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> WaitingPod | None:
        """Return a pod that waits, or None."""
        return self._pods.get(uid)

    def add(self, waiting: WaitingPod) -> None:
        """Register a pod. Do this before its binding cycle starts, so that an early decision finds it."""
        self._pods[waiting.pod.uid] = waiting

    def remove(self, uid: str) -> None:
        """Forget a pod that does not wait any more."""
        gone = self._pods.pop(uid, None)
        if gone is not None:
            gone.close()

    def reject(self, uid: str, message: str = "removed", plugin: str = "") -> bool:
        """Refuse a pod that waits; False if it does not wait or was decided already."""
        waiting = self._pods.get(uid)
        return waiting is not None and waiting.reject(plugin, message)


class Binder:
    """Runs binding cycles."""

    def __init__(
        self, core: Core, waiting: WaitingPods, *, writes_expectation: bool = True, extenders: Extenders | None = None
    ) -> None:
        self._core = core
        self._waiting = waiting
        self._writes_expectation = writes_expectation
        self._extenders = extenders
        # Pods that can still be preempted without being deleted: PreBind has begun and Bind has not.
        self._pre_binding: dict[str, asyncio.Task[Status]] = {}

    def is_pre_binding(self, uid: str) -> bool:
        """Return whether a pod's PreBind is under way and can still be cancelled."""
        return uid in self._pre_binding

    def call_off(self, uid: str, reason: str) -> bool:
        """Cancel a pod's PreBind, because another pod preempts it; False if it is over already."""
        task = self._pre_binding.pop(uid, None)
        return task is not None and task.cancel(reason)

    async def carry_out(self, binding: AssumedBinding) -> None:
        """Bind a pod and post the result, whatever happens: without it the pod stays assumed forever and is lost. Only if this
        task is cancelled, because the engine closes, nothing is posted."""
        self._core.observer.bindings(+1)
        waiting = self._waiting.get(binding.booked.uid)
        try:
            status = await self._bind(binding, waiting)
        except asyncio.CancelledError as cancelled:
            if _is_being_cancelled():
                raise
            # A plugin's own future was cancelled. That is a failed binding and nothing more.
            status = failed(str(cancelled) or "cancelled")
        except Exception as error:  # see above
            status = failed(explain(error, binding.booked, self._core.observer))
        finally:
            if waiting is not None:
                self._waiting.remove(binding.booked.uid)
            self._core.observer.bindings(-1)
        self._core.inbox.post(Bound(binding) if status.is_success else BindFailed(binding, status))

    async def _bind(self, binding: AssumedBinding, waiting: WaitingPod | None) -> Status:
        pod, node_name, state, profile = binding.booked, binding.node_name, binding.state, binding.profile
        # Without the gate NominatedNodeNameForExpectation there is no PreBindPreFlight, and every PreBind plugin runs.
        acting, status = list(profile.pre_binds), SUCCESS
        if self._writes_expectation:
            acting, status = profile.pre_bind_pre_flight(pod, node_name, state)
        if not (status.is_success or status.code is Code.SKIP):
            return status
        is_written = pod.pod.status.nominated_node_name == node_name
        if self._writes_expectation and (acting or waiting is not None) and not is_written:
            # Written only if the binding takes time (Permit waits or some PreBind acts). Otherwise the pod has its node as soon
            # as this write would have arrived.
            # NominatedNodeNameForExpectation: other components see the expected node. A failed write does not stop the binding.
            binding.queued.has_unseen_nomination = True
            try:
                await self._core.handle.writer.patch_pod_status(pod, {"nominatedNodeName": node_name})
            except NotFound:
                pass  # Bind will say so
            except SchedulerError as error:
                self._core.observer.write_failed(pod, "nominatedNodeName", error)
        if waiting is not None:
            started = self._core.handle.clock.monotonic()
            # The write above may have taken long. A decision made meanwhile is kept in `waiting`, and is read here.
            decision = await waiting.decision()
            self._waiting.remove(pod.uid)
            self._core.observer.permit_waited(decision.code.text, self._core.handle.clock.monotonic() - started)
            if decision.is_rejected:
                return decision
            if not decision.is_success:
                return failed(f"waiting on permit for pod: {decision.message}").by(decision.plugin)
        # Before PreBind, which may take minutes (volumes, devices). The queue drops the events that it keeps for this pod.
        self._core.inbox.post(PastPermit(binding))
        if acting:
            status = await self._pre_bind(binding, acting)
            if not status.is_success:
                return status
        # As in kube-scheduler, an extender that binds replaces the Bind plugins. PreBind has run all the same.
        if self._extenders and await self._extenders.bind(pod, node_name):
            return SUCCESS
        return await profile.bind(pod, node_name, state)

    async def _pre_bind(self, binding: AssumedBinding, acting: Sequence[Plugin]) -> Status:
        """Run PreBind, which `call_off` can end, and report its duration as one point."""
        uid, started = binding.booked.uid, time.perf_counter()
        task = asyncio.ensure_future(self._run_pre_binds(binding, acting))
        self._pre_binding[uid] = task
        status = failed("")
        try:
            status = await task
        except asyncio.CancelledError as cancelled:
            if _is_being_cancelled():
                raise
            status = failed(str(cancelled.args[0]) if cancelled.args else "cancelled")
        finally:
            self._pre_binding.pop(uid, None)
            binding.profile.report("PreBind", status, started)
        return status

    async def _run_pre_binds(self, binding: AssumedBinding, acting: Sequence[Plugin]) -> Status:
        """Run PreBind plugins in the profile's order. Neighbours that both allow it run at the same time."""
        # Example: A and C allow it, B does not, D and E allow it, and D has nothing to do.
        #   profile   A  B  C  D  E
        #   groups    [A] [B] [C E]
        # D is skipped and does not separate C from E. B would separate its neighbours even if it had nothing to do, as in
        # kube-scheduler.
        groups: list[list[Plugin]] = []
        last_parallel: Plugin | None = None
        for plugin in binding.profile.pre_binds:
            if not plugin.pre_binds_in_parallel:
                last_parallel = None
                if plugin in acting:
                    groups.append([plugin])
            elif plugin in acting:
                if last_parallel is not None:
                    groups[-1].append(plugin)
                else:
                    groups.append([plugin])
                last_parallel = plugin
        for group in groups:
            status = await self._run_group(binding, group)
            if not status.is_success:
                return status
        return SUCCESS

    async def _run_group(self, binding: AssumedBinding, group: Sequence[Plugin]) -> Status:
        profile = binding.profile
        if len(group) == 1:
            return await profile.pre_bind(group[0], binding.booked, binding.node_name, binding.state)
        tasks = [asyncio.ensure_future(profile.pre_bind(p, binding.booked, binding.node_name, binding.state)) for p in group]
        try:
            # The first failure ends the group: the others are cancelled, and waited for, so that no PreBind still runs when
            # Unreserve does.
            for finished in asyncio.as_completed(tasks):
                status = await finished
                if not status.is_success:
                    return status
            return SUCCESS
        finally:
            for task in tasks:
                task.cancel(SIBLING_FAILED)
            await asyncio.gather(*tasks, return_exceptions=True)


def _is_being_cancelled() -> bool:
    """Return whether the running task itself is being cancelled, not just a future that it waited for."""
    # `cancelling()` counts requests to cancel this very task. A future that was cancelled elsewhere raises the same exception
    # in us and leaves the count at 0.
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
