"""Extended resources that devices serve: the number of devices as the "allocatable" of a node, the devices in use as
"requested".

    DeviceClass gpu serves example.com/gpu.    node n1 reaches 4 such devices, 1 allocated; n2 has example.com/gpu: 2 itself
    allocatable: n1 4, n2 2                    requested: n1 1, n2 what its pods request
"""

from __future__ import annotations

import numpy as np

from kubesched.kube.api import Device, DeviceClass, ResourceSlice, ResourceSliceSpec, compile_node_selector
from kubesched.kube.cel import CelError, FactBook, holds
from kubesched.scheduler.cluster import (
    EPHEMERAL_STORAGE,
    Bools,
    DeviceClaims,
    DeviceClassMap,
    DeviceId,
    Ints,
    Objects,
    Snapshot,
    Templates,
    match_node_selector,
)


class ServedByDevices:
    """The columns of resources with devices, for plugins that score resources; without them if the gate is off."""

    def __init__(self, objects: Objects, is_enabled: bool) -> None:
        self._objects = objects
        self._is_enabled = is_enabled

    def serves(self, resource: int, interners: Templates) -> bool:
        """Return whether devices serve a resource on nodes that do not offer it themselves."""
        if not self._is_enabled or resource <= EPHEMERAL_STORAGE:
            return False
        return delegated(interners.resources.values[resource], self._objects)

    def columns(self, resource: int, used: Ints, nodes: Snapshot) -> tuple[Ints, Ints]:
        """Return (used, offered) of a resource. Devices count on nodes that do not offer the resource themselves."""
        offered = nodes.allocatable(resource)
        if resource <= EPHEMERAL_STORAGE or not self.serves(resource, nodes.templates):
            return used, offered
        devices, in_use = device_columns(nodes.templates.resources.values[resource], nodes)
        # Kept from kube-scheduler: a node that offers the resource itself (a device plugin) is not served by devices
        # too.
        served = (offered == 0) & (devices > 0)
        return np.where(served, in_use, used), np.where(served, devices, offered)


def delegated(resource: str, objects: Objects) -> bool:
    """Return whether devices serve a resource on nodes that do not offer it themselves."""
    return objects.shared(DeviceClassMap).find(resource) is not None


class DeviceCounts:
    """The devices of a class and those in use, by node; one object for each `Objects`."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._facts = FactBook()
        self._columns: dict[str, tuple[object, Ints, Ints]] = {}
        """By resource: what the columns are valid for, the devices, and those in use."""
        self._classes_version = -1

    def columns(self, resource: str, nodes: Snapshot) -> tuple[Ints, Ints]:
        """Return the number of devices that serve a resource, and of those in use, for each node."""
        claims = self._objects.shared(DeviceClaims)
        claims.refresh()
        device_class = self._objects.shared(DeviceClassMap).find(resource)
        # The resource of a class that is gone is not read again. So changed classes empty the cache.
        if self._classes_version != self._objects.version(DeviceClass):
            self._classes_version = self._objects.version(DeviceClass)
            self._columns.clear()
        # The journal is part of the key: a new label may change which nodes a slice reaches.
        valid_for = (
            id(device_class),
            self._objects.version(ResourceSlice),
            claims.touched.end,
            nodes.structure,
            nodes.journal.end,
        )
        cached = self._columns.get(resource)
        if cached is None or cached[0] != valid_for:
            everything = nodes.everything()
            there = np.zeros(everything.n, dtype=np.int64)
            used = np.zeros(everything.n, dtype=np.int64)
            if device_class is not None:
                self._count(device_class, everything, claims, there, used)
            cached = self._columns[resource] = valid_for, there, used
        _, there, used = cached
        return (there, used) if nodes.rows is None else (there[nodes.rows], used[nodes.rows])

    def _count(self, device_class: DeviceClass, nodes: Snapshot, claims: DeviceClaims, there: Ints, used: Ints) -> None:
        """Add the devices that the class selects. A node that reaches a device with a CEL error gets 0, as in
        kube-scheduler."""
        expressions = [s.cel.expression for s in device_class.spec.selectors if s.cel is not None]
        broken = np.zeros(nodes.n, dtype=np.bool_)
        # Slices by devices by selectors, but only when slices, classes, claims or nodes changed. CEL is cached by
        # device facts.
        for published in self._objects.all(ResourceSlice):
            spec = published.spec
            # The slice says for all its devices which nodes reach them, or leaves it to each device.
            everyone = _reached(spec, nodes) if not spec.per_device_node_selection else None
            for device in spec.devices:
                reached = _reached(device, nodes) if spec.per_device_node_selection else everyone
                if reached is None:
                    continue
                try:
                    facts = self._facts.facts(spec.driver, device)
                    if not all(holds(expression, facts) for expression in expressions):
                        continue
                except CelError:
                    broken[reached] = True
                    continue
                there[reached] += 1
                name = DeviceId(spec.driver, spec.pool.name, device.name)
                if name in claims.exclusive or name in claims.shares:
                    used[reached] += 1
        there[broken] = used[broken] = 0


def _reached(place: ResourceSliceSpec | Device, nodes: Snapshot) -> Bools | slice | int | None:
    """Return an index of the rows that a slice or device is for; None for none."""
    if place.node_name:
        row = nodes.row(place.node_name)
        return row if row >= 0 else None
    if place.all_nodes:
        return slice(None)
    return match_node_selector(compile_node_selector(place.node_selector), nodes) if place.node_selector is not None else None


def device_columns(resource: str, nodes: Snapshot) -> tuple[Ints, Ints]:
    """Return the number of devices that serve a resource, and of those in use, for each node."""
    return nodes.objects.shared(DeviceCounts).columns(resource, nodes)
