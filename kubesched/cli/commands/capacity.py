"""What `kubesched capacity` takes; the work is in `kubesched.cli.capacity`."""

from __future__ import annotations

import click

from kubesched.cli.commands.lazy import runs
from kubesched.cli.commands.shared import (
    cluster_options,
    manifest_options,
    namespace_option,
    node_groups_option,
    output_option,
    policy_options,
)


@click.command(
    "capacity",
    short_help="Count how many more of a pod fit.",
    epilog="Example:  kubesched capacity -f web.yaml --drain node-7 --snapshot cluster.jsonl.gz",
)
@manifest_options
@click.option("--workload", default="", metavar="KIND/NAME", help="Which one, if the files have several.")
@namespace_option
@click.option("--limit", type=click.IntRange(1), default=100_000, show_default=True, help="Do not count further.")
@click.option("--without", multiple=True, metavar="NODE", help="As if this node were lost with all that is on it.")
@click.option("--drain", multiple=True, metavar="NODE", help="As if this node were lost and its pods had to go elsewhere.")
@node_groups_option
@cluster_options
@policy_options
@output_option
@runs("kubesched.cli.capacity:run_capacity")
def command() -> None:
    """Count how many more of a pod fit, and say what stops the next one.

    Takes a Pod, or a workload for its template. Nobody is evicted for the copies, and pods that wait in the cluster are left
    out. Nothing is written.
    """
