"""`kubesched why`: why a pod is pending, or why it is where it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from kubesched.api.pod import Pod
from kubesched.cli.printing import print_document
from kubesched.cli.sources import Policy, namespace_of, read_cluster
from kubesched.cli.why_report import print_story
from kubesched.client.connection import connect
from kubesched.client.credentials import default_kubeconfig, find_credentials
from kubesched.client.reading import get_object
from kubesched.client.scheduler_client import SchedulerAddress, ask_about_pod
from kubesched.engine.pod_report import pod_report
from kubesched.errors import NotFound, SchedulerError
from kubesched.simulator.captured import Captured


def run_why(
    pod: str,
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
    given, _, name = pod.rpartition("/")
    if not name or (given and namespace and given != namespace):
        raise click.UsageError(f"{pod!r} is not a pod's name" if not name else f"{pod} is not in namespace {namespace}")
    where = given or namespace
    if server:
        if snapshot_file or kubeconfig or context or config_file or feature_gates or plugins:
            raise click.UsageError("--server asks a running scheduler: it has its own cluster and its own configuration")
        address = SchedulerAddress(server, token, ca_file or "", not is_trusting)
        story = _as_told(asyncio.run(ask_about_pod(address, where or "default", name)), top)
    else:
        if token or ca_file or is_trusting:
            raise click.UsageError("--token, --certificate-authority and --insecure-skip-tls-verify go with --server")
        policy = Policy.for_dry_run(config_file, feature_gates, plugins)
        with Console(stderr=True).status("reading the cluster"):
            cluster = read_cluster(snapshot_file, kubeconfig, context, policy.gates)
        where = namespace_of(where, snapshot_file, kubeconfig, context)
        found = _found(cluster, where, name)
        if found is None and snapshot_file is None:
            found = asyncio.run(_finished(kubeconfig, context, where, name))
        if found is None:
            raise SchedulerError(_not_found(cluster, where, name))
        story = _told(cluster, policy, found, top)
    if output == "table":
        print_story(story)
    else:
        print_document(story, output)


def _told(cluster: Captured, policy: Policy, pod: Pod, top: int) -> dict[str, Any]:
    engine = policy.engine(cluster)
    return pod_report(engine, engine.store.pod(pod.metadata.uid) or engine.store.view(pod), top=top, preempts=True)


def _as_told(answer: dict[str, Any], top: int) -> dict[str, Any]:
    """Return a scheduler's answer as the document that we print: the page's lines make way for what they were made from."""
    if "advised" in answer:
        answer["advice"] = answer.pop("advised")
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
    connection = await connect(find_credentials(kubeconfig or default_kubeconfig(), context=context or None), name="why")
    try:
        return await get_object(connection, Pod, name, namespace)
    except NotFound:
        return None
    finally:
        await connection.close()
