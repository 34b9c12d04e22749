"""Which nodes have the devices that a pod's claims request, free or not: for `why`, not for decisions.

There is one `Offer` for each request. A claim that does not exist yet, or a request with an error, has a text instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kubesched.kube.api import AllocationResult, Pod, ResourceClaim
from kubesched.scheduler.cluster import DeviceClaims, Objects, Snapshot
from kubesched.scheduler.framework import first_names
from kubesched.scheduler.plugins.dynamic_resources.allocation.pools import Pools
from kubesched.scheduler.plugins.dynamic_resources.allocation.shapes import ALL, AllocationError, ClaimShape, RequestShape
from kubesched.scheduler.plugins.dynamic_resources.claims import claim_names


@dataclass(frozen=True, slots=True)
class Offer:
    """The nodes with devices for one request of a claim."""

    claim: str
    request: str = ""
    device_class: str = ""
    wanted: str = ""
    """The number of devices, or "all"."""
    node: str = ""
    """The node of a claim that is allocated."""
    n_nodes: int = 0
    """The nodes that reach such devices, and those of them where enough are free."""
    n_free_nodes: int = 0
    examples: tuple[str, ...] = ()
    problem: str = ""

    @property
    def text(self) -> str:
        """Return the offer as a sentence."""
        if self.problem:
            return f"{self.claim}: {self.problem}"
        asks = f"{self.claim} asks for {self.wanted} of class {self.device_class}"
        if self.node:
            return f"{asks}, and has them on {self.node}"
        if not self.n_nodes:
            return f"{asks}: no node has such a device"
        where = ", ".join(self.examples) + (", ..." if self.n_nodes > len(self.examples) else "")
        nodes = "1 node has" if self.n_nodes == 1 else f"{self.n_nodes} nodes have"
        return f"{asks}: {nodes} such devices ({where}), {self.n_free_nodes} of them enough that are free"


def offers(pod: Pod, nodes: Snapshot, objects: Objects, book: DeviceClaims, pools: Pools) -> list[Offer]:
    """Return the offers for the claims of a pod, in the order of its spec."""
    book.refresh()
    pools.follow(nodes)
    found: list[Offer] = []
    names = claim_names(pod)
    # `claim_names` has no entry for a template whose claim the controller has not made yet, or for one that needs no
    # claim.
    for wanted in pod.spec.resource_claims:
        name = names.get(wanted.name)
        claim = book.get(name, pod.metadata.namespace) if name else None
        if claim is None:
            template = wanted.resource_claim_template_name
            missing = f"is not made yet from ResourceClaimTemplate {template}" if template else "is not there"
            found.append(Offer(f"claim {name or wanted.name}", problem=missing))
        else:
            requests = ClaimShape(0, claim.spec, objects, pools.features).requests
            found += [_offer(claim, shape, nodes, book, pools) for ways in requests for shape in ways]
    return found


def _offer(claim: ResourceClaim, shape: RequestShape, nodes: Snapshot, book: DeviceClaims, pools: Pools) -> Offer:
    """Return the offer for one request: the nodes that reach such devices, and those of them with enough free ones."""
    wanted = "all" if shape.mode == ALL else str(shape.count)
    asked = Offer(f"claim {claim.metadata.name}", shape.full_name, shape.class_name, wanted)
    if claim.status.allocation is not None:
        return replace(asked, node=_home(claim.status.allocation))
    has, has_free = np.zeros(nodes.n, dtype=np.bool_), np.zeros(nodes.n, dtype=np.bool_)
    # Devices are counted alone, without constraints, counters or capacities: enough to tell a wrong class from devices
    # that are all in use.
    groups = pools.rows(nodes)
    try:
        shape.validate()
        for index in np.unique(groups).tolist():
            such = [each.device for each in pools.groups[index].candidates if each.is_reachable and shape.selects(each.device)]
            n_free = sum(device.id not in book.exclusive for device in such)
            if such:
                has |= groups == index
                if n_free >= (len(such) if shape.mode == ALL else shape.count):
                    has_free |= groups == index
    except AllocationError as error:
        return replace(asked, problem=error.message([claim]))
    return replace(asked, n_nodes=int(has.sum()), n_free_nodes=int(has_free.sum()), examples=first_names(nodes, has))


def _home(allocation: AllocationResult) -> str:
    """Return the nodes where an allocation can be used, as text."""
    selector = allocation.node_selector
    if selector is None:
        return "any node"
    fields = [field for term in selector.node_selector_terms for field in term.match_fields]
    return ", ".join(value for field in fields for value in field.values or ()) or "the nodes of its node selector"
