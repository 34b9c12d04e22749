"""`kubesched tune`: the best weights and arguments for an objective, if they hold on what they were not trained on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubesched.cli.options import FILE, output_option, takes
from kubesched.cli.printing import bar, print_document
from kubesched.cli.sweep import ExecutorOptions, read_experiment_with, settings_option
from kubesched.errors import SchedulerError

if TYPE_CHECKING:
    from kubesched.tools.experiments.tune import Tuned


@click.command("tune", epilog="Example:  kubesched tune docs/examples/packing-tune.yaml > scheduler.yaml")
@click.argument("experiment", type=FILE)
@takes(runs=ExecutorOptions)
@click.option("--batch", type=click.IntRange(1), default=4, show_default=True, help="How many candidates to try at once.")
@settings_option
@output_option
def command(experiment: Path, runs: ExecutorOptions, batch: int, settings: tuple[str, ...], output: str) -> None:
    """Search the space of EXPERIMENT's `tune` section for the best candidate on its scenarios, and test it on held-out ones.

    Prints the KubeSchedulerConfiguration of a candidate that is better there beyond doubt, and on stderr what it changes. If
    there is none, it says so and exits with 1.
    """
    import yaml

    from kubesched.tools.experiments.documents import document_of_search
    from kubesched.tools.experiments.tune import tune

    read = read_experiment_with(experiment, settings)
    wanted = read.file.tune.candidates if read.file.tune is not None else 0
    with bar(f"{experiment.name}, candidates", wanted) as done:
        found = tune(read, runs.executor(), batch=batch, progress=lambda n, _: done(n))
    document = document_of_search(found, read)
    if output != "table":
        print_document(document, output)
    else:
        _tell(found)
        if found.holds_out:
            click.echo(yaml.safe_dump(document["configuration"], sort_keys=False), nl=False)
    if not found.holds_out:
        raise SchedulerError(
            f"the best of {found.n_candidates} candidates does not hold out: its score differs from the baseline's by "
            f"{found.score} where it was not trained. Nothing is recommended"
        )


def _tell(found: Tuned) -> None:
    click.echo(f"best of {found.n_candidates} candidates:", err=True)
    for path, value in found.candidate:
        click.echo(f"  {path} = {value}", err=True)
    for objective in found.objectives:
        name = objective.figure
        click.echo(
            f"{name} ({objective.goal}): {_signed(found.train[name])} trained, {_signed(found.held_out[name])} held out",
            err=True,
        )


def _signed(estimate: Any) -> str:
    return ("+" if estimate.mean > 0 else "") + str(estimate)
