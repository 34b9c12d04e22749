"""The story of a pod, of a workload, or of all pods that wait, as the document that `why` prints.

In: a cluster that was read and how its pods are decided, or the address of a running scheduler. Out: the document of one pod
(`engine.explaining.pod_report`), or that of groups of pods that the same change would help (`pending_groups`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from kubesched.errors import NotFound, SchedulerError
from kubesched.kube.api import Pod
from kubesched.kube.client import (
    SchedulerAddress,
    ask_about_pod,
    ask_for_decisions_about,
    connect,
    get_object,
    kubectl_credentials,
)
from kubesched.scheduler.engine import GONE, PendingGroups, alike, pod_report, workload_of
from kubesched.tools.decisions.finding import newest_placement
from kubesched.tools.snapshots.captured import Captured
from kubesched.tools.snapshots.sources import Policy

Story = dict[str, Any]


def story_of_scheduler(address: SchedulerAddress, namespace: str, name: str, top: int) -> Story:
    """Return what a running scheduler says of a pod: as it was decided, and as it is now, if it is there."""
    decided = newest_placement(asyncio.run(ask_for_decisions_about(address, namespace, name)))
    try:
        story = asyncio.run(ask_about_pod(address, namespace, name))
    except NotFound as error:
        if decided is None:
            raise SchedulerError(
                f"pod {namespace}/{name} is neither queued nor placed here, and no decision about it is on record, "
                f"says the scheduler at {address.url}"
            ) from error
        return {"pod": f"{namespace}/{name}", "state": GONE, "node": decided["node"], "decided": decided}
    if decided is not None and story["node"]:
        story["decided"] = decided
    if "ranking" in story:  # its node stays in, however far behind
        ranking, home = story["ranking"], story["node"]
        story["ranking"] = ranking[:top] + [each for each in ranking[top:] if each["node"] == home]
    return story


def story_of_pod(cluster: Captured, policy: Policy, pod: Pod, top: int) -> Story:
    """Return the story of one pod."""
    engine = policy.engine(cluster)
    return pod_report(engine, engine.store.pod(pod.metadata.uid) or engine.store.view(pod), top=top, preempts=True)


def story_of_workload(cluster: Captured, policy: Policy, kind: str, namespace: str, name: str, top: int) -> Story:
    """Return the story of one pod that speaks for all of a workload, or their groups if they wait for different things."""
    members = [pod for pod in cluster.of(Pod) if pod.metadata.namespace == namespace and _is_of(pod, kind, name)]
    if not members:
        raise SchedulerError(f"{kind} {namespace}/{name} has no pods, or is not there")
    pending = [pod for pod in members if not pod.spec.node_name]
    if len(pending) > 1:
        groups = story_of_pending(cluster, policy, pending)
        if len(groups["groups"]) > 1:
            return groups
    story = story_of_pod(cluster, policy, (pending or members)[0], top)
    return {**story, "othersLikeIt": len(pending or members) - 1, "of": f"{kind} {namespace}/{name}"}


def story_of_pending(cluster: Captured, policy: Policy, pods: Iterable[Pod]) -> Story:
    """Return pods that wait, in groups; the largest first. Replicas of one template are explained once."""
    engine = policy.engine(cluster)
    reports: dict[tuple[Any, ...], dict[str, Any]] = {}
    groups = PendingGroups()
    for pod in map(engine.store.view, pods):
        key = alike(pod)
        if (report := reports.get(key)) is None:
            report = reports[key] = pod_report(engine, pod, top=1)
        groups.add(pod, report)
    return groups.document()


def pending_pods(cluster: Captured, namespace: str) -> list[Pod]:
    """Return the pods that have no node, of one namespace or of all."""
    return [pod for pod in cluster.of(Pod) if not pod.spec.node_name and namespace in ("", pod.metadata.namespace)]


def find_pod(cluster: Captured, namespace: str, name: str) -> Pod | None:
    """Return a pod of a cluster."""
    return next((pod for pod in cluster.of(Pod) if pod.metadata.name == name and pod.metadata.namespace == namespace), None)


async def read_finished_pod(kubeconfig: str, context: str, namespace: str, name: str) -> Pod | None:
    """Return a pod that schedulers do not list because it has ended."""
    connection = await connect(kubectl_credentials(kubeconfig, context), name="why")
    try:
        return await get_object(connection, Pod, name, namespace)
    except NotFound:
        return None
    finally:
        await connection.close()


def no_such_pod(cluster: Captured, namespace: str, name: str) -> SchedulerError:
    """Return the error for a pod that is not there; it names pods of that name in other namespaces."""
    others = sorted({pod.metadata.namespace for pod in cluster.of(Pod) if pod.metadata.name == name})
    if len(others) == 1:
        return SchedulerError(f"there is no pod {namespace}/{name}, but there is {others[0]}/{name}")
    more = f"; pods of that name are in {', '.join(others)}" if others else ""
    return SchedulerError(f"there is no pod {namespace}/{name}{more}")


def _is_of(pod: Pod, kind: str, name: str) -> bool:
    owner = pod.metadata.controller()
    if kind == "CronJob":
        return owner is not None and owner.kind == "Job" and owner.name.rpartition("-")[0] == name
    return workload_of(pod) == (kind, name) or (owner is not None and (owner.kind, owner.name) == (kind, name))
