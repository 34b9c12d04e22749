"""Volume sources, as pods have them inline and as persistent volumes have them.

Sources that the scheduler compares (two pods cannot use one disk) or translates to CSI have structs of their own. Of the
others it only matters that they are there. In a pod, which is never written back whole, nothing more is kept of them; in a
persistent volume they stay plain maps.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from kubesched.kube.api.meta import LabelSelector, ObjectMeta, Quantity, Wire

Opaque = dict[str, Any]  # a source that is kept and not read
"""A source that the scheduler carries without looking inside."""


class PersistentVolumeClaimSource(Wire, kw_only=True):
    """A volume that a claim in the pod's namespace provides."""

    claim_name: str = ""
    read_only: bool = False


class GcePersistentDisk(Wire, kw_only=True):
    """A Google Compute Engine disk."""

    pd_name: str = ""
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class AwsElasticBlockStore(Wire, kw_only=True):
    """An AWS volume; `volume_id` may be a bare id or an `aws://` address."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class Rbd(Wire, kw_only=True):
    """A Ceph block device."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    fs_type: str = ""
    user: str = ""
    keyring: str = ""
    secret_ref: Opaque | None = None
    read_only: bool = False


class Iscsi(Wire, kw_only=True):
    """An iSCSI target."""

    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    iscsi_interface: str = ""
    fs_type: str = ""
    read_only: bool = False
    portals: tuple[str, ...] = ()
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    secret_ref: Opaque | None = None
    initiator_name: str | None = None


class Cinder(Wire, kw_only=True):
    """An OpenStack volume."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False
    secret_ref: Opaque | None = None


class AzureDisk(Wire, kw_only=True):
    """An Azure disk; only the kind `Managed` can be translated."""

    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    caching_mode: str | None = None
    fs_type: str | None = None
    read_only: bool | None = None
    kind: str | None = None


class AzureFile(Wire, kw_only=True):
    """An Azure file share."""

    secret_name: str = ""
    secret_namespace: str | None = None
    share_name: str = ""
    read_only: bool = False


class VsphereVolume(Wire, kw_only=True):
    """A vSphere disk."""

    volume_path: str = ""
    fs_type: str = ""
    storage_policy_name: str = ""
    storage_policy_id: str = field(default="", name="storagePolicyID")


class PortworxVolume(Wire, kw_only=True):
    """A Portworx volume."""

    volume_id: str = field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class CsiVolume(Wire, kw_only=True):
    """A volume that a CSI driver makes for this pod alone. It is never attached, so it does not count towards limits."""

    driver: str = ""
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: dict[str, str] = field(default_factory=dict)
    node_publish_secret_ref: Opaque | None = None


class CsiPersistentVolume(Wire, kw_only=True):
    """A volume that a CSI driver attaches. Driver and handle together identify it."""

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False
    fs_type: str = ""
    volume_attributes: dict[str, str] = field(default_factory=dict)
    controller_publish_secret_ref: Opaque | None = None
    node_stage_secret_ref: Opaque | None = None
    node_publish_secret_ref: Opaque | None = None
    controller_expand_secret_ref: Opaque | None = None
    node_expand_secret_ref: Opaque | None = None


class ImageVolume(Wire, kw_only=True):
    """An image that is mounted read-only."""

    reference: str = ""
    pull_policy: str = ""


class VolumeResources(Wire, kw_only=True):
    """The size that a claim requests."""

    requests: dict[str, Quantity] = field(default_factory=dict)
    limits: dict[str, Quantity] = field(default_factory=dict)


class PersistentVolumeClaimSpec(Wire, kw_only=True):
    """The spec of a claim. `storage_class_name` None means the default class, an empty text means none."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""  # the volume that the claim is bound to
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    data_source: Opaque | None = None
    data_source_ref: Opaque | None = None


class PersistentVolumeClaimTemplate(Wire, kw_only=True):
    """The claim that is made for a pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolume(Wire, kw_only=True):
    """A claim that is made and deleted with the pod; its name is `POD-VOLUME`."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class Anything(Wire, kw_only=True):
    """A source whose fields are skipped: in a list of all pods that saves time and memory."""


class TypedSources(Wire, kw_only=True):
    """The sources that pods and persistent volumes share."""

    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    rbd: Rbd | None = None
    iscsi: Iscsi | None = None
    cinder: Cinder | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None


class Volume(TypedSources, kw_only=True):
    """A volume of a pod: a name and one source."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: EphemeralVolume | None = None
    csi: CsiVolume | None = None
    image: ImageVolume | None = None
    config_map: Anything | None = None
    secret: Anything | None = None
    projected: Anything | None = None
    empty_dir: Anything | None = None
    host_path: Anything | None = None
    downward_api: Anything | None = field(default=None, name="downwardAPI")
    nfs: Anything | None = None
    git_repo: Anything | None = None
    glusterfs: Anything | None = None
    flex_volume: Anything | None = None
    cephfs: Anything | None = None
    flocker: Anything | None = None
    fc: Anything | None = None
    quobyte: Anything | None = None
    photon_persistent_disk: Anything | None = None
    scale_io: Anything | None = field(default=None, name="scaleIO")
    storageos: Anything | None = None


class PersistentVolumeSources(TypedSources, kw_only=True):
    """The sources of persistent volumes; their spec extends this."""

    csi: CsiPersistentVolume | None = None
    local: Opaque | None = None
    host_path: Opaque | None = None
    nfs: Opaque | None = None
    glusterfs: Opaque | None = None
    flex_volume: Opaque | None = None
    cephfs: Opaque | None = None
    flocker: Opaque | None = None
    fc: Opaque | None = None
    quobyte: Opaque | None = None
    photon_persistent_disk: Opaque | None = None
    scale_io: Opaque | None = field(default=None, name="scaleIO")
    storageos: Opaque | None = None
