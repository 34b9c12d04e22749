"""What must never happen, and what must be so once everything has calmed down.

In: a world. Out: violations in its history, in the moment in which they happen: a pod whose node changes, a node over its
capacity, a write of somebody who does not lead. And, on request, what still stands between the world and its rest: a pod
that fits and is not bound, a cache that differs from the API, something that is booked, queued or under way for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from chaos.processes import Process
from chaos.world import SchedulerHost, World
from kubesched.apiserver.write_ahead_log import Record

_FINISHED = ("Succeeded", "Failed")
_LEASE = "kube-system/kube-scheduler"
MOST_LINKS = 120
"""Connections of one scheduler: a watch for every kind, and as many writes as may be under way."""


class Checker:
    """Watches one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._violated = world.history.violated
        self._node_of: dict[str, str] = {}
        self._last_binder: dict[str, SchedulerHost] = {}
        self._n_bound = 0
        world.server.wrote = self.wrote
        world.network.on_request = self.requested

    # While it happens

    def requested(self, process: Process, method: str, path: str) -> None:
        """Look at a request in the moment in which a client sends it."""
        if method == "GET" or "/pods/" not in path or not process.name.startswith("scheduler-"):
            return
        number = int(process.name.removeprefix("scheduler-").partition(".")[0])
        if path.endswith("/binding"):
            parts = path.split("/")
            self._last_binder[f"{parts[4]}/{parts[6]}"] = self._world.schedulers[number]
        holder = self._leader()
        if holder and holder != process.name.replace(".", "_"):
            self._violated(f"{process.name} sends {method} {path} while {holder} leads")

    def wrote(self, record: Record) -> None:
        """Look at a write of the server."""
        _, table, key, raw = record
        if table != "pods" or not raw:
            return
        pod = msgspec.json.decode(raw)
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        before = self._node_of.get(uid, "")
        if before and node != before:
            self._violated(f"pod {key} moves from {before} to {node or 'nowhere'}")
        if node and not before:
            self._node_of[uid] = node
            self._check_room(key, pod, node)

    def _check_room(self, key: str, pod: dict[str, Any], node_name: str) -> None:
        """Complain when a node is over its capacity and the one who decided could know that."""
        server = self._world.server
        node = next((node for node in server.entries("nodes") if node["metadata"]["name"] == node_name), None)
        if node is None:
            return
        others = [other for other in server.entries("pods") if _is_on(other, node_name) and _uid(other) != _uid(pod)]
        if _fits(node, [*others, pod]):
            return
        binder = self._last_binder.get(key)
        scheduler = binder.scheduler if binder is not None else None
        if scheduler is None or scheduler.engine is None:
            return
        # Whoever has a watch that lags behind decides on what he knows; that is no fault of his.
        if all(scheduler.engine.store.pod(_uid(other)) is not None for other in others):
            self._violated(f"pod {key} is bound to {node_name}, which has no room for it")

    def _leader(self) -> str:
        server = self._world.server
        if not server.is_up:
            return ""
        lease = server.store.context.storage.table("leases.coordination.k8s.io").entries.get(_LEASE)
        return lease.obj["spec"].get("holderIdentity", "") if lease is not None else ""

    # When everything has calmed down

    def unrest(self) -> list[str]:
        """Return what is not yet as it must be in the end."""
        return list(self._unrest())

    def _unrest(self) -> Iterator[str]:
        server = self._world.server
        if not server.is_up:
            yield "the API server is down"
            return
        leaders = [host.name for host in self._world.schedulers if host.scheduler is not None and host.scheduler.is_leader]
        if len(leaders) != 1:
            yield f"{len(leaders)} schedulers lead: {' '.join(leaders)}"
        pods = [pod for pod in server.entries("pods") if pod.get("status", {}).get("phase") not in _FINISHED]
        yield from self._forgotten(pods)
        for host in self._world.schedulers:
            yield from self._beliefs(host, pods)

    def _forgotten(self, pods: list[dict[str, Any]]) -> Iterator[str]:
        """Yield the pods that would fit on a node and are on none."""
        nodes = [node for node in self._world.server.entries("nodes") if _takes_pods(node)]
        for pod in pods:
            if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
                continue
            for node in nodes:
                if _fits(node, [pod, *(other for other in pods if _is_on(other, node["metadata"]["name"]))]):
                    yield f"pod {pod['metadata']['name']} fits on {node['metadata']['name']} and is not bound"
                    break

    def _beliefs(self, host: SchedulerHost, pods: list[dict[str, Any]]) -> Iterator[str]:
        """Yield what a scheduler believes and what is not so."""
        scheduler, name = host.scheduler, host.name
        if scheduler is None or scheduler.engine is None or scheduler.reflectors is None or not scheduler.is_synced:
            yield f"{name} does not follow the API"
            return
        server, engine = self._world.server, scheduler.engine
        for kind, reflector in scheduler.reflectors.by_kind.items():
            seen = {key: obj.metadata.resource_version for key, obj in reflector.objects.items()}
            selector = reflector._watched.field_selector
            listing = server.store.list(_resource(reflector._watched), field_selector=selector)
            there = {entry.key: str(entry.version) for entry in listing.entries}
            if seen != there:
                wrong = sorted(key for key in seen.keys() | there.keys() if seen.get(key) != there.get(key))
                yield f"{name} has another {kind} {', '.join(wrong[:3])} than the API"
        bound = {_uid(pod): pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}
        believed = {pod.uid: pod.node_name for pod in engine.store.pods()}
        if believed != bound:
            wrong = sorted(uid for uid in believed.keys() | bound.keys() if believed.get(uid) != bound.get(uid))
            yield f"{name} believes of {wrong[:3]} what is not so"
        pending = {_uid(pod) for pod in pods if not pod["spec"].get("nodeName")}
        queued = {pod.uid for pod in engine.intake.pending()}
        if queued != pending:
            yield f"{name} queues {len(queued)} pods while {len(pending)} wait"
        waiting = {pod.key for pod in engine.intake.pending() if engine.queue.find(pod.key) is None}
        if waiting:
            yield f"{name} has lost {sorted(waiting)[:3]} from its queue"
        for what, count in (
            ("assumed pods", engine.store.n_assumed),
            ("bindings under way", len(engine.bookings)),
            ("arrivals in the inbox", len(engine.inbox)),
            ("events in flight", sum(engine.queue.in_flight_events().values())),
        ):
            if count:
                yield f"{name} has {count} {what}"
        links = self._world.network.n_links_of(host.process.name if host.process is not None else "")
        if links > MOST_LINKS:
            yield f"{name} has {links} connections"


def _uid(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["uid"])


def _resource(watched: Any) -> str:
    group = watched.api_versions[0].rpartition("/")[0]
    return f"{watched.plural}.{group}" if group else str(watched.plural)


def _is_on(pod: dict[str, Any], node_name: str) -> bool:
    return pod["spec"].get("nodeName") == node_name and pod.get("status", {}).get("phase") not in _FINISHED


def _takes_pods(node: dict[str, Any]) -> bool:
    return not node["spec"].get("unschedulable") and not node["spec"].get("taints")


def _cpu(pod: dict[str, Any]) -> int:
    return sum(_milli(one.get("resources", {}).get("requests", {}).get("cpu", "0")) for one in pod["spec"]["containers"])


def _milli(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def _fits(node: dict[str, Any], pods: list[dict[str, Any]]) -> bool:
    room = node["status"].get("allocatable") or node["status"].get("capacity") or {}
    return sum(map(_cpu, pods)) <= _milli(room.get("cpu", "0")) and len(pods) <= int(room.get("pods", "0"))
