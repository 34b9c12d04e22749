"""The volume predicates NoDiskConflict, NoVolumeZoneConflict and CheckVolumeBinding, on the arithmetic of today's plugins.

Differences to today: only the beta zone labels count, storage capacity does not, and a broken claim is an error, not a refusal.
`volume_predicate` makes a predicate with the reasons and gates of a release. `volume_counts` has the Max*VolumeCount
predicates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kubesched.kube.api import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from kubesched.kube.values import BETA_REGION, BETA_ZONE
from kubesched.scheduler.cluster import Ints, Objects, PodView, Snapshot, class_of_claim
from kubesched.scheduler.framework import SKIP, Code, CycleState, Handle, Plugin, PreFilterAnswer, Reason, Rejections, Status
from kubesched.scheduler.legacy.predicates.volume_counts import (
    InTreeVolumeCount,
    MaxAzureDiskVolumeCount,
    MaxCinderVolumeCount,
    MaxCSIVolumeCountPred,
    MaxEBSVolumeCount,
    MaxGCEPDVolumeCount,
    VolumeCountPredicate,
)
from kubesched.scheduler.legacy.releases import LegacyContext
from kubesched.scheduler.plugins.shared.volumes import WAIT_FOR_FIRST_CONSUMER, VolumeError, claim_not_found, direct_claim_names
from kubesched.scheduler.plugins.volume_binding import VolumeBinding
from kubesched.scheduler.plugins.volume_binding.plugin import NO_SPACE, NOTHING_TO_BIND, VOLUME_MISSING, VolumeBindingArgs
from kubesched.scheduler.plugins.volume_restrictions import DISK_CONFLICT, DisksInUse
from kubesched.scheduler.plugins.volume_zone import ZONE_CONFLICT, VolumeTopology, placements_of_volume, zone_conflicts

COUNTED = "MaxVolumeCount"
OLD_ZONE_LABELS = (BETA_ZONE, BETA_REGION)
GONE = "a persistent volume that a claim is bound to was not found"
OLD_AFFINITY = Reason("node(s) had volume node affinity conflict", resolvable=False)


class NoDiskConflict(Plugin):
    """Refuse nodes on which an inline disk of the pod is in use."""

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._disks = DisksInUse()

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        return None if pod.pod.spec.volumes else SKIP

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        return Rejections.where(self._disks.conflicts(pod, nodes, self._touched(state)), DISK_CONFLICT)

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        """Note the row: its pods are compared one by one."""
        state.write(self.name, self._touched(state) | {row})

    remove_pod = add_pod

    def _touched(self, state: CycleState) -> frozenset[int]:
        return state.find(self.name) or frozenset()


class NoVolumeZoneConflict(Plugin):
    """Refuse nodes whose old zone or region label contradicts that of a bound volume."""

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        return None if direct_claim_names(pod.pod) else SKIP

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Refuse nodes in other zones. Claims are read only if a node has a zone label."""
        judged = np.zeros(nodes.n, dtype=np.bool_)
        for key in OLD_ZONE_LABELS:
            judged |= nodes.codes(key) >= 0
        if not judged.any():
            return Rejections.none(nodes)
        found = _old_placements(pod.pod, self.handle.objects)
        if isinstance(found, str):
            return Rejections(None, (), dict.fromkeys(np.flatnonzero(judged).tolist(), found))
        return Rejections.where(zone_conflicts(found, nodes, OLD_ZONE_LABELS), ZONE_CONFLICT)


def _old_placements(pod: Pod, objects: Objects) -> list[VolumeTopology] | str:
    """Return the topology labels of a pod's bound volumes, or the error of one."""
    found: list[VolumeTopology] = []
    for name in direct_claim_names(pod):
        if not name:
            return "PersistentVolumeClaim had no name"
        claim = objects.get(PersistentVolumeClaim, name, pod.metadata.namespace)
        if claim is None:
            return f'PersistentVolumeClaim was not found: "{name}"'
        volume_name = claim.spec.volume_name
        if not volume_name:
            class_name = class_of_claim(claim)
            storage_class = objects.get(StorageClass, class_name) if class_name else None
            if storage_class is not None:
                if storage_class.volume_binding_mode is None:
                    return f'VolumeBindingMode not set for StorageClass "{class_name}"'
                if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
                    continue
            return f'PersistentVolumeClaim was not found: "{name}"'
        volume = objects.get(PersistentVolume, volume_name)
        if volume is None:
            return f'PersistentVolume was not found: "{volume_name}"'
        found += placements_of_volume(volume, OLD_ZONE_LABELS)
    return found


class CheckVolumeBinding(VolumeBinding):
    """VolumeBinding with the old text, errors for broken claims, and without storage capacity."""

    reasons = (OLD_AFFINITY, NOTHING_TO_BIND, NO_SPACE, VOLUME_MISSING)
    heeds_capacity = False

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        """Sort the pod's claims; keep a refusal of the pod for Filter."""
        answer = super().pre_filter(pod, nodes, state)
        if isinstance(answer, Status) and answer.code is Code.UNRESOLVABLE:
            state.write(self.name, answer)
            return None
        return answer

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Refuse nodes that the pod's volumes cannot reach.

        A broken claim or a missing volume is an error on each node that this predicate filters, as then: if earlier predicates
        refuse all nodes, there is no error.
        """
        broken = state.find(self.name)
        if isinstance(broken, Status):
            return Rejections(None, (), dict.fromkeys(range(nodes.n), broken.message))
        refused = super().filter(pod, nodes, state)
        missing = state.read(self.name).plan.volume_missing
        if not missing.any():
            return refused
        rows = np.flatnonzero(missing if nodes.rows is None else missing[nodes.rows]).tolist()
        return Rejections(refused.bits, refused.reasons, {**(refused.errors or {}), **dict.fromkeys(rows, GONE)})


class ClaimsExist(Plugin):
    """Before any predicate, the claims of a pod must exist and not be terminating (1.17)."""

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        for name in direct_claim_names(pod.pod):
            claim = self.handle.objects.get(PersistentVolumeClaim, name, pod.namespace)
            if claim is None:
                raise VolumeError(claim_not_found(name))
            if claim.metadata.deletion_timestamp is not None:
                raise VolumeError(f'persistentvolumeclaim "{name}" is being deleted')
        return None


VOLUME_PREDICATES: dict[str, type[Plugin]] = {
    cls.name: cls
    for cls in (
        NoDiskConflict,
        NoVolumeZoneConflict,
        MaxEBSVolumeCount,
        MaxGCEPDVolumeCount,
        MaxAzureDiskVolumeCount,
        MaxCinderVolumeCount,
        MaxCSIVolumeCountPred,
        CheckVolumeBinding,
    )
}
"""The predicates by the names that Policy files use."""


def volume_predicate(name: str, context: LegacyContext, handle: Handle) -> Plugin:
    """Return a volume predicate as the release of `context` has it."""
    cls = VOLUME_PREDICATES[name]
    points: dict[str, Any] = {"name": name, "__doc__": cls.__doc__}
    if context.gates.balance_attached_node_volumes and issubclass(cls, InTreeVolumeCount):
        cls = type(cls.__name__, (_Noted, cls), points)
    if context.release.gives_one_reason:
        cls = type(cls.__name__, (_Terse, cls), points)
    if context.release.names_failures:
        failure = COUNTED if issubclass(cls, VolumeCountPredicate) else name
        cls = type(cls.__name__, (_Renamed, cls), {**points, "failure": failure})
    args: int | VolumeBindingArgs | None = None
    if issubclass(cls, VolumeCountPredicate):
        args = context.max_pd_volumes
    elif issubclass(cls, CheckVolumeBinding) and context.bind_timeout_seconds is not None:
        args = VolumeBindingArgs(bind_timeout_seconds=context.bind_timeout_seconds)
    return cls(args, handle)


class _Terse(Plugin):
    """A mixin: give only the first reason against a node."""

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        verdict = super().filter(pod, nodes, state)
        if verdict.bits is None:
            return verdict
        first = Rejections.first(*((verdict.has(i), reason) for i, reason in enumerate(verdict.reasons)))
        return Rejections(first.bits, first.reasons, verdict.errors, first.sets)


class _Renamed(Plugin):
    """A mixin: give the short name of the failure as reason."""

    failure: ClassVar[str] = ""

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        verdict = super().filter(pod, nodes, state)
        reasons = tuple(Reason(self.failure, reason.resolvable) for reason in verdict.reasons)
        return Rejections(verdict.bits, reasons, verdict.errors, verdict.sets)


@dataclass(frozen=True, slots=True)
class AttachedVolumes:
    """How many more volumes of the pod's kind each node takes, and how many of the pod's volumes would be new to it."""

    KEY: ClassVar[str] = "legacy.attached volumes"

    free: Ints
    new: Ints


class _Noted(InTreeVolumeCount):
    """A mixin: write the volumes to the state, for BalancedResourceAllocation."""

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        verdict = super().filter(pod, nodes, state)
        wanted = state.find(self.name)
        volumes = wanted.by_driver.get(self.plugin) if wanted is not None else None
        if volumes and nodes.rows is None:
            held, limits = self.attachments.count(self.plugin), self.limits(self.plugin, nodes)
            free = limits - (0 if held is None else held)
            state.write(AttachedVolumes.KEY, AttachedVolumes(free, self.new_volumes(volumes, nodes)))
        return verdict
