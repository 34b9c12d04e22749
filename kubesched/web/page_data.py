"""What the page shows of an engine: columns, counts, and an attempt told in words.

In: the engine of the moment, with its record of decisions. Out: values that go to JSON as they are. Nodes go out as columns,
one list a fact, so that 5,000 of them cost a millisecond; who says which version of the columns they have already got is
spared those that are the same. Everything here reads; an explanation is made in the engine's own turn, through
the inbox, where the store stands still and no attempt is under way.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, TypeVar

import msgspec
import numpy as np

from kubesched.api.quantity import amount_text, is_bytes
from kubesched.cluster import CPU, Ints, Snapshot
from kubesched.engine.decision_record import PLACED, DecisionRing
from kubesched.engine.inbox import LoopCall
from kubesched.engine.loop import Engine
from kubesched.engine.pod_report import pod_report, requests_of
from kubesched.queue.queued import QueuedPod
from kubesched.web.page import NotReady, Versions
from kubesched.web.throughput import Throughput

ZONE = "topology.kubernetes.io/zone"
MOST_QUEUED = 2000
"""Waiting pods that are looked at for one picture; more would keep the scheduler from its work."""
MOST_GROUPS = 50
MOST_NAMES = 8
MOST_RESOURCES = 8
MOST_DECISIONS = 60
BEING_WRITTEN = "refused; the condition that says why is being written"
_MEBI = 1 << 20
_PATIENCE_SECONDS = 10.0

Answer = TypeVar("Answer")


class EnginePageData:
    """Shows whichever engine runs now; a changed configuration brings a new one."""

    def __init__(self, engine: Callable[[], Engine | None], throughput: Throughput) -> None:
        self._engine = engine
        self._throughput = throughput
        self._encoded: dict[str, tuple[str, msgspec.Raw]] = {}

    def state(self, seen: Versions) -> dict[str, Any]:
        """Return the picture of the moment, without the columns of which the asker has the newest version."""
        engine = self._running()
        nodes, queue, throughput = engine.store.snapshot(), engine.queue, self._throughput
        facts, usage = _fingerprint(nodes), f"{nodes.structure}-{nodes.journal.end}"
        picture: dict[str, Any] = {
            "versions": {"nodes": facts, "usage": usage},
            "isLeading": engine.is_leading,
            "profiles": list(engine.profiles),
            "nodeCount": nodes.n,
            "podCount": engine.store.n_pods,
            "boundCount": throughput.n_bound,
            "podsPerSecond": throughput.pods_per_second(),
            "boundPerSecond": throughput.per_second(),
            "queue": {
                "active": queue.n_active,
                "backoff": queue.n_backoff,
                "unschedulable": queue.n_unschedulable,
                "gated": queue.n_gated,
                "inFlight": queue.n_in_flight,
            },
            "pending": _pending(queue.held_back(), queue.n_unschedulable + queue.n_gated + queue.n_backoff),
            "decisions": _decisions(engine.decisions.ring) if engine.decisions is not None else [],
        }
        if seen.nodes != facts:
            picture["nodes"] = self._once("nodes", facts, lambda: _facts(nodes))
        if seen.usage != usage or "nodes" in picture:
            picture["usage"] = self._once("usage", usage, lambda: _usage(nodes))
        return picture

    async def pod(self, key: str) -> dict[str, Any] | None:
        """Return a pod and how every node looks to it now; None if it is not known."""
        return await self._in_turn(lambda engine: _pod(engine, key))

    async def node(self, name: str) -> dict[str, Any] | None:
        """Return a node with its pods; None if it is not known."""
        return await self._in_turn(lambda engine: _node(engine.store.snapshot(), name))

    def _running(self) -> Engine:
        engine = self._engine()
        if engine is None:
            raise NotReady("the scheduler is starting")
        return engine

    def _once(self, what: str, version: str, make: Callable[[], Any]) -> msgspec.Raw:
        """Encode columns once for all who look."""
        known = self._encoded.get(what)
        if known is None or known[0] != version:
            known = self._encoded[what] = version, msgspec.Raw(msgspec.json.encode(make()))
        return known[1]

    async def _in_turn(self, ask: Callable[[Engine], Answer]) -> Answer:
        """Ask the engine something between two of its decisions."""
        engine = self._running()
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def run() -> None:
            if answer.done():  # nobody waits any more
                return
            try:
                answer.set_result(ask(engine))
            except Exception as error:  # whatever a plugin raises, it belongs to who asked and not to the loop
                answer.set_exception(error)

        engine.inbox.post(LoopCall(run))
        try:
            return await asyncio.wait_for(answer, _PATIENCE_SECONDS)
        except TimeoutError as error:
            raise NotReady("the scheduler is busy and did not answer in time") from error


# --- nodes as columns -------------------------------------------------------------------------------------------------


def _resources(nodes: Snapshot) -> list[tuple[str, int, int]]:
    """Return the resources that any node offers: name, number, and how many units make one that is shown."""
    names = nodes.templates.resources.values
    offered = [i for i in range(len(names)) if nodes.allocatable(i).any()]
    return [(names[i], i, _MEBI if is_bytes(names[i]) else 1) for i in offered[:MOST_RESOURCES]]


def _shown(column: Ints, unit: int) -> list[int]:
    shown: list[int] = (column if unit == 1 else column // unit).tolist()
    return shown


def _fingerprint(nodes: Snapshot) -> str:
    """Return the version of what is told of nodes apart from their use; a tenth of a millisecond for 5,000."""
    columns = [nodes.is_unschedulable, nodes.taint_set, nodes.codes(ZONE), nodes.allowed_pods]
    columns += [nodes.allocatable(i) for _, i, _ in _resources(nodes)]
    mark = 0
    for column in columns:
        mark = zlib.crc32(column.tobytes(), mark)
    return f"{nodes.structure}-{mark:08x}"


def _facts(nodes: Snapshot) -> dict[str, Any]:
    label = nodes.label(ZONE)
    taints, taint_code = np.unique(nodes.taint_set, return_inverse=True)
    resources = [
        {
            "name": name,
            "unit": "MiB" if unit == _MEBI else "m" if i == CPU else "",
            "allocatable": _shown(nodes.allocatable(i), unit),
        }
        for name, i, unit in _resources(nodes)
    ]
    resources.append({"name": "pods", "unit": "", "allocatable": nodes.allowed_pods.tolist()})
    return {
        "names": list(nodes.names),
        "zones": list(label.values.values) if label is not None else [],
        "zone": nodes.codes(ZONE).tolist(),
        "taints": [[_taint(taint) for taint in nodes.taint_sets[i]] for i in taints.tolist()],
        "taint": taint_code.tolist(),
        "cordoned": np.flatnonzero(nodes.is_unschedulable).tolist(),
        "resources": resources,
    }


def _usage(nodes: Snapshot) -> list[list[int]]:
    """Return what is used, a list for each resource in the order of the facts, pods last."""
    return [*(_shown(nodes.requested(i), unit) for _, i, unit in _resources(nodes)), nodes.pod_count.tolist()]


def _taint(taint: Any) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _node(nodes: Snapshot, name: str) -> dict[str, Any] | None:
    row = nodes.row(name)
    if row < 0:
        return None
    node = nodes.node(row)
    names = nodes.templates.resources.values
    amounts = [
        {
            "name": names[i],
            "requested": amount_text(names[i], nodes.requested_at(i, row)),
            "allocatable": amount_text(names[i], nodes.allocatable_at(i, row)),
        }
        for _, i, _ in _resources(nodes)
    ]
    pods = sorted(nodes.pods_on(row), key=lambda pod: pod.key)
    return {
        "node": name,
        "labels": dict(sorted(node.metadata.labels.items())),
        "taints": [_taint(taint) for taint in node.spec.taints],
        "isCordoned": node.spec.unschedulable,
        "resources": amounts,
        "podCount": len(pods),
        "allowedPods": int(nodes.allowed_pods[row]),
        "pods": [{"pod": pod.key, "priority": pod.priority, "requests": requests_of(pod)} for pod in pods[:250]],
    }


def _decisions(ring: DecisionRing) -> list[dict[str, Any]]:
    """Return the last pods that were bound or came to nothing, newest first; what one is told again and again is one line."""
    lines: list[dict[str, Any]] = []
    for record in ring.newest_first():
        if record.outcome == PLACED and record.bound_seconds is None:
            continue
        node = record.node if record.outcome == PLACED else ""
        last = lines[-1] if lines else None
        if not node and last is not None and (last["pod"], last["node"], last["message"]) == (record.pod, "", record.message):
            last["attempts"] += 1
            continue
        if len(lines) == MOST_DECISIONS:
            break
        line = {"at": record.at, "pod": record.pod, "node": node, "message": record.message}
        lines.append(line | {"attempts": record.attempt if node else 1, "seconds": record.bound_seconds or 0.0})
    return lines


# --- pods -------------------------------------------------------------------------------------------------------------


def _pending(held_back: Iterable[QueuedPod], total: int) -> dict[str, Any]:
    """Return the pods that were refused or are kept from being tried, put together by what they were told."""
    groups: dict[str, dict[str, Any]] = {}
    looked_at = 0
    for entry in islice(held_back, MOST_QUEUED):
        looked_at += 1
        message = _message(entry)
        group = groups.get(message)
        if group is None:
            if len(groups) == MOST_GROUPS:
                continue
            group = groups[message] = {"message": message, "count": 0, "pods": [], "plugins": sorted(entry.rejectors)}
        group["count"] += 1
        if len(group["pods"]) < MOST_NAMES:
            group["pods"].append(
                {
                    "pod": entry.key,
                    "place": _place(entry),
                    "attempts": entry.attempts,
                    "since": entry.initial_attempt or entry.timestamp,
                }
            )
    return {"groups": sorted(groups.values(), key=lambda group: -group["count"]), "notLookedAt": total - looked_at}


def _message(entry: QueuedPod) -> str:
    """Return what the pod's condition says, word for word."""
    if entry.is_gated:
        return f"gated by {entry.gating_plugin}"
    condition = next((c for c in entry.view.pod.status.conditions if c.type == "PodScheduled"), None)
    return condition.message if condition is not None and condition.message else BEING_WRITTEN


def _place(entry: QueuedPod) -> str:
    if entry.is_gated:
        return "gated"
    return entry.sub_queue.name if entry.sub_queue is not None else ""


def _pod(engine: Engine, key: str) -> dict[str, Any] | None:
    """Return a pod with the nodes as they look to it now; a placed one is looked at as if one more like it came."""
    waiting, store = engine.intake.pod(key), engine.store
    placed = store.pod(waiting.uid) if waiting is not None else next((p for p in store.pods() if p.key == key), None)
    pod = placed or waiting
    if pod is None:
        return None
    shown = pod_report(engine, pod)
    advised = shown.get("advice", [])
    if advised:
        shown |= {"advice": [each["text"] for each in advised], "advised": advised}  # the page wants lines
    entry = engine.queue.find(key)
    if entry is not None:
        shown |= {"place": _place(entry), "attempts": entry.attempts, "plugins": sorted(entry.rejectors)}
        if entry.attempts or entry.is_gated:
            shown["message"] = _message(entry)
    return shown
