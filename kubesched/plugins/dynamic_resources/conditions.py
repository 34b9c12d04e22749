"""Binding conditions: devices that must be made ready between allocation and binding.

In: an allocated claim with what drivers report about its devices. Out: ready, still waiting, or broken and why.
"""

from __future__ import annotations

from kubesched.api.meta import Condition, parse_time
from kubesched.api.resource import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim


def has_conditions(claim: ResourceClaim) -> bool:
    """Return whether any device of the claim must be made ready first."""
    allocation = claim.status.allocation
    return allocation is not None and any(result.binding_conditions for result in allocation.devices.results)


def failure(claim: ResourceClaim) -> str | None:
    """Return why a device of the claim will never be ready, or None."""
    for result, reported in _awaited(claim):
        failed = _failed_condition(result, reported)
        if failed is not None:
            return f'device binding failed: claim={claim.metadata.name}, reason={failed.reason}, message="{failed.message}"'
    return None


def is_ready(claim: ResourceClaim) -> bool:
    """Return whether all devices of the claim are ready."""
    return all(
        reported is not None and all(_is_true(reported, wanted) for wanted in result.binding_conditions)
        for result, reported in _awaited(claim)
    )


def is_overdue(claim: ResourceClaim, now: float, timeout_seconds: float) -> bool:
    """Return whether the claim's devices had their time."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not has_conditions(claim):
        return False
    return parse_time(allocation.allocation_timestamp) + timeout_seconds < now


def is_unusable(claim: ResourceClaim, now: float, timeout_seconds: float) -> bool:
    """Return whether the claim's allocation has to be given up."""
    if not has_conditions(claim):
        return False
    return failure(claim) is not None or (not is_ready(claim) and is_overdue(claim, now, timeout_seconds))


def _awaited(claim: ResourceClaim) -> list[tuple[DeviceRequestAllocationResult, AllocatedDeviceStatus | None]]:
    allocation = claim.status.allocation
    if allocation is None:
        return []
    by_device = {(d.driver, d.pool, d.device): d for d in reversed(claim.status.devices)}
    return [
        (result, by_device.get((result.driver, result.pool, result.device)))
        for result in allocation.devices.results
        if result.binding_conditions
    ]


def _failed_condition(result: DeviceRequestAllocationResult, reported: AllocatedDeviceStatus | None) -> Condition | None:
    if reported is None:
        return None
    for name in result.binding_failure_conditions:
        for condition in reported.conditions:
            if condition.type == name and condition.status == "True":
                return condition
    return None


def _is_true(reported: AllocatedDeviceStatus, name: str) -> bool:
    return any(condition.type == name and condition.status == "True" for condition in reported.conditions)
