"""What moves are made for: fewer nodes, even zones, room for a pod, nobody on a node.

In: a board, and how many moves there may be at most. Out: moves in the order in which they are to be made, nodes that are
closed first, and what they gain. Every goal is greedy and keeps a move only for what it gains by itself, so that a second
run on the cluster that the first one leaves finds nothing to do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from kubesched.kube.api import Pod
from kubesched.kube.values import ZONE
from kubesched.scheduler.cluster import CPU, PodView
from kubesched.tools.rebalance.board import BELONGS, Board, Move, replacement


@dataclass(slots=True)
class MovePlan:
    """A list of moves and what is known of it."""

    goal: str
    moves: list[Move] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    """Nodes that are cordoned before the first move."""
    gain: str = ""
    stays: list[tuple[str, str]] = field(default_factory=list)
    """Pods that could not be moved, and why."""
    waiting: Pod | None = None
    """Whom room is made for: the closed nodes are opened again for it at the end."""
    waiting_node: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as it is printed."""
        return {
            "goal": self.goal,
            "gain": self.gain,
            "cordon": self.closed,
            "moves": [{"pod": move.key, "from": move.source, "to": list(move.targets)} for move in self.moves],
            "stays": [{"pod": key, "why": why} for key, why in self.stays],
        }


def off_node(board: Board, node_name: str, most: int) -> MovePlan:
    """Move everybody off a node."""
    plan = MovePlan(f"off {node_name}", closed=[node_name])
    board.close(node_name)
    for view in board.pods_on(node_name):
        if len(plan.moves) == most:
            plan.stays.append((view.key, f"{most} moves were allowed"))
            continue
        _take(plan, view, board.try_move(view))
    left = sum(why != BELONGS for _, why in plan.stays)
    plan.gain = f"{len(plan.moves)} pods leave {node_name}, {left} that should do not"
    return plan


def fewer_nodes(board: Board, most: int) -> MovePlan:
    """Empty nodes whose pods all fit on nodes that are in use, the least used first."""
    plan = MovePlan("fewer-nodes")
    used, receiving = [name for name in _names(board) if board.work_on(name)], set[str]()
    for name in sorted(used, key=lambda name: (board.utilisation(name), name)):
        work = board.work_on(name)
        if name in receiving or len(plan.moves) + len(work) > most or any(board.why_it_stays(view) for view in work):
            continue
        busy = {other for other in used if other != name and board.work_on(other)}
        moves = board.clear(name)
        if isinstance(moves, str):
            continue
        if not all(busy.issuperset(move.targets) for move in moves):  # a node that is empty would be used again
            board.put_back(name, moves)
            continue
        plan.moves += moves
        plan.closed.append(name)
        receiving.update(move.targets[0] for move in moves)
    plan.gain = f"{len(plan.closed)} of {len(used)} used nodes become empty"
    return plan


def even_zones(board: Board, most: int) -> MovePlan:
    """Move pods of a workload from the zone that has most of them, where the scheduler puts the next one into a zone with at
    least two fewer."""
    plan, before = MovePlan("even-zones"), _skew(board)
    while len(plan.moves) < most:
        move = _evening(board, {replacement(made.pod).uid for made in plan.moves})
        if move is None:
            break
        plan.moves.append(move)
    plan.gain = f"the widest gap between zones goes from {before} to {_skew(board)}"
    return plan


def room_for(board: Board, pod: Pod, most: int) -> MovePlan:
    """Make room for a pod that waits, on the node where the fewest have to move."""
    plan = MovePlan(f"room for {pod.key}")
    if not isinstance(board.targets(pod), str):
        plan.gain = f"{pod.key} fits already"
        return plan
    best: tuple[int, str, list[PodView]] | None = None
    for name in _names(board):
        movable = [view for view in board.pods_on(name) if not board.why_it_stays(view)]
        needed = _needed(board, pod, name, movable, most)
        if needed is not None and (best is None or (len(needed), name) < best[:2]):
            best = (len(needed), name, needed)
    if best is None:
        plan.gain = f"no {most} moves make room for {pod.key}"
        return plan
    _, name, needed = best
    for view in needed:  # the pod is booked first: whoever moves must find a place beside it
        board.engine.store.remove_pod(view.uid)
    board.book(pod, name)
    for view in needed:
        board.engine.store.put_pod(view.pod)
    board.close(name)
    plan.closed.append(name)
    for view in needed:
        _take(plan, view, board.try_move(view))
    if plan.stays:
        plan.moves, plan.closed = [], []
        plan.gain = f"no {most} moves make room for {pod.key}"
    else:
        plan.gain, plan.waiting, plan.waiting_node = f"{pod.key} fits on {name}", pod, name
    return plan


def _needed(board: Board, pod: Pod, name: str, movable: list[PodView], most: int) -> list[PodView] | None:
    """Return which pods must leave a node so that another fits there: the largest first, as few as do."""
    store, gone = board.engine.store, []
    for view in sorted(movable, key=lambda view: (-dict(view.requests).get(CPU, 0), view.key))[:most]:
        store.remove_pod(view.uid)
        gone.append(view)
        targets = board.targets(pod)
        if not isinstance(targets, str) and name in targets:
            break
    else:
        for view in gone:
            store.put_pod(view.pod)
        return None
    for view in gone:
        store.put_pod(view.pod)
    return gone


def _take(plan: MovePlan, view: PodView, move: Move | str) -> None:
    if isinstance(move, str):
        plan.stays.append((view.key, move))
    else:
        plan.moves.append(move)


def _names(board: Board) -> list[str]:
    return sorted(board.engine.store.snapshot().names)


def _zones(board: Board) -> dict[str, str]:
    nodes = board.engine.store.snapshot()
    return {node.metadata.name: (node.metadata.labels or {}).get(ZONE, "") for node in nodes.node_objects}


def _by_workload(board: Board, zones: dict[str, str]) -> dict[tuple[str, str], dict[str, list[PodView]]]:
    """Return the pods of each controller by zone."""
    found: dict[tuple[str, str], dict[str, list[PodView]]] = defaultdict(lambda: defaultdict(list))
    for view in board.engine.store.pods():
        owner, zone = view.pod.metadata.controller(), zones.get(view.pod.spec.node_name, "")
        if owner is not None and owner.kind != "DaemonSet" and zone:
            found[view.namespace, owner.uid or owner.name][zone].append(view)
    return found


def _skew(board: Board) -> int:
    zones = _zones(board)
    everywhere = set(zones.values()) - {""}
    widest = 0
    for by_zone in _by_workload(board, zones).values():
        counts = Counter({zone: len(by_zone.get(zone, ())) for zone in everywhere})
        widest = max(widest, max(counts.values()) - min(counts.values()))
    return widest


def _evening(board: Board, moved: set[str]) -> Move | None:
    """Return a move that makes a workload more even, made; None if there is none."""
    zones = _zones(board)
    everywhere = sorted(set(zones.values()) - {""})
    if len(everywhere) < 2:
        return None
    for _, by_zone in sorted(_by_workload(board, zones).items()):
        counts = {zone: len(by_zone.get(zone, ())) for zone in everywhere}
        fullest = max(everywhere, key=lambda zone: (counts[zone], zone))
        if counts[fullest] - min(counts.values()) < 2:
            continue
        for view in sorted(by_zone[fullest], key=lambda view: view.key):
            move = board.try_move(view) if view.uid not in moved else ""  # nobody is moved twice
            if isinstance(move, Move):
                if all(counts.get(zones[target], 1 << 30) <= counts[fullest] - 2 for target in move.targets):
                    return move
                board.take_back(move)
    return None
