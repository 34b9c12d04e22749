"""The Max*VolumeCount predicates: no more volumes of a kind on a node than it takes.

The limit is in the node's allocatable, else KUBE_MAX_PD_VOLS, else the cloud's usual limit (39 for EBS); for CSI drivers it is
in the CSINode first. The distinct volumes of the node's pods count. The index is that of today's NodeVolumeLimits
(`Attachments`) with another resolver: without VolumeAttachments, and without inline CSI volumes, which did not exist then.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from kubesched.kube.api import Node, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSources, StorageClass, Volume
from kubesched.kube.values import quantity
from kubesched.scheduler.cluster import Bools, Ints, Objects, PodView, Snapshot, class_of_claim
from kubesched.scheduler.framework import SKIP, CycleState, Handle, Plugin, PreFilterAnswer, Rejections
from kubesched.scheduler.legacy.shared.nodewise import NodeColumn
from kubesched.scheduler.plugins.node_volume_limits.attachments import (
    Attached,
    Attachments,
    Resolver,
    Wanted,
    by_driver,
    volumes_of,
)
from kubesched.scheduler.plugins.node_volume_limits.csi_nodes import NO_LIMIT, CsiNodes
from kubesched.scheduler.plugins.node_volume_limits.plugin import TOO_MANY
from kubesched.scheduler.plugins.shared import csi_translation as csi
from kubesched.scheduler.plugins.shared.volumes import VolumeError, rows_in_view

MAX_VOLUMES_VARIABLE = "KUBE_MAX_PD_VOLS"

_INSTANCE_TYPES = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")
_NITRO = re.compile(r"^[cmr]5.*|t3|z1d")
_CSI_LIMIT_PREFIX = "attachable-volumes-csi-"
_LONGEST_RESOURCE_NAME = 63
_VOLUME_NAMES = {
    csi.AWS_EBS: ("aws_elastic_block_store", "volume_id"),
    csi.GCE_PD: ("gce_persistent_disk", "pd_name"),
    csi.AZURE_DISK: ("azure_disk", "disk_name"),
    csi.CINDER: ("cinder", "volume_id"),
}
"""By in-tree plugin: the field of a volume, and in it the name by which volumes are counted."""


def max_volumes_from(environment: Mapping[str, str]) -> int | None:
    """Return the limit in KUBE_MAX_PD_VOLS, None if there is none."""
    text = environment.get(MAX_VOLUMES_VARIABLE, "")
    return int(text) if text.isdecimal() and int(text) > 0 else None


def in_tree_name(plugin: str, source: Volume | PersistentVolumeSources) -> str:
    """Return the name of a volume of an in-tree kind; empty for volumes of other kinds."""
    field, name = _VOLUME_NAMES[plugin]
    volume = getattr(source, field)
    return getattr(volume, name) if volume is not None else ""


class InTreeResolver(Resolver):
    """Finds the volumes of one in-tree kind, by its own names."""

    def __init__(self, objects: Objects, stand_in: str, plugin: str) -> None:
        super().__init__(objects, stand_in)
        self._plugin = plugin

    def claim(self, claim: PersistentVolumeClaim) -> Attached | None:
        """Return the volume behind a claim if it is, or will be, of this kind."""
        volume_name = claim.spec.volume_name
        volume = self.objects.get(PersistentVolume, volume_name) if volume_name else None
        if volume is not None:
            return self._named(in_tree_name(self._plugin, volume.spec))
        class_name = class_of_claim(claim)
        storage_class = self.objects.get(StorageClass, class_name) if class_name else None
        if storage_class is None or storage_class.provisioner != self._plugin:
            return None
        return self._named(f"{self.stand_in}-{claim.metadata.namespace}/{claim.metadata.name}")

    def inline(self, volume: Volume) -> Attached | None:
        """Return the volume that a pod declares, if it is of this kind."""
        return self._named(in_tree_name(self._plugin, volume))

    def _named(self, name: str) -> Attached | None:
        return Attached(name, self._plugin) if name else None


class CsiResolver(Resolver):
    """Finds the CSI volumes of claims; in-tree volumes count in their own predicates."""

    def claim(self, claim: PersistentVolumeClaim) -> Attached | None:
        """Return the volume behind a claim if a CSI driver has it."""
        found = super().claim(claim)
        return None if found is not None and found.migrated else found

    def inline(self, volume: Volume) -> Attached | None:
        """Return None: the old predicate looks at claims only."""
        return None


def stated_limit(node: Node, resource: str) -> int:
    """Return the limit in a node's allocatable, NO_LIMIT if there is none."""
    amounts = node.status.allocatable
    if resource not in amounts:
        return NO_LIMIT
    field = f"status.allocatable.{resource}"
    return quantity.value(quantity.parse_field(amounts[resource], f"node {node.metadata.name}", field))


class VolumeCountPredicate(Plugin):
    """The base of these predicates. Its argument is the limit of nodes that state none (KUBE_MAX_PD_VOLS)."""

    counts_when_all_there: ClassVar[bool] = False
    """Whether a node above its limit is refused although it has all of the pod's volumes already."""

    def __init__(self, max_volumes: int | None, handle: Handle) -> None:
        super().__init__(max_volumes, handle)
        self.csi_nodes = CsiNodes(handle.objects)
        self.resolver = self.make_resolver(handle.objects, uuid.uuid4().hex)
        self.attachments = Attachments(self.resolver, with_attachments=False)

    def make_resolver(self, objects: Objects, stand_in: str) -> Resolver:
        """Return the resolver that finds the volumes."""
        raise NotImplementedError

    def limits(self, driver: str, nodes: Snapshot) -> Ints:
        """Return how many volumes of a driver each node of the whole cluster takes."""
        raise NotImplementedError

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        return None if pod.pod.spec.volumes else SKIP

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Refuse nodes that would exceed their limit."""
        try:
            attempt: Wanted = state.get(self.name, lambda: self._wanted(pod))
        except VolumeError as error:
            return Rejections(None, (), dict.fromkeys(range(nodes.n), str(error)))
        if not attempt.by_driver:
            return Rejections.none(nodes)
        self.attachments.follow(nodes)
        self.csi_nodes.follow(nodes)
        too_many: Bools = np.zeros(nodes.n, dtype=np.bool_)
        for driver, volumes in attempt.by_driver.items():
            too_many |= self._exceeded(driver, volumes, attempt.touched, nodes)
        broken = self.attachments.errors
        errors = {at: next(iter(broken[row].values())) for at, row in rows_in_view(nodes, broken.keys())}
        refused = Rejections.where(too_many, TOO_MANY)
        return Rejections(refused.bits, refused.reasons, errors or None)

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        """Note the row: its volumes are counted pod by pod."""
        attempt: Wanted = state.get(self.name, lambda: self._wanted(pod))
        state.write(self.name, attempt.touching(row))

    remove_pod = add_pod

    def _wanted(self, pod: PodView) -> Wanted:
        return Wanted(by_driver(volumes_of(pod.pod, self.resolver, is_new=False)))

    def new_volumes(self, volumes: tuple[Attached, ...], nodes: Snapshot) -> Ints:
        """Return how many of the volumes each node of the whole cluster does not have yet."""
        new = np.full(nodes.total, len(volumes), dtype=np.int64)
        for volume in volumes:
            for row in self.attachments.rows_with(volume.name):
                new[row] -= 1
        return new

    def _exceeded(self, driver: str, volumes: tuple[Attached, ...], touched: frozenset[int], nodes: Snapshot) -> Bools:
        """Return the nodes of a view that would exceed the limit of a driver; rows of a what-if are counted pod by pod."""
        limits = self.limits(driver, nodes)
        counts = self.attachments.count(driver)
        added = self.new_volumes(volumes, nodes)
        after = added if counts is None else counts + added
        over: Bools = after > limits
        if not self.counts_when_all_there:
            over &= added > 0
        answer = over if nodes.rows is None else over[nodes.rows]
        for at, row in rows_in_view(nodes, touched):
            held: dict[str, Attached] = {}
            for other in nodes.pods_on(at):
                held.update(volumes_of(other.pod, self.resolver, is_new=False))
            new = sum(volume.name not in held for volume in volumes)
            present = sum(volume.driver == driver for volume in held.values())
            answer[at] = present + new > limits[row] and (new > 0 or self.counts_when_all_there)
        return answer


class InTreeVolumeCount(VolumeCountPredicate):
    """Counts the volumes of one in-tree kind, except on nodes that have migrated it to CSI."""

    plugin: ClassVar[str] = ""
    resource: ClassVar[str] = ""
    usual: ClassVar[int] = 0
    """The limit of a node that states none."""
    counts_when_all_there = True

    def __init__(self, max_volumes: int | None, handle: Handle) -> None:
        super().__init__(max_volumes, handle)
        self._limits = NodeColumn(self._limit_of, np.int64)

    def make_resolver(self, objects: Objects, stand_in: str) -> Resolver:
        return InTreeResolver(objects, stand_in, self.plugin)

    def limits(self, driver: str, nodes: Snapshot) -> Ints:
        limits, migrated = self._limits.on(nodes.everything()), self.csi_nodes.migrated(self.plugin)
        return np.where(migrated, NO_LIMIT, limits) if migrated.any() else limits

    def _limit_of(self, node: Node) -> int:
        stated = stated_limit(node, self.resource)
        if stated != NO_LIMIT:
            return stated
        return self.args if self.args is not None else self.usual_limit(node)

    def usual_limit(self, node: Node) -> int:
        """Return the limit of a node that states none, without KUBE_MAX_PD_VOLS."""
        return self.usual


class MaxEBSVolumeCount(InTreeVolumeCount):
    """Count AWS volumes."""

    plugin, resource, usual = csi.AWS_EBS, "attachable-volumes-aws-ebs", 39

    def usual_limit(self, node: Node) -> int:
        """Return 39, or 25 for Nitro instance types, which take fewer."""
        found = [node.metadata.labels[key] for key in _INSTANCE_TYPES if key in node.metadata.labels]
        return 25 if found and _NITRO.search(found[-1]) else self.usual


class MaxGCEPDVolumeCount(InTreeVolumeCount):
    """Count Google disks."""

    plugin, resource, usual = csi.GCE_PD, "attachable-volumes-gce-pd", 16


class MaxAzureDiskVolumeCount(InTreeVolumeCount):
    """Count Azure disks."""

    plugin, resource, usual = csi.AZURE_DISK, "attachable-volumes-azure-disk", 16


class MaxCinderVolumeCount(InTreeVolumeCount):
    """Count OpenStack volumes."""

    plugin, resource, usual = csi.CINDER, "attachable-volumes-cinder", 256


class MaxCSIVolumeCountPred(VolumeCountPredicate):
    """Count the volumes of each CSI driver against the node's CSINode, or else its allocatable."""

    def __init__(self, max_volumes: int | None, handle: Handle) -> None:
        super().__init__(max_volumes, handle)
        self._stated: dict[str, NodeColumn] = {}

    def make_resolver(self, objects: Objects, stand_in: str) -> Resolver:
        return CsiResolver(objects, stand_in)

    def limits(self, driver: str, nodes: Snapshot) -> Ints:
        if driver not in self._stated:
            resource = csi_limit_resource(driver)
            self._stated[driver] = NodeColumn(lambda node: stated_limit(node, resource), np.int64)
        stated, limits = self._stated[driver].on(nodes.everything()), self.csi_nodes.limits(driver)
        return stated if limits is None else np.where(limits == NO_LIMIT, stated, limits)


def csi_limit_resource(driver: str) -> str:
    """Return the resource name of a driver's limit; long names are cut and hashed."""
    if len(_CSI_LIMIT_PREFIX) + len(driver) < _LONGEST_RESOURCE_NAME:
        return _CSI_LIMIT_PREFIX + driver
    return _CSI_LIMIT_PREFIX + driver[:23] + hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()[:16]
