"""One run of `serve`: the nursery first, then the ports; until it is told to stop.

In: how pods are decided, which cluster is followed, what is served where. Out: lines for stderr (`say`). SIGINT and SIGTERM end
it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kubesched import Cluster
from kubesched.errors import SchedulerError
from kubesched.http import raise_file_limit
from kubesched.kube.api import TopLevel
from kubesched.kube.client import CredentialSource, Reflectors, connect, watch_set
from kubesched.scheduler.engine import spare_the_collector
from kubesched.server import web
from kubesched.server.app import access_of
from kubesched.server.options.options import Options
from kubesched.tools.serve.http_face import routes
from kubesched.tools.serve.kueue import AdmissionChecks
from kubesched.tools.serve.questions import AskedCluster, Raw, decoded, objects_in
from kubesched.tools.serve.service import Limits, Service
from kubesched.tools.serve.solver_process import Answering
from kubesched.tools.serve.solvers import Nursery
from kubesched.tools.snapshots.sources import Policy

GRACE_SECONDS = 5.0
_QPS = 50.0


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """What is served, where, and to whom."""

    policy: Policy
    feature_gates: tuple[str, ...]
    source: CredentialSource | None
    """The cluster to follow; None for sessions only."""
    options: Options
    """The flags of the port, its certificate and its doors, as `run` has them."""
    is_open: bool
    """Whether whoever reaches the ports may ask, without TLS: for a loopback address."""
    grpc_port: int
    limits: Limits
    checks_kueue: bool
    version: str


@dataclass(frozen=True, slots=True)
class Opener:
    """Makes the clusters of solver processes, in these processes."""

    policy: Policy
    feature_gates: tuple[str, ...]
    source: CredentialSource | None

    def session(self, objects: bytes) -> Answering:
        """Return a cluster of objects that a caller sent."""
        return AskedCluster(self._cluster(objects_in(decoded(objects, list[Raw]), "objects")))

    async def follow(self, ready: Callable[[Answering], Awaitable[None]]) -> None:
        """Follow the live cluster until cancelled."""
        assert self.source is not None
        asked = AskedCluster(self._cluster([]))
        connection = await connect(self.source, name="serve", qps=_QPS, burst=int(2 * _QPS))
        gates, queue = self.policy.gates, asked.cluster.engine.queue
        custom = [name for name in queue.watched_resources() if name.count(".") >= 2 and "/" not in name]
        rows = watch_set([name for name, is_on in gates.states.items() if is_on], custom)
        reflectors = await Reflectors.prepare(connection, rows, asked, streams=gates.is_enabled("WatchListClient"))
        for row in rows:
            if row.is_indispensable:
                if (version := reflectors.served.version_of(row)) is None:
                    raise SchedulerError(f"{connection.server} does not serve {row.plural}: is it a Kubernetes API server?")
                await connection.request("GET", f"{row.path(version)}?limit=1")  # raises Forbidden if we may not
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(reflectors.run())
            await reflectors.wait_synced()
            await ready(asked)

    def _cluster(self, objects: Sequence[TopLevel]) -> Cluster:
        policy = self.policy
        return Cluster(
            objects,
            configuration=policy.configuration,
            feature_gates=self.feature_gates,
            plugins=policy.plugins,
            release=policy.gates.emulated,
        )


class GrpcPort(Protocol):
    """A port of gRPC."""

    port: int

    async def start(self) -> None:
        """Listen."""
        ...

    async def stop(self, grace_seconds: float) -> None:
        """Take no more calls, and let those under way end."""
        ...


OpenGrpc = Callable[[Service, web.DelegatedAccess | None, str, Callable[[], web.Pair | None]], GrpcPort]
"""Makes the port: for a service, who may ask, at an address, with the certificate of the moment."""


def nursery_for(settings: ServeSettings) -> Nursery:
    """Fork the nursery off; to be called before grpc is imported, which starts threads."""
    return Nursery(Opener(settings.policy, settings.feature_gates, settings.source))


def run(settings: ServeSettings, nursery: Nursery, open_grpc: OpenGrpc | None, say: Callable[[str], None]) -> None:
    """Serve until told to stop."""
    raise_file_limit()
    try:
        asyncio.run(_serve(settings, nursery, open_grpc, say))
    finally:
        nursery.close()


async def _serve(settings: ServeSettings, nursery: Nursery, open_grpc: OpenGrpc | None, say: Callable[[str], None]) -> None:
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    options, service = (
        settings.options,
        Service(nursery, settings.limits, follows=settings.source is not None, is_open=settings.is_open),
    )
    is_stopping = False
    async with contextlib.AsyncExitStack() as ends:
        access = None if settings.is_open else await access_of(options.authentication, options.authorization, ends)
        config = web.AppConfig(
            registry=service.metrics.registry,
            gates=settings.policy.gates,
            about=web.About(time.time(), settings.version, ".".join(map(str, settings.policy.gates.emulated))),
            readyz=(
                web.shutdown_check(lambda: is_stopping),
                web.Check("cluster", lambda: "" if service.is_ready else "the cluster has not been read yet"),
            ),
            flags=options.parsed.shown,
            extra_routes=routes(service),
        )
        server = await web.serve_config(config, options.serving, access)
        ends.push_async_callback(server.stop)
        host = options.serving.bind_address
        say(f"Serving http{'' if access is None else 's'}://{_address(host, server.port)}/v1/")
        if open_grpc is not None:
            port = open_grpc(service, access, _address(host, settings.grpc_port), lambda: server.certificate)
            await port.start()
            ends.push_async_callback(port.stop, GRACE_SECONDS)
            say(f"Serving gRPC on {_address(host, port.port)}")
        spare_the_collector()
        tasks = [asyncio.create_task(service.run())]
        if settings.checks_kueue and settings.source is not None:
            connection = await connect(settings.source, name="kueue", qps=_QPS, burst=int(2 * _QPS))
            ends.push_async_callback(connection.close)
            tasks.append(asyncio.create_task(AdmissionChecks(service, connection).run()))
        tasks.append(asyncio.create_task(stopped.wait()))  # type: ignore[arg-type]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except* SchedulerError as errors:
            raise errors.exceptions[0] from None
        finally:
            is_stopping = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
