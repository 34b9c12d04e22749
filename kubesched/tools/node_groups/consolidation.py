"""Nodes that could go: their pods fit on the other nodes, or on a cheaper one that comes instead.

In: an engine that believes in a cluster, and its groups. Out: nodes in the order in which they could go, each found with those
before it gone. Which pods may move, and where their replacements would land, is what `rebalance` says of them (board.py): by
the engine, within disruption budgets. Only nodes of groups that may shrink are looked at, the least used first.
"""

from __future__ import annotations

from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine import Engine
from kubesched.solver.node_groups import DaemonSetPods, GroupSizes, NodeGroup
from kubesched.tools.plan.plan import SparedNode
from kubesched.tools.rebalance.board import Board, Move


def spare_nodes(engine: Engine, sizes: GroupSizes, daemons: DaemonSetPods) -> list[SparedNode]:
    """Return the nodes that could go; the engine's store is left as if they had."""
    board, found = Board(engine), list[SparedNode]()
    nodes = engine.store.snapshot()
    names = [name for name in map(nodes.name, range(nodes.n)) if sizes.of(name) is not None]
    shares = {name: board.utilisation(name) for name in names}
    cordoned = {name for name in names if (node := engine.store.node(name)) is not None and node.spec.unschedulable}
    for name in sorted(names, key=lambda name: (shares[name], name)):
        group = sizes.of(name)
        if group is None or name in cordoned or not sizes.is_above_min(group):
            continue
        moves = board.clear(name)
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
        moves = board.clear(node_name)
        if not isinstance(moves, str) and any(node.metadata.name in move.targets for move in moves):
            sizes.add(other)
            return other, moves
        if not isinstance(moves, str):
            board.put_back(node_name, moves)
        for view in pods:
            store.remove_pod(view.uid)
        store.remove_node(node.metadata.name)
    return None
