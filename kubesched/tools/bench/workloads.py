"""The cluster and the pods of the benchmarks, shaped as in kube-scheduler's own scheduler_perf.

In: sizes and a kind of pods. Out: API objects. The same arguments always give the same objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from kubesched.kube import api
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
_BLUE = api.LabelSelector(match_labels={"color": "blue"})
_GREEN = api.LabelSelector(match_labels={"color": "green"})
_RESOURCES = api.ResourceRequirements(requests={"cpu": "100m", "memory": "500Mi"}, limits={"cpu": "100m", "memory": "500Mi"})


def node(i: int, *, turn: int = 0) -> api.Node:
    """Return node number i: 4 cores, 32Gi, 110 pods, one of ten zones; `turn` makes a version with another label."""
    return make_node(i, {"cpu": "4", "memory": "32Gi", "pods": "110"}, {"turn": str(turn % 7)} if turn else None)


def pod(i: int, kind: str, *, extra_label: str = "") -> api.Pod:
    """Return pod number i of a kind; all are 100m and 500Mi."""
    if kind == "mixed":
        kind = _MIXED[i % len(_MIXED)]
    labels = {"color": "green" if kind == "antiaffinity" else "blue"}
    if extra_label:
        labels["class"] = extra_label
    more: dict[str, Any] = {}
    if kind == "affinity":
        term = api.PodAffinityTerm(label_selector=_BLUE, topology_key=ZONE)
        more["affinity"] = api.Affinity(pod_affinity=api.PodAffinity(required=(term,)))
    elif kind == "antiaffinity":
        term = api.PodAffinityTerm(label_selector=_GREEN, topology_key=HOSTNAME)
        more["affinity"] = api.Affinity(pod_anti_affinity=api.PodAffinity(required=(term,)))
    elif kind == "prefaffinity":
        term = api.PodAffinityTerm(label_selector=_BLUE, topology_key=HOSTNAME)
        weighted = api.WeightedPodAffinityTerm(weight=1, pod_affinity_term=term)
        more["affinity"] = api.Affinity(pod_affinity=api.PodAffinity(preferred=(weighted,)))
    elif kind in ("spread", "softspread"):
        action = "DoNotSchedule" if kind == "spread" else "ScheduleAnyway"
        rule = api.TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=action, label_selector=_BLUE)
        more["topology_spread_constraints"] = (rule,)
    elif kind == "csi":
        more["volumes"] = (
            api.Volume(name="v", persistent_volume_claim=api.PersistentVolumeClaimSource(claim_name=f"claim-{i}")),
        )
    elif kind == "dra":
        more["resource_claims"] = (api.PodResourceClaim(name="d", resource_claim_name=f"claim-{i}"),)
    return make_pod(i, labels, _RESOURCES, **more)


def cluster(kind: str, n_nodes: int, n_init: int, n_pods: int) -> Iterator[api.TopLevel]:
    """Yield the objects that exist before the first pod is scheduled: nodes, `n_init` running pods, and what `kind` needs."""
    for i in range(n_nodes):
        yield gpu_pods.node(i) if kind == "gpu" else node(i)
    for i in range(n_init):
        yield make_pod(i, {"color": "blue"}, api.ResourceRequirements(), name="init", node_name=f"node-{i % n_nodes:05d}")
    if kind == "dra":
        yield from devices(n_nodes)
        yield from (device_claim(i) for i in range(n_pods))
    if kind == "csi":
        limit = api.CSINodeSpec(
            drivers=(
                api.CSINodeDriver(name=CSI_DRIVER, node_id="n", allocatable=api.VolumeNodeResources(count=VOLUMES_PER_NODE)),
            )
        )
        yield from (api.CSINode(metadata=api.ObjectMeta(name=f"node-{i:05d}"), spec=limit) for i in range(n_nodes))
        for i in range(n_pods):
            yield from volume(i)
    yield from controller_pods.objects(kind, n_pods)


def volume(i: int) -> tuple[api.PersistentVolume, api.PersistentVolumeClaim]:
    """Return the volume of pod number i, in one of the ten zones, and the claim that is bound to it."""
    term = api.NodeSelectorTerm(
        match_expressions=(api.NodeSelectorRequirement(key=ZONE, operator="In", values=(f"zone-{i % 10}",)),)
    )
    name = f"volume-{i}"
    size: dict[str, api.Quantity] = {"storage": "1Gi"}
    claim = api.PersistentVolumeClaim(
        metadata=api.ObjectMeta(
            name=f"claim-{i}", namespace=NAMESPACE, uid=f"claim-uid-{i}", annotations={BIND_COMPLETED: "yes"}
        ),
        spec=api.PersistentVolumeClaimSpec(
            volume_name=name, access_modes=("ReadWriteOnce",), resources=api.VolumeResources(requests=dict(size))
        ),
        status=api.PersistentVolumeClaimStatus(phase="Bound"),
    )
    held = api.ObjectReference(kind="PersistentVolumeClaim", namespace=NAMESPACE, name=f"claim-{i}", uid=f"claim-uid-{i}")
    spec = api.PersistentVolumeSpec(
        capacity=dict(size),
        access_modes=("ReadWriteOnce",),
        claim_ref=held,
        csi=api.CsiPersistentVolume(driver=CSI_DRIVER, volume_handle=f"handle-{i}"),
        node_affinity=api.VolumeNodeAffinity(required=api.NodeSelector(node_selector_terms=(term,))),
    )
    return api.PersistentVolume(metadata=api.ObjectMeta(name=name, uid=f"volume-uid-{i}"), spec=spec), claim


def devices(n_nodes: int) -> Iterator[api.TopLevel]:
    """Yield a class of devices and ten of them on every node."""
    selector = api.DeviceSelector(cel=api.CELDeviceSelector(expression=f'device.driver == "{DRIVER}"'))
    spec = api.DeviceClassSpec(selectors=(selector,))
    yield api.DeviceClass(metadata=api.ObjectMeta(name=DEVICE_CLASS, uid=DEVICE_CLASS), spec=spec)
    published = tuple(
        api.Device(
            name=f"device-{k}",
            attributes={"preallocate": api.DeviceAttribute(bool_value=True)},
            capacity={"counters": api.DeviceCapacity(value="2")},
        )
        for k in range(DEVICES_PER_NODE)
    )
    for i in range(n_nodes):
        name = f"node-{i:05d}"
        pool = api.ResourcePool(name=name, generation=1, resource_slice_count=1)
        yield api.ResourceSlice(
            metadata=api.ObjectMeta(name=f"slice-{i:05d}", uid=f"slice-uid-{i}"),
            spec=api.ResourceSliceSpec(driver=DRIVER, pool=pool, node_name=name, devices=published),
        )


def device_claim(i: int) -> api.ResourceClaim:
    """Return the claim of pod number i: one device."""
    exactly = api.ExactDeviceRequest(device_class_name=DEVICE_CLASS, allocation_mode="ExactCount", count=1)
    return api.ResourceClaim(
        metadata=api.ObjectMeta(name=f"claim-{i}", namespace=NAMESPACE, uid=f"claim-uid-{i}"),
        spec=api.ResourceClaimSpec(devices=api.DeviceClaim(requests=(api.DeviceRequest(name="device", exactly=exactly),))),
    )


def pods(n: int, kind: str, n_nodes: int = 5000, classes: int = 0) -> Iterator[api.Pod]:
    """Yield the pods that are measured.

    Of kind churn, every tenth pod starts a new equivalence class. Of kind unlike, `classes` is the number of different labels
    and requests; 0 makes every pod different. Pods of kind daemonset are pinned to the nodes, one after the other.
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
