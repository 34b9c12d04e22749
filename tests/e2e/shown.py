"""An engine of a test's own with its page; and what all tests of the page look for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.config import Gates
from kubesched.scheduler.engine.arrivals.inbox import Changed
from kubesched.scheduler.engine.assembly import Ports, assemble, default_configuration
from kubesched.scheduler.engine.handle import NoWriter
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.engine.records.decision_record import PLACED, DecisionRecord
from kubesched.scheduler.engine.records.decision_recorder import DecisionRecorder
from kubesched.server.web import EnginePageData, Throughput, decision_routes, page_app, serve_insecurely
from kubesched.telemetry import Metrics
from kubesched.testing.builders import node, pod

READY = "document.body.dataset.ready === 'yes'"
LABEL = "document.querySelector('canvas').getAttribute('aria-label')"
VIEWS = [
    "#map",
    "#pending",
    "#decisions",
    "#time",
    "#configuration",
    "#try",
    "#pod/demo/whale",
    "#pod/demo/cache-0",
    "#node/node-009",
]


class Shown(NoWriter):
    """An engine of the test's own with a writer that binds at once, and its page."""

    def __init__(self, n_nodes: int = 6) -> None:
        gates = Gates.defaults()
        self.recorder = DecisionRecorder(1000)
        self.engine: Engine = assemble(default_configuration(gates), gates, Ports(writer=self, decisions=self.recorder))
        self.log = Throughput(Metrics())
        self.page_data = EnginePageData(lambda: self.engine, self.log)
        self.come("Node", *(node(f"node-{i}", zone=f"zone-{i % 3}") for i in range(n_nodes)))

    def come(self, kind: str, *objects: object) -> None:
        for each in objects:
            self.engine.inbox.post(Changed(kind, None, each))
        self.engine.take_in()

    def come_all(self, objects: Iterable[Any]) -> None:
        for each in objects:
            self.engine.inbox.post(Changed(each.kind, None, each))
        self.engine.take_in()

    async def bind(self, pod: PodView, node_name: str) -> None:
        self.engine.inbox.post(Changed("Pod", pod.on("").pod, pod.on(node_name).pod))

    def record(self, *names: str) -> None:
        for name in names:
            self.log.pod_bound(self.engine.store.view(pod(name)), "node-1", 1, 0.02, False)
            told = DecisionRecord(
                f"default/{name}", "u", "default-scheduler", outcome=PLACED, node="node-1", bound_seconds=0.02
            )
            told.at = time.time()
            self.recorder.ring.append(told)

    @asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncIterator[str]:
        working = asyncio.create_task(self.engine.run())
        server = await serve_insecurely(page_app(self.page_data, more=decision_routes(self.recorder.ring)), "127.0.0.1", port)
        try:
            yield f"http://127.0.0.1:{server.port}/ui/"
        finally:
            await server.stop()
            self.engine.stop()
            await working
