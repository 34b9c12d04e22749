"""VolumeRestrictions: no disk in two pods that cannot share it, no ReadWriteOncePod claim in two pods at all.

Two things are refused: a node whose pods use an inline disk of this pod in a way that excludes it, and every node while
a claim with the access mode ReadWriteOncePod is in use by another pod anywhere. The second is only found out node by
node, although it concerns them all, so that preemption may remove the other pod.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kubesched.kube.api import PersistentVolumeClaim, Pod
from kubesched.scheduler.cluster import PodView, Snapshot
from kubesched.scheduler.framework import (
    ADD,
    ADMITTED_LATER,
    DELETE,
    NODE,
    POD,
    PVC,
    SKIP,
    CycleState,
    Handle,
    Input,
    Plugin,
    PreFilterAnswer,
    Reason,
    Rejections,
    on,
    unresolvable,
)
from kubesched.scheduler.plugins.shared.volumes import READ_WRITE_ONCE_POD, claim_not_found, direct_claim_names, names_claim
from kubesched.scheduler.plugins.volume_restrictions.disks import DisksInUse, disks_of, pods_conflict

DISK_CONFLICT = Reason("node(s) had no available disk")
CLAIM_IN_USE = Reason(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

STATE_KEY = "PreFilterVolumeRestrictions"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The pod's ReadWriteOncePod claims, how many of them are in use, and the rows that a what-if has changed."""

    claims: frozenset[str]
    conflicts: int
    has_disks: bool
    touched: frozenset[int] = frozenset()

    def after(self, other: Pod, row: int, sign: int) -> _Wanted:
        """Return the same after a pod came to a row, or left it."""
        # The namespaces of the two pods are not compared; the reference does not either.
        conflicts = self.conflicts + sign * sum(name in self.claims for name in direct_claim_names(other))
        return replace(self, conflicts=conflicts, touched=self.touched | {row})


class VolumeRestrictions(Plugin):
    """Keep pods apart that cannot share a disk or a claim."""

    wakes_on = (
        on(POD, DELETE, "pod_gone_may_help"),
        on(NODE, ADD, without_hints=ADD | ADMITTED_LATER),
        on(PVC, ADD, "claim_may_help"),
    )

    depends_on = (Input.POD_VOLUMES,)

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.disks = DisksInUse()

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        """Find the claims that only one pod may use."""
        spec = pod.pod
        if not spec.spec.volumes:
            return SKIP
        exclusive = set()
        for name in direct_claim_names(spec):
            claim = self.handle.objects.get(PersistentVolumeClaim, name, pod.namespace)
            if claim is None:
                return unresolvable(claim_not_found(name))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive.add(name)
        conflicts = sum(f"{pod.namespace}/{name}" in nodes.slots.claims for name in exclusive)
        with_disks = bool(disks_of(spec))
        if not with_disks and not conflicts:
            return SKIP
        state.write(STATE_KEY, _Wanted(frozenset(exclusive), conflicts, with_disks))
        return None

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Refuse nodes with a disk in use, and all nodes while a claim is."""
        wanted = state.find(STATE_KEY)
        if wanted is None:  # PreFilter is switched off: the disks can still be looked at, the claims cannot
            conflicts = self.disks.conflicts(pod, nodes)
            text = f'cannot read "{STATE_KEY}" from cycleState'
            refused = Rejections.where(conflicts, DISK_CONFLICT)
            return Rejections(refused.bits, refused.reasons, dict.fromkeys(np.flatnonzero(~conflicts).tolist(), text))
        in_use = np.full(nodes.n, wanted.conflicts > 0, dtype=np.bool_)
        if not wanted.has_disks:
            return Rejections.where(in_use, CLAIM_IN_USE)
        return Rejections.first((self.disks.conflicts(pod, nodes, wanted.touched), DISK_CONFLICT), (in_use, CLAIM_IN_USE))

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        """Count a pod that came."""
        state.write(STATE_KEY, state.read(STATE_KEY).after(other.pod, row, 1))

    def remove_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        """Count a pod that left."""
        state.write(STATE_KEY, state.read(STATE_KEY).after(other.pod, row, -1))

    def pod_gone_may_help(self, pod: PodView, old: Pod, new: Pod | None) -> bool:
        """Wake if the pod that went away held a disk or a claim of this one."""
        if old.metadata.namespace != pod.namespace:
            return False
        return pods_conflict(pod.pod, old) or not set(direct_claim_names(pod.pod)).isdisjoint(direct_claim_names(old))

    def claim_may_help(self, pod: PodView, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
        """Wake if the new claim is one that the pod names."""
        return names_claim(pod.pod, new, ephemeral=False)
