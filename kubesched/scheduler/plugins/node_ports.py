"""NodePorts: two pods that want the same host port cannot share a node.

Ports conflict when protocol and number are equal and the addresses are equal or one of them is the wildcard 0.0.0.0.
The ports of one pod are not checked against each other.
"""

from __future__ import annotations

from kubesched.kube.api import Node, Pod, host_ports, ports_conflict
from kubesched.scheduler.framework import (
    ADMITTED_LATER,
    NODE,
    POD,
    SKIP,
    Action,
    CycleState,
    Input,
    Plugin,
    PodView,
    PreFilterAnswer,
    Reason,
    Rejections,
    Snapshot,
    on,
)

TAKEN = Reason("node(s) didn't have free ports for the requested pod ports")


class NodePorts(Plugin):
    wakes_on = (
        on(POD, Action.DELETE, "frees_a_port", by_template=True),
        on(NODE, Action.ADD, "node_came", without_hints=Action.ADD | ADMITTED_LATER),
    )
    needs = (("filter", "pre_filter", 'reading "PreFilterNodePorts" from cycleState: not found'),)
    depends_on = (Input.POD_NODE_CONSTRAINTS, Input.PODS_ON_NODE)

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        return None if pod.template.ports else SKIP

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        # The snapshot has the host ports in use by node, so this compares a few ports with columns and no pods.
        return Rejections.where(nodes.port_conflicts(pod.template.ports), TAKEN)

    def frees_a_port(self, pod: PodView, old: Pod, new: Pod | None) -> bool:
        """Return whether the deleted pod had a node, or a nominated one, and a host port of the waiting pod."""
        if not old.spec.node_name and not old.status.nominated_node_name:
            return False
        return any(ports_conflict(wanted, freed) for freed in host_ports(old) for wanted in pod.template.ports)

    def node_came(self, pod: PodView, old: Node | None, new: Node) -> bool:
        """Return True: the ports of a new node are free."""
        return True
