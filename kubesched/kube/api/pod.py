"""Pods, as far as the scheduler reads them, prints them or writes to them."""

from __future__ import annotations

from msgspec import field

from kubesched.kube.api.meta import Condition, LabelSelector, Quantity, TopLevel, Wire, always
from kubesched.kube.api.node import NodeSelector, NodeSelectorTerm
from kubesched.kube.api.volumes import Volume

DEFAULT_SCHEDULER_NAME = "default-scheduler"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class ContainerClaim(Wire, kw_only=True):
    """A resource claim of the pod that a container uses."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Wire, kw_only=True):
    """Requests and limits of a container, or of a pod as a whole."""

    requests: dict[str, Quantity] = field(default_factory=dict)
    limits: dict[str, Quantity] = field(default_factory=dict)
    claims: tuple[ContainerClaim, ...] = ()


class ContainerPort(Wire, kw_only=True):
    """A port of a container."""

    name: str = ""
    container_port: int = 0
    host_port: int = 0  # the same port of the node; NodePorts keeps two pods off it
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class RestartRuleExitCodes(Wire, kw_only=True):
    """The exit codes that a restart rule is about."""

    operator: str = ""
    values: tuple[int, ...] = ()


class ContainerRestartRule(Wire, kw_only=True):
    """What to do when a container exits in a certain way."""

    action: str = ""
    exit_codes: RestartRuleExitCodes | None = None


class Container(Wire, kw_only=True):
    """A container."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()

    @property
    def is_restartable(self) -> bool:
        """Return whether an init container is a sidecar: it keeps running beside the containers."""
        return self.restart_policy == "Always"


class Toleration(Wire, kw_only=True):
    """A toleration: taints with which the pod may still be placed."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None  # how long the pod stays after a NoExecute taint; absent means always


class PreferredSchedulingTerm(Wire, kw_only=True):
    """Preferred nodes, with a weight."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, kw_only=True):
    """Required and preferred nodes.

    Absent `required` allows any node, one without terms none; absent `preferred` is not empty.
    """

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
    """A preferred pod affinity term, with a weight."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Wire, kw_only=True):
    """Terms about other pods. Affinity and anti-affinity have the same shape."""

    required: tuple[PodAffinityTerm, ...] = field(default=(), name=_REQUIRED)
    preferred: tuple[WeightedPodAffinityTerm, ...] = field(default=(), name=_PREFERRED)


class Affinity(Wire, kw_only=True):
    """The affinity of a pod: to nodes, to pods, and away from pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Wire, kw_only=True):
    """How evenly pods are to be spread over the domains of a topology."""

    max_skew: int = 0  # the largest difference between a domain and the one with the fewest pods
    topology_key: str = ""
    when_unsatisfiable: str = ""  # DoNotSchedule filters, ScheduleAnyway scores
    label_selector: LabelSelector | None = None
    min_domains: int | None = None  # with fewer domains the smallest count is taken as 0
    node_affinity_policy: str | None = None  # Honor: nodes that the pod cannot run on do not count
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PodSchedulingGate(Wire, kw_only=True):
    """A gate: while a pod has one, it is not scheduled."""

    name: str = ""


class PodResourceClaim(Wire, kw_only=True):
    """A claim for devices: an existing one, or one made from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Wire, kw_only=True):
    """The pod group that a pod belongs to."""

    pod_group_name: str = ""


class PodSpec(Wire, kw_only=True):
    """The spec of a pod. `node_selector` None and `{}` differ: NodeAffinity skips a pod only for None."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None  # of the pod as a whole
    overhead: dict[str, Quantity] = field(default_factory=dict)  # added by admission, from the runtime class
    node_name: str = ""  # set by a binding
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()  # while there is one, the pod is not scheduled
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None  # of scheduling.k8s.io
    scheduler_name: str = DEFAULT_SCHEDULER_NAME  # the profile that schedules the pod
    priority: int | None = None  # set by admission, from the priority class
    priority_class_name: str = ""
    preemption_policy: str = ""  # Never: this pod preempts no others
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    service_account_name: str = ""
    runtime_class_name: str = ""
    host_network: bool = False  # every container port is a host port
    host_users: bool | None = None


class PodCondition(Condition, kw_only=True):
    """One condition of a pod."""

    last_probe_time: str | None = None


class ReportedResources(Wire, kw_only=True):
    """The resources that the kubelet reports. Absent and empty requests are different reports."""

    requests: dict[str, Quantity] | None = None
    limits: dict[str, Quantity] | None = None
    claims: tuple[ContainerClaim, ...] = ()


class ContainerStatus(Wire, kw_only=True):
    """The resources of a container while it is resized in place."""

    name: str = ""
    resources: ReportedResources | None = None
    allocated_resources: dict[str, Quantity] | None = None


class PodResourceClaimStatus(Wire, kw_only=True):
    """The claim that was made from a template; without a name none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Wire, kw_only=True):
    """The request of the special claim that serves a container's extended resource."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Wire, kw_only=True):
    """The claim that serves the pod's extended resources."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class NodeAllocatableMappedResources(Wire, kw_only=True):
    """A node resource that allocated devices stand for."""

    name: str = ""
    quantity: Quantity | None = None


class NodeAllocatableOverheadResources(Wire, kw_only=True):
    """A node resource that allocated devices need in addition."""

    name: str = ""
    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResourceClaimStatus(Wire, kw_only=True):
    """Node resources that the devices of a claim use up. 1.36 has `resources`, 1.37 the other two."""

    resource_claim_name: str = ""
    containers: tuple[str, ...] = ()
    resources: dict[str, Quantity] = field(default_factory=dict)
    mapping: tuple[NodeAllocatableMappedResources, ...] = ()
    overhead: tuple[NodeAllocatableOverheadResources, ...] = ()


class PodStatus(Wire, kw_only=True):
    """The status of a pod."""

    observed_generation: int = 0
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""  # the node on which preemption has made room for this pod
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
    """A pod."""

    api_version: str = always("v1")
    kind: str = always("Pod")
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def priority(self) -> int:
        """Return the pod's priority, 0 if it has none."""
        return self.spec.priority or 0


def is_resize_deferred(pod: Pod) -> bool:
    """Return whether the kubelet has put off a resize of the pod until there is room."""
    return any(each.reason == "Deferred" for each in pod.status.conditions if each.type == "PodResizePending")


def is_finished(pod: Pod) -> bool:
    """Return whether a pod has succeeded or failed."""
    return pod.status.phase in ("Succeeded", "Failed")
