"""The benchmark's cluster and pods, as kube-scheduler's own scheduler_perf makes them.

In: sizes and a kind. Out: API objects. Everything follows from the arguments, nothing from chance or time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from kubesched.kube.api import (
    Affinity,
    CELDeviceSelector,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CsiPersistentVolume,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    LabelSelector,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSource,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodResourceClaim,
    Quantity,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceRequirements,
    ResourceSlice,
    ResourceSliceSpec,
    TopLevel,
    TopologySpreadConstraint,
    Volume,
    VolumeNodeAffinity,
    VolumeNodeResources,
    VolumeResources,
    WeightedPodAffinityTerm,
)
from kubesched.kube.values import BIND_COMPLETED, HOSTNAME, ZONE
from kubesched.tools.bench import controller_pods, gpu_pods
from kubesched.tools.bench.builders import NAMESPACE as NAMESPACE
from kubesched.tools.bench.builders import make_node, make_pod

SCHEDULER_PERF_KINDS = (
    "basic",
    "spread",
    "softspread",
    "affinity",
    "antiaffinity",
    "prefaffinity",
    "mixed",
    "churn",
    "csi",
    "dra",
)
KINDS = (*SCHEDULER_PERF_KINDS, *controller_pods.KINDS, "gpu")
DRIVER, DEVICE_CLASS, DEVICES_PER_NODE = "driver.example.com", "test-class", 10
CSI_DRIVER, VOLUMES_PER_NODE = "ebs.csi.aws.com", 39
_MIXED = ("basic", "spread", "prefaffinity", "softspread")
_BLUE = LabelSelector(match_labels={"color": "blue"})
_GREEN = LabelSelector(match_labels={"color": "green"})
_ASKED = ResourceRequirements(requests={"cpu": "100m", "memory": "500Mi"}, limits={"cpu": "100m", "memory": "500Mi"})


def node(i: int, *, turn: int = 0) -> Node:
    """Return node number i: 4 cores, 32Gi, 110 pods, one of ten zones; `turn` makes a version with another label."""
    return make_node(i, {"cpu": "4", "memory": "32Gi", "pods": "110"}, {"turn": str(turn % 7)} if turn else None)


def pod(i: int, kind: str, *, extra_label: str = "") -> Pod:
    """Return pod number i of a kind; all are 100m and 500Mi."""
    if kind == "mixed":
        kind = _MIXED[i % len(_MIXED)]
    labels = {"color": "green" if kind == "antiaffinity" else "blue"}
    if extra_label:
        labels["class"] = extra_label
    more: dict[str, Any] = {}
    if kind == "affinity":
        term = PodAffinityTerm(label_selector=_BLUE, topology_key=ZONE)
        more["affinity"] = Affinity(pod_affinity=PodAffinity(required=(term,)))
    elif kind == "antiaffinity":
        term = PodAffinityTerm(label_selector=_GREEN, topology_key=HOSTNAME)
        more["affinity"] = Affinity(pod_anti_affinity=PodAffinity(required=(term,)))
    elif kind == "prefaffinity":
        term = PodAffinityTerm(label_selector=_BLUE, topology_key=HOSTNAME)
        wish = WeightedPodAffinityTerm(weight=1, pod_affinity_term=term)
        more["affinity"] = Affinity(pod_affinity=PodAffinity(preferred=(wish,)))
    elif kind in ("spread", "softspread"):
        action = "DoNotSchedule" if kind == "spread" else "ScheduleAnyway"
        rule = TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=action, label_selector=_BLUE)
        more["topology_spread_constraints"] = (rule,)
    elif kind == "csi":
        more["volumes"] = (Volume(name="v", persistent_volume_claim=PersistentVolumeClaimSource(claim_name=f"claim-{i}")),)
    elif kind == "dra":
        more["resource_claims"] = (PodResourceClaim(name="d", resource_claim_name=f"claim-{i}"),)
    return make_pod(i, labels, _ASKED, **more)


def cluster(kind: str, n_nodes: int, n_init: int, n_pods: int) -> Iterator[TopLevel]:
    """Yield what is there before the first pod is scheduled."""
    for i in range(n_nodes):
        yield gpu_pods.node(i) if kind == "gpu" else node(i)
    for i in range(n_init):
        yield make_pod(i, {"color": "blue"}, ResourceRequirements(), name="init", node_name=f"node-{i % n_nodes:05d}")
    if kind == "dra":
        yield from devices(n_nodes)
        yield from (device_claim(i) for i in range(n_pods))
    if kind == "csi":
        limit = CSINodeSpec(
            drivers=(CSINodeDriver(name=CSI_DRIVER, node_id="n", allocatable=VolumeNodeResources(count=VOLUMES_PER_NODE)),)
        )
        yield from (CSINode(metadata=ObjectMeta(name=f"node-{i:05d}"), spec=limit) for i in range(n_nodes))
        for i in range(n_pods):
            yield from volume(i)
    yield from controller_pods.objects(kind, n_pods)


def volume(i: int) -> tuple[PersistentVolume, PersistentVolumeClaim]:
    """Return the volume of pod number i, in one of the ten zones, and the claim that is bound to it."""
    term = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=ZONE, operator="In", values=(f"zone-{i % 10}",)),))
    name = f"volume-{i}"
    size: dict[str, Quantity] = {"storage": "1Gi"}
    claim = PersistentVolumeClaim(
        metadata=ObjectMeta(name=f"claim-{i}", namespace=NAMESPACE, uid=f"claim-uid-{i}", annotations={BIND_COMPLETED: "yes"}),
        spec=PersistentVolumeClaimSpec(
            volume_name=name, access_modes=("ReadWriteOnce",), resources=VolumeResources(requests=dict(size))
        ),
        status=PersistentVolumeClaimStatus(phase="Bound"),
    )
    held = ObjectReference(kind="PersistentVolumeClaim", namespace=NAMESPACE, name=f"claim-{i}", uid=f"claim-uid-{i}")
    spec = PersistentVolumeSpec(
        capacity=dict(size),
        access_modes=("ReadWriteOnce",),
        claim_ref=held,
        csi=CsiPersistentVolume(driver=CSI_DRIVER, volume_handle=f"handle-{i}"),
        node_affinity=VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,))),
    )
    return PersistentVolume(metadata=ObjectMeta(name=name, uid=f"volume-uid-{i}"), spec=spec), claim


def devices(n_nodes: int) -> Iterator[TopLevel]:
    """Yield a class of devices and ten of them on every node."""
    selector = DeviceSelector(cel=CELDeviceSelector(expression=f'device.driver == "{DRIVER}"'))
    spec = DeviceClassSpec(selectors=(selector,))
    yield DeviceClass(metadata=ObjectMeta(name=DEVICE_CLASS, uid=DEVICE_CLASS), spec=spec)
    published = tuple(
        Device(
            name=f"device-{k}",
            attributes={"preallocate": DeviceAttribute(bool_value=True)},
            capacity={"counters": DeviceCapacity(value="2")},
        )
        for k in range(DEVICES_PER_NODE)
    )
    for i in range(n_nodes):
        name = f"node-{i:05d}"
        pool = ResourcePool(name=name, generation=1, resource_slice_count=1)
        yield ResourceSlice(
            metadata=ObjectMeta(name=f"slice-{i:05d}", uid=f"slice-uid-{i}"),
            spec=ResourceSliceSpec(driver=DRIVER, pool=pool, node_name=name, devices=published),
        )


def device_claim(i: int) -> ResourceClaim:
    """Return the claim of pod number i: one device."""
    exactly = ExactDeviceRequest(device_class_name=DEVICE_CLASS, allocation_mode="ExactCount", count=1)
    return ResourceClaim(
        metadata=ObjectMeta(name=f"claim-{i}", namespace=NAMESPACE, uid=f"claim-uid-{i}"),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=(DeviceRequest(name="device", exactly=exactly),))),
    )


def pods(n: int, kind: str, n_nodes: int = 5000, classes: int = 0) -> Iterator[Pod]:
    """Yield the measured pods of a kind; with churn, every tenth begins a class of its own.

    `classes` is how many different labels and requests there are among pods of kind unlike; 0 for no two alike. Those of
    kind daemonset are pinned to the nodes in turn.
    """
    for i in range(n):
        if kind == "unlike":
            made = controller_pods.unlike(i % classes if classes else i)
            meta = msgspec.structs.replace(made.metadata, name=f"pod-{i}", uid=f"pod-uid-{i}")
            yield msgspec.structs.replace(made, metadata=meta)
        elif kind in controller_pods.KINDS:
            yield controller_pods.pod(i, kind, n_nodes)
        elif kind == "gpu":
            yield gpu_pods.pod(i)
        else:
            yield pod(i, kind, extra_label=f"c{i // 10}" if kind == "churn" and i % 10 == 9 else "")
