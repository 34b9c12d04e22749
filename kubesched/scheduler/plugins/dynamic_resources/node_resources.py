"""Whether a node has enough left for what a pod asks for and its devices use up together.

In: a pod with its claims, and for each group of nodes the devices that were found there. Out: refusals, and what the pod's
status will say (`PodClaims.footprints`). The amounts are computed in node_allocatable. Only behind DRANodeAllocatableResources.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubesched.kube.api import CPU, EPHEMERAL_STORAGE, HUGE_PAGES_PREFIX, MEMORY, requests
from kubesched.scheduler.cluster import Bools, DeviceId, Ints, PodView, Snapshot
from kubesched.scheduler.framework import Bits, FeatureGates, Reason
from kubesched.scheduler.plugins.dynamic_resources import node_allocatable
from kubesched.scheduler.plugins.dynamic_resources.allocation.pools import Pools
from kubesched.scheduler.plugins.dynamic_resources.allocation.shapes import AllocationError
from kubesched.scheduler.plugins.dynamic_resources.claims import is_reserved_for
from kubesched.scheduler.plugins.dynamic_resources.node_allocatable import ClaimStatus, Used
from kubesched.scheduler.plugins.dynamic_resources.pod_claims import Allocated, PodClaims


class Refusals:
    """Reasons against rows, as a filter finds them: those that speak of a row first keep it."""

    def __init__(self, n: int, reasons: Sequence[Reason]) -> None:
        self.bits: Bits = np.zeros(n, dtype=np.uint64)
        self.reasons = [*reasons]

    @property
    def open(self) -> Bools:
        """Return the rows that nobody has refused."""
        undecided: Bools = self.bits == 0
        return undecided

    def add(self, rows: Bools, reason: Reason) -> None:
        """Refuse rows for a reason, beside others of the same moment."""
        if rows.any():
            if reason not in self.reasons:
                self.reasons.append(reason)
            self.bits[rows] |= np.uint64(1 << self.reasons.index(reason))


class NodeResources:
    """Looks at what devices use up of nodes."""

    def __init__(self, pools: Pools, gates: FeatureGates) -> None:
        self._pools = pools
        self._pod_level = gates.is_enabled("PodLevelResources")
        self._is_newer = gates.behaviour.has_device_overhead

    def refuse_shared(self, pod: PodView, mine: PodClaims, nodes: Snapshot, refusals: Refusals) -> None:
        """Refuse nodes for claims whose devices stand for resources of the node and are somebody else's, where they are not
        away from the node anyway."""
        for holder in mine.allocated:
            elsewhere = holder.away(nodes)
            here = refusals.open if elsewhere is None else refusals.open & ~elsewhere
            text = f"node allocatable resource claim {holder.claim.name}"
            if self._is_newer:
                if self._is_mapped(holder) and _is_anothers(holder, mine, pod):
                    refusals.add(here, _never(f"{text} has a mapped device and cannot be shared across pods"))
            elif not holder.is_shared:
                n_users = np.zeros(nodes.n, dtype=np.int64)
                for row in np.flatnonzero(here).tolist():  # those that its devices are on
                    n_users[row] = len(_users(holder, nodes, row, pod))
                refusals.add(n_users > 1, _never(f"{text} shared by multiple pods"))
                refusals.add(n_users == 1, _never(f"{text} is already used by another pod"))

    def refuse_short(
        self, pod: PodView, mine: PodClaims, nodes: Snapshot, served: Ints | None, refusals: Refusals, errors: dict[int, str]
    ) -> None:
        """Refuse nodes that have too little left; remember for the others what the claims use up there."""
        groups = self._pools.rows(nodes)
        kinds = np.zeros_like(groups) if served is None else served
        undecided = refusals.open
        undecided[[*errors]] = False
        for kind, group in np.unique(np.stack((kinds, groups))[:, undecided], axis=1).T.tolist():
            here = undecided & (groups == group) & (kinds == kind)
            try:
                # By name, so that the same claim is complained about every time; in the reference it is any of those to blame.
                found = [
                    node_allocatable.claim_status(pod.pod, name, devices, has_overhead=self._is_newer)
                    for name, devices in sorted(self._used_in(mine, kind, group).items())
                ]
            except AllocationError as error:
                errors |= dict.fromkeys(np.flatnonzero(here).tolist(), error.text)
                continue
            statuses = mine.footprints[kind, group] = tuple(status for status in found if status is not None)
            if statuses:
                self._refuse_short(pod, statuses, nodes, here, refusals)

    def _refuse_short(
        self, pod: PodView, statuses: tuple[ClaimStatus, ...], nodes: Snapshot, here: Bools, refusals: Refusals
    ) -> None:
        unused = next((each.resource_claim_name for each in statuses if not each.containers), None)
        if unused is not None and not self._is_newer:
            why = "node-allocatable resource claim not referenced by any container within the pod"
            refusals.add(here, _never(f"claim {unused}: {why}"))
            return
        lack = node_allocatable.uncovered(pod.pod, statuses, looks_at_limits=self._is_newer) if self._pod_level else ""
        if lack:
            refusals.add(here, _never(lack))
            return
        wanted = requests.amounts(node_allocatable.demand(pod.pod, statuses, pod_level=self._pod_level))
        for name, amount in wanted.items():
            if amount > 0 and (name in (CPU, MEMORY, EPHEMERAL_STORAGE) or name.startswith(HUGE_PAGES_PREFIX)):
                number = nodes.resource(name)
                short = here & (nodes.free(number) < amount)
                too_small = nodes.allocatable(number) < amount
                refusals.add(short & too_small, _never(f"Insufficient {name}"))
                refusals.add(short & ~too_small, Reason(f"Insufficient {name}"))

    def _used_in(self, mine: PodClaims, kind: int, group: int) -> dict[str, list[Used]]:
        """Return by claim the devices that a pod has or would get on nodes of a group. Before 1.37 those that claims had
        before the attempt are not looked at."""
        used: dict[str, list[Used]] = {}
        found = mine.found.get(kind)
        allocation = found.allocations.get(group) if found is not None else None
        if allocation is not None:
            for claim, picks in zip(mine.to_allocate(kind), allocation, strict=True):
                used[claim.metadata.name] = [
                    (pick.device, {part.name: part.text for part in pick.shared} if pick.shared is not None else None)
                    for pick in picks
                ]
        known = {device.id: device for pool in self._pools.groups[group].pools for device in pool.devices}
        for holder in mine.allocated:
            if holder.is_shared or self._is_newer:
                used[holder.claim.metadata.name] = [
                    (known[key], result.consumed_capacity or None)
                    for result in holder.allocation.devices.results
                    if (key := DeviceId(result.driver, result.pool, result.device)) in known
                ]
        return used

    def _is_mapped(self, holder: Allocated) -> bool:
        """Return whether devices stand for resources of their node: then one pod alone can have them."""
        results = holder.allocation.devices.results
        found = (self._pools.published(DeviceId(each.driver, each.pool, each.device)) for each in results)
        return any(use.key or use.fixed is not None for device in found if device is not None for use in device.node_uses)


def _never(text: str) -> Reason:
    return Reason(text, resolvable=False)


def _is_anothers(holder: Allocated, mine: PodClaims, pod: PodView) -> bool:
    """Return whether a claim belongs to another pod."""
    users = holder.claim.status.reserved_for
    return holder.is_shared or (bool(users) and not is_reserved_for(holder.claim, mine.consumer(holder.claim, pod).uid))


def _users(holder: Allocated, nodes: Snapshot, row: int, pod: PodView) -> set[str]:
    """Return the pods of a node whose status tells of a claim; none if it is the pod alone."""
    users = {
        other.uid
        for other in nodes.pods_on(row)
        if other.namespace == pod.namespace
        for status in other.pod.status.node_allocatable_resource_claim_statuses
        if status.resource_claim_name == holder.claim.name
    }
    return set() if users == {pod.uid} else users
