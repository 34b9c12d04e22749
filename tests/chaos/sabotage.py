"""A plugin that raises, hangs or reports an error, by the chance of the process it runs in and while a fault says so."""

from __future__ import annotations

import asyncio

from chaos.processes import current_process
from kubesched.cluster import PodView
from kubesched.framework import Code, CycleState, Plugin, Status

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: Saboteur}]}
"""


class Sabotaged(Exception):
    """Raised on purpose."""


class Saboteur(Plugin):
    """Does harm in every point that follows a decision."""

    def reserve(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Raise or fail now and then."""
        return self._harm("reserve")

    def permit(self, pod: PodView, node_name: str, state: CycleState) -> tuple[Status, float]:
        """Raise or fail now and then."""
        refused = self._harm("permit")
        return (refused, 0.0) if refused is not None else (Status(Code.SUCCESS), 0.0)

    async def pre_bind(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Raise, fail or hang now and then."""
        process = current_process()
        if process.sabotage() and process.chance.random() < 0.3:
            await asyncio.sleep(process.chance.uniform(0.0, 60.0))
        return self._harm("preBind")

    def post_bind(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Raise now and then."""
        self._harm("postBind")

    def _harm(self, point: str) -> Status | None:
        process = current_process()
        if not process.sabotage():
            return None
        if process.chance.random() < 0.5:
            raise Sabotaged(point)
        return Status(Code.ERROR, ("sabotaged",))
