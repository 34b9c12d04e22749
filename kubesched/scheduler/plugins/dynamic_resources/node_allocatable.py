"""Devices that use up a node's own resources: cpus that they are, memory that a driver needs beside them.

In: the devices that a pod's claims get on a node, or have already. Out: what the pod's status says about it
(`nodeAllocatableResourceClaimStatuses`), from which everybody counts it, and what the pod asks for with all of it.
In 1.36 a device maps resources; since 1.37 it maps them and may have an overhead for each pod and each container.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kubesched.kube.api import (
    HUGE_PAGES_PREFIX,
    Amounts,
    Container,
    NodeAllocatableMappedResources,
    NodeAllocatableOverheadResources,
    NodeAllocatableResourceClaimStatus,
    Pod,
    Quantity,
    is_pod_level_name,
    pod_requests,
)
from kubesched.kube.values import quantity
from kubesched.scheduler.plugins.dynamic_resources.allocation.devices import DeviceView
from kubesched.scheduler.plugins.dynamic_resources.allocation.shapes import AllocationError
from kubesched.scheduler.plugins.dynamic_resources.claims import claim_names

Used = tuple[DeviceView, Mapping[str, Quantity] | None]
"""A device, and what is taken of its capacities where others may use it too."""
ClaimStatus = NodeAllocatableResourceClaimStatus


def claim_status(pod: Pod, claim: str, used: Sequence[Used], *, has_overhead: bool) -> ClaimStatus | None:
    """Return what a pod's status says about one claim; None if its devices use nothing of the node."""
    mapped: dict[str, tuple[int, str]] = {}
    per_pod: dict[str, tuple[int, str]] = {}
    per_container: dict[str, tuple[int, str]] = {}
    for device, consumed in used:
        for use in device.node_uses:
            if use.key:
                if consumed is None:
                    field = "NodeAllocatableResources" if has_overhead else "NodeAllocatableResourceMappings"
                    raise AllocationError(
                        f"claim {pod.metadata.namespace}/{claim}, device {device.id.device}: ConsumedCapacity is nil, but "
                        f"Capacity key '{use.key}' is set in {field} for resource {use.resource}"
                    )
                if use.key in consumed:
                    amount = quantity.parse(consumed[use.key]) * use.multiplier // quantity.NANO
                    _add(mapped, use.resource, amount, consumed[use.key])
            elif use.fixed is not None:
                _add(mapped, use.resource, quantity.parse(use.fixed), use.fixed)
            for totals, overhead in ((per_pod, use.per_pod), (per_container, use.per_container)):
                if overhead is not None:
                    _add(totals, use.resource, quantity.parse(overhead), overhead)
    if not mapped and not per_pod and not per_container:
        return None
    behind = claim_names(pod)
    containers = tuple(
        each.name
        for each in (*pod.spec.init_containers, *pod.spec.containers)
        for entry in each.resources.claims
        if behind.get(entry.name) == claim
    )
    if not has_overhead:
        resources: dict[str, Quantity] = {name: _text(found) for name, found in mapped.items()}
        return ClaimStatus(resource_claim_name=claim, containers=containers, resources=resources)
    return ClaimStatus(
        resource_claim_name=claim,
        containers=containers,
        mapping=tuple(NodeAllocatableMappedResources(name=name, quantity=_text(mapped[name])) for name in sorted(mapped)),
        overhead=tuple(
            NodeAllocatableOverheadResources(
                name=name,
                per_pod=_text(per_pod[name]) if name in per_pod else None,
                per_container=_text(per_container[name]) if name in per_container else None,
            )
            for name in sorted({*per_pod, *per_container})
        ),
    )


def demand(pod: Pod, statuses: Sequence[ClaimStatus], *, pod_level: bool) -> Amounts:
    """Return what a pod asks for with what its claims use, in nano units."""
    status = replace(pod.status, node_allocatable_resource_claim_statuses=tuple(statuses))
    return pod_requests(replace(pod, status=status), pod_level=pod_level, claim_resources=True)


def uncovered(pod: Pod, statuses: Sequence[ClaimStatus], *, looks_at_limits: bool) -> str:
    """Return why what the pod asks for as a whole, or may use as a whole, is less than what its containers and claims take;
    empty if it is not. Only since 1.37 its limits are looked at."""
    whole = pod.spec.resources
    if whole is None:
        return ""
    taken = _together(pod, statuses)
    for name, asked in whole.requests.items():
        if is_pod_level_name(name) and taken.get(name, 0) > quantity.parse(asked):
            return (
                f"pod level request for {name} is insufficient to cover the aggregated container and "
                "node-allocatable DRA requests"
            )
    if not looks_at_limits:
        return ""
    limits = {name: quantity.parse(text) for name, text in whole.limits.items()}
    for name, taken_at_most in _together(_asking_for_limits(pod), statuses).items():
        if name.startswith(HUGE_PAGES_PREFIX) and taken_at_most > limits.get(name, taken_at_most):
            return (
                f"pod level limit for {name} is insufficient to cover the aggregated container and node-allocatable DRA limits"
            )
    for container in pod.spec.containers:
        beside = _used_by(container.name, statuses)
        for name, limit in container.resources.limits.items():
            used = quantity.parse(limit) + beside.get(name, 0)
            if not name.startswith(HUGE_PAGES_PREFIX) and used > limits.get(name, used):
                return (
                    f"pod level limit for {name} is insufficient to cover the limit and DRA overhead for "
                    f"container {container.name}"
                )
    return ""


def _together(pod: Pod, statuses: Sequence[ClaimStatus]) -> Amounts:
    """Return what containers and claims take, without what the pod's sandbox does."""
    return demand(replace(pod, spec=replace(pod.spec, overhead={})), statuses, pod_level=False)


def _asking_for_limits(pod: Pod) -> Pod:
    def limited(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(replace(each, resources=replace(each.resources, requests=each.resources.limits)) for each in containers)

    spec = replace(pod.spec, containers=limited(pod.spec.containers), init_containers=limited(pod.spec.init_containers))
    return replace(pod, spec=spec)


def _used_by(container: str, statuses: Sequence[ClaimStatus]) -> Amounts:
    """Return what the claims of one container take."""
    used: Counter[str] = Counter()
    for status in statuses:
        if container in status.containers:
            for mapped in status.mapping:
                used[mapped.name] += quantity.parse(mapped.quantity or 0)
            for beside in status.overhead:
                used[beside.name] += quantity.parse(beside.per_pod or 0) + quantity.parse(beside.per_container or 0)
    return used


def _add(totals: dict[str, tuple[int, str]], resource: str, amount: int, text: Quantity) -> None:
    before, style = totals.get(resource, (0, quantity.style_of(text)))
    totals[resource] = before + amount, style


def _text(found: tuple[int, str]) -> str:
    return quantity.format_quantity(*found)
