"""What happens to nodes: fail, recover, cordon, drain, remove, resize.

In: the simulated cluster, and the name of a node. Out: the changes that the kubelet, the node controller or an operator would
make, to the node and to its pods. A pod of a DaemonSet stays until the node is deleted.
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


def fail(cluster: SimulatedCluster, name: str) -> None:
    """Make a node unreachable: no pod is placed on it, and no pod on it ends."""
    if name in cluster.down:
        return
    cluster.down[name] = []
    node = cluster.nodes[name]
    taints = (Taint(key=UNREACHABLE, effect="NoSchedule"), Taint(key=UNREACHABLE, effect="NoExecute"))
    node = _with(node, spec=_with(node.spec, taints=(*node.spec.taints, *taints)))
    cluster.put_node(_ready(node, "Unknown"))
    cluster.tell("nodeFailed", node=name)


def lose_pods(cluster: SimulatedCluster, name: str, episode: list[PodRecord]) -> None:
    """Delete the pods of a node that is still unreachable since the failure for which `cluster.down` held `episode`."""
    if cluster.down.get(name) is not episode:
        return
    for record in cluster.pods_on(name):
        if not record.is_daemon:
            cluster.remove(record, LOST)


def recover(cluster: SimulatedCluster, name: str) -> None:
    """Make a node answer again; pods whose running time has ended since are finished."""
    overdue = cluster.down.pop(name, None)
    if overdue is None:
        return
    node = cluster.nodes[name]
    node = _with(node, spec=_with(node.spec, taints=tuple(t for t in node.spec.taints if t.key != UNREACHABLE)))
    cluster.put_node(_ready(node, "True"))
    cluster.tell("nodeRecovered", node=name)
    for record in overdue:
        cluster.finish(record)


def cordon(cluster: SimulatedCluster, name: str, is_on: bool = True) -> None:
    """Cordon a node, or uncordon it."""
    node = cluster.nodes[name]
    if node.spec.unschedulable == is_on:
        return
    others = tuple(taint for taint in node.spec.taints if taint.key != UNSCHEDULABLE)
    taints = (*others, Taint(key=UNSCHEDULABLE, effect="NoSchedule")) if is_on else others
    cluster.put_node(_with(node, spec=_with(node.spec, unschedulable=is_on, taints=taints)))
    cluster.tell("nodeCordoned" if is_on else "nodeUncordoned", node=name)


def drain(cluster: SimulatedCluster, name: str) -> None:
    """Cordon a node and evict its pods, each with its grace period."""
    cordon(cluster, name)
    cluster.tell("nodeDrained", node=name)
    for record in cluster.pods_on(name):
        if not record.is_daemon:
            cluster.evict(record, DRAINED)


def remove(cluster: SimulatedCluster, name: str) -> None:
    """Delete a node and its pods."""
    cluster.tell("nodeRemoved", node=name)
    cluster.drop_node(name)


def resize(cluster: SimulatedCluster, name: str, capacity: Mapping[str, Quantity]) -> None:
    """Change the capacity of a node; its pods stay, even if they no longer fit."""
    node = cluster.nodes[name]
    status = _with(
        node.status, capacity={**node.status.capacity, **capacity}, allocatable={**node.status.allocatable, **capacity}
    )
    cluster.put_node(_with(node, status=status))
    cluster.tell("nodeResized", node=name, capacity=dict(capacity))


def _ready(node: Node, status: str) -> Node:
    others = tuple(condition for condition in node.status.conditions if condition.type != "Ready")
    return _with(node, status=_with(node.status, conditions=(*others, NodeCondition(type="Ready", status=status))))
