"""Plan moves towards one of the goals, and keep those that a simulation proves."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.errors import SchedulerError
from kubesched.kube.api import Pod
from kubesched.scheduler.engine import Engine, Ports
from kubesched.tools.rebalance import goals
from kubesched.tools.rebalance.board import Board
from kubesched.tools.rebalance.goals import MovePlan
from kubesched.tools.rebalance.proof import prove
from kubesched.tools.snapshots.captured import Captured


def plan_moves(
    cluster: Captured,
    build: Callable[[Captured, Ports | None], Engine],
    most: int,
    *,
    goal: str = "",
    node: str = "",
    pod: str = "",
) -> tuple[MovePlan, str]:
    """Return moves for a goal, or off a node, or that make room for a pod; and why some are left out, if some are."""
    plan = _planned(Board(build(cluster, None)), cluster, goal, node, pod, most)
    n_moves = len(plan.moves)
    n_proven, surprise = prove(cluster, plan, build)
    if n_proven == n_moves and not surprise:
        return plan, ""
    plan.moves = plan.moves[:n_proven]
    return plan, f"of {n_moves} moves {n_proven} are proven: {surprise}"


def _planned(board: Board, cluster: Captured, goal: str, node: str, pod: str, most: int) -> MovePlan:
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
