"""The web page: static files and JSON about the scheduler.

In: the data of an engine. Out: routes under /ui/, for the secure port, or for the loopback port of a demo. Only GET is
answered, and nothing can be changed. The files contain no secret and are open to all, so that they can ask for a token; the
JSON under /ui/api/ is not. The page needs no other host, and its content security policy forbids all others.
/ui/api/openapi.json describes the JSON.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from importlib import resources

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from kubesched.server.web.page.data import Document, EnginePageData, NotReady
from kubesched.server.web.page.live import LiveStreams, versions_of
from kubesched.server.web.responses import PAGE_HEADERS, own_pages_only

ROOT = "/ui"
API = f"{ROOT}/api"
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_DESCRIPTION = "openapi.json"
_LONGEST_NAME = 253
_LONGEST_SEARCH = 500
_WORTH_COMPRESSING = 4096
_encode = msgspec.json.Encoder().encode

Ask = Callable[[web.Request], Awaitable[Document | None] | Document]


def page_files() -> dict[str, tuple[bytes, str]]:
    """Return the static files by name, each with its content type."""
    folder = resources.files("kubesched.server.web") / "ui"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    suffixes = {file.name: "." + file.name.rpartition(".")[2] for file in files}
    return {file.name: (file.read_bytes(), _KINDS[suffixes[file.name]]) for file in files if suffixes[file.name] in _KINDS}


def open_paths() -> frozenset[str]:
    """Return the paths that are open to all: the files."""
    return frozenset({ROOT, f"{ROOT}/", *(f"{ROOT}/{name}" for name in page_files())})


def page_routes(data: EnginePageData) -> list[web.RouteDef]:
    """Return the routes of the page."""
    files = page_files()
    described = (resources.files("kubesched.server.web") / "ui" / _DESCRIPTION).read_bytes()
    pod = f"{API}/pods/{{namespace}}/{{name}}"
    unknown_pod = "pod {namespace}/{name} is neither queued nor placed here"
    unknown_pair = "pod {namespace}/{name} or node {node} is not known here, or the pod is for another scheduler"
    return [
        *(web.get(f"{ROOT}/{name}", _file(content, kind)) for name, (content, kind) in files.items()),
        web.get(ROOT, _to_root),
        web.get(f"{ROOT}/", _file(*files["index.html"])),
        web.get(f"{API}/{_DESCRIPTION}", _file(described, "application/json")),
        web.get(f"{API}/state", _answering(lambda request: data.state(versions_of(request)))),
        web.get(f"{API}/events", _patiently(LiveStreams(data).handle)),
        web.get(f"{API}/queue", _answering(lambda request: data.queue(_text(request, "part"), _text(request, "search")))),
        web.get(f"{API}/pending", _answering(lambda _: data.pending())),
        web.get(pod, _answering(lambda request: data.pod(_key(request)), unknown_pod)),
        web.get(f"{pod}/nodes", _answering(lambda request: data.pod_nodes(_key(request)), unknown_pod)),
        web.get(
            f"{pod}/nodes/{{node}}",
            _answering(lambda request: data.pod_node(_key(request), request.match_info["node"]), unknown_pair),
        ),
        web.get(f"{pod}/decisions", _answering(lambda request: data.pod_decisions(_key(request)))),
        web.get(
            f"{API}/nodes/{{name}}",
            _answering(lambda request: data.node(request.match_info["name"]), "node {name} is not known here"),
        ),
        web.get(f"{API}/pods-inside", _answering(lambda _: data.pods_inside())),
        web.get(f"{API}/labels", _answering(lambda request: data.label(request.query.get("key", "")))),
        web.get(f"{API}/history", _answering(lambda request: data.history(_number(request, "after")))),
        web.get(
            f"{API}/node-changes",
            _answering(lambda request: data.node_changes(_number(request, "since"), _number(request, "until") or math.inf)),
        ),
        web.get(f"{API}/configuration", _answering(lambda _: data.configuration())),
    ]


def page_app(data: EnginePageData, more: Sequence[web.RouteDef] = ()) -> web.Application:
    """Return the page alone, open to all on this machine except the pages of other web sites."""
    app = web.Application(middlewares=[own_pages_only("127.0.0.1")])
    app.router.add_routes([web.get("/", _to_root), *page_routes(data), *more])
    return app


async def _to_root(_: web.Request) -> web.StreamResponse:
    raise web.HTTPFound(f"{ROOT}/")


def _key(request: web.Request) -> str:
    return f"{request.match_info['namespace']}/{request.match_info['name']}"


def _text(request: web.Request, name: str) -> str:
    return request.query.get(name, "")[:_LONGEST_SEARCH]


def _number(request: web.Request, name: str) -> float:
    """Return a number parameter; 0 if it is not one."""
    try:
        number = float(request.query.get(name, ""))
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0


def _file(content: bytes, kind: str) -> Handler:
    async def handle(_: web.Request) -> web.StreamResponse:
        answer = web.Response(body=content, content_type=kind, charset="utf-8", headers=PAGE_HEADERS)
        answer.enable_compression()
        return answer

    return handle


def _answering(ask: Ask, unknown: str = "") -> Handler:
    """Return a handler that answers with a document, or with 404 and a message."""

    async def handle(request: web.Request) -> web.StreamResponse:
        names = request.match_info
        found = ask(request) if all(len(name) <= _LONGEST_NAME for name in names.values()) else None
        if isinstance(found, Awaitable):
            found = await found
        return answer(found) if found is not None else answer({"error": unknown.format(**names)}, 404)

    return _patiently(handle)


def _patiently(handler: Handler) -> Handler:
    """Return a handler that answers 503 while there is nothing to show."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except NotReady as error:
            return answer({"error": str(error)}, 503)

    return handle


def answer(document: Document, status: int = 200) -> web.Response:
    """Return a document as JSON, compressed if it is large."""
    body = _encode(document)
    response = web.Response(body=body, status=status, content_type="application/json", headers=PAGE_HEADERS)
    if len(body) > _WORTH_COMPRESSING:
        response.enable_compression()
    return response
