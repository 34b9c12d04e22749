"""`kubesched rebalance`: moves towards a goal, proven, printed, and with --apply made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kubesched.cli.layout import print_table, say
from kubesched.cli.options import ClusterOptions, Options, PolicyOptions, namespace_option, option, output_option, shared, takes
from kubesched.cli.printing import print_document, warn
from kubesched.errors import SchedulerError

if TYPE_CHECKING:
    from kubesched.tools.rebalance.goals import MovePlan


class MoveOptions(Options):
    """What the moves are for, and whether they are made."""

    goal: str | None = option("--goal", type=click.Choice(["fewer-nodes", "even-zones"]), help="Goal of the moves.")
    node: str = option("--off", default="", metavar="NODE", help="Or: move all pods off this node.")
    pod: str = option("--room-for", default="", metavar="[NS/]POD", help="Or: make room for this pending pod.")
    most: int = option("--max-moves", type=click.IntRange(1), default=20, show_default=True, help="How many moves at most.")
    applies: bool = option(
        "--apply", is_flag=True, help="Evict the pods one after the other; stop when one does not go as planned."
    )
    namespace: str = shared(namespace_option)


@click.command("rebalance", epilog="Example:  kubesched rebalance --goal fewer-nodes --max-moves 20")
@takes(asked=MoveOptions, cluster=ClusterOptions, policy=PolicyOptions)
@output_option
def command(asked: MoveOptions, cluster: ClusterOptions, policy: PolicyOptions, output: str) -> None:
    """List moves towards a goal: pods to evict, and the nodes that their replacements will get.

    Respects disruption budgets, owners, priorities and data on nodes. A simulation plays the whole list first; moves that do
    not end as planned are left out. Nothing is written without --apply.
    """
    import asyncio

    from kubesched.tools.rebalance.applying import carry_out
    from kubesched.tools.rebalance.planning import plan_moves

    if sum(map(bool, (asked.goal, asked.node, asked.pod))) != 1:
        raise click.UsageError("give one of --goal, --off and --room-for")
    if asked.applies and cluster.snapshot_file is not None:
        raise click.UsageError("--apply needs a cluster, and --snapshot is a file")
    captured, chosen = cluster.read_for_dry_run(policy)
    pod = asked.pod if "/" in asked.pod or not asked.pod else f"{cluster.namespace(asked.namespace)}/{asked.pod}"
    plan, left_out = plan_moves(captured, chosen.engine, asked.most, goal=asked.goal or "", node=asked.node, pod=pod)
    if left_out:
        warn(left_out)
    if output == "table":
        _print(plan)
    else:
        print_document(plan.as_dict(), output)
    if asked.applies and plan.moves:
        made = asyncio.run(carry_out(plan, cluster.kubeconfig, cluster.context, lambda text: click.echo(text, err=True)))
        click.echo(f"{made} of {len(plan.moves)} moves made", err=True)
        if made < len(plan.moves):
            raise SchedulerError("stopped at the first surprise")


def _print(plan: MovePlan) -> None:
    say(f"{plan.goal}: {plan.gain}")
    if plan.closed and plan.moves:
        say(f"cordon first: {', '.join(plan.closed)}" + (", and uncordon at the end" if plan.waiting is not None else ""))
    if plan.moves:
        rows = [[str(n), move.key, move.source, _targets(move.targets)] for n, move in enumerate(plan.moves, 1)]
        print_table(["", "evict", "from", "lands on"], rows, right=[0])
    for key, why in plan.stays:
        say(f"{key} stays: {why}", hang="  ")


def _targets(targets: tuple[str, ...]) -> str:
    return (
        targets[0]
        if len(targets) == 1
        else f"one of {', '.join(targets[:3])}" + (f" and {len(targets) - 3} more" if len(targets) > 3 else "")
    )
