"""Random clusters for properties of decisions, and things that happen to them."""

from __future__ import annotations

from random import Random

import msgspec

from kubesched.kube.api.node import Node
from kubesched.kube.api.pod import Pod
from kubesched.scheduler.cluster import Store
from kubesched.scheduler.framework.runtime.profile import Profile
from kubesched.testing import clusters
from kubesched.tools.conformance.cases import Cluster


def random_cluster(random: Random) -> tuple[Store, Profile]:
    """Return a store with namespaces and up to eleven nodes, and the default profile on it."""
    cluster = Cluster([])
    for namespace in clusters.namespaces():
        cluster.store.objects.put(namespace)
    for i in range(random.randrange(1, 12)):
        cluster.store.put_node(clusters.random_node(random, f"n{i}"))
    (profile,) = cluster.profiles.values()
    return cluster.store, profile


def named(kind: Pod, name: str) -> Pod:
    """Return another pod of the same template."""
    meta = msgspec.structs.replace(kind.metadata, name=name, uid=f"uid-{name}")
    return msgspec.structs.replace(kind, metadata=meta)


def changed(random: Random, old: Node) -> Node:
    """Return a node with another part, or with everything other than before."""
    new = clusters.random_node(random, old.metadata.name)
    parts = random.choice((("metadata",), ("spec",), ("status",), ("metadata", "spec", "status")))
    return msgspec.structs.replace(old, **{part: getattr(new, part) for part in parts})


def change_something(random: Random, store: Store, turn: int) -> None:
    """Let one thing happen to the cluster."""
    names = list(store.nodes.rows)
    placed = list(store.pods())
    roll = random.random()
    if roll < 0.15 or not names:
        store.put_node(clusters.random_node(random, f"extra-{turn}"))
    elif roll < 0.22 and len(names) > 2:
        store.remove_node(random.choice(names))
    elif roll < 0.5:
        store.put_node(changed(random, store.nodes.objects[store.nodes.rows[random.choice(names)]]))
    elif roll < 0.7 and placed:
        store.remove_pod(random.choice(placed).uid)
    elif roll < 0.8:
        labels = {"team": random.choice("ab")} if random.random() < 0.5 else {}
        for namespace in clusters.namespaces():
            store.objects.put(
                msgspec.structs.replace(namespace, metadata=msgspec.structs.replace(namespace.metadata, labels=labels))
            )
    else:
        store.put_pod(clusters.random_pod(random, f"other-{turn}", on=random.choice(names)))
