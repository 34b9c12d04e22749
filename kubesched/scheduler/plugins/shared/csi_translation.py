"""CSI migration: an in-tree volume (inline or persistent) as the CSI volume that replaced it.

    in-tree          gcePersistentDisk data-1, label topology.kubernetes.io/zone=eu-1
    driver           pd.csi.storage.gke.io
    handle           projects/UNSPECIFIED/zones/eu-1/disks/data-1
    node affinity    topology.gke.io/zone In [eu-1]

Only what scheduling reads is translated: driver, handle and node affinity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from msgspec.structs import replace

from kubesched.errors import SchedulerError
from kubesched.kube.api import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeSpec,
    Volume,
)
from kubesched.kube.values import BETA_REGION, BETA_ZONE, REGION, ZONE

AWS_EBS, GCE_PD = "kubernetes.io/aws-ebs", "kubernetes.io/gce-pd"
AZURE_DISK, AZURE_FILE = "kubernetes.io/azure-disk", "kubernetes.io/azure-file"
CINDER, PORTWORX, VSPHERE = "kubernetes.io/cinder", "kubernetes.io/portworx-volume", "kubernetes.io/vsphere-volume"

CSI_DRIVERS = {
    AWS_EBS: "ebs.csi.aws.com",
    GCE_PD: "pd.csi.storage.gke.io",
    CINDER: "cinder.csi.openstack.org",
    AZURE_DISK: "disk.csi.azure.com",
    AZURE_FILE: "file.csi.azure.com",
    VSPHERE: "csi.vsphere.vmware.com",
    PORTWORX: "pxd.portworx.com",
}
"""The CSI driver of each in-tree plugin."""

MIGRATED = frozenset((AWS_EBS, GCE_PD, AZURE_DISK, CINDER, PORTWORX))
"""The in-tree plugins whose volumes count for their CSI driver; those of the other two never count."""


_CSI_ZONES = {
    AWS_EBS: "topology.ebs.csi.aws.com/zone",
    GCE_PD: "topology.gke.io/zone",
    CINDER: "topology.cinder.csi.openstack.org/zone",
}
_SOURCES = (
    ("gce_persistent_disk", GCE_PD),
    ("aws_elastic_block_store", AWS_EBS),
    ("cinder", CINDER),
    ("azure_disk", AZURE_DISK),
    ("azure_file", AZURE_FILE),
    ("vsphere_volume", VSPHERE),
    ("portworx_volume", PORTWORX),
)
Expressions = tuple[NodeSelectorRequirement, ...]
_EBS_ID = re.compile(r"vol-[^/]*")
_UNSPECIFIED = "UNSPECIFIED"


class TranslationError(SchedulerError):
    """A volume that has no CSI form."""


def in_tree_plugin(volume: Volume | PersistentVolumeSpec) -> str:
    """Return the in-tree plugin of a volume, empty if it has none."""
    return next((plugin for source, plugin in _SOURCES if getattr(volume, source) is not None), "")


def inline_handle(volume: Volume) -> str:
    """Return the handle of an inline volume of a migrated plugin."""
    if volume.gce_persistent_disk is not None:
        return _gce_handle("zones", _UNSPECIFIED, volume.gce_persistent_disk.pd_name)
    return _plain_handle(volume)


def volume_handle(volume: PersistentVolume) -> str:
    """Return the handle of a persistent volume of a migrated plugin."""
    disk = volume.spec.gce_persistent_disk
    if disk is None:
        return _plain_handle(volume.spec)
    labels = volume.metadata.labels
    # A label with two zones, `europe-west1-b__europe-west1-c`, is a regional disk. Its handle has the region that both
    # are in.
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE) or _UNSPECIFIED).split("__")
    if len(zones) > 1:
        return _gce_handle("regions", _region_of(zones), disk.pd_name)
    return _gce_handle("zones", zones[0], disk.pd_name)


def translated_affinity(volume: PersistentVolume) -> NodeSelector | None:
    """Return the node affinity of the CSI form of an in-tree volume, None for all nodes."""
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    plugin = in_tree_plugin(volume.spec)
    volume_handle(volume)  # raises if the volume has no CSI form
    csi_zone = _CSI_ZONES.get(plugin)
    if csi_zone is None:
        return required
    labels = volume.metadata.labels
    # Three cases:
    #     the affinity has zones                 its key is renamed to the driver's
    #     only the label has zones (old volume)  a requirement with the driver's key is added to each term
    #     neither                                the affinity stays as it is
    zone_key = _zone_family(required, labels)
    if any(wanted.values for wanted in _expressions_of(required) if wanted.key == zone_key):
        required = _renamed(required, zone_key, csi_zone)
    elif zone_key in labels:
        zones = {zone.strip() for zone in labels[zone_key].split("__")} - {""}
        required = _with_requirement(required, csi_zone, sorted(zones)) if zones else required
    # Kept quirk: the region's old key is renamed only together with the zone's old key.
    if zone_key == BETA_ZONE:
        required = _renamed(required, BETA_REGION, REGION)
    return required


def _plain_handle(source: Volume | PersistentVolumeSpec) -> str:
    """Return the handle of a volume of a kind that needs no labels. EBS volumes may be written as aws://zone/vol-id; Azure
    disks must be managed."""
    if (ebs := source.aws_elastic_block_store) is not None:
        if not ebs.volume_id.startswith("aws://"):
            return ebs.volume_id
        # `aws://eu-west-1a/vol-0123`: the volume is the path, the zone is the host part and not read.
        found = urlsplit(ebs.volume_id).path.strip("/")
        if not _EBS_ID.fullmatch(found):
            raise TranslationError(f"invalid format for AWS volume ({ebs.volume_id})")
        return found
    if source.azure_disk is not None:
        kind = source.azure_disk.kind
        if kind is not None and kind.lower() != "managed":
            raise TranslationError(f"kind({kind}) is not supported in csi migration")
        return source.azure_disk.disk_uri
    if source.cinder is not None:
        return source.cinder.volume_id
    assert source.portworx_volume is not None
    return source.portworx_volume.volume_id


def _gce_handle(scope: str, place: str, name: str) -> str:
    return f"projects/{_UNSPECIFIED}/{scope}/{place}/disks/{name}"


def _region_of(zones: list[str]) -> str:
    """Return the region of zones like europe-west1-b; all zones must be in one region."""
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}")
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        raise TranslationError(f"multiple or no regions gotten from zones, got: {sorted(regions)}")
    return regions.pop()


def _zone_family(selector: NodeSelector | None, labels: dict[str, str]) -> str:
    """Return the zone label of a volume: the one in its affinity, else the one among its labels."""
    # The newer key wins where both are present; without any, the newer one, which then matches nothing.
    asked_for = {wanted.key for wanted in _expressions_of(selector)}
    return next((key for found in (asked_for, labels) for key in (ZONE, BETA_ZONE) if key in found), ZONE)


def _expressions_of(selector: NodeSelector | None) -> Iterator[NodeSelectorRequirement]:
    for term in selector.node_selector_terms if selector is not None else ():
        yield from term.match_expressions


def _renamed(selector: NodeSelector | None, old: str, new: str) -> NodeSelector | None:
    if selector is None:
        return None
    return _with_expressions(
        selector.node_selector_terms,
        lambda expressions: tuple(replace(wanted, key=new) if wanted.key == old else wanted for wanted in expressions),
    )


def _with_requirement(selector: NodeSelector | None, key: str, values: list[str]) -> NodeSelector:
    wanted = NodeSelectorRequirement(key=key, operator="In", values=tuple(values))
    terms = selector.node_selector_terms if selector is not None else ()
    return _with_expressions(terms or (NodeSelectorTerm(),), lambda expressions: (*expressions, wanted))


def _with_expressions(terms: tuple[NodeSelectorTerm, ...], change: Callable[[Expressions], Expressions]) -> NodeSelector:
    changed = (replace(term, match_expressions=change(term.match_expressions)) for term in terms)
    return NodeSelector(node_selector_terms=tuple(changed))
