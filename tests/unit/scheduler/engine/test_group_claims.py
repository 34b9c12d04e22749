"""Gangs whose pods claim devices and volumes, their own or shared ones: what is promised in a rehearsal is what is written.

The little cluster of group_scene with an API server's manners: versions count up, a stale write is a conflict, and what
was written comes back through the watch a little later. A volume controller binds what the scheduler has chosen.
"""

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest
from group_scene import COSCHEDULING, GATES, LABEL, Scene, crew, gang

from kubesched.errors import Conflict, ServerFault
from kubesched.kube.api import codec
from kubesched.kube.api.meta import OwnerReference
from kubesched.kube.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.kube.api.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from kubesched.kube.api.resource import AllocationResult, ResourceClaim, ResourceClaimStatus
from kubesched.kube.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.kube.api.workload import PodGroupResourceClaim
from kubesched.scheduler.cluster.device_claims import DeviceClaims
from kubesched.testing import node
from kubesched.tools.simulation.clock import run_virtually

DRIVER = "gpu.example.com"


def made(api: str, kind: str, name: str, namespace: str = "default", **fields: Any) -> Any:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "1"}
    return codec.decode(codec.encode({"apiVersion": api, "kind": kind, "metadata": metadata, **fields}))


def devices(node_name: str, count: int) -> Any:
    spec = {
        "driver": DRIVER,
        "nodeName": node_name,
        "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"{node_name}-{i}"} for i in range(count)],
    }
    return made("resource.k8s.io/v1", "ResourceSlice", f"slice-{node_name}", "", spec=spec)


def device_claim(name: str, count: int = 1) -> Any:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return made("resource.k8s.io/v1", "ResourceClaim", name, spec=spec)


def volume(name: str, *nodes: str) -> Any:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "wait",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    return made("v1", "PersistentVolume", name, "", spec=spec, status={"phase": "Available"})


def volume_claim(name: str) -> Any:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "wait", "resources": {"requests": {"storage": "1Gi"}}}
    return made("v1", "PersistentVolumeClaim", name, spec=spec, status={"phase": "Pending"})


CLASSES = (
    made("resource.k8s.io/v1", "DeviceClass", "gpu", ""),
    made(
        "storage.k8s.io/v1",
        "StorageClass",
        "wait",
        "",
        provisioner="kubernetes.io/no-provisioner",
        volumeBindingMode="WaitForFirstConsumer",
    ),
)


def member(
    name: str, claims: tuple[str, ...] = (), volumes: tuple[str, ...] = (), cpu: str = "1", by_label: bool = False
) -> Any:
    spec: dict[str, Any] = {
        "schedulerName": "default-scheduler",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
        "resourceClaims": [{"name": f"c{i}", "resourceClaimName": claim} for i, claim in enumerate(claims)],
        "volumes": [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim}} for i, claim in enumerate(volumes)],
    }
    if not by_label:
        spec["schedulingGroup"] = {"podGroupName": "g"}
    labelled = made("v1", "Pod", name, spec=spec)
    if by_label:
        labelled = msgspec.structs.replace(labelled, metadata=msgspec.structs.replace(labelled.metadata, labels={LABEL: "g"}))
    return labelled


class ClaimScene(Scene):
    """A scene that keeps versions, refuses stale writes and binds volumes."""

    def __init__(self, *objects: Any, **given: Any) -> None:
        self.version = 100
        self.stored: dict[tuple[type, str], Any] = {}
        self.failing_updates = Counter[str]()
        self.refused = Counter[str]()
        self.update_seconds: dict[str, float] = {}
        self.watches_are_broken = False
        super().__init__(*CLASSES, *objects, **({"gates": GATES} | given))

    async def update(self, changed: Any, subresource: str = "") -> Any:
        name = changed.metadata.name
        await asyncio.sleep(self.update_seconds.get(name, 0.01))
        known = self.stored.get((type(changed), changed.key), self.known[type(changed), changed.key])
        if self.failing_updates[name]:
            self.failing_updates[name] -= 1
            raise ServerFault(500, "InternalError", "not now")
        if changed.metadata.resource_version != known.metadata.resource_version:
            self.refused[name] += 1
            raise Conflict(409, "Conflict", "the object has been modified")
        self.version += 1
        meta = msgspec.structs.replace(changed.metadata, resource_version=str(self.version))
        stored = msgspec.structs.replace(changed, metadata=meta)
        self.stored[type(stored), stored.key] = stored
        asyncio.get_running_loop().call_later(0.02, self._tell, stored)
        return stored

    def _tell(self, stored: Any) -> None:
        if self.watches_are_broken:
            return
        self.put(stored)
        if isinstance(stored, PersistentVolume) and stored.spec.claim_ref is not None:
            claim = self.known[PersistentVolumeClaim, f"default/{stored.spec.claim_ref.name}"]
            self.version += 1
            annotations = {**claim.metadata.annotations, "pv.kubernetes.io/bind-completed": "yes"}
            meta = msgspec.structs.replace(claim.metadata, annotations=annotations, resource_version=str(self.version))
            spec = msgspec.structs.replace(claim.spec, volume_name=stored.name)
            status = msgspec.structs.replace(claim.status, phase="Bound")
            self.put(msgspec.structs.replace(claim, metadata=meta, spec=spec, status=status))

    def claim(self, name: str) -> ResourceClaim:
        found = self.known[ResourceClaim, f"default/{name}"]
        assert isinstance(found, ResourceClaim)
        return found

    def held(self, *names: str) -> list[list[str]]:
        """Return the devices of claims as the API knows them."""
        allocations = [self.claim(name).status.allocation for name in names]
        return [[r.device for r in found.devices.results] if found is not None else [] for found in allocations]

    def users(self, name: str) -> list[str]:
        """Return for whom a claim is reserved."""
        return sorted(consumer.name for consumer in self.claim(name).status.reserved_for)

    def volumes(self, *names: str) -> list[str]:
        """Return the volumes of claims."""
        return [self.known[PersistentVolumeClaim, f"default/{name}"].spec.volume_name for name in names]

    @property
    def promises(self) -> int:
        return len(list(self.engine.store.objects.shared(DeviceClaims).in_flight()))


TWO_NODES = (node("n1", cpu="2"), node("n2", cpu="2"))
KINDS = pytest.mark.parametrize("by_label", [False, True], ids=["PodGroup", "Coscheduling"])


def scene_of(by_label: bool, count: int, *objects: Any) -> ClaimScene:
    if by_label:
        return ClaimScene(crew(min_member=count), *objects, gates="", configuration=COSCHEDULING)
    return ClaimScene(gang(min_count=count), *objects)


@KINDS
def test_members_that_share_a_claim_get_its_device_together(by_label: bool) -> None:
    async def main() -> None:
        pods = [member(f"p{i}", ("shared",), by_label=by_label) for i in range(3)]
        scene = scene_of(by_label, 3, node("n1", cpu="8"), node("n2", cpu="8"), devices("n2", 1), device_claim("shared"), *pods)
        await scene.settle(5)
        assert scene.nodes("p0", "p1", "p2") == ["n2"] * 3
        assert scene.held("shared") == [["n2-0"]]
        assert scene.users("shared") == ["p0", "p1", "p2"]
        assert scene.promises == 0
        assert not [note for _, reason, note in scene.events if reason == "FailedScheduling"]
        assert not scene.refused, "the members of one scheduler do not get into each other's way"

    run_virtually(main())


@KINDS
def test_members_with_claims_of_their_own_get_devices_of_their_own(by_label: bool) -> None:
    async def main() -> None:
        pods = [member(f"p{i}", (f"c{i}",), by_label=by_label) for i in range(4)]
        claims = [device_claim(f"c{i}") for i in range(4)]
        scene = scene_of(by_label, 4, *TWO_NODES, devices("n1", 2), devices("n2", 2), *claims, *pods)
        await scene.settle(5)
        found = sorted(device for held in scene.held("c0", "c1", "c2", "c3") for device in held)
        assert found == ["n1-0", "n1-1", "n2-0", "n2-1"]
        for name, (device,) in zip(["p0", "p1", "p2", "p3"], scene.held("c0", "c1", "c2", "c3"), strict=True):
            assert device.startswith(scene.bound[name])
        assert scene.promises == 0

    run_virtually(main())


def test_a_member_has_a_shared_claim_and_one_of_its_own() -> None:
    async def main() -> None:
        pods = [member(f"p{i}", ("shared", f"c{i}")) for i in range(2)]
        claims = [device_claim(name) for name in ("shared", "c0", "c1")]
        scene = ClaimScene(gang(min_count=2), node("n1", cpu="8"), devices("n1", 3), *claims, *pods)
        await scene.settle(5)
        found = scene.held("shared", "c0", "c1")
        assert sorted(device for held in found for device in held) == ["n1-0", "n1-1", "n1-2"]
        assert [scene.users(name) for name in ("shared", "c0", "c1")] == [["p0", "p1"], ["p0"], ["p1"]]

    run_virtually(main())


def test_a_device_that_was_promised_and_could_not_be_written_wakes_who_waits_for_one() -> None:
    async def main() -> None:
        pods = [member(f"p{i}", (f"c{i}",), by_label=True) for i in range(2)]  # a label that says nothing here
        claims = [device_claim("c0"), device_claim("c1")]
        scene = ClaimScene(node("n1", cpu="8"), devices("n1", 1), *claims)
        scene.failing_updates["c0"] = 1000
        scene.put(*pods)
        await scene.settle(10)
        assert scene.nodes("p1") == ["n1"]
        assert scene.held("c0", "c1") == [[], ["n1-0"]]

    run_virtually(main())


@pytest.mark.parametrize("failures", [1, 0], ids=["refused", "carried out"])
def test_a_device_whose_write_outlasts_its_pod_wakes_who_waits_for_one_if_it_is_refused(failures: int) -> None:
    async def main() -> None:
        pods = [member(f"p{i}", (f"c{i}",), by_label=True) for i in range(2)]  # a label that says nothing here
        scene = ClaimScene(node("n1", cpu="8"), devices("n1", 1), device_claim("c0"), device_claim("c1"))
        scene.update_seconds["c0"], scene.failing_updates["c0"] = 8.0, failures
        scene.put(pods[0])
        await scene.settle(1)
        scene.put(pods[1])
        assert scene.engine.bookings.binder.call_off("uid-p0", "preempted by another")
        await scene.settle(5)  # longer than it is waited for
        scene.drop(pods[0])
        await scene.settle(1)
        assert scene.nodes("p1") == [""] and scene.promises == 1
        await scene.settle(30)
        assert scene.promises == 0
        assert scene.held("c0", "c1") == ([[], ["n1-0"]] if failures else [["n1-0"], []])
        assert scene.nodes("p1") == (["n1"] if failures else [""])

    run_virtually(main())


@pytest.mark.parametrize("is_assumed", [False, True], ids=["by the watch", "by the answer to a write, and later by the watch"])
def test_a_device_that_was_taken_back_before_the_watch_told_that_it_was_given_wakes_who_waits(is_assumed: bool) -> None:
    async def main() -> None:
        pods = [member(f"p{i}", (f"c{i}",), by_label=True) for i in range(2)]  # a label that says nothing here
        scene = ClaimScene(node("n1", cpu="8"), devices("n1", 1), device_claim("c0"), device_claim("c1"))
        scene.watches_are_broken = True
        scene.put(pods[0])
        await scene.settle()
        scene.put(pods[1])
        await scene.settle()
        assert scene.nodes("p0", "p1") == ["n1", ""] and scene.held("c0") == [[]]
        scene.drop(scene.known[Pod, "default/p0"])
        scene.watches_are_broken = False
        emptied = scene.claim("c0")  # by the controller of claims, as the pod is gone
        newer = msgspec.structs.replace(emptied.metadata, resource_version=str(scene.version + 1))
        emptied = msgspec.structs.replace(emptied, metadata=newer)
        if is_assumed:
            scene.engine.store.objects.shared(DeviceClaims).assume(emptied)
        scene.put(emptied)
        await scene.settle(10)
        assert scene.nodes("p1") == ["n1"]

    run_virtually(main())


def test_a_shared_claim_keeps_the_gang_where_its_device_is() -> None:
    async def main() -> None:
        pods = [member(f"p{i}", ("shared",)) for i in range(3)]
        scene = ClaimScene(gang(min_count=3), *TWO_NODES, devices("n1", 1), devices("n2", 1), device_claim("shared"), *pods)
        await scene.settle(5)
        assert scene.bound == {} and scene.held("shared") == [[]] and scene.promises == 0
        assert any("1 resourceclaim not available on the node" in scene.said(f"p{i}") for i in range(3))
        scene.put(node("n1", cpu="3"), node("n2", cpu="3"))
        await scene.settle(20)
        assert len(set(scene.nodes("p0", "p1", "p2"))) == 1 and len(scene.bound) == 3

    run_virtually(main())


def test_a_gang_that_cannot_have_all_its_devices_holds_none() -> None:
    async def main() -> None:
        pods = [member(f"p{i}", (f"c{i}",)) for i in range(3)]
        claims = [device_claim(f"c{i}") for i in range(3)]
        scene = ClaimScene(gang(min_count=3), *TWO_NODES, devices("n1", 1), devices("n2", 1), *claims, *pods)
        await scene.settle(5)
        assert scene.bound == {} and scene.promises == 0 and scene.held("c0", "c1", "c2") == [[], [], []]
        assert any("cannot allocate all claims" in scene.said(f"p{i}") for i in range(3))
        scene.put(devices("n1", 2))
        await scene.settle(20)
        assert len(scene.bound) == 3 and all(scene.held("c0", "c1", "c2"))

    run_virtually(main())


def test_a_pod_of_no_group_waits_for_an_allocation_that_is_under_way() -> None:
    async def main() -> None:
        loner = msgspec.structs.replace(
            member("p9", ("shared",)), spec=msgspec.structs.replace(member("p9", ("shared",)).spec, scheduling_group=None)
        )
        pods = [member(f"p{i}", ("shared",)) for i in range(2)]
        scene = ClaimScene(gang(min_count=2), node("n1", cpu="8"), devices("n1", 1), device_claim("shared"), *pods, loner)
        await scene.settle(15)
        assert "is in the process of being allocated" in scene.said("p9")
        assert scene.users("shared") == ["p0", "p1", "p9"] and len(scene.bound) == 3

    run_virtually(main())


@pytest.mark.parametrize("failures", [1, 2])
def test_a_failed_write_costs_its_pod_an_attempt_and_the_device_stays_promised(failures: int) -> None:
    async def main() -> None:
        pods = [member(f"p{i}", ("shared",)) for i in range(3)]
        scene = ClaimScene(gang(min_count=3), node("n1", cpu="8"), devices("n1", 1), device_claim("shared"), *pods)
        scene.failing_updates["shared"] = failures
        await scene.settle(20)
        assert scene.nodes("p0", "p1", "p2") == ["n1"] * 3
        assert scene.held("shared") == [["n1-0"]] and scene.users("shared") == ["p0", "p1", "p2"]
        assert scene.promises == 0

    run_virtually(main())


def test_a_failed_binding_gives_only_its_own_reservation_back() -> None:
    async def main() -> None:
        pods = [member(f"p{i}", ("shared",)) for i in range(2)]
        scene = ClaimScene(gang(min_count=2), node("n1", cpu="8"), devices("n1", 1), device_claim("shared"), *pods)
        scene.failing_binds["p1"] = 1
        await scene.settle(0.9)
        assert scene.nodes("p0", "p1") == ["n1", ""] and scene.users("shared") == ["p0"]
        await scene.settle(20)
        assert scene.nodes("p0", "p1") == ["n1", "n1"] and scene.users("shared") == ["p0", "p1"]

    run_virtually(main())


@KINDS
def test_members_with_volume_claims_of_their_own_get_volumes_of_their_own(by_label: bool) -> None:
    async def main() -> None:
        pods = [member(f"p{i}", (), (f"c{i}",), by_label=by_label) for i in range(3)]
        claims = [volume_claim(f"c{i}") for i in range(3)]
        volumes = [volume("v1", "n1"), volume("v2", "n1"), volume("v3", "n2")]
        scene = scene_of(by_label, 3, *TWO_NODES, *volumes, *claims, *pods)
        await scene.settle(5)
        assert sorted(scene.volumes("c0", "c1", "c2")) == ["v1", "v2", "v3"]
        where = {"v1": "n1", "v2": "n1", "v3": "n2"}
        assert [where[name] for name in scene.volumes("c0", "c1", "c2")] == scene.nodes("p0", "p1", "p2")

    run_virtually(main())


@KINDS
def test_members_that_share_a_volume_claim_go_where_its_volume_is(by_label: bool) -> None:
    async def main() -> None:
        pods = [member(f"p{i}", (), ("shared",), by_label=by_label) for i in range(2)]
        scene = scene_of(by_label, 2, *TWO_NODES, volume("v1", "n2"), volume_claim("shared"), *pods)
        await scene.settle(20)
        assert scene.nodes("p0", "p1") == ["n2", "n2"] and scene.volumes("shared") == ["v1"]

    run_virtually(main())


def test_a_gang_that_cannot_have_all_its_volumes_holds_none() -> None:
    async def main() -> None:
        pods = [member(f"p{i}", (), (f"c{i}",)) for i in range(2)]
        claims = [volume_claim(f"c{i}") for i in range(2)]
        scene = ClaimScene(gang(min_count=2), *TWO_NODES, volume("v1", "n1"), *claims, *pods)
        await scene.settle(5)
        assert scene.bound == {} and scene.volumes("c0", "c1") == ["", ""]
        assert any("didn't find available persistent volumes to bind" in scene.said(f"p{i}") for i in range(2))
        scene.put(volume("v2", "n2"))
        await scene.settle(20)
        assert sorted(scene.volumes("c0", "c1")) == ["v1", "v2"] and len(scene.bound) == 2

    run_virtually(main())


def test_devices_and_volumes_agree_on_the_node_of_each_member() -> None:
    async def main() -> None:
        pods = [member(f"p{i}", (f"d{i}",), (f"v{i}",)) for i in range(2)]
        claims = [device_claim(f"d{i}") for i in range(2)] + [volume_claim(f"v{i}") for i in range(2)]
        scene = ClaimScene(
            gang(min_count=2),
            *(node(name, cpu="2") for name in ("n1", "n2", "n3")),
            *(devices("n1", 1), devices("n2", 1), volume("pv2", "n2"), volume("pv1", "n1", "n3")),
            *claims,
            *pods,
        )
        await scene.settle(5)
        assert sorted(scene.nodes("p0", "p1")) == ["n1", "n2"]
        for i in range(2):
            (device,) = scene.held(f"d{i}")[0]
            assert device.startswith(scene.bound[f"p{i}"]) and scene.volumes(f"v{i}") == [f"pv{scene.bound[f'p{i}'][1]}"]

    run_virtually(main())


@pytest.mark.parametrize("is_on", [False, True])
def test_a_claim_of_the_group_is_reserved_for_the_group(is_on: bool) -> None:
    async def main() -> None:
        pods = [member(f"p{i}", ("shared",)) for i in range(3)]
        group = gang(min_count=3, resource_claims=(PodGroupResourceClaim(name="c0", resource_claim_name="shared"),))
        gates = f"{GATES},DRAWorkloadResourceClaims={str(is_on).lower()}"
        scene = ClaimScene(group, node("n1", cpu="8"), devices("n1", 1), device_claim("shared"), *pods, gates=gates)
        await scene.settle(5)
        assert scene.nodes("p0", "p1", "p2") == ["n1"] * 3
        assert scene.users("shared") == (["g"] if is_on else ["p0", "p1", "p2"])
        consumer = scene.claim("shared").status.reserved_for[0]
        assert (consumer.api_group, consumer.resource) == (("scheduling.k8s.io", "podgroups") if is_on else ("", "pods"))
        assert scene.promises == 0

    run_virtually(main())


@pytest.mark.parametrize("is_on", [False, True])
def test_a_claim_that_was_made_for_the_group_will_do(is_on: bool) -> None:
    async def main() -> None:
        claim = device_claim("made")
        owner = OwnerReference(api_version="scheduling.k8s.io/v1beta1", kind="PodGroup", name="g", uid="uid-g", controller=True)
        claim = msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, owner_references=(owner,)))
        pods = []
        for name in ("p0", "p1"):
            plain = member(name)
            wanted = PodResourceClaim(name="c0", resource_claim_template_name="t")
            told = PodResourceClaimStatus(name="c0", resource_claim_name="made")
            spec = msgspec.structs.replace(plain.spec, resource_claims=(wanted,))
            status = msgspec.structs.replace(plain.status, resource_claim_statuses=(told,))
            pods.append(msgspec.structs.replace(plain, spec=spec, status=status))
        group = gang(min_count=2, resource_claims=(PodGroupResourceClaim(name="c0", resource_claim_template_name="t"),))
        gates = f"{GATES},DRAWorkloadResourceClaims={str(is_on).lower()}"
        scene = ClaimScene(group, node("n1", cpu="8"), devices("n1", 1), claim, *pods, gates=gates)
        await scene.settle(5)
        assert scene.nodes("p0", "p1") == (["n1", "n1"] if is_on else ["", ""])
        assert scene.users("made") == (["g"] if is_on else [])

    run_virtually(main())


def test_devices_that_are_in_the_way_are_given_back_for_a_group_of_1_37() -> None:
    async def main() -> None:
        elsewhere = NodeSelectorRequirement(key="metadata.name", operator="In", values=("gone",))
        selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(elsewhere,)),))
        status = ResourceClaimStatus(allocation=AllocationResult(node_selector=selector))
        held = msgspec.structs.replace(device_claim("c"), status=status)
        scene = ClaimScene(
            gang(min_count=1),
            node("n1", cpu="8"),
            devices("n1", 1),
            held,
            member("p0", ("c",)),
            gates="GenericWorkload=true",
            release=(1, 37),
        )
        await scene.settle(20)
        assert scene.nodes("p0") == ["n1"]
        assert scene.held("c") == [["n1-0"]]

    run_virtually(main())
