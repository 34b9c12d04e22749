"""Gangs over real HTTP: the program against the embedded API server, in both ways that gangs come."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from control_planes import a_node
from in_process import scheduling

from kubesched.embedded import ObjectStore
from kubesched.scheduler import config

LABEL = "scheduling.x-k8s.io/pod-group"
BOTH = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: Coscheduling}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
"""
CRD = {
    "metadata": {"name": "podgroups.scheduling.x-k8s.io"},
    "spec": {
        "group": "scheduling.x-k8s.io",
        "scope": "Namespaced",
        "names": {
            "plural": "podgroups",
            "singular": "podgroup",
            "kind": "PodGroup",
            "listKind": "PodGroupList",
            "shortNames": ["pg", "pgs"],
        },
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def a_pod(name: str, group: str = "", label: str = "", cpu: str = "1") -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return {"metadata": {"name": name, "namespace": "default", "labels": {LABEL: label} if label else {}}, "spec": spec}


def running(
    store: ObjectStore, asked: str = "GenericWorkload=true,GangScheduling=true", release: tuple[int, int] = (1, 36)
) -> contextlib.AbstractAsyncContextManager[None]:
    return scheduling(store, config.Gates.parse(asked, emulated=release), BOTH)


async def condition(
    store: ObjectStore, plural: str, name: str, kind: str, status: str, seconds: float = 20.0
) -> dict[str, Any]:
    """Wait until an object has a condition with a status; return it."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        found = store.get(plural, name, "default").get("status", {}).get("conditions", [])
        for each in found:
            if each["type"] == kind and each["status"] == status:
                return dict(each)
        assert asyncio.get_running_loop().time() < deadline, f"{plural} {name} is not {kind}={status}: {found}"
        await asyncio.sleep(0.02)


async def bound(store: ObjectStore, *names: str, seconds: float = 20.0) -> list[str]:
    """Wait until pods have nodes; return these."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        nodes = [store.get("pods", name, "default")["spec"].get("nodeName", "") for name in names]
        if all(nodes):
            return nodes
        assert asyncio.get_running_loop().time() < deadline, f"not bound: {dict(zip(names, nodes, strict=True))}"
        await asyncio.sleep(0.02)


async def test_pod_groups_and_coscheduling_side_by_side() -> None:
    store = ObjectStore()
    store.create("customresourcedefinitions", CRD)
    store.create("nodes", a_node("n1", "2"))
    async with running(store):
        store.create(
            "podgroups.scheduling.k8s.io",
            {"metadata": {"name": "inside", "namespace": "default"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}},
        )
        store.create(
            "podgroups.scheduling.x-k8s.io",
            {
                "apiVersion": "scheduling.x-k8s.io/v1alpha1",
                "kind": "PodGroup",
                "metadata": {"name": "outside", "namespace": "default"},
                "spec": {"minMember": 3},
            },
        )
        for i in range(3):
            store.create("pods", a_pod(f"in-{i}", group="inside"))
            store.create("pods", a_pod(f"out-{i}", label="outside"))
        told = await condition(store, "podgroups.scheduling.k8s.io", "inside", "PodGroupScheduled", "False")
        assert (told["reason"], told["message"]) == ("Unschedulable", "pod group is unschedulable")
        said = await condition(store, "pods", "out-0", "PodScheduled", "False")
        assert said["message"] == (
            "podGroup default/outside needs 3 members and 2 fit; out-2: 0/1 nodes are available: 1 Insufficient cpu"
        )
        store.create("nodes", a_node("n2", "1"))
        store.create("nodes", a_node("n3", "3"))
        await bound(store, *(f"in-{i}" for i in range(3)), *(f"out-{i}" for i in range(3)))
        told = await condition(store, "podgroups.scheduling.k8s.io", "inside", "PodGroupScheduled", "True")
        assert (told["reason"], told.get("message", ""), told["observedGeneration"]) == ("Scheduled", "", 1)


async def test_room_is_made_for_a_group_of_1_37_as_a_whole() -> None:
    store = ObjectStore()
    store.create("priorityclasses", {"metadata": {"name": "high"}, "value": 10})
    for name in ("n1", "n2"):
        store.create("nodes", a_node(name, "1"))
        low = a_pod(f"low-{name}")
        low["spec"]["terminationGracePeriodSeconds"] = 0  # there is no kubelet that would end it
        store.create("pods", low)
    async with running(store, "GenericWorkload=true", (1, 37)):
        await bound(store, "low-n1", "low-n2")
        policy = {"priorityClassName": "high", "schedulingPolicy": {"gang": {"minCount": 2}}}
        store.create("podgroups.scheduling.k8s.io", {"metadata": {"name": "g", "namespace": "default"}, "spec": policy})
        for i in range(2):
            member = a_pod(f"g-{i}", group="g")
            member["spec"]["priorityClassName"] = "high"
            store.create("pods", member)
        assert sorted(await bound(store, "g-0", "g-1")) == ["n1", "n2"]
        told = await condition(store, "podgroups.scheduling.k8s.io", "g", "PodGroupInitiallyScheduled", "True")
        assert told["reason"] == "Scheduled"
        assert {pod["metadata"]["name"] for pod in store.list("pods").items} == {"g-0", "g-1"}


def add_device(store: ObjectStore, node: str) -> None:
    store.create(
        "resourceslices",
        {
            "metadata": {"name": f"s-{node}"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "d0"}],
            },
        },
    )


async def test_a_gang_gets_devices_for_all_its_members_or_for_none() -> None:
    store = ObjectStore()
    store.create("deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}})
    for name in ("n1", "n2"):
        store.create("nodes", a_node(name, "4"))
        add_device(store, name)
    async with running(store):
        store.create(
            "podgroups.scheduling.k8s.io",
            {"metadata": {"name": "g", "namespace": "default"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}},
        )
        for i in range(3):
            exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
            store.create(
                "resourceclaims",
                {
                    "metadata": {"name": f"c{i}", "namespace": "default"},
                    "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
                },
            )
            member = a_pod(f"p{i}", group="g")
            member["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": f"c{i}"}]
            store.create("pods", member)
        await condition(store, "podgroups.scheduling.k8s.io", "g", "PodGroupScheduled", "False")
        assert not any(store.get("resourceclaims", f"c{i}", "default").get("status") for i in range(3))
        store.create("nodes", a_node("n3", "4"))
        add_device(store, "n3")
        nodes = await bound(store, "p0", "p1", "p2", seconds=40)
        assert sorted(nodes) == ["n1", "n2", "n3"]
        pools = [
            store.get("resourceclaims", f"c{i}", "default")["status"]["allocation"]["devices"]["results"][0]["pool"]
            for i in range(3)
        ]
        assert pools == nodes
