"""`kubesched plan`: where would these manifests go, and who would have to go for them."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.layout import print_table, say
from kubesched.cli.options import (
    ClusterOptions,
    ManifestOptions,
    Options,
    PolicyOptions,
    namespace_option,
    node_groups_option,
    option,
    output_option,
    shared,
    takes,
)
from kubesched.cli.printing import bar, fewer, print_document, warn, warned
from kubesched.errors import SchedulerError

if TYPE_CHECKING:
    from kubesched.tools.plan.plan import AddedNode, Plan, PlannedPod, PlannedVictim, PlannedWorkload

_MOST_NODES = 8
_MOST_VICTIMS = 4
_MOST_EVICTIONS = 8
_MOST_OTHERS = 10


class PlanOptions(Options):
    """What is planned besides the manifests."""

    namespace: str = shared(namespace_option)
    only: bool = option("--only", is_flag=True, help="Ignore other pending pods of the cluster. By default they compete.")
    fail_on_pending: bool = option("--fail-on-pending", is_flag=True, help="Exit with 1 if a planned pod would stay pending.")
    groups_file: Path | None = shared(node_groups_option)
    consolidates: bool = option(
        "--consolidate", is_flag=True, help="With --node-groups: list nodes that could be removed afterwards."
    )


@click.command("plan", epilog="Example:  kubesched plan -f deploy/ --snapshot cluster.jsonl.gz --fail-on-pending")
@takes(manifests=ManifestOptions, asked=PlanOptions, cluster=ClusterOptions, policy=PolicyOptions)
@output_option
def command(
    manifests: ManifestOptions, asked: PlanOptions, cluster: ClusterOptions, policy: PolicyOptions, output: str
) -> None:
    """Show where the pods of manifests would go if you applied them now, and which pods they would evict.

    Takes Deployments, StatefulSets, ReplicaSets, ReplicationControllers, Jobs, CronJobs (one run), DaemonSets and Pods, and
    what they need: PriorityClasses, claims, volumes, nodes and so on. Nothing is written.

    With --node-groups, show which nodes to add so that the pods run, cheapest first. Without -f, for the pending pods.
    """
    from kubesched.tools.node_groups.reading import read_node_groups
    from kubesched.tools.plan.applying import apply_manifests
    from kubesched.tools.plan.planning import decide

    if asked.consolidates and asked.groups_file is None:
        raise click.UsageError("--consolidate goes with --node-groups")
    groups = read_node_groups(asked.groups_file) if asked.groups_file is not None else []
    read = manifests.read() if manifests.has_any or not groups else []
    captured, chosen = cluster.read_for_dry_run(policy, read)
    applied = apply_manifests(captured, read, namespace=cluster.namespace(asked.namespace), only=asked.only)
    tries = itertools.count(1)
    with warned(), bar("planning", applied.n_pods) as done:
        plan = decide(applied, chosen.engine, lambda: done(next(tries)), groups=groups, consolidates=asked.consolidates)
    for warning in plan.warnings:
        warn(warning)
    if output == "table":
        print_plan(plan)
    else:
        print_document(plan.as_dict(), output)
    if asked.fail_on_pending and plan.pending:
        raise SchedulerError(f"{len(plan.pending)} of {len(plan.placed) + len(plan.pending)} pods would wait")


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
    _print_nodes(plan)
    click.echo()
    say(_total(plan))


def _keys(workload: PlannedWorkload) -> set[str]:
    return {pod.key for pod in workload.pods}


def _about(workload: PlannedWorkload, victims: list[PlannedVictim]) -> list[str]:
    lines = []
    if workload.placed:
        lines.append(fewer(Counter(pod.node for pod in workload.placed), _MOST_NODES))
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


def _print_nodes(plan: Plan) -> None:
    if plan.added:
        by_group: dict[str, list[AddedNode]] = {}
        for node in plan.added:
            by_group.setdefault(node.group, []).append(node)
        rows = [
            (group, str(len(nodes)), str(sum(node.n_pods for node in nodes)), f"{sum(node.price for node in nodes):g}")
            for group, nodes in by_group.items()
        ]
        click.echo()
        print_table(("NEW NODES", "COUNT", "PODS", "AN HOUR"), rows, right=(1, 2, 3))
    if plan.spared is not None:
        click.echo()
        say(f"Nodes that could go: {len(plan.spared)}, which saves {sum(each.saves for each in plan.spared):g} an hour")
        for each in plan.spared[:_MOST_OTHERS]:
            instead = f", for a node of {each.replaced_by}" if each.replaced_by else ""
            text = f"{each.name} ({100 * each.utilisation:.0f} % used): {len(each.moves)} pods move{instead}"
            say(f"{text}, saves {each.saves:g}", indent="  ", hang="  ")
        if len(plan.spared) > _MOST_OTHERS:
            say(f"and {len(plan.spared) - _MOST_OTHERS} more", indent="  ")


def _total(plan: Plan) -> str:
    n_placed, n_pending, n_victims = len(plan.placed), len(plan.pending), len(plan.victims)
    text = f"{n_placed + n_pending} {'pod' if n_placed + n_pending == 1 else 'pods'} on "
    text += f"{len(plan.zones)} {'node' if len(plan.zones) == 1 else 'nodes'}: "
    text += f"{n_placed} would be placed, {n_pending} would wait"
    if plan.added:
        price = sum(node.price for node in plan.added)
        text += f", {len(plan.added)} {'node' if len(plan.added) == 1 else 'nodes'} would be added for {price:g} an hour"
    if n_victims:
        text += f", {n_victims} {'pod' if n_victims == 1 else 'pods'} would be evicted"
    if plan.foreign:
        text += f"; {len(plan.foreign)} for other schedulers"
    return text
