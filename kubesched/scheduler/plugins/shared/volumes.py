"""What the volume plugins share: reading a pod's volumes and claims, their error texts, and following placed pods.

A pod uses a PersistentVolumeClaim in two ways. `persistentVolumeClaim` names one. A generic ephemeral volume has its own:
volume `data` of pod `web` uses the claim `web-data`, which the pod must own.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

import numpy as np

from kubesched.errors import SchedulerError
from kubesched.kube.api import PersistentVolumeClaim, Pod, Volume
from kubesched.kube.values import BIND_COMPLETED, quantity
from kubesched.scheduler.cluster import Change, PodView, Reader, Snapshot

NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
STORAGE = "storage"


class VolumeError(SchedulerError):
    """A pod's volumes or claims are broken. That a pod does not fit is no error."""


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """Return the name of the claim behind a volume of a pod; None for a volume without a claim."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else None


def claim_uses(pod: Pod) -> Iterator[tuple[str, bool]]:
    """Yield the claims of a pod in the order of its volumes: the name, and whether it belongs to an ephemeral volume."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is not None:
            yield name, volume.persistent_volume_claim is None


def direct_claim_names(pod: Pod) -> list[str]:
    """Return the names of the claims that the pod's spec names, without those of ephemeral volumes."""
    return [name for name, is_ephemeral in claim_uses(pod) if not is_ephemeral]


def names_claim(pod: Pod, claim: PersistentVolumeClaim, ephemeral: bool = True) -> bool:
    """Return whether the pod uses a claim; `ephemeral` says whether claims of ephemeral volumes count."""
    return claim.metadata.namespace == pod.metadata.namespace and any(
        name == claim.metadata.name for name, is_ephemeral in claim_uses(pod) if ephemeral or not is_ephemeral
    )


def ownership_error(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Return the error text if the claim of an ephemeral volume belongs to another pod; empty if it does not."""
    owner = claim.metadata.controller()
    if claim.metadata.namespace == pod.metadata.namespace and owner is not None and owner.uid == pod.metadata.uid:
        return ""
    return (
        f"PVC {claim.metadata.namespace}/{claim.metadata.name} was not created for pod "
        f"{pod.metadata.namespace}/{pod.metadata.name} (pod is not owner)"
    )


def claim_not_found(name: str) -> str:
    """Return the text for a claim that does not exist."""
    return f'persistentvolumeclaim "{name}" not found'


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether the claim names a volume and the volume controller has completed the binding."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def requested_nano(claim: PersistentVolumeClaim) -> int:
    """Return how much storage a claim wants, in nano bytes."""
    asked = claim.spec.resources.requests.get(STORAGE, 0)
    return quantity.parse_field(asked, f"persistentvolumeclaim {claim.key}", "spec.resources.requests.storage")


def rows_in_view(nodes: Snapshot, rows: AbstractSet[int]) -> list[tuple[int, int]]:
    """Return (position in the view, row) for those of the cluster's rows that the view contains."""
    if not rows:
        return []
    if nodes.rows is None:
        return [(row, row) for row in sorted(rows)]
    found = np.flatnonzero(np.isin(nodes.rows, np.fromiter(rows, dtype=np.int64)))
    return list(zip(found.tolist(), nodes.rows[found].tolist(), strict=True))


class PlacedPods:
    """The base of an index over placed pods with volumes. `follow` calls `came` and `left` for every such pod that moved since
    the last call. If nodes were added or removed, or the journal is too long, it calls `restart`, and `came` for all pods."""

    def __init__(self) -> None:
        self._reader: Reader[Change] = Reader()

    def follow(self, nodes: Snapshot) -> None:
        """Bring the index up to date with the cluster of a view."""
        changes = self._reader.changed(nodes.journal)
        if changes is not None:
            for change in changes:
                pod = change.pod
                if pod is not None and pod.pod.spec.volumes:
                    (self.came if change.sign > 0 else self.left)(pod, change.row)
            return
        # `slots` has the placed pods of the whole cluster by slot; `row_of_slot` is the row of each. This loop is over
        # all pods, but only runs when nodes come or go, or after a very long pause.
        self.restart(nodes)
        row_of_slot = nodes.slots.row.data
        for slot, pod in enumerate(nodes.slots.views):
            if pod is not None and pod.pod.spec.volumes:
                self.came(pod, int(row_of_slot[slot]))

    def restart(self, nodes: Snapshot) -> None:
        """Empty the index."""
        raise NotImplementedError

    def came(self, pod: PodView, row: int) -> None:
        """Add a pod that came to a row of the whole cluster."""
        raise NotImplementedError

    def left(self, pod: PodView, row: int) -> None:
        """Remove a pod that left a row of the whole cluster."""
        raise NotImplementedError
