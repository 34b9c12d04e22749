"""Plugins that raise, hang, report errors and lie, by the chance of the process they run in and while a fault says so."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np

from chaos.processes import current_process
from chaos.scene import Scene
from kubesched.scheduler.cluster import PodView, Snapshot
from kubesched.scheduler.framework import Code, CycleState, Plugin, Reason, Rejections, Status, wakeups

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
{more}
profiles:
- plugins:
    multiPoint: {{enabled: [{names}]}}
"""
_EXTENDER = """
extenders:
- urlPrefix: http://extender.example.com
  filterVerb: filter
  prioritizeVerb: prioritize
  preemptVerb: preempt
  bindVerb: "{bind}"
  weight: 1
  nodeCacheCapable: true
  httpTimeout: 5s
"""
_CHANGED = """
podMaxBackoffSeconds: 5
percentageOfNodesToScore: 100
"""


def configuration_of(scene: Scene, is_changed: bool = False) -> str:
    """Return the configuration file of a scene's schedulers, or what it is changed to."""
    names = ", ".join(f"{{name: {cls.name}}}" for cls in plugins_of(scene))
    extender = _EXTENDER.format(bind="bind" if scene.extender == "binds" else "") if scene.extender else ""
    return CONFIGURATION.format(more=(_CHANGED if is_changed else "") + extender, names=names)


def plugins_of(scene: Scene) -> tuple[type[Plugin], ...]:
    """Return the plugins that do harm in a scene."""
    return (Saboteur, Liar) if scene.has_liar else (Saboteur,)


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
        if process.sabotage("plugin") and process.chance.random() < 0.3:
            await asyncio.sleep(process.chance.uniform(0.0, 60.0))
        return self._harm("preBind")

    def post_bind(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Raise now and then."""
        self._harm("postBind")

    def _harm(self, point: str) -> Status | None:
        process = current_process()
        if not process.sabotage("plugin"):
            return None
        if process.chance.random() < 0.5:
            raise Sabotaged(point)
        return Status(Code.ERROR, ("sabotaged",))


class Liar(Plugin):
    """Raises, refuses everything, and answers in wrong shapes and numbers while nodes are looked at."""

    wakes_on = (wakeups.NODE_ADDED,)
    depends_on = ()
    """Itself a lie, as answers follow from chance: what is remembered of them may be wrong, and nothing more."""

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Any:
        """Raise, or allow a node that nobody has, now and then."""
        return {"raise": _raise, "odd": lambda: "nonsense"}.get(_lie(), lambda: None)()

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Any:
        """Raise, refuse all, or answer for other nodes now and then."""
        return {
            "raise": _raise,
            "odd": lambda: Rejections(np.zeros(nodes.n + 3, dtype=np.uint64), ()),
            "refuse": lambda: Rejections.where(np.ones(nodes.n, dtype=bool), _NO),
        }.get(_lie(), lambda: Rejections.none(nodes))()

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Any:
        """Raise, or answer out of all bounds now and then."""
        return {
            "raise": _raise,
            "odd": lambda: np.full(nodes.n, 1 << 40, dtype=np.int64),
            "refuse": lambda: np.zeros(nodes.n + 1, dtype=np.int64),
        }.get(_lie(), lambda: np.zeros(nodes.n, dtype=np.int64))()


_NO = Reason("node(s) were slandered")


def _lie() -> str:
    process = current_process()
    return process.chance.choice(("raise", "odd", "refuse")) if process.sabotage("plugin") else ""


def _raise() -> None:
    raise Sabotaged("on purpose")
