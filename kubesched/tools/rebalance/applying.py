"""Carrying a plan of moves out on a cluster: one eviction after the other, and a look after each.

In: a plan, and the cluster's credentials. Out: how many moves came out as planned. Nodes are cordoned first; a pod is
evicted by the API, which heeds its budgets; the next one goes only when the replacement of the last is on one of the nodes
that the plan names. The first surprise, a refused eviction or a replacement elsewhere, ends it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec

from kubesched.errors import SchedulerError
from kubesched.kube.client import Connection, connect, kubectl_credentials
from kubesched.tools.rebalance.board import Move
from kubesched.tools.rebalance.goals import MovePlan

PATIENCE_SECONDS = 180.0
_LOOK_EVERY_SECONDS = 0.5
_MERGE = "application/strategic-merge-patch+json"


async def carry_out(plan: MovePlan, kubeconfig: str, context: str, tell: Callable[[str], None]) -> int:
    """Make the moves; return how many came out as planned."""
    source = kubectl_credentials(kubeconfig, context)
    connection = await connect(source, name="rebalance", qps=50.0, burst=100)
    n_made = 0
    try:
        for name in plan.closed:
            await _cordon(connection, name, True)
            tell(f"node {name} cordoned")
        for move in plan.moves:
            surprise = await _move(connection, move, tell)
            if surprise:
                tell(surprise)
                return n_made
            n_made += 1
        if plan.waiting is not None:
            for name in plan.closed:
                await _cordon(connection, name, False)
        return n_made
    finally:
        await connection.close()


async def _cordon(connection: Connection, name: str, is_on: bool) -> None:
    body = msgspec.json.encode({"spec": {"unschedulable": is_on}})
    await connection.request("PATCH", f"/api/v1/nodes/{name}", body, _MERGE)


async def _move(connection: Connection, move: Move, tell: Callable[[str], None]) -> str:
    """Make one move; return what surprised, or nothing."""
    meta = move.pod.metadata
    path, before = f"/api/v1/namespaces/{meta.namespace}/pods", await _pods(connection, move)
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": meta.name, "namespace": meta.namespace},
        "deleteOptions": {"preconditions": {"uid": meta.uid}},
    }
    try:
        await connection.request("POST", f"{path}/{meta.name}/eviction", msgspec.json.encode(eviction))
    except SchedulerError as error:
        return f"{move.key} was not evicted: {error}"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        for uid, (name, node) in (await _pods(connection, move)).items():
            if uid not in before and node:
                if node in move.targets:
                    tell(f"{move.key} -> {meta.namespace}/{name} on {node}")
                    return ""
                return f"the replacement of {move.key}, {name}, is on {node}, not on {' or '.join(move.targets)}"
        await asyncio.sleep(_LOOK_EVERY_SECONDS)
    return f"{move.key} has no replacement on a node after {PATIENCE_SECONDS:g} s"


async def _pods(connection: Connection, move: Move) -> dict[str, tuple[str, str]]:
    """Return the pods of the same controller by uid: name, and node if they have one."""
    owner = move.pod.metadata.controller()
    found: dict[str, Any] = msgspec.json.decode(
        await connection.request("GET", f"/api/v1/namespaces/{move.pod.metadata.namespace}/pods")
    )
    mine: dict[str, tuple[str, str]] = {}
    for pod in found.get("items") or ():
        meta = pod["metadata"]
        if owner is not None and any(each.get("uid") == owner.uid for each in meta.get("ownerReferences") or ()):
            mine[meta["uid"]] = meta["name"], pod.get("spec", {}).get("nodeName", "")
    return mine
