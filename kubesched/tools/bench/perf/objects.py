"""Nodes, pods, volumes and slices as the operations create them.

In: an operation, and the files that it names. Out: objects as dicts. The same arguments give the same objects, except for the
values of unique labels.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kubesched.kube.values import HOSTNAME, MIGRATED_PLUGINS
from kubesched.scheduler import config
from kubesched.tools.bench.perf import cases
from kubesched.tools.bench.perf.cases import Workload
from kubesched.tools.bench.perf.operations import CreateNodes, CreatePods

Object = dict[str, Any]
_OFFER = {"pods": "110", "cpu": "4", "memory": "32Gi"}
_RESOURCES = {"cpu": "100m", "memory": "500Mi"}
_CONTAINER = {
    "name": "pause",
    "image": "registry.k8s.io/pause:3.10.1",
    "ports": [{"containerPort": 80}],
    "resources": {"limits": _RESOURCES, "requests": _RESOURCES},
}
_BASE_POD: Object = {"metadata": {"generateName": "pod-"}, "spec": {"containers": [_CONTAINER]}}


def rendered(file: Path, params: Mapping[str, Any], n: int, *, counts: bool = True) -> Iterator[Object]:
    """Yield n objects of a template. A template without an action is rendered once, and its object is yielded n times."""
    template = cases.template(file)
    before = ""
    made: Object = {}
    for i in range(n):
        values = {**params, "Index": i, **({"Count": n} if counts else {})}
        if not made or not template.is_constant:
            text = template.render(values)
            if text != before:
                before, made = text, cases.parsed(text, file.name)
        yield made


def nodes(operation: CreateNodes, workload: Workload, number: int, first: int) -> Iterator[tuple[Object, Object | None]]:
    """Yield the nodes of operation `number`, each with its CSINode or None; `first` is the number in the first name."""
    params, n = operation.template_params, operation.count
    path = operation.node_template_path
    bases = rendered(workload.file(path), params, n) if path else (_base_node(number) for _ in range(n))
    labels, unique = operation.label_node_prepare_strategy, operation.unique_node_label_strategy
    for i, base in enumerate(bases):
        node = copy.deepcopy(base)
        meta = node.setdefault("metadata", {})
        name = meta.setdefault("name", f"{meta.pop('generateName', 'node-')}{first + i:05d}")
        marks = {HOSTNAME: name}
        if labels is not None:
            marks[labels.label_key] = labels.label_values[i % len(labels.label_values)]
        if unique is not None:
            marks[unique.label_key] = str(uuid.uuid4())
        meta["labels"] = {**(meta.get("labels") or {}), **marks}
        node.update(apiVersion="v1", kind="Node")
        yield node, _offered(operation, node, name)


def _base_node(number: int) -> Object:
    return {
        "metadata": {"generateName": f"node-{number}-"},
        "status": {
            "capacity": dict(_OFFER),
            "allocatable": dict(_OFFER),
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _offered(operation: CreateNodes, node: Object, name: str) -> Object | None:
    """Add the resources of the strategy to a node, and return its CSINode; None without a strategy."""
    strategy = operation.node_allocatable_strategy
    if strategy is None:
        return None
    status = node.setdefault("status", {})
    offered = status.get("allocatable") or status.get("capacity") or {}  # as the API server would fill it in
    status["allocatable"] = {**offered, **strategy.node_allocatable}
    drivers = []
    for driver, limit in strategy.csi_node_allocatable.items():
        allocatable = {} if limit.count is None else {"count": limit.count}
        drivers.append({"name": driver, "nodeID": name, "allocatable": allocatable})
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name, "annotations": {MIGRATED_PLUGINS: ",".join(strategy.migrated_plugins)}},
        "spec": {"drivers": drivers},
    }


class NewPod(NamedTuple):
    """A pod to create, with its claim and volume if it has them."""

    pod: Object
    claim: Object | None = None
    volume: Object | None = None


def pods(operation: CreatePods, workload: Workload, namespace: str) -> list[NewPod]:
    """Return the pods of an operation. They are rendered before the clock starts, so rendering is not measured."""
    path = operation.pod_template_path or workload.default_pod_template
    n = operation.count
    bases = rendered(workload.file(path), operation.template_params, n) if path else [_BASE_POD] * n
    signed = path is not None and workload.release > config.OLDEST_RECORDED
    made = []
    for i, base in enumerate(bases):
        pod = {**base, "apiVersion": "v1", "kind": "Pod"}
        if signed:
            signature = f"signature-label-{i // (operation.signature_batch_size or 1)}"
            meta = pod.get("metadata") or {}
            pod["metadata"] = {**meta, "labels": {**(meta.get("labels") or {}), "signature": signature}}
        made.append(_with_volume(pod, operation, workload, namespace, i))
    return made


def _with_volume(pod: Object, operation: CreatePods, workload: Workload, namespace: str, i: int) -> NewPod:
    claim_path, volume_path = operation.persistent_volume_claim_template_path, operation.persistent_volume_template_path
    if not claim_path or not volume_path:
        return NewPod(pod)
    claim_name, volume_name = f"pvc-{i}", f"{namespace}-vol-{i}"
    claim = copy.deepcopy(cases.plain(workload.file(claim_path)))
    claim.setdefault("metadata", {})["name"] = claim_name
    claim.setdefault("spec", {})["volumeName"] = volume_name
    volume = copy.deepcopy(cases.plain(workload.file(volume_path)))
    volume.setdefault("metadata", {})["name"] = volume_name
    spec = volume.setdefault("spec", {})
    spec["claimRef"] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim_name}
    if "csi" in spec:
        spec["csi"]["volumeHandle"] = volume_name
    elif "awsElasticBlockStore" in spec:
        spec["awsElasticBlockStore"]["volumeID"] = f"vol-{i}"
    mounted = [{"name": "vol", "persistentVolumeClaim": {"claimName": claim_name}}]
    return NewPod(
        {**pod, "spec": {**pod["spec"], "volumes": mounted}},
        {**claim, "apiVersion": "v1", "kind": "PersistentVolumeClaim"},
        {**volume, "apiVersion": "v1", "kind": "PersistentVolume"},
    )


def resource_slice(driver: str, node: str, n_devices: int) -> Object:
    """Return the ResourceSlice that a driver publishes for a node."""
    devices = [
        {
            "name": f"instance-{i}",
            "attributes": {
                "model": {"string": "A100"},
                "family": {"string": "GPU"},
                "driverVersion": {"version": "1.2.3"},
                "dra.example.com/numa": {"int": i},
            },
            "capacity": {"memory": {"value": "1Gi"}},
        }
        for i in range(n_devices)
    ]
    pool = {"name": node, "generation": 0, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": node},
        "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": devices},
    }
