"""How many nodes each group has, what the next one looks like, and how many more there may be.

In: groups of nodes, and the nodes of a cluster. Out: to which group a node belongs, nodes that do not exist yet, and how far
a group may grow: to its `max`, and to what the limits of its pool leave. Nothing here decides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import lcm

from kubesched.kube.api import Node, NodeCondition, NodeSpec, NodeStatus, ObjectMeta
from kubesched.kube.values import HOSTNAME, quantity
from kubesched.solver.node_groups.group import NodeGroup, numbered

_MODULUS = re.compile(r"\{i%([1-9][0-9]*)\}")
_MOST_VARIANTS = 60
_NODES = "nodes"
"""The limit of a pool that counts its nodes."""


def make_node(group: NodeGroup, i: int) -> Node:
    """Return node number i of a group; the label kubernetes.io/hostname is its name unless the group says otherwise."""
    name = f"{group.name}-{i}"
    labels = {HOSTNAME: name, **{key: numbered(value, i) for key, value in group.labels.items()}}
    offered = {"pods": "110", **(group.allocatable if group.allocatable is not None else group.capacity)}
    return Node(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", labels=labels),
        spec=NodeSpec(taints=group.taints),
        status=NodeStatus(
            capacity={"pods": "110", **group.capacity},
            allocatable=offered,
            conditions=(NodeCondition(type="Ready", status="True"),),
        ),
    )


class GroupSizes:
    """The groups of a cluster and their nodes, also those that are on their way."""

    def __init__(self, groups: Sequence[NodeGroup], nodes: Iterable[Node] = ()) -> None:
        self.groups = {group.name: group for group in groups}
        self.n_nodes: Counter[str] = Counter()
        self.n_of_variant: Counter[tuple[str, int]] = Counter()
        self._taken: dict[str, set[int]] = {}
        """The numbers of all nodes that ever were: no name is used twice."""
        self._next: dict[tuple[str, int | None], int] = {}
        """No number below is free, of all or of one variant."""
        self._n_variants: dict[str, int] = {}
        self._group_of: dict[str, str] = {}
        self._of_pool: dict[str, Counter[str]] = {}
        for node in nodes:
            name, labels = node.metadata.name, (node.metadata.labels or {}).items()
            for group in self.groups.values():
                number = _number(group, name)
                if group.selector.items() <= labels if group.selector else number is not None:
                    self.take(group, name)
                elif number is not None:
                    self._taken.setdefault(group.name, set()).add(number)

    def of(self, node_name: str) -> NodeGroup | None:
        """Return the group that a node belongs to."""
        return self.groups.get(self._group_of.get(node_name, ""))

    def n_variants(self, group: NodeGroup) -> int:
        """Return after how many nodes the labels of a group's nodes come again: those of three zones after three."""
        found = self._n_variants.get(group.name)
        if found is None:
            moduli = (int(each) for value in group.labels.values() for each in _MODULUS.findall(value))
            found = self._n_variants[group.name] = min(lcm(*moduli), _MOST_VARIANTS)
        return found

    def next_node(self, group: NodeGroup, variant: int | None = None) -> Node:
        """Return the node that the group would get next, without counting it; of one `variant` of labels, if that is said."""
        taken, key = self._taken.setdefault(group.name, set()), (group.name, variant)
        number, step = self._next.get(key, variant or 0), 1 if variant is None else self.n_variants(group)
        while number in taken:
            number += step
        self._next[key] = number
        return make_node(group, number)

    def add(self, group: NodeGroup, variant: int | None = None) -> Node:
        """Let a group have another node, and return it."""
        node = self.next_node(group, variant)
        self.take(group, node.metadata.name)
        return node

    def remove(self, node_name: str) -> None:
        """Let a node be gone; its name is not used again."""
        group = self.of(node_name)
        if group is not None:
            self._count(group, node_name, -1)

    def take_back(self, node_name: str) -> None:
        """Let a node that was added never have been: its number is used again."""
        group = self.of(node_name)
        if group is not None and (number := _number(group, node_name)) is not None:
            self._count(group, node_name, -1)
            self._taken[group.name].discard(number)
            for key in ((group.name, None), (group.name, number % self.n_variants(group))):
                self._next[key] = min(self._next.get(key, number), number)

    def room(self, group: NodeGroup) -> int:
        """Return how many more nodes the group may have."""
        left = (group.max or 0) - self.n_nodes[group.name]
        used, each = self._of_pool.get(group.pool, Counter()), _offer(group)
        for resource, limit in group.limits.items():
            if each.get(resource):
                left = min(left, (quantity.parse(limit) - used[resource]) // each[resource])
        return max(left, 0)

    def is_above_min(self, group: NodeGroup) -> bool:
        """Return whether the group may lose a node."""
        return group.max is not None and self.n_nodes[group.name] > group.min

    def take(self, group: NodeGroup, node_name: str) -> None:
        """Let a group have a node of this name."""
        number = _number(group, node_name)
        if number is not None:
            self._taken.setdefault(group.name, set()).add(number)
        self._count(group, node_name, 1)

    def _count(self, group: NodeGroup, node_name: str, sign: int) -> None:
        self.n_nodes[group.name] += sign
        if (number := _number(group, node_name)) is not None:
            self.n_of_variant[group.name, number % self.n_variants(group)] += sign
        used = self._of_pool.setdefault(group.pool, Counter())
        for resource, amount in _offer(group).items():
            used[resource] += sign * amount
        if sign > 0:
            self._group_of[node_name] = group.name
        else:
            self._group_of.pop(node_name, None)


def _offer(group: NodeGroup) -> Mapping[str, int]:
    return {_NODES: quantity.NANO, **{name: quantity.parse(amount) for name, amount in group.capacity.items()}}


def _number(group: NodeGroup, node_name: str) -> int | None:
    found = re.fullmatch(rf"{re.escape(group.name)}-([0-9]+)", node_name)
    return int(found[1]) if found else None
