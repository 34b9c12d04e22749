"""Disks that pods declare inline, and who may not share them.

In: placed pods. Out: on which nodes a pod's disks are already in use. Four kinds count, each with its own idea of "the
same disk"; all but the AWS one may be shared if everybody only reads. Disks behind claims are never looked at.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from kubesched.kube.api import Pod, Volume
from kubesched.scheduler.cluster import Bools, PodView, Snapshot
from kubesched.scheduler.plugins.shared.placed import PlacedPods
from kubesched.scheduler.plugins.shared.volumes import rows_in_view


class Disk(NamedTuple):
    """An inline disk: what two must have in common to be perhaps the same one, and how it is used."""

    key: tuple[Hashable, ...]
    read_only: bool = False
    monitors: frozenset[str] | None = None
    """Of a Ceph image only: it is the same disk if one of them is the same, too."""

    def excludes(self, other: Disk) -> bool:
        """Return whether this is the same disk as another, and may not be used beside it."""
        if self.key != other.key or (self.read_only and other.read_only):
            return False
        return self.monitors is None or other.monitors is None or not self.monitors.isdisjoint(other.monitors)


def disks_of(pod: Pod) -> list[Disk]:
    """Return the disks that a pod declares and that could be in use elsewhere."""
    return [disk for disk in map(_disk, pod.spec.volumes) if disk is not None]


def _disk(volume: Volume) -> Disk | None:
    if (gce := volume.gce_persistent_disk) is not None:
        return Disk(("gce", gce.pd_name), gce.read_only)
    if volume.aws_elastic_block_store is not None:
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
    """The inline disks of all placed pods, by what they may have in common."""

    def __init__(self) -> None:
        super().__init__()
        self._users: dict[tuple[Hashable, ...], dict[tuple[str, int], tuple[int, Disk]]] = {}

    def conflicts(self, pod: PodView, nodes: Snapshot, touched: frozenset[int] = frozenset()) -> Bools:
        """Return on which nodes of a view a disk of the pod is in use.

        `touched` are the rows of the whole cluster on which the view differs from the cluster by a what-if; their pods
        are asked one by one.
        """
        self.follow(nodes)
        rows = {
            row for disk in disks_of(pod.pod) for row, other in self._users.get(disk.key, {}).values() if disk.excludes(other)
        }
        found = nodes.mask(rows) if rows else np.zeros(nodes.n, dtype=np.bool_)
        for at, _ in rows_in_view(nodes, touched):
            found[at] = any(pods_conflict(pod.pod, other.pod) for other in nodes.pods_on(at))
        return found

    def restart(self, nodes: Snapshot) -> None:
        """Forget all users."""
        self._users = {}

    def came(self, pod: PodView, row: int) -> None:
        """Take in a pod's disks."""
        for index, disk in enumerate(disks_of(pod.pod)):
            self._users.setdefault(disk.key, {})[(pod.uid, index)] = (row, disk)

    def left(self, pod: PodView, row: int) -> None:
        """Let go of a pod's disks."""
        for index, disk in enumerate(disks_of(pod.pod)):
            users = self._users.get(disk.key, {})
            users.pop((pod.uid, index), None)
            if not users:
                self._users.pop(disk.key, None)
