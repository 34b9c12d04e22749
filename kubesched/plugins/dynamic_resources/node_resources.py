"""Whether a node has enough left for what a pod asks for and its devices use up together.

In: a pod with its claims, and for each group of nodes the devices that were found there. Out: refusals, and what the pod's
status will say (`PodClaims.footprints`). The amounts are computed in node_allocatable. Only behind DRANodeAllocatableResources.
"""

from __future__ import annotations

import numpy as np

from kubesched.api import requests
from kubesched.api.requests import CPU, EPHEMERAL_STORAGE, HUGE_PAGES_PREFIX, MEMORY
from kubesched.cluster import Bools, PodView, Snapshot
from kubesched.cluster.device_claims import DeviceId
from kubesched.framework.ports import FeatureGates
from kubesched.framework.verdicts import Bits, Reason
from kubesched.plugins.dynamic_resources import node_allocatable
from kubesched.plugins.dynamic_resources.claims import is_reserved_for
from kubesched.plugins.dynamic_resources.node_allocatable import Used
from kubesched.plugins.dynamic_resources.pod_claims import Allocated, PodClaims
from kubesched.plugins.dynamic_resources.pools import Pools
from kubesched.plugins.dynamic_resources.shapes import AllocationError


class NodeResources:
    """Looks at what devices use up of nodes."""

    def __init__(self, pools: Pools, gates: FeatureGates) -> None:
        self._pools = pools
        self._pod_level = gates.is_enabled("PodLevelResources")
        self._has_overhead = gates.behaviour.has_device_overhead

    def refuse(
        self,
        pod: PodView,
        mine: PodClaims,
        nodes: Snapshot,
        bits: Bits,
        errors: dict[int, str],
        known: tuple[Reason, ...],
    ) -> tuple[Reason, ...]:
        """Refuse nodes that have too little left, and claims whose devices stand for resources of the node and are somebody
        else's: set their bits, and return all reasons there are, the known ones first."""
        reasons = [*known]

        def refuse(rows: Bools, reason: Reason) -> None:
            if rows.any():
                if reason not in reasons:
                    reasons.append(reason)
                bits[rows] |= np.uint64(1 << reasons.index(reason))

        groups = self._pools.rows(nodes)
        for group in np.unique(groups[bits == 0]).tolist():
            here = (groups == group) & (bits == 0)
            used = self._used_in(mine, group)
            taken = next((holder for holder in mine.allocated if _is_taken(holder, used, mine, pod)), None)
            if taken is not None:
                refuse(here, Reason(self._belongs_to_another(taken), resolvable=False))
                continue
            try:
                found = [
                    node_allocatable.claim_status(pod.pod, name, devices, has_overhead=self._has_overhead)
                    for name, devices in sorted(used.items())
                ]
            except AllocationError as error:
                errors |= dict.fromkeys(np.flatnonzero(here).tolist(), error.text)
                continue
            statuses = mine.footprints[group] = tuple(status for status in found if status is not None)
            if not statuses:
                continue
            lack = node_allocatable.uncovered(pod.pod, statuses) if self._pod_level else ""
            if lack:
                refuse(here, Reason(lack, resolvable=False))
                continue
            wanted = requests.amounts(node_allocatable.demand(pod.pod, statuses, pod_level=self._pod_level))
            for name, amount in wanted.items():
                if amount > 0 and (name in (CPU, MEMORY, EPHEMERAL_STORAGE) or name.startswith(HUGE_PAGES_PREFIX)):
                    number = nodes.resource(name)
                    short = here & (nodes.free(number) < amount)
                    too_small = nodes.allocatable(number) < amount
                    refuse(short & too_small, Reason(f"Insufficient {name}", resolvable=False))
                    refuse(short & ~too_small, Reason(f"Insufficient {name}"))
        return tuple(reasons)

    def _used_in(self, mine: PodClaims, group: int) -> dict[str, list[Used]]:
        """Return by claim the devices that a pod has or would get on nodes of a group."""
        used: dict[str, list[Used]] = {}
        found = mine.found.get(0)
        allocation = found.allocations.get(group) if found is not None else None
        if allocation is not None:
            for claim, picks in zip(mine.pending, allocation.picks, strict=False):
                used[claim.metadata.name] = [
                    (pick.device, {part.name: part.text for part in pick.shared} if pick.shared is not None else None)
                    for pick in picks
                ]
        if mine.allocated:
            known = {device.id: device for pool in self._pools.groups[group].pools for device in pool.devices}
            for holder in mine.allocated:
                given = holder.shared or holder.claim.status.allocation
                used[holder.claim.metadata.name] = [
                    (known[key], result.consumed_capacity or None)
                    for result in (given.devices.results if given is not None else ())
                    if (key := DeviceId(result.driver, result.pool, result.device)) in known
                ]
        return used

    def _belongs_to_another(self, holder: Allocated) -> str:
        since = "has a mapped device and cannot be shared across pods"
        why = since if self._has_overhead else "is already used by another pod"
        return f"node allocatable resource claim {holder.claim.name} {why}"


def _is_taken(holder: Allocated, used: dict[str, list[Used]], mine: PodClaims, pod: PodView) -> bool:
    """Return whether a claim stands for resources of the node and belongs to another pod."""
    if not node_allocatable.is_mapped(device for device, _ in used[holder.claim.metadata.name]):
        return False
    if holder.shared is not None:
        return True
    users = holder.claim.status.reserved_for
    return bool(users) and not is_reserved_for(holder.claim, mine.consumer(holder.claim, pod).uid)
