"""The second-scheduler variant as deployed: its configuration, its flags, its role, its probes, over real TLS."""

from __future__ import annotations

import asyncio
import signal
import ssl
import subprocess
import time
from pathlib import Path

import aiohttp
import yaml
from control_planes import DEPLOY, PATIENCE_SECONDS, PROGRAM, Api, ControlPlane, a_pod, free_port


async def ask(port: int, path: str, token: str = "") -> int:
    """Return the status of one of the scheduler's endpoints; 0 while nobody listens."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # as the kubelet does
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://127.0.0.1:{port}{path}", ssl=context, headers=headers) as answer,
        ):
            return answer.status
    except aiohttp.ClientConnectionError:
        return 0


def launch(flags: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen([*PROGRAM, "run", *flags], stdout=file, stderr=file)


async def test_the_second_scheduler_as_deployed(control_plane: ControlPlane, api: Api, tmp_path: Path) -> None:
    configuration = yaml.safe_load((DEPLOY / "kustomize" / "second-scheduler" / "config.yaml").read_text(encoding="utf-8"))
    configuration["clientConnection"]["kubeconfig"] = str(control_plane.kubeconfig("scheduler"))
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(configuration))
    deployment = yaml.safe_load((DEPLOY / "kustomize" / "base" / "deployment.yaml").read_text(encoding="utf-8"))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    port = free_port()
    changed = {"--config": str(file), "--secure-port": str(port)}
    flags = [f"{name}={changed.get(name, value)}" for name, _, value in (arg.partition("=") for arg in container["args"][1:])]
    # In a pod, callers are reviewed by the cluster around it.
    flags += [f"--{task}-kubeconfig={control_plane.kubeconfig('scheduler')}" for task in ("authentication", "authorization")]
    await api.add_nodes(2)
    await api.create(a_pod("default-pod"))
    mine = a_pod("my-pod")
    mine["spec"]["schedulerName"] = "kubesched"
    await api.create(mine)
    process = launch(flags, tmp_path / "log")
    try:
        paths = [container[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while [await ask(port, path) for path in paths] != [200, 200]:
            assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text(encoding="utf-8")[
                -2000:
            ]
            await asyncio.sleep(0.1)
        await api.until_bound(1)
        nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in await api.pods()}
        assert nodes["my-pod"] and not nodes["default-pod"]
        assert await api.leader()
        # The role lets it ask who comes, and whether they may.
        assert [await ask(port, "/metrics", token) for token in ("", "guest", "admin")] == [401, 403, 200]
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 20) == 0
        assert await api.leader() == ""
    finally:
        process.kill()
        process.wait()
