"""One run of `shadow`: follow a cluster, judge placements, save differences, and serve the report.

In: the cluster's credentials, how to judge, when to stop. Out: lines for stderr (`say`), each placement as a document (`show`),
and the report. SIGINT and SIGTERM end it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from kubesched.kube.client import CredentialSource, Observers, connect
from kubesched.scheduler.config import text_of
from kubesched.scheduler.engine import SystemClock
from kubesched.server import web
from kubesched.server.web.shadow_app import DOCUMENT, shadow_app
from kubesched.tools.shadow.following import follow
from kubesched.tools.shadow.judging import Judge, Judged, Settings
from kubesched.tools.shadow.report import Report
from kubesched.tools.shadow.snapshots import Snapshots

_QPS = 50.0


@dataclass(slots=True)
class Run:
    """One run, and its report."""

    source: CredentialSource
    judged_by: Settings
    snapshots: Snapshots | None
    most_pods: int | None
    seconds: float | None
    served_at: tuple[str, int] | None
    say: Callable[[str], None]
    show: Callable[[dict[str, Any], bool], None]
    """Called with each judged placement, and whether we agree."""
    report: Report = field(default_factory=lambda: Report(time.time()))
    verbs: Counter[str] = field(default_factory=Counter)
    """How many requests of each verb were answered, without watches."""
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)

    def document(self) -> dict[str, Any]:
        """Return the report so far."""
        return {**self.report.document(), "requests": dict(self.verbs)}

    async def run(self) -> None:
        """Follow and judge until stopped."""
        loop, clock = asyncio.get_running_loop(), SystemClock()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stopped.set)
        judge = self.report.judge = Judge(self.judged_by, self._judged, clock)
        observers = Observers(answer=self._count)
        connection = await connect(self.source, name="shadow", qps=_QPS, burst=int(2 * _QPS), observers=observers)
        try:
            async with self._serving(judge):
                await follow(
                    judge, connection, self._stopped, warn=lambda text: self.say(f"Warning: {text}"), began=self._began
                )
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
            await connection.close()
            if self.snapshots is not None:
                self.snapshots.close()

    @contextlib.asynccontextmanager
    async def _serving(self, judge: Judge) -> AsyncIterator[None]:
        if self.served_at is None:
            yield
            return
        host, port = self.served_at
        registry = CollectorRegistry()
        registry.register(self.report)
        server = await web.serve_insecurely(shadow_app(registry, self.document, lambda: judge.is_judging, host), host, port)
        self.say(f"Serving http://{host}:{server.port}{DOCUMENT} and /metrics")
        try:
            yield
        finally:
            await server.stop()

    def _count(self, verb: str, code: str, seconds: float) -> None:
        self.verbs[verb] += 1

    def _began(self) -> None:
        assert self.report.judge is not None
        store, names = self.report.judge.history.store, ", ".join(self.report.judge.engine.profiles)
        n_nodes, n_pods, release = len(store.nodes), store.n_pods, text_of(self.judged_by.gates.emulated)
        self.say(f"Following {n_nodes} nodes and {n_pods} pods, judging {names} as of {release}; Ctrl-C ends it")
        self.report.started = time.time()
        if self.seconds is not None:
            asyncio.get_running_loop().call_later(self.seconds, self._stopped.set)

    def _judged(self, judged: Judged) -> None:
        if judged.is_control:
            self.report.add(judged)
            return
        snapshot = self.snapshots.keep(judged) if self.snapshots is not None else ""
        document = self.report.add(judged, snapshot)
        self.show(document, judged.comparison.kind.is_agreement)
        if self.most_pods is not None and self.report.n_judged >= self.most_pods:
            self._stopped.set()
