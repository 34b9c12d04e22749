"""`kubesched rebalance`: moves towards a goal, proven, printed, and with --apply made."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from kubesched.cli.layout import print_table, say
from kubesched.cli.printing import print_document
from kubesched.errors import SchedulerError
from kubesched.kube.api.pod import Pod
from kubesched.tools.rebalance import goals
from kubesched.tools.rebalance.applying import carry_out
from kubesched.tools.rebalance.board import Board
from kubesched.tools.rebalance.goals import MovePlan
from kubesched.tools.rebalance.proof import prove
from kubesched.tools.snapshots.captured import Captured
from kubesched.tools.snapshots.sources import namespace_of, open_cluster


def run_rebalance(
    goal: str | None,
    node: str,
    pod: str,
    most: int,
    applies: bool,
    namespace: str,
    snapshot_file: Path | None,
    kubeconfig: str,
    context: str,
    config_file: Path | None,
    feature_gates: tuple[str, ...],
    plugins: tuple[str, ...],
    output: str,
) -> None:
    if sum(map(bool, (goal, node, pod))) != 1:
        raise click.UsageError("give one of --goal, --off and --room-for")
    if applies and snapshot_file is not None:
        raise click.UsageError("--apply needs a cluster, and --snapshot is a file")
    cluster, policy = open_cluster(snapshot_file, kubeconfig, context, config_file, feature_gates, plugins)
    where = namespace_of(namespace, snapshot_file, kubeconfig, context)
    plan = _plan(Board(policy.engine(cluster)), cluster, goal or "", node, pod if "/" in pod else f"{where}/{pod}", most)
    n_proven, surprise = prove(cluster, plan, policy.engine)
    if n_proven < len(plan.moves) or surprise:
        click.echo(f"Warning: of {len(plan.moves)} moves {n_proven} are proven: {surprise}", err=True)
        plan.moves = plan.moves[:n_proven]
    _print(plan, output)
    if applies and plan.moves:
        made = asyncio.run(carry_out(plan, kubeconfig, context, lambda text: click.echo(text, err=True)))
        click.echo(f"{made} of {len(plan.moves)} moves made", err=True)
        if made < len(plan.moves):
            raise SchedulerError("stopped at the first surprise")


def _plan(board: Board, cluster: Captured, goal: str, node: str, pod: str, most: int) -> MovePlan:
    if goal == "fewer-nodes":
        return goals.fewer_nodes(board, most)
    if goal == "even-zones":
        return goals.even_zones(board, most)
    if node:
        if board.engine.store.node(node) is None:
            raise SchedulerError(f'nodes "{node}" not found')
        return goals.off_node(board, node, most)
    waiting = next((each for each in cluster.of(Pod) if each.key == pod), None)
    if waiting is None:
        raise SchedulerError(f'pods "{pod}" not found')
    if waiting.spec.node_name:
        raise SchedulerError(f"pod {pod} is on {waiting.spec.node_name} already")
    return goals.room_for(board, waiting, most)


def document_of(plan: MovePlan) -> dict[str, Any]:
    """Return a plan as it is printed."""
    return {
        "goal": plan.goal,
        "gain": plan.gain,
        "cordon": plan.closed,
        "moves": [{"pod": move.key, "from": move.source, "to": list(move.targets)} for move in plan.moves],
        "stays": [{"pod": key, "why": why} for key, why in plan.stays],
    }


def _print(plan: MovePlan, output: str) -> None:
    if output != "table":
        print_document(document_of(plan), output)
        return
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
