"""The second-scheduler variant as deployed: its configuration, its flags, its role, its probes, over real TLS."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import yaml
from control_planes import DEPLOY, PATIENCE_SECONDS, PROGRAM, Api, ControlPlane, a_pod, ask_port, free_port, process


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
    await api.create(a_pod("my-pod", schedulerName="kubesched"))
    async with process(*PROGRAM, "run", *flags, log=tmp_path / "log") as scheduler:
        paths = [container[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while [(await asyncio.to_thread(ask_port, port, path))[0] for path in paths] != [200, 200]:
            assert scheduler.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()[-2000:]
            await asyncio.sleep(0.1)
        await api.until_bound(1)
        nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in await api.pods()}
        assert nodes["my-pod"] and not nodes["default-pod"]
        assert await api.leader()
        # The role lets it ask who comes, and whether they may.
        answers = [await asyncio.to_thread(ask_port, port, "/metrics", token) for token in ("", "guest", "admin")]
        assert [status for status, _ in answers] == [401, 403, 200]
        scheduler.terminate()
        assert await asyncio.to_thread(scheduler.wait, 20) == 0
        assert await api.leader() == ""
