"""What `deploy/` installs, as deployed: configuration, flags, roles, probes, over real TLS."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
import yaml
from control_planes import (
    DEPLOY,
    PATIENCE_SECONDS,
    PROGRAM,
    Api,
    ControlPlane,
    Object,
    Refused,
    a_pod,
    ask_port,
    free_port,
    process,
    scheduler_program,
    write_kubeconfig,
)


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


@pytest.mark.parametrize("control_plane", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
@pytest.mark.parametrize(
    ("command", "role", "questions"),
    [
        ("observe", "viewer", ["/ui/api/state", "/api/decisions", "/shadow.json"]),
        ("serve", "caller", ["/v1/fits", "/v1/explain", "/v1/place"]),
    ],
)
async def test_callers_with_the_role_of_the_manifest_are_answered_and_others_are_not(
    control_plane: ControlPlane, api: Api, tmp_path: Path, command: str, role: str, questions: list[str]
) -> None:
    """The accounts have tokens that the API server made, and beside the manifest the rights that Kubernetes gives to all."""
    name, port, log = f"kubesched-{command}", free_port(), tmp_path / "log"
    for rule in yaml.safe_load_all((DEPLOY / f"{command}.yaml").read_text(encoding="utf-8")):
        if rule["kind"] not in ("Deployment", "Service"):
            await api.create(rule)
    for account in ("friend", "stranger"):
        await api.create({"kind": "ServiceAccount", "metadata": {"name": account, "namespace": "kube-system"}})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"{name}-{role}"}
    subject = {"kind": "ServiceAccount", "name": "friend", "namespace": "kube-system"}
    binding = {"kind": "ClusterRoleBinding", "metadata": {"name": "friends"}, "roleRef": reference, "subjects": [subject]}
    await api.create(binding)
    user = {"token": await api.account_token(name)}
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", control_plane.url, user, control_plane.authority)
    flags = [f"--{each}kubeconfig={kubeconfig}" for each in ("", "authentication-", "authorization-")]
    flags += ["--bind-address=127.0.0.1", f"--secure-port={port}", *(["--grpc-port=off"] if command == "serve" else [])]
    live = (f"--kubeconfig={control_plane.kubeconfig('admin')}", "--leader-elect=false", "--secure-port=0")
    await api.add_nodes(2)
    async with (
        process(*PROGRAM, command, *flags, log=log) as run,
        process(*scheduler_program(), *live, log=tmp_path / "live.log"),
    ):
        tokens = {"": "", "wrong": "wrong"} | {each: await api.account_token(each) for each in ("stranger", "friend")}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (await asyncio.to_thread(ask_port, port, "/readyz"))[0] != 200:
            assert run.poll() is None and time.monotonic() < deadline, log.read_text()[-2000:]
            await asyncio.sleep(0.1)
        await api.add_pods(0, 3)
        await api.until_bound(3)
        for path in questions:
            asked: Object | None = None
            if command == "serve":
                asked = {"pods": [a_pod("asked")]} if path == "/v1/place" else {"pod": a_pod("asked")}
            answers = [await asyncio.to_thread(ask_port, port, path, token, asked) for token in tokens.values()]
            assert [status for status, _ in answers] == [401, 401, 403, 200], (path, answers)
            assert isinstance(json.loads(answers[-1][1]), dict)
    with pytest.raises(Refused, match="403"):
        async with control_plane.api(user["token"]) as its:
            await its.create(a_pod("its-own"))
