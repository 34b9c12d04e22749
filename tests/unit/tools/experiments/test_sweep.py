"""Experiments: what is read, what trials there are, and that the same rows come out wherever they run."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kubesched.cli.sweep import command as sweep_command
from kubesched.errors import ConfigError, SchedulerError
from kubesched.tools.experiments import executors
from kubesched.tools.experiments.executors import run_here, run_in_processes
from kubesched.tools.experiments.experiment import Experiment, Trial, read_experiment, set_at
from kubesched.tools.experiments.results import Estimate, Results
from kubesched.tools.experiments.small_multiples import report_html
from kubesched.tools.experiments.sweep import TRIALS, sweep
from kubesched.tools.experiments.trial import Outcome

SCENARIO: dict[str, Any] = {
    "duration": 60,
    "cluster": {"nodes": [{"name": "n", "count": 2, "capacity": {"cpu": 2, "memory": "4Gi"}}]},
    "workloads": [{"name": "w", "arrivals": {"rate": 0.2}, "runs": 20, "requests": {"cpu": "1"}}],
}
EXPERIMENT: dict[str, Any] = {
    "scenarios": ["small.yaml"],
    "configurations": {"default": "default", "packing": "packing.yaml"},
    "seeds": {"start": 5, "count": 2},
    "parameters": {"scenario.cluster.nodes[0].count": [1, 2]},
    "baseline": "default",
}
PACKING = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}},
                }
            ]
        }
    ],
}


def written(folder: Path, document: dict[str, Any] = EXPERIMENT, scenario: dict[str, Any] = SCENARIO) -> Path:
    (folder / "small.yaml").write_text(yaml.safe_dump(scenario))
    (folder / "packing.yaml").write_text(yaml.safe_dump(PACKING))
    file = folder / "experiment.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def test_every_one_with_every_other_seeds_last(tmp_path: Path) -> None:
    experiment = read_experiment(written(tmp_path))
    trials = list(experiment.trials())
    assert [(t.configuration, t.parameters[0][1], t.seed) for t in trials] == [
        ("default", 1, 5), ("default", 1, 6), ("default", 2, 5), ("default", 2, 6),
        ("packing", 1, 5), ("packing", 1, 6), ("packing", 2, 5), ("packing", 2, 6),
    ]  # fmt: skip
    assert trials[0].name == "small/default/scenario.cluster.nodes[0].count=1/seed 5"


def test_the_same_rows_come_out_of_every_executor_and_order(tmp_path: Path) -> None:
    experiment = read_experiment(written(tmp_path))

    def backwards(experiment: Experiment, trials: Sequence[Trial]) -> Iterator[tuple[int, Outcome]]:
        done = list(run_here(experiment, list(reversed(trials))))
        return ((len(trials) - 1 - i, outcome) for i, outcome in done)

    here = sweep(experiment, run_here).to_csv()
    assert here == sweep(experiment, backwards).to_csv() == sweep(experiment, run_in_processes).to_csv()
    assert here.startswith("scenario,configuration,scenario.cluster.nodes[0].count,seed,")


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    experiment, asked = read_experiment(written(tmp_path)), []

    def breaks_off(experiment: Experiment, trials: Sequence[Trial]) -> Iterator[tuple[int, Outcome]]:
        for i, outcome in run_here(experiment, trials):
            asked.append(trials[i])
            if len(asked) == 3:
                raise KeyboardInterrupt
            yield i, outcome

    with pytest.raises(KeyboardInterrupt):
        sweep(experiment, breaks_off, tmp_path / "out")
    kept = tmp_path / "out" / TRIALS
    kept.write_bytes(kept.read_bytes() + b'{"experiment": "cut o')
    again = sweep(experiment, breaks_off, tmp_path / "out")
    assert len(asked) == 3 + 6, "two trials of the first run were taken over"
    assert (
        again.to_csv() == sweep(experiment, run_here).to_csv() == (tmp_path / "out" / "trials.csv").read_text(encoding="utf-8")
    )
    assert sweep(experiment, lambda *_: pytest.fail("all is done"), tmp_path / "out").rows == again.rows
    changed = read_experiment(written(tmp_path, scenario={**SCENARIO, "duration": 61}))
    assert [i for i, _ in enumerate(sweep(changed, run_here, tmp_path / "out").rows)] == list(range(8))


def test_a_trial_that_fails_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    document = {**EXPERIMENT, "parameters": {"scenario.cluster.nodes[0].count": [1, -1]}}
    results = sweep(read_experiment(written(tmp_path, document)), run_here)
    assert [row["error"] for row in results.errors] == ["cluster.nodes[0].count: must not be negative, found -1"] * 4
    assert len(results.summary("pods.placed")) == 2


@pytest.mark.parametrize("executor", [run_here, run_in_processes])
def test_a_measure_comes_along_as_a_file_and_one_that_breaks_costs_its_trial(tmp_path: Path, executor: Any) -> None:
    (tmp_path / "mine.py").write_text("def most(sim):\n    return {'most': 7 / (sim.metrics()['packing']['nodes'] - 1)}\n")
    document = {**EXPERIMENT, "seeds": [1], "measures": ["mine.py:most"]}
    results = sweep(read_experiment(written(tmp_path, document)), executor)
    assert [row["error"] for row in results.rows] == ["measure most: ZeroDivisionError: division by zero", ""] * 2
    assert [row.get("most") for row in results.rows] == [None, 7.0] * 2


@pytest.mark.parametrize(
    ("measure", "problem"),
    [
        (
            "nowhere.at:all",
            "measures: nowhere.at:all: cannot be imported: no such module; a file is named by its path, with .py",
        ),
        ("kubesched.errors:all", "measures: kubesched.errors:all: kubesched.errors has no function all"),
        ("builtins:repr", "measure repr: expected figures by name, returned str"),
    ],
)
def test_a_measure_that_is_not_there_is_named(tmp_path: Path, measure: str, problem: str) -> None:
    document = {**EXPERIMENT, "configurations": {"default": "default"}, "seeds": [1], "parameters": {}, "measures": [measure]}
    assert [row["error"] for row in sweep(read_experiment(written(tmp_path, document)), run_in_processes).rows] == [problem]


@pytest.mark.parametrize(
    ("more", "told"),
    [(("--out", "out"), "are in out, and the same command goes on there"), ((), "are lost: --out keeps them")],
)
def test_who_stops_a_sweep_is_told_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], told: str
) -> None:
    def breaks_off(experiment: Experiment, trials: Sequence[Trial]) -> Iterator[tuple[int, Outcome]]:
        yield 0, Outcome({"pods.placed": 1})
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kubesched.tools.experiments.executors.run_here", breaks_off)
    stopped = CliRunner().invoke(sweep_command, [str(written(tmp_path)), "--workers", "1", *more])
    assert f"stopped: 1 of 8 trials were done and {told}" in stopped.output


def test_a_figure_that_no_trial_has_is_named(tmp_path: Path) -> None:
    file = written(tmp_path, {**EXPERIMENT, "seeds": [1], "parameters": {}, "report": ["pods.placed", "pods.plaecd"]})
    done = CliRunner().invoke(sweep_command, [str(file), "--workers", "1"])
    assert "report: no trial has a figure pods.plaecd; pods.placed comes nearest" in str(done.exception)


def test_a_worker_that_dies_takes_no_trial_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = read_experiment(written(tmp_path, {**EXPERIMENT, "seeds": [1], "parameters": {}}))
    whole = sweep(experiment, run_here)
    monkeypatch.setattr(executors, "_begin", die_on_packing_in_child)
    results = sweep(experiment, run_in_processes)
    assert [row["error"] for row in results.rows] == ["", "its worker died 3 times"]
    assert results.rows[0] == whole.rows[0]


def die_on_packing_in_child(experiment: Experiment) -> None:
    """What a worker process begins with; a module's function, so that it is found there."""
    executors._worker = ("", _Dying(experiment))


class _Dying(executors.Worker):
    def run(self, trial: Trial) -> Outcome:
        if trial.configuration == "packing":
            os._exit(9)
        return super().run(trial)


BAD = [
    ("no file", {"scenarios": ["absent.yaml"]}, "scenarios.absent: .*absent.yaml cannot be read: No such file or directory"),
    ("an unknown field", {"scenarois": []}, "unknown field `scenarois`"),
    ("no function", {"measures": ["mine.py"]}, "measures.0.: expected module:function or FILE.py:function, found 'mine.py'"),
    ("no seeds", {"seeds": []}, "seeds: expected at least one"),
    ("a seed twice", {"seeds": [1, 1]}, "seeds: expected at least one, and each once"),
    ("a baseline that is none", {"baseline": "best"}, "baseline: 'best' is none of the configurations"),
    ("a path that begins wrongly", {"parameters": {"plugins[0]": [1]}}, "parameters.plugins.0.: expected a path"),
]


@pytest.mark.parametrize(("why", "change", "expected"), BAD, ids=[case[0] for case in BAD])
def test_a_bad_experiment_is_refused_in_one_line(tmp_path: Path, why: str, change: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected) as refused:
        read_experiment(written(tmp_path, {**EXPERIMENT, **change}))
    assert "\n" not in str(refused.value)


def test_an_experiment_in_python_takes_settings(tmp_path: Path) -> None:
    written(tmp_path)
    file = tmp_path / "e.py"
    file.write_text("def experiment(seeds, n='1'):\n    return {'scenarios': ['small.yaml'], 'seeds': {'count': int(seeds)}}\n")
    assert len(list(read_experiment(file, {"seeds": "4"}).trials())) == 4
    for settings, word in (({}, "missing a required argument: 'seeds'"), ({"seeds": "x"}, "ValueError: invalid literal")):
        with pytest.raises(ConfigError, match=word):
            read_experiment(file, settings)
    with pytest.raises(ConfigError, match="only an experiment in Python takes settings"):
        read_experiment(written(tmp_path), {"seeds": "1"})


def test_a_path_sets_what_it_leads_to() -> None:
    document: dict[str, Any] = {"profiles": [{}]}
    set_at(document, "profiles[0].plugins.score.enabled", [1])
    set_at(document, "profiles[0].name", "x")
    assert document == {"profiles": [{"plugins": {"score": {"enabled": [1]}}, "name": "x"}]}
    for path in ("profiles[2].x", "profiles.x", ""):
        with pytest.raises(ConfigError):
            set_at(document, path, 1)


def test_means_have_intervals_and_differences_are_taken_seed_by_seed() -> None:
    rows = [
        {"scenario": "s", "configuration": name, "seed": seed, "x": seed * 10 + more, "error": ""}
        for name, more in (("a", 0.0), ("b", 1.0))
        for seed in (1, 2, 3)
    ]
    results = Results(tuple(rows), (), "a")
    mean = results.summary("x")[("s", "a")]
    assert (mean.mean, mean.n) == (20.0, 3) and mean.half_width == pytest.approx(4.303 * 10 / 3**0.5)
    assert results.deltas("x") == {("s", "b"): Estimate(1.0, 0.0, 3)}
    assert results.deltas("x")[("s", "b")].is_other_than_zero and not mean.of([1.0, -1.0]).is_other_than_zero


def test_rows_go_to_other_libraries_through_arrow(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: Arrow and Parquet are not tested")
    results = Results(({"scenario": "s", "configuration": "<c>", "seed": 1, "x": 2.5, "error": ""},))
    results.to_parquet(str(tmp_path / "t.parquet"))
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table(tmp_path / "t.parquet").to_pylist() == list(results.rows)
    assert pyarrow.table(results).column("x").to_pylist() == [2.5]
    assert "<td>&lt;c&gt;</td>" in results._repr_html_()
    for library, made in (("pandas", results.to_pandas), ("polars", results.to_polars)):
        if importlib.util.find_spec(library) is not None:
            assert made().shape == (1, 5)
        else:
            with pytest.raises(SchedulerError, match=f"{library} is not installed"):
                made()


def test_a_full_disk_is_told_with_the_trial(tmp_path: Path) -> None:
    experiment = read_experiment(written(tmp_path, {**EXPERIMENT, "seeds": [1], "parameters": {}}))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / TRIALS).symlink_to("/dev/full")
    with pytest.raises(SchedulerError, match="small/default/seed 1 is done and cannot be written down: No space left"):
        sweep(experiment, run_here, tmp_path / "out")


def test_small_multiples_share_a_scale_say_what_is_certain_and_escape_names() -> None:
    rows = [
        {"scenario": "s<1>", "configuration": name, "ties": ties, "seed": seed, "left": level + seed / 10, "error": ""}
        for name, level in (("base", 10.0), ("better", 4.0))
        for ties in ("name", "chance")
        for seed in range(3)
    ]
    results = Results((*rows, {**rows[0], "seed": 9, "left": None, "error": "no <nodes>"}), ("ties",), "base")
    page = report_html("a & b", results, ["left", "absent"])
    assert page.count("<svg") == 4 and "<script" not in page
    assert "s&lt;1&gt; · ties name" in page and "no &lt;nodes&gt;" in page and "<h1>a &amp; b</h1>" in page
    assert page.count("4.1 ± 0.248 (-6)</text>") == 2  # paired: what the seeds have in common falls out
    assert page.count(">3.852</text>") == page.count(">10.35</text>") == 2
    assert report_html("a & b", results, ["left", "absent"]) == page


def test_the_job_for_kuberay_calls_sweep_as_it_is() -> None:
    job = yaml.safe_load((Path(__file__).parents[4] / "docs" / "examples" / "kuberay-sweep.yaml").read_text(encoding="utf-8"))
    program, command, *arguments = job["spec"]["entrypoint"].split()
    assert (program, command) == ("kubesched", "sweep")
    arguments = [text.replace("/experiment", str(Path(__file__).parents[4] / "docs" / "examples")) for text in arguments]
    given = sweep_command.make_context("sweep", arguments).params
    assert given["where"] == "ray" and given["experiment"].is_file()
