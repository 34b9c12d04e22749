"""What the volume plugins share: reading a pod's volumes and claims, and the texts that users see about them.

A pod names claims in two ways: directly, and through generic ephemeral volumes, whose claim has a name made from the
pod's and the volume's and must be owned by the pod. Nothing here keeps anything between calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

import numpy as np

from kubesched.errors import SchedulerError
from kubesched.kube.api import PersistentVolumeClaim, Pod, Volume
from kubesched.kube.values import BIND_COMPLETED, quantity
from kubesched.scheduler.cluster import Snapshot

NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
STORAGE = "storage"


class VolumeError(SchedulerError):
    """Something about a pod's volumes is broken, as opposed to not fitting."""


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """Return the name of the claim behind a volume of a pod; None if it is no claim."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else None


def claim_uses(pod: Pod) -> Iterator[tuple[str, bool]]:
    """Yield the claims behind a pod's volumes, in the order of the volumes: the name, and whether it is the pod's own."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is not None:
            yield name, volume.persistent_volume_claim is None


def direct_claim_names(pod: Pod) -> list[str]:
    """Return the names of the claims that a pod's volumes name directly, in their order."""
    return [name for name, is_ephemeral in claim_uses(pod) if not is_ephemeral]


def names_claim(pod: Pod, claim: PersistentVolumeClaim, ephemeral: bool = True) -> bool:
    """Return whether a claim is one that the pod's volumes name, ephemeral ones included if asked for."""
    return claim.metadata.namespace == pod.metadata.namespace and any(
        name == claim.metadata.name for name, is_ephemeral in claim_uses(pod) if ephemeral or not is_ephemeral
    )


def ownership_error(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Return what is wrong with an ephemeral volume's claim if it was made for somebody else; empty if it is fine."""
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
    """Return whether claim and volume have found each other for good."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def requested_nano(claim: PersistentVolumeClaim) -> int:
    """Return how much storage a claim wants, in nano bytes."""
    asked = claim.spec.resources.requests.get(STORAGE, 0)
    return quantity.parse_field(asked, f"persistentvolumeclaim {claim.key}", "spec.resources.requests.storage")


def rows_in_view(nodes: Snapshot, rows: AbstractSet[int]) -> list[tuple[int, int]]:
    """Return where rows of the whole cluster stand in a view, as far as the view has them: (position, row)."""
    if not rows:
        return []
    if nodes.rows is None:
        return [(row, row) for row in sorted(rows)]
    found = np.flatnonzero(np.isin(nodes.rows, np.fromiter(rows, dtype=np.int64)))
    return list(zip(found.tolist(), nodes.rows[found].tolist(), strict=True))
