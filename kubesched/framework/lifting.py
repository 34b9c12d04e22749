"""Plugins written for one node at a time, lifted over the rows.

In: a plugin with `filter_node` or `score_node`. Out: the columns that the rest of the framework works with. Slower than
columns, as correct: the answers are the same, one Python call a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kubesched.api.node import Node, Taint
from kubesched.cluster import Bools, Ints, PodView, Snapshot
from kubesched.framework.plugin import Plugin
from kubesched.framework.state import State
from kubesched.framework.verdicts import MAX_REASONS, Code, Reason, Rejections, Status


class NodeView:
    """One node as an author of a scalar plugin sees it."""

    __slots__ = ("_nodes", "_row")

    def __init__(self, nodes: Snapshot, row: int) -> None:
        self._nodes = nodes
        self._row = row

    @property
    def name(self) -> str:
        """Return the node's name."""
        return self._nodes.name(self._row)

    @property
    def node(self) -> Node:
        """Return the API object."""
        return self._nodes.node(self._row)

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the node's labels, never None."""
        return self.node.metadata.labels or {}

    @property
    def taints(self) -> Sequence[Taint]:
        """Return the node's taints."""
        return self._nodes.taint_sets[int(self._nodes.taint_set[self._row])]

    @property
    def pods(self) -> Iterable[PodView]:
        """Return the pods on the node."""
        return self._nodes.pods_on(self._row)

    def allocatable(self, resource: str) -> int:
        """Return what the node offers: cpu in thousandths, the rest in whole units."""
        return int(self._nodes.allocatable(self._nodes.resource(resource))[self._row])

    def requested(self, resource: str) -> int:
        """Return what its pods asked for."""
        return int(self._nodes.requested(self._nodes.resource(resource))[self._row])

    def free(self, resource: str) -> int:
        """Return what is left."""
        return self.allocatable(resource) - self.requested(resource)


def filter_rows(plugin: Plugin, pod: PodView, nodes: Snapshot, state: State) -> Rejections:
    """Ask `filter_node` for every row and gather the answers into one column."""
    numbers: dict[Reason, int] = {}
    bits = np.zeros(nodes.n, dtype=np.uint64)
    for row in range(nodes.n):
        for reason in _reasons(plugin, plugin.filter_node(pod, NodeView(nodes, row), state)):
            number = numbers.setdefault(reason, len(numbers))
            if number >= MAX_REASONS:
                number = MAX_REASONS - 1
            bits[row] |= np.uint64(1 << number)
    return Rejections(bits, tuple(numbers)[:MAX_REASONS]) if numbers else Rejections.none(nodes)


def score_rows(plugin: Plugin, pod: PodView, nodes: Snapshot, feasible: Bools, state: State) -> Ints:
    """Ask `score_node` for every feasible row; the others get zero."""
    scores = np.zeros(nodes.n, dtype=np.int64)
    for row in np.flatnonzero(feasible).tolist():
        scores[row] = plugin.score_node(pod, NodeView(nodes, row), state)
    return scores


def _reasons(plugin: Plugin, answer: str | Status | None) -> list[Reason]:
    if answer is None:
        return []
    if isinstance(answer, str):
        return [Reason(answer)]
    if answer.is_success:
        return []
    if not answer.is_rejected:
        raise ValueError(f'running "{plugin.name}" filter plugin: {answer.message}')
    texts = answer.reasons or ("",)
    return [Reason(t, resolvable=answer.code is not Code.UNRESOLVABLE, pending=answer.code is Code.PENDING)
            for t in texts]
