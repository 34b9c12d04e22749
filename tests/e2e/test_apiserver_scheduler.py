"""A real kube-scheduler on the embedded API server: it takes it for a cluster, and decides as ours would.

Ours looks on under another name and says before every pod which nodes are the best; among equals either may choose.
Skipped where there is no kube-scheduler in KUBEBUILDER_ASSETS.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kubesched.embedded import ApiServer, ObjectStore
from kubesched.kube.api.codec import convert
from kubesched.kube.api.pod import Pod
from kubesched.kube.client.credentials import find_credentials
from kubesched.scheduler import config
from kubesched.scheduler.engine.assembly import catalogue, registry_with
from kubesched.scheduler.engine.explaining.explain import explain_now
from kubesched.server.app import Scheduler, Wiring

Object = dict[str, Any]
REAL = shutil.which("kube-scheduler", path=os.environ.get("KUBEBUILDER_ASSETS") or "/nonexistent")
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(REAL is None, reason="no kube-scheduler in the folder that KUBEBUILDER_ASSETS names"),
]
ONLOOKER = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{schedulerName: onlooker}]
"""
SETTINGS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: 500, burst: 500}}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
"""
PATIENCE_SECONDS = 60.0
WEB = {"matchLabels": {"app": "web"}}


def a_node(number: int) -> Object:
    name = f"node-{number}"
    capacity = {"cpu": str(4 + number % 5), "memory": f"{16 + 4 * (number % 7)}Gi", "pods": "20"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    spec: Object = {}
    if number % 6 == 5:
        spec["taints"] = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]
    if number % 6 == 4:
        spec["taints"] = [{"key": "slow", "value": "yes", "effect": "PreferNoSchedule"}]
    if number % 2:
        labels["disk"] = "ssd"
    status = {"capacity": capacity, "allocatable": capacity, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def a_pod(number: int) -> Object:
    asked = {"cpu": f"{100 + 70 * (number % 5)}m", "memory": f"{200 + 130 * (number % 4)}Mi"}
    spec: Object = {"containers": [{"name": "c", "image": "i", "resources": {"requests": asked}}]}
    app = "web"
    match number % 8:
        case 1:
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": WEB,
                }
            ]
        case 2:
            spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
            spec["nodeSelector"] = {"disk": "ssd"}
        case 3:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "lonely"}}}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
            app = "lonely"
        case 4:
            rule = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
            spec["affinity"] = {
                "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "preference": rule}]}
            }
        case 5:
            term = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": WEB}
            spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        case 6:
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 2,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": WEB,
                }
            ]
        case 7:
            spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8000 + number % 3}]
    return {"metadata": {"name": f"pod-{number}", "namespace": "default", "labels": {"app": app}}, "spec": spec}


@contextmanager
def kube_scheduler(kubeconfig: Path, folder: Path) -> Iterator[None]:
    """Run the real program, with leader election as it is by default: the Lease is part of what is tested."""
    assert REAL is not None
    settings = folder / "scheduler.yaml"
    settings.write_text(SETTINGS.format(kubeconfig=kubeconfig))
    with (folder / "scheduler.log").open("wb") as log:
        command = [REAL, "--config", str(settings), "--secure-port=0"]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def onlooker(kubeconfig: Path) -> AsyncIterator[Scheduler]:
    """Run ours, responsible for nobody."""
    watching_only = config.load(ONLOOKER, gates=config.Gates.defaults(), registry=catalogue(registry_with()))
    scheduler = Scheduler(watching_only, Wiring(find_credentials(str(kubeconfig))))
    running = asyncio.create_task(scheduler.run())
    try:
        yield scheduler
    finally:
        scheduler.stop()
        await running


async def until(holds: Callable[[], bool], what: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"{what}: {_last_words(log)}"
        await asyncio.sleep(0.01)


def _last_words(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-3000:]


def best_nodes(scheduler: Scheduler, pod: Object) -> set[str]:
    """Return the nodes that ours would choose among."""
    assert scheduler.engine is not None
    asked = {**pod, "spec": {**pod["spec"], "schedulerName": "onlooker"}}
    told = explain_now(scheduler.engine, scheduler.engine.store.view(convert(asked, Pod)), top=1000)
    if not told.ranking:
        return {told.node} - {""}
    return {one.node for one in told.ranking if one.total == told.ranking[0].total}


async def test_it_places_pods_where_ours_would(tmp_path: Path) -> None:
    store, log = ObjectStore(seed=1), tmp_path / "scheduler.log"
    for number in range(12):
        store.create("nodes", a_node(number))
    async with ApiServer(store) as server:
        kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig")
        async with onlooker(kubeconfig) as ours:
            with kube_scheduler(kubeconfig, tmp_path):
                await until(lambda: _n_nodes(ours) == 12, "ours is not ready", log)
                n_placed = 0
                for number in range(64):
                    n_placed += await _place(store, ours, a_pod(number), log)
                    await until(lambda n=n_placed: _n_pods(ours) == n, "ours has not seen the binding", log)
                assert n_placed >= 50, "most pods fit"
                await until(lambda: _n_told(store) == n_placed, "not every placement was told", log)


async def _place(store: ObjectStore, ours: Scheduler, pod: Object, log: Path) -> bool:
    """Let kube-scheduler place a pod, compare, and return whether it has a node now."""
    expected = best_nodes(ours, store.create("pods", pod, dry_run=True))
    name = store.create("pods", pod)["metadata"]["name"]
    if not expected:
        await until(lambda: _is_refused(store, name), f"{name} was not refused", log)
        return False
    await until(lambda: bool(store.get("pods", name)["spec"].get("nodeName")), f"{name} stays pending", log)
    chosen = store.get("pods", name)["spec"]["nodeName"]
    assert chosen in expected, f"{name}: kube-scheduler chose {chosen}, ours would choose among {expected}"
    return True


def _n_nodes(ours: Scheduler) -> int:
    return len(ours.engine.store.nodes) if ours.is_synced and ours.engine is not None else 0


def _n_pods(ours: Scheduler) -> int:
    assert ours.engine is not None
    return sum(1 for _ in ours.engine.store.pods())


def _n_told(store: ObjectStore) -> int:
    return sum(one.get("reason") == "Scheduled" for one in store.list("events").items)


def _is_refused(store: ObjectStore, name: str) -> bool:
    conditions = (store.get("pods", name).get("status") or {}).get("conditions") or ()
    return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)


async def test_a_pod_that_fits_nowhere_is_told_and_placed_when_it_can_be(tmp_path: Path) -> None:
    store, log = ObjectStore(seed=1), tmp_path / "scheduler.log"
    store.create("nodes", a_node(0))
    whale = a_pod(0)
    whale["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "7"}
    async with ApiServer(store) as server:
        with kube_scheduler(server.write_kubeconfig(tmp_path / "kubeconfig"), tmp_path):
            store.create("pods", whale)
            await until(lambda: _is_refused(store, "pod-0"), "not refused", log)
            (condition,) = store.get("pods", "pod-0")["status"]["conditions"]
            assert condition["reason"] == "Unschedulable"
            assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu")
            store.create("nodes", a_node(4))
            await until(lambda: store.get("pods", "pod-0")["spec"].get("nodeName") == "node-4", "not placed", log)


async def test_it_preempts_through_the_api(tmp_path: Path) -> None:
    store, log = ObjectStore(seed=1), tmp_path / "scheduler.log"
    store.create("nodes", a_node(0))
    store.create("priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    small, large = a_pod(0), a_pod(8)
    small["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "3"}
    small["spec"]["terminationGracePeriodSeconds"] = 0
    large["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "3"}
    large["spec"]["priorityClassName"] = "high"
    async with ApiServer(store) as server:
        with kube_scheduler(server.write_kubeconfig(tmp_path / "kubeconfig"), tmp_path):
            store.create("pods", small)
            await until(lambda: bool(store.get("pods", "pod-0")["spec"].get("nodeName")), "not placed", log)
            store.create("pods", large)
            await until(lambda: bool(store.get("pods", "pod-8")["spec"].get("nodeName")), "not preempted for", log)
            assert [pod["metadata"]["name"] for pod in store.list("pods").items] == ["pod-8"]
            # The event is written beside the eviction, and may come after the pod that it made room for is bound.
            await until(lambda: any(one.get("reason") == "Preempted" for one in store.list("events").items), "nobody told", log)
