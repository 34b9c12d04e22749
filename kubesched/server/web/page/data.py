"""The data of the web page: node columns, counts, decisions, and explanations of pods.

In: the running engine with its decisions, and the history. Out: values that can be encoded as JSON. A client that names the
version of the node columns it has gets them again only if they changed; versions contain a random id of the process, so
columns of an earlier process are never taken for ours. Everything here reads. An explanation is computed in the engine's own
turn, through the inbox: there the store does not change, and no pod is being scheduled.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import msgspec

from kubesched.errors import SchedulerError
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine import PLACED, DecisionRing, Engine, document, node_verdict, node_verdicts, pod_report
from kubesched.scheduler.queue import QueuedPod
from kubesched.server.web.page.node_columns import facts, fingerprint, label_column, one_node, pods_inside, usage
from kubesched.server.web.page.node_columns import usage_version as usage_version_of
from kubesched.server.web.page.profiles_data import configuration_of
from kubesched.server.web.page.queue_data import QueueData, counts_of, message_of
from kubesched.server.web.page.throughput import Throughput

MOST_DECISIONS = 60  # on the overview
MOST_OF_POD = 20
MOST_CHANGES = 200
MOST_NAMES = 8
_SAME_MOMENT_SECONDS = 2.0
_PATIENCE_SECONDS = 10.0  # for the engine's turn

Document = Mapping[str, Any]
Answer = TypeVar("Answer")
WHAT_IFS = ("plan", "compare", "snapshot")
"""What a page may offer to ask on any cluster; nothing of it writes."""


class NotReady(SchedulerError):
    """There is no engine yet, or it is too busy. The client should try again."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of the columns that the client has; empty for none."""

    nodes: str = ""
    usage: str = ""


class EnginePageData:
    """The data of the engine that runs now. A changed configuration brings a new engine."""

    def __init__(self, engine: Callable[[], Engine | None], throughput: Throughput) -> None:
        self._engine = engine
        self._throughput = throughput
        self.process = secrets.token_hex(8)
        self.offers: tuple[str, ...] = ()
        """What else this server can do; the page shows as much of its Try view."""
        self.is_observing = False
        """Whether another scheduler places the pods, and this process only looks."""
        self._started = time.time()
        self._encoded: dict[str, tuple[str, msgspec.Raw]] = {}
        self._queue_data = QueueData(self._in_turn)

    def state(self, seen: Versions) -> dict[str, Any]:
        """Return the current state, without the columns that the client already has."""
        engine = self._running()
        nodes, throughput = engine.store.snapshot(), self._throughput
        node_version = f"{self.process}-{fingerprint(nodes)}"
        usage_version = f"{self.process}-{usage_version_of(nodes)}"
        picture: dict[str, Any] = {
            "process": self.process,
            "startedAt": self._started,
            "versions": {"nodes": node_version, "usage": usage_version},
            "isLeading": engine.is_leading,
            "isObserving": self.is_observing,
            "profiles": list(engine.profiles),
            "offers": list(self.offers),
            "nodeCount": nodes.n,
            "podCount": engine.store.n_pods - engine.store.n_assumed,
            "boundCount": throughput.n_bound,
            "podsPerSecond": throughput.pods_per_second(),
            "boundPerSecond": throughput.per_second(),
            "queue": counts_of(engine),
            "decisions": _decisions(engine.decisions.ring) if engine.decisions is not None else [],
        }
        if seen.nodes != node_version:
            picture["nodes"] = self._once("nodes", node_version, lambda: facts(nodes))
        if seen.usage != usage_version or "nodes" in picture:
            picture["usage"] = self._once("usage", usage_version, lambda: usage(nodes))
        return picture

    async def queue(self, part: str, search: str) -> dict[str, Any]:
        """Return the pods in the queue, by its parts."""
        return self._dated(await self._queue_data.pods(self._running(), part, search))

    async def pending(self) -> dict[str, Any]:
        """Return the pods that cannot be scheduled, grouped by what would help them."""
        return self._dated(await self._queue_data.groups(self._running()))

    async def pod(self, key: str) -> dict[str, Any] | None:
        """Return a pod, and how every node looks to it now; None for an unknown pod."""
        return await self._dated_in_turn(lambda engine: _pod(engine, key))

    async def pod_nodes(self, key: str) -> dict[str, Any] | None:
        """Return, for a pod, which plugin rejects each node or what the node scores, in the order of the node columns."""

        def question(engine: Engine) -> dict[str, Any] | None:
            pod = _find(engine, key)
            if pod is None or pod.pod.spec.scheduler_name not in engine.profiles:
                return None
            version = f"{self.process}-{fingerprint(engine.store.snapshot())}"
            return {"pod": key, "nodesVersion": version, **node_verdicts(engine, pod)}

        return await self._dated_in_turn(question)

    async def pod_node(self, key: str, node_name: str) -> dict[str, Any] | None:
        """Return the verdict of every plugin about one node for a pod; None if either is unknown."""

        def question(engine: Engine) -> dict[str, Any] | None:
            pod = _find(engine, key)
            if pod is None or pod.pod.spec.scheduler_name not in engine.profiles:
                return None
            return node_verdict(engine, pod, node_name)

        return await self._dated_in_turn(question)

    def pod_decisions(self, key: str) -> dict[str, Any]:
        """Return the recorded decisions about a pod, newest first; also of a pod that is gone."""
        recorder = self._running().decisions
        found = islice(recorder.ring.of_pod(key), MOST_OF_POD) if recorder is not None else ()
        shown = [document(record) for record in found]
        return self._dated({"pod": key, "isRecorded": recorder is not None, "decisions": shown})

    async def node(self, name: str) -> dict[str, Any] | None:
        """Return a node with its pods; None if it is not known."""
        return await self._dated_in_turn(lambda engine: one_node(engine.store.snapshot(), name))

    async def pods_inside(self) -> dict[str, Any]:
        """Return the pods on nodes as columns, with the version of the node columns that they refer to."""

        def question(engine: Engine) -> dict[str, Any]:
            nodes = engine.store.snapshot()
            return {"nodesVersion": f"{self.process}-{fingerprint(nodes)}", **pods_inside(nodes)}

        return await self._in_turn(question)

    def label(self, key: str) -> dict[str, Any]:
        """Return a label of all nodes as a column."""
        nodes = self._running().store.snapshot()
        return {"nodesVersion": f"{self.process}-{fingerprint(nodes)}", **label_column(nodes, key)}

    def history(self, after: float) -> dict[str, Any]:
        """Return the figures of the last hours after a time, as columns."""
        self._running()
        return {"process": self.process, **self._throughput.history.columns(after)}

    def node_changes(self, since: float, until: float) -> dict[str, Any]:
        """Return the changes of nodes in a time, newest first; equal changes within two seconds are one entry."""
        recorder = self._running().decisions
        groups: list[dict[str, Any]] = []
        for change in recorder.node_changes.between(since, until) if recorder is not None else ():
            last = groups[-1] if groups else None
            if last is not None and last["text"] == change.text and last["at"] - change.at < _SAME_MOMENT_SECONDS:
                last["count"] += 1
                if len(last["nodes"]) < MOST_NAMES:
                    last["nodes"].append(change.node)
                continue
            if len(groups) == MOST_CHANGES:
                break
            groups.append({"at": change.at, "text": change.text, "count": 1, "nodes": [change.node]})
        return self._dated({"isRecorded": recorder is not None, "changes": groups})

    def configuration(self) -> dict[str, Any]:
        """Return the profiles with their plugins."""
        return configuration_of(self._running())

    def _running(self) -> Engine:
        engine = self._engine()
        if engine is None:
            raise NotReady("the scheduler is starting")
        return engine

    def _dated(self, document: dict[str, Any]) -> dict[str, Any]:
        """Add the time and the process to a document."""
        return document | {"at": time.time(), "process": self.process}

    async def _dated_in_turn(self, question: Callable[[Engine], dict[str, Any] | None]) -> dict[str, Any] | None:
        found = await self._in_turn(question)
        return self._dated(found) if found is not None else None

    def _once(self, what: str, version: str, make: Callable[[], Any]) -> msgspec.Raw:
        """Encode columns once for all clients."""
        known = self._encoded.get(what)
        if known is None or known[0] != version:
            known = self._encoded[what] = version, msgspec.Raw(msgspec.json.encode(make()))
        return known[1]

    async def _in_turn(self, question: Callable[[Engine], Answer]) -> Answer:
        """Run a question between two decisions of the engine."""
        try:
            return await asyncio.wait_for(self._running().in_turn(question), _PATIENCE_SECONDS)
        except TimeoutError as error:
            raise NotReady("the scheduler is busy and did not answer in time") from error


def _decisions(ring: DecisionRing) -> list[dict[str, Any]]:
    """Return the last pods that were bound or rejected, newest first. Equal rejections of a pod in a row are one line."""
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


def _find(engine: Engine, key: str) -> PodView | None:
    """Return a pod by namespace/name: as it is placed or assumed, or as it waits."""
    waiting, store = engine.intake.pod(key), engine.store
    placed = store.pod(waiting.uid) if waiting is not None else next((p for p in store.pods() if p.key == key), None)
    return placed or waiting


def _pod(engine: Engine, key: str) -> dict[str, Any] | None:
    """Return a pod with the nodes as they look to it now. A placed pod is treated as if one more like it came."""
    pod = _find(engine, key)
    if pod is None:
        return None
    shown = pod_report(engine, pod)
    shown["labels"] = dict(pod.labels)
    entry = engine.queue.find(key)
    if entry is not None:
        shown |= _waiting(engine, entry)
    return shown


def _waiting(engine: Engine, entry: QueuedPod) -> dict[str, Any]:
    """Return where in the queue a pod is, and until when."""
    place = engine.queue.place_of(entry.key)
    shown: dict[str, Any] = {"place": place, "attempts": entry.attempts, "plugins": sorted(entry.rejectors)}
    if entry.attempts or entry.is_gated:
        shown["message"] = message_of(entry)
    if place == "backoff" and entry.backoff_expiry is not None:
        shown["backoffUntil"] = entry.backoff_expiry
    return shown
