"""One plugin and a small cluster: what it says about a pod, by node name and in words."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from kubesched.kube.api.pod import Pod
from kubesched.scheduler import config
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.framework import CycleState, NodeNames, Plugin, Profile, Status
from kubesched.scheduler.framework.runtime.registry import points_of

Refusals = dict[str, tuple[str, list[str]]]


class Bench:
    """A plugin with its arguments, as a configuration file gives them, in a cluster of these objects."""

    def __init__(
        self,
        cls: type[Plugin],
        *objects: Any,
        args: dict[str, Any] | None = None,
        gates: dict[str, bool] | None = None,
        release: config.Version = config.NEWEST,
    ) -> None:
        self.gates = config.Gates.of(gates or {}, emulated=release)
        self.store = Store()
        for obj in objects:
            self.put(obj)
        given = None
        if cls.Args is not None:
            given = msgspec.convert(args or {}, cls.Args).defaulted(self.gates)
        self.plugin = cls(given, EngineHandle(self.store.objects, self.gates))
        points = {point for point in points_of(cls) if point.removeprefix("pre_") in ("filter", "score")}
        self.profile = Profile("bench", {point: [(self.plugin, 1)] for point in points})

    def put(self, obj: Any) -> None:
        self.store.put(obj)

    def pre_filter(self, pod: Pod) -> Any:
        """Return "Skip", the code and reasons of a refusal, sorted node names, or None."""
        return _told(self.plugin.pre_filter(self.store.view(pod), self.store.snapshot(), CycleState()))

    def refusals(self, pod: Pod) -> Refusals:
        """Return the code and the reasons of every node that is refused."""
        view, nodes, state = self.store.view(pod), self.store.snapshot(), CycleState()
        answer = self.plugin.pre_filter(view, nodes, state)
        assert _told(answer) is None or isinstance(answer, NodeNames), answer
        verdict = self.profile.filter_one(self.plugin, view, nodes, state)
        statuses = {name: verdict.status(row) for row, name in enumerate(nodes.names)}
        return {name: (s.code.text, list(s.reasons)) for name, s in statuses.items() if not s.is_success}

    def fits(self, pod: Pod) -> list[str]:
        """Return the names of the nodes that are not refused."""
        refused = self.refusals(pod)
        return [name for name in self.store.snapshot().names if name not in refused]

    def pre_score(self, pod: Pod) -> Any:
        """Return "Skip", the code and reasons of an error, or None."""
        nodes = self.store.snapshot()
        return _told(self.plugin.pre_score(self.store.view(pod), nodes, np.ones(nodes.n, dtype=np.bool_), CycleState()))

    def scores(self, pod: Pod, among: list[str] | None = None, *, raw: bool = False) -> dict[str, int]:
        """Return the scores of the feasible nodes, normalised unless raw ones are wanted."""
        view, nodes, state = self.store.view(pod), self.store.snapshot(), CycleState()
        names = among if among is not None else list(nodes.names)
        feasible = np.zeros(nodes.n, dtype=np.bool_)
        feasible[nodes.rows_of(names)] = True
        self.plugin.pre_filter(view, nodes, state)
        assert _told(self.plugin.pre_score(view, nodes, feasible, state)) is None
        if raw:
            column = self.profile.raw_score(self.plugin, view, nodes, feasible, state)
        else:
            column = self.profile.rate(self.plugin, view, nodes, feasible, state)
        return {name: int(column[nodes.row(name)]) for name in names}


def _told(answer: Any) -> Any:
    if isinstance(answer, NodeNames):
        return sorted(answer.names)
    if answer is None or (isinstance(answer, Status) and answer.is_success):
        return None
    return answer.code.text if not answer.reasons else (answer.code.text, list(answer.reasons))
