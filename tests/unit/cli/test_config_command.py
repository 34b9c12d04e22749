"""`kubesched config check` and `config show`, as a user meets them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from kubesched.cli.config import config_group
from kubesched.errors import ConfigError

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scheduler.yaml"
    path.write_text(HEAD + "profiles: [{schedulerName: a}, {schedulerName: b}]\n")
    return path


def test_a_good_file_is_said_to_be_good(file: Path) -> None:
    result = CliRunner().invoke(config_group, ["check", str(file)])
    assert (result.exit_code, result.output) == (0, f"{file}: valid, profiles: a, b\n")


def test_a_bad_file_is_named_with_the_references_error(file: Path) -> None:
    file.write_text(HEAD + "parallelism: 0\n")
    result = CliRunner().invoke(config_group, ["check", str(file)])
    assert result.exit_code == 1
    assert isinstance(result.exception, ConfigError)
    rule = "parallelism: Invalid value: 0: should be an integer value greater than zero"
    assert str(result.exception) == f"{file}: {rule}"


def test_a_missing_file_is_named_once() -> None:
    result = CliRunner().invoke(config_group, ["show", "/nowhere.yaml"])
    assert str(result.exception) == "open /nowhere.yaml: no such file or directory"


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_the_effective_document_is_shown(output: str) -> None:
    golden = Path(__file__).parents[2] / "conformance" / "config.jsonl.gz"
    with gzip.open(golden, "rt") as lines:
        case = next(case for case in map(json.loads, lines) if case["name"] == "ext-managed")
    result = CliRunner().invoke(config_group, ["show", "-", "-o", output], input=json.dumps(case["config"]))
    assert result.exit_code == 0
    shown = json.loads(result.output) if output == "json" else yaml.safe_load(result.output)
    del shown["clientConnection"]["kubeconfig"]
    assert shown == case["effective"]


def test_gates_change_what_is_shown() -> None:
    words = ["show", "-", "--feature-gates", "StorageCapacityScoring=true", "-o", "json"]
    result = CliRunner().invoke(config_group, words, input=HEAD)
    entries = {entry["name"]: entry["args"] for entry in json.loads(result.output)["profiles"][0]["pluginConfig"]}
    assert entries["VolumeBinding"]["shape"] == [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]


def test_wrong_usage_has_its_own_exit_code() -> None:
    assert CliRunner().invoke(config_group, ["show"]).exit_code == 2
    assert CliRunner().invoke(config_group, ["show", "x", "-o", "table"]).exit_code == 2


@pytest.mark.parametrize("words", [["--help"], ["check", "--help"], ["show", "--help"]])
def test_help_has_an_example(words: list[str]) -> None:
    result = CliRunner().invoke(config_group, words)
    assert "Example:  kubesched config" in result.output
