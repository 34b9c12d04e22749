"""A pod's claims: found by name or through the pod's status, and looked over before anything is searched.

Problems are values: the text that the pod waits with.
"""

from __future__ import annotations

from kubesched.kube.api import DeviceClass, Pod, PodGroup, PodGroupResourceClaim, PodResourceClaim, ResourceClaim
from kubesched.kube.values import go_quote
from kubesched.scheduler.cluster import DeviceClaims, Objects
from kubesched.scheduler.framework import Status, failed, unresolvable

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
        if is_generated:
            where = f'pod "{namespace}/{pod.metadata.name}"'
            made = {status.name: status.resource_claim_name for status in reversed(pod.status.resource_claim_statuses)}
            if wanted.resource_claim_template_name is None:
                return f'{where}, spec.resourceClaim "{wanted.name}": none of the supported fields are set'
            if wanted.name not in made:
                return f"{where}: ResourceClaim not created yet"
            name = made[wanted.name]
        if name is None:
            continue  # none is needed
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


def _is_owned_by(claim: ResourceClaim, pod: Pod, group: str) -> bool:
    owner = claim.metadata.controller()
    if owner is None:
        return False
    is_groups = owner.kind == "PodGroup" and owner.api_version.startswith("scheduling.k8s.io/") and owner.name == group
    return owner.uid == pod.metadata.uid or (bool(group) and is_groups)


def claim_names(pod: Pod) -> dict[str, str]:
    """Return the name of the claim behind each entry of a pod's resourceClaims; one that is not made yet is left out."""
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    found = ((entry.name, entry.resource_claim_name or made.get(entry.name)) for entry in pod.spec.resource_claims)
    return {entry: name for entry, name in found if name}


def shared_with_group(pod: Pod, group: PodGroup) -> frozenset[str]:
    """Return the names of the claims that a pod has in common with its group: those that are reserved for the group."""
    theirs = {_identity(claim) for claim in group.spec.resource_claims}
    names = claim_names(pod)
    return frozenset(
        names[claim.name] for claim in pod.spec.resource_claims if claim.name in names and _identity(claim) in theirs
    )


def _identity(claim: PodResourceClaim | PodGroupResourceClaim) -> tuple[str, str | None, str | None]:
    return claim.name, claim.resource_claim_name, claim.resource_claim_template_name


def check_requests(claim: ResourceClaim, objects: Objects, with_lists: bool) -> Status | None:
    """Return why a claim's requests cannot be searched for, before any node is looked at."""
    for request in claim.spec.devices.requests:
        wanted = [(f"{request.name}/{sub.name}", sub.device_class_name) for sub in request.first_available]
        if request.exactly is not None:
            wanted = [(request.name, request.exactly.device_class_name)]
        elif not wanted:
            return unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
        elif not with_lists:
            return unresolvable(
                f"resource claim {claim.key}, request {request.name}: has subrequests, but the "
                "DRAPrioritizedList feature is disabled"
            )
        for name, class_name in wanted:
            if not class_name:
                return failed(f"request {name}: unsupported request type")
            if objects.get(DeviceClass, class_name) is None:
                return unresolvable(f"request {name}: device class {class_name} does not exist")
    return None


def is_reserved_for(claim: ResourceClaim, uid: str) -> bool:
    """Return whether a pod, or a group, may use the claim."""
    return any(consumer.uid == uid for consumer in claim.status.reserved_for)


def can_be_deallocated(claim: ResourceClaim, *uids: str) -> bool:
    """Return whether nobody but these would miss the claim's devices."""
    return all(consumer.uid in uids for consumer in claim.status.reserved_for)
