"""`kubesched bench`: how fast are decisions, and how fast is the whole thing through an API server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from kubesched.cli.layout import print_table
from kubesched.cli.printing import bar
from kubesched.errors import SchedulerError
from kubesched.tools.bench.cluster import ClusterBench
from kubesched.tools.bench.cluster import run as run_cluster
from kubesched.tools.bench.engine import Bench, run
from kubesched.tools.bench.novelty import measure
from kubesched.tools.node_groups.bench import run as run_nodes
from kubesched.tools.snapshots.sources import Policy


def run_bench_engine(
    kind: str,
    nodes: int,
    init: int,
    pods: int,
    seed: int,
    classes: tuple[int, ...],
    no_memo: bool,
    decision_records: int,
    config_file: Path | None,
    plugins: tuple[str, ...],
    output: str,
) -> None:
    if classes and kind != "unlike":
        raise click.UsageError("--classes is for --kind unlike")
    rows, policy = [], Policy.read(config_file, (), plugins)
    given = (policy.configuration, policy.registry) if config_file is not None else (None, None)
    for n_classes in classes or (0,):
        bench = Bench(kind, nodes, init, pods, seed, not no_memo, n_classes, decision_records, *given)
        with bar(f"{kind}, {nodes} nodes", pods) as done:
            if kind == "novelty":
                rows.append(measure(nodes=nodes, alive=init, pods=pods, seed=seed, progress=done))
            else:
                rows.append(run(bench, done))
    print_figures(rows, output)


def run_bench_nodes(kind: str, pods: int, output: str) -> None:
    print_figures([run_nodes(kind, pods)], output)


def run_bench_cluster(
    kind: str, nodes: int, init: int, pods: int, kubeconfig: str, timeout: float, bare: bool, rate: float, output: str
) -> None:
    if bare and rate:
        raise click.UsageError("--bare-client binds pods that wait; it knows no --rate")
    bench = ClusterBench(kind, nodes, pods, init, kubeconfig, timeout, bare, rate)
    console = Console(stderr=True)
    if output == "table" and console.is_terminal:
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task(f"{kind}, {nodes} nodes", total=pods)
            figures = asyncio.run(run_cluster(bench, lambda done: progress.update(task, completed=done)))
    else:
        figures = asyncio.run(run_cluster(bench))
    print_figures([figures], output)
    if figures["bound"] < pods:
        raise SchedulerError(f"only {figures['bound']} of {pods} pods were bound within {timeout:g} s")


def print_figures(rows: list[dict[str, Any]], output: str) -> None:
    """Print one or more rows of figures."""
    if output == "json":
        click.echo(json.dumps(rows[0] if len(rows) == 1 else rows))
    elif output == "yaml":
        for row in rows:
            click.echo("\n".join(f"{key}: {value}" for key, value in row.items()))
    else:
        cells = [[f"{value:,}" if isinstance(value, int | float) else str(value) for value in row.values()] for row in rows]
        print_table(list(rows[0]), cells, right=[i for i, title in enumerate(rows[0]) if title != "kind"])
