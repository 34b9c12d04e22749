"""Tuning: what is searched, and that only what holds out is recommended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kubesched.cli import cli
from kubesched.errors import ConfigError
from kubesched.tools.experiments.executors import run_here
from kubesched.tools.experiments.experiment import read_experiment
from kubesched.tools.experiments.tune import tune

pytest.importorskip("optuna", reason="optuna is not installed: tuning is not tested")

SCENARIO: dict[str, Any] = {
    "duration": 120,
    "cluster": {"nodes": [{"name": "n", "count": 6, "capacity": {"cpu": 4, "memory": "8Gi"}}]},
    "workloads": [{"name": "w", "arrivals": {"rate": 0.2}, "runs": 30, "requests": {"cpu": "1", "memory": "2Gi"}}],
}
STRATEGY = "configuration.profiles[0].pluginConfig[0]"


def fit(kind: str) -> dict[str, Any]:
    resources = [{"name": "cpu", "weight": 1}]
    return {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": kind, "resources": resources}}}


def written(folder: Path, search: dict[str, Any], **more: Any) -> Path:
    (folder / "small.yaml").write_text(yaml.safe_dump(SCENARIO))
    section = {
        "candidates": 4,
        "search": search,
        "objectives": [{"figure": "packing.nodesUsed.mean", "goal": "min"}],
        "holdOutSeeds": {"start": 100, "count": 4},
        **more,
    }
    (folder / "e.yaml").write_text(yaml.safe_dump({"scenarios": ["small.yaml"], "seeds": {"count": 2}, "tune": section}))
    return folder / "e.yaml"


def test_packing_is_found_and_holds_out(tmp_path: Path) -> None:
    file = written(tmp_path, {STRATEGY: {"choices": [fit("LeastAllocated"), fit("MostAllocated")]}})
    experiment = read_experiment(file)
    found = tune(experiment, run_here, batch=2)
    assert dict(found.candidate)[STRATEGY] == fit("MostAllocated") and found.holds_out
    assert found.held_out["packing.nodesUsed.mean"].mean < 0
    assert found == tune(experiment, run_here, batch=2), "the same seed tries the same candidates"
    ran = CliRunner().invoke(cli, ["tune", str(file), "--workers", "1"])
    document = yaml.safe_load(ran.stdout)
    assert ran.exit_code == 0 and document["profiles"][0]["pluginConfig"] == [fit("MostAllocated")]


def test_what_changes_nothing_is_not_recommended(tmp_path: Path) -> None:
    file = written(tmp_path, {"weights.ImageLocality": {"low": 1, "high": 3}})
    assert not tune(read_experiment(file), run_here).holds_out
    ran = CliRunner().invoke(cli, ["tune", str(file), "--workers", "1"])
    assert ran.exit_code == 1 and "profiles" not in ran.stdout
    assert "does not hold out" in str(ran.exception)


def test_several_objectives_have_a_front(tmp_path: Path) -> None:
    goals = [{"figure": "packing.nodesUsed.mean"}, {"figure": "spread.maxSkew.peak"}]
    search = {"weights.NodeResourcesFit": {"low": 0, "high": 4}, STRATEGY: {"choices": [fit("MostAllocated")]}}
    found = tune(read_experiment(written(tmp_path, search, objectives=goals, pareto=True)), run_here)
    assert found.front and all(set(figures) == {goal["figure"] for goal in goals} for _, figures in found.front)


BAD = [
    ("nothing to search", {}, {}, "tune: expected something to search"),
    ("a path that begins wrongly", {"weight.X": {"low": 0, "high": 1}}, {}, "expected a path that begins with"),
    ("the wrong way round", {"weights.X": {"low": 2, "high": 1}}, {}, "the lower one first"),
    ("both", {"weights.X": {"low": 0, "high": 1, "choices": [1]}}, {}, "either low and high, or choices"),
    ("one seed held out", {"weights.X": {"low": 0, "high": 1}}, {"holdOutSeeds": [7]}, "expected at least two"),
    ("nothing to train on", {"weights.X": {"low": 0, "high": 1}}, {"holdOut": ["small"]}, "nothing is left to train on"),
]


@pytest.mark.parametrize(("why", "search", "more", "expected"), BAD, ids=[case[0] for case in BAD])
def test_a_bad_section_is_refused(
    tmp_path: Path, why: str, search: dict[str, Any], more: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        read_experiment(written(tmp_path, search, **more))


def test_what_is_judged_on_must_not_be_what_was_trained_on(tmp_path: Path) -> None:
    file = written(tmp_path, {"weights.ImageLocality": {"low": 1, "high": 2}}, holdOutSeeds=[0, 9])
    with pytest.raises(ConfigError, match="must differ from the seeds"):
        tune(read_experiment(file), run_here)


def test_a_figure_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = written(tmp_path, {"weights.ImageLocality": {"low": 1, "high": 2}}, objectives=[{"figure": "nodes.used"}])
    with pytest.raises(ConfigError, match="is no figure"):
        tune(read_experiment(file), run_here)
