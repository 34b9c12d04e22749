"""NodeVolumeLimits: no more volumes of a CSI driver on a node than the driver can attach there.

A node's CSINode has the limit of each driver. The distinct volumes of the node's pods and of VolumeAttachments count:

    limit of ebs.csi.aws.com: 2          on the node: v1 (pods a and b), v2 (a VolumeAttachment)
    pod with v1: 0 new volumes, fits     pod with v3: 2 + 1 > 2, refused

A volume of an in-tree plugin counts for the CSI driver that replaced it. With the gate VolumeLimitScaling, a node without the
driver is refused too, if the CSIDriver says `preventPodSchedulingIfMissing`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import numpy as np

from kubesched.kube.api import CSIDriver, CSINode, PersistentVolumeClaim, Pod, VolumeAttachment
from kubesched.scheduler.cluster import Bools, Ints, PodView, Snapshot
from kubesched.scheduler.framework import (
    ADD,
    CSI_NODE,
    DELETE,
    POD,
    PVC,
    SKIP,
    UPDATE,
    VOLUME_ATTACHMENT,
    CycleState,
    Handle,
    Input,
    Plugin,
    PreFilterAnswer,
    Reason,
    Rejections,
    on,
)
from kubesched.scheduler.plugins.node_volume_limits.attachments import (
    Attached,
    Attachments,
    ClaimMissing,
    Resolver,
    Wanted,
    by_driver,
    is_attachable,
    volumes_of,
)
from kubesched.scheduler.plugins.node_volume_limits.csi_nodes import CsiNodes, driver_limits
from kubesched.scheduler.plugins.shared import csi_translation as csi
from kubesched.scheduler.plugins.shared.volumes import VolumeError, names_claim, rows_in_view

TOO_MANY = Reason("node(s) exceed max volume count")
DRIVER_MISSING = "{driver} CSI driver is not installed on the node"


class NodeVolumeLimits(Plugin):
    wakes_on = (
        on(CSI_NODE, ADD),
        on(CSI_NODE, UPDATE, "csi_node_may_help"),
        on(POD, DELETE, "pod_gone_may_help"),
        on(PVC, ADD, "claim_may_help"),
        on(VOLUME_ATTACHMENT, DELETE, "attachment_gone_may_help"),
    )

    depends_on = (Input.POD_VOLUMES, Input.NODE)

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.resolver = Resolver(handle.objects, uuid.uuid4().hex)
        self.attachments = Attachments(self.resolver)
        self.csi_nodes = CsiNodes(handle.objects)
        self._needs_driver = handle.gates.is_enabled("VolumeLimitScaling")

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        return None if any(map(is_attachable, pod.pod.spec.volumes)) else SKIP

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Refuse nodes that lack a driver (gate VolumeLimitScaling), then nodes above a limit. An inline volume without a CSI
        form is an error on nodes with a CSINode."""
        # Read once for each attempt and kept in its state, which a what-if copies.
        try:
            wanted: Wanted = state.get(self.name, lambda: self._wanted(pod))
        except ClaimMissing as error:
            return Rejections.where(np.ones(nodes.n, dtype=np.bool_), Reason(str(error), resolvable=False))
        self.csi_nodes.follow(nodes)
        rows = slice(None) if nodes.rows is None else nodes.rows
        errors: dict[int, str] = {}
        cases: list[tuple[Bools, Reason]] = []
        if wanted.inline_error:
            errors = dict.fromkeys(np.flatnonzero(self.csi_nodes.exists[rows]).tolist(), wanted.inline_error)
        if wanted.by_driver:
            if self._needs_driver:
                cases += self._missing_drivers(wanted, rows)
            if self.csi_nodes.has_any_limits:
                cases.append((self._exceeded(wanted, nodes, rows, errors), TOO_MANY))
        # The order decides which reason a node gets: a missing driver comes before a limit.
        cases = [case for case in cases if case[0].any()]
        refused = Rejections.first(*cases) if cases else Rejections.none(nodes)
        return Rejections(refused.bits, refused.reasons, errors) if errors else refused

    def add_pod(self, pod: PodView, other: PodView, row: int, nodes: Snapshot, state: CycleState) -> None:
        """Note the row: its volumes are counted pod by pod, because the index does not know the what-if."""
        try:
            wanted: Wanted = state.get(self.name, lambda: self._wanted(pod))
        except VolumeError:
            return  # the filter says so itself
        state.write(self.name, wanted.touching(row))

    remove_pod = add_pod

    def _wanted(self, pod: PodView) -> Wanted:
        inline_errors: list[str] = []
        found = volumes_of(pod.pod, self.resolver, is_new=True, inline_errors=inline_errors)
        return Wanted(by_driver(found), inline_errors[0] if inline_errors else "")

    def _exceeded(self, wanted: Wanted, nodes: Snapshot, rows: slice | Ints, errors: dict[int, str]) -> Bools:
        """Return the nodes that would exceed a limit; add to `errors` the nodes with a pod whose volumes cannot be read."""
        attachments = self.attachments
        attachments.follow(nodes)
        # kube-scheduler fails on such nodes if they have limits.
        for at, row in rows_in_view(nodes, attachments.errors.keys() - wanted.touched):
            if self.csi_nodes.has_limits[row]:
                errors.setdefault(at, next(iter(attachments.errors[row].values())))
        too_many: Bools | None = None
        # `room` is what is left on each row. On most rows all volumes of the pod would be new, so the first comparison
        # decides. Only rows that hold one of these volumes already are worked out again, with the number that would
        # really be added: a pod that shares all its volumes with the node always fits, also on a node that is above its
        # limit.
        for driver, volumes in wanted.by_driver.items():
            limits = self.csi_nodes.limits(driver)
            if limits is None:
                continue
            counts = attachments.count(driver)
            room = limits if counts is None else limits - counts
            over: Bools = room < len(volumes)
            for row in {row for volume in volumes for row in attachments.rows_with(volume.name)}:
                added = sum(row not in attachments.rows_with(volume.name) for volume in volumes)
                over[row] = added > 0 and room[row] < added
            too_many = over if too_many is None else too_many | over
        # The index counts pods as they are. Rows that the what-if has changed are counted from their pods in the view.
        answer: Bools = too_many[rows] if too_many is not None else np.zeros(nodes.n, dtype=np.bool_)
        for at, row in rows_in_view(nodes, wanted.touched):
            try:
                answer[at] = self._exceeds_on(wanted, nodes, at, row)
            except VolumeError as error:
                errors.setdefault(at, str(error))
        return answer

    def _exceeds_on(self, wanted: Wanted, nodes: Snapshot, at: int, row: int) -> bool:
        """Return whether a node of a what-if would exceed a limit, counted from its pods."""
        if not self.csi_nodes.has_limits[row]:
            return False
        attached: dict[str, Attached] = {}
        for other in nodes.pods_on(at):
            if other.pod.spec.volumes:
                attached.update(volumes_of(other.pod, self.resolver, is_new=False))
        # `attached` are volumes of pods, `counted` adds those of VolumeAttachments. Kept quirk: a volume that only a
        # VolumeAttachment lists uses a place, but is not known to be shared: a pod with it adds one more.
        counted = {**{volume.name: volume for volume in self.attachments.by_attachments(row)}, **attached}
        for driver, volumes in wanted.by_driver.items():
            limits = self.csi_nodes.limits(driver)
            added = sum(volume.name not in attached for volume in volumes)
            present = sum(volume.driver == driver for volume in counted.values())
            if limits is not None and added and present + added > limits[row]:
                return True
        return False

    def _missing_drivers(self, wanted: Wanted, rows: slice | Ints) -> Iterable[tuple[Bools, Reason]]:
        """Yield the nodes without a driver that has `preventPodSchedulingIfMissing`. In-tree volumes need it only on nodes with
        a CSINode."""
        for driver, volumes in wanted.by_driver.items():
            found = self.handle.objects.get(CSIDriver, driver)
            if found is None or not found.spec.prevent_pod_scheduling_if_missing:
                continue
            missing = ~self.csi_nodes.installed(driver)
            if all(volume.migrated for volume in volumes):
                missing &= self.csi_nodes.exists
            yield missing[rows], Reason(DRIVER_MISSING.format(driver=driver))

    # Queueing hints

    def csi_node_may_help(self, pod: PodView, old: CSINode, new: CSINode) -> bool:
        """Return whether a limit of the node is higher than before."""
        before = driver_limits(old)
        return any(limit > before.get(driver, 0) for driver, limit in driver_limits(new).items())

    def pod_gone_may_help(self, pod: PodView, old: Pod, new: Pod | None) -> bool:
        """Return whether the deleted pod had a node, or a nominated one, and volumes that count."""
        had_place = bool(old.spec.node_name or old.status.nominated_node_name)
        return had_place and any(map(is_attachable, old.spec.volumes))

    def claim_may_help(self, pod: PodView, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
        """Return whether the pod names the new claim."""
        return names_claim(pod.pod, new)

    def attachment_gone_may_help(self, pod: PodView, old: VolumeAttachment, new: VolumeAttachment | None) -> bool:
        """Return whether the pod has claims, or an inline volume of the attachment's driver.

        Kept quirk: ephemeral volumes do not count here; such pods wait for another event.
        """
        for volume in pod.pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                return True
            plugin = csi.in_tree_plugin(volume)
            if plugin and csi.CSI_DRIVERS[plugin] == old.spec.attacher:
                return True
        return False
