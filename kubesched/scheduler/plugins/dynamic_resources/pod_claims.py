"""What an attempt knows about a pod's claims: those that have devices, those that need some, and what was found for them.

In: what PreFilter collects. Out: read and filled in by Filter, Score, Reserve and PreBind of the same attempt.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kubesched.kube.api import AllocationResult, NodeSelectorMatcher, PodGroup, ResourceClaim
from kubesched.scheduler.cluster import Bools, PodView, Snapshot, match_node_selector
from kubesched.scheduler.plugins.dynamic_resources.allocation.outcomes import Outcomes
from kubesched.scheduler.plugins.dynamic_resources.allocation.pools import OPTIONAL_NODE_OPERATIONS
from kubesched.scheduler.plugins.dynamic_resources.extended import Variant
from kubesched.scheduler.plugins.dynamic_resources.node_allocatable import ClaimStatus
from kubesched.scheduler.plugins.dynamic_resources.writes import Consumer, consumer_of


@dataclass(slots=True)
class Allocated:
    """A claim that has its devices, and where they can be used (None: everywhere).

    Those of one that `is_shared` are promised to other members of the pod's group and not written yet.
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
    """A pod's claims in one attempt. A what-if shares it with the attempt: nothing in it depends on pods on nodes."""

    allocated: list[Allocated] = field(default_factory=list)
    pending: list[ResourceClaim] = field(default_factory=list)
    """Claims that need devices, in the pod's order, without the special one."""
    special: ResourceClaim | None = None
    resources: tuple[str, ...] = ()
    """All extended resources that the pod asks for, when there is a special claim."""
    variants: dict[int, Variant] = field(default_factory=dict)
    found: dict[int, Outcomes] = field(default_factory=dict)
    nodes: Snapshot | None = None
    """The cluster that the pod was tried on: what devices must serve on a node is read off it again in Reserve."""
    given: dict[str, list[AllocationResult]] = field(default_factory=dict)
    """By node what Reserve promised there. A group's members are reserved twice, and get the same both times: what is found by
    then may belong to another member."""
    booked: list[tuple[ResourceClaim, AllocationResult]] = field(default_factory=list)
    created: ResourceClaim | None = None
    footprints: dict[tuple[int, int], tuple[ClaimStatus, ...]] = field(default_factory=dict)
    """By the resources that devices serve, and by group of nodes, what the claims use up of a node's own resources."""
    group: PodGroup | None = None
    of_group: frozenset[str] = frozenset()
    """The names of the claims that are reserved for the pod's group and not for the pod."""

    def consumer(self, claim: ResourceClaim, pod: PodView) -> Consumer:
        """Return whom a claim is reserved for."""
        return consumer_of(pod, self.group if claim.metadata.name in self.of_group else None)

    @property
    def is_empty(self) -> bool:
        """Return whether the pod has no claims at all."""
        return not self.allocated and not self.pending and self.special is None

    @property
    def is_stale(self) -> bool:
        """Return whether the special claim is one that an earlier attempt left behind."""
        return self.special is not None and bool(self.special.spec.devices.requests)

    def to_allocate(self, served: int) -> list[ResourceClaim]:
        """Return the claims to find devices for on nodes where devices serve these resources, the special one last."""
        variant = self.variants.get(served)
        return [*self.pending, variant.claim] if variant is not None else self.pending
