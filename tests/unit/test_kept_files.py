"""Files that a user keeps are read by newer releases, and newer ones are refused in one line.

`kept_files` has a folder for each time that a format was extended, written by the code of that time: an API server with one
node, a pod that fits and one that does not, and a scheduler that decided both. A release that extends a format adds a folder.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kubesched.embedded.storage.write_ahead_log import WriteAheadLog
from kubesched.errors import ConfigError, SchedulerError
from kubesched.scheduler.engine import document
from kubesched.tools.decisions.finding import read_log
from kubesched.tools.plan.cluster_files import read_cluster_file
from kubesched.tools.simulation.replay import decide_again, entries_of

FOLDERS = sorted(path for path in (Path(__file__).parent / "kept_files").iterdir())


def lines_of(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_files_of_an_earlier_release_are_read(folder: Path, tmp_path: Path) -> None:
    for name in ("snapshot.jsonl", "inbox.jsonl"):
        objects = read_cluster_file(folder / name).objects
        placed = {obj.metadata.name: obj.spec.node_name for obj in objects if type(obj).__name__ == "Pod"}
        assert placed == {"small": "n1", "large": ""}
    again = [document(record) for record in decide_again(lines_of(folder / "inbox.jsonl"))]
    assert {each["pod"]: each["outcome"] for each in again} == {"default/large": "unschedulable", "default/small": "placed"}
    if (folder / "decisions.jsonl").exists():
        found = {decision["pod"]: decision["outcome"] for decision in read_log(folder / "decisions.jsonl")}
        assert found == {"default/large": "unschedulable", "default/small": "placed"}
    shutil.copy(folder / "objects.log", tmp_path)
    kept = {key: raw for _, table, key, raw in WriteAheadLog(tmp_path).read() if table == "pods"}
    assert json.loads(kept["default/small"])["spec"]["nodeName"] == "n1"


def newer(folder: Path, name: str, old: bytes, new: bytes) -> Path:
    data = (FOLDERS[0] / name).read_bytes()
    assert old in data
    (folder / name).write_bytes(data.replace(old, new))
    return folder / name


def test_files_of_a_newer_release_are_refused_in_one_line(tmp_path: Path) -> None:
    refused = r"written by a newer kubesched \(format 2, this one reads up to 1\)"
    file = newer(tmp_path, "inbox.jsonl", b'"format":1', b'"format":2')
    with pytest.raises(SchedulerError, match=f"^inbox log: {refused}"):
        entries_of(lines_of(file))
    file = newer(tmp_path, "decisions.jsonl", b'"format":1', b'"format":2')
    with pytest.raises(SchedulerError, match=f"^{file}, line 1: {refused}"):
        list(read_log(file))
    file = newer(tmp_path, "objects.log", b"kubesched objects 1\n", b"kubesched objects 2\n")
    with pytest.raises(ConfigError, match=f"^data-dir: {file}: {refused}"):
        list(WriteAheadLog(tmp_path).read())
