"""`kubesched bench`: how fast are decisions, and how fast is the whole thing through an API server."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from kubesched.simulator import workloads
from kubesched.simulator.bench import Bench, run


@click.group("bench")
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
        Console().print(table)
