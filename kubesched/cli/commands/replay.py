"""What `kubesched replay` takes; the work is in `kubesched.cli.replay`."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.commands.lazy import runs
from kubesched.cli.commands.shared import policy_options


@click.command(
    "replay",
    short_help="Decide again what a log or snapshot holds.",
    epilog="Example:  kubesched replay inbox.jsonl --config other.yaml",
)
@click.argument("log", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@policy_options
@click.option("--seed", type=int, help="Another seed than the recorded one.")
@runs("kubesched.cli.replay:run_replay")
def command() -> None:
    """Play an inbox log (see `run --inbox-log`) or a snapshot to a new engine in virtual time; print one JSON line a decision.

    The same log, configuration and seed print the same bytes.
    """
