"""`kubesched snapshot`: from a file to a file, with names and without."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from kubesched.cli.snapshot import command as snapshot_command
from kubesched.testing import node, pod
from kubesched.tools.plan.cluster_files import read_cluster_file
from kubesched.tools.snapshots.captured import Captured


def run(tmp_path: Path, *words: str) -> Result:
    source = tmp_path / "source.jsonl"
    source.write_bytes(b"".join(Captured(7.5, [node("db-host"), pod("web", namespace="shop", on="db-host")], 3).lines()))
    return CliRunner().invoke(snapshot_command, [*words, "--snapshot", str(source)])


def test_names_are_hidden_and_written_down_elsewhere(tmp_path: Path) -> None:
    target, names = tmp_path / "hidden.jsonl.gz", tmp_path / "names.json"
    result = run(tmp_path, str(target), "--hide-names", "--names", str(names))
    assert result.output == f"2 objects written to {target}, names hidden\n"
    found = read_cluster_file(target)
    assert [obj.key for obj in found.objects] == ["node-1", "ns-1/pod-1"]
    assert (found.at, found.seed) == (7.5, 3)
    assert json.loads(names.read_text(encoding="utf-8"))["web"] == "pod-1"


def test_without_being_asked_nothing_is_hidden(tmp_path: Path) -> None:
    target = tmp_path / "plain.jsonl"
    assert run(tmp_path, str(target)).output == f"2 objects written to {target}\n"
    assert target.read_bytes() == (tmp_path / "source.jsonl").read_bytes()
    assert run(tmp_path, str(target), "--names", str(tmp_path / "names")).exit_code == 2


@pytest.mark.parametrize("words", [(), ("--hide-names", "--names", "names")], ids=["plain", "hidden"])
def test_only_the_owner_may_read_what_is_written(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written = [Path("target"), *(Path("names") for _ in words[:1])]
    for file in written:
        file.write_text("before, and much longer than what comes now" * 1000)
        file.chmod(0o644)
    assert run(tmp_path, "target", *words).exit_code == 0
    assert [oct(file.stat().st_mode & 0o777) for file in written] == ["0o600"] * len(written)
    assert not any("before" in file.read_text(encoding="utf-8") for file in written)


def test_what_kubectl_applied_is_left_out(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"env": "password"}', "kept": "yes"}
    objects = [
        msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, annotations=applied))
        for obj in (node("a"), pod("p"))
    ]
    source.write_bytes(b"".join(Captured(7.5, objects).lines()))
    assert CliRunner().invoke(snapshot_command, [str(target), "--snapshot", str(source)]).exit_code == 0
    assert b"password" not in target.read_bytes()
    assert [obj.metadata.annotations for obj in read_cluster_file(target).objects] == [{"kept": "yes"}] * 2
