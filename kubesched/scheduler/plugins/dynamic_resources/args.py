"""What can be configured of DynamicResources: its timeouts, and the feature gates that switch its parts."""

from __future__ import annotations

from typing import Annotated

import msgspec

from kubesched.scheduler.config import Args, Duration, FieldError, Gates, Go, Path, forbidden, invalid
from kubesched.scheduler.framework import FeatureGates


class DynamicResourcesArgs(Args, frozen=True, rename="camel"):
    """Limits for one node in Filter and for devices in PreBind. A timeout whose gate is off must not be set; a filter timeout
    of 0 means no limit."""

    filter_timeout: Annotated[Duration | None, Go(keep_null=True)] = None
    binding_timeout: Duration | None = None

    def defaulted(self, gates: Gates) -> DynamicResourcesArgs:
        changes = {}
        if self.filter_timeout is None and gates.is_enabled("DRASchedulerFilterTimeout"):
            changes["filter_timeout"] = Duration.of(seconds=10)
        if self.binding_timeout is None and has_binding_conditions(gates):
            changes["binding_timeout"] = Duration.of(minutes=10)
        return msgspec.structs.replace(self, **changes)

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        errors = []
        where, timeout = path.child("filterTimeout"), self.filter_timeout
        if timeout is not None and not gates.is_enabled("DRASchedulerFilterTimeout"):
            errors.append(forbidden(where, "DRASchedulingFilterTimeout feature gate is disabled"))
        elif timeout is not None and timeout < 0:
            errors.append(invalid(where, timeout, "must be zero or positive"))
        where, timeout = path.child("bindingTimeout"), self.binding_timeout
        if timeout is not None and not has_binding_conditions(gates):
            detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            errors.append(forbidden(where, detail))
        elif timeout is not None and timeout < Duration.of(seconds=1):
            errors.append(invalid(where, timeout, "must be at least 1 second"))
        return errors


def has_binding_conditions(gates: FeatureGates) -> bool:
    """Return whether binding conditions are on. They are read from the device status, so they need both gates."""
    return gates.is_enabled("DRADeviceBindingConditions") and gates.is_enabled("DRAResourceClaimDeviceStatus")


class Features:
    """The feature gates of dynamic resource allocation, read once, and the behaviour of the emulated release."""

    def __init__(self, gates: FeatureGates) -> None:
        on = gates.is_enabled
        self.admin_access = on("DRAAdminAccess")
        self.prioritized_list = on("DRAPrioritizedList")
        self.partitionable_devices = on("DRAPartitionableDevices")
        self.device_taints = on("DRADeviceTaints")
        self.taint_rules = on("DRADeviceTaints") and on("DRADeviceTaintRules")
        self.consumable_capacity = on("DRAConsumableCapacity")
        self.binding_conditions = has_binding_conditions(gates)
        self.extended_resources = on("DRAExtendedResource")
        self.filter_timeout = on("DRASchedulerFilterTimeout")
        self.list_attributes = on("DRAListTypeAttributes")
        self.fractional_capacity = on("DRAFractionalCapacityRange")
        self.compatibility_groups = on("DRADeviceCompatibilityGroups")
        self.derived_attributes = on("DRADerivedAttributes")
        self.optional_node_operations = on("DRAOptionalNodeOperations")
        self.group_claims = on("DRAWorkloadResourceClaims")
        self.node_allocatable = on("DRANodeAllocatableResources")
        self.behaviour = gates.behaviour
