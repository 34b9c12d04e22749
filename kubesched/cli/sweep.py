"""`kubesched sweep`: many simulations, and a table of what came of them."""

from __future__ import annotations

from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import click

from kubesched.cli.html_report import write_text
from kubesched.cli.layout import print_table, say
from kubesched.cli.printing import bar, print_document
from kubesched.errors import SchedulerError
from kubesched.tools.experiments.executors import run_here, run_in_processes, run_on_ray
from kubesched.tools.experiments.experiment import Experiment, read_experiment
from kubesched.tools.experiments.results import Estimate, Group, Results
from kubesched.tools.experiments.small_multiples import report_html
from kubesched.tools.experiments.sweep import Executor, sweep

_FIGURES = ("pods.placed", "pods.pending", "timeToPlacement.p99", "utilisation.cpu.mean", "packing.nodesUsed.mean")
_MOST_ERRORS = 5


def run_sweep(
    experiment: Path,
    folder: Path | None,
    where: str,
    workers: int | None,
    html_file: Path | None,
    settings: tuple[str, ...],
    output: str,
) -> None:
    read = read_experiment(experiment, parse_settings(settings))
    total = sum(1 for _ in read.trials())
    n_done = 0

    def progress(n: int, _: int) -> None:
        nonlocal n_done
        n_done = n
        done(n)

    try:
        with bar(f"{experiment.name}, trials", total) as done:
            results = sweep(read, executor(where, workers), folder, progress)
    except KeyboardInterrupt:
        kept = f"are in {folder}, and the same command goes on there" if folder is not None else "are lost: --out keeps them"
        click.echo(f"stopped: {n_done} of {total} trials were done and {kept}", err=True)
        raise
    if html_file is not None:
        write_text(html_file, report_html(read.file.name or experiment.stem, results, read.file.report or _FIGURES))
    if output == "table":
        print_results(results, read)
    else:
        print_document(document_of(results, read), output)
    for row in results.errors[:_MOST_ERRORS]:
        click.echo(f"Error: trial {'/'.join(results.group(row))}/seed {row['seed']}: {row['error']}", err=True)
    if results.errors:
        raise SchedulerError(f"{len(results.errors)} of {total} trials failed")
    for name in read.file.report:
        if not any(name in row for row in results.rows):
            known = get_close_matches(name, {key for row in results.rows for key in row}, 1, 0)
            raise SchedulerError(f"{experiment}: report: no trial has a figure {name}; {known[0]} comes nearest")


def parse_settings(settings: tuple[str, ...]) -> dict[str, str]:
    """Return NAME=VALUE options by name."""
    for text in settings:
        if "=" not in text:
            raise click.UsageError(f"--set takes NAME=VALUE, found {text!r}")
    return dict(text.split("=", 1) for text in settings)


def executor(where: str, workers: int | None) -> Executor:
    """Return what runs the trials."""
    if where == "processes":
        return run_here if workers == 1 else partial(run_in_processes, workers=workers or 0)
    if where == "ray" or where.startswith("ray://"):
        if workers is not None:
            raise click.UsageError("--workers is for processes: Ray knows its own machines")
        return partial(run_on_ray, address="" if where == "ray" else where)
    raise click.UsageError(f"--on takes processes, ray or ray://HOST:PORT, found {where!r}")


def document_of(results: Results, experiment: Experiment) -> dict[str, Any]:
    """Return all rows, and the means and differences of the figures that the experiment reports."""

    def told(found: dict[Group, Estimate]) -> list[dict[str, Any]]:
        return [{"group": list(group), "mean": e.mean, "halfWidth95": e.half_width, "n": e.n} for group, e in found.items()]

    figures = experiment.file.report or _FIGURES
    return {
        "name": experiment.file.name,
        "trials": len(results.rows),
        "failed": len(results.errors),
        "summary": {name: told(results.summary(name)) for name in figures},
        "deltas": {name: told(results.deltas(name)) for name in figures} if experiment.file.baseline else {},
        "rows": list(results.rows),
    }


def print_results(results: Results, experiment: Experiment) -> None:
    """Print means with their 95 % intervals, a row a group, and whether they differ from the baseline."""
    figures = experiment.file.report or _FIGURES
    summaries = {name: results.summary(name) for name in figures}
    deltas = {name: results.deltas(name) for name in figures} if experiment.file.baseline else {}
    titles = ["scenario", "configuration", *(path.rpartition(".")[2] for path in results.parameters), *figures]
    rows = []
    for group in results.groups():
        cells = []
        for name in figures:
            text = str(summaries[name].get(group, "-"))
            delta = deltas.get(name, {}).get(group)
            if delta is not None and delta.is_other_than_zero:
                text += f" ({delta.mean:+.3g})"
            cells.append(text)
        rows.append([*group, *cells])
    print_table(titles, rows, right=range(len(titles) - len(figures), len(titles)))
    if experiment.file.baseline:
        say(
            "± is a 95 % interval over seeds; in brackets, where it is certain, the difference from "
            f"{experiment.file.baseline}, seed by seed"
        )
