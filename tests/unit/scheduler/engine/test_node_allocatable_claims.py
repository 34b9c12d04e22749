"""Devices that use up a node's own resources (DRANodeAllocatableResources): counted, told, and never shared."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from test_group_claims import ClaimScene, device_claim, made

from kubesched.kube.api.pod import NodeAllocatableResourceClaimStatus, Pod
from kubesched.scheduler.cluster import PodView
from kubesched.testing import node
from kubesched.tools.simulation.clock import run_virtually

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


def test_what_the_pod_may_use_as_a_whole_must_cover_its_claims() -> None:
    spec = msgspec.to_builtins(claiming("p1", "a", resources={"limits": {"cpu": "4"}}, overhead={"cpu": "9"}).spec)
    spec["containers"][0]["resources"]["limits"] = {"cpu": "3"}
    small = made("v1", "Pod", "p1", spec=spec)
    scene = played(node("n1", cpu="16"), slice_of(NEW), CLAIMS[0], small, gates=GATE)
    text = "pod level limit for cpu is insufficient to cover the limit and DRA overhead for container main"
    assert scene.said("p1").startswith(f"0/1 nodes are available: 1 {text}")
    pages = {"nodeAllocatableResources": {"hugepages-2Mi": {"mapping": {"deviceMultiplier": "4Mi"}}}}
    whole = {"limits": {"hugepages-2Mi": "2Mi"}}
    scene = played(node("n1"), slice_of(pages), CLAIMS[0], claiming("p1", "a", resources=whole), gates=GATE)
    text = "pod level limit for hugepages-2Mi is insufficient to cover the aggregated container and node-allocatable DRA limits"
    assert scene.said("p1").startswith(f"0/1 nodes are available: 1 {text}")


def test_pods_of_lower_priority_make_room_for_what_devices_use() -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    low = made("v1", "Pod", "low", spec={"nodeName": "n1", "priority": -1, "containers": [container]})
    scene = played(node("n1", cpu="4"), low, slice_of(NEW), CLAIMS[0], claiming("p1", "a"), gates=GATE)
    assert scene.deleted == ["low"]
    assert scene.bound == {"p1": "n1"}


def taken(name: str, device: str, where: str = "n1", user: str = "") -> Any:
    """Return a claim that has a device on n1, can be used on one node, and is reserved for a pod."""
    given = {"request": "r", "driver": "cpu.example.com", "pool": "n1", "device": device}
    fields = [{"key": "metadata.name", "operator": "In", "values": [where]}]
    status: dict[str, Any] = {
        "allocation": {
            "devices": {"results": [given]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
        }
    }
    if user:
        status["reservedFor"] = [{"resource": "pods", "name": user, "uid": user}]
    return msgspec.convert({**msgspec.to_builtins(device_claim(name)), "status": status}, type(device_claim(name)))


NOT_SHARED = "node allocatable resource claim a has a mapped device and cannot be shared across pods"
NOT_HERE = "resourceclaim not available on the node"


@pytest.mark.parametrize(
    ("claims", "cpu", "said"),
    [
        ((taken("a", "d0", user="other"), taken("b", "d1", where="n2")), "1", NOT_SHARED),
        ((taken("a", "d0", where="n2", user="other"), taken("b", "d1")), "1", NOT_HERE),
        ((taken("a", "d0", where="n2"), device_claim("b", count=9)), "1", "cannot allocate all claims"),
        ((taken("a", "d0", user="other"), device_claim("b", count=9)), "1", NOT_SHARED),
        ((taken("a", "d0", where="n2"), device_claim("b")), "9", "Insufficient cpu"),
    ],
    ids=["shared, elsewhere", "shared and elsewhere", "none left, elsewhere", "shared, none left", "too little, elsewhere"],
)
def test_refusals_come_in_the_reference_s_order(claims: tuple[Any, Any], cpu: str, said: str) -> None:
    both = claiming("p1", "a", cpu)
    entries = [{"name": "c", "resourceClaimName": "a"}, {"name": "e", "resourceClaimName": "b"}]
    asking = made("v1", "Pod", "p1", spec={**msgspec.to_builtins(both.spec), "resourceClaims": entries})
    scene = played(node("n1", cpu="10"), slice_of(NEW), *claims, asking, gates=GATE)
    assert scene.said("p1").startswith(f"0/1 nodes are available: 1 {said}")


@pytest.mark.parametrize(
    ("users", "said"),
    [
        (["o1"], "node allocatable resource claim a is already used by another pod"),
        (["o1", "o2"], "node allocatable resource claim a shared by multiple pods"),
        ([], ""),
    ],
)
def test_in_1_36_pods_on_the_node_tell_who_uses_a_claim(users: list[str], said: str) -> None:
    told = {
        "nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "a", "containers": ["c"], "resources": {"cpu": "1"}}]
    }
    others = [made("v1", "Pod", name, spec={"nodeName": "n1", "containers": []}, status=told) for name in users]
    scene = played(
        node("n1", cpu="10"),
        slice_of(OLD),
        taken("a", "d0", user="x"),
        *others,
        claiming("p1", "a"),
        gates=GATE,
        release=(1, 36),
    )
    assert scene.bound == ({} if said else {"p1": "n1"})
    assert not said or scene.said("p1").startswith(f"0/1 nodes are available: 1 {said}")


def test_in_1_36_a_container_must_name_the_claim() -> None:
    spec = msgspec.to_builtins(claiming("p1", "a").spec)
    spec["containers"][0]["resources"].pop("claims")
    scene = played(
        node("n1", cpu="10"), slice_of(OLD), CLAIMS[0], made("v1", "Pod", "p1", spec=spec), gates=GATE, release=(1, 36)
    )
    why = "claim a: node-allocatable resource claim not referenced by any container within the pod"
    assert scene.said("p1").startswith(f"0/1 nodes are available: 1 {why}")
