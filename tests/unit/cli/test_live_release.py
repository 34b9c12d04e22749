"""A live cluster is judged, explained and planned for by the gates of its own release, not of the newest that we know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubesched.cli import cli
from kubesched.errors import SchedulerError
from kubesched.tools.snapshots import sources
from kubesched.tools.snapshots.sources import Policy, live_release

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: main, image: app}]}\n"
COMMANDS = (
    ["why"],
    ["plan", "-f", "pod.yaml"],
    ["capacity", "-f", "pod.yaml"],
    ["rebalance", "--goal=fewer-nodes"],
    ["shadow"],
)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    file = tmp_path / "kubeconfig"
    server = "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]"
    file.write_text(f"current-context: c\n{server}\ncontexts: [{{name: c, context: {{cluster: c}}}}]\n")
    (tmp_path / "pod.yaml").write_text(POD)
    return file


@pytest.mark.parametrize("words", COMMANDS, ids=[words[0] for words in COMMANDS])
def test_commands_decide_as_the_release_of_the_cluster(
    words: list[str], kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def read(config_file: object, gates: object, plugins: object, release: object) -> Policy:
        asked.append(release)
        raise SchedulerError("enough")

    monkeypatch.setattr(sources, "release_of", lambda source: (1, 36))
    monkeypatch.setattr(Policy, "for_dry_run", read)
    monkeypatch.chdir(kubeconfig.parent)
    CliRunner().invoke(cli, [*words, f"--kubeconfig={kubeconfig}"])
    assert asked == [(1, 36)]


def test_a_server_that_is_away_says_no_release(kubeconfig: Path) -> None:
    assert live_release(str(kubeconfig), "") is None


def test_gates_are_those_of_the_release() -> None:
    assert not Policy.read(None, (), (), release=(1, 36)).gates.is_enabled("StorageCapacityScoring")
    assert Policy.read(None, (), (), release=(1, 37)).gates.is_enabled("StorageCapacityScoring")
    assert Policy.read(None, (), ()).gates.emulated == (1, 37)
