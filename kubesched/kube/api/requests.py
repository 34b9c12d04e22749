"""What a pod requests, and what a node has to offer.

In: pods and nodes. Out: amounts by resource name, first exact (billionths, see `quantity`), then as the integers that the
scheduler counts with: thousandths of a core for `cpu`, whole units for everything else. Sums are rounded once a pod, so two
containers of half a millicore request one millicore, not two. Host ports are here as well, for a pod takes them from a node
too.

Example: a container with 200m, an init container with 500m, a sidecar with 100m that starts after it. While the init container
runs 500m are needed, later 200m + 100m, so the pod requests 500m. If the sidecar starts first, it is 500m + 100m.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Generic, NamedTuple, TypeVar

from kubesched.errors import MalformedObject
from kubesched.kube.api.meta import Quantity
from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Container, ContainerStatus, NodeAllocatableResourceClaimStatus, Pod
from kubesched.kube.values import (
    INT64_MAX,
    MILLI,
    NANO,
    UNITS,
    Amount,
    QuantityError,
    milli_value,
    parse,
    qualified_name_complaints,
    value,
)

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGE_PAGES_PREFIX = "hugepages-"

DEFAULT_CPU_MILLI = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
_NON_ZERO_TEXTS: Mapping[str, str] = {CPU: "100m", MEMORY: "200Mi"}
NON_ZERO_DEFAULTS: Mapping[str, int] = {name: parse(text) for name, text in _NON_ZERO_TEXTS.items()}
"""What a container that says nothing is taken to need, in nano units."""

WILDCARD_IP = "0.0.0.0"

Amounts = dict[str, int]


# --- names ------------------------------------------------------------------------------------------------------------


def is_extended_name(name: str) -> bool:
    """Return whether a resource is an extended one: it has a domain that is not Kubernetes' own."""
    return _kinds_of(name)[0]


def is_scalar_name(name: str) -> bool:
    """Return whether the scheduler counts a resource besides cpu, memory and ephemeral storage."""
    return _kinds_of(name)[1]


@lru_cache(maxsize=1024)
def _kinds_of(name: str) -> tuple[bool, bool]:
    """Return whether a name is an extended resource, and whether it is a scalar one."""
    native = "kubernetes.io/" in name
    extended = (
        "/" in name and not native and not name.startswith("requests.") and not qualified_name_complaints(f"requests.{name}")
    )
    return extended, extended or native or name.startswith((HUGE_PAGES_PREFIX, "attachable-volumes-"))


def is_pod_level_name(name: str) -> bool:
    """Return whether a resource can be requested for the pod as a whole."""
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
    reading: _Reading[int] = _Reading(pod, use_status, in_place_pod_level, whole_pod, non_missing or {}, parse)
    try:
        total = reading.total(pod_level, claim_resources)
        if any(amount > _limit(name) for name, amount in total.items()):
            total = _exact(reading, pod_level, claim_resources)
    except QuantityError as error:
        raise _malformed_pod(pod, error) from error
    return total


def _limit(name: str) -> int:
    """Return the largest amount, in billionths, that fits in the 64 bits kube-scheduler counts with."""
    return INT64_MAX * (NANO // 1000 if name == CPU else NANO)


def _counted(name: str, amount: Amount) -> int:
    """Return an amount as kube-scheduler counts it, overflow included, in billionths."""
    return amount.count(MILLI) * (NANO // 1000) if name == CPU else amount.count(UNITS) * NANO


def _exact(reading: _Reading[int], pod_level: bool, claim_resources: bool) -> Amounts:
    """Return the requests of a pod of which one overflows, computed with kube-scheduler's own kind of numbers."""
    slow: _Reading[Amount] = _Reading(
        reading.pod,
        reading.use_status,
        reading.in_place,
        reading.whole_pod,
        {name: Amount.of(_NON_ZERO_TEXTS[name]) for name in reading.non_missing},
        Amount.of,
    )
    return {name: _counted(name, amount) for name, amount in slow.total(pod_level, claim_resources).items()}


def non_zero_requests(
    pod: Pod,
    *,
    use_status: bool = True,
    pod_level: bool = True,
    in_place_pod_level: bool = True,
    claim_resources: bool = False,
    whole_pod: bool = True,
) -> tuple[int, int]:
    """Return the millicores and bytes that a pod is scored with; they are never 0.

    A container without a request counts as 100m and 200Mi. If the pod as a whole has requests, a default is used only for a
    resource that nothing else gives.
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
    """Return whether the pod as a whole requests something. Its limits do not count."""
    whole = pod.spec.resources
    return whole is not None and any(is_pod_level_name(name) for name in whole.requests)


def asks_for_all(pod: Pod, names: Iterable[str]) -> bool:
    """Return whether every container requests all of some resources, and the pod as a whole nothing."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return not has_pod_level_requests(pod) and all(name in (c.resources.requests or {}) for c in containers for name in names)


def amounts(nano: Mapping[str, int], *, pods: bool = False) -> Amounts:
    """Return integers to count with. Names that the scheduler does not count are dropped."""
    counted = {}
    for name, amount in nano.items():
        if name == CPU:
            counted[name] = milli_value(amount)
        elif name in (MEMORY, EPHEMERAL_STORAGE) or is_scalar_name(name) or (pods and name == PODS):
            counted[name] = value(amount)
    return counted


def _claim_uses(claim: NodeAllocatableResourceClaimStatus) -> Iterator[tuple[str, Quantity]]:
    """Yield what the devices of a claim use of the node, in the fields of 1.36 and of 1.37."""
    yield from claim.resources.items()
    for mapped in claim.mapping:
        if mapped.quantity is not None:
            yield mapped.name, mapped.quantity
    for beside in claim.overhead:
        for each in (beside.per_pod, *([beside.per_container] * len(claim.containers))):
            if each is not None:
                yield beside.name, each


N = TypeVar("N", int, Amount)


class _Reading(Generic[N]):
    """One way to read a pod's requests: in billionths or, where those would overflow, in kube-scheduler's own numbers."""

    def __init__(
        self,
        pod: Pod,
        use_status: bool,
        in_place: bool,
        whole_pod: bool,
        non_missing: Mapping[str, N],
        read: Callable[[Quantity], N],
    ) -> None:
        self.pod = pod
        self.use_status = use_status
        self.in_place = in_place
        self.whole_pod = whole_pod
        self.non_missing: Mapping[str, N] = non_missing
        self._read: Callable[[Quantity], N] = read
        self._infeasible = use_status and _is_resize_infeasible(pod)

    def total(self, pod_level: bool, claim_resources: bool) -> dict[str, N]:
        """Return the requests of the whole pod."""
        spec, status = self.pod.spec, self.pod.status
        is_reported = status.container_statuses or status.init_container_statuses or status.resources is not None
        if not self.use_status or not (is_reported or self._infeasible):
            total = self._sum(self._asked)
        elif self.whole_pod:
            total = self._largest_sum()
        else:
            total = self._sum_of_largest()
        if claim_resources:
            for claim in status.node_allocatable_resource_claim_statuses:
                for name, amount in _claim_uses(claim):
                    _add(total, self._parsed({name: amount}))
        if pod_level and has_pod_level_requests(self.pod):
            total.update(self._pod_level())
        if spec.overhead:
            _add(total, self._parsed(spec.overhead))
        return total

    def _parsed(self, quantities: Mapping[str, Quantity] | None) -> dict[str, N]:
        return {name: self._read(text) for name, text in (quantities or {}).items()}

    def _asked(self, container: Container) -> dict[str, N]:
        return self._parsed(container.resources.requests)

    def _sum(self, ask: Callable[[Container], dict[str, N]]) -> dict[str, N]:
        return sum_of_containers(self.pod, (lambda container: self._with_defaults(ask(container))) if self.non_missing else ask)

    def _with_defaults(self, requested: dict[str, N]) -> dict[str, N]:
        for name, amount in self.non_missing.items():
            requested.setdefault(name, amount)
        return requested

    def _sum_of_largest(self) -> dict[str, N]:
        """Add up, over the containers, the largest of request, allocation and report: releases before 1.37.

        Of the init containers only sidecars are looked up: the others have ended, and cannot be resized.
        """
        statuses = _statuses(self.pod)
        ending = {container.name for container in self.pod.spec.init_containers if not container.is_restartable}

        def largest(container: Container) -> dict[str, N]:
            status = None if container.name in ending else statuses.get(container.name)
            if status is None or status.resources is None:
                return self._asked(container)
            in_force, allocated = self._parsed(status.resources.requests), self._parsed(status.allocated_resources)
            return self._resized(self._asked(container), in_force, allocated)

        return self._sum(largest)

    def _largest_sum(self) -> dict[str, N]:
        """Return the largest of three sums, over the requests, the allocations and the reports: since 1.37.

        A container without a report counts with its request, unless its resize is known to be infeasible.
        """
        whole, statuses = self.pod.status, _statuses(self.pod)

        def allocated(container: Container) -> dict[str, N]:
            status = statuses.get(container.name)
            if status is not None and status.allocated_resources is not None:
                return self._parsed(status.allocated_resources)
            return {} if self._infeasible else self._asked(container)

        def in_force(container: Container) -> dict[str, N]:
            status = statuses.get(container.name)
            if status is not None and status.resources is not None and status.resources.requests is not None:
                return self._parsed(status.resources.requests)
            return allocated(container)

        actual = whole.resources.requests if whole.resources is not None else None
        if self.in_place and whole.allocated_resources is not None and actual is not None:
            sums = self._parsed(actual), self._parsed(whole.allocated_resources)
        else:
            sums = self._sum(in_force), self._sum(allocated)
        return self._resized(self._sum(self._asked), *sums)

    def _pod_level(self) -> dict[str, N]:
        """Return the requests of the pod as a whole; of several for the same resource the largest."""
        whole, status = self.pod.spec.resources, self.pod.status
        assert whole is not None
        requested = self._parsed(whole.requests)
        effective = requested
        if self.use_status and self.in_place and status.resources is not None:
            in_force, allocated = self._parsed(status.resources.requests), self._parsed(status.allocated_resources)
            effective = self._resized(requested, in_force, allocated)
        names = effective if self.whole_pod else requested
        return {name: effective[name] if name in effective else self._read("0") for name in names if is_pod_level_name(name)}

    def _resized(self, requested: dict[str, N], in_force: dict[str, N], allocated: dict[str, N]) -> dict[str, N]:
        """Return the largest of three amounts of each resource. An infeasible request does not count."""
        effective: dict[str, N] = {}
        if not self._infeasible:
            effective.update(requested)
        _raise_to(effective, in_force)
        _raise_to(effective, allocated)
        return effective


def sum_of_containers(pod: Pod, ask: Callable[[Container], dict[str, N]]) -> dict[str, N]:
    """Return the sum over the containers, or the peak while init containers run, whichever is larger.

    Sidecars run beside everything that is started after them, so they count in both.
    """
    total: dict[str, N] = {}
    for container in pod.spec.containers:
        _add(total, ask(container))
    if pod.spec.init_containers:
        sidecars: dict[str, N] = {}
        peak: dict[str, N] = {}
        for container in pod.spec.init_containers:
            requested = ask(container)
            if container.is_restartable:
                _add(total, requested)
                _add(sidecars, requested)
                requested = sidecars
            else:
                _add(requested, sidecars)
            _raise_to(peak, requested)
        _raise_to(total, peak)
    return total


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    return {s.name: s for s in (*pod.status.container_statuses, *pod.status.init_container_statuses)}


def _is_resize_infeasible(pod: Pod) -> bool:
    """Return whether the kubelet refuses a resize. The first pending condition decides, whatever its status."""
    # The first pending condition decides, whatever its status says.
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _add(total: dict[str, N], more: Mapping[str, N]) -> None:
    """Add amounts in place."""
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: dict[str, N], other: Mapping[str, N]) -> None:
    """Raise amounts to those of another map where these are larger, in place."""
    for name, amount in other.items():
        if name not in total:
            total[name] = amount
        elif amount > total[name]:
            # What is compared with a wide amount is made wide itself, and stays so.
            total[name] = amount.beside(total[name]) if isinstance(amount, Amount) else amount


def _malformed_pod(pod: Pod, error: QuantityError) -> MalformedObject:
    """Return the error that names the quantity which cannot be read. It is searched for only when there is one."""
    what = f"pod {pod.key}"
    for path, quantities in _quantity_maps(pod):
        for name, text in quantities.items():
            if not _is_quantity(text):
                return MalformedObject(what, f"{path}.{name}", text, "not a quantity")
    return MalformedObject(what, "resources", error.text, "not a quantity")


def _quantity_maps(pod: Pod) -> list[tuple[str, Mapping[str, Quantity]]]:
    """Return all quantities of a pod with their paths, in the order in which they are reported."""
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
    """Return what pods may request: cpu in thousandths, memory, ephemeral storage and pods (0 if absent), and all scalars.

    Raise `MalformedObject` for a value that is not a quantity. The capacity is never read.
    """
    stated = node.status.allocatable
    try:
        nano = {name: parse(text) for name, text in stated.items()}
    except QuantityError as error:
        name = next(name for name, text in stated.items() if not _is_quantity(text))
        raise MalformedObject(f"node {node.key}", f"status.allocatable.{name}", stated[name], "not a quantity") from error
    for name, amount in nano.items():
        if amount > _limit(name):
            nano[name] = _counted(name, Amount.of(stated[name]))
    return {CPU: 0, MEMORY: 0, EPHEMERAL_STORAGE: 0, PODS: 0, **amounts(nano, pods=True)}


# --- ports ------------------------------------------------------------------------------------------------------------


class HostPort(NamedTuple):
    """A port of the node that a pod takes."""

    ip: str
    protocol: str
    port: int


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports of a pod: those of sidecars first, then those of containers."""
    spec = pod.spec
    sidecars = (container for container in spec.init_containers if container.is_restartable)
    return tuple(
        HostPort(port.host_ip or WILDCARD_IP, port.protocol or "TCP", port.host_port)
        for container in (*sidecars, *spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


def ports_conflict(wanted: HostPort, taken: HostPort) -> bool:
    """Return whether two pods on one node cannot both have their port.

    `0.0.0.0` is every address; others are compared as text.
    """
    if wanted.port <= 0 or wanted.port != taken.port or wanted.protocol != taken.protocol:
        return False
    return wanted.ip == taken.ip or WILDCARD_IP in (wanted.ip, taken.ip)
