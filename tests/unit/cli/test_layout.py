"""Text in columns: it breaks between words, never inside one, and is not padded."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from kubesched.cli.layout import table, wrapped
from kubesched.testing import node, pod
from kubesched.tools.snapshots.captured import Captured

TITLES = ("WORKLOAD", "PODS", "WHERE")
ROWS = [
    (
        "Deployment/a-name-of-some-length",
        "3",
        "node-one x2, node-two\nweb-3 waits: 0/3 nodes are available: 3 Insufficient cpu",
    ),
    ("Job/j", "12", ""),
]

LINES = [
    (
        "in a pipe a row is a line, without padding",
        None,
        [
            "WORKLOAD                          PODS  WHERE",
            "Deployment/a-name-of-some-length     3  node-one x2, node-two",
            "                                        web-3 waits: 0/3 nodes are available: 3 Insufficient cpu",
            "Job/j                               12",
        ],
    ),
    (
        "the last column is wrapped between words",
        82,
        [
            "WORKLOAD                          PODS  WHERE",
            "Deployment/a-name-of-some-length     3  node-one x2, node-two",
            "                                        web-3 waits: 0/3 nodes are available: 3",
            "                                        Insufficient cpu",
            "Job/j                               12",
        ],
    ),
    (
        "what has no room beside its row goes below it",
        60,
        [
            "WORKLOAD                          PODS",
            "Deployment/a-name-of-some-length     3",
            "    node-one x2, node-two",
            "    web-3 waits: 0/3 nodes are available: 3 Insufficient cpu",
            "Job/j                               12",
        ],
    ),
]


@pytest.mark.parametrize(("width", "lines"), [case[1:] for case in LINES], ids=[case[0] for case in LINES])
def test_a_table_with_sentences(width: int | None, lines: list[str]) -> None:
    assert table(TITLES, ROWS, width, right=(1,), sentences=True) == lines


def test_a_table_of_figures_that_is_too_wide_becomes_a_list() -> None:
    rows = [("basic", "1,000"), ("spread", "2")]
    lines = ["kind    pods_per_s", "basic        1,000", "spread           2"]
    assert table(("kind", "pods_per_s"), rows, 20, right=(1,)) == lines
    lists = ["kind        basic", "pods_per_s  1,000", "", "kind        spread", "pods_per_s  2"]
    assert table(("kind", "pods_per_s"), rows, 15, right=(1,)) == lists


def test_a_word_that_is_wider_than_the_line_stays_whole() -> None:
    assert wrapped("see a-very-long-name-of-a-node now", 12) == ["see", "a-very-long-name-of-a-node", "now"]


def on_terminal(*words: str, width: int = 80) -> str:
    """Return what a command prints on a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"} | {"NO_COLOR": "1", "TERM": "xterm"}
    code = "from kubesched.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=theirs, stderr=subprocess.DEVNULL, env=environment
    ) as run:
        os.close(theirs)
        found = b""
        while chunk := _read(ours):
            found += chunk
        assert run.wait(60) == 0
    os.close(ours)
    return found.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how a terminal says that nobody writes any more
        return b""


def test_a_plan_on_a_terminal_of_80_columns(tmp_path: Path) -> None:
    nodes = [node(f"gke-production-pool-{i:04d}-ab12", cpu="4") for i in range(6)]
    objects = [*nodes, pod("a-pod-that-waits-already-and-has-a-long-name", requests={"cpu": "99"})]
    (tmp_path / "cluster.jsonl").write_bytes(b"".join(Captured(5.0, objects).lines()))
    (tmp_path / "web.yaml").write_text(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: checkout-frontend-service, namespace: team-payments-prod}, "
        "spec: {replicas: 9, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, "
        "spec: {containers: [{name: c, image: x, resources: {requests: {cpu: '3'}}}]}}}}"
    )
    text = on_terminal("plan", "-f", str(tmp_path / "web.yaml"), "--snapshot", str(tmp_path / "cluster.jsonl"))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80 and all(line == line.rstrip() for line in lines), text
    words = set(text.replace(",", " ").split())
    assert {each.metadata.name for each in nodes} | {"Deployment/checkout-frontend-service", "team-payments-prod"} <= words, (
        text
    )
