"""What `kubesched decisions` takes; the work is in `kubesched.cli.decisions`."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.commands.lazy import runs
from kubesched.cli.commands.shared import namespace_option, output_option, policy_options, server_options

OUTCOMES = ("placed", "unschedulable", "preempted", "error")


@click.command(
    "decisions",
    short_help="Show what was decided, and by what.",
    epilog="Example:  kubesched decisions --server https://127.0.0.1:10259 --token $TOKEN --outcome preempted",
)
@click.argument("pod", metavar="[[NS/]POD]", default="")
@namespace_option
@server_options
@click.option(
    "--log",
    "log_file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="Read what `run --decision-log` wrote instead; FILE.1 and older beside it are read too.",
)
@click.option(
    "--inbox-log",
    "inbox_log",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="Decide again what `run --inbox-log` wrote, and tell every decision in full.",
)
@policy_options
@click.option("--node", default="", help="Only those that went to this node, or evict from it.")
@click.option("--outcome", type=click.Choice(OUTCOMES), default=None, help="Only those that ended so.")
@click.option("--refused-by", default="", metavar="PLUGIN", help="Only those in which this plugin refused nodes.")
@click.option("--since", default="", metavar="TIME", help="Not before: 2026-01-31T12:00:00Z, 10m (ago), seconds since 1970.")
@click.option("--until", default="", metavar="TIME", help="Not after.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="The newest so many.")
@output_option
@runs("kubesched.cli.decisions:run_decisions")
def command() -> None:
    """List the decisions that a scheduler has on record, newest first, or tell all about one pod's.

    They come from a running scheduler (--server), from a decision log (--log), or are made again from an inbox log
    (--inbox-log): a decision follows from its inputs, so the same ones come out, with every score.
    """
