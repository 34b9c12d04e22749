"""The kinds of object that are read and written: their place in the API, and the struct of each.

One row a kind. Version and kind are those that the struct writes; `also` lists other versions that the same struct can read.
An object that came in one of these is written back in it.
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
    """A kind: its struct and its place in the API."""

    type: type[TopLevel]
    api_version: str
    kind: str
    plural: str
    namespaced: bool
    also: tuple[str, ...] = ()  # further versions that the struct reads

    @property
    def group(self) -> str:
        """Return the API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]


def _kind(type_: type[TopLevel], plural: str, namespaced: bool = True, also: tuple[str, ...] = ()) -> KindInfo:
    """Return the row of a struct; its version and kind are those that the struct writes."""
    made = type_()
    return KindInfo(type_, made.api_version, made.kind, plural, namespaced, also)


_OLDER_GROUPS = ("scheduling.k8s.io/v1alpha3", "scheduling.k8s.io/v1alpha2")

KIND_TABLE: tuple[KindInfo, ...] = (
    _kind(Pod, "pods"),
    _kind(Node, "nodes", False),
    _kind(Namespace, "namespaces", False),
    _kind(Service, "services"),
    _kind(ReplicationController, "replicationcontrollers"),
    _kind(ConfigMap, "configmaps"),
    _kind(Endpoints, "endpoints"),
    _kind(CoreEvent, "events"),
    _kind(Binding, "bindings"),
    _kind(PersistentVolume, "persistentvolumes", False),
    _kind(PersistentVolumeClaim, "persistentvolumeclaims"),
    _kind(ReplicaSet, "replicasets"),
    _kind(Deployment, "deployments"),
    _kind(StatefulSet, "statefulsets"),
    _kind(DaemonSet, "daemonsets"),
    _kind(Job, "jobs"),
    _kind(CronJob, "cronjobs"),
    _kind(PodDisruptionBudget, "poddisruptionbudgets"),
    _kind(LimitRange, "limitranges"),
    _kind(ResourceQuota, "resourcequotas"),
    _kind(RuntimeClass, "runtimeclasses", False),
    _kind(Eviction, "evictions"),
    _kind(StorageClass, "storageclasses", False),
    _kind(CSINode, "csinodes", False),
    _kind(CSIDriver, "csidrivers", False),
    _kind(CSIStorageCapacity, "csistoragecapacities"),
    _kind(VolumeAttachment, "volumeattachments", False),
    _kind(ResourceClaim, "resourceclaims"),
    _kind(ResourceClaimTemplate, "resourceclaimtemplates"),
    _kind(ResourceSlice, "resourceslices", False),
    _kind(DeviceClass, "deviceclasses", False),
    _kind(DeviceTaintRule, "devicetaintrules", False, ("resource.k8s.io/v1beta2", "resource.k8s.io/v1alpha3")),
    _kind(PriorityClass, "priorityclasses", False),
    _kind(Workload, "workloads", also=_OLDER_GROUPS),
    _kind(PodGroup, "podgroups", also=_OLDER_GROUPS),
    _kind(CompositePodGroup, "compositepodgroups"),
    _kind(CoschedulingPodGroup, "podgroups"),
    _kind(ElasticQuota, "elasticquotas"),
    _kind(Lease, "leases"),
    _kind(Event, "events"),
)

KINDS: dict[tuple[str, str], type[TopLevel]] = {
    (version, row.kind): row.type for row in KIND_TABLE for version in (row.api_version, *row.also)
}
"""The struct for an `apiVersion` and `kind`."""

INFO: dict[type[TopLevel], KindInfo] = {row.type: row for row in KIND_TABLE}
"""The row of a struct."""
