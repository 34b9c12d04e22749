"""What happens to nodes: they fail and answer again, are cordoned, drained and taken away, and change in size.

In: the world of a simulation, and a node's name. Out: the node as its own reports, the node controller or an operator would
leave it, and what becomes of its pods. A pod that a DaemonSet owns stays where it is until the node is gone.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubesched.kube.api import Node, NodeCondition, Quantity, Taint
from kubesched.tools.simulation.cluster.simulated_cluster import DRAINED, LOST, SimulatedCluster
from kubesched.tools.simulation.pod_record import PodRecord

UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_with = msgspec.structs.replace


def fail(world: SimulatedCluster, name: str) -> None:
    """Let a node stop to answer: nothing new goes there, and nothing ends there."""
    if name in world.down:
        return
    world.down[name] = []
    node = world.nodes[name]
    taints = (Taint(key=UNREACHABLE, effect="NoSchedule"), Taint(key=UNREACHABLE, effect="NoExecute"))
    node = _with(node, spec=_with(node.spec, taints=(*node.spec.taints, *taints)))
    world.put_node(_ready(node, "Unknown"))
    world.tell("nodeFailed", node=name)


def lose_pods(world: SimulatedCluster, name: str, episode: list[PodRecord]) -> None:
    """Give up the pods of a node that still does not answer; `episode` is what `world.down` held when it stopped."""
    if world.down.get(name) is not episode:
        return
    for record in world.pods_on(name):
        if not record.is_daemon:
            world.remove(record, LOST)


def recover(world: SimulatedCluster, name: str) -> None:
    """Let a node answer again; pods whose time was over meanwhile have finished."""
    overdue = world.down.pop(name, None)
    if overdue is None:
        return
    node = world.nodes[name]
    node = _with(node, spec=_with(node.spec, taints=tuple(t for t in node.spec.taints if t.key != UNREACHABLE)))
    world.put_node(_ready(node, "True"))
    world.tell("nodeRecovered", node=name)
    for record in overdue:
        world.finish(record)


def cordon(world: SimulatedCluster, name: str, is_on: bool = True) -> None:
    """Keep new pods off a node, or let them on it again."""
    node = world.nodes[name]
    if node.spec.unschedulable == is_on:
        return
    others = tuple(taint for taint in node.spec.taints if taint.key != UNSCHEDULABLE)
    taints = (*others, Taint(key=UNSCHEDULABLE, effect="NoSchedule")) if is_on else others
    world.put_node(_with(node, spec=_with(node.spec, unschedulable=is_on, taints=taints)))
    world.tell("nodeCordoned" if is_on else "nodeUncordoned", node=name)


def drain(world: SimulatedCluster, name: str) -> None:
    """Cordon a node and evict its pods, each with its grace period."""
    cordon(world, name)
    world.tell("nodeDrained", node=name)
    for record in world.pods_on(name):
        if not record.is_daemon:
            world.evict(record, DRAINED)


def remove(world: SimulatedCluster, name: str) -> None:
    """Take a node away, and its pods with it."""
    world.tell("nodeRemoved", node=name)
    world.drop_node(name)


def resize(world: SimulatedCluster, name: str, capacity: Mapping[str, Quantity]) -> None:
    """Change what a node offers; what is on it stays, even if it is too much now."""
    node = world.nodes[name]
    status = _with(
        node.status, capacity={**node.status.capacity, **capacity}, allocatable={**node.status.allocatable, **capacity}
    )
    world.put_node(_with(node, status=status))
    world.tell("nodeResized", node=name, capacity=dict(capacity))


def _ready(node: Node, status: str) -> Node:
    others = tuple(condition for condition in node.status.conditions if condition.type != "Ready")
    return _with(node, status=_with(node.status, conditions=(*others, NodeCondition(type="Ready", status=status))))
