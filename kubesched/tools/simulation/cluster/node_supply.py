"""The nodes of a simulation's groups: ordered, started, paid for, and reclaimed.

In: node groups, and orders. Out: nodes that join after the `startup` of their group, with the pods of DaemonSets, and their
price from the order to the end. The life of a spot node is drawn from the seed and its name, so it is the same whatever else
happens. At its end the node is drained, and deleted when the notice is over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from kubesched.kube.api import Node
from kubesched.solver.node_groups import GroupSizes, NodeGroup
from kubesched.tools.simulation.cluster import incidents
from kubesched.tools.simulation.scenario import seconds
from kubesched.tools.simulation.simulation import Simulation


class NodeSupply:
    """The groups of a simulation and their nodes."""

    def __init__(self, sim: Simulation, groups: Sequence[NodeGroup], follow: Callable[[Node], None]) -> None:
        """Take over the groups. `follow` is called with each node that joins later."""
        self.sizes = GroupSizes(groups, sim.nodes.values())
        self.coming: dict[str, Node] = {}
        """Nodes that are ordered and have not joined, by name."""
        self._sim = sim
        self._follow = follow
        self._prices: dict[str, float] = {}
        sim.world.node_watchers.append(self._gone)
        for name in sim.nodes:
            if (group := self.sizes.of(name)) is not None:
                self._pay(name, group.price)

    def add(self, group: NodeGroup, count: int, *, at_once: bool = False) -> None:
        """Order nodes of a group. With `at_once`, those of a group without a startup time, or with a `max`, join now."""
        self.sizes.groups.setdefault(group.name, group)
        for _ in range(count):
            self.order(group, self.sizes.next_node(group), at_once=at_once)

    def order(self, group: NodeGroup, node: Node, *, at_once: bool = False) -> None:
        """Order one node."""
        name, startup = node.metadata.name, seconds(group.startup)
        self.sizes.take(group, name)
        self._pay(name, group.price)
        if at_once and (not startup or group.max is not None):
            self._sim.add(node)
            self._begin_life(group, name)
            return
        self.coming[name] = node
        self._sim.at(self._sim.now + startup, partial(self._join, group, node))

    def _join(self, group: NodeGroup, node: Node) -> None:
        """Add an ordered node, and the pods of DaemonSets to it."""
        self.coming.pop(node.metadata.name, None)
        self._sim.add(node)
        self._sim.world.tell("nodeAdded", node=node.metadata.name)
        self._follow(node)
        self._begin_life(group, node.metadata.name)

    def _begin_life(self, group: NodeGroup, name: str) -> None:
        if group.spot is not None:
            life = Random(f"{self._sim.seed}/{name}").expovariate(1.0 / seconds(group.spot.mean_life))
            self._sim.at(self._sim.now + life, partial(self._reclaim, group, name))

    def _reclaim(self, group: NodeGroup, name: str) -> None:
        """Reclaim a spot node: drain it, and delete it when its notice is over."""
        cluster = self._sim.world
        if group.spot is None or name not in cluster.nodes:
            return
        self._sim.measures.n_reclaimed += 1
        cluster.tell("nodeReclaimed", node=name)
        notice = seconds(group.spot.notice)
        if notice:
            incidents.drain(cluster, name)

        def go() -> None:
            if name in cluster.nodes:
                incidents.remove(cluster, name)

        self._sim.at(self._sim.now + notice, go)

    def _pay(self, name: str, price: float) -> None:
        self._prices[name] = price
        self._sim.measures.pay(self._sim.now, price)

    def _gone(self, name: str) -> None:
        self.sizes.remove(name)
        self._sim.measures.pay(self._sim.now, -self._prices.pop(name, 0.0))
