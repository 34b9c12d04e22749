"""Devices and ResourceSlices as the search reads them: quantities parsed, blocking taints picked out.

A view is made once for each version of a slice. DeviceTaintRules (behind a gate) add taints to devices from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kubesched.kube.api import (
    CapacityRequestPolicy,
    Counter,
    Device,
    DeviceAttribute,
    DeviceTaint,
    DeviceTaintRule,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    Quantity,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubesched.kube.cel import DeviceFacts, FactBook
from kubesched.kube.values import quantity
from kubesched.scheduler.cluster import DeviceId, PoolId

BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})

Counters = dict[tuple[str, str], int]
"""Amounts in nano units by (counter set, counter)."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """One capacity of a device, in nano units."""

    name: str
    value: int
    text: str | int | float
    policy: CapacityRequestPolicy | None


@dataclass(frozen=True, slots=True)
class NodeUse:
    """What a device uses of one resource of its node: `multiplier` times what is consumed of the capacity `key`, or the `fixed`
    amount, and overheads for each pod and each container."""

    resource: str
    key: str = ""
    multiplier: int = quantity.NANO
    fixed: Quantity | None = None
    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class DeviceView:
    """One device."""

    def __init__(self, device: Device, view: SliceView, book: FactBook, rules: Iterable[DeviceTaintRule]) -> None:
        self.published = device
        self.id = DeviceId(*view.pool, device.name)
        self.facts: DeviceFacts = book.facts(view.pool[0], device)
        self.allow_multiple = bool(device.allow_multiple_allocations)
        self.capacities = tuple(
            Capacity(name, _nano(offered.value, view, f"capacity {name}"), offered.value, offered.request_policy)
            for name, offered in device.capacity.items()
        )
        self.consumes = _counters(((use.counter_set, use.counters) for use in device.consumes_counters), view)
        # `consumes` lists counters; a set may be named without counters, only to be in one of its compatibility groups.
        # So `compatible` tells whether the device belongs to a counter set at all.
        self.compatible = {use.counter_set: frozenset(use.compatibility_groups) for use in device.consumes_counters}
        """The compatibility groups by counter set, also of sets of which the device consumes nothing."""
        self.skip_operations = view.spec.skip_node_operations
        self.node_uses = _node_uses(device)
        self.taints = _blocking_taints(self.id, device, rules)
        self.binding_conditions = device.binding_conditions
        self.place: Device | ResourceSliceSpec = device if view.spec.per_device_node_selection else view.spec
        """What says which nodes reach the device: itself or its slice."""

    def attribute(self, name: str) -> DeviceAttribute | None:
        """Return an attribute by its full name. The driver may publish `driver.example/numa` as `numa`."""
        found = self.published.attributes.get(name)
        if found is None:
            domain, slash, identifier = name.partition("/")
            if slash and domain == self.id.driver:
                found = self.published.attributes.get(identifier)
        return found


class SliceView:
    """One slice."""

    def __init__(self, published: ResourceSlice, book: FactBook, rules: Iterable[DeviceTaintRule]) -> None:
        self.published = published
        self.spec = spec = published.spec
        self.name = published.metadata.name
        self.pool: PoolId = spec.driver, spec.pool.name
        # A slice that declares counters contributes nothing else.
        published_devices = () if spec.shared_counters else spec.devices
        self.devices = tuple(DeviceView(device, self, book, rules) for device in published_devices)

    @property
    def is_of_one_node(self) -> bool:
        """Return whether a change of the slice concerns one node only."""
        return bool(self.spec.node_name) and not self.spec.shared_counters


def _node_uses(device: Device) -> tuple[NodeUse, ...]:
    """Return what a device uses of its node, from the fields of 1.36 and of 1.37."""
    # The same fact in two forms. 1.36: `allocationMultiplier` is a factor with a capacity key, and an amount without
    # one. 1.37 has separate fields for both, and overheads.
    uses = []
    for resource, old in device.node_allocatable_resource_mappings.items():
        times = old.allocation_multiplier
        if old.capacity_key:
            uses.append(NodeUse(resource, old.capacity_key, _multiplier(times)))
        else:
            uses.append(NodeUse(resource, fixed=times if times is not None else "0"))
    for resource, new in device.node_allocatable_resources.items():
        mapping, overhead = new.mapping or NodeAllocatableMapping(), new.overhead or NodeAllocatableOverhead()
        uses.append(
            NodeUse(
                resource,
                mapping.capacity_key or "",
                _multiplier(mapping.capacity_multiplier),
                mapping.device_multiplier,
                overhead.per_pod,
                overhead.per_container,
            )
        )
    return tuple(uses)


def _multiplier(times: Quantity | None) -> int:
    return quantity.parse(times) if times is not None else quantity.NANO


def declared_counters(view: SliceView) -> Counters:
    """Return the counters that a slice declares."""
    return _counters(((declared.name, declared.counters) for declared in view.spec.shared_counters), view)


def _counters(sets: Iterable[tuple[str, Mapping[str, Counter]]], view: SliceView) -> Counters:
    return {
        (counter_set, name): _nano(counter.value, view, f"counter {counter_set}/{name}")
        for counter_set, counters in sets
        for name, counter in counters.items()
    }


def _nano(text: Quantity, view: SliceView, field: str) -> int:
    return quantity.parse_field(text, f"ResourceSlice {view.name}", field)


def _blocking_taints(device: DeviceId, published: Device, rules: Iterable[DeviceTaintRule]) -> tuple[DeviceTaint, ...]:
    """Return the taints of a device and of the rules that select it, without those whose effect does not keep pods away."""
    taints = [*published.taints]
    for rule in rules:
        selector = rule.spec.device_selector
        if selector is not None and all(
            wanted is None or wanted == found
            for wanted, found in zip((selector.driver, selector.pool, selector.device), device, strict=True)
        ):
            taints.append(rule.spec.taint)
    return tuple(taint for taint in taints if taint.effect in BLOCKING_EFFECTS)
