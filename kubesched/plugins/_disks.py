"""Disks that pods declare inline, and who may not share them.

In: placed pods. Out: on which nodes a pod's disks are already in use. Four kinds count, each with its own idea of "the
same disk"; all but the AWS one may be shared if everybody only reads. Disks behind claims are never looked at.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from kubesched.api.pod import Pod
from kubesched.api.volumes import Volume
from kubesched.cluster import Bools, PodView, Snapshot
from kubesched.plugins._placed import PlacedPods
from kubesched.plugins._volumes import rows_in_view


def disk_key(volume: Volume) -> tuple[Hashable, ...] | None:
    """Return what two volumes must have in common to be perhaps the same disk; None if the volume is no such disk."""
    if volume.gce_persistent_disk is not None:
        return ("gce", volume.gce_persistent_disk.pd_name)
    if volume.aws_elastic_block_store is not None:
        return ("aws", volume.aws_elastic_block_store.volume_id)
    if volume.iscsi is not None:
        return ("iscsi", volume.iscsi.iqn)
    if volume.rbd is not None:
        return ("rbd", volume.rbd.pool, volume.rbd.image)
    return None


def has_disks(pod: Pod) -> bool:
    """Return whether a pod declares a disk that could be in use elsewhere."""
    return any(disk_key(volume) is not None for volume in pod.spec.volumes)


def conflict(one: Volume, other: Volume) -> bool:
    """Return whether two volumes of equal key are the same disk and may not be used together."""
    if one.gce_persistent_disk is not None and other.gce_persistent_disk is not None:
        return not (one.gce_persistent_disk.read_only and other.gce_persistent_disk.read_only)
    if one.iscsi is not None and other.iscsi is not None:
        return not (one.iscsi.read_only and other.iscsi.read_only)
    if one.rbd is not None and other.rbd is not None:
        shared = not set(one.rbd.monitors).isdisjoint(other.rbd.monitors)
        return shared and not (one.rbd.read_only and other.rbd.read_only)
    return True


def pods_conflict(pod: Pod, other: Pod) -> bool:
    """Return whether two pods want the same disk and cannot share it."""
    held: dict[tuple[Hashable, ...], list[Volume]] = {}
    for volume in other.spec.volumes:
        key = disk_key(volume)
        if key is not None:
            held.setdefault(key, []).append(volume)
    for volume in pod.spec.volumes if held else ():
        key = disk_key(volume)
        if key is not None and any(conflict(volume, theirs) for theirs in held.get(key, ())):
            return True
    return False


class DisksInUse(PlacedPods):
    """The inline disks of all placed pods, by what they may have in common."""

    def __init__(self) -> None:
        super().__init__()
        self._users: dict[tuple[Hashable, ...], dict[tuple[str, int], tuple[int, Volume]]] = {}

    def conflicts(self, pod: PodView, nodes: Snapshot, touched: frozenset[int] = frozenset()) -> Bools:
        """Return on which nodes of a view a disk of the pod is in use.

        `touched` are the rows of the whole cluster on which the view differs from the cluster by a what-if; their pods
        are asked one by one.
        """
        self.follow(nodes)
        rows: set[int] = set()
        for volume in pod.pod.spec.volumes:
            key = disk_key(volume)
            for row, theirs in self._users.get(key, {}).values() if key is not None else ():
                if conflict(volume, theirs):
                    rows.add(row)
        found = nodes.mask(rows) if rows else np.zeros(nodes.n, dtype=np.bool_)
        for at, _ in rows_in_view(nodes, touched):
            found[at] = any(pods_conflict(pod.pod, other.pod) for other in nodes.pods_on(at))
        return found

    def restart(self, nodes: Snapshot) -> None:
        """Forget all users."""
        self._users = {}

    def came(self, pod: PodView, row: int) -> None:
        """Take in a pod's disks."""
        for index, volume in enumerate(pod.pod.spec.volumes):
            key = disk_key(volume)
            if key is not None:
                self._users.setdefault(key, {})[(pod.uid, index)] = (row, volume)

    def left(self, pod: PodView, row: int) -> None:
        """Let go of a pod's disks."""
        for index, volume in enumerate(pod.pod.spec.volumes):
            key = disk_key(volume)
            if key is not None:
                users = self._users.get(key, {})
                users.pop((pod.uid, index), None)
                if not users:
                    self._users.pop(key, None)
