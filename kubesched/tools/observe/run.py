"""One run of `observe`: follow a cluster, show it on the page, judge its scheduler; until told to stop.

In: credentials that may only read, how the live scheduler decides, where to serve. Out: lines for stderr (`say`), and a port
with the page, the decisions, what-ifs, metrics and health. SIGINT and SIGTERM end it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web as http
from prometheus_client import CollectorRegistry
from prometheus_client.process_collector import ProcessCollector

from kubesched.http import raise_file_limit
from kubesched.kube.client import CredentialSource, connect
from kubesched.scheduler.config import effective, text_of
from kubesched.scheduler.engine import await_the_list, spare_the_collector
from kubesched.server import web
from kubesched.server.app import access_of
from kubesched.server.options.options import Options
from kubesched.server.web.page.page import answer
from kubesched.tools.observe.figures import Figures
from kubesched.tools.observe.observer import Observer
from kubesched.tools.plan.what_if import Deciding, what_if_routes
from kubesched.tools.shadow.following import follow
from kubesched.tools.shadow.judging import Settings
from kubesched.tools.snapshots.captured import Captured, capture

JUDGED = "/shadow.json"
_QPS = 50.0
_TRY_EVERY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ObserveSettings:
    """What is followed and shown, where, and to whom."""

    source: CredentialSource
    judged_by: Settings
    options: Options
    """The flags of the port, its certificate and its doors, as `run` has them."""
    is_open: bool
    """Whether whoever reaches the port may look, without TLS: for a loopback address."""
    n_records: int


async def observe(settings: ObserveSettings, say: Callable[[str], None]) -> None:
    """Observe until told to stop."""
    raise_file_limit()
    await_the_list()
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    observer = Observer(settings.judged_by, settings.n_records)
    async with contextlib.AsyncExitStack() as ends:
        connection = await connect(settings.source, name="observe", qps=_QPS, burst=int(2 * _QPS))
        ends.push_async_callback(connection.close)
        reader = connection.sibling("page")

        async def read() -> Captured:
            return await capture(reader, settings.judged_by.gates, time.time())

        server = await _serve(settings, observer, stopped, what_if_routes(read, lambda: _deciding(settings)), ends)
        say(f"The page is at http{'' if settings.is_open else 's'}://{settings.options.serving.bind_address}:{server.port}/ui/")
        tasks = [
            asyncio.create_task(observer.engine.run()),
            asyncio.create_task(observer.throughput.history.keep(lambda: observer.engine)),
            asyncio.create_task(_try_waiting(observer)),
        ]

        def began() -> None:
            spare_the_collector()
            store, names = observer.judge.history.store, ", ".join(observer.engine.profiles)
            release = text_of(settings.judged_by.gates.emulated)
            say(f"Following {len(store.nodes)} nodes and {store.n_pods} pods beside {names}, as of {release}; Ctrl-C ends it")

        try:
            await follow(
                observer.judge, connection, stopped, warn=lambda text: say(f"Warning: {text}"), began=began, sink=observer
            )
        finally:
            observer.engine.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _serve(
    settings: ObserveSettings,
    observer: Observer,
    stopped: asyncio.Event,
    what_ifs: list[http.RouteDef],
    ends: contextlib.AsyncExitStack,
) -> web.Server:
    page_data = web.EnginePageData(lambda: observer.engine, observer.throughput)
    page_data.offers, page_data.is_observing = web.WHAT_IFS, True
    registry = CollectorRegistry()
    registry.register(observer.report)
    registry.register(Figures(observer.engine))
    ProcessCollector(registry=registry)

    async def judged(_: http.Request) -> http.Response:
        return answer(observer.report.document())

    options, judged_by = settings.options, settings.judged_by
    access = None if settings.is_open else await access_of(options.authentication, options.authorization, ends)
    config = web.AppConfig(
        registry=registry,
        gates=judged_by.gates,
        about=web.About(time.time(), options.reported_version, text_of(judged_by.gates.emulated)),
        readyz=(
            web.shutdown_check(stopped.is_set),
            web.handlers_check(lambda: observer.judge.is_judging),
        ),
        configz=lambda: effective(judged_by.configuration),
        flags=options.parsed.shown,
        extra_routes=[
            *web.page_routes(page_data),
            *web.decision_routes(observer.decisions.ring),
            *what_ifs,
            http.get(JUDGED, judged),
        ],
        open_paths=web.open_paths(),
    )
    server = await web.serve_config(config, options.serving, access)
    ends.push_async_callback(server.stop)
    return server


def _deciding(settings: ObserveSettings) -> Deciding:
    judged_by = settings.judged_by
    return Deciding(judged_by.configuration, judged_by.gates, judged_by.registry)


async def _try_waiting(observer: Observer) -> None:
    """Try pods that wait from time to time, once the cluster is known."""
    while True:
        await asyncio.sleep(_TRY_EVERY_SECONDS)
        if observer.judge.is_judging:
            await observer.engine.in_turn(observer.try_waiting)
