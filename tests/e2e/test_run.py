"""The program as a user starts it: `kubesched run` in a process of its own, against the embedded API server."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from control_planes import PROGRAM, a_node, a_pod, ask_port, free_port
from in_process import until

from kubesched.embedded import ApiServer
from kubesched.embedded.http.access import User


@pytest.fixture
async def api() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        for i in range(2):
            server.store.create("nodes", a_node(f"n{i}"))
        yield server


def node_of(api: ApiServer, name: str) -> str:
    found: str = api.store.get("pods", name, "default")["spec"].get("nodeName", "")
    return found


def start(
    api: ApiServer, folder: Path, *words: str, config: dict[str, Any] | None = None, token: str = ""
) -> subprocess.Popen[str]:
    kubeconfig = api.write_kubeconfig(folder / "kubeconfig", token)
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaderElect": False},
        **(config or {}),
    }
    (folder / "config.yaml").write_text(json.dumps(document))
    return subprocess.Popen(
        [*PROGRAM, "run", "--config", str(folder / "config.yaml"), "--bind-address", "127.0.0.1", *words],
        stderr=(folder / "log").open("w"),
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


async def test_it_binds_reports_and_stops(api: ApiServer, tmp_path: Path) -> None:
    port = free_port()
    process = start(api, tmp_path, f"--secure-port={port}", "--v=2", "--authorization-always-allow-paths=*")
    try:
        api.store.create("pods", a_pod("small"), "default")
        api.store.create("pods", a_pod("whale", cpu="99"), "default")
        await until(lambda: bool(node_of(api, "small")), "small to be bound")
        await until(lambda: bool(api.store.get("pods", "whale", "default")["status"].get("conditions")), "a condition")
        (condition,) = api.store.get("pods", "whale", "default")["status"]["conditions"]
        assert condition["reason"] == "Unschedulable"
        assert condition["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
        events = lambda: {e["reason"] for e in api.store.list("events", "default").items}  # noqa: E731
        await until(lambda: {"Scheduled", "FailedScheduling"} <= events(), "events")
        api.store.create("pods", a_pod("stranger", schedulerName="another"), "default")
        await until(lambda: 'pod="stranger"' in ask_port(port, "/metrics/resources")[1], "the pod of another scheduler")
        assert json.loads(ask_port(port, "/configz")[1])["componentconfig"]["parallelism"] == 16
        assert await asyncio.to_thread(ask_port, port, "/readyz") == (200, "ok")
    finally:
        process.send_signal(signal.SIGTERM)
        # As the reference has it: whoever does not elect a leader does not end on purpose.
        assert await asyncio.to_thread(process.wait, 20) == 1, (tmp_path / "log").read_text(encoding="utf-8")
    assert "Successfully bound pod to node" in (tmp_path / "log").read_text(encoding="utf-8")
    assert '"command failed" err="finished without leader elect"' in (tmp_path / "log").read_text(encoding="utf-8")


async def test_a_changed_configuration_is_taken_over_and_a_broken_one_refused(api: ApiServer, tmp_path: Path) -> None:
    process = start(api, tmp_path, "--secure-port=0", "--v=1")
    log = tmp_path / "log"
    try:
        api.store.create("pods", a_pod("whale", cpu="99"), "default")
        api.store.create("pods", a_pod("early", schedulerName="second"), "default")
        api.store.create("pods", a_pod("first"), "default")
        await until(lambda: bool(node_of(api, "first")), "the first pod")
        assert not node_of(api, "early")
        document = json.loads((tmp_path / "config.yaml").read_text(encoding="utf-8"))
        document["profiles"] = [{"schedulerName": "default-scheduler"}, {"schedulerName": "second"}]
        (tmp_path / "config.yaml").write_text(json.dumps(document))
        await until(lambda: bool(node_of(api, "early")), "the pod of the new profile")
        (tmp_path / "config.yaml").write_text("profiles: [")
        await until(lambda: "refused, the old one stays" in log.read_text(), "the refusal")
        api.store.create("pods", a_pod("late", schedulerName="second"), "default")
        await until(lambda: bool(node_of(api, "late")), "a pod after the refusal")
        api.store.create("nodes", a_node("large", cpu="100"))
        await until(lambda: bool(node_of(api, "whale")), "the pod that waited all the while")
    finally:
        process.kill()
        await asyncio.to_thread(process.wait)


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["--no-such-flag"], 1, "unknown flag: --no-such-flag"),
        (["--config", "/does/not/exist"], 1, "no such file or directory"),
        (["--kubeconfig", "/does/not/exist", "--leader-elect=false"], 1, "/does/not/exist"),
        (["--feature-gates=NoSuchGate=true"], 1, "NoSuchGate"),
        (["surplus"], 1, "does not take any arguments"),
    ],
)
def test_bad_input_ends_in_one_line(words: list[str], code: int, complaint: str) -> None:
    done = subprocess.run([*PROGRAM, "run", *words], capture_output=True, text=True, timeout=60)
    last = done.stderr.strip().splitlines()[-1]
    assert (done.returncode, complaint in last) == (code, True), done.stderr[-500:]
    assert "Traceback" not in done.stderr


def test_what_is_wrong_once_there_is_a_log_is_said_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("kind: X\n")
    words = ["--config", str(tmp_path / "config.yaml")]
    done = subprocess.run([*PROGRAM, "run", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert '] "command failed" err=' in done.stderr
    done = subprocess.run([*PROGRAM, "run", *words, "--logging-format=json"], capture_output=True, text=True, timeout=60)
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["err"] == "Object 'apiVersion' is missing in 'kind: X\n'"


USERS = {"root": User("root", ("system:masters", "system:authenticated")), "guest": User("guest", ("system:authenticated",))}


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        ([], {"": 401, "root": 401, "nonsense": 401, "guest": 401}),
        (["--authentication-kubeconfig"], {"": 401, "root": 200, "nonsense": 401, "guest": 403}),
        (["--authentication-kubeconfig", "--authorization-kubeconfig"], {"root": 200, "guest": 403, "metrics": 200}),
    ],
    ids=["nobody is asked", "who asks", "who asks and may"],
)
async def test_callers_are_known_by_the_kubeconfigs_that_are_given_for_them(
    words: list[str], answers: dict[str, int], tmp_path: Path
) -> None:
    async with ApiServer(tokens={**USERS, "metrics": User("scraper", ("system:authenticated",))}) as api:
        rbac = "rbac.authorization.k8s.io"
        rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
        api.store.create(f"clusterroles.{rbac}", {"metadata": {"name": "scraping"}, "rules": rules})
        api.store.create(
            f"clusterrolebindings.{rbac}",
            {
                "metadata": {"name": "scraping"},
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "scraping"},
                "subjects": [{"apiGroup": rbac, "kind": "User", "name": "scraper"}],
            },
        )
        port = free_port()
        process = start(
            api, tmp_path, f"--secure-port={port}", *(f"{word}={tmp_path}/kubeconfig" for word in words), token="root"
        )
        try:
            await until(lambda: "Serving securely" in (tmp_path / "log").read_text(encoding="utf-8"), "the port")
            for token, status in answers.items():
                assert (await asyncio.to_thread(ask_port, port, "/metrics", token))[0] == status, token
        finally:
            process.kill()
            await asyncio.to_thread(process.wait)


@pytest.mark.parametrize("task", ["authentication", "authorization"])
def test_a_kubeconfig_for_callers_that_is_not_there_ends_the_start(task: str, tmp_path: Path) -> None:
    words = ["--master=http://127.0.0.1:1", f"--{task}-kubeconfig={tmp_path}/absent", f"--secure-port={free_port()}"]
    done = subprocess.run([*PROGRAM, "run", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"failed to get delegated {task} kubeconfig: kubeconfig {tmp_path}/absent" in done.stderr


def test_write_config_to(tmp_path: Path) -> None:
    target = tmp_path / "out.yaml"
    done = subprocess.run([*PROGRAM, "run", "--write-config-to", str(target)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "kind: KubeSchedulerConfiguration" in target.read_text(encoding="utf-8")
