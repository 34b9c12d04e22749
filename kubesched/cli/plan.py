"""`kubesched plan`: where would these manifests go, and who would have to go for them."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from kubesched.cli.layout import print_table, say
from kubesched.cli.printing import bar, fewer, print_document, warned
from kubesched.cli.sources import Policy, namespace_of, read_cluster, read_given
from kubesched.errors import SchedulerError
from kubesched.simulator.captured import Captured
from kubesched.simulator.dryrun.applying import apply_manifests
from kubesched.simulator.dryrun.manifests import Manifest
from kubesched.simulator.dryrun.plan import Plan, PlannedPod, PlannedVictim, PlannedWorkload, counted
from kubesched.simulator.dryrun.planning import decide

_MOST_NODES = 8
_MOST_VICTIMS = 4
_MOST_EVICTIONS = 8
_MOST_OTHERS = 10


def run_plan(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    kustomization: str | None,
    recursive: bool,
    namespace: str,
    only: bool,
    fail_on_pending: bool,
    snapshot_file: Path | None,
    kubeconfig: str,
    context: str,
    config_file: Path | None,
    feature_gates: tuple[str, ...],
    plugins: tuple[str, ...],
    output: str,
) -> None:
    policy = Policy.for_dry_run(config_file, feature_gates, plugins)
    manifests = read_given(files, more_files, kustomization, recursive)
    with Console(stderr=True).status("reading the cluster"):
        cluster = read_cluster(snapshot_file, kubeconfig, context, policy.gates)
    plan = _made(cluster, manifests, policy, namespace_of(namespace, snapshot_file, kubeconfig, context), only)
    for warning in plan.warnings:
        click.echo(f"Warning: {warning}", err=True)
    if output == "table":
        print_plan(plan)
    else:
        print_document(plan.as_dict(), output)
    if fail_on_pending and plan.pending:
        raise SchedulerError(f"{len(plan.pending)} of {len(plan.placed) + len(plan.pending)} pods would wait")


def _made(cluster: Captured, manifests: list[Manifest], policy: Policy, namespace: str, only: bool) -> Plan:
    applied, n_tried = apply_manifests(cluster, manifests, namespace=namespace, only=only), 0
    with warned(), bar("planning", applied.n_pods) as done:

        def tried() -> None:
            nonlocal n_tried
            n_tried += 1
            if not n_tried % 50:
                done(n_tried)

        return decide(applied, policy.engine, tried)


# --- printing ---------------------------------------------------------------------------------------------------------


def print_plan(plan: Plan) -> None:
    """Print a plan as a table: a row a workload, under it what there is to say about it."""
    if plan.workloads:
        rows = []
        for workload in plan.workloads:
            keys = _keys(workload)
            lines = _about(workload, [victim for victim in plan.victims if victim.by in keys])
            counts = str(len(workload.pods)), str(len(workload.placed))
            rows.append((workload.title, workload.namespace, *counts, "\n".join(lines)))
        print_table(("WORKLOAD", "NAMESPACE", "PODS", "PLACED", "WHERE"), rows, right=(2, 3), sentences=True)
    _print_others(plan)
    click.echo()
    say(_total(plan))


def _keys(workload: PlannedWorkload) -> set[str]:
    return {pod.key for pod in workload.pods}


def _about(workload: PlannedWorkload, victims: list[PlannedVictim]) -> list[str]:
    lines = []
    if workload.placed:
        lines.append(fewer(counted(pod.node for pod in workload.placed), _MOST_NODES))
    if workload.scheduler:
        lines.append(f"not planned: for scheduler {workload.scheduler}, which is not configured here")
    lines += _waiting(workload.pending)
    lines += _evictions(victims)
    return lines + ([workload.note] if workload.note else [])


def _evictions(victims: list[PlannedVictim]) -> list[str]:
    """Return a line for each pod that others have to go for."""
    by_pod: dict[str, list[PlannedVictim]] = {}
    for victim in victims:
        by_pod.setdefault(victim.by, []).append(victim)
    lines = []
    for by, gone in by_pod.items():
        named = ", ".join(f"{victim.key} (priority {victim.pod.priority})" for victim in gone[:_MOST_VICTIMS])
        more = f", and {len(gone) - _MOST_VICTIMS} more" if len(gone) > _MOST_VICTIMS else ""
        lines.append(f"{_name(by)} evicts from {gone[0].node}: {named}{more}")
    if len(lines) > _MOST_EVICTIONS:
        lines[_MOST_EVICTIONS:] = [f"and {len(lines) - _MOST_EVICTIONS} more evict others"]
    return lines


def _waiting(pending: list[PlannedPod]) -> list[str]:
    """Return a line for each reason that pods wait for."""
    by_reason: dict[str, list[str]] = {}
    for pod in pending:
        by_reason.setdefault(pod.why, []).append(pod.pod.name)
    return [
        f"{names[0]} waits: {why}" if len(names) == 1 else f"{names[0]} and {len(names) - 1} more wait: {why}"
        for why, names in by_reason.items()
    ]


def _name(key: str) -> str:
    return key.partition("/")[2]


def _print_others(plan: Plan) -> None:
    if not plan.others:
        return
    placed = sum(bool(pod.node) for pod in plan.others)
    click.echo()
    say(f"Waiting in the cluster already: {len(plan.others)}, of which {placed} would be placed")
    for pod in plan.others[:_MOST_OTHERS]:
        say(f"{pod.key}: {pod.node or pod.why}", indent="  ", hang="  ")
    if len(plan.others) > _MOST_OTHERS:
        say(f"and {len(plan.others) - _MOST_OTHERS} more", indent="  ")
    planned = {key for workload in plan.workloads for key in _keys(workload)}
    for victim in plan.victims:
        if victim.by not in planned:
            say(f"{victim.pod.key} would be evicted from {victim.node} for {victim.by}", indent="  ", hang="  ")


def _total(plan: Plan) -> str:
    n_placed, n_pending, n_victims = len(plan.placed), len(plan.pending), len(plan.victims)
    text = f"{n_placed + n_pending} {'pod' if n_placed + n_pending == 1 else 'pods'} on "
    text += f"{len(plan.zones)} {'node' if len(plan.zones) == 1 else 'nodes'}: "
    text += f"{n_placed} would be placed, {n_pending} would wait"
    if n_victims:
        text += f", {n_victims} {'pod' if n_victims == 1 else 'pods'} would be evicted"
    if plan.foreign:
        text += f"; {len(plan.foreign)} for other schedulers"
    return text
