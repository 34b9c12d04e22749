"""What an attempt knows about a pod's claims: those that have devices, those that need some, and what was found for them.

In: what PreFilter collects. Out: read and filled in by Filter, Score, Reserve and PreBind of the same attempt.
"""

from __future__ import annotations

from kubesched.api.matching import NodeSelectorMatcher
from kubesched.api.resource import AllocationResult, ResourceClaim
from kubesched.api.workload import PodGroup
from kubesched.cluster import PodView, Snapshot
from kubesched.plugins.dynamic_resources.extended import Variant
from kubesched.plugins.dynamic_resources.node_allocatable import ClaimStatus
from kubesched.plugins.dynamic_resources.outcomes import Outcomes
from kubesched.plugins.dynamic_resources.writes import Consumer, consumer_of


class Allocated:
    """A claim that has its devices, and where they can be used (None: everywhere).

    Those of a `shared` one are promised to other members of the pod's group and not written yet.
    """

    __slots__ = ("claim", "shared", "where")

    def __init__(self, claim: ResourceClaim, where: NodeSelectorMatcher | None, shared: AllocationResult | None = None) -> None:
        self.claim = claim
        self.where = where
        self.shared = shared

    @property
    def allocation(self) -> AllocationResult:
        allocation = self.shared or self.claim.status.allocation
        assert allocation is not None
        return allocation


class PodClaims:
    """A pod's claims in one attempt. A what-if shares it with the attempt: nothing in it depends on pods on nodes."""

    __slots__ = (
        "allocated",
        "booked",
        "created",
        "footprints",
        "found",
        "given",
        "group",
        "nodes",
        "of_group",
        "pending",
        "resources",
        "special",
        "variants",
    )

    def __init__(self) -> None:
        self.allocated: list[Allocated] = []
        self.pending: list[ResourceClaim] = []
        """Claims that need devices, in the pod's order, without the special one."""
        self.special: ResourceClaim | None = None
        self.resources: tuple[str, ...] = ()
        """All extended resources that the pod asks for, when there is a special claim."""
        self.variants: dict[int, Variant] = {}
        self.found: dict[int, Outcomes] = {}
        self.nodes: Snapshot | None = None
        """The cluster that the pod was tried on: what devices must serve on a node is read off it again in Reserve."""
        self.given: dict[str, list[AllocationResult]] = {}
        """By node what Reserve promised there. A group's members are reserved twice, and get the same both times: what
        is found by then may belong to another member."""
        self.booked: list[tuple[ResourceClaim, AllocationResult]] = []
        self.created: ResourceClaim | None = None
        self.footprints: dict[tuple[int, int], tuple[ClaimStatus, ...]] = {}
        """By the resources that devices serve, and by group of nodes, what the claims use up of a node's own resources."""
        self.group: PodGroup | None = None
        self.of_group: frozenset[str] = frozenset()
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
