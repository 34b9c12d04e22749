"""Builders and a small stage for the volume plugins: objects in a few words, one plugin, what it says of each node."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.kube.api.meta import LabelSelector, ObjectMeta, ObjectReference, OwnerReference
from kubesched.kube.api.node import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, NodeStatus
from kubesched.kube.api.pod import Pod, PodSpec, PodStatus
from kubesched.kube.api.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
    VolumeNodeResources,
)
from kubesched.kube.api.volumes import (
    CsiPersistentVolume,
    EphemeralVolume,
    PersistentVolumeClaimSource,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimTemplate,
    Volume,
    VolumeResources,
)
from kubesched.scheduler.cluster import PodView, Snapshot, Store
from kubesched.scheduler.config import NEWEST, Gates, Version
from kubesched.scheduler.engine.handle import EngineHandle, NoMeter
from kubesched.scheduler.framework.cycle_state import CycleState
from kubesched.scheduler.framework.plugin import Plugin
from kubesched.scheduler.framework.preemption.whatif import WhatIf
from kubesched.scheduler.framework.verdicts import SKIP, Rejections, Status
from kubesched.testing import FakeClock, FakeWriter

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
DRIVER = "csi.example.com"


def node(name: str, zone: str = "", allocatable: dict[str, str] | None = None, **labels: str) -> Node:
    found = {HOSTNAME: name, **({ZONE: zone} if zone else {}), **labels}
    status = NodeStatus(allocatable={"cpu": "4", "memory": "8Gi", "pods": "110", **(allocatable or {})})
    return Node(metadata=ObjectMeta(name=name, labels=found), status=status)


def relabelled(old: Node, **labels: str) -> Node:
    return msgspec.structs.replace(old, metadata=ObjectMeta(name=old.name, labels={HOSTNAME: old.name, **labels}))


def reaches(key: str, *values: str) -> VolumeNodeAffinity:
    wanted = NodeSelectorRequirement(key=key, operator="In", values=values)
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(wanted,)),)))


def pv(
    name: str,
    size: str = "1Gi",
    *,
    on: tuple[str, ...] = (),
    zones: tuple[str, ...] = (),
    cls: str = "wait",
    claim: str = "",
    claim_uid: str = "",
    phase: str = "",
    handle: str = "",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    version: str = "1",
    deleting: bool = False,
    **spec: Any,
) -> PersistentVolume:
    affinity = reaches(HOSTNAME, *on) if on else reaches(ZONE, *zones) if zones else spec.pop("node_affinity", None)
    namespace, _, claim_name = claim.rpartition("/")
    ref = ObjectReference(namespace=namespace or "default", name=claim_name, uid=claim_uid) if claim else None
    return PersistentVolume(
        metadata=ObjectMeta(
            name=name,
            uid=f"uid-{name}",
            resource_version=version,
            labels=labels or {},
            annotations=annotations or {},
            deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
        ),
        spec=PersistentVolumeSpec(
            capacity={"storage": size},
            access_modes=modes,
            storage_class_name=cls,
            claim_ref=ref,
            node_affinity=affinity,
            csi=CsiPersistentVolume(driver=DRIVER, volume_handle=handle) if handle else None,
            **spec,
        ),
        status=PersistentVolumeStatus(phase=phase or ("Bound" if claim else "Available")),
    )


def pvc(
    name: str,
    size: str = "1Gi",
    *,
    volume: str = "",
    cls: str | None = "wait",
    bound: bool | None = None,
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    annotations: dict[str, str] | None = None,
    owner: str = "",
    namespace: str = "default",
    phase: str = "",
    deleting: bool = False,
    version: str = "1",
    **spec: Any,
) -> PersistentVolumeClaim:
    found = dict(annotations or {})
    if bound if bound is not None else bool(volume):
        found["pv.kubernetes.io/bind-completed"] = "yes"
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-{name}",
            resource_version=version,
            annotations=found,
            deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
            owner_references=(OwnerReference(kind="Pod", name=owner, uid=owner, controller=True),) if owner else (),
        ),
        spec=PersistentVolumeClaimSpec(
            access_modes=modes,
            volume_name=volume,
            storage_class_name=cls,
            resources=VolumeResources(requests={"storage": size} if size else {}),
            **spec,
        ),
        status=PersistentVolumeClaimStatus(phase=phase or ("Bound" if volume else "Pending")),
    )


def storage_class(
    name: str = "wait",
    provisioner: str = "kubernetes.io/no-provisioner",
    mode: str | None = "WaitForFirstConsumer",
    topologies: tuple[dict[str, tuple[str, ...]], ...] = (),
) -> StorageClass:
    terms = tuple(
        TopologySelectorTerm(
            match_label_expressions=tuple(
                TopologySelectorLabelRequirement(key=key, values=values) for key, values in term.items()
            )
        )
        for term in topologies
    )
    return StorageClass(
        metadata=ObjectMeta(name=name), provisioner=provisioner, volume_binding_mode=mode, allowed_topologies=terms
    )


def csi_node(name: str, migrated: str = "", **limits: int | None) -> CSINode:
    """Limits by driver, dots and dashes of its name written as underscores: none or a number."""
    drivers = tuple(
        CSINodeDriver(name=driver.replace("_", "."), allocatable=VolumeNodeResources(count=count))
        for driver, count in limits.items()
    )
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    return CSINode(metadata=ObjectMeta(name=name, annotations=annotations), spec=CSINodeSpec(drivers=drivers))


def csi_driver(name: str = DRIVER, capacity: bool | None = True, **spec: Any) -> CSIDriver:
    return CSIDriver(metadata=ObjectMeta(name=name), spec=CSIDriverSpec(storage_capacity=capacity, **spec))


def capacity(
    name: str, amount: str | None, *, cls: str = "wait", largest: str | None = None, **labels: str
) -> CSIStorageCapacity:
    return CSIStorageCapacity(
        metadata=ObjectMeta(name=name, namespace="kube-system"),
        storage_class_name=cls,
        capacity=amount,
        maximum_volume_size=largest,
        node_topology=LabelSelector(match_labels=labels),
    )


def attachment(name: str, node_name: str, volume: str | None, attacher: str = DRIVER) -> VolumeAttachment:
    return VolumeAttachment(
        metadata=ObjectMeta(name=name),
        spec=VolumeAttachmentSpec(
            attacher=attacher, node_name=node_name, source=VolumeAttachmentSource(persistent_volume_name=volume)
        ),
    )


def pod(
    name: str = "p",
    *claims: str,
    on: str = "",
    namespace: str = "default",
    ephemeral: tuple[str, ...] = (),
    volumes: tuple[Volume, ...] = (),
    nominated: str = "",
    priority: int = 0,
) -> Pod:
    named = tuple(
        Volume(name=f"v{i}", persistent_volume_claim=PersistentVolumeClaimSource(claim_name=claim))
        for i, claim in enumerate(claims)
    )
    made = tuple(
        Volume(name=volume, ephemeral=EphemeralVolume(volume_claim_template=PersistentVolumeClaimTemplate()))
        for volume in ephemeral
    )
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=name),
        spec=PodSpec(node_name=on, volumes=(*named, *made, *volumes), priority=priority),
        status=PodStatus(nominated_node_name=nominated),
    )


class CountingMeter(NoMeter):
    """Keeps what was counted."""

    def __init__(self) -> None:
        self.volume_errors: list[str] = []

    def volume_error(self, operation: str) -> None:
        self.volume_errors.append(operation)


class Scene:
    """A cluster and one plugin."""

    def __init__(self, cls: type[Plugin], *objects: Any, args: Any = None, gates: str = "", release: Version = NEWEST) -> None:
        self.store = Store()
        self.clock = FakeClock(0.0, jumps=True)
        self.writer = FakeWriter()
        self.meter = CountingMeter()
        self.put(*objects)
        switched = Gates.of(dict.fromkeys(gates.split(","), True) if gates else {}, emulated=release)
        self.handle = EngineHandle(
            self.store.objects,
            switched,
            clock=self.clock,
            writer=self.writer,
            find_node=self.store.node,
            meter=self.meter,
            knows_pod=lambda uid: uid not in self.gone,
        )
        self.gone: set[str] = set()
        self.plugin = cls(args, self.handle)
        self.state = CycleState()

    def put(self, *objects: Any) -> None:
        for obj in objects:
            self.store.put(obj)

    def view(self, wanted: Pod) -> PodView:
        return self.store.view(wanted)

    def ask(self, wanted: Pod, nodes: Snapshot | None = None) -> Any:
        """Return SKIP or a refusal for all nodes, or else the reasons by node, or the errors by node."""
        self.state = CycleState()
        seen = self.view(wanted)
        nodes = nodes if nodes is not None else self.store.snapshot()
        answer = self.plugin.pre_filter(seen, nodes, self.state)
        if answer is SKIP:
            return SKIP
        if isinstance(answer, Status):
            return (answer.code.text, *answer.reasons)
        return self.told(self.plugin.filter(seen, nodes, self.state), nodes)

    def told(self, rejections: Rejections, nodes: Snapshot) -> dict[str, Any]:
        if rejections.errors:
            return {nodes.name(row): f"Error: {text}" for row, text in rejections.errors.items()}
        found = {nodes.name(row): list(rejections.status(row).reasons) for row in range(nodes.n)}
        return {name: reasons for name, reasons in found.items() if reasons}

    def imagine(self, wanted: Pod, node_name: str, *, without: tuple[str, ...] = (), with_: tuple[Pod, ...] = ()) -> Any:
        """Return what the plugin says of one node if some of its pods were gone, or others there."""
        nodes = self.store.snapshot()
        answer = self.ask(wanted)
        assert not isinstance(answer, tuple) and answer is not SKIP, answer
        seen, state, row = self.view(wanted), self.state.clone(), nodes.row(node_name)
        view = WhatIf.of(nodes, [row])
        for other in [other for other in nodes.pods_on(row) if other.name in without]:
            view.move(other, -1)
            self.plugin.remove_pod(seen, other, row, nodes, state)
        for other in map(self.view, with_):
            view.move(other, 1)
            self.plugin.add_pod(seen, other, row, nodes, state)
        return self.told(self.plugin.filter(seen, view, state), view).get(node_name, [])
