"""One node with pods of our own imagination, kept as a few numbers.

The same as a what-if over one row, at a fraction of the price: preemption and the pass beside nominated pods ask about
single nodes all the time, namely about those that just changed. It looks like any node to `filter_node`; filters that
want columns get a real what-if, made when one of them asks.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.api.node import Node
from kubesched.cluster import CPU, MEMORY, PodView, Snapshot
from kubesched.framework.lifting import NodeView
from kubesched.framework.whatif import WhatIf


class ImaginedNode(NodeView):
    """A node that pods can be added to and removed from. `base` is the view of all nodes, `base_row` the node's row."""

    __slots__ = ("_cpu", "_memory", "_moves", "_n_pods", "_usage", "_view", "base", "base_row")

    def __init__(self, base: Snapshot, row: int) -> None:
        self.base = base
        self.base_row = row
        self._moves: list[tuple[PodView, int]] = []
        self._usage: dict[int, int] = {}
        self._cpu = self._memory = self._n_pods = 0
        self._view: WhatIf | None = None

    def move(self, pod: PodView, sign: int) -> None:
        """Imagine that a pod came to the node (+1) or left it (-1)."""
        template, usage = pod.template, self._usage
        for resource, amount in template.usage:
            usage[resource] = usage.get(resource, 0) + sign * amount
        self._cpu += sign * template.non_zero_cpu
        self._memory += sign * template.non_zero_memory
        self._n_pods += sign
        self._moves.append((pod, sign))
        self._view = None

    def copy(self) -> ImaginedNode:
        """Return the same node, to imagine something else on top."""
        other = ImaginedNode(self.base, self.base_row)
        other._moves = self._moves.copy()
        other._usage = self._usage.copy()
        other._cpu, other._memory, other._n_pods = self._cpu, self._memory, self._n_pods
        return other

    @property
    def nodes(self) -> WhatIf:  # type: ignore[override]
        """Return the node as a what-if over one row."""
        if self._view is None:
            view = self._view = WhatIf.of(self.base, [self.base_row])
            for pod, sign in self._moves:
                if sign > 0:
                    view.add(pod, 0)
                else:
                    view.remove(pod, 0)
        return self._view

    @property
    def row(self) -> int:  # type: ignore[override]
        """Return the row in that what-if."""
        return 0

    @property
    def name(self) -> str:
        """Return the node's name."""
        return self.base.name(self.base_row)

    @property
    def node(self) -> Node:
        """Return the API object."""
        return self.base.node(self.base_row)

    @property
    def pods(self) -> Iterable[PodView]:
        """Return the pods on the node, imagined ones included."""
        return self.nodes.pods_on(0)

    def allocatable(self, resource: str | int) -> int:
        """Return what the node offers: cpu in thousandths, the rest in whole units."""
        return self.base.allocatable_at(self._number(resource), self.base_row)

    def requested(self, resource: str | int) -> int:
        """Return what its pods asked for, imagined ones included."""
        number = self._number(resource)
        return self.base.requested_at(number, self.base_row) + self._usage.get(number, 0)

    def non_zero_requested(self, resource: str | int) -> int:
        """Return what its pods asked for, with the defaults for those that asked for nothing."""
        number = self._number(resource)
        moved = self._cpu if number == CPU else self._memory if number == MEMORY else self._usage.get(number, 0)
        return self.base.non_zero_requested_at(number, self.base_row) + moved

    def usage(self, resource: int) -> tuple[int, int]:
        """Return what the node offers of a resource, given by number, and what its pods asked for."""
        offered, used = self.base.usage_at(resource, self.base_row)
        return offered, used + self._usage.get(resource, 0)

    def counted_usage(self, resource: int) -> tuple[int, int]:
        """Return the same, with the defaults for pods that asked for nothing."""
        return self.base.allocatable_at(resource, self.base_row), self.non_zero_requested(resource)

    def free(self, resource: str | int) -> int:
        """Return what is left."""
        return self.allocatable(resource) - self.requested(resource)

    @property
    def free_pods(self) -> int:
        """Return how many more pods the node takes."""
        return self.base.free_pods_at(self.base_row) - self._n_pods

    def _number(self, resource: str | int) -> int:
        return resource if isinstance(resource, int) else self.base.resource(resource)
