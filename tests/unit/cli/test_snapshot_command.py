"""`kubesched snapshot`: from a file to a file, with names and without."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from kubesched.cli.commands.snapshot import command as snapshot_command
from kubesched.cli.sources import read_lines
from kubesched.simulator.captured import Captured, read_captured
from kubesched.testing import node, pod


def run(tmp_path: Path, *words: str) -> Result:
    source = tmp_path / "source.jsonl"
    source.write_bytes(b"".join(Captured(7.5, [node("db-host"), pod("web", namespace="shop", on="db-host")], 3).lines()))
    return CliRunner().invoke(snapshot_command, [*words, "--snapshot", str(source)])


def test_names_are_hidden_and_written_down_elsewhere(tmp_path: Path) -> None:
    target, names = tmp_path / "hidden.jsonl.gz", tmp_path / "names.json"
    result = run(tmp_path, str(target), "--hide-names", "--names", str(names))
    assert result.output == f"2 objects written to {target}, names hidden\n"
    found = read_captured(read_lines(target))
    assert [obj.key for obj in found.objects] == ["node-1", "ns-1/pod-1"]
    assert (found.at, found.seed) == (7.5, 3)
    assert json.loads(names.read_text())["web"] == "pod-1"


def test_without_being_asked_nothing_is_hidden(tmp_path: Path) -> None:
    target = tmp_path / "plain.jsonl"
    assert run(tmp_path, str(target)).output == f"2 objects written to {target}\n"
    assert target.read_bytes() == (tmp_path / "source.jsonl").read_bytes()
    assert run(tmp_path, str(target), "--names", str(tmp_path / "names")).exit_code == 2
