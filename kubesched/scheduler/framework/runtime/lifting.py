"""Plugins that answer for one node at a time.

In: a plugin with `filter_node` or `score_node`. Out: the columns that the framework works with, from one Python call for each
node. The answers are the same as those of a plugin with columns, and slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kubesched.kube.api import Node, Taint
from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.plugin import Plugin, Refusal
from kubesched.scheduler.framework.runtime.blame import erred
from kubesched.scheduler.framework.verdicts import Code, Reason, Rejections


class NodeView:
    """One node as an author of a scalar plugin sees it. Resources go by name, or by number where speed matters."""

    __slots__ = ("nodes", "row")

    def __init__(self, nodes: Snapshot, row: int) -> None:
        self.nodes = nodes
        self.row = row

    @property
    def name(self) -> str:
        """Return the node's name."""
        return self.nodes.name(self.row)

    @property
    def node(self) -> Node:
        """Return the API object."""
        return self.nodes.node(self.row)

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the node's labels."""
        return self.node.metadata.labels

    @property
    def taints(self) -> Sequence[Taint]:
        """Return the node's taints."""
        return self.node.spec.taints

    @property
    def pods(self) -> Iterable[PodView]:
        """Return the pods on the node."""
        return tuple(self.nodes.pods_on(self.row))  # the list itself is the store's

    def allocatable(self, resource: str | int) -> int:
        """Return what the node offers: cpu in thousandths, the rest in whole units."""
        return self.nodes.allocatable_at(self._number(resource), self.row)

    def requested(self, resource: str | int) -> int:
        """Return what its pods asked for."""
        return self.nodes.requested_at(self._number(resource), self.row)

    def non_zero_requested(self, resource: str | int) -> int:
        """Return what its pods asked for, where one that asks for nothing counts as 100m and 200Mi a container."""
        return self.nodes.non_zero_requested_at(self._number(resource), self.row)

    def usage(self, resource: int) -> tuple[int, int]:
        """Return what the node offers of a resource, given by number, and what its pods asked for."""
        return self.nodes.usage_at(resource, self.row)

    def free(self, resource: str | int) -> int:
        """Return what is left."""
        number = self._number(resource)
        return self.nodes.allocatable_at(number, self.row) - self.nodes.requested_at(number, self.row)

    @property
    def free_pods(self) -> int:
        """Return how many more pods the node takes."""
        return self.nodes.free_pods_at(self.row)

    def _number(self, resource: str | int) -> int:
        return resource if isinstance(resource, int) else self.nodes.resource(resource)


def filter_rows(plugin: Plugin, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
    """Ask `filter_node` for every row and gather the answers into one column."""
    # By reason, because there are few: 5,000 nodes have perhaps three different reasons, and a column of bits is made from each
    # list at once.
    rows: dict[Reason, list[int]] = {}
    for row in range(nodes.n):
        for reason in reasons_of(plugin, plugin.filter_node(pod, NodeView(nodes, row), state)):
            rows.setdefault(reason, []).append(row)
    return Rejections.by_reason(rows, nodes.n)


def score_rows(plugin: Plugin, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Ints:
    """Ask `score_node` for every feasible row; the others get zero."""
    scores = np.zeros(nodes.n, dtype=np.int64)
    for row in np.flatnonzero(feasible).tolist():
        scores[row] = plugin.score_node(pod, NodeView(nodes, row), state)
    return scores


def reasons_of(plugin: Plugin, answer: Refusal) -> tuple[Reason, ...]:
    """Return what `filter_node` said as reasons; none where the node passes."""
    if answer is None:
        return ()
    if isinstance(answer, tuple):
        return answer
    if isinstance(answer, str):
        # A bare text is resolvable: preemption may help. A plugin for which it does not answers with a Status.
        return (Reason(answer),)
    if answer.is_success:
        return ()
    if not answer.is_rejected:
        raise erred(plugin.name, "Filter", answer.message)
    texts = answer.reasons or ("",)
    return tuple(Reason(t, resolvable=answer.code is not Code.UNRESOLVABLE, pending=answer.code is Code.PENDING) for t in texts)
