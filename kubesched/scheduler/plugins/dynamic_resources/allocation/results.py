"""From picks to the AllocationResult that is written to a claim's status."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Sequence

from kubesched.kube.api import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ResourceClaim,
)
from kubesched.scheduler.framework import Random
from kubesched.scheduler.plugins.dynamic_resources.allocation.allocator import MAX_SUB_REQUESTS, Allocation, Pick
from kubesched.scheduler.plugins.dynamic_resources.allocation.shapes import AllocationError, ClaimShape, RequestShape
from kubesched.scheduler.plugins.dynamic_resources.args import Features

FROM_CLASS, FROM_CLAIM = "FromClass", "FromClaim"


def build(
    allocation: Allocation, shapes: Sequence[ClaimShape], node_name: str, features: Features, new_id: Callable[[], str]
) -> list[AllocationResult]:
    """Return the allocation of each claim on a node; each share of a device gets a new uid."""
    return [
        AllocationResult(
            devices=DeviceAllocationResult(
                results=tuple(_result(pick, features, new_id) for pick in picks),
                config=_config(shape, picks),
            ),
            node_selector=_node_selector(picks, node_name, shape.index),
        )
        for shape, picks in zip(shapes, allocation, strict=True)
    ]


def check(allocation: Allocation) -> None:
    """Raise if the allocation has no valid node selector."""
    for i, picks in enumerate(allocation):
        _node_selector(picks, "", i)


def score(allocation: Allocation) -> int:
    """Return the score of a solution: 8 for each request with the first alternative of its list, 7 for the second, and so
    on."""
    return sum(MAX_SUB_REQUESTS - each.way for picks in allocation for each in _requests_of(picks) if each.parent)


def _requests_of(picks: Sequence[Pick]) -> Sequence[RequestShape]:
    """Return the requests of the picks, each once; of a list the alternative that was taken."""
    return list(dict.fromkeys(pick.request for pick in picks))


def score_of_claim(claim: ResourceClaim) -> int:
    """Return the same score for an allocated claim."""
    allocation = claim.status.allocation
    if allocation is None:
        return 0
    # By name, because the claim may have been allocated by another scheduler or before a restart: results name
    # `request/subrequest`.
    taken = {result.request for result in allocation.devices.results}
    return sum(
        next((MAX_SUB_REQUESTS - way for way, sub in enumerate(ways) if f"{name}/{sub.name}" in taken), 0)
        for name, ways in ((request.name, request.first_available) for request in claim.spec.devices.requests)
    )


def _result(pick: Pick, features: Features, new_id: Callable[[], str]) -> DeviceRequestAllocationResult:
    """Return the result entry of one pick."""
    # Binding conditions are copied to the claim, because from then on the claim is read and not the slice, which may
    # change.
    device, request = pick.device, pick.request
    return DeviceRequestAllocationResult(
        request=request.full_name,
        driver=device.id.driver,
        pool=device.id.pool,
        device=device.id.device,
        admin_access=True if request.admin else None,
        tolerations=request.tolerations,
        binding_conditions=device.binding_conditions if features.binding_conditions else (),
        binding_failure_conditions=device.published.binding_failure_conditions if features.binding_conditions else (),
        share_id=new_id() if pick.shared is not None else None,
        consumed_capacity={taken.name: taken.text for taken in pick.shared or ()},
        skip_node_operations=device.skip_operations,
    )


def new_uid(chance: Random, pod_uid: str) -> str:
    """Return a random uid. It includes the pod's uid, because the seeded generator of a new process or engine starts again and
    would repeat uids that it gave to other shares of the same device."""
    # The reference draws at random. Here a simulation with a seed must give the same uids again.
    drawn = f"{pod_uid}/{chance.randrange(1 << 128)}".encode()
    return str(uuid.UUID(bytes=hashlib.blake2b(drawn, digest_size=16).digest(), version=4))


def _config(shape: ClaimShape, picks: Sequence[Pick]) -> tuple[DeviceAllocationConfiguration, ...]:
    """Return the configuration entries: those of the classes first, then those of the claim, each with the requests that it is
    for."""
    chosen = _requests_of(picks)
    by_class: dict[str, list[RequestShape]] = {}
    for request in chosen:
        by_class.setdefault(request.class_name, []).append(request)
    # Kept order: classes as they are first used, then the claim's entries. An entry of the claim without `requests` is
    # for all requests and is written once. One with `requests` is written once for each chosen request that it names.
    # It may name the request (`gpu`), which means all its alternatives, or one of them (`gpu/large`).
    found = []
    for requests in by_class.values():
        device_class, names = requests[0].device_class, tuple(request.full_name for request in requests)
        assert device_class is not None
        found += [
            DeviceAllocationConfiguration(source=FROM_CLASS, requests=names, opaque=config.opaque)
            for config in device_class.spec.config
        ]
    for config in shape.spec.devices.config:
        written = DeviceAllocationConfiguration(source=FROM_CLAIM, requests=config.requests, opaque=config.opaque)
        if not config.requests:
            found.append(written)
        found += [
            written
            for request in chosen
            if request.base in config.requests or (request.parent and request.full_name in config.requests)
        ]
    return tuple(found)


def _node_selector(picks: Sequence[Pick], node_name: str, claim: int) -> NodeSelector | None:
    """Return where an allocation can be used: on the node itself if a device is local to it, else where the selectors of all
    devices match; None for everywhere. An entry that several selectors have is written once."""
    # A device on one node, or one that binds to a node when it is allocated, ties the whole claim to that node.
    if any(pick.device.place.node_name or pick.device.published.binds_to_node for pick in picks):
        here = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
        return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(here,)),))
    fields: dict[object, NodeSelectorRequirement] = {}
    expressions: dict[object, NodeSelectorRequirement] = {}
    for pick in picks:
        selector = pick.device.place.node_selector
        if selector is None or not selector.node_selector_terms:
            continue
        if len(selector.node_selector_terms) > 1:
            raise AllocationError(
                "create NodeSelector for claim {name}: unsupported ResourceSlice.NodeSelector with "
                f"{len(selector.node_selector_terms)} terms",
                claim,
            )
        term = selector.node_selector_terms[0]
        for requirement in term.match_fields:
            fields.setdefault(_identity(requirement), requirement)
        for requirement in term.match_expressions:
            expressions.setdefault(_identity(requirement), requirement)
    if not fields and not expressions:
        return None
    # Terms of a selector are alternatives, requirements in a term must all hold. So the requirements of all devices go
    # into one term: the claim can be used where every device can. That is why a slice's selector may have one term
    # only.
    together = NodeSelectorTerm(match_expressions=tuple(expressions.values()), match_fields=tuple(fields.values()))
    return NodeSelector(node_selector_terms=(together,))


def _identity(requirement: NodeSelectorRequirement) -> object:
    return requirement.key, requirement.operator, frozenset(requirement.values or ())
