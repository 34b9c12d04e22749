"""A priority written as Python functions: a map over (pod, node), and perhaps a reduce over all nodes' scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np

from kubesched.cluster import Bools, Ints, PodView, Snapshot
from kubesched.errors import PluginError
from kubesched.framework import CycleState, NodeView
from kubesched.legacy.priorities.base import Priority

MapFunction = Callable[[PodView, NodeView], int]
ReduceFunction = Callable[[PodView, Mapping[str, int]], Mapping[str, int]]
"""(pod, score by node name) -> the scores to add up, one for each of these nodes"""


class FunctionPriority(Priority):
    """Ask the functions."""

    map_function: ClassVar[MapFunction]
    reduce_function: ClassVar[ReduceFunction | None] = None

    @classmethod
    def of(cls, name: str, mapping: MapFunction, reducing: ReduceFunction | None = None) -> type[FunctionPriority]:
        """Return the plugin class of a map function and perhaps a reduce function."""
        return type(
            "FunctionPriority",
            (cls,),
            {
                "name": name,
                "map_function": staticmethod(mapping),
                "__doc__": mapping.__doc__,
                "reduce_function": staticmethod(reducing) if reducing is not None else None,
            },
        )

    def score_node(self, pod: PodView, node: NodeView, state: CycleState) -> int:
        answer = type(self).map_function(pod, node)
        if isinstance(answer, bool) or not isinstance(answer, int):
            raise self._broken(pod, f"expected a whole number for node {node.name}, got {answer!r}")
        return answer

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        reduce = type(self).reduce_function
        if reduce is None:
            return scores
        rows = np.flatnonzero(feasible).tolist()
        given = {nodes.name(row): int(scores[row]) for row in rows}
        reduced = reduce(pod, given)
        if not isinstance(reduced, Mapping) or reduced.keys() != given.keys():
            raise self._broken(pod, f"expected a score for each of {len(given)} nodes, got {reduced!r}")
        result = np.zeros(len(scores), dtype=np.int64)
        for row in rows:
            result[row] = reduced[nodes.name(row)]
        return result

    def _broken(self, pod: PodView, what: str) -> PluginError:
        text = f'running Score plugins: plugin "{self.name}" failed with: {what}'
        return PluginError(self.name, "Score", text, pod.key)
