"""NodeVolumeLimits: what counts, against which limit, and what a node already has."""

from __future__ import annotations

from typing import Any

import pytest
from volume_scene import (
    DRIVER,
    Scene,
    attachment,
    csi_driver,
    csi_node,
    node,
    pod,
    pv,
    pvc,
    storage_class,
)

from kubesched.kube.api.pod import Pod
from kubesched.kube.api.storage import CSINode
from kubesched.kube.api.volumes import AwsElasticBlockStore, AzureDisk, AzureFile, CsiVolume, Volume
from kubesched.scheduler.framework.verdicts import SKIP
from kubesched.scheduler.plugins.node_volume_limits.plugin import TOO_MANY, NodeVolumeLimits

FULL = [TOO_MANY.text]
EBS_DRIVER = "ebs.csi.aws.com"


def volume(i: int) -> tuple[Any, Any]:
    """A volume and the claim that is bound to it."""
    return pv(f"v{i}", claim=f"c{i}", handle=f"h{i}"), pvc(f"c{i}", volume=f"v{i}")


def ebs(volume_id: str) -> Volume:
    return Volume(name="inline", aws_elastic_block_store=AwsElasticBlockStore(volume_id=volume_id))


def scene(*objects: Any, limit: int | None = 2, volumes: int = 4, **options: Any) -> Scene:
    made = [obj for i in range(1, volumes + 1) for obj in volume(i)]
    return Scene(NodeVolumeLimits, node("n1"), node("n2"), csi_node("n1", csi_example_com=limit), *made, *objects, **options)


def test_pods_that_attach_nothing_are_left_alone() -> None:
    stage = scene()
    assert stage.ask(pod()) is SKIP
    assert stage.ask(pod(volumes=(Volume(csi=CsiVolume(driver=DRIVER)),))) is SKIP


CASES = [
    ("room for one more", 2, [pod("a", "c1", on="n1")], pod("new", "c2"), False),
    ("no room for one more", 2, [pod("a", "c1", on="n1"), pod("b", "c2", on="n1")], pod("new", "c3"), True),
    ("a volume that is there already costs nothing", 2, [pod("a", "c1", "c2", on="n1")], pod("new", "c2"), False),
    ("one new beside one that is there", 2, [pod("a", "c1", "c2", on="n1")], pod("new", "c2", "c3"), True),
    (
        "two pods with one volume count once",
        2,
        [pod("a", "c1", on="n1"), pod("b", "c1", on="n1")],
        pod("new", "c2"),
        False,
    ),
    ("more than fit even on an empty node", 2, [], pod("new", "c1", "c2", "c3"), True),
    ("zero is a limit", 0, [], pod("new", "c1"), True),
    ("no count is none", None, [pod("a", "c1", "c2", on="n1")], pod("new", "c3"), False),
    ("pods of other nodes do not count", 1, [pod("a", "c1", on="n2")], pod("new", "c2"), False),
    (
        "an overloaded node still takes pods whose volumes it has",
        1,
        [pod("a", "c1", "c2", on="n1")],
        pod("new", "c1"),
        False,
    ),
]


@pytest.mark.parametrize(("limit", "placed", "new", "refused"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_counting(limit: int | None, placed: list[Pod], new: Pod, refused: bool) -> None:
    assert scene(*placed, limit=limit).ask(new) == ({"n1": FULL} if refused else {})


def test_a_node_without_csinode_takes_everything() -> None:
    assert scene(pod("a", "c1", "c2", "c3", on="n2"), limit=0).ask(pod("new", "c4")) == {"n1": FULL}


def test_limits_that_change_are_followed() -> None:
    stage = scene(pod("a", "c1", "c2", on="n1"))
    assert stage.ask(pod("new", "c3")) == {"n1": FULL}
    stage.put(csi_node("n1", csi_example_com=3))
    assert stage.ask(pod("new", "c3")) == {}
    stage.put(csi_node("n2", csi_example_com=0))
    assert stage.ask(pod("new", "c3")) == {"n2": FULL}
    stage.store.objects.drop(CSINode, "n2")
    assert stage.ask(pod("new", "c3")) == {}


def test_unbound_claims_count_by_their_class_once() -> None:
    stage = scene(
        storage_class("made", DRIVER),
        pvc("u", cls="made"),
        pvc("w", cls="made"),
        pod("a", "c1", on="n1"),
        pod("b", "u", on="n1"),
    )
    assert stage.ask(pod("new", "u")) == {}
    assert stage.ask(pod("new", "w")) == {"n1": FULL}


def test_a_claim_moves_to_its_volume_when_it_is_bound() -> None:
    stage = scene(storage_class("made", DRIVER), pvc("u", cls="made"), pod("a", "u", on="n1"), limit=1)
    assert stage.ask(pod("new", "c1")) == {"n1": FULL}
    stage.put(pv("v9", claim="u", handle="h1"), pvc("u", cls="made", volume="v9"))  # the same handle as c1's volume
    assert stage.ask(pod("new", "c1")) == {}
    assert stage.ask(pod("new", "c2")) == {"n1": FULL}


def test_a_lost_volume_counts_by_its_class_and_a_lost_class_not_at_all() -> None:
    stage = scene(storage_class("made", DRIVER), pvc("u", cls="made", volume="gone"), pod("a", "u", on="n1"), limit=1)
    assert stage.ask(pod("new", "c1")) == {"n1": FULL}
    stage.store.objects.drop(type(storage_class()), "made")
    assert stage.ask(pod("new", "c1")) == {}


def test_a_claim_that_does_not_exist() -> None:
    stage = scene(pod("a", "nowhere", on="n1"), limit=1)
    assert stage.ask(pod("new", "c1")) == {}
    text = 'looking up PVC default/nowhere: persistentvolumeclaim "nowhere" not found'
    assert stage.ask(pod("new", "nowhere")) == {"n1": [text], "n2": [text]}


def test_ephemeral_volumes_must_be_the_pods_own() -> None:
    stage = scene(
        storage_class("made", DRIVER), pvc("a-v", cls="made", owner="a"), pod("a", ephemeral=("v",), on="n1"), limit=1
    )
    assert stage.ask(pod("new", "c1")) == {"n1": FULL}
    stage.put(pvc("a-v", cls="made", owner="b"))
    wrong = "Error: PVC default/a-v was not created for pod default/a (pod is not owner)"
    assert stage.ask(pod("new", "c1")) == {"n1": wrong}
    stage.put(pvc("a-v", cls="made", owner="a"))
    assert stage.ask(pod("new", "c1")) == {"n1": FULL}


def test_of_several_errors_the_first_pods_is_told_also_when_its_claim_changes() -> None:
    stage = scene(
        *(pvc(f"{name}-v", owner="nobody") for name in "ab"), *(pod(name, ephemeral=("v",), on="n1") for name in "ab"), limit=1
    )
    wrong = {"n1": "Error: PVC default/a-v was not created for pod default/a (pod is not owner)"}
    assert stage.ask(pod("new", "c1")) == wrong
    stage.put(pvc("a-v", owner="somebody"))
    assert stage.ask(pod("new", "c1")) == wrong


def test_in_tree_volumes_count_as_their_drivers() -> None:
    stage = Scene(
        NodeVolumeLimits,
        node("n1"),
        csi_node("n1", ebs_csi_aws_com=1),
        pvc("c", volume="v"),
        pv("v", claim="c", aws_elastic_block_store=AwsElasticBlockStore(volume_id="vol-1")),
        pod("a", "c", on="n1"),
    )
    assert stage.ask(pod("new", volumes=(ebs("vol-1"),))) == {}
    assert stage.ask(pod("new", volumes=(ebs("vol-2"),))) == {"n1": FULL}
    broken = "Error: converting volume(inline) from inline to csi: invalid format for AWS volume (aws://x/disk)"
    assert stage.ask(pod("new", volumes=(ebs("aws://x/disk"),))) == {"n1": broken}


def test_two_in_tree_kinds_never_count() -> None:
    stage = Scene(
        NodeVolumeLimits,
        node("n1"),
        csi_node("n1", file_csi_azure_com=0),
        storage_class("s", "kubernetes.io/azure-file"),
        pvc("c", cls="s"),
    )
    assert stage.ask(pod("new", volumes=(Volume(azure_file=AzureFile(share_name="s")),))) == {}
    assert stage.ask(pod("new", "c")) == {}


def test_a_placed_pod_with_a_broken_disk_is_an_error_where_limits_are() -> None:
    disk = Volume(name="d", azure_disk=AzureDisk(kind="Dedicated"))
    stage = scene(pod("a", on="n1", volumes=(disk,)), pod("b", on="n2", volumes=(disk,)))
    assert list(stage.ask(pod("new", "c1"))) == ["n1"]


def test_attachments_count_until_they_are_gone() -> None:
    stage = scene(
        attachment("at1", "n1", "v1"),
        attachment("at2", "n1", "v2"),
        attachment("at3", "n1", None),
        attachment("at4", "n1", "nowhere"),
        attachment("at5", "n2", "v3"),
    )
    assert stage.ask(pod("new", "c3")) == {"n1": FULL}
    # A volume that lingers by its attachment counts again for the pod that wants it.
    assert stage.ask(pod("new", "c1")) == {"n1": FULL}
    stage.store.objects.drop(type(attachment("", "", None)), "at2")
    assert stage.ask(pod("new", "c3")) == {}


def test_more_changes_than_anybody_writes_down() -> None:
    stage = scene(pod("a", "c1", on="n1"), attachment("at1", "n1", "v2"))
    assert stage.ask(pod("new", "c3")) == {"n1": FULL}
    stage.store.objects.drop(type(attachment("", "", None)), "at1")
    for _ in range(10_000):
        stage.put(attachment("at2", "n2", "v4"))
    assert stage.ask(pod("new", "c3")) == {}
    stage.put(pvc("c2", volume="v2"), pod("b", "c2", on="n1"))
    for _ in range(10_000):
        stage.put(pvc("c1"))
    assert stage.ask(pod("new", "c3")) == {}  # nobody can tell any more which volume c1 is


def test_an_attachment_and_a_pod_hold_one_volume() -> None:
    stage = scene(attachment("at1", "n1", "v1"), pod("a", "c1", on="n1"))
    assert stage.ask(pod("new", "c2")) == {}
    assert stage.ask(pod("new", "c1")) == {}
    stage.store.remove_pod("a")
    assert stage.ask(pod("new", "c2")) == {}
    stage.put(attachment("at2", "n1", "v3"))
    assert stage.ask(pod("new", "c2")) == {"n1": FULL}


def test_what_ifs_see_volumes_come_and_go() -> None:
    stage = scene(pod("a", "c1", on="n1"), pod("b", "c2", on="n1"), attachment("at2", "n1", "v2"))
    wanted = pod("new", "c3")
    assert stage.imagine(wanted, "n1") == FULL
    assert stage.imagine(wanted, "n1", without=("a",)) == []
    assert stage.imagine(wanted, "n1", without=("b",)) == FULL  # its attachment lingers
    assert stage.imagine(wanted, "n2", with_=(pod("x", "c1"),)) == []
    assert stage.imagine(pod("new", "c1", "c3"), "n1", without=("b",)) == FULL
    assert stage.ask(wanted) == {"n1": FULL}


def test_nodes_that_come_and_go() -> None:
    stage = scene(pod("a", "c1", "c2", on="n1"))
    assert stage.ask(pod("new", "c3")) == {"n1": FULL}
    stage.put(node("n3"), csi_node("n3", csi_example_com=0))
    assert stage.ask(pod("new", "c3")) == {"n1": FULL, "n3": FULL}
    stage.store.remove_node("n1")
    assert stage.ask(pod("new", "c3")) == {"n3": FULL}


def test_a_view_of_some_rows_gives_their_answers() -> None:
    stage = scene(pod("a", "c1", "c2", on="n1"))
    nodes = stage.store.snapshot().take([1, 0])
    assert stage.ask(pod("new", "c3"), nodes) == {"n1": FULL}


def test_with_the_gate_nodes_without_a_demanding_driver_are_refused() -> None:
    stage = scene(csi_driver(prevent_pod_scheduling_if_missing=True), gates="VolumeLimitScaling")
    assert stage.ask(pod("new", "c1")) == {"n2": [f"{DRIVER} CSI driver is not installed on the node"]}
    stage.put(csi_driver(prevent_pod_scheduling_if_missing=None))
    assert stage.ask(pod("new", "c1")) == {}
    without = scene(csi_driver(prevent_pod_scheduling_if_missing=True), release=(1, 36))
    assert without.ask(pod("new", "c1")) == {}


def test_hints() -> None:
    plugin = scene().plugin
    assert isinstance(plugin, NodeVolumeLimits)
    waiting = scene().view(pod("new", "c1", ephemeral=("v",)))
    assert plugin.csi_node_may_help(waiting, csi_node("n", a=1), csi_node("n", a=2))
    assert plugin.csi_node_may_help(waiting, csi_node("n"), csi_node("n", a=1))
    assert not plugin.csi_node_may_help(waiting, csi_node("n", a=2), csi_node("n", a=1))
    assert not plugin.csi_node_may_help(waiting, csi_node("n", a=2), csi_node("n", a=None))
    assert plugin.pod_gone_may_help(waiting, pod("x", "c9", on="n1"), None)
    assert plugin.pod_gone_may_help(waiting, pod("x", nominated="n1", volumes=(ebs("v"),)), None)
    assert not plugin.pod_gone_may_help(waiting, pod("x", "c9"), None)
    assert not plugin.pod_gone_may_help(waiting, pod("x", on="n1"), None)
    assert plugin.claim_may_help(waiting, None, pvc("new-v"))
    assert not plugin.claim_may_help(waiting, None, pvc("other"))
    assert plugin.attachment_gone_may_help(waiting, attachment("a", "n1", "v1"), None)
    only_ephemeral = scene().view(pod("new", ephemeral=("v",)))
    assert not plugin.attachment_gone_may_help(only_ephemeral, attachment("a", "n1", "v1"), None)
    inline = scene().view(pod("new", volumes=(ebs("v"),)))
    assert plugin.attachment_gone_may_help(inline, attachment("a", "n1", "v1", EBS_DRIVER), None)
    assert not plugin.attachment_gone_may_help(inline, attachment("a", "n1", "v1", DRIVER), None)
