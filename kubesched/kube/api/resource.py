"""resource.k8s.io: claims for devices, the classes they name, and the slices in which drivers publish their devices."""

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
    """A CEL expression that is evaluated for each device."""

    expression: str = ""


class DeviceSelector(Wire, kw_only=True):
    """A way to select devices; CEL is the only one."""

    cel: CELDeviceSelector | None = None


class DeviceToleration(Toleration, kw_only=True):
    """A toleration of device taints."""


class DeviceTaint(Taint, kw_only=True):
    """A taint on a device."""


class OpaqueDeviceConfiguration(Wire, kw_only=True):
    """Parameters for the driver; the scheduler copies them into the allocation."""

    driver: str = ""
    parameters: Any = None


class CapacityRequirements(Wire, kw_only=True):
    """How much of a device's capacities a request takes."""

    requests: dict[str, Quantity] = field(default_factory=dict)


class DeviceDerivedAttribute(Wire, kw_only=True):
    """An attribute that a claim computes for each device with a CEL expression."""

    name: str = ""
    expression: str = ""


class DevicesWanted(Wire, kw_only=True):
    """The fields that requests and sub-requests share: a number of devices of one class."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""  # ExactCount, or All devices that match
    count: int = 0  # how many devices, with ExactCount
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(DevicesWanted, kw_only=True):
    """One of several alternatives for a request."""

    name: str = ""


class ExactDeviceRequest(DevicesWanted, kw_only=True):
    """A request without alternatives."""

    admin_access: bool | None = None


class DeviceRequest(Wire, kw_only=True):
    """A named request: exactly one kind of devices, or the first alternative that is available."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()  # alternatives, the best one first


class DeviceConstraint(Wire, kw_only=True):
    """What the devices of several requests must have in common, or must not."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None  # equal for all devices of these requests
    distinct_attribute: str | None = None  # different for each of them


class DeviceClaimConfiguration(Wire, kw_only=True):
    """Parameters from the claim, for some of its requests."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Wire, kw_only=True):
    """The requests of a claim with their constraints."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Wire, kw_only=True):
    """The spec of a claim."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(Wire, kw_only=True):
    """One device that is allocated for a request."""

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

    source: str = ""  # FromClass or FromClaim


class DeviceAllocationResult(Wire, kw_only=True):
    """All devices that are allocated for a claim."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Wire, kw_only=True):
    """The allocation of a claim, and the nodes on which it can be used. An absent selector means all nodes."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Wire, kw_only=True):
    """A pod or pod group that has reserved the claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Wire, kw_only=True):
    """What a driver reports about an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()
    data: Any = None
    network_data: Any = None


class ResourceClaimStatus(Wire, kw_only=True):
    """The status of a claim; without an allocation it has none yet."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()  # up to 256
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(TopLevel, kw_only=True):
    """A claim for devices."""

    api_version: str = always("resource.k8s.io/v1")
    kind: str = always("ResourceClaim")
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Wire, kw_only=True):
    """The claims that are made from a template."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(TopLevel, kw_only=True):
    """A template: a claim is made for each pod that names it."""

    api_version: str = always("resource.k8s.io/v1")
    kind: str = always("ResourceClaimTemplate")
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassConfiguration(Wire, kw_only=True):
    """Parameters for all devices that are claimed through a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Wire, kw_only=True):
    """The devices of a class, and the extended resource that it stands for."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(TopLevel, kw_only=True):
    """A kind of devices that an administrator offers."""

    api_version: str = always("resource.k8s.io/v1")
    kind: str = always("DeviceClass")
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceAttribute(Wire, kw_only=True):
    """The value of an attribute; exactly one field is set."""

    int_value: int | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")
    int_values: tuple[int, ...] | None = field(default=None, name="ints")
    bool_values: tuple[bool, ...] | None = field(default=None, name="bools")
    string_values: tuple[str, ...] | None = field(default=None, name="strings")
    version_values: tuple[str, ...] | None = field(default=None, name="versions")


class CapacityRequestPolicyRange(Wire, kw_only=True):
    """The amounts that may be taken: from `min` to `max`, in steps."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Wire, kw_only=True):
    """How much of a capacity one request may take."""

    default: Quantity | None = None  # taken by a request that names no amount
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Wire, kw_only=True):
    """A capacity of a device; the policy says how much of it one request may take."""

    value: Quantity = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(Wire, kw_only=True):
    """An amount that the devices of a pool share."""

    value: Quantity = "0"


class CounterSet(Wire, kw_only=True):
    """Counters under one name."""

    name: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceCounterConsumption(Wire, kw_only=True):
    """What a device takes from a counter set, as a partition of a larger device does."""

    counter_set: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)
    compatibility_groups: tuple[str, ...] = ()


class NodeAllocatableResourceMapping(Wire, kw_only=True):
    """How much of a node's own resource a device uses up: 1.36."""

    capacity_key: str | None = None
    allocation_multiplier: Quantity | None = None


class NodeAllocatableMapping(Wire, kw_only=True):
    """How much of a node's own resource a device stands for: since 1.37."""

    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


class NodeAllocatableOverhead(Wire, kw_only=True):
    """How much of a node's own resource is needed beside a device."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResource(Wire, kw_only=True):
    """What a device uses up of a node's own resource: since 1.37."""

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
    binds_to_node: bool | None = None  # once allocated, the claim can be used on this node only
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None  # several claims may have the device at once
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] = field(default_factory=dict)
    node_allocatable_resources: dict[str, NodeAllocatableResource] = field(default_factory=dict)


class ResourcePool(Wire, kw_only=True):
    """The pool that a slice belongs to."""

    name: str = ""
    generation: int = 0  # slices of older generations are ignored
    resource_slice_count: int = 0  # with fewer slices the pool is incomplete


class ResourceSliceSpec(Wire, kw_only=True):
    """Devices or counters of a pool, and the nodes that can use them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()  # a slice has either devices or counters
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(TopLevel, kw_only=True):
    """A part of a pool, as its driver publishes it."""

    api_version: str = always("resource.k8s.io/v1")
    kind: str = always("ResourceSlice")
    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(Wire, kw_only=True):
    """The devices to taint; an absent field matches all."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Wire, kw_only=True):
    """A taint, and the devices to put it on. Without a selector it is on none."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRuleStatus(Wire, kw_only=True):
    """How far the evictions of the taint have come."""

    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(TopLevel, kw_only=True):
    """A taint that an administrator puts on devices."""

    api_version: str = always("resource.k8s.io/v1")
    kind: str = always("DeviceTaintRule")
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()
