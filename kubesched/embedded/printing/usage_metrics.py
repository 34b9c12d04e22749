"""metrics.k8s.io: made-up usage of nodes and pods, so that `kubectl top` has something to show.

In: running pods and their requests. Out: NodeMetrics and PodMetrics. Nothing runs, so nothing is measured. A container uses a
share of its requests that follows from its pod's uid and changes a little over ten minutes, so all clients see the same. A
node uses what its pods use, and something for itself.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Iterator

from kubesched.embedded.admission.amounts import amount
from kubesched.embedded.api_errors import not_found
from kubesched.embedded.clock import timestamp
from kubesched.embedded.schema.resources import METRICS_GROUP, Object, Resource
from kubesched.embedded.storage.watch import Entry
from kubesched.embedded.verbs.context import Context
from kubesched.embedded.verbs.reading import Listing, ListQuery, list_objects
from kubesched.kube.values import quantity

_WINDOW_SECONDS = 15  # of metrics-server; usage stays the same within one
_DRIFT_SECONDS = 600.0  # usage rises and falls within this time
_NANO = 10**9
_CPU_OF_NOTHING, _MEMORY_OF_NOTHING = _NANO // 100, 32 * 2**20 * _NANO  # of a container that asks for nothing
_CPU_OF_A_NODE, _MEMORY_OF_A_NODE = _NANO // 10, 400 * 2**20 * _NANO


def is_metrics(resource: Resource) -> bool:
    """Return whether a resource is made up here and stored nowhere."""
    return resource.group == METRICS_GROUP


def list_metrics(context: Context, resource: Resource, query: ListQuery) -> Listing:
    """Return the metrics of the nodes or pods that a list would return."""
    found = list_objects(context, context.resource(resource.plural), dataclasses.replace(query, limit=0))
    by_node = _node_usage(context) if resource.plural == "nodes" else {}
    made = [_metrics(context, resource, entry, by_node) for entry in found.entries]
    return Listing([one for one in made if one is not None], found.version)


def get_metrics(context: Context, resource: Resource, namespace: str, name: str) -> Entry:
    """Return the metrics of one node or pod; a pod that does not run has none."""
    entry = context.find(context.resource(resource.plural), namespace, name)
    by_node = _node_usage(context) if resource.plural == "nodes" else {}
    found = _metrics(context, resource, entry, by_node) if entry is not None else None
    if found is None:
        raise not_found(resource, name)
    return found


def _metrics(context: Context, resource: Resource, entry: Entry, by_node: dict[str, tuple[int, int]]) -> Entry | None:
    """Return the metrics of one object, or None."""
    now, held = context.clock.now(), entry.obj["metadata"]
    metadata: Object = {"name": held["name"], "creationTimestamp": timestamp(now), "labels": dict(held.get("labels") or {})}
    obj: Object = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    obj |= {"timestamp": timestamp(now), "window": f"{_WINDOW_SECONDS}s"}
    if resource.plural == "nodes":
        cpu, memory = by_node.get(held["name"], (0, 0))
        return Entry(entry.key, {**obj, "usage": _shown(cpu + _CPU_OF_A_NODE, memory + _MEMORY_OF_A_NODE)}, entry.version)
    if not _is_running(entry.obj):
        return None
    metadata["namespace"] = held["namespace"]
    obj["containers"] = [{"name": name, "usage": _shown(cpu, memory)} for name, cpu, memory in _containers(entry.obj, now)]
    return Entry(entry.key, obj, entry.version)


def _node_usage(context: Context) -> dict[str, tuple[int, int]]:
    """Return what the pods of each node use: cpu and memory, in billionths."""
    found: dict[str, tuple[int, int]] = {}
    now = context.clock.now()
    for entry in context.storage.table("pods").entries.values():
        if _is_running(entry.obj):
            node = entry.obj["spec"].get("nodeName", "")
            for _, cpu, memory in _containers(entry.obj, now):
                before = found.get(node, (0, 0))
                found[node] = (before[0] + cpu, before[1] + memory)
    return found


def _is_running(pod: Object) -> bool:
    return bool((pod.get("status") or {}).get("phase") == "Running")


def _containers(pod: Object, now: float) -> Iterator[tuple[str, int, int]]:
    """Yield name, cpu and memory of each container."""
    for container in pod["spec"]["containers"]:
        dice = zlib.crc32(f"{pod['metadata']['uid']} {container['name']}".encode()) / 2**32
        wave = math.sin(2 * math.pi * (now // _WINDOW_SECONDS * _WINDOW_SECONDS / _DRIFT_SECONDS + dice))
        wanted = (container.get("resources") or {}).get("requests") or {}
        cpu = amount(wanted.get("cpu", "0")) or _CPU_OF_NOTHING
        memory = amount(wanted.get("memory", "0")) or _MEMORY_OF_NOTHING
        yield container["name"], int(cpu * (0.25 + 0.5 * dice + 0.15 * wave)), int(memory * (0.4 + 0.5 * dice))


def _shown(cpu_nano: int, memory_nano: int) -> dict[str, str]:
    kibibytes = memory_nano // (1024 * _NANO)
    return {"cpu": quantity.format_quantity(cpu_nano), "memory": f"{kibibytes}Ki"}
