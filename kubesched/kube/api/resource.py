"""resource.k8s.io: claims for devices, the classes they name, and the slices in which drivers publish devices."""

from __future__ import annotations

from typing import Any

from msgspec import field

from kubesched.kube.api.meta import Condition, ObjectMeta, Quantity, TopLevel, Wire, always
from kubesched.kube.api.node import NodeSelector, Taint
from kubesched.kube.api.pod import Toleration

DELETE_PROTECTION_FINALIZER = "resource.kubernetes.io/delete-protection"
EXTENDED_RESOURCE_CLAIM_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
DEVICE_CLASS_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"


class CELDeviceSelector(Wire, kw_only=True):
    """A CEL expression over one device."""

    expression: str = ""


class DeviceSelector(Wire, kw_only=True):
    """A way to pick devices; CEL is the only one."""

    cel: CELDeviceSelector | None = None


class DeviceToleration(Toleration, kw_only=True):
    """Device taints that a request puts up with."""


class DeviceTaint(Taint, kw_only=True):
    """A mark that keeps claims away from a device."""


class OpaqueDeviceConfiguration(Wire, kw_only=True):
    """Parameters that only the driver understands."""

    driver: str = ""
    parameters: Any = None


class CapacityRequirements(Wire, kw_only=True):
    """How much of a device's capacities a request takes."""

    requests: dict[str, Quantity] = field(default_factory=dict)


class DeviceDerivedAttribute(Wire, kw_only=True):
    """An attribute of the claim's own making: what a CEL expression says of each device."""

    name: str = ""
    expression: str = ""


class DevicesWanted(Wire, kw_only=True):
    """So many devices of one class, as requests and sub-requests say it."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(DevicesWanted, kw_only=True):
    """One of several acceptable answers to a request."""

    name: str = ""


class ExactDeviceRequest(DevicesWanted, kw_only=True):
    """Devices of one class."""

    admin_access: bool | None = None


class DeviceRequest(Wire, kw_only=True):
    """A named request: exactly this, or the first available of these."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Wire, kw_only=True):
    """What the devices of several requests must have in common, or must not."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Wire, kw_only=True):
    """Parameters from the claim for some of its requests."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Wire, kw_only=True):
    """All that a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Wire, kw_only=True):
    """A claim's wishes."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(Wire, kw_only=True):
    """One device given to one request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] = field(default_factory=dict)
    skip_node_operations: tuple[str, ...] = ()


class DeviceAllocationConfiguration(DeviceClaimConfiguration, kw_only=True):
    """Parameters for allocated devices, from the class or from the claim."""

    source: str = ""


class DeviceAllocationResult(Wire, kw_only=True):
    """All devices given to a claim."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Wire, kw_only=True):
    """What a claim got, and where it can be used (absent selector: everywhere)."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Wire, kw_only=True):
    """Who may use the claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Wire, kw_only=True):
    """What a driver reports about one allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()
    data: Any = None
    network_data: Any = None


class ResourceClaimStatus(Wire, kw_only=True):
    """What the claim has; no allocation means none yet."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(TopLevel, kw_only=True):
    """A wish for devices."""

    api_version: str = always("resource.k8s.io/v1")
    kind: str = always("ResourceClaim")
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Wire, kw_only=True):
    """The claim to make."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(TopLevel, kw_only=True):
    """A claim to be made for each pod that names this template."""

    api_version: str = always("resource.k8s.io/v1")
    kind: str = always("ResourceClaimTemplate")
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassConfiguration(Wire, kw_only=True):
    """Parameters for all devices claimed through the class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Wire, kw_only=True):
    """Which devices are in the class, and the extended resource that it answers to."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(TopLevel, kw_only=True):
    """A kind of device, as an administrator offers it."""

    api_version: str = always("resource.k8s.io/v1")
    kind: str = always("DeviceClass")
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceAttribute(Wire, kw_only=True):
    """One typed value; exactly one field is set."""

    int_value: int | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")
    int_values: tuple[int, ...] | None = field(default=None, name="ints")
    bool_values: tuple[bool, ...] | None = field(default=None, name="bools")
    string_values: tuple[str, ...] | None = field(default=None, name="strings")
    version_values: tuple[str, ...] | None = field(default=None, name="versions")


class CapacityRequestPolicyRange(Wire, kw_only=True):
    """The amounts that may be taken, from `min` to `max` in steps."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Wire, kw_only=True):
    """How much of a capacity may be taken at once."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Wire, kw_only=True):
    """An amount that a device has."""

    value: Quantity = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(Wire, kw_only=True):
    """An amount shared by the devices of a pool."""

    value: Quantity = "0"


class CounterSet(Wire, kw_only=True):
    """Counters under one name."""

    name: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceCounterConsumption(Wire, kw_only=True):
    """What a device takes from a counter set."""

    counter_set: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)
    compatibility_groups: tuple[str, ...] = ()


class NodeAllocatableResourceMapping(Wire, kw_only=True):
    """How much of a node's own resource a device uses up."""

    capacity_key: str | None = None
    allocation_multiplier: Quantity | None = None


class NodeAllocatableMapping(Wire, kw_only=True):
    """How much of a node's own resource a device stands for."""

    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


class NodeAllocatableOverhead(Wire, kw_only=True):
    """How much of it is needed beside the device."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResource(Wire, kw_only=True):
    """What a device uses up of a node's own resource, since 1.37."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(Wire, kw_only=True):
    """One device."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] = field(default_factory=dict)
    node_allocatable_resources: dict[str, NodeAllocatableResource] = field(default_factory=dict)


class ResourcePool(Wire, kw_only=True):
    """The pool that a slice is part of."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Wire, kw_only=True):
    """Devices or counters of a pool, and the nodes that can reach them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(TopLevel, kw_only=True):
    """A part of a pool, as the driver publishes it."""

    api_version: str = always("resource.k8s.io/v1")
    kind: str = always("ResourceSlice")
    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(Wire, kw_only=True):
    """The devices to taint; absent fields match all."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Wire, kw_only=True):
    """A taint, and the devices to put it on. Without a selector the rule matches nothing."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRuleStatus(Wire, kw_only=True):
    """How far the taint's eviction got."""

    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(TopLevel, kw_only=True):
    """A taint put on devices from outside the driver."""

    api_version: str = always("resource.k8s.io/v1")
    kind: str = always("DeviceTaintRule")
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()
