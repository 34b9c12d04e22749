"""The same objects given to kube-scheduler and to us, on the same API server: what people read afterwards is the same.

kube-scheduler comes from the folder that KUBEBUILDER_ASSETS names; without it there is nothing to compare with. Both
run under the role that `deploy/` grants. Compared are which pods are placed, every condition, nomination and event, what
became of claims for volumes and devices; names of nodes, times and uids are left out.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from control_planes import PROGRAM, Api, ControlPlane, Object, a_node

KUBE_SCHEDULER = shutil.which("kube-scheduler", path=os.environ.get("KUBEBUILDER_ASSETS", "")) or ""
DRIVER = "gpu.example.com"
PATIENCE_SECONDS = 60.0

pytestmark = pytest.mark.skipif(not KUBE_SCHEDULER, reason="no kube-scheduler in KUBEBUILDER_ASSETS")


def a_pod(name: str, cpu: str = "100m", **spec: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **spec},
    }


def with_volume(name: str, claim: str) -> Object:
    return a_pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}])


def with_devices(name: str, claim: str) -> Object:
    return a_pod(name, resourceClaims=[{"name": "g", "resourceClaimName": claim}])


def near(label: str) -> Object:
    term = {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def a_volume_claim(name: str, storage: str, size: str = "1Gi") -> Object:
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": storage, "resources": {"requests": {"storage": size}}},
    }


def a_device_claim(name: str, count: int) -> Object:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }


def a_local_volume(name: str) -> Object:
    at = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}]}
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/x"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [at]}},
        },
    }


TAINT = {"key": "gpu", "value": "y", "effect": "NoSchedule"}
GROUND: list[Object] = [
    a_node("n1"),
    a_node("n2"),
    {**a_node("n3"), "spec": {"taints": [TAINT]}},
    *(
        {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": maker, "volumeBindingMode": "WaitForFirstConsumer"}
        for name, maker in (("made", "example.com/p"), ("local", "kubernetes.io/no-provisioner"))
    ),
    {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000},
    {"kind": "PriorityClass", "metadata": {"name": "middle"}, "value": 500},
    {
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    },
    {
        "kind": "ResourceSlice",
        "metadata": {"name": "s1"},
        "spec": {
            "driver": DRIVER,
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0"}, {"name": "d1"}],
        },
    },
]
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "nowhere",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "spread"}},
}
CLAIMS = [
    a_volume_claim("local", "local"),
    a_volume_claim("made", "made"),
    a_volume_claim("large", "local", "9Gi"),
    a_device_claim("one", 1),
    a_device_claim("three", 3),
]
PODS = [
    a_pod("plain"),
    a_pod("whale", cpu="100"),
    a_pod("selector", nodeSelector={"disk": "ssd"}),
    a_pod("lonely", affinity=near("nobody")),
    a_pod("gated", schedulingGates=[{"name": "example.com/wait"}]),
    a_pod("spread", topologySpreadConstraints=[SPREAD]),
    a_pod("fill-1", cpu="3", nodeSelector={"kubernetes.io/hostname": "n1"}),
    a_pod("fill-2", cpu="3", nodeSelector={"kubernetes.io/hostname": "n2"}, priorityClassName="middle"),
    with_volume("no-claim", "absent"),
    with_volume("local", "local"),
    with_volume("made", "made"),
    with_volume("large", "large"),
    with_devices("one", "one"),
    with_devices("three", "three"),
    with_devices("no-devices", "absent"),
]
VIP = a_pod("vip", cpu="3500m", priorityClassName="high")  # fill-1 has to go
QUIET = ("Pod made", "Pod no-devices")  # wait for a volume to be made and for a claim to appear, and are told nothing


async def test_what_people_read_is_the_same(control_plane: ControlPlane, api: Api, tmp_path: Path) -> None:
    for obj in GROUND:
        await api.create(obj)
    options = (
        "--secure-port=0",
        "--leader-elect=false",
        f"--kubeconfig={control_plane.kubeconfig('scheduler')}",
        "--kube-api-qps=1000",
        "--kube-api-burst=1000",
    )
    theirs = await told_by(api, "theirs", (KUBE_SCHEDULER, *options), tmp_path)
    ours = await told_by(api, "ours", (*PROGRAM, "run", *options), tmp_path)
    assert ours == theirs
    assert len(ours) >= 30 and all(ours[f"Pod {name}"]["placed"] for name in ("plain", "one", "vip"))


async def told_by(api: Api, namespace: str, command: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """Let a scheduler work on a namespace of its own, and return what can be read about it afterwards."""
    await api.create({"kind": "Namespace", "metadata": {"name": namespace}})
    await api.create(a_local_volume(f"volume-{namespace}"))
    for obj in CLAIMS:
        await api.create({**obj, "metadata": {**obj["metadata"], "namespace": namespace}})
    process = launch(command, folder / f"{namespace}.log")
    try:
        for obj in (*PODS, VIP):
            await api.create({**obj, "metadata": {**obj["metadata"], "namespace": namespace}})
            if obj in (PODS[-1], VIP):
                await settle(api, namespace)
        found = await read(api, namespace)
    finally:
        process.kill()
        process.wait()
    for pod in (await api.get(f"/api/v1/namespaces/{namespace}/pods"))["items"]:
        await api.delete(f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}")
    return found


def launch(command: tuple[str, ...], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)


async def settle(api: Api, namespace: str) -> None:
    """Wait until every pod that can be placed is, every other one was told why not, and nothing new is written."""
    deadline, last = time.monotonic() + PATIENCE_SECONDS, None
    while True:
        found = await read(api, namespace)
        is_told = all(
            seen["placed"] or seen["conditions"]
            for name, seen in found.items()
            if name.startswith("Pod ") and name not in QUIET
        )
        vip = found.get("Pod vip")
        if is_told and found == last and (vip is None or vip["placed"]):
            return
        assert time.monotonic() < deadline, f"{namespace}: still {found}"
        last = found
        await asyncio.sleep(2.5)  # longer than a pod waits before it is tried again


async def read(api: Api, namespace: str) -> dict[str, Any]:
    """Return what there is to read about a namespace, without names of nodes and devices, times and uids."""
    found: dict[str, Any] = {}
    core, devices = f"/api/v1/namespaces/{namespace}", f"/apis/resource.k8s.io/v1/namespaces/{namespace}"
    for pod in (await api.get(f"{core}/pods"))["items"]:
        status = pod["status"]
        found[f"Pod {pod['metadata']['name']}"] = {
            "placed": bool(pod["spec"].get("nodeName")),
            "nominated": bool(status.get("nominatedNodeName")),
            "conditions": [
                {key: said for key, said in each.items() if not key.endswith("Time")} for each in status.get("conditions", [])
            ],
        }
    for claim in (await api.get(f"{core}/persistentvolumeclaims"))["items"]:
        notes = sorted(claim["metadata"].get("annotations", {}))
        found[f"PersistentVolumeClaim {claim['metadata']['name']}"] = notes, bool(claim["spec"].get("volumeName"))
    for claim in (await api.get(f"{devices}/resourceclaims"))["items"]:
        found[f"ResourceClaim {claim['metadata']['name']}"] = plain(claim.get("status", {}))
    for event in (await api.get(f"{core}/events"))["items"]:
        about = f"events of {event['involvedObject']['kind']} {event['involvedObject']['name']}"
        said = event["type"], event["reason"], event.get("action"), plain(event["message"]), event["reportingComponent"]
        found.setdefault(about, set()).add(said)
    for key, said in found.items():
        if key.startswith("events of "):
            found[key] = sorted(said)
    return found


def plain(said: Any) -> str:
    text = said if isinstance(said, str) else json.dumps(said, sort_keys=True)
    text = re.sub(r"\b(theirs|ours)/", "", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "UID", text)
    return re.sub(r"\bn[123]\b|\bd[01]\b|\d{4}-\d\d-\d\dT[0-9:]+Z", "...", text)
