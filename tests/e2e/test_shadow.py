"""`kubesched shadow` as a careful team runs it: beside a live scheduler, over real HTTP, with rights to read and no others.

The cluster is an API server with RBAC in this process; the live scheduler and the shadow are programs of their own. A proxy
between the shadow and the server writes down every request: none but GET ever passes.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from control_planes import PROGRAM, READ, VIEW, free_port, process, serving, write_kubeconfig
from faulty_proxy import Recorder

from kubesched.embedded import ApiServer
from kubesched.embedded.http.access import User
from kubesched.tools.simulation.replay import replay

SHADOW = Path(__file__).parents[2] / "deploy" / "kustomize" / "shadow"
ACCOUNT = "system:serviceaccount:kube-system:kubesched-shadow"
TOKENS = {
    "root": User("root", ("system:masters", "system:authenticated")),
    "shadow": User(ACCOUNT, ("system:serviceaccounts", "system:authenticated")),
    "guest": User("guest", ("system:authenticated",)),
}
PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: KUBECONFIG, qps: 1000, burst: 1000}
profiles:
  - pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]}}
"""
PATIENCE_SECONDS = 60.0

Object = dict[str, Any]


# A Go client sends no token over plain HTTP, so that kube-scheduler is nobody in particular here.
EVERYTHING: Object = {
    "metadata": {"name": "everything"},
    "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
}
ANYBODY: Object = {
    "metadata": {"name": "anybody"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "everything"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:anonymous"}],
}


def a_node(number: int) -> Object:
    name = f"node-{number}"
    offer = {"cpu": str(4 + number % 3), "memory": f"{16 + 4 * (number % 2)}Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"capacity": offer, "allocatable": offer}}


def a_pod(number: int) -> Object:
    asks = {"cpu": f"{50 + 25 * (number % 4)}m", "memory": f"{64 + 32 * (number % 3)}Mi"}
    spec: Object = {"containers": [{"name": "c", "image": "x", "resources": {"requests": asks}}]}
    if number % 5 == 0:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    return {"metadata": {"name": f"pod-{number}", "namespace": "default", "labels": {"app": "web"}}, "spec": spec}


@pytest.fixture
async def api() -> AsyncIterator[ApiServer]:
    async with ApiServer(tokens=TOKENS) as server:
        server.store.create("clusterroles", VIEW)
        for rule in yaml.safe_load_all((SHADOW / "rbac.yaml").read_text(encoding="utf-8")):
            if rule["kind"] != "ServiceAccount":
                server.store.create({"ClusterRole": "clusterroles"}.get(rule["kind"], "clusterrolebindings"), rule)
        for number in range(12):
            server.store.create("nodes", a_node(number))
        yield server


async def until(condition: Callable[[], bool], what: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited too long for {what}: {words_of(log)}"
        await asyncio.sleep(0.02)


def words_of(log: Path) -> str:
    return log.read_text(encoding="utf-8")


@asynccontextmanager
async def live_scheduler(api: ApiServer, tmp_path: Path, *flags: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    if not any(flag.startswith("--config=") for flag in flags):
        kubeconfig = api.write_kubeconfig(tmp_path / "root.kubeconfig", "root")
        flags = (f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=1000", *flags)
    words = (*PROGRAM, "run", *flags)
    async with process(*words, log=tmp_path / "live.log") as run:
        yield run


def packing_config(api: ApiServer, tmp_path: Path) -> Path:
    kubeconfig, file = api.write_kubeconfig(tmp_path / "packing.kubeconfig", "root"), tmp_path / "packing.yaml"
    file.write_text(PACKING.replace("KUBECONFIG", str(kubeconfig)))
    return file


def churn(api: ApiServer, first: int, count: int) -> None:
    for number in range(first, first + count):
        api.store.create("pods", a_pod(number), "default")


def n_bound(api: ApiServer) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in api.store.list("pods").items)


async def shadowed(
    api: ApiServer, tmp_path: Path, live_flags: tuple[str, ...], shadow_flags: tuple[str, ...] = (), n_pods: int = 120
) -> tuple[Object, list[tuple[str, str]]]:
    """Run both, make pods in bursts with deletions in between, stop the shadow by SIGINT; return what it found and asked."""
    recorder = Recorder(api.url)
    async with recorder:
        kubeconfig = write_kubeconfig(tmp_path / "shadow.kubeconfig", recorder.url, {"token": "shadow"})
        log = tmp_path / "shadow.log"
        words = (*PROGRAM, "shadow", f"--kubeconfig={kubeconfig}", "--window=1", "-o", "json", *shadow_flags)
        async with process(*words, log=log) as shadow, live_scheduler(api, tmp_path, *live_flags):
            await until(lambda: "Following 12 nodes" in words_of(log) or shadow.poll() is not None, "the shadow", log)
            for first in range(0, n_pods, 20):
                churn(api, first, 20)
                await until(lambda n=first: n_bound(api) >= n + 20 - n // 20, "bindings", tmp_path / "live.log")  # type: ignore[misc]
                api.store.delete("pods", f"pod-{first + 3}", "default")
            await asyncio.sleep(1.5)
            shadow.send_signal(signal.SIGINT)
            out, _ = await asyncio.to_thread(shadow.communicate, None, PATIENCE_SECONDS)
            assert shadow.returncode == 0, words_of(log)
            return json.loads(out), recorder.asked


async def test_our_own_scheduler_is_agreed_with_and_nothing_is_written(api: ApiServer, tmp_path: Path) -> None:
    found, asked = await shadowed(api, tmp_path, (), ("--seed=99",))
    assert found["judged"] == 120
    assert found["explainedPercent"] == 100.0, found["differences"]
    assert found["agreement"]["same"] + found["agreement"]["tie"] == 120 and found["agreement"]["tie"] > 0
    assert (found["missed"], found["differences"], found["nodes"]) == (0, [], 12)
    assert asked and {verb for verb, _ in asked} == {"GET"} == set(found["requests"])
    assert not any(path.endswith("/secrets") for _, path in asked)


async def test_a_scheduler_of_another_mind_is_found_out_with_files_that_replay(api: ApiServer, tmp_path: Path) -> None:
    packing = packing_config(api, tmp_path)
    folder, port = tmp_path / "kept", free_port()
    kept = (f"--snapshots={folder}", "--max-snapshots=3", f"--port={port}", "--seed=5")
    found, asked = await shadowed(api, tmp_path, (f"--config={packing}",), kept, n_pods=60)
    assert found["judged"] == 60
    assert found["agreement"]["worse"] > 20, found["agreement"]
    assert {verb for verb, _ in asked} == {"GET"}
    assert found["byPlugin"]["NodeResourcesFit"]["points"] > 0
    assert all(each["behind"] == sum(each["byPlugin"].values()) for each in found["differences"] if "behind" in each)
    files = sorted(folder.iterdir())
    assert [str(file) for file in files] == [each["snapshot"] for each in found["differences"][:3]]
    for file in files:
        lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
        told = json.loads(lines[0])["shadow"]
        decided = await asyncio.to_thread(replay, lines)
        notes = {line["pod"]: line["note"] for line in decided if line["event"] == "Scheduled"}
        assert notes == {told["pod"]: f"Successfully assigned {told['pod']} to {told['ours']}"}
    told = found["differences"][0]
    words = [*PROGRAM, "why", told["pod"], "--snapshot", str(files[0]), "--config", str(packing), "--top=12", "-o", "json"]
    done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    totals = {each["node"]: each["total"] for each in json.loads(done.stdout)["ranking"]}
    assert totals[told["chosen"]] == max(totals.values()), "with its own configuration, the live scheduler's node is a best one"


async def test_the_configuration_comes_from_the_live_schedulers_own_port(api: ApiServer, tmp_path: Path) -> None:
    packing = packing_config(api, tmp_path)
    port, served = free_port(), free_port()
    root = api.write_kubeconfig(tmp_path / "reviews.kubeconfig", "root")
    live = (f"--config={packing}", *serving(root, port)[1:])
    log = tmp_path / "shadow.log"
    kubeconfig = api.write_kubeconfig(tmp_path / "shadow.kubeconfig", "shadow")
    configz = (f"--configz=https://127.0.0.1:{port}", "--token=root", "--insecure-skip-tls-verify")
    words = (
        *PROGRAM,
        "shadow",
        f"--kubeconfig={kubeconfig}",
        *configz,
        "--window=0.5",
        "--pods=30",
        f"--port={served}",
        "--all",
    )
    async with live_scheduler(api, tmp_path, *live):
        await until(lambda: "Serving securely" in words_of(tmp_path / "live.log"), "the port", tmp_path / "live.log")
        async with process(*words, log=log) as shadow, aiohttp.ClientSession(f"http://127.0.0.1:{served}") as session:
            await until(lambda: "Following 12 nodes" in words_of(log) or shadow.poll() is not None, "the shadow", log)
            churn(api, 0, 29)
            deadline = time.monotonic() + PATIENCE_SECONDS
            while True:
                async with session.get("/shadow.json") as answer:
                    told = await answer.json()
                if told["judged"] == 29:
                    break
                assert time.monotonic() < deadline, told
                await asyncio.sleep(0.05)
            async with session.get("/metrics") as answer:
                metrics = await answer.text()
            async with session.get("/readyz") as answer:
                assert answer.status == 200
            churn(api, 29, 1)
            out, _ = await asyncio.to_thread(shadow.communicate, None, PATIENCE_SECONDS)
    assert shadow.returncode == 0, words_of(log)
    assert told["explainedPercent"] == 100.0 and told["differences"] == []
    counted = [line for line in metrics.splitlines() if line.startswith("kubesched_shadow_placements_total{")]
    assert sum(float(line.rpartition(" ")[2]) for line in counted) == 29
    text = out.decode()
    assert text.startswith("AGREEMENT") and "30 placements in" in text and "100 % explained" in text
    assert "Requests sent, apart from watches:" in text and "GET." in text


async def test_what_may_not_be_read_is_told_in_one_line(api: ApiServer, tmp_path: Path) -> None:
    kubeconfig = api.write_kubeconfig(tmp_path / "guest.kubeconfig", "guest")
    words = [*PROGRAM, "shadow", f"--kubeconfig={kubeconfig}"]
    refused = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1 and refused.stdout == ""
    assert refused.stderr.startswith("Error: ") and "pods is forbidden" in refused.stderr and refused.stderr.count("\n") == 1


async def test_view_alone_follows_what_it_may_and_says_what_is_missing(api: ApiServer, tmp_path: Path) -> None:
    """Nodes are needed; the rest is left out with a warning each."""
    api.store.create(
        "clusterroles", {"metadata": {"name": "nodes"}, "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": READ}]}
    )
    for role in ("view", "nodes"):
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "guest"}
        binding = {"metadata": {"name": f"guest-{role}"}, "roleRef": reference, "subjects": [subject]}
        api.store.create("clusterrolebindings", binding)
    kubeconfig = api.write_kubeconfig(tmp_path / "guest.kubeconfig", "guest")
    words = [*PROGRAM, "shadow", f"--kubeconfig={kubeconfig}", "--duration=0.2"]
    done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Warning: storageclasses are left out:" in done.stderr and "unbound claims are not placed" in done.stderr
    assert done.stdout.startswith("No pod was placed by the schedulers that are judged.\n")


REAL = shutil.which("kube-scheduler", path=os.environ.get("KUBEBUILDER_ASSETS") or "/nonexistent")


@pytest.mark.real
@pytest.mark.skipif(REAL is None, reason="kube-scheduler is not judged: none in the folder that KUBEBUILDER_ASSETS names")
async def test_kube_scheduler_is_agreed_with(api: ApiServer, tmp_path: Path) -> None:
    assert REAL is not None
    api.store.create("clusterroles", EVERYTHING)
    api.store.create("clusterrolebindings", ANYBODY)
    root = api.write_kubeconfig(tmp_path / "root.kubeconfig", "root")
    (tmp_path / "live.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"leaderElection: {{leaderElect: false}}\nclientConnection: {{kubeconfig: {root}, qps: 500, burst: 500}}\n"
    )
    kubeconfig = api.write_kubeconfig(tmp_path / "shadow.kubeconfig", "shadow")
    log = tmp_path / "shadow.log"
    live = process(REAL, f"--config={tmp_path / 'live.yaml'}", "--secure-port=0", log=tmp_path / "live.log")
    words = (*PROGRAM, "shadow", f"--kubeconfig={kubeconfig}", "--pods=200", "--window=1", "-o", "json")
    async with live, process(*words, log=log) as shadow:
        await until(lambda: "Following 12 nodes" in words_of(log) or shadow.poll() is not None, "the shadow", log)
        for first in range(0, 200, 40):
            churn(api, first, 40)
            await until(lambda n=first: n_bound(api) >= n + 40, "bindings", tmp_path / "live.log")  # type: ignore[misc]
        out, _ = await asyncio.to_thread(shadow.communicate, None, PATIENCE_SECONDS)
    found = json.loads(out)
    assert (found["judged"], found["explainedPercent"]) == (200, 100.0), found["differences"]
