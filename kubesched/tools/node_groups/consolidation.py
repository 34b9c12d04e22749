"""Nodes that could go: their pods fit on the other nodes, or on a cheaper one that comes instead.

In: an engine that believes in a cluster, and its groups. Out: nodes in the order in which they could go, each found with those
before it gone. Which pods may move, and where their replacements would land, is what `rebalance` says of them (board.py): by
the engine, within disruption budgets. Only nodes of groups that may shrink are looked at, the least used first.
"""

from __future__ import annotations

from kubesched.scheduler.cluster import CPU, MEMORY, PodView
from kubesched.scheduler.engine.loop import Engine
from kubesched.tools.node_groups.daemonset_pods import DaemonSetPods
from kubesched.tools.node_groups.sizes import GroupSizes
from kubesched.tools.plan.plan import SparedNode
from kubesched.tools.rebalance.board import Board, Move
from kubesched.tools.simulation.scenario import NodeGroup

_BELONGS = "it belongs to its node"


def utilisation(engine: Engine, node_name: str) -> float:
    """Return the larger of the shares of a node's cpu and memory that its pods ask for."""
    nodes = engine.store.snapshot()
    row = nodes.row(node_name)
    offers = [(nodes.requested_at(each, row), nodes.allocatable_at(each, row)) for each in (CPU, MEMORY)]
    return max((asked / offered for asked, offered in offers if offered), default=0.0)


def clear(board: Board, node_name: str) -> list[Move] | str:
    """Close a node and move its pods to others; say why it cannot be, and leave all as it was."""
    board.close(node_name)
    made: list[Move] = []
    for view in board.pods_on(node_name):
        if board.why_it_stays(view) == _BELONGS:
            continue
        move = board.try_move(view)
        if isinstance(move, str):
            put_back(board, node_name, made)
            return f"{view.key}: {move}"
        made.append(move)
    return made


def put_back(board: Board, node_name: str, moves: list[Move]) -> None:
    """Let a node not have been cleared."""
    for move in reversed(moves):
        board.take_back(move)
    board.open(node_name)


def spare_nodes(engine: Engine, sizes: GroupSizes, daemons: DaemonSetPods) -> list[SparedNode]:
    """Return the nodes that could go; the engine's store is left as if they had."""
    board, found = Board(engine), list[SparedNode]()
    nodes = engine.store.snapshot()
    names = [name for name in map(nodes.name, range(nodes.n)) if sizes.of(name) is not None]
    shares = {name: utilisation(engine, name) for name in names}
    cordoned = {name for name in names if (node := engine.store.node(name)) is not None and node.spec.unschedulable}
    for name in sorted(names, key=lambda name: (shares[name], name)):
        group = sizes.of(name)
        if group is None or name in cordoned or not sizes.is_above_min(group):
            continue
        moves = clear(board, name)
        if not isinstance(moves, str):
            sizes.remove(name)
            engine.store.remove_node(name)
            found.append(SparedNode(name, group.name, group.price, shares[name], tuple(move.key for move in moves)))
        elif (cheaper := _replaced(board, sizes, daemons, name, group)) is not None:
            new, moved = cheaper
            sizes.remove(name)
            engine.store.remove_node(name)
            saves = round(group.price - new.price, 6)
            found.append(SparedNode(name, group.name, saves, shares[name], tuple(each.key for each in moved), new.name))
    return found


def _replaced(
    board: Board, sizes: GroupSizes, daemons: DaemonSetPods, node_name: str, group: NodeGroup
) -> tuple[NodeGroup, list[Move]] | None:
    """Let one cheaper node take what nobody else does; return its group and the moves, None if there is no such group."""
    cheaper = [each for each in sizes.groups.values() if each.price < group.price and sizes.room(each)]
    store = board.engine.store
    for other in sorted(cheaper, key=lambda each: (-each.weight, each.price, each.name)):
        node = sizes.next_node(other)
        store.put_node(node)
        pods: list[PodView] = [store.put_pod(pod) for pod in daemons.on(node)]
        moves = clear(board, node_name)
        if not isinstance(moves, str) and any(node.metadata.name in move.targets for move in moves):
            sizes.add(other)
            return other, moves
        if not isinstance(moves, str):
            put_back(board, node_name, moves)
        for view in pods:
            store.remove_pod(view.uid)
        store.remove_node(node.metadata.name)
    return None
