"""In-tree volumes under the names and in the places that their CSI drivers know."""

from __future__ import annotations

import pytest
from volume_scene import pv

from kubesched.kube.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.kube.api.storage import VolumeNodeAffinity
from kubesched.kube.api.volumes import (
    AwsElasticBlockStore,
    AzureDisk,
    AzureFile,
    Cinder,
    GcePersistentDisk,
    PortworxVolume,
    Volume,
    VsphereVolume,
)
from kubesched.scheduler.plugins.shared import csi_translation as csi

EBS = AwsElasticBlockStore(volume_id="vol-1")

INLINE = [
    ("an AWS id is the handle", Volume(aws_elastic_block_store=EBS), "vol-1"),
    (
        "an AWS address gives its last part",
        Volume(aws_elastic_block_store=AwsElasticBlockStore(volume_id="aws://eu-1a/vol-2")),
        "vol-2",
    ),
    (
        "an AWS address without zone",
        Volume(aws_elastic_block_store=AwsElasticBlockStore(volume_id="aws:///vol-3")),
        "vol-3",
    ),
    (
        "a Google disk of unknown place",
        Volume(gce_persistent_disk=GcePersistentDisk(pd_name="d")),
        "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
    ),
    ("an Azure disk", Volume(azure_disk=AzureDisk(disk_name="n", disk_uri="/u")), "/u"),
    ("a managed Azure disk, in any spelling", Volume(azure_disk=AzureDisk(disk_uri="/u", kind="MANAGED")), "/u"),
    ("an OpenStack volume", Volume(cinder=Cinder(volume_id="c")), "c"),
    ("a Portworx volume", Volume(portworx_volume=PortworxVolume(volume_id="p")), "p"),
]


@pytest.mark.parametrize(("volume", "handle"), [case[1:] for case in INLINE], ids=[case[0] for case in INLINE])
def test_inline_handles(volume: Volume, handle: str) -> None:
    assert csi.inline_handle(volume) == handle


@pytest.mark.parametrize(
    ("volume", "text"),
    [
        (Volume(aws_elastic_block_store=AwsElasticBlockStore(volume_id="aws://eu-1a/disk-2")), "aws://eu-1a/disk-2"),
        (Volume(azure_disk=AzureDisk(disk_uri="/u", kind="Dedicated")), "Dedicated"),
    ],
)
def test_what_has_no_csi_form_is_named(volume: Volume, text: str) -> None:
    with pytest.raises(csi.TranslationError, match=text):
        csi.inline_handle(volume)


GCE = [
    ("no label", {}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
    ("one zone", {csi.ZONE: "eu-1-a"}, "projects/UNSPECIFIED/zones/eu-1-a/disks/d"),
    ("the old label wins", {csi.ZONE: "x", csi.BETA_ZONE: "eu-1-b"}, "projects/UNSPECIFIED/zones/eu-1-b/disks/d"),
    ("two zones are a region", {csi.ZONE: "eu-1-a__eu-1-b"}, "projects/UNSPECIFIED/regions/eu-1/disks/d"),
]


@pytest.mark.parametrize(("labels", "handle"), [case[1:] for case in GCE], ids=[case[0] for case in GCE])
def test_google_disks_are_named_by_their_zones(labels: dict[str, str], handle: str) -> None:
    assert csi.volume_handle(pv("d", labels=labels, gce_persistent_disk=GcePersistentDisk(pd_name="d"))) == handle


@pytest.mark.parametrize("zones", ["eu-1-a__us-1-a", "eu-1__eu-2", "eu-1-a__"])
def test_zones_that_are_no_region_have_no_handle(zones: str) -> None:
    with pytest.raises(csi.TranslationError):
        csi.volume_handle(pv("d", labels={csi.ZONE: zones}, gce_persistent_disk=GcePersistentDisk(pd_name="d")))


def test_two_kinds_are_known_but_never_migrated() -> None:
    assert csi.in_tree_plugin(Volume(azure_file=AzureFile())) == csi.AZURE_FILE
    assert csi.in_tree_plugin(Volume(vsphere_volume=VsphereVolume())) == csi.VSPHERE
    assert csi.MIGRATED.isdisjoint((csi.AZURE_FILE, csi.VSPHERE))
    assert csi.in_tree_plugin(Volume()) == ""


def selector(*requirements: tuple[str, str, tuple[str, ...]]) -> NodeSelector:
    return NodeSelector(
        node_selector_terms=(
            NodeSelectorTerm(
                match_expressions=tuple(
                    NodeSelectorRequirement(key=key, operator=operator, values=values) for key, operator, values in requirements
                )
            ),
        )
    )


EBS_ZONE = "topology.ebs.csi.aws.com/zone"
AFFINITIES = [
    ("the zone gets the driver's name", selector((csi.ZONE, "In", ("a",))), {}, selector((EBS_ZONE, "In", ("a",)))),
    (
        "the old zone too, and the old region the new name",
        selector((csi.BETA_ZONE, "In", ("a",)), (csi.BETA_REGION, "In", ("r",))),
        {},
        selector((EBS_ZONE, "In", ("a",)), (csi.REGION, "In", ("r",))),
    ),
    ("without affinity the label makes one", None, {csi.ZONE: "b__a__b"}, selector((EBS_ZONE, "In", ("a", "b")))),
    (
        "the label is added to other terms",
        selector(("disk", "Exists", ())),
        {csi.BETA_ZONE: "a"},
        selector(("disk", "Exists", ()), (EBS_ZONE, "In", ("a",))),
    ),
    (
        "a zone that is only asked to exist is not renamed, the label is added",
        selector((csi.ZONE, "Exists", ())),
        {csi.ZONE: "a"},
        selector((csi.ZONE, "Exists", ()), (EBS_ZONE, "In", ("a",))),
    ),
    (
        "affinity decides the family before labels do",
        selector((csi.BETA_ZONE, "In", ("a",))),
        {csi.ZONE: "b"},
        selector((EBS_ZONE, "In", ("a",))),
    ),
    ("nothing said, nothing done", None, {}, None),
    ("an empty label adds nothing", None, {csi.ZONE: ""}, None),
]


@pytest.mark.parametrize(("before", "labels", "after"), [case[1:] for case in AFFINITIES], ids=[c[0] for c in AFFINITIES])
def test_affinity_in_the_drivers_words(before: NodeSelector | None, labels: dict[str, str], after: NodeSelector | None) -> None:
    volume = pv("v", labels=labels, node_affinity=VolumeNodeAffinity(required=before), aws_elastic_block_store=EBS)
    assert csi.translated_affinity(volume) == after


def test_azure_disks_keep_their_affinity() -> None:
    before = selector((csi.ZONE, "In", ("a",)))
    volume = pv("v", node_affinity=VolumeNodeAffinity(required=before), azure_disk=AzureDisk(disk_uri="/u"))
    assert csi.translated_affinity(volume) == before
