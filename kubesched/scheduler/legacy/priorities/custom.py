"""A priority written as Python functions: a map over (pod, node) and perhaps a reduce over all nodes' scores, or one function
of a pod and all nodes, as the oldest releases had them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from kubesched.errors import PluginError
from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot
from kubesched.scheduler.framework import CycleState, NodeView
from kubesched.scheduler.framework.ports import Handle
from kubesched.scheduler.legacy.context import LegacyContext
from kubesched.scheduler.legacy.factory_args import PluginFactoryArgs
from kubesched.scheduler.legacy.priorities.base import Priority

MapFunction = Callable[[PodView, NodeView], int]
ReduceFunction = Callable[[PodView, dict[str, int]], Mapping[str, int] | None]
"""(pod, score by node name) -> the scores to add up, one for each of these nodes; None if they were changed in place"""
MapReduceFactory = Callable[[PluginFactoryArgs], tuple[MapFunction, ReduceFunction | None]]
ListFunction = Callable[[PodView, Sequence[NodeView]], Mapping[str, int]]
"""(pod, the nodes that fit) -> the score of each of them by name"""
ListFunctionFactory = Callable[[PluginFactoryArgs], ListFunction]


class FunctionPriority(Priority):
    """Ask the functions."""

    factory: ClassVar[MapReduceFactory]

    @classmethod
    def of(cls, name: str, factory: MapReduceFactory) -> type[FunctionPriority]:
        """Return the plugin class of a map function, and perhaps a reduce function, that are made when a scheduler is."""
        return type("FunctionPriority", (cls,), {"name": name, "factory": staticmethod(factory), "__doc__": factory.__doc__})

    def __init__(self, context: LegacyContext, handle: Handle) -> None:
        super().__init__(context, handle)
        self._listers = PluginFactoryArgs(context, handle)
        self._map, self._reduce = type(self).factory(self._listers)

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> None:
        self._listers.see(nodes)

    def score_node(self, pod: PodView, node: NodeView, state: CycleState) -> int:
        answer = self._map(pod, node)
        if isinstance(answer, bool) or not isinstance(answer, int):
            raise self._broken(pod, f"expected a whole number for node {node.name}, got {answer!r}")
        return answer

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        reduce = self._reduce
        if reduce is None:
            return scores
        rows = np.flatnonzero(feasible).tolist()
        given = {nodes.name(row): int(scores[row]) for row in rows}
        changed = reduce(pod, given)
        reduced = given if changed is None else changed
        return _column(self.name, pod, reduced, {nodes.name(row): row for row in rows}, len(scores))

    def _broken(self, pod: PodView, what: str) -> PluginError:
        return _broken(self.name, pod, what)


class ListPriority(Priority):
    """Ask one function about all nodes that fit: the form that map and reduce took the place of."""

    factory: ClassVar[ListFunctionFactory]

    @classmethod
    def of(cls, name: str, factory: ListFunctionFactory) -> type[ListPriority]:
        """Return the plugin class of a function that is made when a scheduler is."""
        return type("ListPriority", (cls,), {"name": name, "factory": staticmethod(factory), "__doc__": factory.__doc__})

    def __init__(self, context: LegacyContext, handle: Handle) -> None:
        super().__init__(context, handle)
        self._listers = PluginFactoryArgs(context, handle)
        self._function = type(self).factory(self._listers)

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> None:
        self._listers.see(nodes)
        state.write(f"{self.name}.feasible", feasible)

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        fitting = [NodeView(nodes, int(row)) for row in np.flatnonzero(state.read(f"{self.name}.feasible"))]
        answer = self._function(pod, fitting)
        return _column(self.name, pod, answer, {node.name: node.row for node in fitting}, nodes.n)


def _column(name: str, pod: PodView, scores: Mapping[str, int], rows: Mapping[str, int], n: int) -> Ints:
    """Return scores by node name as a column; raise PluginError if they are not one for each of these nodes."""
    if not isinstance(scores, Mapping) or scores.keys() != rows.keys():
        raise _broken(name, pod, f"expected a score for each of {len(rows)} nodes, got {scores!r}")
    column = np.zeros(n, dtype=np.int64)
    for node, row in rows.items():
        column[row] = scores[node]
    return column


def _broken(name: str, pod: PodView, what: str) -> PluginError:
    return PluginError(name, "Score", f'running Score plugins: plugin "{name}" failed with: {what}', pod.key)
