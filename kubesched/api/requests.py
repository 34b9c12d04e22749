"""What a pod asks for, and what a node has to give.

In: pods and nodes as decoded. Out: amounts by resource name, first exact (nano units, see `quantity`), then as the
integers that scheduling counts with: thousandths of a core for `cpu`, whole units for all else. Sums are exact and
rounded once a pod, so two containers of half a millicore ask for one millicore, not two. Host ports are here as well:
they too are things that a pod takes from a node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from kubesched.api.meta import Quantity
from kubesched.api.naming import qualified_name_complaints
from kubesched.api.node import Node
from kubesched.api.pod import Container, ContainerStatus, Pod
from kubesched.api.quantity import QuantityError, milli_value, parse, value
from kubesched.errors import MalformedObject

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGE_PAGES_PREFIX = "hugepages-"

DEFAULT_CPU_MILLI = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
NON_ZERO_DEFAULTS: Mapping[str, int] = {CPU: parse("100m"), MEMORY: parse("200Mi")}
"""What a container that says nothing is taken to need, in nano units."""

WILDCARD_IP = "0.0.0.0"

Amounts = dict[str, int]


# --- names ------------------------------------------------------------------------------------------------------------

_names: dict[str, tuple[bool, bool]] = {}


def is_extended_name(name: str) -> bool:
    """Return whether the name is a resource of somebody else's domain."""
    return _kinds_of(name)[0]


def is_scalar_name(name: str) -> bool:
    """Return whether scheduling counts the resource beside cpu, memory and ephemeral storage."""
    return _kinds_of(name)[1]


def _kinds_of(name: str) -> tuple[bool, bool]:
    known = _names.get(name)
    if known is None:
        native = "kubernetes.io/" in name
        extended = (
            "/" in name
            and not native
            and not name.startswith("requests.")
            and not qualified_name_complaints(f"requests.{name}")
        )
        known = extended, extended or native or name.startswith((HUGE_PAGES_PREFIX, "attachable-volumes-"))
        _names[name] = known
    return known


def is_pod_level_name(name: str) -> bool:
    """Return whether a resource may be asked for by the pod as a whole."""
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX)


# --- pods -------------------------------------------------------------------------------------------------------------


def pod_requests(
    pod: Pod,
    *,
    use_status: bool = False,
    pod_level: bool = True,
    non_missing: Mapping[str, int] | None = None,
    in_place_pod_level: bool = True,
    claim_resources: bool = False,
    whole_pod: bool = True,
) -> Amounts:
    """Return what the pod asks for, in nano units by resource name.

    use_status: take the larger of what is asked, allocated and in force while a resize is under way (pods on nodes).
    pod_level: let `spec.resources` replace the containers' sum (gate PodLevelResources).
    non_missing: what containers without an entry are taken to ask for; an explicit 0 is an entry.
    in_place_pod_level: the gate InPlacePodLevelResourcesVerticalScaling.
    claim_resources: the gate DRANodeAllocatableResources; adds what claims use up on the node.
    whole_pod: compare sums over the whole pod while a resize is under way, as since 1.37, and not container by container.
    Raise `MalformedObject` for a value that is no quantity.
    """
    try:
        return _pod_requests(pod, use_status, pod_level, non_missing, in_place_pod_level, claim_resources, whole_pod)
    except QuantityError as error:
        raise _malformed_pod(pod, error) from error


def non_zero_requests(
    pod: Pod,
    *,
    use_status: bool = True,
    pod_level: bool = True,
    in_place_pod_level: bool = True,
    claim_resources: bool = False,
    whole_pod: bool = True,
) -> tuple[int, int]:
    """Return thousandths of a core and bytes of memory that the pod is taken to use, even if it says nothing.

    Every container that says nothing counts 100m and 200Mi. With pod-level requests a default only enters for a
    resource that the whole computation left out.
    """
    ask = partial(
        pod_requests,
        pod,
        use_status=use_status,
        pod_level=pod_level,
        in_place_pod_level=in_place_pod_level,
        claim_resources=claim_resources,
        whole_pod=whole_pod,
    )
    wanted: Mapping[str, int] = NON_ZERO_DEFAULTS
    if pod_level and has_pod_level_requests(pod):
        plain = ask()
        wanted = {name: amount for name, amount in NON_ZERO_DEFAULTS.items() if name not in plain}
        if not wanted:
            return milli_value(plain[CPU]), value(plain[MEMORY])
    total = ask(non_missing=wanted)
    return milli_value(total.get(CPU, 0)), value(total.get(MEMORY, 0))


def has_pod_level_requests(pod: Pod) -> bool:
    """Return whether the pod as a whole asks for something that may be asked for at that level. Limits do not count."""
    whole = pod.spec.resources
    return whole is not None and any(is_pod_level_name(name) for name in whole.requests)


def amounts(nano: Mapping[str, int], *, pods: bool = False) -> Amounts:
    """Return integers to count with: cpu in thousandths, the rest in units. Names that nobody counts are dropped."""
    counted = {}
    for name, amount in nano.items():
        if name == CPU:
            counted[name] = milli_value(amount)
        elif name in (MEMORY, EPHEMERAL_STORAGE) or is_scalar_name(name) or (pods and name == PODS):
            counted[name] = value(amount)
    return counted


def _pod_requests(
    pod: Pod,
    use_status: bool,
    pod_level: bool,
    non_missing: Mapping[str, int] | None,
    in_place_pod_level: bool,
    claim_resources: bool,
    whole_pod: bool,
) -> Amounts:
    spec, status = pod.spec, pod.status
    infeasible = use_status and _is_resize_infeasible(pod)
    is_reported = status.container_statuses or status.init_container_statuses or status.resources is not None
    if not use_status or not (is_reported or infeasible):
        total = _sum(pod, _asked, non_missing)
    elif whole_pod:
        total = _largest_sum(pod, infeasible, in_place_pod_level, non_missing)
    else:
        total = _sum_of_largest(pod, infeasible, non_missing)
    if claim_resources:
        for claim in status.node_allocatable_resource_claim_statuses:
            _add(total, _parsed(claim.resources))
    if pod_level and has_pod_level_requests(pod):
        total.update(_pod_level_requests(pod, use_status and in_place_pod_level, infeasible, whole_pod))
    if spec.overhead:
        _add(total, _parsed(spec.overhead))
    return total


def _sum(pod: Pod, ask: Callable[[Container], Amounts], non_missing: Mapping[str, int] | None) -> Amounts:
    """Add up what containers ask for: those that run together, or those up to an init container, whichever is more."""
    spec = pod.spec
    total: Amounts = {}
    for container in spec.containers:
        _add(total, _with_defaults(ask(container), non_missing))
    if spec.init_containers:
        sidecars: Amounts = {}
        peak: Amounts = {}
        for container in spec.init_containers:
            asked = _with_defaults(ask(container), non_missing)
            if container.is_restartable:
                _add(total, asked)
                _add(sidecars, asked)
                asked = sidecars
            else:
                _add(asked, sidecars)
            _raise_to(peak, asked)
        _raise_to(total, peak)
    return total


def _asked(container: Container) -> Amounts:
    return _parsed(container.resources.requests)


def _with_defaults(asked: Amounts, non_missing: Mapping[str, int] | None) -> Amounts:
    for name, amount in (non_missing or {}).items():
        asked.setdefault(name, amount)
    return asked


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    return {s.name: s for s in (*pod.status.container_statuses, *pod.status.init_container_statuses)}


def _sum_of_largest(pod: Pod, infeasible: bool, non_missing: Mapping[str, int] | None) -> Amounts:
    """Add up the largest of what each container asks for, was allocated and has: releases before 1.37.

    Of the init containers only sidecars are looked up: nobody resizes one that ends.
    """
    statuses = _statuses(pod)
    ending = {container.name for container in pod.spec.init_containers if not container.is_restartable}

    def largest(container: Container) -> Amounts:
        status = None if container.name in ending else statuses.get(container.name)
        if status is None or status.resources is None:
            return _asked(container)
        in_force, allocated = _parsed(status.resources.requests), _parsed(status.allocated_resources)
        return _resized(_asked(container), in_force, allocated, infeasible)

    return _sum(pod, largest, non_missing)


def _largest_sum(pod: Pod, infeasible: bool, in_place_pod_level: bool, non_missing: Mapping[str, int] | None) -> Amounts:
    """Return the largest of what the whole pod asks for, was allocated and has: since 1.37.

    A container of which nothing is known counts with what it asks for, unless its resize is known not to be possible.
    """
    whole, statuses = pod.status, _statuses(pod)

    def allocated(container: Container) -> Amounts:
        status = statuses.get(container.name)
        if status is not None and status.allocated_resources is not None:
            return _parsed(status.allocated_resources)
        return {} if infeasible else _asked(container)

    def in_force(container: Container) -> Amounts:
        status = statuses.get(container.name)
        if status is not None and status.resources is not None and status.resources.requests is not None:
            return _parsed(status.resources.requests)
        return allocated(container)

    actual = whole.resources.requests if whole.resources is not None else None
    if in_place_pod_level and whole.allocated_resources is not None and actual is not None:
        sums = _parsed(actual), _parsed(whole.allocated_resources)
    else:
        sums = _sum(pod, in_force, non_missing), _sum(pod, allocated, non_missing)
    return _resized(_sum(pod, _asked, non_missing), *sums, infeasible)


def _pod_level_requests(pod: Pod, use_status: bool, infeasible: bool, whole_pod: bool) -> Amounts:
    whole, status = pod.spec.resources, pod.status
    assert whole is not None
    asked = _parsed(whole.requests)
    effective = asked
    if use_status and status.resources is not None:
        in_force, allocated = _parsed(status.resources.requests), _parsed(status.allocated_resources)
        effective = _resized(asked, in_force, allocated, infeasible)
    names = effective if whole_pod else asked
    return {name: effective.get(name, 0) for name in names if is_pod_level_name(name)}


def _resized(asked: Amounts, in_force: Amounts, allocated: Amounts, infeasible: bool) -> Amounts:
    effective: Amounts = {}
    if not infeasible:
        effective.update(asked)
    _raise_to(effective, in_force)
    _raise_to(effective, allocated)
    return effective


def _is_resize_infeasible(pod: Pod) -> bool:
    # The first pending condition decides, whatever its status says.
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _parsed(quantities: Mapping[str, Quantity] | None) -> Amounts:
    return {name: parse(text) for name, text in (quantities or {}).items()}


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def _malformed_pod(pod: Pod, error: QuantityError) -> MalformedObject:
    what = f"pod {pod.key}"
    for path, quantities in _quantity_maps(pod):
        for name, text in quantities.items():
            if not _is_quantity(text):
                return MalformedObject(what, f"{path}.{name}", text, "not a quantity")
    return MalformedObject(what, "resources", error.text, "not a quantity")


def _quantity_maps(pod: Pod) -> list[tuple[str, Mapping[str, Quantity]]]:
    spec, status = pod.spec, pod.status
    maps: list[tuple[str, Mapping[str, Quantity]]] = []
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            maps.append((f"spec.{field}[{index}].resources.requests", container.resources.requests))
    if spec.resources is not None:
        maps.append(("spec.resources.requests", spec.resources.requests))
    maps.append(("spec.overhead", spec.overhead))
    for field, statuses in (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
    ):
        for index, reported in enumerate(statuses):
            maps.append((f"status.{field}[{index}].allocatedResources", reported.allocated_resources or {}))
            if reported.resources is not None:
                maps.append((f"status.{field}[{index}].resources.requests", reported.resources.requests or {}))
    if status.resources is not None:
        maps.append(("status.resources.requests", status.resources.requests or {}))
    maps.append(("status.allocatedResources", status.allocated_resources or {}))
    for index, claim in enumerate(status.node_allocatable_resource_claim_statuses):
        maps.append((f"status.nodeAllocatableResourceClaimStatuses[{index}].resources", claim.resources))
    return maps


def _is_quantity(text: Quantity) -> bool:
    try:
        parse(text)
    except QuantityError:
        return False
    return True


# --- nodes ------------------------------------------------------------------------------------------------------------


def node_allocatable(node: Node) -> Amounts:
    """Return what pods may take: cpu in thousandths, memory, ephemeral storage and pods (0 if absent), and all scalars.

    Capacity is never read. Raise `MalformedObject` for a value that is no quantity.
    """
    stated = node.status.allocatable
    try:
        nano = _parsed(stated)
    except QuantityError as error:
        name = next(name for name, text in stated.items() if not _is_quantity(text))
        raise MalformedObject(f"node {node.key}", f"status.allocatable.{name}", stated[name], "not a quantity") from error
    return {CPU: 0, MEMORY: 0, EPHEMERAL_STORAGE: 0, PODS: 0, **amounts(nano, pods=True)}


# --- ports ------------------------------------------------------------------------------------------------------------


class HostPort(NamedTuple):
    """A port of the node that a pod takes."""

    ip: str
    protocol: str
    port: int


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the node's ports that the pod takes: those of sidecars first, then those of containers."""
    spec = pod.spec
    sidecars = (container for container in spec.init_containers if container.is_restartable)
    return tuple(
        HostPort(port.host_ip or WILDCARD_IP, port.protocol or "TCP", port.host_port)
        for container in (*sidecars, *spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


def ports_conflict(wanted: HostPort, taken: HostPort) -> bool:
    """Return whether one node cannot give both. `0.0.0.0` is every address; other texts are compared literally."""
    if wanted.port <= 0 or wanted.port != taken.port or wanted.protocol != taken.protocol:
        return False
    return wanted.ip == taken.ip or WILDCARD_IP in (wanted.ip, taken.ip)
