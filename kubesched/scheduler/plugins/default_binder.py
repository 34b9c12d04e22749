"""DefaultBinder: write the binding to the API server."""

from __future__ import annotations

from kubesched.errors import SchedulerError
from kubesched.scheduler.framework import CycleState, Plugin, PodView, Status, failed


class DefaultBinder(Plugin):
    async def bind(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        try:
            await self.handle.writer.bind(pod, node_name)
        except SchedulerError as error:
            return failed(str(error))
        return None
