"""Devices over real HTTP: the program against the embedded API server, from claims to what their status says.

A claim gets its devices before its pod is bound; an extended resource becomes a claim of its own; a pod that finds no
devices waits, and goes on when another claim gives its devices back.
"""

from __future__ import annotations

from typing import Any

from control_planes import a_node
from in_process import scheduling, until_has

from kubesched.embedded import ObjectStore

DRIVER = "gpu.example.com"
GPU = "example.com/gpu"


def prepared() -> ObjectStore:
    """A store with two nodes, two devices on each, and a class that also serves an extended resource."""
    store = ObjectStore()
    for name in ("n1", "n2"):
        store.create("nodes", a_node(name, "8"))
        store.create(
            "resourceslices",
            {
                "metadata": {"name": f"s-{name}"},
                "spec": {
                    "driver": DRIVER,
                    "nodeName": name,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": f"d{i}", "attributes": {"model": {"string": "a100"}}} for i in range(2)],
                },
            },
        )
    store.create(
        "deviceclasses",
        {
            "metadata": {"name": "gpu"},
            "spec": {
                "extendedResourceName": GPU,
                "selectors": [{"cel": {"expression": f'device.attributes["{DRIVER}"].model == "a100"'}}],
            },
        },
    )
    return store


def a_claim(name: str, count: int) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }


def a_pod(name: str, claim: str | None = None, **requests: str) -> dict[str, Any]:
    claims = [{"name": "c", "resourceClaimName": claim}] if claim else []
    amounts = {key.replace("_", "/"): value for key, value in requests.items()}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "resourceClaims": claims,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}],
        },
    }


async def test_a_claim_is_allocated_and_reserved_before_its_pod_is_bound() -> None:
    store = prepared()
    store.create("resourceclaims", a_claim("wanted", 2))
    async with scheduling(store):
        store.create("pods", a_pod("user", "wanted"))
        pod = await until_has(store, "spec.nodeName", "pods", "user")
        claim = store.get("resourceclaims", "wanted", "default")
    status = claim["status"]
    assert [result["device"] for result in status["allocation"]["devices"]["results"]] == ["d0", "d1"]
    assert {result["pool"] for result in status["allocation"]["devices"]["results"]} == {pod["spec"]["nodeName"]}
    assert [(consumer["resource"], consumer["name"], consumer["uid"]) for consumer in status["reservedFor"]] == [
        ("pods", "user", pod["metadata"]["uid"])
    ]
    assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert status["allocation"]["allocationTimestamp"]


async def test_a_pod_waits_for_devices_and_goes_on_when_some_are_given_back() -> None:
    store = prepared()
    for name in ("one", "two", "three"):
        store.create("resourceclaims", a_claim(name, 2))
    async with scheduling(store):
        for name in ("one", "two"):
            store.create("pods", a_pod(name, name))
            await until_has(store, "spec.nodeName", "pods", name)
        store.create("pods", a_pod("three", "three"))
        waiting = await until_has(store, "status.conditions", "pods", "three")
        (condition,) = [each for each in waiting["status"]["conditions"] if each["type"] == "PodScheduled"]
        assert condition["message"].startswith("0/2 nodes are available: 2 cannot allocate all claims.")
        freed = store.get("resourceclaims", "one", "default")
        store.update("resourceclaims", {**freed, "status": {}}, subresource="status")
        pod = await until_has(store, "spec.nodeName", "pods", "three")
        assert pod["spec"]["nodeName"] == store.get("pods", "one", "default")["spec"]["nodeName"]


async def test_an_extended_resource_becomes_a_claim() -> None:
    store = prepared()
    async with scheduling(store):
        store.create("pods", a_pod("user", **{GPU.replace("/", "_"): "2"}))
        pod = await until_has(store, "spec.nodeName", "pods", "user")
    told = pod["status"]["extendedResourceClaimStatus"]
    claim = store.get("resourceclaims", told["resourceClaimName"], "default")
    assert claim["metadata"]["name"].startswith("user-extended-resources-")
    assert len(claim["status"]["allocation"]["devices"]["results"]) == 2
    assert told["requestMappings"] == [{"containerName": "c", "resourceName": GPU, "requestName": "container-0-request-0"}]
