"""VolumeRestrictions: disks that cannot be shared, claims for one pod only."""

from __future__ import annotations

import pytest
from volume_scene import Scene, node, pod, pvc

from kubesched.kube.api.pod import Pod
from kubesched.kube.api.volumes import AwsElasticBlockStore, Cinder, GcePersistentDisk, Iscsi, Rbd, Volume
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.verdicts import SKIP
from kubesched.scheduler.plugins.volume_restrictions import CLAIM_IN_USE, DISK_CONFLICT, VolumeRestrictions

DISK, IN_USE = [DISK_CONFLICT.text], [CLAIM_IN_USE.text]
ONE_POD = ("ReadWriteOncePod",)


def gce(name: str, read_only: bool = False) -> Volume:
    return Volume(gce_persistent_disk=GcePersistentDisk(pd_name=name, read_only=read_only))


def aws(name: str, read_only: bool = False) -> Volume:
    return Volume(aws_elastic_block_store=AwsElasticBlockStore(volume_id=name, read_only=read_only))


def iscsi(iqn: str, read_only: bool = False, lun: int = 0) -> Volume:
    return Volume(iscsi=Iscsi(iqn=iqn, read_only=read_only, lun=lun))


def rbd(image: str, *monitors: str, pool: str = "rbd", read_only: bool = False) -> Volume:
    return Volume(rbd=Rbd(image=image, monitors=monitors, pool=pool, read_only=read_only))


DISKS = [
    ("the same Google disk", gce("a"), gce("a"), True),
    ("another Google disk", gce("a"), gce("b"), False),
    ("a Google disk that one only reads", gce("a", True), gce("a"), True),
    ("a Google disk that both only read", gce("a", True), gce("a", True), False),
    ("an AWS disk is never shared", aws("a", True), aws("a", True), True),
    ("another AWS disk", aws("a"), aws("b"), False),
    ("the same target, whatever its unit", iscsi("a", lun=1), iscsi("a", lun=2), True),
    ("a target that both only read", iscsi("a", True), iscsi("a", True), False),
    ("an image seen through a common monitor", rbd("i", "m1", "m2"), rbd("i", "m2", "m3"), True),
    ("an image with no monitor in common", rbd("i", "m1"), rbd("i", "m2"), False),
    ("the same image of another pool", rbd("i", "m1"), rbd("i", "m1", pool="other"), False),
    ("an image that both only read", rbd("i", "m1", read_only=True), rbd("i", "m1", read_only=True), False),
    ("disks of different kinds with one name", gce("a"), aws("a"), False),
]


@pytest.mark.parametrize(("mine", "theirs", "conflict"), [case[1:] for case in DISKS], ids=[case[0] for case in DISKS])
def test_a_disk_in_use_refuses_its_node_only(mine: Volume, theirs: Volume, conflict: bool) -> None:
    scene = Scene(VolumeRestrictions, node("n1"), node("n2"), pod("old", on="n1", volumes=(theirs,)))
    assert scene.ask(pod("new", volumes=(mine,))) == ({"n1": DISK} if conflict else {})


def test_pods_without_disks_and_claims_are_left_alone() -> None:
    scene = Scene(VolumeRestrictions, node("n1"), pvc("c"))
    assert scene.ask(pod("new")) is SKIP
    assert scene.ask(pod("new", "c")) is SKIP
    assert scene.ask(pod("new", volumes=(Volume(cinder=Cinder(volume_id="x")),))) is SKIP


def test_a_missing_claim_refuses_all_nodes() -> None:
    scene = Scene(VolumeRestrictions, node("n1"))
    assert scene.ask(pod("new", "c")) == ("UnschedulableAndUnresolvable", 'persistentvolumeclaim "c" not found')


def test_an_ephemeral_claim_is_somebody_elses_business() -> None:
    assert Scene(VolumeRestrictions, node("n1")).ask(pod("new", ephemeral=("v",))) is SKIP


def test_a_claim_for_one_pod_refuses_all_nodes_while_in_use() -> None:
    scene = Scene(VolumeRestrictions, node("n1"), node("n2"), pvc("c", modes=ONE_POD), pod("old", "c", on="n1"))
    assert scene.ask(pod("new", "c")) == {"n1": IN_USE, "n2": IN_USE}
    scene.store.remove_pod("old")
    assert scene.ask(pod("new", "c")) is SKIP


def test_a_pod_on_a_node_that_is_gone_uses_nothing() -> None:
    scene = Scene(VolumeRestrictions, node("n1"), node("n2"), pvc("c", modes=ONE_POD), pod("old", "c", on="n1"))
    scene.store.remove_node("n1")
    assert scene.ask(pod("new", "c")) is SKIP


def test_removing_the_user_helps_on_its_node_only() -> None:
    scene = Scene(
        VolumeRestrictions,
        node("n1"),
        node("n2"),
        pvc("a", modes=ONE_POD),
        pvc("b", modes=ONE_POD),
        pod("old", "a", "b", on="n1"),
    )
    wanted = pod("new", "a", "b")
    assert scene.imagine(wanted, "n1", without=("old",)) == []
    assert scene.imagine(wanted, "n2") == IN_USE


def test_disk_first_then_claim() -> None:
    scene = Scene(VolumeRestrictions, node("n1"), pvc("c", modes=ONE_POD), pod("old", "c", on="n1", volumes=(gce("d"),)))
    assert scene.ask(pod("new", "c", volumes=(gce("d"),))) == {"n1": DISK}


def test_what_ifs_see_disks_come_and_go() -> None:
    scene = Scene(VolumeRestrictions, node("n1"), node("n2"), pod("old", on="n1", volumes=(gce("d"),)))
    wanted = pod("new", volumes=(gce("d"),))
    assert scene.imagine(wanted, "n1", without=("old",)) == []
    assert scene.imagine(wanted, "n2", with_=(pod("next", volumes=(gce("d"),)),)) == DISK
    assert scene.ask(wanted) == {"n1": DISK}  # the attempt itself has not changed


def test_other_namespaces_count_in_a_what_if_as_in_the_reference() -> None:
    scene = Scene(VolumeRestrictions, node("n1"), pvc("c", modes=ONE_POD), pod("old", "c", on="n1"))
    stranger = pod("stranger", "c", namespace="elsewhere")
    assert scene.imagine(pod("new", "c"), "n1", without=("old",), with_=(stranger,)) == IN_USE


def test_filter_without_prefilter_is_an_error() -> None:
    scene = Scene(VolumeRestrictions, node("n1"))
    found = scene.plugin.filter(scene.view(pod("new")), scene.store.snapshot(), CycleState())
    assert found.errors == {0: 'cannot read "PreFilterVolumeRestrictions" from cycleState'}


def test_filter_without_prefilter_still_sees_disks() -> None:
    scene = Scene(VolumeRestrictions, node("n1"), pod("old", on="n1", volumes=(gce("d"),)))
    found = scene.plugin.filter(scene.view(pod("new", volumes=(gce("d"),))), scene.store.snapshot(), CycleState())
    assert not found.errors
    assert found.bits is not None and found.bits.all()


HINTS = [
    ("a pod with the same claim", pod("old", "c"), True),
    ("a pod with another claim", pod("old", "other"), False),
    ("a pod with the same disk", pod("old", volumes=(gce("d"),)), True),
    ("a pod of another namespace", pod("old", "c", namespace="elsewhere", volumes=(gce("d"),)), False),
]


@pytest.mark.parametrize(("gone", "wakes"), [case[1:] for case in HINTS], ids=[case[0] for case in HINTS])
def test_which_pods_wake_when_they_go(gone: Pod, wakes: bool) -> None:
    scene = Scene(VolumeRestrictions)
    assert isinstance(scene.plugin, VolumeRestrictions)
    assert scene.plugin.pod_gone_may_help(scene.view(pod("new", "c", volumes=(gce("d"),))), gone, None) is wakes


def test_a_new_claim_wakes_the_pods_that_name_it() -> None:
    scene = Scene(VolumeRestrictions)
    assert isinstance(scene.plugin, VolumeRestrictions)
    waiting = scene.view(pod("new", "c", ephemeral=("v",)))
    assert scene.plugin.claim_may_help(waiting, None, pvc("c"))
    assert not scene.plugin.claim_may_help(waiting, None, pvc("d"))
    assert not scene.plugin.claim_may_help(waiting, None, pvc("c", namespace="elsewhere"))
    assert not scene.plugin.claim_may_help(waiting, None, pvc("new-v"))
