"""Decisions in files: rotated by size, bounded in number, and never in the way."""

import json
import logging
from pathlib import Path

import pytest

from kubesched.scheduler.engine.records.decision_log import DecisionLog
from kubesched.scheduler.engine.records.decision_record import DecisionRecord


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["sequence"] for line in path.read_text(encoding="utf-8").splitlines()]


def write(log: DecisionLog, *sequences: int) -> None:
    for sequence in sequences:
        log(DecisionRecord("default/p", "u", "s", sequence=sequence))


def test_files_are_rotated_by_size_and_only_so_many_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    log = DecisionLog(str(path), max_bytes=600, max_files=3)
    write(log, *range(20))
    log.close()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["decisions.jsonl", "decisions.jsonl.1", "decisions.jsonl.2"]
    assert all(file.stat().st_size <= 600 for file in files)
    kept = [number for file in reversed(files) for number in numbers(file)]
    assert kept == list(range(20 - len(kept), 20))


def test_a_file_that_is_there_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    for sequence in (1, 2):
        log = DecisionLog(str(path))
        write(log, sequence)
        log.close()
    assert numbers(path) == [1, 2]


def test_a_disk_that_fails_is_told_once_and_gone_on_with(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    path = folder / "decisions.jsonl"
    log = DecisionLog(str(path), max_bytes=100)
    write(log, 0)
    log.flush()
    path.rename(tmp_path / "before")
    folder.rmdir()
    with caplog.at_level(logging.ERROR):
        for sequence in (1, 2):
            write(log, sequence)
            log.flush()
    assert len([record for record in caplog.records if "cannot be written" in record.message]) == 1
    folder.mkdir()
    write(log, 3)
    log.close()
    assert numbers(path) == [3]
