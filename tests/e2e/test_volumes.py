"""Volumes over real HTTP: the program, the embedded API server and its volume controller, from claims to bound pods.

Two local volumes are given to the pods that fit them, the smaller one first; a claim of a class with a provisioner has
a volume made on the node that was chosen; a pod whose claim nobody can serve waits, and goes on when a volume appears.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from control_planes import a_node
from in_process import scheduling, until_has

from kubesched.embedded import ObjectStore
from kubesched.embedded.controllers import INSTANT, FakeCluster

HOSTNAME = "kubernetes.io/hostname"
SELECTED = "volume.kubernetes.io/selected-node"


def prepared() -> ObjectStore:
    """A store with two nodes, a class of local volumes and a class with a provisioner."""
    store = ObjectStore()
    for name in ("n1", "n2"):
        store.create("nodes", a_node(name, "8"))
    for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "csi.example.com")):
        store.create(
            "storageclasses",
            {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"},
        )
    return store


def a_volume(name: str, size: str, node: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}]
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }


def a_claim(name: str, size: str, class_name: str = "local") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "resources": {"requests": {"storage": size}},
        },
    }


def a_pod(name: str, *claims: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "volumes": [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims],
            "containers": [{"name": "c", "image": "i"}],
        },
    }


@contextlib.asynccontextmanager
async def running(store: ObjectStore) -> AsyncIterator[None]:
    world = FakeCluster(store, INSTANT)
    world.start()
    try:
        async with scheduling(store):
            yield
    finally:
        world.stop()


async def test_local_volumes_are_given_to_the_claims_they_fit() -> None:
    store = prepared()
    for obj in (a_volume("small", "1Gi", "n2"), a_volume("big", "9Gi", "n2"), a_volume("elsewhere", "5Gi", "n1")):
        store.create("persistentvolumes", obj)
    store.create("persistentvolumeclaims", a_claim("first", "6Gi"))
    store.create("persistentvolumeclaims", a_claim("second", "1Gi"))
    async with running(store):
        store.create("pods", a_pod("user", "first", "second"))
        pod = await until_has(store, "spec.nodeName", "pods", "user")
        first = store.get("persistentvolumeclaims", "first", "default")
        second = store.get("persistentvolumeclaims", "second", "default")
    assert pod["spec"]["nodeName"] == "n2"
    assert (first["spec"]["volumeName"], second["spec"]["volumeName"]) == ("big", "small")
    assert store.get("persistentvolumes", "big")["spec"]["claimRef"]["uid"] == first["metadata"]["uid"]
    assert store.get("persistentvolumes", "big")["spec"]["local"] == {"path": "/disk"}
    assert store.get("persistentvolumes", "elsewhere")["spec"].get("claimRef") is None


async def test_a_volume_is_made_where_its_pod_goes() -> None:
    store = prepared()
    store.create("persistentvolumeclaims", a_claim("wanted", "3Gi", "made"))
    async with running(store):
        store.create("pods", a_pod("user", "wanted"))
        pod = await until_has(store, "spec.nodeName", "pods", "user")
        claim = store.get("persistentvolumeclaims", "wanted", "default")
    assert claim["metadata"]["annotations"][SELECTED] == pod["spec"]["nodeName"]
    assert store.get("persistentvolumes", claim["spec"]["volumeName"])["spec"]["claimRef"]["name"] == "wanted"


async def test_a_pod_waits_for_a_volume_and_goes_on_when_one_appears() -> None:
    store = prepared()
    store.create("persistentvolumeclaims", a_claim("wanted", "3Gi"))
    async with running(store):
        store.create("pods", a_pod("user", "wanted"))
        waiting = await until_has(store, "status.conditions", "pods", "user")
        (condition,) = [each for each in waiting["status"]["conditions"] if each["type"] == "PodScheduled"]
        assert condition["message"].startswith(
            "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
        )
        store.create("persistentvolumes", a_volume("late", "3Gi", "n1"))
        pod = await until_has(store, "spec.nodeName", "pods", "user")
    assert pod["spec"]["nodeName"] == "n1"
