"""Planning: what would become of manifests, decided by the real engine in memory.

In: a captured cluster, manifests, and how to build an engine. Out: a `Plan`. The manifests are applied (`applying.py`), and the
engine works in virtual time until nothing more happens: queue order, gangs, nominations and preemption are its own. What it
writes comes back by a loopback (`loopback.py`). Nothing is written anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.apiserver.fake_cluster.volumes import ZONE
from kubesched.engine.assembly import Ports
from kubesched.engine.loop import Engine
from kubesched.simulator.captured import Captured
from kubesched.simulator.clock import VirtualClock, run_virtually
from kubesched.simulator.dryrun.applying import AppliedCluster, apply_manifests
from kubesched.simulator.dryrun.loopback import Loopback
from kubesched.simulator.dryrun.manifests import Manifest
from kubesched.simulator.dryrun.plan import Plan, PlannedPod, PlannedVictim, PlannedWorkload

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
    progress: Callable[[], None] | None = None,
) -> Plan:
    """Return where the pods of manifests would go; with `only`, as if no other pod of the cluster waited."""
    return decide(apply_manifests(cluster, manifests, namespace=namespace, only=only), build, progress)


def decide(applied: AppliedCluster, build: Build, progress: Callable[[], None] | None = None) -> Plan:
    """Let an engine place the pods that wait, and return what came of it."""
    return run_virtually(_decide(applied, build, Loopback(progress)))


async def _decide(applied: AppliedCluster, build: Build, loopback: Loopback) -> Plan:
    loop, cluster = asyncio.get_running_loop(), applied.cluster
    clock = VirtualClock(loop, epoch=cluster.at - loop.time())
    engine = build(cluster, Ports(clock=clock, writer=loopback, recorder=loopback, observer=loopback, seed=cluster.seed))
    loopback.follow(engine, cluster.of(Pod))
    await loopback.play(engine)
    by_uid = {victim.pod.uid: victim.by for victim in loopback.victims}
    keys = {pod.uid: pod.key for pod in cluster.of(Pod)}
    titles = {planned.pod.uid: workload.title for workload in applied.workloads for planned in workload.pods}

    def planned(pod: Pod) -> PlannedPod:
        if pod.uid in by_uid:
            return PlannedPod(pod, "", f"preempted by {keys.get(by_uid[pod.uid], by_uid[pod.uid])}")
        node = loopback.node_of(pod.uid)
        return PlannedPod(pod, node, "" if node else applied.problems.get(pod.uid) or _why(engine, loopback, pod))

    plan = Plan(warnings=list(applied.warnings), others=[planned(pod) for pod in applied.others if _is_ours(engine, pod)])
    plan.zones = {node.name: node.metadata.labels.get(ZONE, "") for node in cluster.of(Node)}
    for workload in applied.workloads:
        foreign = next((p.pod.spec.scheduler_name for p in workload.pods if not _is_ours(engine, p.pod)), "")
        pods = workload.pods if foreign else [planned(each.pod) for each in workload.pods]
        plan.workloads.append(PlannedWorkload(workload.kind, workload.namespace, workload.name, workload.note, foreign, pods))
    plan.victims = [
        PlannedVictim(victim.pod, keys.get(victim.by, victim.by), titles.get(victim.by, "")) for victim in loopback.victims
    ]
    return plan


def _is_ours(engine: Engine, pod: Pod) -> bool:
    return pod.spec.scheduler_name in engine.profiles


def _why(engine: Engine, loopback: Loopback, pod: Pod) -> str:
    """Return why a pod has no node: what its last attempt said, or the gate that keeps it from being tried."""
    if pod.uid in loopback.messages:
        return loopback.messages[pod.uid]
    queued = engine.queue.find(pod.key)
    if queued is not None and queued.is_gated:
        return engine.profiles[pod.spec.scheduler_name].pre_enqueue(queued.view, "").message
    return _UNENDED
