"""VolumeRestrictions: no disk in two pods that cannot share it, no ReadWriteOncePod claim in two pods at all.

Two things are refused:

* a node where another pod uses the same inline disk (GCE, AWS, iSCSI, Ceph) in a way that excludes this pod. Disks behind
  claims are not looked at.
* every node, while another pod anywhere uses a ReadWriteOncePod claim of this pod. kube-scheduler decides that in Filter,
  although it concerns the whole cluster, so that preemption can remove the other pod. The same here.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kubesched.kube.api import PersistentVolumeClaim, Pod, Volume
from kubesched.scheduler.cluster import Bools
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
    PodView,
    PreFilterAnswer,
    Reason,
    Rejections,
    Snapshot,
    on,
    unresolvable,
)
from kubesched.scheduler.plugins.shared.volumes import (
    READ_WRITE_ONCE_POD,
    PlacedPods,
    claim_not_found,
    direct_claim_names,
    names_claim,
    rows_in_view,
)

DISK_CONFLICT = Reason("node(s) had no available disk")
CLAIM_IN_USE = Reason(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
STATE_KEY = "PreFilterVolumeRestrictions"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The pod's ReadWriteOncePod claims, how many uses of them there are, and the rows that a what-if has changed."""

    claims: frozenset[str]
    conflicts: int
    has_disks: bool
    touched: frozenset[int] = frozenset()


class VolumeRestrictions(Plugin):
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
        """Find the pod's ReadWriteOncePod claims and count how many of them other pods use. Skip a pod without inline disks
        and such claims in use."""
        if not pod.pod.spec.volumes:
            return SKIP
        # `nodes.slots.claims` has the claims that placed pods use, by namespace and name, so this costs one lookup for
        # each claim. Claims of ephemeral volumes belong to one pod and cannot be in use elsewhere.
        exclusive = set()
        for name in direct_claim_names(pod.pod):
            claim = self.handle.objects.get(PersistentVolumeClaim, name, pod.namespace)
            if claim is None:
                return unresolvable(claim_not_found(name))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive.add(name)
        conflicts = sum(f"{pod.namespace}/{name}" in nodes.slots.claims for name in exclusive)
        has_disks = bool(disks_of(pod.pod))
        if not has_disks and not conflicts:
            return SKIP
        state.write(STATE_KEY, _Wanted(frozenset(exclusive), conflicts, has_disks))
        return None

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Refuse nodes where a disk is in use, then all nodes while a claim is in use."""
        wanted = state.find(STATE_KEY)
        if wanted is None:  # a configuration without this plugin's PreFilter: disks can still be checked, claims cannot
            conflicts = self.disks.conflicts(pod, nodes)
            text = f'cannot read "{STATE_KEY}" from cycleState'
            refused = Rejections.where(conflicts, DISK_CONFLICT)
            return Rejections(refused.bits, refused.reasons, dict.fromkeys(np.flatnonzero(~conflicts).tolist(), text))
        # One answer for all nodes. A what-if that removes the other pod lowers `conflicts` to 0, and all nodes fit
        # again.
        in_use = np.full(nodes.n, wanted.conflicts > 0, dtype=np.bool_)
        if not wanted.has_disks:
            return Rejections.where(in_use, CLAIM_IN_USE)
        return Rejections.first((self.disks.conflicts(pod, nodes, wanted.touched), DISK_CONFLICT), (in_use, CLAIM_IN_USE))

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        _imagine(other, row, 1, state)

    def remove_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        _imagine(other, row, -1, state)

    def pod_gone_may_help(self, pod: PodView, old: Pod, new: Pod | None) -> bool:
        """Return whether the deleted pod used a disk or a claim of the waiting pod."""
        if old.metadata.namespace != pod.namespace:
            return False
        return pods_conflict(pod.pod, old) or not set(direct_claim_names(pod.pod)).isdisjoint(direct_claim_names(old))

    def claim_may_help(self, pod: PodView, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
        """Return whether the pod names the new claim."""
        return names_claim(pod.pod, new, ephemeral=False)


def _imagine(other: PodView, row: int, sign: int, state: CycleState) -> None:
    """Count a pod that comes to a row (1) or leaves it (-1) in a what-if."""
    wanted: _Wanted = state.read(STATE_KEY)
    # kube-scheduler compares claim names without the pods' namespaces here; the same here.
    uses = sum(name in wanted.claims for name in direct_claim_names(other.pod))
    state.write(STATE_KEY, replace(wanted, conflicts=wanted.conflicts + sign * uses, touched=wanted.touched | {row}))


# Inline disks


class Disk(NamedTuple):
    """An inline disk of a pod. Disks with different keys are different disks."""

    key: tuple[Hashable, ...]
    read_only: bool = False
    monitors: frozenset[str] | None = None
    """The monitors of a Ceph image. Two images are the same disk only if they have a monitor in common."""

    def excludes(self, other: Disk) -> bool:
        """Return whether both are the same disk and cannot be used by two pods."""
        # Two read-only users may share any disk but an EBS volume, whose key always comes with read_only False
        # (`_disk`).
        if self.key != other.key or (self.read_only and other.read_only):
            return False
        return self.monitors is None or other.monitors is None or not self.monitors.isdisjoint(other.monitors)


def disks_of(pod: Pod) -> list[Disk]:
    """Return the inline disks of a pod that may conflict with other pods'."""
    return [disk for disk in map(_disk, pod.spec.volumes) if disk is not None]


def _disk(volume: Volume) -> Disk | None:
    if (gce := volume.gce_persistent_disk) is not None:
        return Disk(("gce", gce.pd_name), gce.read_only)
    if volume.aws_elastic_block_store is not None:  # never shared, not even read-only
        return Disk(("aws", volume.aws_elastic_block_store.volume_id))
    if (iscsi := volume.iscsi) is not None:
        return Disk(("iscsi", iscsi.iqn), iscsi.read_only)
    if (rbd := volume.rbd) is not None:
        return Disk(("rbd", rbd.pool, rbd.image), rbd.read_only, frozenset(rbd.monitors))
    return None


def pods_conflict(pod: Pod, other: Pod) -> bool:
    """Return whether two pods want the same disk and cannot share it."""
    theirs = disks_of(other)
    return bool(theirs) and any(disk.excludes(one) for disk in disks_of(pod) for one in theirs)


class DisksInUse(PlacedPods):
    """The inline disks of all placed pods by key, so that a pod is compared only with the users of its own disks."""

    def __init__(self) -> None:
        super().__init__()
        self._users: dict[tuple[Hashable, ...], dict[tuple[str, int], tuple[int, Disk]]] = {}
        """By key, then by pod uid and index of the volume: the row and the disk."""

    def conflicts(self, pod: PodView, nodes: Snapshot, touched: frozenset[int] = frozenset()) -> Bools:
        """Return on which nodes of a view a disk of the pod is in use.

        `touched` are the rows that a what-if has changed; the index does not know that, so their pods are compared one by one.
        """
        # `rows` are rows of the whole cluster; `mask` turns them into a column of the view.
        self.follow(nodes)
        rows = {
            row for disk in disks_of(pod.pod) for row, other in self._users.get(disk.key, {}).values() if disk.excludes(other)
        }
        found = nodes.mask(rows) if rows else np.zeros(nodes.n, dtype=np.bool_)
        for at, _ in rows_in_view(nodes, touched):
            found[at] = any(pods_conflict(pod.pod, other.pod) for other in nodes.pods_on(at))
        return found

    def restart(self, nodes: Snapshot) -> None:
        self._users = {}

    def came(self, pod: PodView, row: int) -> None:
        for index, disk in enumerate(disks_of(pod.pod)):
            self._users.setdefault(disk.key, {})[(pod.uid, index)] = (row, disk)

    def left(self, pod: PodView, row: int) -> None:
        for index, disk in enumerate(disks_of(pod.pod)):
            users = self._users.get(disk.key, {})
            users.pop((pod.uid, index), None)
            if not users:
                self._users.pop(disk.key, None)
