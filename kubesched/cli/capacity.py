"""`kubesched capacity`: how many more of this pod fit, and what stops the next one."""

from __future__ import annotations

from pathlib import Path

from kubesched.cli.layout import say
from kubesched.cli.printing import bar, fewer, print_document, warned
from kubesched.tools.node_groups.reading import read_node_groups
from kubesched.tools.plan.capacity import Capacity, measure
from kubesched.tools.snapshots.sources import namespace_of, open_cluster, read_given

_MOST_NODES = 10


def run_capacity(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    kustomization: str | None,
    recursive: bool,
    workload: str,
    namespace: str,
    limit: int,
    without: tuple[str, ...],
    drain: tuple[str, ...],
    groups_file: Path | None,
    snapshot_file: Path | None,
    kubeconfig: str,
    context: str,
    config_file: Path | None,
    feature_gates: tuple[str, ...],
    plugins: tuple[str, ...],
    output: str,
) -> None:
    manifests = read_given(files, more_files, kustomization, recursive)
    groups = read_node_groups(groups_file) if groups_file is not None else []
    cluster, policy = open_cluster(snapshot_file, kubeconfig, context, config_file, feature_gates, plugins, manifests)
    namespace = namespace_of(namespace, snapshot_file, kubeconfig, context)
    with warned(), bar("counting", limit) as done:
        found = measure(
            cluster,
            manifests,
            policy.engine,
            workload=workload,
            namespace=namespace,
            limit=limit,
            without=without,
            drain=drain,
            progress=done,
            groups=groups,
        )
    if output == "table":
        print_capacity(found)
    else:
        print_document(found.as_dict(), output)


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
