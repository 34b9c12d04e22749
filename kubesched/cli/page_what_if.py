"""The page's what-ifs about a running scheduler: its cluster is read anew each time, and decided as it decides."""

from __future__ import annotations

import time
from collections.abc import Sequence

from aiohttp import web

from kubesched.kube.client.connection import Connection
from kubesched.server.app import Scheduler
from kubesched.tools.plan.what_if import Deciding, what_if_routes
from kubesched.tools.snapshots.captured import Captured, capture


def what_if_of(scheduler: Scheduler, connection: Connection) -> Sequence[web.RouteDef]:
    """Return the routes."""
    gates = scheduler.wiring.gates

    async def read() -> Captured:
        return await capture(connection, gates, time.time())

    return what_if_routes(read, lambda: Deciding(scheduler.configuration, gates, scheduler.registry))
