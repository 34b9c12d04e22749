"""What `kubesched plan` says is what happens: manifests planned, then applied to a cluster with all its controllers."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from control_planes import PROGRAM
from in_process import until

from kubesched.embedded import ApiServer, ObjectStore
from kubesched.embedded.controllers import INSTANT, FakeCluster
from kubesched.kube.client.credentials import AddressSource
from kubesched.server.app import Scheduler, Wiring
from kubesched.tools.plan.manifests import read_manifests
from kubesched.tools.snapshots.sources import Policy

ZONE = "topology.kubernetes.io/zone"
RESOURCES = {
    "PriorityClass": "priorityclasses",
    "StorageClass": "storageclasses",
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "Job": "jobs",
    "Pod": "pods",
}
MANIFESTS = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: disk}
provisioner: disk.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: web}}
      containers: [{name: web, image: web, resources: {limits: {cpu: 500m}}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: db}}}
      containers: [{name: db, image: db, resources: {requests: {cpu: 100m}}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: disk, resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: logs}
spec:
  selector: {matchLabels: {app: logs}}
  template:
    metadata: {labels: {app: logs}}
    spec: {containers: [{name: logs, image: logs, resources: {requests: {cpu: 100m}}}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: urgent}
spec:
  template:
    spec:
      priorityClassName: urgent
      restartPolicy: Never
      nodeSelector: {kubernetes.io/hostname: n5}
      containers: [{name: c, image: x, resources: {requests: {cpu: "3"}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: whale}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: "99"}}}]}
"""


def a_node(number: int) -> dict[str, Any]:
    offer = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": f"n{number}", ZONE: f"z{number % 3}"}
    taints = [{"key": "gpu", "effect": "NoSchedule"}] if number == 4 else []
    return {
        "metadata": {"name": f"n{number}", "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": offer, "capacity": offer},
    }


def workload_of(pod: dict[str, Any]) -> str:
    """Return the app of a pod, or the job or the pod itself."""
    labels = pod["metadata"].get("labels") or {}
    return str(labels.get("app") or labels.get("job-name") or pod["metadata"]["name"])


def outcome(store: ObjectStore) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Return how many pods of each workload have a node, and how they lie over the zones."""
    zones = {node["metadata"]["name"]: node["metadata"]["labels"][ZONE] for node in store.list("nodes").items}
    placed, spread = Counter[str](), dict[str, Counter[str]]()
    for pod in store.list("pods").items:
        if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]:
            placed[workload_of(pod)] += 1
            spread.setdefault(workload_of(pod), Counter())[zones[pod["spec"]["nodeName"]]] += 1
    return dict(placed), {name: dict(counts) for name, counts in spread.items()}


async def kubesched(*words: str) -> Any:
    done = await asyncio.to_thread(subprocess.run, [*PROGRAM, *words], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "all.yaml").write_text(MANIFESTS)
    return tmp_path


async def test_what_is_planned_is_what_happens(files: Path) -> None:
    store = ObjectStore()
    async with ApiServer(store) as server:
        for number in range(6):
            store.create("nodes", a_node(number))
        old = {
            "metadata": {"name": "old"},
            "spec": {
                "nodeName": "n5",
                "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "2500m"}}}],
            },
        }
        store.create("pods", old, "default")
        version = store.resource_version
        kubeconfig = str(server.write_kubeconfig(files / "kubeconfig"))
        plan = await kubesched("plan", "-f", str(files / "all.yaml"), "--kubeconfig", kubeconfig, "-o", "json")
        assert store.resource_version == version, "nothing is written"
        planned = {each["name"]: each for each in plan["workloads"]}
        assert [(each["name"], each["byWorkload"]) for each in plan["victims"]] == [("old", "Job/urgent")]
        assert plan["summary"] == {"pods": 16, "placed": 15, "pending": 1, "ofOtherSchedulers": 0, "victims": 1}

        world = FakeCluster(store, INSTANT)
        world.start()
        policy = Policy.read(None, (), ())
        scheduler = Scheduler(policy.configuration, Wiring(AddressSource(server.url), gates=policy.gates))
        running = asyncio.create_task(scheduler.run())
        try:
            for manifest in read_manifests([files / "all.yaml"]):
                store.create(RESOURCES[manifest.kind], manifest.content)
            wanted = {name: each["placed"] for name, each in planned.items() if each["placed"]}
            await until(lambda: outcome(store)[0] == wanted, f"{wanted}")
            await asyncio.sleep(0.5)
            placed, zones = outcome(store)
        finally:
            scheduler.stop()
            await running
            world.stop()
    assert placed == wanted, "and it stays so"
    assert {name: zones[name] for name in ("web", "db", "logs", "urgent")} == {
        name: planned[name]["zones"] for name in ("web", "db", "logs", "urgent")
    }
    assert planned["logs"]["nodes"] == dict.fromkeys(["n0", "n1", "n2", "n3", "n5"], 1)


async def test_a_capacity_is_what_then_fits(files: Path) -> None:
    (files / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"
        "  - {name: c, image: x, resources: {requests: {cpu: 1500m}}}\n"
    )
    store = ObjectStore()
    async with ApiServer(store) as server:
        for number in range(4):
            store.create("nodes", a_node(number))
        kubeconfig = str(server.write_kubeconfig(files / "kubeconfig"))
        words = ("capacity", "-f", str(files / "pod.yaml"), "--kubeconfig", kubeconfig, "-o", "json")
        assert (await kubesched(*words))["fits"] == 8
        told = await kubesched(*words, "--without", "n0")
    assert (told["fits"], told["zones"]) == (6, {"z0": 2, "z1": 2, "z2": 2})
    assert told["stoppedBy"]["message"] == "0/3 nodes are available: 3 Insufficient cpu."
