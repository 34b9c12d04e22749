"""`kubesched bench perf`: what is listed and chosen; the runs themselves are in e2e."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubesched.cli import cli
from kubesched.errors import ConfigError, SchedulerError

CASES = """
- name: Small
  workloadTemplate:
  - {opcode: createPods, countParam: $pods, collectMetrics: true}
  workloads:
  - {name: runs, labels: [performance, short], params: {pods: 3}, threshold: 1200}
  - {name: cannot, params: {pods: 3}, featureGates: {PodSchedulingReadiness: false}}
- name: Other
  workloadTemplate: [{opcode: teleport}]
  workloads: [{name: never}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "performance-config.yaml").write_text(CASES)
    return str(tmp_path)


def perf(*words: str) -> str:
    result = CliRunner().invoke(cli, ["bench", "perf", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_list_has_all_workloads_and_says_why_some_cannot_run(folder: str) -> None:
    lines = perf(folder, "--list").splitlines()
    assert [line.split()[:4] for line in lines[1:]] == [
        ["Small", "runs", "performance,short", "1,200"],
        ["Small", "cannot", "-", "-"],
        ["Other", "never", "-", "-"],
    ]
    assert lines[1].endswith("1,200") and lines[3].endswith("operation 0: the opcode 'teleport' is not known")


def test_the_list_as_json_and_chosen(folder: str) -> None:
    (row,) = json.loads(perf(folder, "--list", "--case", "S*", "--workload", "cannot", "-o", "json"))
    assert row["error"] == "cannot set feature gate PodSchedulingReadiness to false, feature is locked to true"
    (row,) = json.loads(
        perf(folder, "--list", "--workload", "cannot", "--feature-gates", "PodSchedulingReadiness=true", "-o", "json")
    )
    assert row == {"case": "Small", "workload": "cannot", "labels": [], "threshold": None, "error": None}
    assert perf(folder, "--list", "--labels", "short", "-o", "yaml").startswith("- case: Small\n  workload: runs\n")


def test_a_workload_that_cannot_run_is_a_row_and_a_failure(folder: str) -> None:
    result = CliRunner().invoke(cli, ["bench", "perf", folder, "--case", "Other", "-o", "json"])
    assert isinstance(result.exception, SchedulerError)
    assert str(result.exception) == "1 of 1 workloads did not run to their end"
    (row,) = json.loads(result.stdout)
    assert (row["throughput"], row["error"]) == (None, "operation 0: the opcode 'teleport' is not known")


def test_choosing_nothing_is_an_error(folder: str, tmp_path: Path) -> None:
    with pytest.raises(SchedulerError, match="no workload is chosen by --labels 'nightly', --case and --workload; see --list"):
        perf(folder, "--labels", "nightly")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"there is no performance-config\.yaml in this folder or below"):
        perf(str(tmp_path / "empty"))
