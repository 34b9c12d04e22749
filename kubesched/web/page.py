"""The page: a read-only look at the scheduler, as static files and a little JSON.

In: somebody who shows an engine (`PageData`). Out: routes under /ui/, for the secure port behind its doors, or for a
loopback port of a demo. Only GET is answered and nothing is ever changed. The page needs no other host, so it may not
talk to any: its own policy says so to the browser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Protocol

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from kubesched.errors import SchedulerError
from kubesched.serving import Origins
from kubesched.web.answers import NO_SNIFF, plain

ROOT = "/ui"
FILES = {"index.html": "text/html", "page.js": "text/javascript", "page.css": "text/css"}
HEADERS = {
    **NO_SNIFF,
    "Cache-Control": "no-cache, private",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}
_LONGEST_NAME = 253
_WORTH_COMPRESSING = 4096
_encode = msgspec.json.Encoder().encode


class NotReady(SchedulerError):
    """There is nothing to show yet, or nobody who has the time; asking again helps."""


@dataclass(frozen=True, slots=True)
class Versions:
    """Which versions of the columns the asker has already got; empty for none."""

    nodes: str = ""
    usage: str = ""


class PageData(Protocol):
    """Shows an engine in values that JSON knows."""

    def state(self, seen: Versions) -> Mapping[str, Any]:
        """Return the picture of the moment; columns that the asker has are left out."""
        ...

    async def pod(self, key: str) -> Mapping[str, Any] | None:
        """Return what is known of a pod and how the nodes look to it; None if there is no such pod."""
        ...

    async def node(self, name: str) -> Mapping[str, Any] | None:
        """Return what is known of a node; None if there is no such node."""
        ...


def page_routes(page_data: PageData) -> list[web.RouteDef]:
    """Return the routes of the page."""
    folder = resources.files("kubesched.web") / "ui"
    served = {name: (folder / name).read_bytes() for name in FILES}

    async def state(request: web.Request) -> web.StreamResponse:
        seen = Versions(request.query.get("nodes", ""), request.query.get("usage", ""))
        return _answer(page_data.state(seen))

    async def pod(request: web.Request) -> web.StreamResponse:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        found = await page_data.pod(f"{namespace}/{name}") if len(name) <= _LONGEST_NAME else None
        if found is None:
            return _answer({"error": f"pod {namespace}/{name} is neither queued nor placed here"}, 404)
        return _answer(found)

    async def node(request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        found = await page_data.node(name) if len(name) <= _LONGEST_NAME else None
        if found is None:
            return _answer({"error": f"node {name} is not known here"}, 404)
        return _answer(found)

    async def to_root(_: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"{ROOT}/")

    routes = [web.get(f"{ROOT}/{name}", _file(content, FILES[name])) for name, content in served.items()]
    return [
        *routes,
        web.get(ROOT, to_root),
        web.get(f"{ROOT}/", _file(served["index.html"], "text/html")),
        web.get(f"{ROOT}/api/state", _patiently(state)),
        web.get(f"{ROOT}/api/pods/{{namespace}}/{{name}}", _patiently(pod)),
        web.get(f"{ROOT}/api/nodes/{{name}}", _patiently(node)),
    ]


def page_app(page_data: PageData, host: str = "127.0.0.1", more: Sequence[web.RouteDef] = ()) -> web.Application:
    """Return the page alone, for everybody who can reach it at this address; but not for pages of other web sites."""
    origins = Origins(host)

    @web.middleware
    async def own_pages_only(request: web.Request, handler: Handler) -> web.StreamResponse:
        refused = origins.refusal(request.headers)
        return plain(refused, 403) if refused else await handler(request)

    app = web.Application(middlewares=[own_pages_only])

    async def to_page(_: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"{ROOT}/")

    app.router.add_routes([web.get("/", to_page), *page_routes(page_data), *more])
    return app


def _file(content: bytes, kind: str) -> Handler:
    async def handle(_: web.Request) -> web.StreamResponse:
        answer = web.Response(body=content, content_type=kind, charset="utf-8", headers=HEADERS)
        answer.enable_compression()
        return answer

    return handle


def _patiently(handler: Handler) -> Handler:
    """Say that there is nothing to show yet in a way that the page understands."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except NotReady as error:
            return _answer({"error": str(error)}, 503)

    return handle


def _answer(document: Mapping[str, Any], status: int = 200) -> web.Response:
    body = _encode(document)
    answer = web.Response(body=body, status=status, content_type="application/json", headers=HEADERS)
    if len(body) > _WORTH_COMPRESSING:
        answer.enable_compression()
    return answer
