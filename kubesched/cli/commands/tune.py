"""What `kubesched tune` takes; the work is in `kubesched.cli.tune`."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.commands.lazy import runs
from kubesched.cli.commands.shared import output_option


@click.command(
    "tune",
    short_help="Search for the best weights and arguments.",
    epilog="Example:  kubesched tune docs/examples/packing-tune.yaml > scheduler.yaml",
)
@click.argument("experiment", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--on", "where", default="processes", help="processes, ray, or ray://HOST:PORT of a cluster.", show_default=True)
@click.option(
    "--workers", type=click.IntRange(1), help="How many processes, as many as there are cores by default; 1: this one."
)
@click.option("--batch", type=click.IntRange(1), default=4, show_default=True, help="How many candidates are tried at once.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="An argument of an experiment in Python.")
@output_option
@runs("kubesched.cli.tune:run_tune")
def command() -> None:
    """Search what EXPERIMENT's `tune` section allows for the best candidate on its scenarios, and judge it on held-out ones.

    Prints the KubeSchedulerConfiguration of a candidate that is better there beyond doubt, and on stderr what it changes. Where
    none is, it says so and exits with 1: a weight that only fits what it was trained on is worse than none.
    """
