"""Nodes: labels, taints, what they can hold, what images they have; and the selectors by which they are chosen."""

from __future__ import annotations

from msgspec import field

from kubesched.kube.api.meta import Condition, LabelSelectorRequirement, Quantity, TopLevel, Wire, always


class NodeSelectorRequirement(LabelSelectorRequirement, kw_only=True):
    """One expression over a node's labels or fields."""


class NodeSelectorTerm(Wire, kw_only=True):
    """Expressions that must all hold. A term with none matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Wire, kw_only=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class Taint(Wire, kw_only=True):
    """A mark that keeps pods away unless they tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodePodPreemptionPolicy(Wire, kw_only=True):
    """Who wants no pods of the node evicted so that others can grow."""

    disable_resize_preemption: tuple[str, ...] = ()


class NodeSpec(Wire, kw_only=True):
    """What the operators want of the node."""

    pod_cidr: str = field(default="", name="podCIDR")
    provider_id: str = field(default="", name="providerID")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    pod_preemption_policy: NodePodPreemptionPolicy | None = None


class NodeCondition(Condition, kw_only=True):
    """One observed condition of a node."""

    last_heartbeat_time: str | None = None


class ContainerImage(Wire, kw_only=True):
    """An image on the node, under all its names."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeAddress(Wire, kw_only=True):
    """One way to reach the node."""

    type: str = ""
    address: str = ""


class NodeSystemInfo(Wire, kw_only=True):
    """What the node runs on, for printing."""

    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    operating_system: str = ""
    architecture: str = ""


class NodeStatus(Wire, kw_only=True):
    """What the node reports."""

    capacity: dict[str, Quantity] = field(default_factory=dict)
    allocatable: dict[str, Quantity] = field(default_factory=dict)
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(TopLevel, kw_only=True):
    """A machine that runs pods."""

    api_version: str = always("v1")
    kind: str = always("Node")
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
