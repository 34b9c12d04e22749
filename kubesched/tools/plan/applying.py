"""Manifests applied: a cluster as it is right after that, before any scheduler looks.

In: a captured cluster and manifests. Out: `AppliedCluster`: the cluster with their objects and the pods that their controllers
would make, claims and volumes as the controllers around would have left them by then, and what of it belongs to which workload.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from kubesched.errors import SchedulerError
from kubesched.kube.api import (
    Namespace,
    Node,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceQuota,
    StorageClass,
    codec,
    is_finished,
    node_allocatable,
)
from kubesched.scheduler.cluster import class_of_claim
from kubesched.scheduler.plugins.shared.volumes import is_fully_bound
from kubesched.solver.objects import renamed
from kubesched.solver.quotas import PlannedQuotas
from kubesched.tools.plan.admission import Admission
from kubesched.tools.plan.claims import settled_at_once, with_allowance, with_claims
from kubesched.tools.plan.existing import Addition, ExistingPods
from kubesched.tools.plan.manifests import SILENT, WORKLOADS, Manifest, Raw
from kubesched.tools.plan.plan import PlannedPod, PlannedWorkload
from kubesched.tools.snapshots.captured import Captured

_FIRST = ("Namespace", "PriorityClass", "StorageClass", "LimitRange", "ResourceQuota", "RuntimeClass")
_STAYS = (PersistentVolume, PersistentVolumeClaim, ResourceClaim)
"""What cannot be changed by applying it again: the cluster's version stays."""


@dataclass(slots=True)
class AppliedCluster:
    """A cluster as it is right after the manifests were applied: with their pods, none of them placed yet."""

    cluster: Captured
    workloads: list[PlannedWorkload] = field(default_factory=list)
    """Their pods are not planned yet: none has a node."""
    others: list[Pod] = field(default_factory=list)
    daemons: list[Pod] = field(default_factory=list)
    """A pod of each DaemonSet of the manifests, on no node: nodes that come later would have one too."""
    warnings: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    """uid -> what is missing for a pod to be placed as it would be in reality"""
    refused: dict[str, str] = field(default_factory=dict)
    """uid -> why a pod of a workload could not be created: it is not in the cluster"""

    @property
    def n_pods(self) -> int:
        """Return how many pods wait."""
        return len(self.others) + sum(len(workload.pods) for workload in self.workloads) - len(self.refused)


def apply_manifests(
    cluster: Captured, manifests: Sequence[Manifest], *, namespace: str = "default", only: bool = False
) -> AppliedCluster:
    """Return the cluster with the manifests applied; raise SchedulerError for one that would be refused."""
    return _Apply(cluster, namespace, only).run(manifests)


class _Apply:
    def __init__(self, cluster: Captured, namespace: str, only: bool) -> None:
        kept = [obj for obj in cluster.objects if not (only and isinstance(obj, Pod) and not obj.spec.node_name)]
        self._cluster = cluster
        self._objects: dict[tuple[type[Any], str, str], Any] = {_key(obj): obj for obj in kept}
        self._standing = ExistingPods(kept)
        self._quotas = PlannedQuotas(kept)
        self._admission = Admission(cluster.objects, namespace=namespace, at=cluster.at)
        self._templates: dict[str, ResourceClaimTemplate] = {found.key: found for found in cluster.of(ResourceClaimTemplate)}
        self._claims: list[PersistentVolumeClaim] = []
        pods = (obj for obj in kept if isinstance(obj, Pod) and not obj.spec.node_name)
        waiting = [pod for pod in pods if not is_finished(pod) and pod.metadata.deletion_timestamp is None]
        self._made = AppliedCluster(cluster, others=waiting)

    def run(self, manifests: Sequence[Manifest]) -> AppliedCluster:
        made, workloads = self._made, self._take_in(manifests)
        nodes = [obj for obj in self._objects.values() if isinstance(obj, Node)]
        for manifest, raw in workloads:
            try:
                self._add(raw, self._standing.addition(raw, self._admission, nodes))
            except SchedulerError as error:
                raise SchedulerError(f"{manifest.where}: {error}") from error
        self._settle_claims()
        self._know_namespaces()
        made.cluster = replace(self._cluster, objects=list(self._objects.values()))
        return made

    def _take_in(self, manifests: Sequence[Manifest]) -> list[tuple[Manifest, Raw]]:
        """Take in everything but the workloads, and return those, as they would be stored."""
        unknown: Counter[str] = Counter()
        workloads, seen = [], dict[tuple[Any, ...], str]()
        for manifest in sorted(manifests, key=lambda each: each.kind not in _FIRST):
            type_ = manifest.type
            if type_ is None or manifest.kind in SILENT:
                self._admission.check_fields(manifest)
                if manifest.kind not in SILENT:
                    unknown[f"{manifest.content['apiVersion']}/{manifest.kind}"] += 1
                continue
            raw = self._admission.take(manifest)
            key = (type_, raw["metadata"].get("namespace", ""), raw["metadata"]["name"])
            if key in seen:
                raise SchedulerError(f"{manifest.where}: {manifest.kind} {raw['metadata']['name']} stands in {seen[key]} too")
            seen[key] = manifest.where
            if manifest.kind in WORKLOADS:
                workloads.append((manifest, raw))
            else:
                self._put(codec.convert(raw, type_))
        if unknown:
            named = ", ".join(f"{kind} ({count})" for kind, count in sorted(unknown.items()))
            self._made.warnings.append(f"kinds that the plan knows nothing of are left out: {named}")
        return workloads

    def _put(self, obj: Any) -> None:
        if isinstance(obj, ResourceClaimTemplate):
            self._templates[obj.key] = obj
        elif isinstance(obj, Node):
            node_allocatable(obj)  # the intake would leave out one that cannot be read
            there = self._objects.get(_key(obj))
            if there is not None and not obj.status.allocatable:
                obj = msgspec.structs.replace(obj, status=there.status)
        elif isinstance(obj, PersistentVolume):
            obj = msgspec.structs.replace(obj, status=msgspec.structs.replace(obj.status, phase="Available"))
        elif isinstance(obj, PodDisruptionBudget):
            obj = with_allowance(obj, self._cluster.of(Pod))
        elif isinstance(obj, ResourceQuota):
            self._quotas.add_quota(obj)
        if not (isinstance(obj, _STAYS) and _key(obj) in self._objects):
            self._objects[_key(obj)] = obj
            if isinstance(obj, PersistentVolumeClaim):
                self._claims.append(obj)
                if why := self._quotas.refusal(obj):
                    self._made.warnings.append(f"PersistentVolumeClaim {obj.name}: {why}: planned as if it could be created")

    def _add(self, raw: Raw, added: Addition) -> None:
        meta, planned = raw["metadata"], []
        for gone in added.gone:
            self._objects.pop(_key(gone), None)
            self._quotas.release(gone)
        for obj in added.others:
            self._put(obj)
        for claim in self._admission.claims_of(raw):
            self._put(claim)
        if raw["kind"] == "DaemonSet":
            self._made.daemons.append(self._admission.daemon_pod_of(raw))
        for pod in added.pods:
            while _key(pod) in self._objects:  # a Deployment and a Job may be called the same
                pod = renamed(pod, f"{pod.name}-{raw['kind'].lower()}")
            pod, claims, missing = with_claims(pod, self._templates, self._admission)
            for obj in claims:
                self._put(obj)
            if missing:
                self._made.problems[pod.uid] = missing
            planned.append(PlannedPod(pod))
            if not pod.spec.node_name and (why := self._quotas.refusal(pod)):
                self._made.refused[pod.uid] = why
            else:
                self._objects[_key(pod)] = pod
        self._made.workloads.append(PlannedWorkload(raw["kind"], meta["namespace"], meta["name"], added.note, pods=planned))

    def _settle_claims(self) -> None:
        """Do for new claims what the volume controller does before any pod is scheduled."""
        volumes = {obj.name: obj for obj in self._objects.values() if isinstance(obj, PersistentVolume)}
        for claim in self._claims:
            storage_class = self._objects.get((StorageClass, "", class_of_claim(claim)))
            settled = None if is_fully_bound(claim) else settled_at_once(claim, volumes.values(), storage_class)
            if settled is not None:
                claim, volume = settled
                volumes[volume.name] = volume
                self._objects[_key(claim)], self._objects[_key(volume)] = claim, volume

    def _know_namespaces(self) -> None:
        has_listed = any(isinstance(obj, Namespace) for obj in self._cluster.objects)  # one may not be allowed to
        for name in dict.fromkeys(workload.namespace for workload in self._made.workloads):
            if has_listed and (Namespace, "", name) not in self._objects:
                self._made.warnings.append(f'namespaces "{name}" not found: planned as if it were there')
            labels = {"kubernetes.io/metadata.name": name}
            self._objects.setdefault((Namespace, "", name), Namespace(metadata=ObjectMeta(name=name, labels=labels)))


def _key(obj: Any) -> tuple[type[Any], str, str]:
    return type(obj), obj.metadata.namespace, obj.metadata.name
