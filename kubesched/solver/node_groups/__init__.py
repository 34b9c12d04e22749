"""Groups of nodes that may grow: which of them to grow so that pods run."""

from kubesched.solver.node_groups.daemonset_pods import DaemonSetPods
from kubesched.solver.node_groups.estimate import NewNode, NodeEstimator
from kubesched.solver.node_groups.group import NodeGroup, Seconds, Spot, numbered
from kubesched.solver.node_groups.sizes import GroupSizes, make_node

__all__ = [
    "DaemonSetPods",
    "GroupSizes",
    "NewNode",
    "NodeEstimator",
    "NodeGroup",
    "Seconds",
    "Spot",
    "make_node",
    "numbered",
]
