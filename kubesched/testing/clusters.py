"""Small random clusters, with some of everything that a decision can depend on. The same `Random` gives the same cluster."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from kubesched.kube.api import Affinity, ContainerPort, Namespace, Node, Pod, Toleration
from kubesched.kube.values import HOSTNAME, ZONE
from kubesched.testing import builders
from kubesched.testing.builders import even, near, taint

NAMESPACES = ("default", "team-a")
_APPS = ("web", "db", "batch")
_TAINTS = (taint("gpu"), taint("soft", "x", "PreferNoSchedule"), taint("down", "", "NoExecute"))
_IMAGES = {"app:latest": 300 << 20, "db:1": 900 << 20, "small:2": 5 << 20}


def namespaces() -> list[Namespace]:
    """Return the namespaces of the pods."""
    return [builders.namespace("default"), builders.namespace("team-a", team="a")]


def random_node(random: Random, name: str) -> Node:
    """Return a node with random labels, resources, taints, images and features."""
    labels = {"disk": random.choice(("ssd", "hdd"))} if random.random() < 0.6 else {}
    if random.random() < 0.3:
        labels["rank"] = str(random.randrange(5))
    return builders.node(
        name,
        cpu=random.choice(("1", "2", "4", "0")) if random.random() < 0.9 else "500m",
        memory=random.choice(("1Gi", "4Gi", "16Gi")),
        pods=random.choice((2, 5, 110)),
        offers={"example.com/gpu": str(random.randrange(4))} if random.random() < 0.4 else None,
        labels=labels,
        zone=random.choice(("a", "b", "c", "")),
        taints=random.sample(_TAINTS, random.choice((0, 0, 0, 1, 2))),
        cordoned=random.random() < 0.1,
        images={image: size for image, size in _IMAGES.items() if random.random() < 0.4},
        features=("UserNamespacesHostNetworkSupport",) if random.random() < 0.2 else (),
    )


def random_pod(random: Random, name: str, *, on: str = "") -> Pod:
    """Return a pod with random requests, affinity, constraints and ports; with `on`, a placed one."""
    app = random.choice(_APPS)
    requests: dict[str, str] = {}
    if random.random() < 0.8:
        requests = {"cpu": random.choice(("100m", "500m", "1")), "memory": random.choice(("64Mi", "512Mi", "1Gi"))}
    if random.random() < 0.15:
        requests["example.com/gpu"] = "1"
    tolerates: list[Toleration] = []
    if random.random() < 0.3:
        tolerates.append(Toleration(operator="Exists"))
    elif random.random() < 0.3:
        tolerates.append(Toleration(key="gpu", operator="Exists", effect="NoSchedule"))
    return builders.pod(
        name,
        namespace=random.choice(NAMESPACES),
        labels={"app": app} if random.random() < 0.9 else {},
        requests=requests,
        image=random.choice(("app", "db:1", "small:2", "unknown")),
        on=on,
        priority=random.choice((None, 0, 10, 100)),
        tolerates=tolerates,
        node_selector={"disk": "ssd"} if random.random() < 0.15 else None,
        affinity=_random_affinity(random, app),
        spread=_random_spread(random, app),
        host_ports=(random.choice((80, 443)),) if random.random() < 0.1 else (),
        deleted_at="2026-01-01T00:00:00Z" if on and random.random() < 0.05 else None,
    )


def disguised(random: Random, pod: Pod) -> Pod:
    """Return another pod with the same demands on a node, and other name, labels, priority, pod affinity and constraints."""
    other = random_pod(random, f"{pod.metadata.name}-disguised")
    own, theirs = pod.spec.affinity or Affinity(), other.spec.affinity or Affinity()
    spec = msgspec.structs.replace(
        pod.spec,
        affinity=msgspec.structs.replace(theirs, node_affinity=own.node_affinity),
        priority=other.spec.priority,
        topology_spread_constraints=other.spec.topology_spread_constraints,
    )
    return msgspec.structs.replace(pod, metadata=other.metadata, spec=spec)


def resized(random: Random, pod: Pod) -> Pod:
    """Return the pod with another image, another container port, and other requests and overhead."""
    other = random_pod(random, pod.metadata.name).spec.containers[0]
    port = ContainerPort(container_port=random.randrange(1, 100))
    containers = tuple(
        msgspec.structs.replace(each, image=other.image, resources=other.resources, ports=(*each.ports, port))
        for each in pod.spec.containers
    )
    overhead = {"cpu": "10m"} if random.random() < 0.5 else {}
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=containers, overhead=overhead))


def _random_affinity(random: Random, app: str) -> dict[str, Any] | None:
    roll = random.random()
    key = random.choice((ZONE, HOSTNAME, "disk"))
    other = {"app": random.choice(_APPS)}
    if roll < 0.1:
        return near(other, key)
    if roll < 0.2:
        return near({"app": app}, key, away=True)
    if roll < 0.3:
        return near(other, key, weight=random.randrange(1, 100), away=random.random() < 0.5)
    if roll < 0.4:
        term = {"matchExpressions": [{"key": "disk", "operator": random.choice(("In", "NotIn")), "values": ["ssd"]}]}
        wish = {
            "weight": random.randrange(1, 100),
            "preference": {"matchExpressions": [{"key": "rank", "operator": "Gt", "values": ["1"]}]},
        }
        required = {"nodeSelectorTerms": [term]}
        return {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [wish],
                **({"requiredDuringSchedulingIgnoredDuringExecution": required} if random.random() < 0.5 else {}),
            }
        }
    return None


def _random_spread(random: Random, app: str) -> list[dict[str, Any]]:
    if random.random() > 0.25:
        return []
    return [
        even({"app": app}, random.choice((ZONE, HOSTNAME)), skew=random.randrange(1, 4), hard=random.random() < 0.5)
        for _ in range(random.randrange(1, 3))
    ]
