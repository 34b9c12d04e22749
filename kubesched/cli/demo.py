"""`kubesched demo`: the embedded cluster, the scheduler, the page and a sample workload in one process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kubesched.cli import demo_report
from kubesched.cli.commands.lazy import INTERRUPTED
from kubesched.cli.layout import say
from kubesched.cli.page_what_if import what_if_of
from kubesched.embedded import ApiServer, ObjectStore
from kubesched.embedded.controllers import FakeCluster, Pace
from kubesched.errors import AlreadyExists
from kubesched.http import raise_file_limit
from kubesched.kube.client.connection import connect
from kubesched.kube.client.credentials import find_credentials
from kubesched.scheduler import config
from kubesched.scheduler.engine.records.decision_recorder import SHARE
from kubesched.server import web
from kubesched.server.app import Scheduler, Wiring
from kubesched.tools.demo import actions as demo_actions
from kubesched.tools.demo import sample
from kubesched.tools.demo.actions import DemoActions
from kubesched.tools.demo.ignored import IgnoredObjects
from kubesched.tools.snapshots.sources import Policy

_STUCK_SECONDS = 60.0
"""After so long without a change the demo goes on with what there is."""
_REPORTS_A_SECOND = 20
_TICK_SECONDS = 0.1
_FULLY_RECORDED_NODES = 1000
"""Up to so many nodes, every decision of a demo is recorded with all scores: it is there to be looked at."""
_STEADY_TICKS = 3
_LINES_EVERY_SECONDS = 1.0
_RESOURCES = {
    "Namespace": "namespaces",
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "Job": "jobs",
    "Pod": "pods",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What was asked for on the command line."""

    nodes: int
    pods: int
    once: bool
    port: int
    page_port: int
    data_dir: Path | None
    policy: Policy
    decision_records: int


def run_demo(
    nodes: int,
    pods: int,
    once: bool,
    port: int,
    page_port: int,
    data_dir: Path | None,
    config_file: Path | None,
    feature_gates: tuple[str, ...],
    plugins: tuple[str, ...],
    decision_records: int,
) -> None:
    policy = Policy.read(config_file, feature_gates, plugins)
    # The demo speaks for itself; what the parts have to say is of interest only if something breaks.
    logging.getLogger("kubesched").setLevel(logging.ERROR)
    raise_file_limit()
    with tempfile.TemporaryDirectory(prefix="kubesched-demo-") as scratch:
        was_cut_short = asyncio.run(
            _demo(Settings(nodes, pods, once, port, page_port, data_dir, policy, decision_records), Path(scratch))
        )
    if was_cut_short:
        sys.exit(INTERRUPTED)


async def _demo(given: Settings, scratch: Path) -> bool:
    """Run the demo; return whether it was stopped before it was through."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with _cluster(given, scratch, stopped) as (server, kubeconfig, scheduler, page):
        store = server.store
        _fill(store, given)
        demo_report.print_nodes(store)
        say(f"The page is at http://127.0.0.1:{page.port}/ui/\n")
        await _watch_placing(store, scheduler, stopped)
        if not stopped.is_set():
            demo_report.print_placed(store)
            demo_report.print_pending(scheduler)
        if not given.once and not stopped.is_set():
            _invite(server, kubeconfig, page)
            await stopped.wait()
        was_stopped = stopped.is_set()
    if was_stopped:
        say("Stopped." if given.data_dir is None else f"Stopped; the objects are kept in {given.data_dir}.")
    return was_stopped and given.once


def _invite(server: ApiServer, kubeconfig: Path, page: web.Server) -> None:
    """Say what to try next."""
    line = f"kubectl --kubeconfig {shlex.quote(str(kubeconfig))}"
    say(f"\nThe page:  http://127.0.0.1:{page.port}/ui/")
    say(f"The API:   {server.url}  (kubeconfig: {kubeconfig})", hang="           ")
    say("Try:")
    for words in (
        f"get pods -n {sample.NAMESPACE} -o wide",
        f"describe pod whale -n {sample.NAMESPACE}",
        f"scale deployment web -n {sample.NAMESPACE} --replicas 60",
    ):
        click.echo(f"  {line} {words}")  # whole, to be copied
    say("Press Ctrl-C to end.")


@contextlib.asynccontextmanager
async def _cluster(
    given: Settings, scratch: Path, stopped: asyncio.Event
) -> AsyncIterator[tuple[ApiServer, Path, Scheduler, web.Server]]:
    """Run the API server, the world around it, the scheduler, and the page. One that ends too early ends the demo."""
    server = ApiServer(ObjectStore(data_dir=given.data_dir), port=given.port)
    async with server, contextlib.AsyncExitStack() as ends:
        world = FakeCluster(server.store, _pace(given.nodes))
        world.start()
        ends.callback(world.stop)
        kubeconfig = server.write_kubeconfig((given.data_dir or scratch) / "kubeconfig").absolute()
        policy = given.policy
        wiring = Wiring(
            find_credentials(str(kubeconfig)),
            gates=policy.gates,
            plugins=policy.plugins,
            decision_records=given.decision_records,
            decision_share=1.0 if given.nodes <= _FULLY_RECORDED_NODES else SHARE,
        )
        scheduler = Scheduler(_unhurried(policy.configuration), wiring)
        IgnoredObjects(server.store, policy.configuration, policy.gates, say)
        reader = await connect(find_credentials(str(kubeconfig)), name="page", qps=-1.0)
        ends.push_async_callback(reader.close)
        routes = [*scheduler.decision_routes, *what_if_of(scheduler, reader), *DemoActions(server.store, world).routes()]
        scheduler.page_data.offers = (*web.WHAT_IFS, *demo_actions.OFFERS)
        page = await web.serve_insecurely(web.page_app(scheduler.page_data, more=routes), "127.0.0.1", given.page_port)
        ends.push_async_callback(page.stop)
        running = asyncio.create_task(scheduler.run())
        running.add_done_callback(lambda _: stopped.set())
        try:
            yield server, kubeconfig, scheduler, page
        finally:
            scheduler.stop()
            await running


def _pace(n_nodes: int) -> Pace:
    """Return how fast the world moves: thousands of kubelets that report every ten seconds would leave no time for else."""
    seconds = max(10.0, n_nodes / _REPORTS_A_SECOND)
    return Pace(lease_seconds=seconds, lease_duration_seconds=int(4 * seconds))


def _unhurried(configuration: config.Configuration) -> config.Configuration:
    """Return a configuration for a cluster of one's own: nobody else to elect, and no limit on requests."""
    changes = {
        "leader_election": msgspec.structs.replace(configuration.leader_election, leader_elect=False),
        "client_connection": msgspec.structs.replace(configuration.client_connection, qps=-1.0),
    }
    values = {name: getattr(configuration, name) for name in config.Configuration.__dataclass_fields__}
    return config.Configuration(**(values | changes))


def _fill(store: ObjectStore, given: Settings) -> None:
    """Create the nodes and the workload; what a data directory has brought along stays as it is."""
    for i in range(given.nodes):
        _create(store, "nodes", sample.node(i))
    for manifest in sample.workload(given.pods, given.nodes):
        _create(store, _RESOURCES[manifest["kind"]], manifest)


def _create(store: ObjectStore, resource: str, obj: dict[str, Any]) -> None:
    with contextlib.suppress(AlreadyExists):
        store.create(resource, obj, obj["metadata"].get("namespace", ""))


class Tally:
    """How many pods there are and how many have a node; counted as they change, for listing thousands is slow."""

    def __init__(self, store: ObjectStore) -> None:
        self._has_node: dict[str, bool] = {}
        self.n_placed = 0
        for pod in store.list("pods").items:
            self._put(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}", pod)
        store.listen("pods", lambda change: self._put(change.key, change.new.obj if change.new is not None else None))

    @property
    def n_pods(self) -> int:
        """Return how many pods there are."""
        return len(self._has_node)

    def _put(self, key: str, pod: dict[str, Any] | None) -> None:
        self.n_placed -= self._has_node.pop(key, False)
        if pod is not None:
            has_node = self._has_node[key] = bool(pod["spec"].get("nodeName"))
            self.n_placed += has_node


def _n_wanted(store: ObjectStore) -> int:
    """Return how many pods the workloads make."""
    makers = [*store.list("deployments").items, *store.list("statefulsets").items]
    replicas = sum(int(maker["spec"].get("replicas", 1)) for maker in makers)
    return replicas + sum(int(job["spec"].get("completions", 1)) for job in store.list("jobs").items)


async def _watch_placing(store: ObjectStore, scheduler: Scheduler, stopped: asyncio.Event) -> None:
    """Show a bar, or plain lines, until every pod is placed or was tried."""
    loop = asyncio.get_running_loop()
    tally, is_watched = Tally(store), sys.stdout.isatty()
    began_at = changed_at = told_at = loop.time()
    before: tuple[int, ...] = ()
    steady = 0
    columns = (
        TextColumn("placing pods"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} pods/s"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, transient=True, disable=not is_watched) as bar:
        task = bar.add_task("", total=None, rate="")
        while steady < _STEADY_TICKS and loop.time() - changed_at < _STUCK_SECONDS and not stopped.is_set():
            now = (tally.n_placed, tally.n_pods, *_taken_in(scheduler))
            changed_at = loop.time() if now != before else changed_at
            is_done = now == before and tally.n_pods >= _n_wanted(store) and _has_tried(scheduler, tally)
            steady = steady + 1 if is_done else 0
            if not is_watched and now != before and loop.time() - told_at >= _LINES_EVERY_SECONDS:
                say(f"placed {tally.n_placed} of {tally.n_pods} pods")
                told_at = loop.time()
            before = now
            n_bound = scheduler.throughput.n_bound
            began_at = began_at if n_bound else loop.time()
            rate = n_bound / max(changed_at - began_at, 1.0)
            bar.update(task, completed=tally.n_placed, total=max(tally.n_pods, 1), rate=f"{rate:,.0f}")
            await asyncio.sleep(_TICK_SECONDS)
    say(f"placed {tally.n_placed} of {tally.n_pods} pods")


def _taken_in(scheduler: Scheduler) -> tuple[int, ...]:
    """Return how much the scheduler knows by now."""
    engine = scheduler.engine
    return () if engine is None else (len(engine.store.nodes), len(engine.queue), engine.queue.n_active)


def _has_tried(scheduler: Scheduler, tally: Tally) -> bool:
    """Return whether every pod has a node or was refused at least once."""
    engine = scheduler.engine
    if engine is None or not scheduler.is_synced:
        return False
    refused = sum(1 for entry in engine.queue if entry.attempts or entry.is_gated)
    return tally.n_placed + refused >= tally.n_pods and not engine.queue.n_in_flight
