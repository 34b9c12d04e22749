"""The claims of a pod: how they are found and checked, who they are reserved for, and what one attempt knows about them.

A pod names a ResourceClaim directly, or through a template; then its status tells the name of the generated claim. A claim that
cannot be used yet is no error: these functions return the text that the pod waits with.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kubesched.kube.api import (
    AllocationResult,
    Condition,
    DeviceClass,
    DeviceRequestAllocationResult,
    NodeAllocatableResourceClaimStatus,
    NodeSelectorMatcher,
    Pod,
    PodGroup,
    PodGroupResourceClaim,
    PodResourceClaim,
    ResourceClaim,
    ResourceClaimConsumerReference,
    parse_time,
)
from kubesched.kube.values import go_quote
from kubesched.scheduler.cluster import Bools, DeviceClaims, Objects, PodView, Snapshot, match_node_selector
from kubesched.scheduler.framework import Status, failed, unresolvable
from kubesched.scheduler.plugins.dynamic_resources.allocation.outcomes import Outcomes
from kubesched.scheduler.plugins.dynamic_resources.allocation.pools import OPTIONAL_NODE_OPERATIONS
from kubesched.scheduler.plugins.dynamic_resources.extended import Variant

Consumer = ResourceClaimConsumerReference


def claims_of(pod: Pod, book: DeviceClaims, *, of_groups: bool = False) -> list[ResourceClaim] | str:
    """Return the claims of a pod in the order of its spec, or why they cannot be used yet.

    `of_groups`: a generated claim may also belong to the pod's group instead of the pod.
    """
    found: list[ResourceClaim] = []
    namespace = pod.metadata.namespace
    for wanted in pod.spec.resource_claims:
        name = wanted.resource_claim_name
        is_generated = name is None
        if is_generated:
            where = f'pod "{namespace}/{pod.metadata.name}"'
            # Of several statuses with one name kube-scheduler takes the first.
            made = {status.name: status.resource_claim_name for status in reversed(pod.status.resource_claim_statuses)}
            if wanted.resource_claim_template_name is None:
                return f'{where}, spec.resourceClaim "{wanted.name}": none of the supported fields are set'
            if wanted.name not in made:
                return f"{where}: ResourceClaim not created yet"
            name = made[wanted.name]
        if name is None:
            continue  # the status says that this pod needs no claim for the entry
        claim = book.get(name, namespace)
        if claim is None:
            return f"could not find ResourceClaim {go_quote(f'{namespace}/{name}')}"
        if claim.metadata.deletion_timestamp is not None:
            return f'resourceclaim "{name}" is being deleted'
        group = pod.spec.scheduling_group.pod_group_name if of_groups and pod.spec.scheduling_group is not None else ""
        if is_generated and not _is_owned_by(claim, pod, group):
            who = f"neither Pod nor PodGroup {group} is the owner" if group else "Pod is not owner"
            return f"ResourceClaim {namespace}/{name} was not created for Pod {namespace}/{pod.metadata.name} ({who})"
        found.append(claim)
    return found


def _is_owned_by(claim: ResourceClaim, pod: Pod, group: str) -> bool:
    """Return whether the claim's controller is the pod, or the PodGroup of this name (empty: no group counts)."""
    owner = claim.metadata.controller()
    if owner is None:
        return False
    is_groups = owner.kind == "PodGroup" and owner.api_version.startswith("scheduling.k8s.io/") and owner.name == group
    return owner.uid == pod.metadata.uid or (bool(group) and is_groups)


def claim_names(pod: Pod) -> dict[str, str]:
    """Return the name of the claim behind each entry of a pod's resourceClaims, without entries that have no claim yet."""
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    found = ((entry.name, entry.resource_claim_name or made.get(entry.name)) for entry in pod.spec.resource_claims)
    return {entry: name for entry, name in found if name}


def shared_with_group(pod: Pod, group: PodGroup) -> frozenset[str]:
    """Return the names of the claims that pod and group both list. These are reserved for the group, not for the pod."""

    def identity(claim: PodResourceClaim | PodGroupResourceClaim) -> tuple[str, str | None, str | None]:
        return claim.name, claim.resource_claim_name, claim.resource_claim_template_name

    theirs, names = set(map(identity, group.spec.resource_claims)), claim_names(pod)
    return frozenset(
        names[claim.name] for claim in pod.spec.resource_claims if claim.name in names and identity(claim) in theirs
    )


def check_requests(claim: ResourceClaim, objects: Objects, with_lists: bool) -> Status | None:
    """Return why no node can serve a claim's requests, or None. `with_lists` is the gate DRAPrioritizedList."""
    # Errors of kube-scheduler, in its order: an unknown kind of request, lists with the gate off, then class by class.
    # A device class that does not exist refuses the pod as a whole, also if another alternative of the list could do.
    for request in claim.spec.devices.requests:
        wanted = [(f"{request.name}/{sub.name}", sub.device_class_name) for sub in request.first_available]
        if request.exactly is not None:
            wanted = [(request.name, request.exactly.device_class_name)]
        elif not wanted:
            return unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
        elif not with_lists:
            return unresolvable(
                f"resource claim {claim.key}, request {request.name}: has subrequests, but the "
                "DRAPrioritizedList feature is disabled"
            )
        for name, class_name in wanted:
            if not class_name:
                return failed(f"request {name}: unsupported request type")
            if objects.get(DeviceClass, class_name) is None:
                return unresolvable(f"request {name}: device class {class_name} does not exist")
    return None


# Reservations


def consumer_of(pod: PodView, group: PodGroup | None = None) -> Consumer:
    """Return the entry for `status.reservedFor`: the pod, or its group if one is given."""
    if group is not None:
        meta = group.metadata
        return Consumer(api_group="scheduling.k8s.io", resource="podgroups", name=meta.name, uid=meta.uid)
    return Consumer(resource="pods", name=pod.name, uid=pod.uid)


def is_reserved_for(claim: ResourceClaim, uid: str) -> bool:
    """Return whether the claim is reserved for the pod or group with this uid."""
    return any(consumer.uid == uid for consumer in claim.status.reserved_for)


def can_be_deallocated(claim: ResourceClaim, *uids: str) -> bool:
    """Return whether the claim is reserved for these uids at most, so that its devices can be given back."""
    return all(consumer.uid in uids for consumer in claim.status.reserved_for)


# Binding conditions: devices that their driver must make ready between allocation and binding


def has_binding_conditions(claim: ResourceClaim) -> bool:
    """Return whether a device of the claim must be made ready before the pod is bound."""
    return bool(_awaited_devices(claim))


def binding_failure(claim: ResourceClaim) -> str | None:
    """Return the text about a device of the claim that will never be ready, or None."""
    for result, reported in _awaited_devices(claim):
        for name in result.binding_failure_conditions:
            if name in reported:
                failure = reported[name]
                return (
                    f'device binding failed: claim={claim.metadata.name}, reason={failure.reason}, message="{failure.message}"'
                )
    return None


def is_ready(claim: ResourceClaim) -> bool:
    """Return whether all binding conditions of the claim's devices are true."""
    return all(wanted in reported for result, reported in _awaited_devices(claim) for wanted in result.binding_conditions)


def is_overdue(claim: ResourceClaim, now: float, timeout_seconds: float) -> bool:
    """Return whether the claim was allocated longer ago than the timeout."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    return parse_time(allocation.allocation_timestamp) + timeout_seconds < now


def is_unusable(claim: ResourceClaim, now: float, timeout_seconds: float) -> bool:
    """Return whether the claim's devices failed, or are late, so that the allocation must be given up."""
    return binding_failure(claim) is not None or (not is_ready(claim) and is_overdue(claim, now, timeout_seconds))


def _awaited_devices(claim: ResourceClaim) -> list[tuple[DeviceRequestAllocationResult, dict[str, Condition]]]:
    """Return the allocated devices with binding conditions, each with the conditions that its driver reports as true."""
    allocation = claim.status.allocation
    if allocation is None:
        return []
    # Both reversed: of several reports on a device, and of several conditions with one type, the first one in the list
    # counts.
    reported = {
        (d.driver, d.pool, d.device): {each.type: each for each in reversed(d.conditions) if each.status == "True"}
        for d in reversed(claim.status.devices)
    }
    return [
        (result, reported.get((result.driver, result.pool, result.device), {}))
        for result in allocation.devices.results
        if result.binding_conditions
    ]


# One attempt


@dataclass(slots=True)
class Allocated:
    """A claim that has devices, and the nodes where these can be used (None: all nodes).

    `is_shared`: the allocation is promised to another member of the pod's group and not written to the API yet.
    """

    claim: ResourceClaim
    allocation: AllocationResult
    where: NodeSelectorMatcher | None
    is_shared: bool = False

    def away(self, nodes: Snapshot) -> Bools | None:
        """Return which nodes cannot reach the claim's devices; None for none."""
        away = ~match_node_selector(self.where, nodes) if self.where is not None else None
        if any(result.skip_node_operations for result in self.allocation.devices.results):
            lacking = np.array([OPTIONAL_NODE_OPERATIONS not in declared for declared in nodes.feature_sets])
            return lacking[nodes.feature_set] if away is None else away | lacking[nodes.feature_set]
        return away


@dataclass(slots=True)
class PodClaims:
    """The claims of a pod in one attempt. PreFilter collects them; Filter, Score, Reserve and PreBind read and extend them.

    A what-if shares this object with its attempt, because nothing in it depends on the pods of a node.
    """

    allocated: list[Allocated] = field(default_factory=list)
    pending: list[ResourceClaim] = field(default_factory=list)
    """Claims that need devices, in the pod's order, without the special claim."""
    special: ResourceClaim | None = None
    """The claim for extended resources that devices serve (`extended`)."""
    resources: tuple[str, ...] = ()
    """The extended resources of the pod, if there is a special claim. Bit i of a `served` number stands for `resources[i]`."""
    variants: dict[int, Variant] = field(default_factory=dict)
    """By `served`, the special claim with requests for these resources."""
    found: dict[int, Outcomes] = field(default_factory=dict)
    """By `served`, the devices found for each group of nodes."""
    nodes: Snapshot | None = None
    """The cluster of the attempt. Reserve reads from it which resources devices serve on the chosen node."""
    given: dict[str, list[AllocationResult]] = field(default_factory=dict)
    """By node, what Reserve promised there. Members of a group are reserved twice (rehearsal, then for real) and must get
    the same devices both times: a new search could return devices that another member holds by then."""
    booked: list[tuple[ResourceClaim, AllocationResult]] = field(default_factory=list)
    created: ResourceClaim | None = None
    """The special claim, once it was created in the API."""
    footprints: dict[tuple[int, int], tuple[NodeAllocatableResourceClaimStatus, ...]] = field(default_factory=dict)
    """By `served` and group of nodes, what the claims use of a node's own resources."""
    group: PodGroup | None = None
    of_group: frozenset[str] = frozenset()
    """The names of the claims that are reserved for the pod's group instead of the pod."""

    def consumer(self, claim: ResourceClaim, pod: PodView) -> Consumer:
        """Return whom to reserve a claim for."""
        return consumer_of(pod, self.group if claim.metadata.name in self.of_group else None)

    @property
    def is_empty(self) -> bool:
        """Return whether the pod has no claims at all."""
        return not self.allocated and not self.pending and self.special is None

    @property
    def is_stale(self) -> bool:
        """Return whether the special claim is left from an earlier attempt; a new one has no requests."""
        return self.special is not None and bool(self.special.spec.devices.requests)

    def to_allocate(self, served: int) -> list[ResourceClaim]:
        """Return the claims that need devices on nodes where devices serve these resources; the special claim comes last."""
        variant = self.variants.get(served)
        return [*self.pending, variant.claim] if variant is not None else self.pending
