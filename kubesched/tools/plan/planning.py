"""Planning: what would become of manifests, decided by the real engine in memory.

In: a captured cluster, manifests, and how to build an engine. Out: a `Plan`. The manifests are applied (`applying.py`), and the
engine works in a simulation until nothing more happens: queue order, gangs, nominations and preemption are its own, and what
it writes becomes true in the simulated cluster, whose controllers replace nothing. If groups of nodes may grow, those that pods
wait for are added, and the engine goes on. Nothing is written anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kubesched.kube.api import Node, Pod, is_finished
from kubesched.kube.values import ZONE
from kubesched.scheduler.engine import Engine, Ports
from kubesched.solver.node_groups import DaemonSetPods, GroupSizes, NewNode, NodeEstimator, NodeGroup
from kubesched.tools.node_groups.consolidation import spare_nodes
from kubesched.tools.plan.applying import AppliedCluster, apply_manifests
from kubesched.tools.plan.manifests import Manifest
from kubesched.tools.plan.plan import AddedNode, Plan, PlannedPod, PlannedVictim, PlannedWorkload
from kubesched.tools.simulation.cluster.simulated_cluster import PREEMPTED
from kubesched.tools.simulation.pod_record import PENDING, PodRecord
from kubesched.tools.simulation.simulation import Simulation
from kubesched.tools.snapshots.captured import Captured, after_what_it_needs

Build = Callable[[Captured, Ports], Engine]
"""How an engine is made that believes in a cluster."""

_UNENDED = "not decided when the plan ended"


def make_plan(
    cluster: Captured,
    manifests: Sequence[Manifest],
    build: Build,
    *,
    namespace: str = "default",
    only: bool = False,
    groups: Sequence[NodeGroup] = (),
    consolidates: bool = False,
) -> Plan:
    """Return where the pods of manifests would go; with `only`, as if no other pod of the cluster waited."""
    applied = apply_manifests(cluster, manifests, namespace=namespace, only=only)
    return decide(applied, build, groups=groups, consolidates=consolidates)


def decide(
    applied: AppliedCluster,
    build: Build,
    progress: Callable[[], None] | None = None,
    *,
    groups: Sequence[NodeGroup] = (),
    consolidates: bool = False,
) -> Plan:
    """Let an engine place the pods that wait, on nodes that `groups` grow by where it must be; return what came of it, and if
    asked, which nodes could go then."""
    cluster, victims = applied.cluster, []

    def note(event: dict[str, Any]) -> None:
        if event["event"] == "deleted" and event.get("why") == PREEMPTED:
            victims.append(event["pod"])
        if progress is not None and event["event"] in ("placed", "refused"):
            progress()

    empty = Captured(cluster.at, [], cluster.seed)
    with Simulation(build=lambda ports: build(empty, ports), seed=cluster.seed, epoch=cluster.at, journal=note) as sim:
        sim.world.replaces = False
        for obj in sorted(cluster.objects, key=after_what_it_needs):
            if not (isinstance(obj, Pod) and is_finished(obj)):
                sim.add(obj)
        sim.run()
        if not groups:
            return _told(applied, sim, victims)
        sizes, daemons = GroupSizes(groups, cluster.of(Node)), DaemonSetPods([*cluster.of(Pod), *applied.daemons])
        added = grow(sim, sizes, daemons)
        plan = _told(applied, sim, victims)
        plan.zones = {name: _zone(node) for name, node in sim.nodes.items()}
        plan.added = [
            AddedNode(new.name, new.group.name, new.group.price, _zone(new.node), n_pods)
            for new in added
            if (n_pods := sum(not record.is_daemon for record in sim.world.pods_on(new.name)))
        ]
        plan.spared = spare_nodes(sim.engine, sizes, daemons) if consolidates else None
        return plan


def grow(sim: Simulation, sizes: GroupSizes, daemons: DaemonSetPods) -> list[NewNode]:
    """Add the nodes that pods wait for, let the engine decide, and again until nobody waits whom a node would help."""
    estimator, added = NodeEstimator(sim.engine, sizes, daemons), list[NewNode]()
    while waiting := [record.pod for record in sim.pods.values() if record.state == PENDING and record.note]:
        new = estimator.estimate(waiting)
        for each in new:
            sim.add(each.node)
            for pod in daemons.on(each.node):
                sim.add(pod)
        sim.run()
        n_left = sum(record.state == PENDING and bool(record.note) for record in sim.pods.values())
        if n_left >= len(waiting):  # what stands in their way is no filter: nodes do not help
            for each in reversed(new):
                sim.world.drop_node(each.name)
                sizes.take_back(each.name)
            break
        added += new
    return added


def _zone(node: Node) -> str:
    return (node.metadata.labels or {}).get(ZONE, "")


def _told(applied: AppliedCluster, sim: Simulation, victims: Sequence[str]) -> Plan:
    engine, cluster, records = sim.engine, applied.cluster, sim.pods
    titles = {planned.pod.key: workload.title for workload in applied.workloads for planned in workload.pods}

    def planned(pod: Pod) -> PlannedPod:
        if why := applied.refused.get(pod.uid):
            return PlannedPod(pod, "", why)
        record = records[pod.key]
        if pod.key in victims:
            return PlannedPod(pod, "", f"preempted by {record.preempted_by}")
        return PlannedPod(pod, record.node, "" if record.node else applied.problems.get(pod.uid) or _why(engine, record, pod))

    plan = Plan(warnings=list(applied.warnings), others=[planned(pod) for pod in applied.others if _is_ours(engine, pod)])
    plan.zones = {node.name: _zone(node) for node in cluster.of(Node)}
    for workload in applied.workloads:
        foreign = next((p.pod.spec.scheduler_name for p in workload.pods if not _is_ours(engine, p.pod)), "")
        pods = workload.pods if foreign else [planned(each.pod) for each in workload.pods]
        plan.workloads.append(PlannedWorkload(workload.kind, workload.namespace, workload.name, workload.note, foreign, pods))
    plan.victims = [PlannedVictim(records[key].pod, by := records[key].preempted_by, titles.get(by, "")) for key in victims]
    return plan


def _is_ours(engine: Engine, pod: Pod) -> bool:
    return pod.spec.scheduler_name in engine.profiles


def _why(engine: Engine, record: PodRecord, pod: Pod) -> str:
    """Return why a pod has no node: what its last attempt said, or the gate that keeps it from being tried."""
    if record.note:
        return record.note
    queued = engine.queue.find(pod.key)
    if queued is not None and queued.is_gated:
        return engine.profiles[pod.spec.scheduler_name].pre_enqueue(queued.view, "").message
    return _UNENDED
