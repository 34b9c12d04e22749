"""The kubectl plugin: what kubectl calls it by, what it completes, and what krew would make of it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kubesched.cli import kubectl_plugin
from kubesched.errors import SchedulerError
from kubesched.kube.client import SchedulerAddress
from kubesched.testing import node, pod
from kubesched.tools.snapshots.captured import Captured

ROOT = Path(__file__).resolve().parents[2]
KUBECTL = shutil.which("kubectl")
VALIDATOR = shutil.which("validate-krew-manifest")
"""krew's own, of cmd/validate-krew-manifest in its repository."""


def krew_complaints(plugin: dict[str, Any]) -> list[str]:
    """Return what `kubectl krew` would refuse a manifest for, and what its index asks for besides."""
    found = []
    spec, name = plugin.get("spec") or {}, (plugin.get("metadata") or {}).get("name", "")
    if plugin.get("apiVersion") != "krew.googlecontainertools.github.com/v1alpha2" or plugin.get("kind") != "Plugin":
        found.append("apiVersion or kind")
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name) or name.startswith(("kubectl", "kube-")):
        found.append("metadata.name")
    if not re.fullmatch(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", spec.get("version", "")):
        found.append("spec.version")
    short = spec.get("shortDescription", "")
    if not short or len(short) > 50 or "\n" in short or short.endswith("."):
        found.append("spec.shortDescription")
    if not spec.get("platforms"):
        found.append("spec.platforms")
    for i, each in enumerate(spec.get("platforms") or []):
        where, labels = f"spec.platforms[{i}]", (each.get("selector") or {}).get("matchLabels") or {}
        if not labels or not labels.keys() <= {"os", "arch"}:
            found.append(f"{where}.selector")
        for before in spec["platforms"][:i]:
            others = (before.get("selector") or {}).get("matchLabels") or {}
            if all(labels.get(key, value) == value for key, value in others.items()):
                found.append(f"{where}.selector: another one selects the same")
        if not re.fullmatch(r"https://\S+\.(tar\.gz|zip)", each.get("uri", "")):
            found.append(f"{where}.uri")
        if not re.fullmatch(r"[0-9a-f]{64}", each.get("sha256", "")):
            found.append(f"{where}.sha256")
        if not each.get("bin") or each["bin"].startswith("/") or ".." in each["bin"]:
            found.append(f"{where}.bin")
        files = each.get("files")
        if files is not None and not (files and all(file.get("from") and file.get("to") for file in files)):
            found.append(f"{where}.files")
        if files and "LICENSE" not in {file["from"] for file in files}:
            found.append(f"{where}.files: no licence")
    return found


@pytest.fixture
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("build_kubectl_plugin", ROOT / "tools" / "build_kubectl_plugin.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_archive_its_checksum_and_a_manifest_that_krew_takes(
    tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def run(words: list[str], check: bool) -> None:
        ran.append(words)
        if "-o" in words:
            Path(words[words.index("-o") + 1]).write_text("program", encoding="utf-8")
        if "--no-deps" in words:
            metadata = Path(words[words.index("--target") + 1]) / "kubesched-1.2.3.dist-info" / "METADATA"
            metadata.parent.mkdir()
            metadata.write_text("Metadata-Version: 2.4\nName: kubesched\nVersion: 1.2.3\n")

    monkeypatch.setattr(tool.subprocess, "run", run)
    document = yaml.safe_load(tool.build(tmp_path, "https://example.org/x").read_text(encoding="utf-8"))
    assert krew_complaints(document) == []
    (platform,) = document["spec"]["platforms"]
    archive = tmp_path / platform["uri"].rpartition("/")[2]
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == platform["sha256"]
    assert Path(f"{archive}.sha256").read_text(encoding="utf-8") == f"{platform['sha256']}  {archive.name}\n"
    with tarfile.open(archive) as packed:
        assert sorted(packed.getnames()) == sorted(file["from"] for file in platform["files"])
        assert packed.getmember(platform["bin"]).mode & 0o111
    assert ran[-1] == [str(tmp_path / platform["bin"]), "--version"]  # what was built is run
    assert "--require-hashes" in ran[0] and "--no-deps" in ran[1] and "--no-build-isolation" in ran[1]  # all of it is locked
    assert archive.name.startswith("kubesched-plugin_1.2.3_") and document["spec"]["version"] == "v1.2.3"
    first = archive.read_bytes()
    os.utime(tmp_path / platform["bin"], (0, 0))
    tool.build(tmp_path, "https://example.org/x")
    assert archive.read_bytes() == first


@pytest.mark.parametrize(
    ("release", "semver"),
    [
        ("1.2.3", "1.2.3"),
        ("1.2.0rc1", "1.2.0-rc.1"),
        ("0.0.1.dev431+g68a63538b", "0.0.1-dev.431"),
    ],
)
def test_a_manifest_has_a_version_by_semver(tool: Any, release: str, semver: str) -> None:
    made = tool.manifest({("linux", "amd64"): ("a.tar.gz", "0" * 64)}, release, "https://h", "3.11")
    assert (made["spec"]["version"], krew_complaints(made)) == (f"v{semver}", [])


@pytest.mark.parametrize("platforms", [("linux",), ("linux", "darwin"), ("linux", "")], ids=["one", "two", "one that has both"])
@pytest.mark.skipif(VALIDATOR is None, reason="there is no validate-krew-manifest in the PATH")
def test_krews_own_check_says_the_same(tool: Any, tmp_path: Path, platforms: tuple[str, ...]) -> None:
    archives = {(system, "amd64"): ("a.tar.gz", "0" * 64) for system in platforms}
    made = tool.manifest(archives, "0.1.0", "https://h", "3.11")
    for each in made["spec"]["platforms"]:
        labels = each["selector"]["matchLabels"]
        each["selector"]["matchLabels"] = {key: value for key, value in labels.items() if value}
    file = tmp_path / "kubesched.yaml"
    file.write_text(yaml.safe_dump(made))
    done = subprocess.run([str(VALIDATOR), "-skip-install", "-manifest", str(file)], capture_output=True, check=False)
    assert (done.returncode == 0) is (krew_complaints(made) == []) is ("" not in platforms), done.stderr


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"apiVersion": "v1"}, "apiVersion or kind"),
        ({"metadata": {"name": "kubectl-x"}}, "metadata.name"),
        ({"spec": {"version": "1.0"}}, "spec.version"),
        ({"spec": {"platforms": [{"sha256": "x"}]}}, "spec.platforms[0].sha256"),
        ({"spec": {"platforms": 2 * [{}]}}, "spec.platforms[1].selector: another one selects the same"),
    ],
)
def test_the_check_of_manifests_finds_what_is_wrong(tool: Any, change: dict[str, Any], complaint: str) -> None:
    made = tool.manifest({("linux", "amd64"): ("a.tar.gz", "0" * 64)}, "0.1.0", "https://h", "3.11")
    assert krew_complaints(made) == []
    assert complaint in krew_complaints({**made, **change})


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("/usr/bin/kubectl-kubesched", []),
        ("kubectl-kubesched_why", ["why"]),
        ("/x/kubectl-kubesched-plan", ["plan"]),
        ("kubectl-kubesched.exe", []),
        ("C/kubectl-kubesched_capacity.exe", ["capacity"]),
    ],
)
def test_a_name_stands_for_a_command(program: str, command: list[str]) -> None:
    assert kubectl_plugin.command_of(program) == command


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["w"], ["why\tExplain why a pod is pending, or why it is on its node.", ":4"]),
        (["why", "-o", "ya"], ["yaml", ":4"]),
        (["plan", "--snapshot", ""], [":0"]),
        (["nothing"], [":4"]),
    ],
)
def test_completion_speaks_as_kubectl_listens(words: list[str], expected: list[str]) -> None:
    assert kubectl_plugin.completions(words) == expected


def test_completion_of_nothing_is_every_command() -> None:
    assert [line.partition("\t")[0] for line in kubectl_plugin.completions([])] == [*kubectl_plugin.COMMANDS, ":4"]


def test_nothing_is_offered_that_writes_to_a_cluster() -> None:
    assert not {"run", "rebalance", "apiserver", "demo", "bench", "conformance"} & set(kubectl_plugin.COMMANDS)
    for name in kubectl_plugin.COMMANDS:
        told = CliRunner().invoke(kubectl_plugin.cli, [name, "--help"])
        assert told.exit_code == 0 and "--apply" not in told.output


@pytest.mark.skipif(KUBECTL is None, reason="no kubectl on the path (Debian: kubernetes-client)")
def test_kubectl_finds_and_runs_it(tmp_path: Path) -> None:
    code = "from kubesched.cli.kubectl_plugin import main; import sys; sys.argv[0] = {name!r}; main()"
    for name in ("kubectl-kubesched", "kubectl-kubesched_why"):
        file = tmp_path / name
        file.write_text(f"#!{sys.executable}\n{code.format(name=name)}\n")
        file.chmod(0o755)
    snapshot = tmp_path / "c.jsonl"
    snapshot.write_bytes(b"".join(Captured(5.0, [node("n"), pod("big", requests={"cpu": "9"})]).lines()))
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    for words in (["kubesched", "why"], ["kubesched-why"]):
        asked = [str(KUBECTL), *words, "big", "--snapshot", str(snapshot)]
        done = subprocess.run(asked, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0 and "Insufficient cpu" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "is_asked"),
    [(["why", "team/web"], True), (["why", "deploy/web"], False), (["why", "team/web", "--snapshot", "none.json"], False)],
)
def test_an_observer_that_the_environment_names_is_asked_what_it_can_answer(
    words: list[str], is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask(address: SchedulerAddress, namespace: str, name: str, top: int) -> dict[str, Any]:
        asked.append(f"{address.url} {address.token} {address.verify} {namespace}/{name}")
        raise SchedulerError("enough")

    monkeypatch.setattr("kubesched.tools.why.story.story_of_scheduler", ask)
    monkeypatch.setenv("KUBESCHED_SERVER", "https://localhost:10272")
    monkeypatch.setenv("KUBESCHED_TOKEN", "me")
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    with pytest.raises((SystemExit, SchedulerError)):
        kubectl_plugin.cli(words, default_map=kubectl_plugin.observer_options())
    assert asked == (["https://localhost:10272 me False team/web"] if is_asked else [])
