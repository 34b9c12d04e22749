"""scheduling.k8s.io: priority classes, workloads and pod groups; and the pod groups and quotas of the scheduler-plugins
project.
"""

from __future__ import annotations

from msgspec import field

from kubesched.kube.api.meta import Condition, Quantity, TopLevel, Wire, always
from kubesched.kube.api.pod import PodResourceClaim, PodResourceClaimStatus

COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
COSCHEDULING_LABEL_OLD = "pod-group.scheduling.sigs.k8s.io"


class PriorityClass(TopLevel, kw_only=True):
    """A priority with a name."""

    api_version: str = always("scheduling.k8s.io/v1")
    kind: str = always("PriorityClass")
    value: int = 0  # larger values come first
    global_default: bool = False  # for pods without a class
    description: str = ""
    preemption_policy: str = ""


class BasicSchedulingPolicy(Wire, kw_only=True):
    """Each pod of the group is scheduled alone."""


class GangSchedulingPolicy(Wire, kw_only=True):
    """At least this many pods of the group are scheduled together, or none."""

    min_count: int = 0


class PodGroupSchedulingPolicy(Wire, kw_only=True):
    """How the pods of a group are scheduled; one field is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Wire, kw_only=True):
    """All pods of the group are placed in one domain of this topology."""

    key: str = ""


class PodGroupSchedulingConstraints(Wire, kw_only=True):
    """Where a group may be placed. Only the first topology is used."""

    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupResourceClaim(PodResourceClaim, kw_only=True):
    """A claim for devices that the pods of a group share."""


class Nothing(Wire, kw_only=True):
    """A choice without fields."""


class DisruptionMode(Wire, kw_only=True):
    """Whether the pods of a group are evicted one by one or together; one field is set.

    v1alpha2 has a word: Pod or PodGroup.
    """

    single: Nothing | None = None
    all: Nothing | None = None


Disruption = str | DisruptionMode | None


def goes_as_one(mode: Disruption) -> bool:
    """Return whether a group with this disruption mode is evicted as a whole or not at all."""
    return mode.all is not None if isinstance(mode, DisruptionMode) else mode == "PodGroup"


class PodsTogether(Wire, kw_only=True):
    """The fields that a group and its template share."""

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: Disruption = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None


class PodGroupTemplate(PodsTogether, kw_only=True):
    """A group of a workload."""

    name: str = ""


class ControllerReference(Wire, kw_only=True):
    """The object that a workload belongs to, in the same namespace."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class WorkloadSpec(Wire, kw_only=True):
    """The groups of a workload."""

    controller_ref: ControllerReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()


class Workload(TopLevel, kw_only=True):
    """The groups of pods that make up an application. The scheduler reads only the groups."""

    api_version: str = always("scheduling.k8s.io/v1beta1")
    kind: str = always("Workload")
    spec: WorkloadSpec = WorkloadSpec()


class WorkloadPodGroupTemplateReference(Wire, kw_only=True):
    """A group template of a workload."""

    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(Wire, kw_only=True):
    """The template that a group was made from: v1alpha2."""

    workload: WorkloadPodGroupTemplateReference | None = None


class WorkloadReference(Wire, kw_only=True):
    """The template that a group was made from: since v1beta1."""

    workload_name: str = ""
    template_name: str = ""


class PodGroupSpec(PodsTogether, kw_only=True):
    """The spec of a group. Only minCount may change, and only since v1beta1."""

    pod_group_template_ref: PodGroupTemplateReference | None = None
    workload_ref: WorkloadReference | None = None
    parent_composite_pod_group_name: str | None = None


class PodGroupResourceClaimStatus(PodResourceClaimStatus, kw_only=True):
    """The claim that was made for a group from a template."""


class PodGroupStatus(Wire, kw_only=True):
    """The conditions and the claims of a group."""

    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


class PodGroup(TopLevel, kw_only=True):
    """Pods that are scheduled together."""

    api_version: str = always("scheduling.k8s.io/v1beta1")
    kind: str = always("PodGroup")
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class CompositeGangSchedulingPolicy(Wire, kw_only=True):
    """At least this many groups are scheduled together, or none."""

    min_group_count: int = 0


class CompositePodGroupSchedulingPolicy(Wire, kw_only=True):
    """How the groups of a composite group are scheduled; one field is set."""

    basic: Nothing | None = None
    gang: CompositeGangSchedulingPolicy | None = None


class CompositePodGroupSpec(Wire, kw_only=True):
    """The spec of a composite group."""

    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None
    scheduling_policy: CompositePodGroupSchedulingPolicy = CompositePodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None


class CompositePodGroup(TopLevel, kw_only=True):
    """Groups that are scheduled together; each names it as its parent."""

    api_version: str = always("scheduling.k8s.io/v1alpha3")
    kind: str = always("CompositePodGroup")
    spec: CompositePodGroupSpec = CompositePodGroupSpec()


class CoschedulingPodGroupSpec(Wire, kw_only=True):
    """How many pods a group needs, what they request together, and how long they wait for each other."""

    min_member: int = 0
    min_resources: dict[str, Quantity] = field(default_factory=dict)
    schedule_timeout_seconds: int | None = None  # then the pods that wait are released


class CoschedulingPodGroupStatus(Wire, kw_only=True):
    """What the controller of the scheduler-plugins project reports."""

    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: str | None = None


class CoschedulingPodGroup(TopLevel, kw_only=True):
    """The pod group of the scheduler-plugins project. Pods join it with a label."""

    api_version: str = always("scheduling.x-k8s.io/v1alpha1")
    kind: str = always("PodGroup")
    spec: CoschedulingPodGroupSpec = CoschedulingPodGroupSpec()
    status: CoschedulingPodGroupStatus = CoschedulingPodGroupStatus()


class ElasticQuotaSpec(Wire, kw_only=True):
    """What a namespace is guaranteed, and the most it may use. Absent and empty differ."""

    min: dict[str, Quantity] | None = None
    max: dict[str, Quantity] | None = None


class ElasticQuotaStatus(Wire, kw_only=True):
    """What the controller of the scheduler-plugins project reports."""

    used: dict[str, Quantity] = field(default_factory=dict)


class ElasticQuota(TopLevel, kw_only=True):
    """A quota of the scheduler-plugins project: a namespace may borrow what others do not use."""

    api_version: str = always("scheduling.x-k8s.io/v1alpha1")
    kind: str = always("ElasticQuota")
    spec: ElasticQuotaSpec = ElasticQuotaSpec()
    status: ElasticQuotaStatus = ElasticQuotaStatus()
