"""The requests of a pod as old releases compute them.

    to fit:    max(sum of containers, largest init container), plus overhead behind the gate PodOverhead
    to score:  the sum of containers, where one without cpu or memory counts as 100m and 200Mi; init containers do not count

There are no sidecars and no pod-level resources. The amounts of each container are rounded before they are added. Pods on nodes
count as today, because the columns are shared, unless they were stored as `as_placed` returns them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.errors import MalformedObject
from kubesched.kube.api import (
    CPU,
    DEFAULT_CPU_MILLI,
    DEFAULT_MEMORY_BYTES,
    MEMORY,
    WILDCARD_IP,
    Container,
    HostPort,
    Pod,
    Quantity,
    ResourceRequirements,
    requests,
)
from kubesched.kube.values import QuantityError, parse
from kubesched.scheduler.cluster import PodView

Amounts = dict[str, int]


@dataclass(frozen=True, slots=True)
class Asked:
    """A pod's requests by resource name: cpu in thousandths, others in whole units."""

    fitting: Mapping[str, int]
    """What must fit."""
    scoring: Mapping[str, int]
    """What counts for scores."""
    overhead: Mapping[str, int]
    """The pod's overhead, to add to `scoring`; `fitting` includes it."""
    limits: Mapping[str, int]
    """Like `fitting`, from limits."""


def asked(pod: PodView, *, overhead: bool) -> Asked:
    """Return the requests of a pod; `overhead` is the gate PodOverhead."""
    found: Asked = pod.template.remember(("legacy.asked", overhead), lambda: _read(pod.pod, overhead))
    return found


def host_ports(pod: PodView) -> tuple[HostPort, ...]:
    """Return the host ports of a pod's containers."""
    ports: tuple[HostPort, ...] = pod.template.remember(
        "legacy.ports",
        lambda: tuple(
            HostPort(port.host_ip or WILDCARD_IP, port.protocol or "TCP", port.host_port)
            for container in pod.pod.spec.containers
            for port in container.ports
            if port.host_port > 0
        ),
    )
    return ports


def is_best_effort(pod: Pod) -> bool:
    """Return whether a pod has no request and no limit for cpu and memory."""
    return not any(
        name in (CPU, MEMORY) and parse(amount) > 0
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for amounts in (container.resources.requests, container.resources.limits)
        for name, amount in amounts.items()
    )


def as_placed(pod: Pod, *, overhead: bool) -> Pod:
    """Return a pod that uses as much of its node today as this pod did then: the requests of its containers.

    Init containers did not count for a placed pod, and resizes did not exist.
    """
    spec, status = pod.spec, pod.status
    containers = tuple(
        replace(
            container,
            resources=ResourceRequirements(requests=_whole(container.resources.requests), limits=container.resources.limits),
        )
        for container in spec.containers
    )
    return replace(
        pod,
        spec=replace(
            spec, containers=containers, init_containers=(), resources=None, overhead=_whole(spec.overhead) if overhead else {}
        ),
        status=replace(
            status,
            container_statuses=(),
            init_container_statuses=(),
            resources=None,
            allocated_resources=None,
            node_allocatable_resource_claim_statuses=(),
        ),
    )


def _whole(quantities: Mapping[str, Quantity]) -> dict[str, Quantity]:
    return {name: f"{amount}m" if name == CPU else str(amount) for name, amount in _counted(quantities).items()}


def _read(pod: Pod, overhead: bool) -> Asked:
    spec = pod.spec
    try:
        extra = _counted(spec.overhead) if overhead and spec.overhead else {}
        fitting = _largest(
            [_counted(c.resources.requests) for c in spec.containers],
            [_counted(c.resources.requests) for c in spec.init_containers],
        )
        limits = _largest(
            [_counted(c.resources.limits) for c in spec.containers],
            [_counted(c.resources.limits) for c in spec.init_containers],
        )
        scoring = _sum(_non_zero(c) for c in spec.containers)
    except QuantityError as error:
        raise MalformedObject(f"pod {pod.key}", "spec.containers.resources", error.text, "not a quantity") from error
    return Asked(_sum((fitting, extra)), scoring, extra, limits)


def _counted(quantities: Mapping[str, Quantity]) -> Amounts:
    return requests.amounts({name: parse(text) for name, text in quantities.items()})


def _non_zero(container: Container) -> Amounts:
    return {CPU: DEFAULT_CPU_MILLI, MEMORY: DEFAULT_MEMORY_BYTES, **_counted(container.resources.requests)}


def _largest(together: Iterable[Amounts], one_by_one: Iterable[Amounts]) -> Amounts:
    """Return, for each resource, the larger of the sum of `together` and each of `one_by_one`."""
    total = _sum(together)
    for alone in one_by_one:
        total.update({name: amount for name, amount in alone.items() if amount > total.get(name, 0)})
    return total


def _sum(parts: Iterable[Mapping[str, int]]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total
