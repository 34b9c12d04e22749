"""Which parts of dynamic resource allocation are on, read from the feature gates once."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubesched.config.versions import NEWEST, Behaviour
from kubesched.framework.ports import FeatureGates


@dataclass(frozen=True, slots=True)
class Features:
    """The gates and the ways of a release that this plugin honours; the defaults are those of 1.37."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    taint_rules: bool = True
    consumable_capacity: bool = True
    binding_conditions: bool = True
    extended_resources: bool = True
    filter_timeout: bool = True
    list_attributes: bool = False
    fractional_capacity: bool = True
    compatibility_groups: bool = False
    derived_attributes: bool = False
    optional_node_operations: bool = False
    group_claims: bool = False
    node_allocatable: bool = False
    behaviour: Behaviour = field(default_factory=lambda: Behaviour.of(NEWEST))

    @staticmethod
    def of(gates: FeatureGates) -> Features:
        """Read the gates; binding conditions need the gate of the device status as well."""
        on = gates.is_enabled
        return Features(
            admin_access=on("DRAAdminAccess"),
            prioritized_list=on("DRAPrioritizedList"),
            partitionable_devices=on("DRAPartitionableDevices"),
            device_taints=on("DRADeviceTaints"),
            taint_rules=on("DRADeviceTaints") and on("DRADeviceTaintRules"),
            consumable_capacity=on("DRAConsumableCapacity"),
            binding_conditions=on("DRADeviceBindingConditions") and on("DRAResourceClaimDeviceStatus"),
            extended_resources=on("DRAExtendedResource"),
            filter_timeout=on("DRASchedulerFilterTimeout"),
            list_attributes=on("DRAListTypeAttributes"),
            fractional_capacity=on("DRAFractionalCapacityRange"),
            compatibility_groups=on("DRADeviceCompatibilityGroups"),
            derived_attributes=on("DRADerivedAttributes"),
            optional_node_operations=on("DRAOptionalNodeOperations"),
            group_claims=on("DRAWorkloadResourceClaims"),
            node_allocatable=on("DRANodeAllocatableResources"),
            behaviour=gates.behaviour,
        )
