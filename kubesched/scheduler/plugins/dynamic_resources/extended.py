"""Extended resources that devices serve: the special claim with the requests for them.

    pod                       requests of the special claim
    init container i: gpu 3   container-0-request-0, count 1 (3, less the 2 of the container that starts later)
    container a: gpu 2        container-1-request-0, count 2

Containers and sidecars run together, so each has a request of its own. An init container ends before the containers after it
start, so it uses their devices. Only what these do not cover is requested in addition: for the init container that lacks most,
and shared by all init containers. The mappings say which containers use which requests: here a uses the second one, i both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from kubesched.kube.api import (
    DEVICE_CLASS_RESOURCE_PREFIX,
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    ContainerExtendedResourceRequest,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ObjectMeta,
    OwnerReference,
    Pod,
    ResourceClaim,
    ResourceClaimSpec,
    requests,
)
from kubesched.kube.values import quantity
from kubesched.scheduler.cluster import DeviceClassMap, PodView
from kubesched.scheduler.plugins.dynamic_resources.allocation.shapes import EXACT_COUNT

SPECIAL_NAME = "<extended-resources>"
"""The name of the claim while it exists in memory only."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The special claim for nodes where devices serve certain resources, and which request serves which container."""

    claim: ResourceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def wanted_resources(pod: PodView) -> tuple[str, ...]:
    """Return the extended resources that a pod requests, sorted by name."""
    names = pod.template.interners.resources.values
    return tuple(
        sorted(
            names[resource]
            for resource, amount in pod.requests
            if amount
            and (requests.is_extended_name(names[resource]) or names[resource].startswith(DEVICE_CLASS_RESOURCE_PREFIX))
        )
    )


def special_claim(pod: Pod, uid: str) -> ResourceClaim:
    """Return a special claim without requests, which exists in memory only."""
    # The pod owns the claim, so garbage collection deletes it with the pod.
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=SPECIAL_NAME,
            generate_name=f"{pod.metadata.name}-extended-resources-",
            namespace=pod.metadata.namespace,
            uid=uid,
            annotations={EXTENDED_RESOURCE_CLAIM_ANNOTATION: "true"},
            owner_references=(owner,),
        )
    )


def make_variant(pod: Pod, claim: ResourceClaim, resources: Iterable[str], classes: DeviceClassMap) -> Variant:
    """Return the special claim with requests for these resources."""
    made: list[DeviceRequest] = []
    long_mappings: list[ContainerExtendedResourceRequest] = []
    for resource in resources:
        device_class = classes.find(resource)
        if device_class is not None:
            added, mapped = _requests_for(pod, resource, device_class.metadata.name)
            made += added
            long_mappings += mapped
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=tuple(sorted(made, key=lambda request: request.name))))
    return Variant(msgspec.structs.replace(claim, spec=spec), tuple(long_mappings))


def _requests_for(
    pod: Pod, resource: str, class_name: str
) -> tuple[list[DeviceRequest], list[ContainerExtendedResourceRequest]]:
    """Return the requests and mappings for one resource."""

    def request(name: str, count: int) -> DeviceRequest:
        exactly = ExactDeviceRequest(device_class_name=class_name, allocation_mode=EXACT_COUNT, count=count)
        return DeviceRequest(name=name, exactly=exactly)

    # Kept: the number in the name is the resource's position among the container's requests, sorted by name, all of
    # them counted, cpu and memory too.
    def request_name(container: int) -> str:
        asked = containers[container].resources.requests
        return f"container-{container}-request-{sorted(asked).index(resource)}"

    def mapping(container: int, name: str) -> ContainerExtendedResourceRequest:
        who = containers[container].name
        return ContainerExtendedResourceRequest(container_name=who, resource_name=resource, request_name=name)

    # One numbering for both: init containers first, as in the claim's request names.
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    n_init = len(pod.spec.init_containers)
    long_lived: dict[int, tuple[str, int]] = {}
    short_lived: dict[int, int] = {}
    for i, container in enumerate(containers):
        asked = container.resources.requests.get(resource)
        count = quantity.value(quantity.parse(asked)) if asked is not None else 0
        if count <= 0:
            continue
        if i >= n_init or container.is_restartable:
            long_lived[i] = request_name(i), count
        else:
            short_lived[i] = count
    made = [request(name, count) for name, count in long_lived.values()]
    mappings = [mapping(i, name) for i, (name, _) in long_lived.items()]
    # What an init container needs beyond the devices of all containers that start after it (j >= i; it cannot use those
    # of earlier sidecars). Of several init containers the one that lacks most gets a request; they run one after the
    # other, so the others share it.
    # Map each init container to requests until its count is covered: first those of later containers, then the shared
    # rest.
    lacking = {i: count - sum(n for j, (_, n) in long_lived.items() if j >= i) for i, count in short_lived.items()}
    rest_name = ""
    if max(lacking.values(), default=0) > 0:
        most = max(lacking, key=lacking.__getitem__)
        rest_name = request_name(most)
        made.append(request(rest_name, lacking[most]))
    for i, count in short_lived.items():
        for j, (name, there) in long_lived.items():
            if j >= i and count > 0:
                mappings.append(mapping(i, name))
                count -= there
        if count > 0:
            mappings.append(mapping(i, rest_name))
    return made, mappings
