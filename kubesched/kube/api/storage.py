"""Persistent volumes and claims, and the objects of storage.k8s.io that say where volumes can be used."""

from __future__ import annotations

from msgspec import field

from kubesched.kube.api.meta import LabelSelector, ObjectReference, Quantity, TopLevel, Wire, always
from kubesched.kube.api.node import NodeSelector
from kubesched.kube.api.volumes import PersistentVolumeClaimSpec, PersistentVolumeSources


class VolumeNodeAffinity(Wire, kw_only=True):
    """The nodes on which a volume can be used."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(PersistentVolumeSources, kw_only=True):
    """Source, size, class and place of a volume."""

    capacity: dict[str, Quantity] = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None  # the claim that the volume is bound to or reserved for
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    mount_options: tuple[str, ...] = ()
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(Wire, kw_only=True):
    """The phase of a volume."""

    phase: str = ""
    message: str = ""
    reason: str = ""


class PersistentVolume(TopLevel, kw_only=True):
    """A volume."""

    api_version: str = always("v1")
    kind: str = always("PersistentVolume")
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimStatus(Wire, kw_only=True):
    """The phase and the size of a claim."""

    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: dict[str, Quantity] = field(default_factory=dict)


class PersistentVolumeClaim(TopLevel, kw_only=True):
    """A claim for a volume."""

    api_version: str = always("v1")
    kind: str = always("PersistentVolumeClaim")
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologySelectorLabelRequirement(Wire, kw_only=True):
    """A label and the values it may have."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Wire, kw_only=True):
    """Labels that must all match."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(TopLevel, kw_only=True):
    """How and when the volumes of a class are made. None for the binding mode is kept: such a class is an error."""

    api_version: str = always("storage.k8s.io/v1")
    kind: str = always("StorageClass")
    provisioner: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    reclaim_policy: str | None = None
    mount_options: tuple[str, ...] = ()
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None  # WaitForFirstConsumer: the scheduler chooses the node first
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()  # where new volumes may be


class VolumeNodeResources(Wire, kw_only=True):
    """How many volumes of a driver a node can have. Absent means no limit, 0 is a limit."""

    count: int | None = None


class CSINodeDriver(Wire, kw_only=True):
    """A CSI driver on a node."""

    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None  # read by NodeVolumeLimits


class CSINodeSpec(Wire, kw_only=True):
    """The CSI drivers on a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(TopLevel, kw_only=True):
    """The CSI drivers of the node with the same name."""

    api_version: str = always("storage.k8s.io/v1")
    kind: str = always("CSINode")
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Wire, kw_only=True):
    """What a CSI driver needs."""

    attach_required: bool | None = None
    pod_info_on_mount: bool | None = None
    storage_capacity: bool | None = None  # the scheduler checks CSIStorageCapacity objects before it chooses a node
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(TopLevel, kw_only=True):
    """A CSI driver; its name is the driver's."""

    api_version: str = always("storage.k8s.io/v1")
    kind: str = always("CSIDriver")
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(TopLevel, kw_only=True):
    """How much storage of a class is left in one part of the cluster. An absent topology means on no node."""

    api_version: str = always("storage.k8s.io/v1")
    kind: str = always("CSIStorageCapacity")
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(Wire, kw_only=True):
    """The volume that is attached."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Wire, kw_only=True):
    """Which volume is attached to which node, by which driver."""

    attacher: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()
    node_name: str = ""


class VolumeAttachmentStatus(Wire, kw_only=True):
    """Whether the volume is attached."""

    attached: bool = False  # the driver has done it


class VolumeAttachment(TopLevel, kw_only=True):
    """A volume that is attached to a node, or is being attached or detached."""

    api_version: str = always("storage.k8s.io/v1")
    kind: str = always("VolumeAttachment")
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
