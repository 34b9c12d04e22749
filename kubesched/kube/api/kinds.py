"""The kinds of object we know: where the API serves them and which struct holds them.

One row a kind. A row's `api_version` is what we write; `also` lists other versions that the same struct can read. An object
that came in one of them is written back in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.kube.api.apps import CronJob, DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.kube.api.core import (
    Binding,
    ConfigMap,
    CoreEvent,
    Endpoints,
    Event,
    Lease,
    Namespace,
    ReplicationController,
    Service,
)
from kubesched.kube.api.meta import TopLevel
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.policy import Eviction, LimitRange, PodDisruptionBudget, ResourceQuota, RuntimeClass
from kubesched.kube.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from kubesched.kube.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubesched.kube.api.workload import CompositePodGroup, CoschedulingPodGroup, ElasticQuota, PodGroup, PriorityClass, Workload


@dataclass(frozen=True, slots=True)
class KindInfo:
    """A kind, its place in the API and its struct."""

    type: type[TopLevel]
    api_version: str
    kind: str
    plural: str
    namespaced: bool
    also: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """Return the API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]


_OLDER_GROUPS = ("scheduling.k8s.io/v1alpha3", "scheduling.k8s.io/v1alpha2")

KIND_TABLE: tuple[KindInfo, ...] = (
    KindInfo(Pod, "v1", "Pod", "pods", True),
    KindInfo(Node, "v1", "Node", "nodes", False),
    KindInfo(Namespace, "v1", "Namespace", "namespaces", False),
    KindInfo(Service, "v1", "Service", "services", True),
    KindInfo(ReplicationController, "v1", "ReplicationController", "replicationcontrollers", True),
    KindInfo(ConfigMap, "v1", "ConfigMap", "configmaps", True),
    KindInfo(Endpoints, "v1", "Endpoints", "endpoints", True),
    KindInfo(CoreEvent, "v1", "Event", "events", True),
    KindInfo(Binding, "v1", "Binding", "bindings", True),
    KindInfo(PersistentVolume, "v1", "PersistentVolume", "persistentvolumes", False),
    KindInfo(PersistentVolumeClaim, "v1", "PersistentVolumeClaim", "persistentvolumeclaims", True),
    KindInfo(ReplicaSet, "apps/v1", "ReplicaSet", "replicasets", True),
    KindInfo(Deployment, "apps/v1", "Deployment", "deployments", True),
    KindInfo(StatefulSet, "apps/v1", "StatefulSet", "statefulsets", True),
    KindInfo(DaemonSet, "apps/v1", "DaemonSet", "daemonsets", True),
    KindInfo(Job, "batch/v1", "Job", "jobs", True),
    KindInfo(CronJob, "batch/v1", "CronJob", "cronjobs", True),
    KindInfo(PodDisruptionBudget, "policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", True),
    KindInfo(LimitRange, "v1", "LimitRange", "limitranges", True),
    KindInfo(ResourceQuota, "v1", "ResourceQuota", "resourcequotas", True),
    KindInfo(RuntimeClass, "node.k8s.io/v1", "RuntimeClass", "runtimeclasses", False),
    KindInfo(Eviction, "policy/v1", "Eviction", "evictions", True),
    KindInfo(StorageClass, "storage.k8s.io/v1", "StorageClass", "storageclasses", False),
    KindInfo(CSINode, "storage.k8s.io/v1", "CSINode", "csinodes", False),
    KindInfo(CSIDriver, "storage.k8s.io/v1", "CSIDriver", "csidrivers", False),
    KindInfo(CSIStorageCapacity, "storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities", True),
    KindInfo(VolumeAttachment, "storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", False),
    KindInfo(ResourceClaim, "resource.k8s.io/v1", "ResourceClaim", "resourceclaims", True),
    KindInfo(ResourceClaimTemplate, "resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates", True),
    KindInfo(ResourceSlice, "resource.k8s.io/v1", "ResourceSlice", "resourceslices", False),
    KindInfo(DeviceClass, "resource.k8s.io/v1", "DeviceClass", "deviceclasses", False),
    KindInfo(
        DeviceTaintRule,
        "resource.k8s.io/v1",
        "DeviceTaintRule",
        "devicetaintrules",
        False,
        also=("resource.k8s.io/v1beta2", "resource.k8s.io/v1alpha3"),
    ),
    KindInfo(PriorityClass, "scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", False),
    KindInfo(Workload, "scheduling.k8s.io/v1beta1", "Workload", "workloads", True, also=_OLDER_GROUPS),
    KindInfo(PodGroup, "scheduling.k8s.io/v1beta1", "PodGroup", "podgroups", True, also=_OLDER_GROUPS),
    KindInfo(CompositePodGroup, "scheduling.k8s.io/v1alpha3", "CompositePodGroup", "compositepodgroups", True),
    KindInfo(CoschedulingPodGroup, "scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups", True),
    KindInfo(ElasticQuota, "scheduling.x-k8s.io/v1alpha1", "ElasticQuota", "elasticquotas", True),
    KindInfo(Lease, "coordination.k8s.io/v1", "Lease", "leases", True),
    KindInfo(Event, "events.k8s.io/v1", "Event", "events", True),
)

KINDS: dict[tuple[str, str], type[TopLevel]] = {
    (version, row.kind): row.type for row in KIND_TABLE for version in (row.api_version, *row.also)
}
"""The struct for an `apiVersion` and `kind`."""

INFO: dict[type[TopLevel], KindInfo] = {row.type: row for row in KIND_TABLE}
"""The row of a struct."""
