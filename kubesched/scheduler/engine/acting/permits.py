"""Pods that wait at Permit: booked, and held until plugins allow or refuse them.

In: a pod and the plugins it waits for, each with a limit. Out: one status, whichever decision comes first. Decisions that
come before anybody waits are kept. Plugins reach the waiting pods through the handle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.config import Duration
from kubesched.scheduler.framework import SUCCESS, Code, Status

LONGEST_WAIT_SECONDS = 15 * 60.0


class WaitingPod:
    """One pod at Permit."""

    __slots__ = ("_decision", "_timers", "node_name", "pod")

    def __init__(self, pod: PodView, node_name: str, limits: Mapping[str, float]) -> None:
        self.pod = pod
        self.node_name = node_name
        loop = asyncio.get_running_loop()
        self._decision: asyncio.Future[Status] = loop.create_future()
        self._timers = {
            plugin: loop.call_later(max(seconds, 0.0), self._time_out, plugin, seconds) for plugin, seconds in limits.items()
        }

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """Return the plugins that have not allowed the pod yet."""
        return tuple(self._timers)

    def allow(self, plugin: str) -> None:
        """Take back one plugin's wish to wait; the last one lets the pod go on."""
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
            if not self._timers:
                self._decide(SUCCESS)

    def reject(self, plugin: str, message: str) -> bool:
        """Refuse the pod; False if it was decided already."""
        return self._decide(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """End the pod's attempt in favour of another pod; False if it was decided already."""
        return self._decide(Status(Code.ERROR, (message,), plugin))

    async def decision(self) -> Status:
        """Wait for the decision."""
        return await self._decision

    def close(self) -> None:
        """Let no limit run out any more: nobody waits for the decision."""
        for timer in self._timers.values():
            timer.cancel()

    def _time_out(self, plugin: str, seconds: float) -> None:
        self.reject(plugin, f"rejected due to timeout after waiting {Duration.of(seconds=seconds)} at plugin {plugin}")

    def _decide(self, status: Status) -> bool:
        if self._decision.done():
            return False
        self._decision.set_result(status)
        return True


class WaitingPods:
    """All pods at Permit, of all profiles, by uid."""

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
        """Register a pod; done before its binding starts, so that an early decision finds it."""
        self._pods[waiting.pod.uid] = waiting

    def remove(self, uid: str) -> None:
        """Forget a pod whose decision was taken, or that does not get to wait for one."""
        gone = self._pods.pop(uid, None)
        if gone is not None:
            gone.close()

    def reject(self, uid: str, message: str = "removed", plugin: str = "") -> bool:
        """Refuse a pod that waits; False if it does not wait or was decided already."""
        waiting = self._pods.get(uid)
        return waiting is not None and waiting.reject(plugin, message)
