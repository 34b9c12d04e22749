"""What a pod asks for, as the old releases read it.

They knew neither sidecars nor pod-level resources, and overhead only behind a gate: a container that restarts among the
init containers was an init container like any other. Each container's amounts were rounded on their own before they
were added. What is already on the nodes is not read here: those columns are shared with everybody and count as today,
unless whoever fills them puts pods in as `as_placed` sees them.
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
    """A pod's wishes by resource name: cpu in thousandths, the rest in whole units."""

    fitting: Mapping[str, int]
    """Containers together or the largest init container, whichever is more: what must fit."""
    scoring: Mapping[str, int]
    """Containers alone, where one that asks for no cpu or memory counts as 100m and 200Mi: what is scored with."""
    overhead: Mapping[str, int]
    """What comes on top of `scoring`; it is in `fitting` already."""
    limits: Mapping[str, int]
    """As `fitting`, from limits instead of requests."""


def asked(pod: PodView, *, overhead: bool) -> Asked:
    """Return what a pod asks for; `overhead` is the gate PodOverhead."""
    found: Asked = pod.template.remember(("legacy.asked", overhead), lambda: _read(pod.pod, overhead))
    return found


def host_ports(pod: PodView) -> tuple[HostPort, ...]:
    """Return the ports of the node that a pod's containers want."""
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
    """Return whether no container of a pod asks for, or is limited in, cpu or memory."""
    return not any(
        name in (CPU, MEMORY) and parse(amount) > 0
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for amounts in (container.resources.requests, container.resources.limits)
        for name, amount in amounts.items()
    )


def as_placed(pod: Pod, *, overhead: bool) -> Pod:
    """Return a pod that uses today what this one used then, once it was placed: what its containers ask for, no more.

    Init containers were left out: they were done soon. What a container really has, after a resize, was not known.
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
    """Return the larger of both by name; what init containers ask nothing of, only containers can name."""
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
