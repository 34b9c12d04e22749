"""Devices and volumes of nodes as columns, beside cpu and memory: what each driver offers on a node, and how much is in use.

In: a snapshot with the slices, claims, CSINodes and volumes of its cluster. Out: for each driver two columns. `devices DRIVER`
counts devices that a driver publishes for one node; devices that several nodes can use are left out. `volumes DRIVER` counts
the volumes that a CSI driver has attached, and its limit. A cluster without either costs nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kubesched.kube.api import CSINode, PersistentVolume, PersistentVolumeClaim, ResourceSlice, VolumeAttachment
from kubesched.scheduler.cluster import DeviceClaims, Ints, Objects, PoolId, Snapshot
from kubesched.scheduler.plugins.node_volume_limits.attachments import Attachments, Resolver
from kubesched.scheduler.plugins.node_volume_limits.csi_nodes import CsiNodes, driver_limits

MOST_DRIVERS = 4
_OFFERED_BY = (ResourceSlice, CSINode)
_USED_BY = (PersistentVolumeClaim, PersistentVolume, VolumeAttachment)


class NodeAmount(NamedTuple):
    """An amount that nodes offer, and its use, row by row."""

    name: str
    offered: Ints
    used: Ints


class DevicesAndVolumes:
    """Follows one cluster. Get it with `nodes.objects.shared(DevicesAndVolumes)`."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._pools: dict[PoolId, int] = {}
        self._devices: dict[str, Ints] = {}
        self._read: tuple[int, int] | None = None
        self._csi_nodes = CsiNodes(objects)
        self._attachments = Attachments(Resolver(objects, "page"))

    def offered_version(self) -> int:
        """Return a number that changes whenever the offer may have changed."""
        return sum(map(self._objects.version, _OFFERED_BY))

    def used_version(self) -> int:
        """Return a number that changes whenever the use may have changed."""
        touched = self._objects.shared(DeviceClaims).touched.end if self._objects.count(ResourceSlice) else 0
        return touched + sum(map(self._objects.version, _USED_BY))

    def amounts(self, nodes: Snapshot) -> list[NodeAmount]:
        """Return the amounts, devices first, by the names of the drivers."""
        return [*self._device_amounts(nodes), *self._volume_amounts(nodes)]

    def _device_amounts(self, nodes: Snapshot) -> list[NodeAmount]:
        if not self._objects.count(ResourceSlice):
            return []
        version = self._objects.version(ResourceSlice), nodes.structure
        if version != self._read:
            self._read = version
            self._read_slices(nodes)
        drivers = sorted(self._devices)[:MOST_DRIVERS]
        used = {driver: np.zeros(nodes.n, dtype=np.int64) for driver in drivers}
        claims = self._objects.shared(DeviceClaims)
        claims.refresh()
        for device in {*claims.exclusive, *claims.shares}:
            row = self._pools.get((device.driver, device.pool), -1)
            if row >= 0 and device.driver in used:
                used[device.driver][row] += 1
        return [NodeAmount(f"devices {driver}", self._devices[driver], used[driver]) for driver in drivers]

    def _read_slices(self, nodes: Snapshot) -> None:
        """Read which pool is on which node. Only the newest generation of a pool counts."""
        newest: dict[PoolId, int] = {}
        slices = [each.spec for each in self._objects.all(ResourceSlice) if each.spec.node_name]
        for spec in slices:
            pool = spec.driver, spec.pool.name
            newest[pool] = max(newest.get(pool, spec.pool.generation), spec.pool.generation)
        self._pools, self._devices = {}, {}
        for spec in slices:
            pool, row = (spec.driver, spec.pool.name), nodes.row(spec.node_name or "")
            if row >= 0 and spec.pool.generation == newest[pool]:
                self._pools[pool] = row
                column = self._devices.setdefault(spec.driver, np.zeros(nodes.n, dtype=np.int64))
                column[row] += len(spec.devices)

    def _volume_amounts(self, nodes: Snapshot) -> list[NodeAmount]:
        drivers = sorted({driver for each in self._objects.all(CSINode) for driver in driver_limits(each)})[:MOST_DRIVERS]
        if not drivers:
            return []
        self._csi_nodes.follow(nodes)
        self._attachments.follow(nodes)
        found = []
        for driver in drivers:
            limits, used = self._csi_nodes.limits(driver), self._attachments.count(driver)
            if limits is not None:
                offered = np.where(limits < 1 << 32, limits, 0)  # a driver without a limit says nothing of how full it is
                found.append(NodeAmount(f"volumes {driver}", offered, np.zeros_like(limits) if used is None else used))
        return found
