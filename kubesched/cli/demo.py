"""`kubesched demo`: the embedded cluster, the scheduler and a sample workload in one process."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kubesched import config
from kubesched.apiserver import ApiServer, Store
from kubesched.apiserver.world import World
from kubesched.app import Scheduler, Wiring
from kubesched.cli import sample
from kubesched.client.credentials import find_credentials
from kubesched.engine.assembly import default_configuration
from kubesched.engine.cycle import Rules, SeededTies, attempt
from kubesched.engine.explain import Explanation, explain

_PATIENCE_SECONDS = 60.0
_RESOURCES = {"Namespace": "namespaces", "Deployment": "deployments", "StatefulSet": "statefulsets", "Job": "jobs",
              "Pod": "pods"}


@click.command("demo", epilog="Example:  kubesched demo --nodes 50 --pods 400 --once")
@click.option("--nodes", type=click.IntRange(1, 5000), default=20, show_default=True, help="How many nodes.")
@click.option("--pods", type=click.IntRange(6, 50000), default=100, show_default=True, help="About how many pods.")
@click.option("--once", is_flag=True, help="Print what was placed, and exit.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the API; 0 picks a free one.")
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Keep the objects here across restarts.")
def demo_command(nodes: int, pods: int, once: bool, port: int, data_dir: Path | None) -> None:
    """Show the scheduler at work on a cluster that lives in this process. kubectl works beside it."""
    with tempfile.TemporaryDirectory(prefix="kubesched-demo-") as scratch:
        asyncio.run(_demo(nodes, pods, once, port, data_dir, Path(scratch)))


async def _demo(n_nodes: int, n_pods: int, once: bool, port: int, data_dir: Path | None, scratch: Path) -> None:
    console = Console(highlight=False)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with _cluster(port, data_dir, scratch) as (server, kubeconfig, scheduler):
        store = server.store
        console.print(f"[bold]kubesched demo[/]: {n_nodes} nodes in {len(sample.ZONES)} zones, a workload of {n_pods} pods")
        for i in range(n_nodes):
            _create(store, "nodes", sample.node(i))
        for manifest in sample.workload(n_pods):
            _create(store, _RESOURCES[manifest["kind"]], manifest)
        await _watch_placing(console, store, n_pods, stopped)
        _print_placed(console, store)
        _print_pending(console, scheduler)
        if once or stopped.is_set():
            return
        line = f"kubectl --kubeconfig {shlex.quote(str(kubeconfig))}"
        console.print(f"\nThe API is served at [bold]{server.url}[/] (kubeconfig: {kubeconfig}). Try:")
        console.print(f"  {line} get pods -n {sample.NAMESPACE} -o wide", soft_wrap=True)
        console.print(f"  {line} scale deployment web -n {sample.NAMESPACE} --replicas 60", soft_wrap=True)
        console.print("Press Ctrl-C to end.")
        await stopped.wait()


@contextlib.asynccontextmanager
async def _cluster(port: int, data_dir: Path | None,
                   scratch: Path) -> AsyncIterator[tuple[ApiServer, Path, Scheduler]]:
    """Run the API server, the world around it, and the scheduler."""
    server = ApiServer(Store(data_dir=data_dir), port=port)
    async with server:
        world = World(server.store)
        world.start()
        kubeconfig = server.write_kubeconfig((data_dir or scratch) / "kubeconfig").absolute()
        scheduler = Scheduler(_unhurried(default_configuration()), Wiring(find_credentials(str(kubeconfig))))
        running = asyncio.create_task(scheduler.run())
        try:
            yield server, kubeconfig, scheduler
        finally:
            scheduler.stop()
            await running
            world.stop()


def _unhurried(configuration: config.Configuration) -> config.Configuration:
    """Return a configuration for a cluster of one's own: nobody else to elect, and no limit on requests."""
    changes = {
        "leader_election": msgspec.structs.replace(configuration.leader_election, leader_elect=False),
        "client_connection": msgspec.structs.replace(configuration.client_connection, qps=-1.0),
    }
    values = {name: getattr(configuration, name) for name in config.Configuration.__dataclass_fields__}
    return config.Configuration(**(values | changes))


def _create(store: Store, resource: str, obj: dict[str, Any]) -> None:
    """Create an object, unless a data directory has brought it along."""
    meta = obj["metadata"]
    known = {item["metadata"]["name"] for item in store.list(resource, meta.get("namespace", "")).items}
    if meta["name"] not in known:
        store.create(resource, obj, meta.get("namespace", ""))


def _pods(store: Store) -> list[dict[str, Any]]:
    pods: list[dict[str, Any]] = store.list("pods", sample.NAMESPACE).items
    return pods


async def _watch_placing(console: Console, store: Store, n_pods: int, stopped: asyncio.Event) -> None:
    """Show a bar, or plain lines, until every pod that fits is placed."""
    loop = asyncio.get_running_loop()
    give_up, placed, steady = loop.time() + _PATIENCE_SECONDS, -1, 0
    columns = (TextColumn("placing pods"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=n_pods)
        while loop.time() < give_up and not stopped.is_set():
            pods = _pods(store)
            now = sum(1 for pod in pods if pod["spec"].get("nodeName"))
            steady = steady + 1 if now == placed else 0
            if now != placed and not console.is_terminal:
                console.print(f"placed {now} of {len(pods)} pods")
            placed = now
            bar.update(task, completed=placed, total=max(len(pods), 1))
            if len(pods) >= n_pods - 1 and placed >= len(pods) - 1 and steady >= 2:
                break
            if steady >= 40:
                break
            await asyncio.sleep(0.1)


def _print_placed(console: Console, store: Store) -> None:
    zone_of = {node["metadata"]["name"]: node["metadata"]["labels"].get("topology.kubernetes.io/zone", "")
               for node in store.list("nodes").items}
    rows: dict[str, Counter[str]] = {}
    nodes_used: dict[str, set[str]] = {}
    for pod in _pods(store):
        app, node = pod["metadata"]["labels"]["app"], pod["spec"].get("nodeName", "")
        rows.setdefault(app, Counter())[zone_of.get(node, "pending")] += 1
        nodes_used.setdefault(app, set()).update({node} if node else set())
    table = Table(title="What went where", title_justify="left", box=None)
    for title in ("workload", *sample.ZONES, "nodes used", "pending"):
        table.add_column(title, justify="left" if title == "workload" else "right")
    for app, zones in rows.items():
        table.add_row(app, *(str(zones[zone]) for zone in sample.ZONES), str(len(nodes_used[app])),
                      str(zones["pending"]) if zones["pending"] else "")
    console.print(table)


def _print_pending(console: Console, scheduler: Scheduler) -> None:
    """Say for each pod that waits why it does."""
    engine = scheduler.engine
    assert engine is not None
    for entry in list(engine.queue):
        profile = engine.profiles[entry.view.pod.spec.scheduler_name]
        rules = Rules(SeededTies(), engine.queue.nominations, preempts=False, scores_single=True)
        told = explain(attempt(entry.view, engine.store.snapshot(), profile, rules))
        _print_explanation(console, told)


def _print_explanation(console: Console, told: Explanation) -> None:
    console.print(f"\nWhy [bold]{told.pod}[/] is pending ({told.n_feasible} of {told.n_nodes} nodes would do):")
    for refusal in told.refusals:
        console.print(f"  {refusal.count:>4} x {refusal.reason}  [dim]({refusal.plugin}; {', '.join(refusal.examples)})[/]")
    for line in told.advice:
        console.print(f"  {line}")
