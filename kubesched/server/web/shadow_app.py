"""The HTTP port of `kubesched shadow`: health, metrics, and the findings as JSON, open to all who can reach it.

In: a registry, and a function that returns the current document. Out: an application that answers GET only, and no requests of
other web sites.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry

from kubesched.server.web.responses import PAGE_HEADERS, own_pages_only, plain
from kubesched.telemetry.exposing import CONTENT_TYPE, exposition

DOCUMENT = "/shadow.json"


def shadow_app(
    registry: CollectorRegistry, document: Callable[[], Mapping[str, Any]], is_ready: Callable[[], bool], host: str
) -> web.Application:
    """Return the application."""

    async def healthz(_: web.Request) -> web.StreamResponse:
        return plain("ok")

    async def readyz(_: web.Request) -> web.StreamResponse:
        return plain("ok") if is_ready() else plain("the first lists are not in yet", 503)

    async def metrics(_: web.Request) -> web.StreamResponse:
        return web.Response(body=exposition(registry), headers={"Content-Type": CONTENT_TYPE})

    async def found(_: web.Request) -> web.StreamResponse:
        return web.Response(body=msgspec.json.encode(document()), content_type="application/json", headers=PAGE_HEADERS)

    app = web.Application(middlewares=[own_pages_only(host)])
    app.router.add_routes(
        [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics), web.get(DOCUMENT, found)]
    )
    return app
