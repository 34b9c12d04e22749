"""Extended resources that devices serve: which class answers to which resource name, and how many devices there are.

In: DeviceClasses, ResourceSlices and who holds what. Out: the class of a resource name, and for scoring two columns,
devices and devices in use. DynamicResources and NodeResourcesFit share this.
"""

from __future__ import annotations

import numpy as np

from kubesched.api.matching import compile_node_selector
from kubesched.api.meta import parse_time
from kubesched.api.node import NodeSelector
from kubesched.api.resource import DEVICE_CLASS_RESOURCE_PREFIX, DeviceClass, ResourceSlice
from kubesched.cluster import EPHEMERAL_STORAGE, Bools, Ints, Objects, PodView, Snapshot
from kubesched.cluster.changelog import Reader
from kubesched.cluster.device_claims import DeviceClaims, DeviceId
from kubesched.cluster.objects import ObjectChange
from kubesched.cluster.pods import Amounts
from kubesched.cluster.selection import match_node_selector
from kubesched.plugins._cel import CelError, FactBook, holds


class DeviceClassMap:
    """Resource names to classes; one for each `Objects` (see `Objects.shared`).

    It follows the changes one by one, as the reference's cache does, and keeps its quirks: a class that loses a name to
    another is not entered under its implicit name either; an update that keeps the name keeps the old object; deleting
    one of two classes that claim a name frees the name.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._reader: Reader[ObjectChange] = Reader()
        self._classes: dict[str, DeviceClass] = {}

    @property
    def version(self) -> int:
        """Return a number that moves when the map may have changed."""
        return self._objects.version(DeviceClass)

    def find(self, resource: str) -> DeviceClass | None:
        """Return the class that serves a resource, or None."""
        self._follow()
        return self._classes.get(resource)

    def _follow(self) -> None:
        changes = self._reader.changed(self._objects.log(DeviceClass))
        if changes is None:
            self._classes.clear()
            for device_class in self._objects.all(DeviceClass):
                self._enter(device_class)
            return
        for old, new in changes:
            if new is None:
                assert old is not None
                self._classes.pop(old.spec.extended_resource_name or "", None)
                self._classes.pop(DEVICE_CLASS_RESOURCE_PREFIX + old.metadata.name, None)
                continue
            if old is not None and old.spec.extended_resource_name != new.spec.extended_resource_name:
                self._classes.pop(old.spec.extended_resource_name or "", None)
            self._enter(new)

    def _enter(self, device_class: DeviceClass) -> None:
        name = device_class.spec.extended_resource_name
        if name:
            holder = self._classes.get(name)
            if holder is not None and not _wins(device_class, holder):
                return
            self._classes[name] = device_class
        self._classes[DEVICE_CLASS_RESOURCE_PREFIX + device_class.metadata.name] = device_class


def _wins(challenger: DeviceClass, holder: DeviceClass) -> bool:
    ours, theirs = _age(challenger), _age(holder)
    return ours > theirs or (ours == theirs and challenger.metadata.name < holder.metadata.name)


def _age(device_class: DeviceClass) -> float:
    created = device_class.metadata.creation_timestamp
    return parse_time(created) if created else 0.0


class ServedByDevices:
    """What devices add to a node's own offer, for plugins that count resources; does nothing with the gate off."""

    def __init__(self, objects: Objects, is_enabled: bool) -> None:
        self._objects = objects
        self._is_enabled = is_enabled

    def serves(self, resource: int, nodes_or_pod: Snapshot | PodView) -> bool:
        """Return whether devices serve a resource on nodes that do not offer it themselves."""
        if not self._is_enabled or resource <= EPHEMERAL_STORAGE:
            return False
        interners = nodes_or_pod.templates if isinstance(nodes_or_pod, Snapshot) else nodes_or_pod.template.interners
        return delegated(interners.resources.values[resource], self._objects)

    def serves_any(self, pod: PodView, asked: Amounts) -> bool:
        """Return whether devices serve any of the resources that a pod asks for."""
        scalars = pod.template.remember(asked, lambda: tuple(r for r, _ in asked if r > EPHEMERAL_STORAGE))
        return bool(scalars) and any(self.serves(resource, pod) for resource in scalars)

    def columns(self, resource: int, used: Ints, nodes: Snapshot) -> tuple[Ints, Ints]:
        """Return what is used and what is offered of a resource; devices count where the node offers none itself."""
        offered = nodes.allocatable(resource)
        if not self.serves(resource, nodes):
            return used, offered
        devices, in_use = device_columns(nodes.templates.resources.values[resource], nodes)
        served = (offered == 0) & (devices > 0)
        return np.where(served, in_use, used), np.where(served, devices, offered)

    def row(self, resource: int, used: int, nodes: Snapshot, row: int) -> tuple[int, int]:
        """Return the same for one node."""
        offered = nodes.allocatable_at(resource, row)
        if offered or not self.serves(resource, nodes):
            return used, offered
        devices, in_use = device_columns(nodes.templates.resources.values[resource], nodes)
        return (int(in_use[row]), int(devices[row])) if devices[row] else (used, offered)


def delegated(resource: str, objects: Objects) -> bool:
    """Return whether devices serve a resource on nodes that do not offer it themselves."""
    return objects.shared(DeviceClassMap).find(resource) is not None


class DeviceCounts:
    """Devices of a class per node, and how many of them are in use; one for each `Objects`."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._facts = FactBook()
        self._known: dict[str, tuple[object, Ints, Ints]] = {}

    def columns(self, resource: str, nodes: Snapshot) -> tuple[Ints, Ints]:
        """Return how many devices each node reaches that serve a resource, and how many of them somebody holds."""
        claims = self._objects.shared(DeviceClaims)
        claims.refresh()
        device_class = self._objects.shared(DeviceClassMap).find(resource)
        # A label may change which nodes a slice reaches, so the journal is part of what the answer was computed for.
        valid_for = (
            id(device_class),
            self._objects.version(DeviceClass),
            self._objects.version(ResourceSlice),
            claims.touched.end,
            nodes.structure,
            nodes.journal.end,
        )
        known = self._known.get(resource)
        if known is None or known[0] != valid_for:
            everything = nodes.everything()
            there = np.zeros(everything.n, dtype=np.int64)
            used = np.zeros(everything.n, dtype=np.int64)
            if device_class is not None:
                self._count(device_class, everything, claims, there, used)
            known = self._known[resource] = valid_for, there, used
        _, there, used = known
        return (there, used) if nodes.rows is None else (there[nodes.rows], used[nodes.rows])

    def _count(self, device_class: DeviceClass, nodes: Snapshot, claims: DeviceClaims, there: Ints, used: Ints) -> None:
        expressions = [s.cel.expression for s in device_class.spec.selectors if s.cel is not None]
        broken = np.zeros(nodes.n, dtype=np.bool_)
        for published in self._objects.all(ResourceSlice):
            spec = published.spec
            everyone = None
            if not spec.per_device_node_selection:
                everyone = _reached(spec.node_name, spec.all_nodes, spec.node_selector, nodes)
                if everyone is None:
                    continue
            for device in spec.devices:
                reached = (
                    everyone
                    if everyone is not None
                    else _reached(device.node_name, device.all_nodes, device.node_selector, nodes)
                )
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


def _reached(
    node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None, nodes: Snapshot
) -> Bools | slice | int | None:
    """Return an index of the rows that a slice or device is for; None if there are none."""
    if node_name:
        row = nodes.row(node_name)
        return row if row >= 0 else None
    if all_nodes:
        return slice(None)
    return match_node_selector(compile_node_selector(selector), nodes) if selector is not None else None


def device_columns(resource: str, nodes: Snapshot) -> tuple[Ints, Ints]:
    """Return how many devices each node reaches that serve a resource, and how many of them somebody holds."""
    return nodes.objects.shared(DeviceCounts).columns(resource, nodes)
