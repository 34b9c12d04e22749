"""What `kubesched sweep` takes; the work is in `kubesched.cli.sweep`."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.commands.lazy import runs
from kubesched.cli.commands.shared import output_option


@click.command(
    "sweep",
    short_help="Run many simulations.",
    epilog="Example:  kubesched sweep docs/examples/packing-sweep.yaml --out results",
)
@click.argument("experiment", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out", "folder", type=click.Path(file_okay=False, path_type=Path), help="Keep every trial here, and go on from it."
)
@click.option("--on", "where", default="processes", help="processes, ray, or ray://HOST:PORT of a cluster.", show_default=True)
@click.option(
    "--workers", type=click.IntRange(1), help="How many processes, as many as there are cores by default; 1: this one."
)
@click.option(
    "--html", "html_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the report as one HTML file as well."
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="An argument of an experiment in Python.")
@output_option
@runs("kubesched.cli.sweep:run_sweep")
def command() -> None:
    """Run every scenario of EXPERIMENT with every configuration, parameter and seed, and print what came of it.

    EXPERIMENT is a YAML file, or a Python file with a function `experiment` (docs/how-to/experiments.md). The same experiment
    gives the same rows, wherever its trials run.
    """
