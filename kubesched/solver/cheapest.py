"""The cheapest nodes to add so that pods run.

In: pods that wait, and templates of nodes with their prices. Out: which nodes to add, and which pods no template helps. The
estimator (`node_groups/estimate.py`) tries nodes in the engine's own store and takes them back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from kubesched.kube.api import Pod
from kubesched.kube.values import HOSTNAME
from kubesched.solver.errors import BadObject
from kubesched.solver.node_groups import GroupSizes, NodeEstimator, NodeGroup
from kubesched.solver.objects import Given, node_of

if TYPE_CHECKING:
    from kubesched.solver.world import World

_with = msgspec.structs.replace

MOST_NODES = 100_000
"""Of one template, where it does not say."""


@dataclass(frozen=True)
class NodeTemplate:
    """A kind of node that could be added."""

    node: Given
    """What such a node looks like. In its labels {i} stands for the node's number, {i%3} for its rest when divided by 3."""
    price: float = 0.0
    """Of one node for an hour, in any currency."""
    max: int | None = None
    """How many may be added."""
    weight: int = 0
    """Templates of a higher weight are taken first, whatever they cost."""
    name: str = ""
    """The names of its nodes are NAME-0, NAME-1 and so on; the node's own name, if not given."""


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node to add, and the pods that it is for."""

    name: str
    template: str
    price: float
    pods: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the node as a document."""
        return {"name": self.name, "group": self.template, "pods": list(self.pods), "price": self.price}


@dataclass(frozen=True, slots=True, repr=False)
class NewNodes:
    """The nodes to add."""

    nodes: tuple[NewNode, ...]
    unplaced: tuple[str, ...] = field(default=())
    """The pods that have no node of these, nor one that is there: namespace/name."""

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items()) or "no nodes"
        return f"<{counts} for {self.price:g} an hour, {len(self.unplaced)} pods unplaced>"

    @property
    def counts(self) -> dict[str, int]:
        """Return how many nodes of which template."""
        return dict(sorted(Counter(node.template for node in self.nodes).items()))

    @property
    def price(self) -> float:
        """Return what all of them cost an hour."""
        return round(sum(node.price for node in self.nodes), 6)

    def as_dict(self) -> dict[str, Any]:
        """Return the nodes as a document."""
        return {
            "newNodes": [node.as_dict() for node in self.nodes],
            "counts": self.counts,
            "pricePerHour": self.price,
            "unplaced": list(self.unplaced),
        }


def cheapest_nodes(world: World, pods: Sequence[Pod], templates: Sequence[NodeTemplate]) -> NewNodes:
    """Return the nodes to add. To be called in a world of its own: pods are booked in it."""
    engine = world.cluster.engine
    groups = [_group_of(template) for template in templates]
    names = Counter(group.name for group in groups)
    for name, count in names.items():
        if count > 1:
            raise BadObject(f"template {name}: name: {count} templates have it")
    there = engine.store.nodes.objects
    n_there = GroupSizes(groups, there).n_nodes  # `max` is how many may be added beside these
    groups = [_with(group, max=(group.max or 0) + n_there[group.name]) for group in groups]
    for pod in pods:
        world.save_group(pod)
    estimator = NodeEstimator(engine, GroupSizes(groups, there), world.cluster.daemons())
    new = estimator.estimate(pods)
    told = (NewNode(each.name, each.group.name, each.group.price, tuple(pod.key for pod in each.pods)) for each in new)
    return NewNodes(tuple(told), tuple(pod.key for pod in estimator.without_node))


def _group_of(template: NodeTemplate) -> NodeGroup:
    node = node_of(template.node)
    name = template.name or node.metadata.name
    labels = {key: value for key, value in (node.metadata.labels or {}).items() if key != HOSTNAME}
    if template.max is not None and template.max < 0:
        raise BadObject(f"template {name}: max: {template.max} is negative")
    if not template.price >= 0:
        raise BadObject(f"template {name}: price: {template.price} is not 0 or more")
    return NodeGroup(
        name=name,
        capacity=dict(node.status.capacity or node.status.allocatable),
        allocatable=dict(node.status.allocatable),
        labels=labels,
        taints=node.spec.taints,
        max=MOST_NODES if template.max is None else template.max,
        price=template.price,
        weight=template.weight,
    )
