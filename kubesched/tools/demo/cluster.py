"""The demo's cluster in one process: the embedded API server, fake kubelets and controllers, the scheduler, and the page.

In: its size, and the scheduler's configuration. Out: the running parts, with the sample workload in the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from kubesched.embedded import ApiServer, ObjectStore
from kubesched.embedded.controllers import FakeCluster, Pace
from kubesched.errors import AlreadyExists
from kubesched.http import raise_file_limit
from kubesched.kube.client import connect, find_credentials
from kubesched.scheduler import config
from kubesched.scheduler.engine import SHARE
from kubesched.server import web
from kubesched.server.app import Scheduler, Wiring
from kubesched.tools.demo import actions, sample
from kubesched.tools.demo.ignored import IgnoredObjects
from kubesched.tools.plan.what_if import what_ifs_of_scheduler
from kubesched.tools.snapshots.sources import Policy

_REPORTS_A_SECOND = 20
_FULLY_RECORDED_NODES = 1000
"""Up to this size, every decision of a demo is recorded with all scores, for the page."""
_RESOURCES = {
    "Node": "nodes",
    "Namespace": "namespaces",
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "Job": "jobs",
    "Pod": "pods",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The size and the settings of a demo."""

    nodes: int
    pods: int
    port: int
    page_port: int
    data_dir: Path | None
    policy: Policy
    decision_records: int


class Demo(NamedTuple):
    """The parts of a running demo."""

    server: ApiServer
    kubeconfig: Path
    scheduler: Scheduler
    page: web.Server


@contextlib.asynccontextmanager
async def demo_cluster(
    given: Settings, scratch: Path, stopped: asyncio.Event, say: Callable[[str], None]
) -> AsyncIterator[Demo]:
    """Run a cluster with the sample workload. `stopped` is set if the scheduler ends; `say` prints what it ignores."""
    # The demo prints its own lines. Of the logs of its parts only errors are useful.
    logging.getLogger("kubesched").setLevel(logging.ERROR)
    raise_file_limit()
    server = ApiServer(ObjectStore(data_dir=given.data_dir), port=given.port)
    async with server, contextlib.AsyncExitStack() as ends:
        fake_cluster = FakeCluster(server.store, _pace(given.nodes))
        fake_cluster.start()
        ends.callback(fake_cluster.stop)
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
        routes = [
            *scheduler.decision_routes,
            *what_ifs_of_scheduler(scheduler, reader),
            *actions.DemoActions(server.store, fake_cluster).routes(),
        ]
        scheduler.page_data.offers = (*web.WHAT_IFS, *actions.OFFERS)
        page = await web.serve_insecurely(web.page_app(scheduler.page_data, more=routes), "127.0.0.1", given.page_port)
        ends.push_async_callback(page.stop)
        running = asyncio.create_task(scheduler.run())
        running.add_done_callback(lambda _: stopped.set())
        try:
            _fill(server.store, given)
            yield Demo(server, kubeconfig, scheduler, page)
        finally:
            scheduler.stop()
            await running


def _pace(n_nodes: int) -> Pace:
    """Return slower heartbeats for a large cluster: thousands of kubelets every ten seconds would use all the CPU."""
    seconds = max(10.0, n_nodes / _REPORTS_A_SECOND)
    return Pace(lease_seconds=seconds, lease_duration_seconds=int(4 * seconds))


def _unhurried(configuration: config.Configuration) -> config.Configuration:
    """Return a configuration without leader election and without a limit on requests."""
    return replace(
        configuration,
        leader_election=msgspec.structs.replace(configuration.leader_election, leader_elect=False),
        client_connection=msgspec.structs.replace(configuration.client_connection, qps=-1.0),
    )


def _fill(store: ObjectStore, given: Settings) -> None:
    """Create the nodes and the workload; objects that the data directory has already stay."""
    for obj in (*map(sample.node, range(given.nodes)), *sample.workload(given.pods, given.nodes)):
        with contextlib.suppress(AlreadyExists):
            store.create(_RESOURCES[obj["kind"]], obj, obj["metadata"].get("namespace", ""))
