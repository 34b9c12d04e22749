"""scheduling.k8s.io: priority classes, workloads and pod groups; and the pod group of the coscheduling project."""

from __future__ import annotations

from msgspec import field

from kubesched.api.meta import Condition, Quantity, TopLevel, Wire, always

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


class PodGroupResourceClaim(Wire, kw_only=True):
    """A claim for devices that the whole group shares."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupTemplate(Wire, kw_only=True):
    """A group that a workload is made of."""

    name: str = ""
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str = ""
    priority_class_name: str = ""
    priority: int | None = None


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

    api_version: str = always("scheduling.k8s.io/v1alpha2")
    kind: str = always("Workload")
    spec: WorkloadSpec = WorkloadSpec()


class WorkloadPodGroupTemplateReference(Wire, kw_only=True):
    """A group template of a workload."""

    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(Wire, kw_only=True):
    """Where a group comes from."""

    workload: WorkloadPodGroupTemplateReference | None = None


class PodGroupSpec(Wire, kw_only=True):
    """How a group is to be scheduled; it never changes."""

    pod_group_template_ref: PodGroupTemplateReference | None = None
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str = ""
    priority_class_name: str = ""
    priority: int | None = None


class PodGroupResourceClaimStatus(Wire, kw_only=True):
    """The claim made for a group from a template."""

    name: str = ""
    resource_claim_name: str | None = None


class PodGroupStatus(Wire, kw_only=True):
    """What became of a group."""

    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


class PodGroup(TopLevel, kw_only=True):
    """Pods that are scheduled together."""

    api_version: str = always("scheduling.k8s.io/v1alpha2")
    kind: str = always("PodGroup")
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


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
