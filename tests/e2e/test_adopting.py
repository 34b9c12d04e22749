"""docs/how-to/adopting.md, done: every command on the page is run in its order, and the cluster is looked at in between.

What a kubelet would run is run here as plain processes: the Deployment of the second scheduler, and the static pods in a
folder that stands for /etc/kubernetes/manifests. kube-scheduler is the real one where there is one, else our own program.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import yaml
from control_planes import DEPLOY, PATIENCE_SECONDS, PROGRAM, Api, ControlPlane, Object, Refused, a_pod, free_port, process

ROOT = DEPLOY.parent
PAGE = ROOT / "docs" / "how-to" / "adopting.md"
KUBE_SCHEDULER = shutil.which("kube-scheduler", path=os.environ.get("KUBEBUILDER_ASSETS") or "/nonexistent")
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{}"
QUICKLY = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=200ms",
)

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="docs/how-to/adopting.md needs kubectl")


def commands() -> list[list[str]]:
    """Return the commands of the page, block by block."""
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [[line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")] for block in blocks]


class Manifests:
    """A folder of static pods, and the processes that stand for them."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self.folder = folder
        self._kubeconfig = kubeconfig
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def sync(self) -> None:
        """Start what there is, end what is gone."""
        there = {file.name: yaml.safe_load(file.read_text(encoding="utf-8")) for file in self.folder.glob("*.yaml")}
        for name in self._running.keys() - there.keys():
            process = self._running.pop(name)
            process.terminate()
            process.wait(PATIENCE_SECONDS)
        for name in there.keys() - self._running.keys():
            with (self.folder.parent / f"{name}.log").open("ab") as log:
                self._running[name] = subprocess.Popen(self._command(there[name]), stdout=log, stderr=log)

    def _command(self, pod: Object) -> list[str]:
        (container,) = pod["spec"]["containers"]
        flags = [arg.replace("/etc/kubernetes/scheduler.conf", str(self._kubeconfig)) for arg in container["args"]]
        flags += [f"--secure-port={free_port()}", *QUICKLY]
        if container["image"].startswith("kubesched:"):
            return [*PROGRAM, *flags]
        return [KUBE_SCHEDULER, *flags] if KUBE_SCHEDULER else [*PROGRAM, "run", *flags]

    async def run(self) -> None:
        """Do so until cancelled."""
        try:
            while True:
                self.sync()
                await asyncio.sleep(0.1)
        finally:
            for process in self._running.values():
                process.kill()
                process.wait()


@asynccontextmanager
async def kubelet(manifests: Manifests) -> AsyncIterator[None]:
    working = asyncio.create_task(manifests.run())
    try:
        yield
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


class Shell:
    """Runs the page's commands, one block after the other."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self._folder, self._environ = folder, environ
        self._blocks: Iterator[list[str]] = iter(commands())

    async def block(self, first_word: str) -> list[str]:
        """Run the next block, which begins with a word; return what each command printed."""
        block = next(self._blocks)
        assert block[0].startswith(first_word), block
        return [await self._run(command) for command in block]

    async def _run(self, command: str) -> str:
        words = ["bash", "-c", command]
        asked = partial(subprocess.run, words, capture_output=True, text=True, timeout=120, cwd=self._folder)
        done = await asyncio.to_thread(asked, env=self._environ)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def is_done(self) -> bool:
        return next(self._blocks, None) is None


@asynccontextmanager
async def second_scheduler(plane: ControlPlane, api: Api, folder: Path) -> AsyncIterator[None]:
    """Run the Deployment of that name from when it is there."""

    async def run() -> None:
        path = "/apis/apps/v1/namespaces/kube-system/deployments/kubesched"
        while True:
            try:
                (container,) = (await api.get(path))["spec"]["template"]["spec"]["containers"]
                break
            except Refused:
                await asyncio.sleep(0.1)
        maps = (await api.get("/api/v1/namespaces/kube-system/configmaps"))["items"]
        (text,) = [each["data"]["config.yaml"] for each in maps if each["metadata"]["name"].startswith("kubesched-config")]
        document = yaml.safe_load(text)
        document["clientConnection"]["kubeconfig"] = str(plane.kubeconfig("scheduler"))
        (folder / "config.yaml").write_text(yaml.safe_dump(document))
        changed = {"--config": folder / "config.yaml", "--secure-port": free_port()}
        flags = [f"{name}={changed.get(name, value)}" for name, _, value in (arg.partition("=") for arg in container["args"])]
        command = [flag.removesuffix("=") for flag in flags]
        async with process(*PROGRAM, *command, log=folder / "second.log"):
            await asyncio.Event().wait()

    running = asyncio.create_task(run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def until_led(api: Api, lease: str, but: str) -> None:
    """Wait until somebody else holds a lease."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (await api.get(LEASE.format(lease)))["spec"].get("holderIdentity") in (None, "", but):
        assert time.monotonic() < deadline, f"{but} still holds {lease}"
        await asyncio.sleep(0.1)


async def said_by(api: Api, namespace: str, pod: str) -> str:
    """Return who told that a pod was scheduled."""
    events = (await api.get(f"/api/v1/namespaces/{namespace}/events"))["items"]
    (found,) = [each for each in events if each["involvedObject"]["name"] == pod and each["reason"] == "Scheduled"]
    return str(found.get("reportingComponent") or found["source"]["component"])


async def test_every_command_of_the_page(control_plane: ControlPlane, api: Api, tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(DEPLOY, work / "deploy")
    manifests = Manifests(work / "manifests", control_plane.kubeconfig("admin"))
    manifests.folder.mkdir()
    (work / "bin").mkdir()
    program = work / "bin" / "kubesched"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from kubesched.cli import main; main()" "$@"\n')
    program.chmod(0o755)
    (work / "scheduler-config.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    )
    live = {"args": ["--kubeconfig=/etc/kubernetes/scheduler.conf", "--leader-elect=true"], "image": "kube-scheduler"}
    (manifests.folder / "kube-scheduler.yaml").write_text(yaml.safe_dump({"spec": {"containers": [live]}}))
    environ = {
        **os.environ,
        "PATH": f"{work / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "KUBECONFIG": str(control_plane.kubeconfig("admin")),
        "MANIFESTS": str(manifests.folder),
    }
    shell = Shell(work, environ)
    await api.add_nodes(3)
    async with kubelet(manifests):
        _, listed = await shell.block("kubectl apply -f deploy/observe.yaml")
        assert "kubesched-observe" in listed
        await shell.block("kubectl delete -f deploy/observe.yaml")
        await shell.block("kubesched config check")
        await api.create(a_pod("before"))
        await api.until_bound(1)
        (summary,) = await shell.block("kubesched shadow")
        assert "GET." in summary
        _, listed = await shell.block("kubectl apply -k deploy/kustomize/shadow")
        assert "kubesched-shadow" in listed
        await shell.block("kubectl delete -k deploy/kustomize/shadow")

        async with second_scheduler(control_plane, api, tmp_path):
            *_, events, why = await shell.block("kubectl apply -k deploy/kustomize/second-scheduler")
            assert "first" in events and "first" in why
            assert await said_by(api, "trial", "first") == "kubesched"
            await shell.block("kubectl delete namespace trial")
        remaining = (await api.get("/apis/apps/v1/namespaces/kube-system/deployments"))["items"]
        assert remaining == []

        holder, *_ = await shell.block("kubectl -n kube-system get lease kube-scheduler")
        await until_led(api, "kube-scheduler", but=holder)
        ours, *_ = await shell.block("kubectl -n kube-system get lease kube-scheduler")
        assert ours not in ("", holder)
        await shell.block("mv $MANIFESTS/kubesched.yaml")
        await until_led(api, "kube-scheduler", but=ours)  # given back by the one that ended, and not yet taken by the other
    assert shell.is_done()
    placed = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in await api.pods()}
    assert placed.keys() == {"before", "second", "third"} and all(placed.values())
