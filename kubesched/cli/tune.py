"""`kubesched tune`: the best weights and arguments for an objective, if they hold on what they were not trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import yaml

from kubesched.cli.printing import bar, print_document
from kubesched.cli.sweep import executor, parse_settings
from kubesched.errors import SchedulerError
from kubesched.tools.experiments.experiment import Experiment, read_experiment
from kubesched.tools.experiments.trial import configuration_of
from kubesched.tools.experiments.tune import Tuned, tune


def run_tune(experiment: Path, where: str, workers: int | None, batch: int, settings: tuple[str, ...], output: str) -> None:
    read = read_experiment(experiment, parse_settings(settings))
    wanted = read.file.tune.candidates if read.file.tune is not None else 0
    with bar(f"{experiment.name}, candidates", wanted) as done:
        found = tune(read, executor(where, workers), batch=batch, progress=lambda n, _: done(n))
    document = document_of(found, read)
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


def document_of(found: Tuned, experiment: Experiment) -> dict[str, Any]:
    """Return what was found, and the whole configuration where it is recommended."""

    def told(estimates: dict[str, Any]) -> dict[str, Any]:
        return {name: {"difference": e.mean, "halfWidth95": e.half_width, "n": e.n} for name, e in estimates.items()}

    base = experiment.file.baseline or next(iter(experiment.configurations))
    return {
        "recommended": found.holds_out,
        "candidate": dict(found.candidate),
        "candidates": found.n_candidates,
        "train": told(found.train),
        "heldOut": told(found.held_out),
        "score": told({"score": found.score})["score"],
        "front": [{"candidate": dict(candidate), "figures": figures} for candidate, figures in found.front],
        "configuration": configuration_of(experiment, base, found.candidate) if found.holds_out else None,
    }


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
