"""Short builders for API objects, so that a test shows only what matters.

node("a", cpu="2", taints=[taint("gpu")])        pod("web", requests={"cpu": "500m"}, tolerates=[taint("gpu")])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubesched.kube.api import (
    Affinity,
    Container,
    ContainerImage,
    ContainerPort,
    Namespace,
    Node,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodCondition,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    codec,
)
from kubesched.kube.values import HOSTNAME, ZONE


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Taint:
    """Return a taint."""
    return Taint(key=key, value=value, effect=effect)


def tolerating(what: Taint) -> Toleration:
    """Return the toleration of exactly this taint."""
    return Toleration(key=what.key, operator="Equal", value=what.value, effect=what.effect)


def node(
    name: str = "node-1",
    *,
    cpu: str = "4",
    memory: str = "32Gi",
    pods: int = 110,
    offers: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    zone: str = "",
    taints: Sequence[Taint] = (),
    cordoned: bool = False,
    images: Mapping[str, int] | None = None,
    features: Sequence[str] = (),
) -> Node:
    """Return a ready node with a hostname label, and a zone label if `zone` is given."""
    all_labels = {HOSTNAME: name, **({ZONE: zone} if zone else {}), **(labels or {})}
    offer: dict[str, Any] = {"cpu": cpu, "memory": memory, "pods": str(pods), **(offers or {})}
    return Node(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", labels=all_labels),
        spec=NodeSpec(unschedulable=cordoned, taints=tuple(taints)),
        status=NodeStatus(
            capacity=offer,
            allocatable=offer,
            conditions=(NodeCondition(type="Ready", status="True"),),
            images=tuple(ContainerImage(names=(image,), size_bytes=size) for image, size in (images or {}).items()),
            declared_features=tuple(features),
        ),
    )


def pod(
    name: str = "pod-1",
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    image: str = "app",
    on: str = "",
    priority: int | None = None,
    tolerates: Iterable[Taint | Toleration] = (),
    node_selector: Mapping[str, str] | None = None,
    affinity: Mapping[str, Any] | None = None,
    spread: Sequence[Mapping[str, Any]] = (),
    host_ports: Iterable[int] = (),
    gates: Sequence[str] = (),
    nominated: str = "",
    scheduler: str = "default-scheduler",
    preemption_policy: str = "",
    deleted_at: str | None = None,
    conditions: Sequence[PodCondition] = (),
    start_time: str | None = None,
    uid: str = "",
    volumes: Sequence[Mapping[str, Any]] = (),
) -> Pod:
    """Return a pod with one container. `affinity`, `spread` and `volumes` are written as on the wire."""
    raw = codec.convert({"spec": {"volumes": list(volumes)}}, Pod) if volumes else None
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid or f"uid-{namespace}-{name}",
            labels=dict(labels or {}),
            deletion_timestamp=deleted_at,
        ),
        spec=PodSpec(
            containers=(
                Container(
                    name="main",
                    image=image,
                    resources=ResourceRequirements(requests=dict(requests or {})),
                    ports=tuple(ContainerPort(container_port=p, host_port=p) for p in host_ports),
                ),
            ),
            node_name=on,
            priority=priority,
            tolerations=tuple(t if isinstance(t, Toleration) else tolerating(t) for t in tolerates),
            node_selector=dict(node_selector) if node_selector is not None else None,
            affinity=codec.convert(dict(affinity), Affinity) if affinity is not None else None,
            topology_spread_constraints=tuple(codec.convert(dict(c), TopologySpreadConstraint) for c in spread),
            scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates),
            preemption_policy=preemption_policy,
            volumes=raw.spec.volumes if raw is not None else (),
            scheduler_name=scheduler,
        ),
        status=PodStatus(nominated_node_name=nominated, conditions=tuple(conditions), start_time=start_time),
    )


def namespace(name: str, **labels: str) -> Namespace:
    """Return a namespace with labels."""
    return Namespace(metadata=ObjectMeta(name=name, labels=dict(labels)))


def near(labels: Mapping[str, str], key: str = ZONE, *, weight: int = 0, away: bool = False) -> dict[str, Any]:
    """Return a pod affinity to pods with these labels: required, or preferred with a weight; `away`: an anti-affinity."""
    term = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": key}
    if weight:
        inner: dict[str, Any] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]
        }
    else:
        inner = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"podAntiAffinity" if away else "podAffinity": inner}


def even(labels: Mapping[str, str], key: str = ZONE, *, skew: int = 1, hard: bool = True) -> dict[str, Any]:
    """Return a topology spread constraint over pods with these labels."""
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(labels)},
    }
