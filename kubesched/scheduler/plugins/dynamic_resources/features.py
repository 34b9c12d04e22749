"""Which parts of dynamic resource allocation are on, read from the feature gates once."""

from __future__ import annotations

from kubesched.scheduler.framework import FeatureGates


class Features:
    """The gates and the ways of a release that this plugin honours."""

    def __init__(self, gates: FeatureGates) -> None:
        """Read the gates; binding conditions need the gate of the device status as well."""
        on = gates.is_enabled
        self.admin_access = on("DRAAdminAccess")
        self.prioritized_list = on("DRAPrioritizedList")
        self.partitionable_devices = on("DRAPartitionableDevices")
        self.device_taints = on("DRADeviceTaints")
        self.taint_rules = on("DRADeviceTaints") and on("DRADeviceTaintRules")
        self.consumable_capacity = on("DRAConsumableCapacity")
        self.binding_conditions = on("DRADeviceBindingConditions") and on("DRAResourceClaimDeviceStatus")
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
