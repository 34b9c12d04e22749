"""The plain node and the plain pod that all kinds of benchmark pods are made from.

In: a number, and what is special. Out: API objects. Names and uids follow from the number.
"""

from __future__ import annotations

from typing import Any

from kubesched.kube.api import (
    Container,
    Node,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodSpec,
    Quantity,
    ResourceRequirements,
)
from kubesched.kube.values import HOSTNAME, ZONE

NAMESPACE = "sched-0"
ASKED = ResourceRequirements(requests={"cpu": "100m", "memory": "500Mi"})


def make_node(i: int, offer: dict[str, Quantity], labels: dict[str, str] | None = None) -> Node:
    """Return node number i, in one of ten zones."""
    name = f"node-{i:05d}"
    return Node(
        metadata=ObjectMeta(name=name, uid=f"node-uid-{i}", labels={HOSTNAME: name, ZONE: f"zone-{i % 10}", **(labels or {})}),
        spec=NodeSpec(),
        status=NodeStatus(capacity=offer, allocatable=offer, conditions=(NodeCondition(type="Ready", status="True"),)),
    )


def make_pod(
    i: int,
    labels: dict[str, str],
    resources: ResourceRequirements = ASKED,
    *,
    name: str = "pod",
    owner: tuple[str, str, str] | None = None,
    **spec: Any,
) -> Pod:
    """Return pod number i; `owner` is the API version, kind and name of its controller, `spec` more fields of its spec."""
    owners: tuple[OwnerReference, ...] = ()
    if owner is not None:
        version, kind, owner_name = owner
        owners = (OwnerReference(api_version=version, kind=kind, name=owner_name, uid=f"{owner_name}-uid", controller=True),)
    return Pod(
        metadata=ObjectMeta(
            name=f"{name}-{i}", namespace=NAMESPACE, uid=f"{name}-uid-{i}", labels=labels, owner_references=owners
        ),
        spec=PodSpec(
            containers=(Container(name="pause", image="registry.k8s.io/pause:3.10", resources=resources),),
            scheduler_name="default-scheduler",
            **spec,
        ),
    )
