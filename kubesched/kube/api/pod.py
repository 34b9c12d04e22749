"""Pods, as far as scheduling reads them, prints them or writes to them."""

from __future__ import annotations

from msgspec import field

from kubesched.kube.api.meta import Condition, LabelSelector, Quantity, TopLevel, Wire, always
from kubesched.kube.api.node import NodeSelector, NodeSelectorTerm
from kubesched.kube.api.volumes import Volume

DEFAULT_SCHEDULER_NAME = "default-scheduler"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class ContainerClaim(Wire, kw_only=True):
    """A pod's resource claim that a container uses."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Wire, kw_only=True):
    """What a container, or a whole pod, asks for and may use at most."""

    requests: dict[str, Quantity] = field(default_factory=dict)
    limits: dict[str, Quantity] = field(default_factory=dict)
    claims: tuple[ContainerClaim, ...] = ()


class ContainerPort(Wire, kw_only=True):
    """A port of a container; `host_port` takes the same port of the node."""

    name: str = ""
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class RestartRuleExitCodes(Wire, kw_only=True):
    """The exit codes that a restart rule is for."""

    operator: str = ""
    values: tuple[int, ...] = ()


class ContainerRestartRule(Wire, kw_only=True):
    """What to do when a container exits in some way."""

    action: str = ""
    exit_codes: RestartRuleExitCodes | None = None


class Container(Wire, kw_only=True):
    """A container; among the init containers, `restart_policy` `Always` makes it a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()

    @property
    def is_restartable(self) -> bool:
        return self.restart_policy == "Always"


class Toleration(Wire, kw_only=True):
    """Taints that the pod puts up with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PreferredSchedulingTerm(Wire, kw_only=True):
    """Nodes that the pod would like, and how much."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, kw_only=True):
    """Nodes that the pod needs (absent: any; no terms: none) and nodes that it would like (absent is not empty)."""

    required: NodeSelector | None = field(default=None, name=_REQUIRED)
    preferred: tuple[PreferredSchedulingTerm, ...] | None = field(default=None, name=_PREFERRED)


class PodAffinityTerm(Wire, kw_only=True):
    """Pods to be near to, or away from, within a topology."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Wire, kw_only=True):
    """A pod affinity term that is only a wish."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Wire, kw_only=True):
    """Terms about other pods; the same shape serves affinity and anti-affinity."""

    required: tuple[PodAffinityTerm, ...] = field(default=(), name=_REQUIRED)
    preferred: tuple[WeightedPodAffinityTerm, ...] = field(default=(), name=_PREFERRED)


class Affinity(Wire, kw_only=True):
    """All that a pod says about nodes and about other pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Wire, kw_only=True):
    """How evenly pods are to lie over the domains of a topology."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PodSchedulingGate(Wire, kw_only=True):
    """A reason not to schedule the pod yet."""

    name: str = ""


class PodResourceClaim(Wire, kw_only=True):
    """A claim for devices, by name or made from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Wire, kw_only=True):
    """The pod group that the pod belongs to."""

    pod_group_name: str = ""


class PodSpec(Wire, kw_only=True):
    """What the pod wants. `node_selector` None and `{}` differ for one plugin's skip rule."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: dict[str, Quantity] = field(default_factory=dict)
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    service_account_name: str = ""
    runtime_class_name: str = ""
    host_network: bool = False
    host_users: bool | None = None


class PodCondition(Condition, kw_only=True):
    """One observed condition of a pod."""

    last_probe_time: str | None = None


class ReportedResources(Wire, kw_only=True):
    """What a container, or a whole pod, really has. Nothing reported is another thing than a report of nothing."""

    requests: dict[str, Quantity] | None = None
    limits: dict[str, Quantity] | None = None
    claims: tuple[ContainerClaim, ...] = ()


class ContainerStatus(Wire, kw_only=True):
    """What a container really has, while it is being resized in place."""

    name: str = ""
    resources: ReportedResources | None = None
    allocated_resources: dict[str, Quantity] | None = None


class PodResourceClaimStatus(Wire, kw_only=True):
    """The claim made from a template; no name means that none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Wire, kw_only=True):
    """Which request of the special claim serves a container's extended resource."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Wire, kw_only=True):
    """The claim that stands in for extended resources."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class NodeAllocatableMappedResources(Wire, kw_only=True):
    """A node resource that devices stand for."""

    name: str = ""
    quantity: Quantity | None = None


class NodeAllocatableOverheadResources(Wire, kw_only=True):
    """A node resource that devices need beside them."""

    name: str = ""
    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResourceClaimStatus(Wire, kw_only=True):
    """Node resources that a claim's devices use up; `resources` in 1.36, the other two since."""

    resource_claim_name: str = ""
    containers: tuple[str, ...] = ()
    resources: dict[str, Quantity] = field(default_factory=dict)
    mapping: tuple[NodeAllocatableMappedResources, ...] = ()
    overhead: tuple[NodeAllocatableOverheadResources, ...] = ()


class PodStatus(Wire, kw_only=True):
    """What is known about the pod's life."""

    observed_generation: int = 0
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    host_ip: str = field(default="", name="hostIP")
    pod_ip: str = field(default="", name="podIP")
    start_time: str | None = None
    qos_class: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ReportedResources | None = None
    allocated_resources: dict[str, Quantity] | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()


class Pod(TopLevel, kw_only=True):
    """What is to be placed."""

    api_version: str = always("v1")
    kind: str = always("Pod")
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def priority(self) -> int:
        """Return the pod's priority; none counts as 0."""
        return self.spec.priority or 0


def is_resize_deferred(pod: Pod) -> bool:
    """Return whether the kubelet has put off a resize of the pod until there is room for it."""
    return any(each.reason == "Deferred" for each in pod.status.conditions if each.type == "PodResizePending")


def is_finished(pod: Pod) -> bool:
    """Return whether a pod has run to its end."""
    return pod.status.phase in ("Succeeded", "Failed")
