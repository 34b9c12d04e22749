"""Devices that use a node's own resources (gate DRANodeAllocatableResources): refuse nodes that have too little left.

A device may stand for resources of its node, for example a "device" that is 4 CPUs. It may also cost memory beside itself, for
each pod and each container (since 1.37). What the devices of a claim use is written to the pod's status
(`nodeAllocatableResourceClaimStatuses`), and from there the store counts it. Here it is worked out before the pod is bound.

    pod: 1 cpu in its container, and a claim that gets a device of 4 cpus      ->  the node needs 5 free cpus
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from kubesched.kube.api import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    Amounts,
    Container,
    NodeAllocatableMappedResources,
    NodeAllocatableOverheadResources,
    NodeAllocatableResourceClaimStatus,
    Pod,
    Quantity,
    is_pod_level_name,
    pod_requests,
    requests,
)
from kubesched.kube.values import quantity
from kubesched.scheduler.cluster import Bools, DeviceId, Ints, PodView, Snapshot
from kubesched.scheduler.framework import Bits, FeatureGates, Reason
from kubesched.scheduler.plugins.dynamic_resources.allocation.devices import DeviceView
from kubesched.scheduler.plugins.dynamic_resources.allocation.pools import Pools
from kubesched.scheduler.plugins.dynamic_resources.allocation.shapes import AllocationError
from kubesched.scheduler.plugins.dynamic_resources.claims import Allocated, PodClaims, claim_names, is_reserved_for

Used = tuple[DeviceView, Mapping[str, Quantity] | None]
"""A device, and what the pod takes of its capacities; None for a device that is not shared."""
ClaimStatus = NodeAllocatableResourceClaimStatus


class Refusals:
    """The reasons against each row in DynamicResources' Filter. A row keeps the reasons of the first check that refuses it."""

    def __init__(self, n: int, reasons: Sequence[Reason]) -> None:
        self.bits: Bits = np.zeros(n, dtype=np.uint64)
        self.reasons = [*reasons]

    @property
    def open(self) -> Bools:
        """Return the rows that are not refused."""
        undecided: Bools = self.bits == 0
        return undecided

    def add(self, rows: Bools, reason: Reason) -> None:
        """Refuse rows, in addition to their other reasons."""
        if rows.any():
            if reason not in self.reasons:
                self.reasons.append(reason)
            self.bits[rows] |= np.uint64(1 << self.reasons.index(reason))


class NodeResources:
    """The checks of the filter."""

    def __init__(self, pools: Pools, gates: FeatureGates) -> None:
        self._pools = pools
        self._pod_level = gates.is_enabled("PodLevelResources")
        self._is_newer = gates.behaviour.has_device_overhead

    def refuse_shared(self, pod: PodView, mine: PodClaims, nodes: Snapshot, refusals: Refusals) -> None:
        """Refuse nodes for allocated claims that another pod uses: resources of a node cannot be shared between pods."""
        for holder in mine.allocated:
            elsewhere = holder.away(nodes)
            here = refusals.open if elsewhere is None else refusals.open & ~elsewhere
            text = f"node allocatable resource claim {holder.claim.name}"
            if self._is_newer:
                users = holder.claim.status.reserved_for
                own = mine.consumer(holder.claim, pod).uid
                is_anothers = holder.is_shared or (bool(users) and not is_reserved_for(holder.claim, own))
                if is_anothers and self._is_mapped(holder):
                    refusals.add(here, _never(f"{text} has a mapped device and cannot be shared across pods"))
            elif not holder.is_shared:
                # 1.36 reads from the pods' statuses who uses the claim. Only the few rows with its devices are looked at.
                n_users = np.zeros(nodes.n, dtype=np.int64)
                for row in np.flatnonzero(here).tolist():
                    n_users[row] = len(_users(holder, nodes, row, pod))
                refusals.add(n_users > 1, _never(f"{text} shared by multiple pods"))
                refusals.add(n_users == 1, _never(f"{text} is already used by another pod"))

    def refuse_short(
        self, pod: PodView, mine: PodClaims, nodes: Snapshot, served: Ints | None, refusals: Refusals, errors: dict[int, str]
    ) -> None:
        """Refuse nodes that have too little left. For the others write to `mine.footprints` what the claims use there.

        All nodes of a group get the same devices, so the amounts are worked out once for each group.
        """
        # `kinds` is the `served` number of each row (module docstring of the plugin). Equal (kind, group) means equal
        # claims and equal devices, so `np.unique` over the pairs gives the cases to work out. Rows with an error or a
        # refusal are left out.
        groups = self._pools.rows(nodes)
        kinds = np.zeros_like(groups) if served is None else served
        undecided = refusals.open
        undecided[[*errors]] = False
        for kind, group in np.unique(np.stack((kinds, groups))[:, undecided], axis=1).T.tolist():
            here = undecided & (groups == group) & (kinds == kind)
            try:
                # Sorted by name, so that the error is always about the same claim; kube-scheduler names any of those to blame.
                found = [
                    claim_status(pod.pod, name, devices, has_overhead=self._is_newer)
                    for name, devices in sorted(self._used_in(mine, kind, group).items())
                ]
            except AllocationError as error:
                errors |= dict.fromkeys(np.flatnonzero(here).tolist(), error.text)
                continue
            statuses = mine.footprints[kind, group] = tuple(status for status in found if status is not None)
            if statuses:
                self._refuse_short_rows(pod, statuses, nodes, here, refusals)

    def _refuse_short_rows(
        self, pod: PodView, statuses: tuple[ClaimStatus, ...], nodes: Snapshot, here: Bools, refusals: Refusals
    ) -> None:
        """Refuse the rows of one group: for claims that no container uses (1.36), for pod-level resources that are too small,
        or for too few free resources. A node that is too small is not resolvable."""
        # 1.36 adds the resources of a claim to the containers that use it, and refuses a claim that no container uses.
        unused = next((each.resource_claim_name for each in statuses if not each.containers), None)
        if unused is not None and not self._is_newer:
            why = "node-allocatable resource claim not referenced by any container within the pod"
            refusals.add(here, _never(f"claim {unused}: {why}"))
            return
        lack = uncovered(pod.pod, statuses, looks_at_limits=self._is_newer) if self._pod_level else ""
        if lack:
            refusals.add(here, _never(lack))
            return
        # Together with the pod's own requests: NodeResourcesFit has compared only these, so a row may pass there and
        # fail here.
        wanted = requests.amounts(demand(pod.pod, statuses, pod_level=self._pod_level))
        for name, amount in wanted.items():
            if amount > 0 and (name in (CPU, MEMORY, EPHEMERAL_STORAGE) or name.startswith(HUGE_PAGES_PREFIX)):
                number = nodes.resource(name)
                short = here & (nodes.free(number) < amount)
                too_small = nodes.allocatable(number) < amount
                refusals.add(short & too_small, _never(f"Insufficient {name}"))
                refusals.add(short & ~too_small, Reason(f"Insufficient {name}"))

    def _used_in(self, mine: PodClaims, kind: int, group: int) -> dict[str, list[Used]]:
        """Return by claim the devices that the pod has or would get on nodes of a group. 1.36 ignores devices that claims had
        before this attempt."""
        # Two sources: claims that this attempt would allocate (the solution of the group), and claims that have their
        # devices already.
        used: dict[str, list[Used]] = {}
        found = mine.found.get(kind)
        allocation = found.allocations.get(group) if found is not None else None
        if allocation is not None:
            for claim, picks in zip(mine.to_allocate(kind), allocation, strict=True):
                used[claim.metadata.name] = [
                    (pick.device, {part.name: part.text for part in pick.shared} if pick.shared is not None else None)
                    for pick in picks
                ]
        devices = {device.id: device for pool in self._pools.groups[group].pools for device in pool.devices}
        for holder in mine.allocated:
            if holder.is_shared or self._is_newer:
                used[holder.claim.metadata.name] = [
                    (devices[key], result.consumed_capacity or None)
                    for result in holder.allocation.devices.results
                    if (key := DeviceId(result.driver, result.pool, result.device)) in devices
                ]
        return used

    def _is_mapped(self, holder: Allocated) -> bool:
        """Return whether a device of the claim stands for resources of its node."""
        results = holder.allocation.devices.results
        found = (self._pools.published(DeviceId(each.driver, each.pool, each.device)) for each in results)
        return any(use.key or use.fixed is not None for device in found if device is not None for use in device.node_uses)


def _never(text: str) -> Reason:
    return Reason(text, resolvable=False)


def _users(holder: Allocated, nodes: Snapshot, row: int, pod: PodView) -> set[str]:
    """Return the uids of the pods on a node whose status lists the claim; an empty set if the pod itself is the only one."""
    users = {
        other.uid
        for other in nodes.pods_on(row)
        if other.namespace == pod.namespace
        for status in other.pod.status.node_allocatable_resource_claim_statuses
        if status.resource_claim_name == holder.claim.name
    }
    return set() if users == {pod.uid} else users


# Amounts


def claim_status(pod: Pod, claim: str, used: Sequence[Used], *, has_overhead: bool) -> ClaimStatus | None:
    """Return the entry of the pod's status for one claim; None if its devices use nothing of the node.

    1.36 writes one map of resources. 1.37 (`has_overhead`) writes the mapping and the overheads apart.
    """
    mapped, per_pod, per_container = _Totals(), _Totals(), _Totals()
    #     use of cpu with key `cores`, multiplier 1; the pod takes 4 of the capacity `cores`:    4 cpus, mapped
    #     use of cpu with a fixed amount 2:                                                     2 cpus, mapped
    #     overhead of memory, 100Mi for the pod and 10Mi for each of its containers:             per_pod, per_container
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
                    mapped.add(use.resource, amount, consumed[use.key])
            elif use.fixed is not None:
                mapped.add(use.resource, quantity.parse(use.fixed), use.fixed)
            for totals, overhead in ((per_pod, use.per_pod), (per_container, use.per_container)):
                if overhead is not None:
                    totals.add(use.resource, quantity.parse(overhead), overhead)
    if not mapped and not per_pod and not per_container:
        return None
    behind = claim_names(pod)
    # The containers that use the claim. Their number decides how often the overhead for each container counts.
    containers = tuple(
        each.name
        for each in (*pod.spec.init_containers, *pod.spec.containers)
        for entry in each.resources.claims
        if behind.get(entry.name) == claim
    )
    if not has_overhead:
        resources: dict[str, Quantity] = {name: mapped.text(name) or "" for name in mapped}
        return ClaimStatus(resource_claim_name=claim, containers=containers, resources=resources)
    return ClaimStatus(
        resource_claim_name=claim,
        containers=containers,
        mapping=tuple(NodeAllocatableMappedResources(name=name, quantity=mapped.text(name)) for name in sorted(mapped)),
        overhead=tuple(
            NodeAllocatableOverheadResources(name=name, per_pod=per_pod.text(name), per_container=per_container.text(name))
            for name in sorted({*per_pod, *per_container})
        ),
    )


class _Totals(dict[str, tuple[int, str]]):
    """Sums by resource in nano units, each with the style of its first quantity (`500Mi`, `2`), in which it is printed."""

    def add(self, resource: str, amount: int, text: Quantity) -> None:
        before, style = self.get(resource, (0, quantity.style_of(text)))
        self[resource] = before + amount, style

    def text(self, resource: str) -> str | None:
        return quantity.format_quantity(*self[resource]) if resource in self else None


def demand(pod: Pod, statuses: Sequence[ClaimStatus], *, pod_level: bool) -> Amounts:
    """Return what the pod requests together with what its claims use, in nano units."""
    status = replace(pod.status, node_allocatable_resource_claim_statuses=tuple(statuses))
    return pod_requests(replace(pod, status=status), pod_level=pod_level, claim_resources=True)


def uncovered(pod: Pod, statuses: Sequence[ClaimStatus], *, looks_at_limits: bool) -> str:
    """Return why pod-level requests or limits are less than what containers and claims take together; empty if they are not.

    Limits are compared since 1.37: the sum for huge pages, and for other resources the limit of each container plus its claims.
    """

    def together(pod: Pod) -> Amounts:
        """Return what containers and claims take, without the pod's overhead."""
        return demand(replace(pod, spec=replace(pod.spec, overhead={})), statuses, pod_level=False)

    def with_limits_as_requests(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(replace(each, resources=replace(each.resources, requests=each.resources.limits)) for each in containers)

    whole, spec = pod.spec.resources, pod.spec
    if whole is None:
        return ""
    # The pod's own overhead (RuntimeClass) is not part of pod-level requests, so it is taken out of the comparison.
    taken = together(pod)
    for name, asked in whole.requests.items():
        if is_pod_level_name(name) and taken.get(name, 0) > quantity.parse(asked):
            return (
                f"pod level request for {name} is insufficient to cover the aggregated container and "
                "node-allocatable DRA requests"
            )
    if not looks_at_limits:
        return ""
    # Two different checks, because limits mean different things. Huge pages cannot be overcommitted, so the sum over
    # containers counts. For other resources each container may reach its own limit alone, so each is compared with the
    # pod's limit by itself.
    limits = {name: quantity.parse(text) for name, text in whole.limits.items()}
    containers, init_containers = with_limits_as_requests(spec.containers), with_limits_as_requests(spec.init_containers)
    limited = replace(pod, spec=replace(spec, containers=containers, init_containers=init_containers))
    for name, taken_at_most in together(limited).items():
        if name.startswith(HUGE_PAGES_PREFIX) and taken_at_most > limits.get(name, taken_at_most):
            return (
                f"pod level limit for {name} is insufficient to cover the aggregated container and node-allocatable DRA limits"
            )
    for container in spec.containers:
        beside = _used_by(container.name, statuses)
        for name, limit in container.resources.limits.items():
            used = quantity.parse(limit) + beside.get(name, 0)
            if not name.startswith(HUGE_PAGES_PREFIX) and used > limits.get(name, used):
                return (
                    f"pod level limit for {name} is insufficient to cover the limit and DRA overhead for "
                    f"container {container.name}"
                )
    return ""


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
