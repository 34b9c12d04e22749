"""scheduling.k8s.io: priority classes, workloads and pod groups; and the pod group of the coscheduling project."""

from __future__ import annotations

from msgspec import field

from kubesched.kube.api.meta import Condition, Quantity, TopLevel, Wire, always
from kubesched.kube.api.pod import PodResourceClaim, PodResourceClaimStatus

COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
COSCHEDULING_LABEL_OLD = "pod-group.scheduling.sigs.k8s.io"


class PriorityClass(TopLevel, kw_only=True):
    """A name for a priority."""

    api_version: str = always("scheduling.k8s.io/v1")
    kind: str = always("PriorityClass")
    value: int = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str = ""


class BasicSchedulingPolicy(Wire, kw_only=True):
    """Each pod for itself."""


class GangSchedulingPolicy(Wire, kw_only=True):
    """At least so many pods, or none."""

    min_count: int = 0


class PodGroupSchedulingPolicy(Wire, kw_only=True):
    """How the pods of a group belong together; one field is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Wire, kw_only=True):
    """The group is to lie in one domain of this topology."""

    key: str = ""


class PodGroupSchedulingConstraints(Wire, kw_only=True):
    """Where a group may lie; only the first topology is used."""

    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupResourceClaim(PodResourceClaim, kw_only=True):
    """A claim for devices that the whole group shares."""


class Nothing(Wire, kw_only=True):
    """A choice that has no fields of its own."""


class DisruptionMode(Wire, kw_only=True):
    """Whether pods are evicted one by one or all together; one field is set. In v1alpha2 it is a word: Pod or PodGroup."""

    single: Nothing | None = None
    all: Nothing | None = None


Disruption = str | DisruptionMode | None


def goes_as_one(mode: Disruption) -> bool:
    """Return whether a group with this disruptionMode is evicted as a whole or not at all."""
    return mode.all is not None if isinstance(mode, DisruptionMode) else mode == "PodGroup"


class PodsTogether(Wire, kw_only=True):
    """How pods are to be scheduled together, as a group and its template say it."""

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: Disruption = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None


class PodGroupTemplate(PodsTogether, kw_only=True):
    """A group that a workload is made of."""

    name: str = ""


class ControllerReference(Wire, kw_only=True):
    """The object in the same namespace that a workload is for."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class WorkloadSpec(Wire, kw_only=True):
    """A workload's groups."""

    controller_ref: ControllerReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()


class Workload(TopLevel, kw_only=True):
    """Groups of pods that make up one application; the scheduler itself reads only the groups."""

    api_version: str = always("scheduling.k8s.io/v1beta1")
    kind: str = always("Workload")
    spec: WorkloadSpec = WorkloadSpec()


class WorkloadPodGroupTemplateReference(Wire, kw_only=True):
    """A group template of a workload."""

    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(Wire, kw_only=True):
    """Where a group comes from."""

    workload: WorkloadPodGroupTemplateReference | None = None


class WorkloadReference(Wire, kw_only=True):
    """The same since v1beta1."""

    workload_name: str = ""
    template_name: str = ""


class PodGroupSpec(PodsTogether, kw_only=True):
    """How a group is to be scheduled; nothing but minCount ever changes, and that since v1beta1."""

    pod_group_template_ref: PodGroupTemplateReference | None = None
    workload_ref: WorkloadReference | None = None
    parent_composite_pod_group_name: str | None = None


class PodGroupResourceClaimStatus(PodResourceClaimStatus, kw_only=True):
    """The claim made for a group from a template."""


class PodGroupStatus(Wire, kw_only=True):
    """What became of a group."""

    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


class PodGroup(TopLevel, kw_only=True):
    """Pods that are scheduled together."""

    api_version: str = always("scheduling.k8s.io/v1beta1")
    kind: str = always("PodGroup")
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class CompositeGangSchedulingPolicy(Wire, kw_only=True):
    """At least so many groups, or none."""

    min_group_count: int = 0


class CompositePodGroupSchedulingPolicy(Wire, kw_only=True):
    """How the groups of a group belong together; one field is set."""

    basic: Nothing | None = None
    gang: CompositeGangSchedulingPolicy | None = None


class CompositePodGroupSpec(Wire, kw_only=True):
    """How a group of groups is to be scheduled."""

    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None
    scheduling_policy: CompositePodGroupSchedulingPolicy = CompositePodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None


class CompositePodGroup(TopLevel, kw_only=True):
    """Groups that are scheduled together; they name it as their parent."""

    api_version: str = always("scheduling.k8s.io/v1alpha3")
    kind: str = always("CompositePodGroup")
    spec: CompositePodGroupSpec = CompositePodGroupSpec()


class CoschedulingPodGroupSpec(Wire, kw_only=True):
    """How many pods a group needs, what they take together, and how long to wait for them."""

    min_member: int = 0
    min_resources: dict[str, Quantity] = field(default_factory=dict)
    schedule_timeout_seconds: int | None = None


class CoschedulingPodGroupStatus(Wire, kw_only=True):
    """What the project's controller reports."""

    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: str | None = None


class CoschedulingPodGroup(TopLevel, kw_only=True):
    """The pod group of the scheduler-plugins project; pods join it by a label."""

    api_version: str = always("scheduling.x-k8s.io/v1alpha1")
    kind: str = always("PodGroup")
    spec: CoschedulingPodGroupSpec = CoschedulingPodGroupSpec()
    status: CoschedulingPodGroupStatus = CoschedulingPodGroupStatus()


class ElasticQuotaSpec(Wire, kw_only=True):
    """What a namespace is sure of, and what it may have; absent is not the same as empty."""

    min: dict[str, Quantity] | None = None
    max: dict[str, Quantity] | None = None


class ElasticQuotaStatus(Wire, kw_only=True):
    """What the project's controller reports."""

    used: dict[str, Quantity] = field(default_factory=dict)


class ElasticQuota(TopLevel, kw_only=True):
    """The quota of the scheduler-plugins project: namespaces lend each other what they do not use."""

    api_version: str = always("scheduling.x-k8s.io/v1alpha1")
    kind: str = always("ElasticQuota")
    spec: ElasticQuotaSpec = ElasticQuotaSpec()
    status: ElasticQuotaStatus = ElasticQuotaStatus()
