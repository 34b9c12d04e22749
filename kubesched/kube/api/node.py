"""Nodes: labels, taints, resources, images; and the node selectors of pods and volumes."""

from __future__ import annotations

from msgspec import field

from kubesched.kube.api.meta import Condition, LabelSelectorRequirement, Quantity, TopLevel, Wire, always


class NodeSelectorRequirement(LabelSelectorRequirement, kw_only=True):
    """One expression about the labels or fields of a node."""


class NodeSelectorTerm(Wire, kw_only=True):
    """Expressions that must all match. A term without expressions matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Wire, kw_only=True):
    """Terms of which one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class Taint(Wire, kw_only=True):
    """A taint: pods that do not tolerate it are kept away, or evicted."""

    key: str = ""
    value: str = ""
    effect: str = ""  # NoSchedule, PreferNoSchedule or NoExecute
    time_added: str | None = None


class NodePodPreemptionPolicy(Wire, kw_only=True):
    """Pods of a node that are not evicted so that others can grow."""

    disable_resize_preemption: tuple[str, ...] = ()


class NodeSpec(Wire, kw_only=True):
    """The spec of a node."""

    pod_cidr: str = field(default="", name="podCIDR")
    provider_id: str = field(default="", name="providerID")
    unschedulable: bool = False  # cordoned
    taints: tuple[Taint, ...] = ()
    pod_preemption_policy: NodePodPreemptionPolicy | None = None


class NodeCondition(Condition, kw_only=True):
    """One condition of a node."""

    last_heartbeat_time: str | None = None


class ContainerImage(Wire, kw_only=True):
    """An image on a node with all its names; ImageLocality scores by its size."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeAddress(Wire, kw_only=True):
    """One address of a node."""

    type: str = ""
    address: str = ""


class NodeSystemInfo(Wire, kw_only=True):
    """Versions of a node, for printing."""

    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    operating_system: str = ""
    architecture: str = ""


class NodeStatus(Wire, kw_only=True):
    """The status of a node."""

    capacity: dict[str, Quantity] = field(default_factory=dict)  # all that the machine has; the scheduler never reads it
    allocatable: dict[str, Quantity] = field(default_factory=dict)  # what pods may request
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()  # read by the plugin NodeDeclaredFeatures


class Node(TopLevel, kw_only=True):
    """A node."""

    api_version: str = always("v1")
    kind: str = always("Node")
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
