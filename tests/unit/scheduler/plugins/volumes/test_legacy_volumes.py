"""The volume predicates of older releases."""

from __future__ import annotations

from typing import Any

import pytest
from volume_scene import DRIVER, Scene, csi_node, node, pod, pv, pvc, storage_class

from kubesched.kube.api.volumes import AwsElasticBlockStore, AzureDisk, Cinder, GcePersistentDisk, Volume
from kubesched.kube.values.well_known import BETA_ZONE, ZONE
from kubesched.scheduler.framework.verdicts import SKIP
from kubesched.scheduler.legacy.predicates.volume_counts import (
    InTreeVolumeCount,
    MaxAzureDiskVolumeCount,
    MaxCinderVolumeCount,
    MaxCSIVolumeCountPred,
    MaxEBSVolumeCount,
    MaxGCEPDVolumeCount,
    csi_limit_resource,
    max_volumes_from,
)
from kubesched.scheduler.legacy.predicates.volumes import (
    VOLUME_PREDICATES,
    CheckVolumeBinding,
    NoDiskConflict,
    NoVolumeZoneConflict,
)
from kubesched.scheduler.plugins.node_volume_limits.plugin import TOO_MANY
from kubesched.scheduler.plugins.volume_restrictions import DISK_CONFLICT
from kubesched.scheduler.plugins.volume_zone import ZONE_CONFLICT

FULL = [TOO_MANY.text]
EBS = "attachable-volumes-aws-ebs"


def ebs(i: int) -> Volume:
    return Volume(aws_elastic_block_store=AwsElasticBlockStore(volume_id=f"vol-{i}"))


def test_the_predicates_by_their_old_names() -> None:
    assert VOLUME_PREDICATES.keys() == {
        "NoDiskConflict",
        "NoVolumeZoneConflict",
        "MaxEBSVolumeCount",
        "MaxGCEPDVolumeCount",
        "MaxAzureDiskVolumeCount",
        "MaxCinderVolumeCount",
        "MaxCSIVolumeCountPred",
        "CheckVolumeBinding",
    }


def test_no_disk_conflict_looks_at_disks_only() -> None:
    scene = Scene(NoDiskConflict, node("n1"), node("n2"), pod("old", on="n1", volumes=(ebs(1),)))
    wanted = pod("new", "no-such-claim", volumes=(ebs(1),))
    assert scene.ask(wanted) == {"n1": [DISK_CONFLICT.text]}
    assert scene.imagine(wanted, "n1", without=("old",)) == []
    assert scene.ask(pod("new")) is SKIP


def test_zone_conflicts_by_the_old_labels() -> None:
    scene = Scene(
        NoVolumeZoneConflict,
        node("n1", **{BETA_ZONE: "a"}),
        node("n2", **{BETA_ZONE: "b"}),
        node("n3", **{ZONE: "b"}),
        pv("v", claim="c", labels={BETA_ZONE: "a__c"}),
        pvc("c", volume="v"),
    )
    assert scene.ask(pod("p", "c")) == {"n2": [ZONE_CONFLICT.text]}


OLD_ERRORS: list[tuple[str, list[Any], str, str]] = [
    ("a claim without a name", [], "", "PersistentVolumeClaim had no name"),
    ("a claim that does not exist", [], "c", 'PersistentVolumeClaim was not found: "c"'),
    (
        "an unbound claim",
        [pvc("c", cls="now"), storage_class("now", mode="Immediate")],
        "c",
        'PersistentVolumeClaim was not found: "c"',
    ),
    (
        "a class without mode",
        [pvc("c", cls="odd"), storage_class("odd", mode=None)],
        "c",
        'VolumeBindingMode not set for StorageClass "odd"',
    ),
    ("a volume that does not exist", [pvc("c", volume="v")], "c", 'PersistentVolume was not found: "v"'),
]


@pytest.mark.parametrize(("objects", "claim", "text"), [case[1:] for case in OLD_ERRORS], ids=[c[0] for c in OLD_ERRORS])
def test_what_is_broken_is_an_error_on_nodes_with_zones(objects: list[Any], claim: str, text: str) -> None:
    scene = Scene(NoVolumeZoneConflict, node("n1", **{BETA_ZONE: "a"}), node("n2"), *objects)
    assert scene.ask(pod("p", claim)) == {"n1": f"Error: {text}"}


def test_delayed_claims_have_no_zone_yet() -> None:
    scene = Scene(NoVolumeZoneConflict, node("n1", **{BETA_ZONE: "a"}), storage_class(), pvc("c"))
    assert scene.ask(pod("p", "c")) == {}


KINDS: list[tuple[type[InTreeVolumeCount], str, Any, int]] = [
    (MaxEBSVolumeCount, "aws-ebs", lambda i: {"aws_elastic_block_store": AwsElasticBlockStore(volume_id=f"x{i}")}, 39),
    (MaxGCEPDVolumeCount, "gce-pd", lambda i: {"gce_persistent_disk": GcePersistentDisk(pd_name=f"x{i}")}, 16),
    (MaxAzureDiskVolumeCount, "azure-disk", lambda i: {"azure_disk": AzureDisk(disk_name=f"x{i}")}, 16),
    (MaxCinderVolumeCount, "cinder", lambda i: {"cinder": Cinder(volume_id=f"x{i}")}, 256),
]


@pytest.mark.parametrize(("predicate", "kind", "source", "usual"), KINDS, ids=[case[1] for case in KINDS])
def test_each_kind_counts_its_own(predicate: type[InTreeVolumeCount], kind: str, source: Any, usual: int) -> None:
    limited = node("n1", allocatable={f"attachable-volumes-{kind}": "3"})
    objects = (
        storage_class("s", f"kubernetes.io/{kind}"),
        pvc("made", cls="s"),
        pvc("c", volume="v"),
        pv("v", claim="c", **source(2)),
        pvc("lost", cls="s", volume="gone"),
        pvc("other", cls="none"),
    )
    scene = Scene(predicate, limited, node("n2"), *objects, pod("old", "c", "made", on="n1", volumes=(Volume(**source(1)),)))
    assert scene.ask(pod("p", volumes=(Volume(**source(1)),))) == {}
    assert scene.ask(pod("p", "c", "made")) == {}
    assert scene.ask(pod("p", volumes=(Volume(**source(3)),))) == {"n1": FULL}
    assert scene.ask(pod("p", "lost")) == {"n1": FULL}
    assert scene.ask(pod("p", "other", "nowhere")) == {}
    assert scene.imagine(pod("p", "lost"), "n1", without=("old",)) == []
    for refused, n in ((False, usual), (True, usual + 1)):
        many = pod("p", volumes=tuple(Volume(**source(100 + i)) for i in range(n)))
        assert scene.ask(many) == {"n1": FULL, **({"n2": FULL} if refused else {})}


def test_an_overloaded_node_is_refused_even_for_what_it_has() -> None:
    scene = Scene(MaxEBSVolumeCount, node("n1", allocatable={EBS: "1"}), pod("old", on="n1", volumes=(ebs(1), ebs(2))))
    assert scene.ask(pod("p", volumes=(ebs(1),))) == {"n1": FULL}
    scene.put(node("n1", allocatable={EBS: "2"}))
    assert scene.ask(pod("p", volumes=(ebs(1),))) == {}


def test_some_machines_take_fewer_and_a_variable_overrides_the_table() -> None:
    nitro = node("n1", **{"beta.kubernetes.io/instance-type": "m5.large"})
    wanted = pod("p", volumes=tuple(ebs(i) for i in range(26)))
    assert Scene(MaxEBSVolumeCount, nitro, node("n2")).ask(wanted) == {"n1": FULL}
    told = max_volumes_from({"KUBE_MAX_PD_VOLS": "10"})
    stated = node("n3", allocatable={EBS: "50"})
    assert Scene(MaxEBSVolumeCount, nitro, node("n2"), stated, args=told).ask(wanted) == {"n1": FULL, "n2": FULL}


@pytest.mark.parametrize(("text", "limit"), [("10", 10), ("0", None), ("-3", None), ("many", None), ("", None)])
def test_the_variable(text: str, limit: int | None) -> None:
    assert max_volumes_from({"KUBE_MAX_PD_VOLS": text}) == limit


def test_nodes_that_left_the_kind_to_its_driver_are_not_asked() -> None:
    scene = Scene(
        MaxEBSVolumeCount,
        node("n1", allocatable={EBS: "0"}),
        node("n2", allocatable={EBS: "0"}),
        csi_node("n1", migrated="kubernetes.io/aws-ebs"),
    )
    assert scene.ask(pod("p", volumes=(ebs(1),))) == {"n2": FULL}


def test_csi_limits_stand_in_the_csinode_or_else_in_the_node() -> None:
    resource = csi_limit_resource(DRIVER)
    assert resource == f"attachable-volumes-csi-{DRIVER}"
    claims = [obj for i in (1, 2, 3) for obj in (pv(f"v{i}", claim=f"c{i}", handle=f"h{i}"), pvc(f"c{i}", volume=f"v{i}"))]
    scene = Scene(
        MaxCSIVolumeCountPred,
        node("n1", allocatable={resource: "1"}),
        node("n2", allocatable={resource: "0"}),
        node("n3"),
        csi_node("n2", csi_example_com=2),
        *claims,
    )
    assert scene.ask(pod("p", "c1")) == {}
    assert scene.ask(pod("p", "c1", "c2")) == {"n1": FULL}
    assert scene.ask(pod("p", "c1", "c2", "c3")) == {"n1": FULL, "n2": FULL}
    assert scene.ask(pod("p", volumes=(ebs(1),))) == {}


def test_long_driver_names_are_cut_and_hashed() -> None:
    name = csi_limit_resource("a-driver-with-a-very-long-name.storage.example.com")
    assert name.startswith("attachable-volumes-csi-a-driver-with-a-very-lo") and len(name) == 23 + 23 + 16


def test_check_volume_binding_in_its_old_words() -> None:
    scene = Scene(
        CheckVolumeBinding,
        node("n1", zone="a"),
        node("n2", zone="b"),
        pv("v", zones=("a",), claim="c"),
        pvc("c", volume="v"),
        pvc("now", cls=None),
        pvc("gone", volume="g"),
    )
    assert scene.ask(pod("p", "c")) == {"n2": ["node(s) had volume node affinity conflict"]}
    unbound = "Error: pod has unbound immediate PersistentVolumeClaims"
    assert scene.ask(pod("p", "now")) == {"n1": unbound, "n2": unbound}
    assert set(scene.ask(pod("p", "gone"))) == {"n1", "n2"}
    assert all(text.startswith("Error") for text in scene.ask(pod("p", "gone")).values())
