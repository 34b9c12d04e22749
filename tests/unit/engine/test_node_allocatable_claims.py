"""Devices that use up a node's own resources (DRANodeAllocatableResources): counted, told, and never shared."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from test_group_claims import ClaimScene, device_claim, made

from kubesched.api.pod import NodeAllocatableResourceClaimStatus, Pod
from kubesched.cluster import PodView
from kubesched.simulator.clock import run_virtually
from kubesched.testing import node

GATE = "DRANodeAllocatableResources=true"
OLD = {"nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "2"}}}
NEW = {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "2"}}}}
BESIDE = {"nodeAllocatableResources": {"memory": {"overhead": {"perPod": "1Gi", "perContainer": "512Mi"}}}}
SHARED = {
    "nodeAllocatableResources": {"cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "2"}}},
    "allowMultipleAllocations": True,
    "capacity": {"cores": {"value": "8"}},
}


class UsesScene(ClaimScene):
    """A scene whose API server keeps what is told about claims."""

    async def patch_pod_status(self, view: PodView, status: Mapping[str, Any]) -> None:
        await super().patch_pod_status(view, status)
        known = self.known.get((Pod, view.key))
        if known is not None and "nodeAllocatableResourceClaimStatuses" in status:
            told = status["nodeAllocatableResourceClaimStatuses"] or ()
            kept = msgspec.convert(told, tuple[NodeAllocatableResourceClaimStatus, ...])
            changed = msgspec.structs.replace(known.status, node_allocatable_resource_claim_statuses=kept)
            self.put(msgspec.structs.replace(known, status=changed))


def slice_of(uses: dict[str, Any], count: int = 2) -> Any:
    spec = {
        "driver": "cpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"d{i}", **uses} for i in range(count)],
    }
    return made("resource.k8s.io/v1", "ResourceSlice", "s", "", spec=spec)


def claiming(name: str, claim: str, cpu: str = "1", **more: Any) -> Any:
    resources = {"requests": {"cpu": cpu}, "claims": [{"name": "c"}]}
    spec = {
        "schedulerName": "default-scheduler",
        "containers": [{"name": "main", "image": "i", "resources": resources}],
        "resourceClaims": [{"name": "c", "resourceClaimName": claim}],
        **more,
    }
    return made("v1", "Pod", name, spec=spec)


def played(*objects: Any, gates: str, release: tuple[int, int] = (1, 37)) -> UsesScene:
    async def main() -> UsesScene:
        scene = UsesScene(*objects, gates=gates, release=release)
        await scene.settle(5)
        return scene

    return run_virtually(main())


CLAIMS = (device_claim("a"), device_claim("b"))
PODS = (claiming("p1", "a"), claiming("p2", "b"))


@pytest.mark.parametrize(("release", "uses"), [((1, 36), OLD), ((1, 37), NEW)], ids=["1.36", "1.37"])
@pytest.mark.parametrize("gates", ["", GATE])
def test_what_devices_use_of_a_node_is_counted(release: tuple[int, int], uses: dict[str, Any], gates: str) -> None:
    scene = played(node("n1", cpu="5"), slice_of(uses), *CLAIMS, *PODS, gates=gates, release=release)
    assert len(scene.bound) == (1 if gates else 2)
    if gates:
        (name,) = scene.bound
        (told,) = scene.statuses[name]["nodeAllocatableResourceClaimStatuses"]
        assert (told["resourceClaimName"], *told["containers"]) == ("a" if name == "p1" else "b", "main")
        amounts = told["resources"] if release == (1, 36) else {each["name"]: each["quantity"] for each in told["mapping"]}
        assert amounts == {"cpu": "2"}
        (other,) = {"p1", "p2"} - {name}
        assert scene.said(other).startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert scene.engine.store.snapshot().requested(0).tolist() == [3000]


def test_an_overhead_counts_for_the_pod_and_for_each_container() -> None:
    scene = played(node("n1", memory="3Gi"), slice_of(BESIDE), *CLAIMS, *PODS, gates=GATE)
    assert len(scene.bound) == 2
    assert scene.engine.store.snapshot().requested(1).tolist() == [3 * 1024**3]
    (told,) = scene.statuses["p1"]["nodeAllocatableResourceClaimStatuses"]
    assert list(told["overhead"]) == [{"name": "memory", "perPod": "1Gi", "perContainer": "512Mi"}]


def test_what_is_taken_of_a_capacity_is_multiplied() -> None:
    claim = msgspec.to_builtins(device_claim("a"))
    claim["spec"]["devices"]["requests"][0]["exactly"]["capacity"] = {"requests": {"cores": "3"}}
    wanted = made("resource.k8s.io/v1", "ResourceClaim", "a", spec=claim["spec"])
    scene = played(node("n1", cpu="8"), slice_of(SHARED, 1), wanted, claiming("p1", "a"), gates=GATE)
    assert scene.bound == {"p1": "n1"}
    assert scene.engine.store.snapshot().requested(0).tolist() == [1000 + 3 * 2000]


def test_a_claim_that_stands_for_cpus_belongs_to_one_pod() -> None:
    async def main() -> None:
        scene = UsesScene(node("n1", cpu="16"), slice_of(NEW), CLAIMS[0], claiming("p1", "a"), gates=GATE, release=(1, 37))
        await scene.settle(5)
        scene.put(claiming("p2", "a"))
        await scene.settle(5)
        assert scene.bound == {"p1": "n1"}
        text = "node allocatable resource claim a has a mapped device and cannot be shared across pods"
        assert text in scene.said("p2")

    run_virtually(main())


def test_what_the_pod_asks_for_as_a_whole_must_cover_its_claims() -> None:
    small = claiming("p1", "a", resources={"requests": {"cpu": "2"}})
    scene = played(node("n1", cpu="16"), slice_of(NEW), CLAIMS[0], small, gates=GATE)
    assert scene.bound == {}
    text = "pod level request for cpu is insufficient to cover the aggregated container and node-allocatable DRA requests"
    assert text in scene.said("p1")


def test_pods_of_lower_priority_make_room_for_what_devices_use() -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    low = made("v1", "Pod", "low", spec={"nodeName": "n1", "priority": -1, "containers": [container]})
    scene = played(node("n1", cpu="4"), low, slice_of(NEW), CLAIMS[0], claiming("p1", "a"), gates=GATE)
    assert scene.deleted == ["low"]
    assert scene.bound == {"p1": "n1"}
