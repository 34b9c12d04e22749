"""What `kubesched simulate` takes; the work is in `kubesched.cli.simulate`."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.commands.lazy import runs
from kubesched.cli.commands.shared import output_option, policy_options


@click.command(
    "simulate",
    short_help="Run a scenario in virtual time.",
    epilog="Example:  kubesched simulate docs/examples/shop.yaml --series series.csv",
)
@click.argument("scenario", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@policy_options
@click.option("--duration", help="How long to simulate, such as 90s, 5m or 1h30m, instead of what the scenario says.")
@click.option("--seed", type=int, help="Another seed than the scenario's.")
@click.option(
    "--events",
    "events_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write everything that happens to this file, a JSON line each; as a table if it ends in .parquet.",
)
@click.option(
    "--series",
    "series_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write utilisation and queue lengths over time to this file, as CSV, or as Parquet if it ends in .parquet.",
)
@click.option(
    "--html",
    "html_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a report to this file: figures, plots over time, the nodes at the end, in one file.",
)
@output_option
@runs("kubesched.cli.simulate:run_simulate")
def command() -> None:
    """Run SCENARIO in virtual time against a cluster in memory, with the real scheduling engine, and print what came of it.

    SCENARIO is a scenario file (docs/reference/scenario.md), an inbox log, or a file that --snapshot of other commands takes.
    The same scenario, configuration and seed print the same bytes.
    """
