"""VolumeBinding's Reserve, Unreserve and PreBind: promises made, kept and taken back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from volume_scene import DRIVER, Scene, csi_node, node, pod, pv, pvc, storage_class

from kubesched.errors import Conflict
from kubesched.kube.api.pod import Pod
from kubesched.kube.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.kube.api.volumes import AwsElasticBlockStore
from kubesched.scheduler.framework.verdicts import SKIP, Code
from kubesched.scheduler.plugins.volume_binding import VolumeBinding
from kubesched.scheduler.plugins.volume_binding.plugin import VolumeBindingArgs

SELECTED, COMPLETED = "volume.kubernetes.io/selected-node", "pv.kubernetes.io/bind-completed"


class Placing:
    """A pod on its way to n1 in a cluster where its claim `c` is given the volume `v`, and one is made for `d`."""

    def __init__(self, *objects: Any, wanted: Pod | None = None, timeout: int = 600) -> None:
        self.scene = Scene(
            VolumeBinding,
            node("n1", zone="a"),
            node("n2", zone="b"),
            storage_class(),
            storage_class("made", DRIVER),
            pvc("c"),
            pvc("d", cls="made"),
            pv("v", zones=("a",)),
            *objects,
            args=VolumeBindingArgs(timeout),
        )
        assert isinstance(self.scene.plugin, VolumeBinding)
        self.plugin = self.scene.plugin
        self.pod = wanted or pod("p", "c", "d")

    def reserve(self) -> Any:
        assert "n1" not in self.scene.ask(self.pod)
        self.view, self.state = self.scene.view(self.pod), self.scene.state
        return self.plugin.reserve(self.view, "n1", self.state)

    async def bind(self) -> str:
        """Return the error of PreBind, or nothing."""
        answer = await self.plugin.pre_bind(self.view, "n1", self.state)
        assert answer is None or answer.code is Code.ERROR
        return answer.message if answer is not None else ""

    def unreserve(self) -> None:
        self.plugin.unreserve(self.view, "n1", self.state)

    @property
    def promised(self) -> list[str]:
        return [obj.name for cache in (self.plugin.volumes, self.plugin.claims) for obj in cache.promised()]

    def volume(self) -> PersistentVolume:
        found = self.plugin.volumes.get("v")
        assert found is not None
        return found

    def controller_does_its_part(self, at: float) -> None:
        """Let the volume controller and the provisioner finish at a moment."""

        def finish() -> None:
            for obj in self.scene.writer.written:
                self.scene.put(obj)
            self.scene.put(pv("w", cls="made", claim="d", claim_uid="uid-d"))
            for claim, volume in (("c", "v"), ("d", "w")):
                annotations = {COMPLETED: "yes", **({SELECTED: "n1"} if claim == "d" else {})}
                self.scene.put(
                    pvc(
                        claim,
                        cls="wait" if claim == "c" else "made",
                        volume=volume,
                        annotations=annotations,
                        version="900",
                    )
                )

        self.scene.clock.at[at] = finish

    def change(self, kind: type[Any], name: str, **changes: Any) -> None:
        """Let the API tell of a new version of an object that was written."""
        old = next(obj for obj in self.scene.writer.written if obj.name == name)
        assert isinstance(old, kind)
        meta = msgspec.structs.replace(old.metadata, resource_version="500", **changes.pop("metadata", {}))
        self.scene.put(msgspec.structs.replace(old, metadata=meta, **changes))


def test_reserve_promises_volumes_and_nodes() -> None:
    placing = Placing()
    assert placing.reserve() is None
    assert placing.promised == ["v", "d"]
    ref, meta = placing.volume().spec.claim_ref, placing.volume().metadata
    assert ref is not None
    assert (ref.kind, ref.api_version, ref.namespace, ref.name, ref.uid, ref.resource_version) == (
        "PersistentVolumeClaim",
        "v1",
        "default",
        "c",
        "uid-c",
        "1",
    )
    assert meta.annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}
    promised = placing.plugin.claims.get("d", "default")
    assert promised is not None and promised.metadata.annotations == {SELECTED: "n1"}
    assert not placing.scene.writer.written


def test_a_promised_volume_is_not_given_again_until_it_is_given_back() -> None:
    placing = Placing(pvc("other"))
    placing.reserve()
    assert "n1" in placing.scene.ask(pod("next", "other"))
    placing.unreserve()
    placing.unreserve()
    assert placing.promised == []
    assert placing.volume().spec.claim_ref is None
    assert placing.scene.ask(pod("next", "other")).keys() == {"n2"}


def test_two_pods_that_share_a_claim_share_its_volume() -> None:
    placing = Placing(wanted=pod("p", "c"))
    placing.reserve()
    assert placing.scene.ask(pod("next", "c")).keys() == {"n2"}
    plan = placing.scene.state.read("VolumeBinding").plan
    assert [volume.name for _, volume in plan.bindings_on(0)] == ["v"]


def test_a_promise_made_meanwhile_is_not_overwritten() -> None:
    placing = Placing(pvc("other"), wanted=pod("p", "c"))
    slow, fast = placing.scene.view(pod("slow", "other")), placing.scene.view(pod("fast", "c"))
    assert "n1" not in placing.scene.ask(pod("slow", "other"))
    slow_state = placing.scene.state
    assert "n1" not in placing.scene.ask(pod("fast", "c"))
    assert placing.plugin.reserve(fast, "n1", placing.scene.state) is None
    answer = placing.plugin.reserve(slow, "n1", slow_state)
    assert answer is not None and answer.code is Code.ERROR and 'persistentvolume "v" changed' in answer.message
    ref = placing.volume().spec.claim_ref
    assert ref is not None and ref.name == "c"


def test_a_claim_that_moved_on_takes_the_other_promises_with_it() -> None:
    placing = Placing()
    assert "n1" not in placing.scene.ask(placing.pod)
    placing.scene.put(pvc("d", cls="made", version="2"))
    answer = placing.plugin.reserve(placing.scene.view(placing.pod), "n1", placing.scene.state)
    assert answer is not None
    assert answer.message == '"default/d" is out of sync (stored: 2, assume: 1)'
    assert placing.scene.meter.volume_errors == ["assume"]
    assert placing.promised == []


def test_news_from_the_api_end_a_promise() -> None:
    placing = Placing()
    placing.reserve()
    placing.scene.put(pv("v", zones=("a",), version="2"))
    assert placing.promised == ["d"]
    placing.scene.put(pvc("d", cls="made"))  # the same version again changes nothing
    assert placing.promised == ["d"]
    placing.scene.store.objects.drop(PersistentVolumeClaim, "d", "default")
    assert placing.promised == []
    assert placing.plugin.claims.get("d", "default") is None


def test_a_volume_that_names_its_claim_already_keeps_its_annotations() -> None:
    placing = Placing(pv("v", zones=("a",), claim="c"), wanted=pod("p", "c"))
    placing.reserve()
    ref = placing.volume().spec.claim_ref
    assert ref is not None and ref.uid == "uid-c"
    assert placing.volume().metadata.annotations == {}


def test_nothing_changes_about_a_volume_that_is_the_claims_already() -> None:
    placing = Placing(pv("v", zones=("a",), claim="c", claim_uid="uid-c"), wanted=pod("p", "c"))
    assert placing.reserve() is None
    assert placing.promised == []
    assert placing.plugin.pre_bind_pre_flight(placing.view, "n1", placing.state) is None


async def test_pods_whose_claims_are_bound_have_nothing_to_wait_for() -> None:
    placing = Placing(pv("w", claim="e"), pvc("e", volume="w"), wanted=pod("p", "e"))
    assert placing.reserve() is None
    assert placing.plugin.pre_bind_pre_flight(placing.view, "n1", placing.state) is SKIP
    assert await placing.bind() == ""
    assert placing.scene.clock.time == 0
    unclaimed = placing.scene.view(pod("q"))
    assert placing.scene.ask(pod("q")) is SKIP
    assert placing.plugin.reserve(unclaimed, "n1", placing.scene.state) is None
    assert placing.plugin.pre_bind_pre_flight(unclaimed, "n1", placing.scene.state) is SKIP


def test_claims_that_were_bound_since_the_filter_need_no_promise() -> None:
    placing = Placing(wanted=pod("p", "c"))
    assert "n1" not in placing.scene.ask(placing.pod)
    placing.scene.put(pvc("c", volume="v", version="2"))
    assert placing.plugin.reserve(placing.scene.view(placing.pod), "n1", placing.scene.state) is None
    assert placing.promised == []
    assert placing.plugin.pre_bind_pre_flight(placing.scene.view(placing.pod), "n1", placing.scene.state) is SKIP


def test_prebind_on_a_node_that_was_not_reserved() -> None:
    placing = Placing()
    placing.reserve()
    answer = placing.plugin.pre_bind_pre_flight(placing.view, "n2", placing.state)
    assert answer is not None and answer.message == 'no pod volume found for node "n2"'


async def test_prebind_writes_and_waits() -> None:
    placing = Placing()
    placing.reserve()
    placing.controller_does_its_part(at=3)
    assert await placing.bind() == ""
    assert [obj.name for obj in placing.scene.writer.written] == ["v", "d"]
    assert placing.scene.clock.time == 3
    assert placing.scene.writer.written[0].spec.claim_ref.name == "c"
    assert placing.scene.writer.written[1].metadata.annotations == {SELECTED: "n1"}


@pytest.mark.parametrize(("limit", "seconds"), [(0, 0), (1, 1), (5, 5)])
async def test_prebind_gives_up_in_time(limit: int, seconds: float) -> None:
    placing = Placing(timeout=limit)
    placing.reserve()
    assert await placing.bind() == "binding volumes: context deadline exceeded"
    assert placing.scene.clock.time == seconds
    placing.unreserve()
    # What was written stays promised until the API tells of it, so that nobody is given the volume in between.
    assert placing.promised == ["v", "d"]


async def test_a_conflict_ends_it_and_gives_back_what_was_not_written() -> None:
    placing = Placing(pvc("e"), pv("u", zones=("a",), size="2Gi"), wanted=pod("p", "c", "e", "d"))
    placing.reserve()
    placing.scene.writer.fails["update", "u"] = Conflict(409, "Conflict", '"u": the object has been modified')
    assert await placing.bind() == '"u": the object has been modified'
    assert [obj.name for obj in placing.scene.writer.written] == ["v"]
    assert placing.promised == ["v"]
    assert placing.scene.meter.volume_errors == ["bind"]


WAITS: list[tuple[str, Any, str]] = [
    ("the node goes away", lambda p: p.scene.store.remove_node("n1"), 'failed to get node "n1": node "n1" not found'),
    ("the pod goes away", lambda p: p.scene.gone.add("p"), 'pod does not exist any more: pod "p" not found'),
    (
        "the volume goes away",
        lambda p: p.scene.store.objects.drop(PersistentVolume, "v"),
        'failed to check binding: persistentvolumes "v" not found',
    ),
    (
        "the claim goes away",
        lambda p: p.scene.store.objects.drop(PersistentVolumeClaim, "c", "default"),
        'failed to check binding: persistentvolumeclaims "default/c" not found',
    ),
    (
        "the volume is taken from the claim",
        lambda p: p.scene.put(pv("v", zones=("a",), version="500")),
        'ClaimRef got reset for pv "v"',
    ),
    (
        "the volume moves away",
        lambda p: p.scene.put(pv("v", zones=("b",), claim="c", claim_uid="uid-c", version="500")),
        'pv "v" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms',
    ),
]


@pytest.mark.parametrize(("happens", "text"), [case[1:] for case in WAITS], ids=[case[0] for case in WAITS])
async def test_what_ends_the_wait(happens: Any, text: str) -> None:
    placing = Placing()
    placing.reserve()
    placing.scene.clock.at[2] = lambda: happens(placing)
    assert await placing.bind() == f"binding volumes: {text}"
    assert placing.scene.clock.time == 2


PROVISIONING: list[tuple[str, Any, str]] = [
    (
        "the claim goes away",
        lambda p: p.scene.store.objects.drop(PersistentVolumeClaim, "d", "default"),
        'failed to check provisioning pvc: persistentvolumeclaims "default/d" not found',
    ),
    (
        "the provisioner gives the claim back",
        lambda p: p.scene.put(pvc("d", cls="made", version="500", annotations={"x": "y"})),
        'provisioning failed for PVC "d"',
    ),
    (
        "the claim loses its annotations",
        lambda p: p.scene.put(pvc("d", cls="made", version="500")),
        'selectedNode annotation reset for PVC "d"',
    ),
    (
        "the volume is made elsewhere",
        lambda p: p.scene.put(
            pv("w", zones=("b",), cls="made", claim="d"),
            pvc("d", cls="made", version="500", volume="w", annotations={SELECTED: "n1"}),
        ),
        'pv "w" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms',
    ),
]


@pytest.mark.parametrize(("happens", "text"), [case[1:] for case in PROVISIONING], ids=[case[0] for case in PROVISIONING])
async def test_what_ends_the_wait_for_a_volume_to_be_made(happens: Any, text: str) -> None:
    placing = Placing(wanted=pod("p", "d"))
    placing.reserve()
    placing.scene.clock.at[2] = lambda: happens(placing)
    assert await placing.bind() == f"binding volumes: {text}"
    assert placing.scene.clock.time == 2


async def test_old_news_are_waited_out() -> None:
    placing = Placing(wanted=pod("p", "d"), timeout=9)
    placing.reserve()
    # A version from before ours, and one whose volume has not been heard of yet, say nothing.
    placing.scene.clock.at[2] = lambda: placing.scene.put(pvc("d", cls="made", version="50"))
    placing.scene.clock.at[4] = lambda: placing.scene.put(
        pvc("d", cls="made", version="500", volume="w", annotations={SELECTED: "n1"})
    )
    placing.scene.clock.at[6] = lambda: placing.scene.put(pv("w", zones=("a",), cls="made", claim="d"))
    assert await placing.bind() == ""
    assert placing.scene.clock.time == 6


async def test_migrated_volumes_are_checked_by_their_drivers_labels() -> None:
    disk = AwsElasticBlockStore(volume_id="vol-1")
    placing = Placing(
        pv("v", zones=("a",), aws_elastic_block_store=disk),
        csi_node("n1", migrated="kubernetes.io/aws-ebs"),
        wanted=pod("p", "c"),
    )
    placing.reserve()
    placing.scene.clock.at[1] = lambda: placing.change(PersistentVolume, "v")
    assert (await placing.bind()).startswith('binding volumes: pv "v" node affinity doesn\'t match node "n1"')
