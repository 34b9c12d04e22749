"""What `kubesched rebalance` takes; the work is in `kubesched.cli.rebalance`."""

from __future__ import annotations

import click

from kubesched.cli.commands.lazy import runs
from kubesched.cli.commands.shared import cluster_options, namespace_option, output_option, policy_options


@click.command(
    "rebalance",
    short_help="Plan moves towards a goal.",
    epilog="Example:  kubesched rebalance --goal fewer-nodes --max-moves 20",
)
@click.option("--goal", type=click.Choice(["fewer-nodes", "even-zones"]), help="What the moves are for.")
@click.option("--off", "node", default="", metavar="NODE", help="Or: move everybody off this node.")
@click.option("--room-for", "pod", default="", metavar="[NS/]POD", help="Or: make room for this pod, which waits.")
@click.option("--max-moves", "most", type=click.IntRange(1), default=20, show_default=True, help="Not more moves than this.")
@click.option("--apply", "applies", is_flag=True, help="Evict one after the other, and stop at the first surprise.")
@namespace_option
@cluster_options
@policy_options
@output_option
@runs("kubesched.cli.rebalance:run_rebalance")
def command() -> None:
    """List moves towards a goal: pods to evict, and the nodes of which their replacements will take one.

    Disruption budgets, owners, priorities and data on nodes are heeded, and the whole list is played in a simulation first:
    what does not land there as planned is not printed. Nothing is written without --apply.
    """
