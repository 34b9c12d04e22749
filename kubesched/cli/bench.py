"""`kubesched bench`: how fast are decisions, and how fast is the whole thing through an API server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from kubesched.errors import SchedulerError
from kubesched.simulator import workloads
from kubesched.simulator.bench import Bench, run
from kubesched.simulator.cluster_bench import KINDS as CLUSTER_KINDS
from kubesched.simulator.cluster_bench import ClusterBench
from kubesched.simulator.cluster_bench import run as run_cluster


@click.group("bench", epilog="Example:  kubesched bench engine --kind basic")
def bench_group() -> None:
    """Measure throughput on the workloads that kube-scheduler's own benchmarks use."""


@bench_group.command("engine", epilog="Example:  kubesched bench engine --kind spread --nodes 5000 --pods 10000 -o json")
@click.option("--kind", type=click.Choice(workloads.KINDS), default="basic", show_default=True, help="What the pods ask for.")
@click.option("--nodes", type=click.IntRange(1), default=5000, show_default=True, help="How many nodes.")
@click.option("--init", type=click.IntRange(0), default=1000, show_default=True, help="Pods that run already.")
@click.option("--pods", type=click.IntRange(1), default=10000, show_default=True, help="Pods to schedule and measure.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the choice among equally good nodes.")
@click.option("--no-memo", is_flag=True, help="Compute every answer anew instead of remembering answers per pod class.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", help="How to print.")
def engine_command(kind: str, nodes: int, init: int, pods: int, seed: int, no_memo: bool, output: str) -> None:
    """Decide pods in memory: pop, schedule and assume, without binding. All nodes are evaluated."""
    bench = Bench(kind, nodes, init, pods, seed, not no_memo)
    console = Console(stderr=True)
    if output == "table" and console.is_terminal:
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task(f"{kind}, {nodes} nodes", total=pods)
            figures = run(bench, lambda done: bar.update(task, completed=done))
    else:
        figures = run(bench)
    print_figures([figures], output)


@bench_group.command("cluster", epilog="Example:  kubesched bench cluster --kind spread --nodes 1000 --pods 3000 -o json")
@click.option("--kind", type=click.Choice(CLUSTER_KINDS), default="basic", show_default=True, help="What the pods ask for.")
@click.option("--nodes", type=click.IntRange(1), default=1000, show_default=True, help="How many nodes.")
@click.option("--pods", type=click.IntRange(1), default=3000, show_default=True, help="Pods to schedule and measure.")
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False),
    default="",
    help="A cluster without nodes of its own to measure with; the embedded API server if not given.",
)
@click.option(
    "--timeout",
    "timeout",
    type=click.FloatRange(min=1.0),
    default=600.0,
    show_default=True,
    help="Seconds after which what is not bound is given up.",
)
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", help="How to print.")
def cluster_command(kind: str, nodes: int, pods: int, kubeconfig: str, timeout: float, output: str) -> None:
    """Schedule pods through an API server: bindings a second as the server saw them, CPU a pod, memory.

    All pods wait when the scheduler starts. Its CPU is given with its start and (steady) from the first binding on.
    """
    bench = ClusterBench(kind, nodes, pods, kubeconfig, timeout)
    console = Console(stderr=True)
    if output == "table" and console.is_terminal:
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task(f"{kind}, {nodes} nodes", total=pods)
            figures = asyncio.run(run_cluster(bench, lambda done: bar.update(task, completed=done)))
    else:
        figures = asyncio.run(run_cluster(bench))
    print_figures([figures], output)
    if figures["bound"] < pods:
        raise SchedulerError(f"only {figures['bound']} of {pods} pods were bound within {timeout:g} s")


_WIDTH = 140
"""What a row of figures needs; a narrow terminal wraps it, which is better than cutting figures off."""


def print_figures(rows: list[dict[str, Any]], output: str) -> None:
    """Print one or more rows of figures."""
    if output == "json":
        click.echo(json.dumps(rows[0] if len(rows) == 1 else rows))
    elif output == "yaml":
        for row in rows:
            click.echo("\n".join(f"{key}: {value}" for key, value in row.items()))
    else:
        table = Table(box=None)
        for title in rows[0]:
            table.add_column(title, justify="left" if title == "kind" else "right")
        for row in rows:
            table.add_row(*(f"{value:,}" if isinstance(value, int | float) else str(value) for value in row.values()))
        Console(width=max(Console().width, _WIDTH)).print(table)
