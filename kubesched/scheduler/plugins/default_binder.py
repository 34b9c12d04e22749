"""DefaultBinder: write the binding to the API server."""

from __future__ import annotations

from kubesched.errors import NotFound, SchedulerError
from kubesched.scheduler.framework import Code, CycleState, Plugin, PodView, Status


class DefaultBinder(Plugin):
    async def bind(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        try:
            await self.handle.writer.bind(pod, node_name)
        except SchedulerError as error:
            return Status(Code.ERROR, (str(error),), is_gone=isinstance(error, NotFound))
        return None
