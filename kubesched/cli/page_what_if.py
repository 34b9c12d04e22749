"""The page's what-ifs about a running scheduler: its cluster is read anew each time, and decided as it decides."""

from __future__ import annotations

import time
from collections.abc import Sequence

from aiohttp import web

from kubesched.app import Scheduler
from kubesched.client.connection import Connection
from kubesched.simulator.captured import Captured, capture
from kubesched.simulator.what_if import Deciding, what_if_routes


def what_if_of(scheduler: Scheduler, connection: Connection) -> Sequence[web.RouteDef]:
    """Return the routes."""
    gates = scheduler.wiring.gates

    async def read() -> Captured:
        return await capture(connection, gates, time.time())

    return what_if_routes(read, lambda: Deciding(scheduler.configuration, gates, scheduler.registry))
