"""`kubesched why` as an operator types it: against an API server, against a running scheduler, against a demo."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from control_planes import PROGRAM, a_node, a_pod, free_port, process, serving
from demos import running
from in_process import until

from kubesched.embedded import ApiServer
from kubesched.embedded.http.access import User

TOKENS = {"root": User("root", ("system:masters", "system:authenticated"))}


@pytest.fixture
async def api() -> AsyncIterator[ApiServer]:
    async with ApiServer(tokens=TOKENS) as server:
        server.store.create("nodes", a_node("n0"))
        server.store.create("nodes", a_node("n1", taints=[{"key": "gpu", "effect": "NoSchedule"}]))
        yield server


async def why(*words: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        subprocess.run,
        [*PROGRAM, "why", *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
    )


async def story(*words: str) -> dict[str, Any]:
    done = await why(*words, "-o", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def test_a_live_cluster_is_read_and_not_written(api: ApiServer, tmp_path: Path) -> None:
    kubeconfig = str(api.write_kubeconfig(tmp_path / "kubeconfig", "root"))
    api.store.create("priorityclasses", {"metadata": {"name": "important"}, "value": 7})
    api.store.create("pods", a_pod("low", cpu="3", nodeName="n0"), "default")
    api.store.create("pods", a_pod("web", cpu="2", priorityClassName="important"), "default")
    before = api.store.get("pods", "web", "default")
    found = await story("web", "--kubeconfig", kubeconfig)
    assert (found["state"], found["nodeCount"], found["feasibleCount"]) == ("pending", 2, 0)
    assert {each["plugin"]: each["count"] for each in found["refusals"]} == {"NodeResourcesFit": 1, "TaintToleration": 1}
    assert found["preemption"]["victims"] == [{"pod": "default/low", "priority": 0}]
    assert api.store.get("pods", "web", "default") == before
    text = (await why("default/web", "--kubeconfig", kubeconfig)).stdout
    assert text.startswith("default/web is pending: none of 2 nodes takes it\n")
    assert "- tolerating gpu:NoSchedule, 1 node would take it (n1)" in text


async def test_a_finished_pod_is_found_although_schedulers_do_not_list_it(api: ApiServer, tmp_path: Path) -> None:
    kubeconfig = str(api.write_kubeconfig(tmp_path / "kubeconfig", "root"))
    made = api.store.create("pods", a_pod("done", nodeName="n0"), "default")
    api.store.update("pods", {**made, "status": {"phase": "Succeeded"}}, subresource="status")
    assert (await story("done", "--kubeconfig", kubeconfig))["state"] == "finished"
    missing = await why("nobody", "--kubeconfig", kubeconfig)
    assert (missing.returncode, missing.stdout, missing.stderr) == (1, "", "Error: there is no pod default/nobody\n")


async def test_a_running_scheduler_is_asked_for_its_own_record(api: ApiServer, tmp_path: Path) -> None:
    kubeconfig, port = api.write_kubeconfig(tmp_path / "kubeconfig", "root"), free_port()
    server = [f"--server=https://127.0.0.1:{port}", "--insecure-skip-tls-verify"]
    async with process(*PROGRAM, "run", *serving(kubeconfig, port), log=tmp_path / "log"):
        api.store.create("pods", a_pod("whale", cpu="99"), "default")
        api.store.create("pods", a_pod("small"), "default")
        await until(lambda: bool(api.store.get("pods", "small", "default")["spec"].get("nodeName")), "small to be bound")
        await until(lambda: bool(api.store.get("pods", "whale", "default").get("status", {}).get("conditions")), "a condition")
        condition = api.store.get("pods", "whale", "default")["status"]["conditions"][0]["message"]
        found = await story("whale", *server, "--token=root")
        assert (found["state"], found["attempts"] >= 1, found["message"]) == ("pending", True, condition)
        assert found["advice"][-1]["kind"] == "never"
        text = (await why("whale", *server, "--token=root")).stdout
        assert text.startswith("default/whale is pending: none of 2 nodes takes it, and none ever could\n")
        placed = await story("small", *server, "--token=root")
        assert (placed["state"], placed["node"], placed["ranking"][0]["node"]) == ("placed", "n0", "n0")
        for more, complaint in (
            ([], "asks who we are: give --token"),
            (["--token=root", "-n", "team"], "pod team/whale is neither queued nor placed here"),
        ):
            refused = await why("whale", *server, *more)
            assert (refused.returncode, refused.stdout) == (1, "")
            assert complaint in refused.stderr and refused.stderr.count("\n") == 1
        untrusted = await why("whale", server[0], "--token=root")
        assert untrusted.returncode == 1 and "certificate" in untrusted.stderr and untrusted.stderr.count("\n") == 1


async def test_a_hidden_snapshot_of_a_live_cluster_is_explained_alike(api: ApiServer, tmp_path: Path) -> None:
    kubeconfig, file = str(api.write_kubeconfig(tmp_path / "kubeconfig", "root")), tmp_path / "hidden.jsonl.gz"
    api.store.create("pods", a_pod("acme-web", cpu="99"), "default")
    words = ["snapshot", str(file), "--kubeconfig", kubeconfig, "--hide-names", "--names", str(tmp_path / "names")]
    done = await asyncio.to_thread(subprocess.run, [*PROGRAM, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    pseudonym = json.loads((tmp_path / "names").read_text(encoding="utf-8"))["acme-web"]
    plain, hidden = await story("acme-web", "--kubeconfig", kubeconfig), await story(pseudonym, "--snapshot", str(file))
    assert hidden["wouldSay"] == plain["wouldSay"]
    assert [each["kind"] for each in hidden["advice"]] == [each["kind"] for each in plain["advice"]]


def test_a_demo_is_asked_by_its_page() -> None:
    with running("--nodes", "5", "--pods", "10") as demo:
        demo.until("Ctrl-C")
        words = [*PROGRAM, "why", "demo/whale", "--server", demo.page, "-o", "json"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "pending"
