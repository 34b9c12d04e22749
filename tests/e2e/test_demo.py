"""`kubesched demo` as a user starts it: what it prints, what it serves, what it keeps, and how it ends."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from demos import run_once, running

KUBECTL = shutil.which("kubectl")


def fetch(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.loads(answer.read())


def table(output: str) -> dict[str, list[str]]:
    """Return the rows of "What went where": workload -> the columns after it."""
    rows = output.partition("What went where")[2].partition("Why ")[0].splitlines()[2:]
    cells = [re.split(r"\s{2,}", row.strip()) for row in rows if row.strip()]
    return {row[0]: row[1:] for row in cells}


def test_once_shows_everything_and_exits() -> None:
    done = run_once("--nodes", "12", "--pods", "40")
    assert (done.returncode, done.stderr) == (0, "")
    assert "12 nodes" in done.stdout and "zone-c" in done.stdout
    assert "placed 39 of 40 pods" in done.stdout
    assert "Why demo/whale is pending (0 of 12 nodes would do):" in done.stdout
    assert "0/12 nodes are available: 1 node(s) had untolerated taint(s), 11 Insufficient cpu" in done.stdout
    assert "nodes short of resources could hold it even empty" in done.stdout
    assert done.stdout.count("Why ") == 1, "only one pod is pending"
    rows = table(done.stdout)
    assert list(rows) == ["api", "cache", "report", "trainer", "web", "whale"]
    web = [int(n) for n in rows["web"][:3]]
    assert sum(web) == 16 and max(web) - min(web) <= 1, "spread evenly over the zones"


def test_a_cluster_without_gpus_has_no_trainers() -> None:
    done = run_once("--nodes", "3", "--pods", "10")
    assert done.returncode == 0
    assert "trainer" not in table(done.stdout)
    assert "placed 9 of 10 pods" in done.stdout


def test_too_many_pods_are_explained_once_a_kind() -> None:
    done = run_once("--nodes", "1", "--pods", "150")
    assert done.returncode == 0
    assert "\n1 node\n" in done.stdout
    assert re.search(r"Why demo/\S+, like \d+ more, is pending \(0 of 1 nodes would do\):", done.stdout)
    assert done.stdout.count("Why ") <= 3


def test_objects_are_kept_across_restarts(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    first = run_once("--data-dir", str(kept))
    second = run_once("--data-dir", str(kept))
    assert (first.returncode, second.returncode) == (0, 0), second.stderr
    assert table(first.stdout) == table(second.stdout), "every pod stays where it was, and none is made twice"
    larger = run_once("--data-dir", str(kept), "--nodes", "25")
    assert "25 nodes" in larger.stdout
    assert table(larger.stdout) == table(first.stdout)


def test_the_page_and_the_api_are_served_until_interrupted(tmp_path: Path) -> None:
    with running("--nodes", "10", "--pods", "30", "--data-dir", str(tmp_path / "kept")) as demo:
        demo.until("Ctrl-C")
        state = fetch(f"{demo.page}api/state")
        assert (state["nodeCount"], state["boundCount"]) == (10, 29)
        assert fetch(f"{demo.page}api/pending")["groups"][0]["pods"][0]["pod"] == "demo/whale"
        assert fetch(f"{demo.page}api/pods/demo/whale")["refusals"]
        if KUBECTL is not None:
            asked = subprocess.run(
                [KUBECTL, "--kubeconfig", demo.kubeconfig, "get", "pods", "-n", "demo", "-o", "name"],
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert len(asked.stdout.splitlines()) == 30, asked.stderr
            told = subprocess.run(
                [KUBECTL, "--kubeconfig", demo.kubeconfig, "describe", "pod", "whale", "-n", "demo"],
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert "FailedScheduling" in told.stdout and "Insufficient cpu" in told.stdout
        assert demo.stop() == 0
        assert "Stopped; the objects are kept in" in demo.output
        assert "Traceback" not in demo.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_can_be_stopped_in_the_middle(number: int) -> None:
    with running("--nodes", "100", "--pods", "3000") as demo:
        demo.until("The page is at")
        time.sleep(1.5)
        assert demo.stop(number) == 0
        assert demo.output.rstrip().endswith("Stopped.")
        assert "Traceback" not in demo.output and "Error" not in demo.output


@pytest.mark.parametrize("flag", ["--port", "--page-port"])
def test_a_port_in_use_is_one_line(flag: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run_once(flag, str(port))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ") and f"127.0.0.1:{port}" in line and "address already in use" in line


def test_a_data_directory_in_use_is_one_line(tmp_path: Path) -> None:
    with running("--data-dir", str(tmp_path)) as demo:
        demo.until("The page is at")
        done = run_once("--data-dir", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == f"Error: data-dir: {tmp_path} is in use by another server\n"


USAGE = [("--nodes", "0"), ("--pods", "many"), ("--port", "70000"), ("--page-port", "-1")]


@pytest.mark.parametrize(("flag", "value"), USAGE)
def test_wrong_usage(flag: str, value: str) -> None:
    done = run_once(flag, value)
    assert done.returncode == 2
    assert flag in done.stderr
