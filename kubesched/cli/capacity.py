"""`kubesched capacity`: how many more of this pod fit, and what stops the next one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.layout import say
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
from kubesched.cli.printing import bar, fewer, print_document, warned

if TYPE_CHECKING:
    from kubesched.tools.plan.capacity import Capacity

_MOST_NODES = 10


class CapacityOptions(Options):
    """What is counted, and with which nodes."""

    workload: str = option("--workload", default="", metavar="KIND/NAME", help="Workload to count, if the files have several.")
    namespace: str = shared(namespace_option)
    limit: int | None = option(
        "--limit",
        type=click.IntRange(1),
        help="Do not count further; without it, copies that must be decided one by one end at 100,000.",
    )
    without: tuple[str, ...] = option(
        "--without", multiple=True, metavar="NODE", help="Assume that this node and its pods are lost."
    )
    drain: tuple[str, ...] = option(
        "--drain", multiple=True, metavar="NODE", help="Assume that this node is drained and its pods move to other nodes."
    )
    groups_file: Path | None = shared(node_groups_option)


@click.command("capacity", epilog="Example:  kubesched capacity -f web.yaml --drain node-7 --snapshot cluster.jsonl.gz")
@takes(manifests=ManifestOptions, asked=CapacityOptions, cluster=ClusterOptions, policy=PolicyOptions)
@output_option
def command(
    manifests: ManifestOptions, asked: CapacityOptions, cluster: ClusterOptions, policy: PolicyOptions, output: str
) -> None:
    """Count how many more of a pod fit, and say what stops the next one.

    Takes a Pod, or a workload for its template. Nobody is evicted for the copies, and pods that wait in the cluster are left
    out. Nothing is written.
    """
    from kubesched.tools.node_groups.reading import read_node_groups
    from kubesched.tools.plan.capacity import measure

    read = manifests.read()
    groups = read_node_groups(asked.groups_file) if asked.groups_file is not None else []
    captured, chosen = cluster.read_for_dry_run(policy, read)
    namespace = cluster.namespace(asked.namespace)
    with warned(), bar("counting", asked.limit) as done:
        found = measure(
            captured,
            read,
            chosen.engine,
            workload=asked.workload,
            namespace=namespace,
            limit=asked.limit,
            without=asked.without,
            drain=asked.drain,
            progress=done,
            groups=groups,
            one_by_one=_say_one_by_one if output == "table" else None,
        )
    if output == "table":
        print_capacity(found)
    else:
        print_document(found.as_dict(), output)


def _say_one_by_one(limit: int) -> None:
    click.echo(f"copies of this pod are decided one by one, {limit} at most (--limit)", err=True)


def print_capacity(found: Capacity) -> None:
    """Print an answer: the count first, then where, then what stops the next one."""
    stuck = [pod for pod in found.drained if not pod.node]
    if found.drained:
        say(f"{len(found.drained) - len(stuck)} of {len(found.drained)} pods of the drained nodes found another place")
    for pod in stuck:
        say(f"{pod.key} does not: {pod.why}", indent="  ", hang="  ")
    if found.lost:
        say(f"{len(found.lost)} {'pod goes' if len(found.lost) == 1 else 'pods go'} with the nodes")
    more = "at least " if found.is_limited else ""
    n_nodes = found.n_nodes + sum((found.added or {}).values())
    nodes = "1 node" if n_nodes == 1 else f"{n_nodes} nodes"
    say(f"{more}{found.count} more of {found.workload} {'fits' if found.count == 1 else 'fit'} on {nodes}")
    if found.added:
        say(f"{sum(found.added.values())} more nodes for {found.price:g} an hour: {fewer(found.added, _MOST_NODES)}")
    if found.zones:
        say(f"zones:  {fewer(found.zones, _MOST_NODES)}", hang="        ")
    if found.nodes:
        say(f"nodes:  {fewer(found.nodes, _MOST_NODES)}", hang="        ")
    if found.stopped_by is None:
        say("stopped by the limit: more may fit")
        return
    say(f"the next one waits: {found.stopped_by.message}")
    for refusal in found.stopped_by.refusals:
        where = f" ({', '.join(refusal.examples)}{', ...' if refusal.count > len(refusal.examples) else ''})"
        say(
            f"{refusal.count} {'node' if refusal.count == 1 else 'nodes'}: {refusal.reason}"
            f"{where if refusal.examples else ''}{f', says {refusal.plugin}' if refusal.plugin else ''}",
            indent="  ",
            hang="  ",
        )
