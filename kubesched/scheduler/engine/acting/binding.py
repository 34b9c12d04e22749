"""Carry out a binding: wait for Permit, PreBind, Bind, PostBind.

In: a binding that the loop booked. Out: `Bound` or `BindFailed` in the inbox; nothing else is touched, so that many
bindings can be under way beside the loop. What a failure undoes, the loop undoes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial

from kubesched.errors import NotFound, SchedulerError
from kubesched.scheduler.engine.acting.permits import WaitingPods
from kubesched.scheduler.engine.arrivals.inbox import AssumedBinding, BindFailed, Bound, LoopCall
from kubesched.scheduler.engine.core import Core
from kubesched.scheduler.engine.deciding.extenders import Extenders
from kubesched.scheduler.engine.deciding.failure import explain
from kubesched.scheduler.framework import SUCCESS, Code, Plugin, Status, failed

SIBLING_FAILED = "some other PreBind operation failed"


class Binder:
    """Runs binding cycles."""

    def __init__(
        self, core: Core, waiting: WaitingPods, *, writes_expectation: bool = True, extenders: Extenders | None = None
    ) -> None:
        self._core = core
        self._waiting = waiting
        self._writes_expectation = writes_expectation
        self._extenders = extenders
        self._pre_binding: dict[str, asyncio.Task[Status]] = {}

    def is_pre_binding(self, uid: str) -> bool:
        """Return whether a pod's PreBind is under way and can still be called off."""
        return uid in self._pre_binding

    def call_off(self, uid: str, reason: str) -> bool:
        """End a pod's PreBind in favour of another pod; False if it is over already."""
        task = self._pre_binding.pop(uid, None)
        return task is not None and task.cancel(reason)

    async def carry_out(self, binding: AssumedBinding) -> None:
        """Bind a booked pod and report. Whatever happens is reported: a binding that nobody hears of stays booked, and
        its pod is lost. Only who cancels this task, because the engine is being closed, wants no report."""
        self._core.observer.binding_started()
        try:
            status = await self._bind_or_say_why(binding)
        except asyncio.CancelledError as cancelled:
            if _is_being_cancelled():
                raise
            status = failed(str(cancelled) or "cancelled")
        except Exception as error:  # see above
            status = failed(explain(error, binding.booked, self._core.observer))
        finally:
            self._waiting.remove(binding.booked.uid)
            self._core.observer.binding_ended()
        self._core.inbox.post(Bound(binding) if status.is_success else BindFailed(binding, status))

    async def _bind_or_say_why(self, binding: AssumedBinding) -> Status:
        pod, node_name, state, profile = binding.booked, binding.node_name, binding.state, binding.profile
        acting, status = list(profile.pre_binds), SUCCESS
        if self._writes_expectation:
            acting, status = profile.pre_bind_pre_flight(pod, node_name, state)
        if not (status.is_success or status.code is Code.SKIP):
            return status
        waiting = self._waiting.get(pod.uid)
        is_told = pod.pod.status.nominated_node_name == node_name
        if self._writes_expectation and (acting or waiting is not None) and not is_told:
            # The expected node goes into the pod's status; that writing it fails is no reason to stop.
            binding.queued.has_unseen_nomination = True
            try:
                await self._core.handle.writer.patch_pod_status(pod, {"nominatedNodeName": node_name})
            except NotFound:
                pass  # Bind will say so
            except SchedulerError as error:
                self._core.observer.write_failed(pod, "nominatedNodeName", error)
        if waiting is not None:
            started = self._core.handle.clock.monotonic()
            decision = await waiting.decision()
            self._waiting.remove(pod.uid)
            self._core.observer.permit_waited(decision.code.text, self._core.handle.clock.monotonic() - started)
            if decision.is_rejected:
                return decision
            if not decision.is_success:
                return failed(f"waiting on permit for pod: {decision.message}").by(decision.plugin)
        self._core.inbox.post(LoopCall(partial(self._release, binding)))
        if acting:
            status = await self._pre_bind(binding, acting)
            if not status.is_success:
                return status
        if self._extenders and await self._extenders.bind(pod, node_name):
            return SUCCESS
        return await profile.bind(pod, node_name, state)

    def _release(self, binding: AssumedBinding) -> None:
        """Take notice, in the loop's turn, that a pod is past Permit: whatever happens to it now, no plugin refused it."""
        binding.is_released = True
        self._core.latest.queue.done(binding.booked.uid)

    async def _pre_bind(self, binding: AssumedBinding, acting: Sequence[Plugin]) -> Status:
        """Run PreBind, which may be called off, and report it as one point."""
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
        """Run PreBind plugins in order; neighbours that allow it run side by side."""
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
        if len(group) == 1:  # nobody beside it: no task of its own is needed
            return await profile.pre_bind(group[0], binding.booked, binding.node_name, binding.state)
        tasks = [asyncio.ensure_future(profile.pre_bind(p, binding.booked, binding.node_name, binding.state)) for p in group]
        try:
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
    """Return whether somebody asked the running task to end, as opposed to a cancelled future that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
