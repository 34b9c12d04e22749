"""`kubesched sweep`: many simulations, and a table of what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.layout import print_table, say
from kubesched.cli.options import FILE, FOLDER, NEW_FILE, Options, option, output_option, takes
from kubesched.cli.printing import bar, print_document, write_file
from kubesched.errors import SchedulerError

if TYPE_CHECKING:
    from kubesched.tools.experiments.experiment import Experiment
    from kubesched.tools.experiments.results import Results
    from kubesched.tools.experiments.sweep import Executor

_MOST_ERRORS = 5


class ExecutorOptions(Options):
    """Where trials run."""

    where: str = option("--on", default="processes", help="processes, ray, or ray://HOST:PORT of a cluster.", show_default=True)
    workers: int | None = option(
        "--workers", type=click.IntRange(1), help="How many processes. Default: one a core. 1: no other process."
    )

    def executor(self) -> Executor:
        """Return what runs the trials."""
        from kubesched.tools.experiments import executors

        if self.where == "processes":
            return executors.run_here if self.workers == 1 else partial(executors.run_in_processes, workers=self.workers or 0)
        if self.where == "ray" or self.where.startswith("ray://"):
            if self.workers is not None:
                raise click.UsageError("--workers is for processes: Ray knows its own machines")
            return partial(executors.run_on_ray, address="" if self.where == "ray" else self.where)
        raise click.UsageError(f"--on takes processes, ray or ray://HOST:PORT, found {self.where!r}")


settings_option = click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="An argument of an experiment in Python."
)


def read_experiment_with(file: Path, settings: tuple[str, ...]) -> Experiment:
    """Read an experiment, with the values of --set."""
    from kubesched.tools.experiments.experiment import read_experiment

    for text in settings:
        if "=" not in text:
            raise click.UsageError(f"--set takes NAME=VALUE, found {text!r}")
    return read_experiment(file, dict(text.split("=", 1) for text in settings))


@click.command("sweep", epilog="Example:  kubesched sweep docs/examples/packing-sweep.yaml --out results")
@click.argument("experiment", type=FILE)
@click.option("--out", "folder", type=FOLDER, help="Folder that keeps the trials; a later run continues from it.")
@takes(runs=ExecutorOptions)
@click.option("--html", "html_file", type=NEW_FILE, help="Write the report as one HTML file as well.")
@settings_option
@output_option
def command(
    experiment: Path, folder: Path | None, runs: ExecutorOptions, html_file: Path | None, settings: tuple[str, ...], output: str
) -> None:
    """Run each scenario of EXPERIMENT with each configuration, parameter and seed, and print the figures.

    EXPERIMENT is a YAML file, or a Python file with a function `experiment` (docs/how-to/experiments.md). The same experiment
    gives the same rows, wherever its trials run.
    """
    from kubesched.tools.experiments.documents import document_of_sweep, figures_of
    from kubesched.tools.experiments.small_multiples import report_html
    from kubesched.tools.experiments.sweep import sweep

    read = read_experiment_with(experiment, settings)
    total = sum(1 for _ in read.trials())
    n_done = 0

    def progress(n: int, _: int) -> None:
        nonlocal n_done
        n_done = n
        done(n)

    try:
        with bar(f"{experiment.name}, trials", total) as done:
            results = sweep(read, runs.executor(), folder, progress)
    except KeyboardInterrupt:
        kept = f"are in {folder}, and the same command goes on there" if folder is not None else "are lost: --out keeps them"
        click.echo(f"stopped: {n_done} of {total} trials were done and {kept}", err=True)
        raise
    figures = figures_of(read)
    if html_file is not None:
        write_file(html_file, report_html(read.file.name or experiment.stem, results, figures))
    if output == "table":
        _print(results, figures, read.file.baseline)
    else:
        print_document(document_of_sweep(results, read), output)
    for row in results.errors[:_MOST_ERRORS]:
        click.echo(f"Error: trial {'/'.join(results.group(row))}/seed {row['seed']}: {row['error']}", err=True)
    if results.errors:
        raise SchedulerError(f"{len(results.errors)} of {total} trials failed")
    for name in read.file.report:
        if not any(name in row for row in results.rows):
            known = get_close_matches(name, {key for row in results.rows for key in row}, 1, 0)
            raise SchedulerError(f"{experiment}: report: no trial has a figure {name}; {known[0]} comes nearest")


def _print(results: Results, figures: Sequence[str], baseline: str) -> None:
    """Print means with their 95 % intervals, a row a group, and whether they differ from the baseline."""
    summaries = {name: results.summary(name) for name in figures}
    deltas = {name: results.deltas(name) for name in figures} if baseline else {}
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
    if baseline:
        say(f"± is a 95 % interval over seeds; in brackets, where it is certain, the difference from {baseline}, seed by seed")
