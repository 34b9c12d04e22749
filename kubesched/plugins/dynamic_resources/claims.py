"""A pod's claims: found by name or through the pod's status, and looked over before anything is searched.

Problems are values: the text that the pod waits with.
"""

from __future__ import annotations

from kubesched.api.gotext import go_quote
from kubesched.api.pod import Pod, PodResourceClaim
from kubesched.api.resource import DeviceClass, ResourceClaim
from kubesched.api.workload import PodGroup
from kubesched.cluster import Objects
from kubesched.cluster.device_claims import DeviceClaims
from kubesched.framework import Status, failed, unresolvable

Claims = list[ResourceClaim]


def claims_of(pod: Pod, book: DeviceClaims, *, of_groups: bool = False) -> Claims | str:
    """Return the claims of a pod in the order of its spec, or why they cannot be used yet.

    `of_groups`: a claim that was made for the pod's group will do as well as one that was made for the pod.
    """
    found: Claims = []
    namespace = pod.metadata.namespace
    for wanted in pod.spec.resource_claims:
        name = wanted.resource_claim_name
        is_generated = name is None
        if name is None:
            made = _made_from_template(pod, wanted)
            if isinstance(made, tuple):
                return made[0]
            if made is None:
                continue
            name = made
        claim = book.get(name, namespace)
        if claim is None:
            return f"could not find ResourceClaim {go_quote(f'{namespace}/{name}')}"
        if claim.metadata.deletion_timestamp is not None:
            return f'resourceclaim "{name}" is being deleted'
        group = pod.spec.scheduling_group.pod_group_name if of_groups and pod.spec.scheduling_group is not None else ""
        if is_generated and not _is_owned_by(claim, pod, group):
            who = f"neither Pod nor PodGroup {group} is the owner" if group else "Pod is not owner"
            return f"ResourceClaim {namespace}/{name} was not created for Pod {namespace}/{pod.metadata.name} ({who})"
        found.append(claim)
    return found


def _made_from_template(pod: Pod, wanted: PodResourceClaim) -> str | tuple[str] | None:
    """Return the name of the claim made from a template, None if none is needed, or in a tuple what is wrong."""
    where = f'pod "{pod.metadata.namespace}/{pod.metadata.name}"'
    if wanted.resource_claim_template_name is None:
        return (f'{where}, spec.resourceClaim "{wanted.name}": none of the supported fields are set',)
    for status in pod.status.resource_claim_statuses:
        if status.name == wanted.name:
            return status.resource_claim_name
    return (f"{where}: ResourceClaim not created yet",)


def _is_owned_by(claim: ResourceClaim, pod: Pod, group: str) -> bool:
    owner = claim.metadata.controller()
    if owner is None:
        return False
    is_groups = owner.kind == "PodGroup" and owner.api_version.startswith("scheduling.k8s.io/") and owner.name == group
    return owner.uid == pod.metadata.uid or (bool(group) and is_groups)


def shared_with_group(pod: Pod, group: PodGroup) -> frozenset[str]:
    """Return the names of the claims that a pod has in common with its group: those that are reserved for the group."""
    theirs = {
        (claim.name, claim.resource_claim_name, claim.resource_claim_template_name) for claim in group.spec.resource_claims
    }
    named = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    wanted = (
        claim.resource_claim_name or named.get(claim.name)
        for claim in pod.spec.resource_claims
        if (claim.name, claim.resource_claim_name, claim.resource_claim_template_name) in theirs
    )
    return frozenset(name for name in wanted if name)


def check_requests(claim: ResourceClaim, objects: Objects, with_lists: bool) -> Status | None:
    """Return why a claim's requests cannot be searched for, before any node is looked at."""
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            problem = _check_class(request.name, request.exactly.device_class_name, objects)
        elif request.first_available:
            if not with_lists:
                return unresolvable(
                    f"resource claim {claim.key}, request {request.name}: has subrequests, but the "
                    "DRAPrioritizedList feature is disabled"
                )
            problem = None
            for sub in request.first_available:
                problem = problem or _check_class(f"{request.name}/{sub.name}", sub.device_class_name, objects)
        else:
            return unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
        if problem is not None:
            return problem
    return None


def _check_class(request: str, class_name: str, objects: Objects) -> Status | None:
    if not class_name:
        return failed(f"request {request}: unsupported request type")
    if objects.get(DeviceClass, class_name) is None:
        return unresolvable(f"request {request}: device class {class_name} does not exist")
    return None


def is_reserved_for(claim: ResourceClaim, uid: str) -> bool:
    """Return whether a pod, or a group, may use the claim."""
    return any(consumer.uid == uid for consumer in claim.status.reserved_for)


def can_be_deallocated(claim: ResourceClaim, *uids: str) -> bool:
    """Return whether nobody but these would miss the claim's devices."""
    return all(consumer.uid in uids for consumer in claim.status.reserved_for)
