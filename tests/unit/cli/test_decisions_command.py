"""`kubesched decisions` on files: lists, filters, one pod in full, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched.cli.decisions import command
from kubesched.errors import SchedulerError
from kubesched.scheduler.engine.records.decision_log import DecisionLog
from kubesched.scheduler.engine.records.decision_record import PLACED, UNSCHEDULABLE, DecisionRecord, RefusalCount


def decisions(*words: str) -> Result:
    return CliRunner().invoke(command, words)


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    path = tmp_path / "decisions.jsonl"
    log = DecisionLog(str(path), max_bytes=1500, max_files=9)
    refusals = (RefusalCount("NodeResourcesFit", "Insufficient cpu", 2),)
    for i in range(6):
        record = DecisionRecord(f"team-a/web-{i}", f"u{i}", "default-scheduler", sequence=i, at=1000.0 + i, attempt=1)
        if i % 3:
            record.outcome, record.node, record.chosen_by, record.node_count = PLACED, f"n{i}", "only", 3
        else:
            record.outcome, record.refused, record.message = UNSCHEDULABLE, refusals, "0/3 nodes are available"
        log(record)
    log.close()
    return path


LISTS = [
    ("all, over all files, newest first", [], ["web-5", "web-4", "web-3", "web-2", "web-1", "web-0"]),
    ("of a node", ["--node", "n4"], ["web-4"]),
    ("of an outcome", ["--outcome", "unschedulable"], ["web-3", "web-0"]),
    ("refused by a plugin", ["--refused-by", "NodeResourcesFit"], ["web-3", "web-0"]),
    ("of another namespace", ["-n", "team-b"], []),
    ("since", ["--since", "1970-01-01T00:16:44Z"], ["web-5", "web-4"]),
    ("until", ["--until", "1001"], ["web-1", "web-0"]),
    ("the newest", ["--limit", "2"], ["web-5", "web-4"]),
    ("of one pod", ["team-a/web-2"], ["web-2"]),
]


@pytest.mark.parametrize(("words", "expected"), [case[1:] for case in LISTS], ids=[case[0] for case in LISTS])
def test_a_list(log_file: Path, words: list[str], expected: list[str]) -> None:
    result = decisions("--log", str(log_file), "-o", "json", *words)
    assert result.exit_code == 0, result.output
    assert [each["pod"] for each in json.loads(result.output)["decisions"]] == [f"team-a/{name}" for name in expected]


def test_tables_and_yaml(log_file: Path) -> None:
    table = decisions("--log", str(log_file)).output
    assert "team-a/web-4  placed" in table and "n4 was the only one of 3 nodes that took it" in table
    one = decisions("--log", str(log_file), "team-a/web-3").output
    assert "team-a/web-3: unschedulable" in one and "NodeResourcesFit" in one and "Insufficient cpu" in one
    assert (
        yaml.safe_load(decisions("--log", str(log_file), "-o", "yaml", "--limit", "1").output)["decisions"][0]["sequence"] == 5
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "--inbox-log FILE"),
        (["--log", "LOG", "--server", "http://x"], "--inbox-log FILE"),
        (["--log", "LOG", "--token", "t"], "go with --server"),
        (["--log", "LOG", "--feature-gates", "A=true"], "go with --inbox-log"),
        (["--log", "LOG", "--since", "noon"], "'noon' is no time"),
        (["--log", "LOG", "team-a/x", "-n", "team-b"], "not in namespace team-b"),
        (["--log", "LOG", "team-a/"], "not a pod's name"),
        (["--log", "LOG", "--outcome", "lost"], "lost"),
    ],
)
def test_wrong_usage(log_file: Path, words: list[str], complaint: str) -> None:
    result = decisions(*(str(log_file) if word == "LOG" else word for word in words))
    assert result.exit_code == 2 and complaint in result.output


def test_a_pod_that_is_not_on_record(log_file: Path) -> None:
    result = decisions("--log", str(log_file), "team-a/nobody")
    assert isinstance(result.exception, SchedulerError) and "team-a/nobody" in str(result.exception)


@pytest.mark.parametrize("line", ["nonsense", '{"pod": "a/b"}', "[1]"])
def test_a_file_that_is_no_decision_log(tmp_path: Path, line: str) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_text(line + "\n")
    result = decisions("--log", str(path))
    assert isinstance(result.exception, SchedulerError) and "line 1" in str(result.exception)
