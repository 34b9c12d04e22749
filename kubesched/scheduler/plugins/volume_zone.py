"""VolumeZone: a node must be in the zone and region of the pod's bound volumes.

This is older than the node affinity of volumes: the volume has a zone or region label, with one value or several (`a__b`), and
the node must have one of them. A node without any such label is not refused. Only bound claims count, without ephemeral
volumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kubesched.kube.api import IN, PersistentVolume, PersistentVolumeClaim, Pod, Requirement, StorageClass
from kubesched.kube.values import BETA_REGION, BETA_ZONE, REGION, ZONE
from kubesched.scheduler.cluster import ABSENT, Bools, Objects, PodView, Snapshot, class_of_claim, match_requirement
from kubesched.scheduler.framework import (
    ADD,
    ADMITTED_LATER,
    NODE,
    PV,
    PVC,
    SKIP,
    STORAGE_CLASS,
    UPDATE,
    Action,
    CycleState,
    Input,
    Plugin,
    PreFilterAnswer,
    Reason,
    Rejections,
    Status,
    on,
    unresolvable,
)
from kubesched.scheduler.plugins.shared.volumes import WAIT_FOR_FIRST_CONSUMER, claim_not_found, direct_claim_names, names_claim

ZONE_CONFLICT = Reason("node(s) had no available volume zone", resolvable=False)

TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
"""The labels of a volume that count, in kube-scheduler's order."""
STABLE_NAMES = {BETA_ZONE: ZONE, BETA_REGION: REGION}
"""A node may have the new label instead of the volume's old one, but not the old one instead of the new one."""


class VolumeTopology(NamedTuple):
    """One label of a volume: the key, and the values that a node may have."""

    volume_name: str
    key: str
    values: frozenset[str]


def zones_in(label: str) -> frozenset[str]:
    """Return the values of a label `a__b`; none if one of them is empty, then the label is ignored."""
    values = [value.strip() for value in label.split("__")]
    return frozenset(values) if all(values) else frozenset()


def placements_of_volume(volume: PersistentVolume, keys: Sequence[str] = TOPOLOGY_LABELS) -> list[VolumeTopology]:
    """Return the topology labels of a volume."""
    labels = volume.metadata.labels
    found = [VolumeTopology(volume.metadata.name, key, zones_in(labels[key])) for key in keys if key in labels]
    return [placement for placement in found if placement.values]


def placements(pod: Pod, objects: Objects, keys: Sequence[str] = TOPOLOGY_LABELS) -> list[VolumeTopology] | Status:
    """Return the topology labels of all bound volumes of a pod, or why a claim cannot be used."""
    found: list[VolumeTopology] = []
    # The first claim that cannot be used ends it, in the order of the pod's volumes. A claim without a volume is passed
    # over only if its class waits for the first consumer.
    for name in direct_claim_names(pod):
        if not name:
            return unresolvable("PersistentVolumeClaim had no name")
        claim = objects.get(PersistentVolumeClaim, name, pod.metadata.namespace)
        if claim is None:
            return unresolvable(claim_not_found(name))
        volume_name = claim.spec.volume_name
        if not volume_name:
            refused = _refuse_unbound(claim, objects)
            if refused is not None:
                return refused
            continue
        volume = objects.get(PersistentVolume, volume_name)
        if volume is None:
            return unresolvable(f'persistentvolume "{volume_name}" not found')
        found += placements_of_volume(volume, keys)
    return found


def _refuse_unbound(claim: PersistentVolumeClaim, objects: Objects) -> Status | None:
    """Return why a claim without a volume is refused; None if its class waits for the first consumer."""
    # Kept order and texts. A claim that binds immediately and has no volume yet will be retried when it has one.
    class_name = class_of_claim(claim)
    if not class_name:
        return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = objects.get(StorageClass, class_name)
    if storage_class is None:
        return unresolvable(f'storageclass.storage.k8s.io "{class_name}" not found')
    if storage_class.volume_binding_mode is None:
        return unresolvable(f'VolumeBindingMode not set for StorageClass "{class_name}"')
    if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        return unresolvable("PersistentVolume had no name")
    return None


def zone_conflicts(found: Sequence[VolumeTopology], nodes: Snapshot, keys: Sequence[str] = TOPOLOGY_LABELS) -> Bools:
    """Return the nodes in other zones or regions; nodes without any of the labels never are."""
    # Kept quirk: a node with none of the labels is in no cloud zone and is never refused. A node with a zone but no
    # region is refused for a volume with a region.
    judged = np.zeros(nodes.n, dtype=np.bool_)
    for key in keys:
        judged |= nodes.codes(key) != ABSENT
    fits = np.ones(nodes.n, dtype=np.bool_)
    for placement in set(found):
        #     volume failure-domain.beta.kubernetes.io/zone=a      node topology.kubernetes.io/zone=a and no beta label: fits
        #     volume topology.kubernetes.io/zone=a                 node with the beta label alone: refused
        here = match_requirement(Requirement(placement.key, IN, tuple(placement.values)), nodes)
        stable = STABLE_NAMES.get(placement.key)
        if stable is not None and stable in keys:
            other = match_requirement(Requirement(stable, IN, tuple(placement.values)), nodes)
            here = np.where(nodes.codes(placement.key) == ABSENT, other, here)
        fits &= here
    return judged & ~fits


class VolumeZone(Plugin):
    wakes_on = (
        on(STORAGE_CLASS, ADD, "class_may_help"),
        on(NODE, ADD | Action.NODE_LABELS, without_hints=ADD | ADMITTED_LATER),
        on(PVC, ADD | UPDATE, "claim_may_help"),
        on(PV, ADD | UPDATE, "volume_may_help"),
    )

    depends_on = (Input.POD_VOLUMES, Input.NODE)

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        found = placements(pod.pod, self.handle.objects)
        if isinstance(found, Status):
            return found
        if not found:
            return SKIP
        state.write(self.name, found)
        return None

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        found: list[VolumeTopology] | Status | None = state.find(self.name)
        if found is None:
            found = placements(pod.pod, self.handle.objects)
        if isinstance(found, Status):
            return Rejections.where(np.ones(nodes.n, dtype=np.bool_), Reason(found.message, resolvable=False))
        if not found:
            return Rejections.none(nodes)
        return Rejections.where(zone_conflicts(found, nodes), ZONE_CONFLICT)

    # Queueing hints

    def class_may_help(self, pod: PodView, old: StorageClass | None, new: StorageClass) -> bool:
        """Return whether the new class waits for the first consumer."""
        return new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def claim_may_help(self, pod: PodView, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
        """Return whether the pod names the claim."""
        return names_claim(pod.pod, new, ephemeral=False)

    def volume_may_help(self, pod: PodView, old: PersistentVolume | None, new: PersistentVolume) -> bool:
        """Return whether the volume is new or its topology labels changed."""
        return old is None or placements_of_volume(old) != placements_of_volume(new)
