"""What `kubesched demo` takes; the work is in `kubesched.cli.demo`."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.commands.lazy import runs
from kubesched.cli.commands.shared import policy_options


@click.command(
    "demo",
    short_help="Show the scheduler at work on a cluster.",
    epilog="Example:  kubesched demo --nodes 50 --pods 400 --once",
)
@click.option("--nodes", type=click.IntRange(1, 5000), default=20, show_default=True, help="How many nodes.")
@click.option("--pods", type=click.IntRange(6, 50000), default=100, show_default=True, help="About how many pods.")
@click.option("--once", is_flag=True, help="Print what was placed, and exit.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the API; 0 picks a free one.")
@click.option("--page-port", type=click.IntRange(0, 65535), default=0, help="Port of the page; 0 picks a free one.")
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Keep the objects here across restarts.")
@policy_options
@click.option(
    "--decision-records", type=click.IntRange(0), default=10_000, show_default=True, help="Keep so many decisions on record."
)
@runs("kubesched.cli.demo:run_demo")
def command() -> None:
    """Show the scheduler at work on a cluster that lives in this process. kubectl works beside it."""
