"""The cache debugger: on SIGUSR2, compare the store and the queue with the watches, and log both.

A difference is logged as `Cache mismatch`, with names of nodes and uids of pods. Then the nodes with their pods and the queue
are logged. A pod that is in flight, and a pod of another scheduler without a node, are in neither structure and are reported
as missed; kube-scheduler does the same. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kubesched.kube.api import Node, Pod, is_finished
from kubesched.scheduler.cluster import NATIVE_RESOURCES, PodView
from kubesched.scheduler.engine.arrivals.inbox import LoopCall
from kubesched.scheduler.engine.core import EngineState
from kubesched.telemetry import logger

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Names of nodes and uids of pods. The missed ones are only in the watches, the redundant ones only in the store or
    queue."""

    missed_nodes: tuple[str, ...] = ()
    redundant_nodes: tuple[str, ...] = ()
    missed_pods: tuple[str, ...] = ()
    redundant_pods: tuple[str, ...] = ()


def debug_later(engine: EngineState, nodes: Callable[[], Iterable[Node]], pods: Callable[[], Iterable[Pod]]) -> None:
    """Compare and dump in the engine's loop, once everything that the watches have delivered so far is applied."""

    def look() -> None:
        # A second call, posted from the first one, runs when the inbox is empty but for it. Nothing can arrive in between,
        # because the loop does not give up control while it empties the inbox.
        engine.inbox.post(LoopCall(lambda: debug(engine, nodes(), pods())))

    engine.inbox.post(LoopCall(look))


def debug(engine: EngineState, nodes: Iterable[Node], pods: Iterable[Pod]) -> None:
    """Compare, then log everything."""
    log.v(3).info("Cache comparer started")
    found = compare(engine, nodes, pods)
    if found.missed_nodes or found.redundant_nodes:
        log.info("Cache mismatch", missedNodes=list(found.missed_nodes), redundantNodes=list(found.redundant_nodes))
    if found.missed_pods or found.redundant_pods:
        log.info("Cache mismatch", missedPods=list(found.missed_pods), redundantPods=list(found.redundant_pods))
    log.v(3).info("Cache comparer finished")
    log.info("Dump of cached NodeInfo", nodes="\n\n".join(dump_nodes(engine)))
    summary, lines = dump_queue(engine)
    log.info("Dump of scheduling queue", summary=summary, pods="".join(lines))


def compare(engine: EngineState, nodes: Iterable[Node], pods: Iterable[Pod]) -> Mismatch:
    """Return how store and queue differ from the watches."""
    known_nodes = set(engine.store.nodes.names)
    real_nodes = {node.metadata.name for node in nodes}
    known_pods = {pod.uid for pod in engine.store.pods()} | {queued.view.uid for queued in engine.queue}
    real_pods = {pod.metadata.uid for pod in pods if not is_finished(pod)}
    return Mismatch(
        missed_nodes=tuple(sorted(real_nodes - known_nodes)),
        redundant_nodes=tuple(sorted(known_nodes - real_nodes)),
        missed_pods=tuple(sorted(real_pods - known_pods)),
        redundant_pods=tuple(sorted(known_pods - real_pods)),
    )


def dump_nodes(engine: EngineState) -> Iterable[str]:
    """Yield a paragraph for each node, also for nodes that are gone while pods still name them."""
    store, nominations, snapshot = engine.store, engine.queue.nominations, engine.store.snapshot()
    resources = store.templates.resources.by_name()
    names = dict.fromkeys((*store.nodes.names, *(pod.node_name for pod in store.pods())))
    for name in names:
        row = store.nodes.rows.get(name)
        on_node = store.pods_on(name).values()
        requested, offered, allowed = {}, {}, 0
        if row is not None:
            requested = {resource: snapshot.requested_at(rid, row) for resource, rid in resources.items()}
            offered = {resource: snapshot.allocatable_at(rid, row) for resource, rid in resources.items()}
            allowed = int(snapshot.allowed_pods[row])
        lines = [
            f"Node name: {name}\n",
            f"Deleted: {'true' if row is None else 'false'}\n",
            f"Requested Resources: {_resources(requested, 0)}\n",
            f"Allocatable Resources:{_resources(offered, allowed)}\n",
            f"Scheduled Pods(number: {len(on_node)}):\n",
            *map(_line, on_node),
        ]
        nominated = list(nominations.on_node(name))
        if nominated:
            lines += [f"Nominated Pods(number: {len(nominated)}):\n", *map(_line, nominated)]
        yield "".join(lines)


def dump_queue(engine: EngineState) -> tuple[str, list[str]]:
    """Return how many pods are in each sub-queue, and a line for each of them."""
    queue = engine.queue
    waiting = queue.n_unschedulable + queue.n_gated
    summary = f"activeQ:{queue.n_active}; backoffQ:{queue.n_backoff}; unschedulablePods:{waiting}"
    return summary, [_line(queued.view) for queued in queue]


def _line(view: PodView) -> str:
    pod = view.pod
    return (
        f"name: {view.name}, namespace: {view.namespace}, uid: {view.uid}, phase: {pod.status.phase}, "
        f"nominated node: {pod.status.nominated_node_name}\n"
    )


def _resources(amounts: dict[str, int], allowed_pods: int) -> str:
    """Return amounts in kube-scheduler's format: three resources by name, all others in a map."""
    scalars = " ".join(
        f"{name}:{amount}" for name, amount in sorted(amounts.items()) if amount and name not in NATIVE_RESOURCES
    )
    cpu, memory, storage = (amounts.get(name, 0) for name in NATIVE_RESOURCES)
    return (
        f"&{{MilliCPU:{cpu} Memory:{memory} EphemeralStorage:{storage} AllowedPodNumber:{allowed_pods} "
        f"ScalarResources:map[{scalars}]}}"
    )
