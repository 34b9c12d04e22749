"""The extension points after a node is chosen: Reserve, Permit, PreBind, Bind, PostBind.

In: a pod, its node, the state of its attempt. Out: statuses, merged as kube-scheduler merges them. PreBind and Bind are
coroutines: other pods are decided while they wait.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.runtime.blame import misanswered
from kubesched.scheduler.framework.runtime.plugin_calls import PluginCalls, named, reported
from kubesched.scheduler.framework.verdicts import SKIP, SUCCESS, Code, Status, failed

BROKEN = failed("")
ASKED_TO_WAIT = "one or more plugins asked to wait and no plugin rejected pod"


class BindingPoints(PluginCalls):
    """The extension points behind a decision."""

    def __init__(self, points: Mapping[str, Sequence[tuple[Plugin, int]]]) -> None:
        super().__init__(points)
        self.reserves = self._at("reserve")
        self.permits = self._at("permit")
        self.pre_binds = self._at("pre_bind")
        self.binds = self._at("bind")
        self.post_binds = self._at("post_bind")

    @reported("Reserve", lambda status: status.code.text)
    def reserve(self, pod: PodView, node_name: str, state: CycleState) -> Status:
        """Run the Reserves; the first that does not succeed ends it."""
        # The caller undoes everything with Unreserve, also for plugins whose Reserve was not called. As in kube-scheduler,
        # Unreserve must therefore do nothing if there is nothing to undo.
        for plugin in self.reserves:
            answer = self._ask("Reserve", plugin, plugin.reserve, pod, node_name, state)
            if answer is not None and not answer.is_success:
                if answer.is_rejected:
                    return named(answer, plugin)
                return failed(f'running Reserve plugin "{plugin.name}": {answer.message}').by(plugin.name)
        return SUCCESS

    @reported("Unreserve")
    def unreserve(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Run the Unreserves in reverse order. If some raise, the first error is raised at the end."""
        self._call_all("Unreserve", [(plugin, plugin.unreserve) for plugin in reversed(self.reserves)], pod, node_name, state)

    @reported("Permit", lambda answer: answer[0].code.text)
    def permit(self, pod: PodView, node_name: str, state: CycleState) -> tuple[Status, dict[str, float]]:
        """Run the Permits; return the first refusal, or WAIT with the plugins that ask for it and their limits in seconds.

        Kept quirk: if several plugins ask to wait, only the last one's reason is reported.
        """
        limits: dict[str, float] = {}
        awaited: tuple[str, ...] = ()
        for plugin in self.permits:
            answer = self.call("Permit", plugin, plugin.permit, pod, node_name, state)
            if not _is_permit(answer):
                raise misanswered(plugin.name, "Permit", "a Status and a number of seconds", answer, pod.key)
            status, seconds = answer
            if status.is_success:
                continue
            if status.is_rejected:
                return named(status, plugin), {}
            if status.code is not Code.WAIT:
                return failed(f'running Permit plugin "{plugin.name}": {status.message}').by(plugin.name), {}
            # Go on: a later plugin may refuse, and a refusal wins over any Wait.
            limits[plugin.name] = seconds
            awaited = status.reasons
        return (Status(Code.WAIT, (*awaited, ASKED_TO_WAIT)) if limits else SUCCESS), limits

    @reported("PreBindPreFlight", lambda answer: answer[1].code.text)
    def pre_bind_pre_flight(self, pod: PodView, node_name: str, state: CycleState) -> tuple[list[Plugin], Status]:
        """Return the PreBind plugins that have something to do, with SKIP if there are none, or what went wrong."""
        acting: list[Plugin] = []
        for plugin in self.pre_binds:
            answer = self._ask("PreBindPreFlight", plugin, plugin.pre_bind_pre_flight, pod, node_name, state)
            if answer is None or answer.is_success:
                acting.append(plugin)
            elif answer.code is Code.ERROR:
                # An error ends it. Only Success, Skip and Error are allowed: a plugin cannot refuse a pod here, after Permit.
                return [], failed(f'running PreBindPreFlight "{plugin.name}": {answer.message}').by(plugin.name)
            elif answer.code is not Code.SKIP:
                return [], failed(
                    f'PreBindPreFlight {plugin.name} returned "{answer.code.text}", which is unsupported. '
                    "It is supposed to return Success, Skip, or Error status"
                ).by(plugin.name)
        return acting, SUCCESS if acting else SKIP

    async def pre_bind(self, plugin: Plugin, pod: PodView, node_name: str, state: CycleState) -> Status:
        """Run one PreBind. Several may run at the same time, so the caller reports the extension point."""
        answer = await self._await("PreBind", plugin, plugin.pre_bind, pod, node_name, state)
        if answer is None or answer.is_success:
            return SUCCESS
        if answer.is_rejected:
            return named(answer, plugin)
        return failed(f'running PreBind plugin "{plugin.name}": {answer.message}').by(plugin.name)

    async def bind(self, pod: PodView, node_name: str, state: CycleState) -> Status:
        """Run the Bind plugins in order until one does not answer SKIP."""
        started, status = time.perf_counter(), BROKEN
        try:
            for plugin in self.binds:
                answer = await self._await("Bind", plugin, plugin.bind, pod, node_name, state) or SUCCESS
                if answer.code is Code.SKIP:
                    continue
                status = named(answer, plugin)
                if answer.is_success:
                    status = SUCCESS
                elif not answer.is_rejected:
                    text = f'running Bind plugin "{plugin.name}": {answer.message}'
                    # `is_gone` survives the rewording: a pod that was deleted meanwhile is no error in metrics and log.
                    status = Status(Code.ERROR, (text,), plugin.name, answer.is_gone)
                return status
            # All plugins passed the pod on. kube-scheduler takes this as a failure without a text: the pod is requeued, without
            # event and condition.
            status = SKIP
            return status
        finally:
            self.report("Bind", status, started)

    @reported("PostBind")
    def post_bind(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Run the PostBinds. If some raise, the first error is raised at the end."""
        self._call_all("PostBind", [(plugin, plugin.post_bind) for plugin in self.post_binds], pod, node_name, state)


def _is_permit(answer: object) -> bool:
    return (
        isinstance(answer, tuple)
        and len(answer) == 2
        and isinstance(answer[0], Status)
        and isinstance(answer[1], int | float)
        and not math.isnan(answer[1])
    )
