"""A plain node and a plain pod: all nodes and pods of the benchmarks are variants of them.

In: a number, and the fields that differ. Out: API objects. The number decides the name and the uid.
"""

from __future__ import annotations

from typing import Any

from kubesched.kube import api
from kubesched.kube.values import HOSTNAME, ZONE

NAMESPACE = "sched-0"
REQUESTS = api.ResourceRequirements(requests={"cpu": "100m", "memory": "500Mi"})


def make_node(i: int, offer: dict[str, api.Quantity], labels: dict[str, str] | None = None) -> api.Node:
    """Return node number i, in one of ten zones."""
    name = f"node-{i:05d}"
    return api.Node(
        metadata=api.ObjectMeta(
            name=name, uid=f"node-uid-{i}", labels={HOSTNAME: name, ZONE: f"zone-{i % 10}", **(labels or {})}
        ),
        spec=api.NodeSpec(),
        status=api.NodeStatus(capacity=offer, allocatable=offer, conditions=(api.NodeCondition(type="Ready", status="True"),)),
    )


def make_pod(
    i: int,
    labels: dict[str, str],
    resources: api.ResourceRequirements = REQUESTS,
    *,
    name: str = "pod",
    owner: tuple[str, str, str] | None = None,
    **spec: Any,
) -> api.Pod:
    """Return pod number i; `owner` is the API version, kind and name of its controller, `spec` more fields of its spec."""
    owners: tuple[api.OwnerReference, ...] = ()
    if owner is not None:
        version, kind, owner_name = owner
        owners = (
            api.OwnerReference(api_version=version, kind=kind, name=owner_name, uid=f"{owner_name}-uid", controller=True),
        )
    return api.Pod(
        metadata=api.ObjectMeta(
            name=f"{name}-{i}", namespace=NAMESPACE, uid=f"{name}-uid-{i}", labels=labels, owner_references=owners
        ),
        spec=api.PodSpec(
            containers=(api.Container(name="pause", image="registry.k8s.io/pause:3.10", resources=resources),),
            scheduler_name="default-scheduler",
            **spec,
        ),
    )
