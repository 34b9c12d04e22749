"""`kubesched why`: why a pod is pending, or why it is where it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from kubesched.cli.decisions import newest_placement
from kubesched.cli.printing import print_document
from kubesched.cli.why_groups import pending_report, print_patches, print_pending
from kubesched.cli.why_report import print_story
from kubesched.errors import NotFound, SchedulerError
from kubesched.kube.api.pod import Pod
from kubesched.kube.client.connection import connect
from kubesched.kube.client.credentials import kubectl_credentials
from kubesched.kube.client.informers.reading import get_object
from kubesched.kube.client.scheduler_client import SchedulerAddress, ask_about_pod, ask_for_decisions_about
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.engine.explaining import pod_report
from kubesched.scheduler.engine.explaining.patches import workload_of
from kubesched.scheduler.engine.loop import Engine
from kubesched.tools.snapshots.captured import Captured
from kubesched.tools.snapshots.sources import Policy, namespace_of, open_cluster

POD = "Pod"
_KINDS = {
    alias: kind
    for kind, aliases in {
        POD: ("pod", "pods", "po"),
        "Deployment": ("deployment", "deployments", "deploy"),
        "StatefulSet": ("statefulset", "statefulsets", "sts"),
        "DaemonSet": ("daemonset", "daemonsets", "ds"),
        "ReplicaSet": ("replicaset", "replicasets", "rs"),
        "ReplicationController": ("replicationcontroller", "replicationcontrollers", "rc"),
        "Job": ("job", "jobs"),
        "CronJob": ("cronjob", "cronjobs", "cj"),
    }.items()
    for alias in aliases
}
"""As kubectl calls them."""


def run_why(
    what: str,
    namespace: str,
    snapshot_file: Path | None,
    kubeconfig: str,
    context: str,
    server: str,
    token: str,
    ca_file: str | None,
    is_trusting: bool,
    config_file: Path | None,
    feature_gates: tuple[str, ...],
    plugins: tuple[str, ...],
    top: int,
    output: str,
) -> None:
    given, kind, name = _asked_for(what)
    if given and namespace and given != namespace:
        raise click.UsageError(f"{what} is not in namespace {namespace}")
    where = given or namespace
    if server:
        if snapshot_file or kubeconfig or context or config_file or feature_gates or plugins:
            raise click.UsageError("--server asks a running scheduler: it has its own cluster and its own configuration")
        if kind != POD:
            raise click.UsageError("--server asks a running scheduler about one pod: name it")
        address = SchedulerAddress(server, token, ca_file or "", not is_trusting)
        _print_one(_as_told(_asked(address, where or "default", name), top), output)
        return
    if token or ca_file or is_trusting:
        raise click.UsageError("--token, --certificate-authority and --insecure-skip-tls-verify go with --server")
    cluster, policy = open_cluster(snapshot_file, kubeconfig, context, config_file, feature_gates, plugins)
    if not kind:
        engine = policy.engine(cluster)
        _print_many(pending_report(engine, _views(engine, cluster, where)), output)
        return
    where = namespace_of(where, snapshot_file, kubeconfig, context)
    if kind == POD:
        found = _found(cluster, where, name)
        if found is None and snapshot_file is None:
            found = asyncio.run(_finished(kubeconfig, context, where, name))
        if found is None:
            raise SchedulerError(_not_found(cluster, where, name))
        _print_one(_told(cluster, policy, found, top), output)
        return
    members = [pod for pod in cluster.of(Pod) if pod.metadata.namespace == where and _is_of(pod, kind, name)]
    if not members:
        raise SchedulerError(f"{kind} {where}/{name} has no pods, or is not there")
    pending = [pod for pod in members if not pod.spec.node_name]
    if len(pending) > 1:
        engine = policy.engine(cluster)
        document = pending_report(engine, (engine.store.view(pod) for pod in pending))
        if len(document["groups"]) > 1:
            _print_many(document, output)
            return
    story = _told(cluster, policy, (pending or members)[0], top)
    others = len(pending) - 1 if pending else len(members) - 1
    _print_one({**story, "othersLikeIt": others, "of": f"{kind} {where}/{name}"}, output)


def _asked(address: SchedulerAddress, namespace: str, name: str) -> dict[str, Any]:
    """Return what a running scheduler says of a pod: as it was decided, and as it is now, if it is there."""
    decisions = asyncio.run(ask_for_decisions_about(address, namespace, name))
    decided = newest_placement(decisions)
    try:
        story = asyncio.run(ask_about_pod(address, namespace, name))
    except NotFound as error:
        if decided is None:
            raise SchedulerError(
                f"pod {namespace}/{name} is neither queued nor placed here, and no decision about it is on record, "
                f"says the scheduler at {address.url}"
            ) from error
        return {"pod": f"{namespace}/{name}", "state": pod_report.GONE, "node": decided["node"], "decided": decided}
    if decided is not None and story["node"]:
        story["decided"] = decided
    return story


def _asked_for(what: str) -> tuple[str, str, str]:
    """Return namespace, kind and name of what was asked for; nothing of it for all that waits."""
    if not what:
        return "", "", ""
    *before, name = what.split("/")
    kind = POD
    if before and before[-1].partition(".")[0].lower() in _KINDS:
        kind = _KINDS[before.pop().partition(".")[0].lower()]
    if len(before) > 1 or not name or not all(before):
        raise click.UsageError(f"{what!r} is not a pod's name" if not name else f"{what!r} is not NS/POD or KIND/NAME")
    return (before[0] if before else ""), kind, name


def _is_of(pod: Pod, kind: str, name: str) -> bool:
    owner = pod.metadata.controller()
    if kind == "CronJob":
        return owner is not None and owner.kind == "Job" and owner.name.rpartition("-")[0] == name
    return workload_of(pod) == (kind, name) or (owner is not None and (owner.kind, owner.name) == (kind, name))


def _views(engine: Engine, cluster: Captured, namespace: str) -> list[PodView]:
    pods = [pod for pod in cluster.of(Pod) if not pod.spec.node_name and namespace in ("", pod.metadata.namespace)]
    return [engine.store.view(pod) for pod in pods]


def _print_one(story: dict[str, Any], output: str) -> None:
    if output == "table":
        print_story(story)
    elif output == "patch":
        print_patches(story.get("advice", ()))
    else:
        print_document(story, output)


def _print_many(document: dict[str, Any], output: str) -> None:
    if output == "table":
        print_pending(document)
    elif output == "patch":
        print_patches(advice for group in document["groups"] for advice in group["advice"])
    else:
        print_document(document, output)


def _told(cluster: Captured, policy: Policy, pod: Pod, top: int) -> dict[str, Any]:
    engine = policy.engine(cluster)
    return pod_report.pod_report(engine, engine.store.pod(pod.metadata.uid) or engine.store.view(pod), top=top, preempts=True)


def _as_told(answer: dict[str, Any], top: int) -> dict[str, Any]:
    """Return a scheduler's answer as the document that we print, with as many of the best nodes as were asked for."""
    if "ranking" in answer:
        ranking, home = answer["ranking"], answer["node"]
        answer["ranking"] = ranking[:top] + [each for each in ranking[top:] if each["node"] == home]
    return answer


def _found(cluster: Captured, namespace: str, name: str) -> Pod | None:
    return next((pod for pod in cluster.of(Pod) if pod.metadata.name == name and pod.metadata.namespace == namespace), None)


def _not_found(cluster: Captured, namespace: str, name: str) -> str:
    others = sorted({pod.metadata.namespace for pod in cluster.of(Pod) if pod.metadata.name == name})
    if len(others) == 1:
        return f"there is no pod {namespace}/{name}, but there is {others[0]}/{name}"
    more = f"; pods of that name are in {', '.join(others)}" if others else ""
    return f"there is no pod {namespace}/{name}{more}"


async def _finished(kubeconfig: str, context: str, namespace: str, name: str) -> Pod | None:
    """Return a pod that schedulers do not list because it has ended."""
    connection = await connect(kubectl_credentials(kubeconfig, context), name="why")
    try:
        return await get_object(connection, Pod, name, namespace)
    except NotFound:
        return None
    finally:
        await connection.close()
