"""Binding conditions: devices that must be made ready between allocation and binding.

In: an allocated claim with what drivers report about its devices. Out: ready, still waiting, or broken and why.
"""

from __future__ import annotations

from kubesched.kube.api import Condition, DeviceRequestAllocationResult, ResourceClaim, parse_time


def has_conditions(claim: ResourceClaim) -> bool:
    """Return whether any device of the claim must be made ready first."""
    return bool(_awaited(claim))


def failure(claim: ResourceClaim) -> str | None:
    """Return why a device of the claim will never be ready, or None."""
    for result, reported in _awaited(claim):
        for name in result.binding_failure_conditions:
            if name in reported:
                said = reported[name]
                return f'device binding failed: claim={claim.metadata.name}, reason={said.reason}, message="{said.message}"'
    return None


def is_ready(claim: ResourceClaim) -> bool:
    """Return whether all devices of the claim are ready."""
    return all(wanted in reported for result, reported in _awaited(claim) for wanted in result.binding_conditions)


def is_overdue(claim: ResourceClaim, now: float, timeout_seconds: float) -> bool:
    """Return whether the claim's devices, which are not ready yet, had their time."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    return parse_time(allocation.allocation_timestamp) + timeout_seconds < now


def is_unusable(claim: ResourceClaim, now: float, timeout_seconds: float) -> bool:
    """Return whether the claim's allocation has to be given up."""
    return failure(claim) is not None or (not is_ready(claim) and is_overdue(claim, now, timeout_seconds))


def _awaited(claim: ResourceClaim) -> list[tuple[DeviceRequestAllocationResult, dict[str, Condition]]]:
    """Return the devices that must be made ready, each with the conditions that its driver reports as true."""
    allocation = claim.status.allocation
    if allocation is None:
        return []
    reported = {
        (d.driver, d.pool, d.device): {each.type: each for each in reversed(d.conditions) if each.status == "True"}
        for d in reversed(claim.status.devices)
    }
    return [
        (result, reported.get((result.driver, result.pool, result.device), {}))
        for result in allocation.devices.results
        if result.binding_conditions
    ]
