"""The application: every path we serve, behind one chain of doors.

    recover > log > mark as not to be cached > authenticate > authorize > the page

In: `WebParts`. Out: an aiohttp application for the secure port, or the small one for the plain port of older releases.
Who shows credentials that do not hold gets 401, and so does who shows none where they are needed; who is known and may
not gets 403.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import CollectorRegistry

from kubesched.errors import SchedulerError
from kubesched.http import source_address
from kubesched.server.web import debug_flags, pod_resources
from kubesched.server.web.access.authentication import ANONYMOUS, NotAuthentic
from kubesched.server.web.answers import configuration_answer, forbidden, plain, unauthorized
from kubesched.server.web.health import Endpoint, Results
from kubesched.server.web.parts import WebParts
from kubesched.server.web.profiling.pages import ROOT as PROFILES
from kubesched.server.web.profiling.pages import ProfilingPages
from kubesched.server.web.zpages import flagz, statusz
from kubesched.telemetry import protobuf
from kubesched.telemetry.exposing import CONTENT_TYPE, encoded, exposition
from kubesched.telemetry.logs import logger

log = logger(__name__)

MOST_BODY_BYTES = 1 << 16
NOT_CACHED = "no-cache, private"
_UNLOGGED_UNDER = 3


def build_app(parts: WebParts) -> web.Application:
    """Return the application of the secure port."""
    app = web.Application(
        middlewares=[_recovering, _logging, _uncached, _guarding(parts), _found], client_max_size=MOST_BODY_BYTES
    )
    results = Results()
    for name, checks in (("healthz", parts.healthz), ("livez", parts.livez), ("readyz", parts.readyz)):
        _add_health(app, Endpoint(name, checks, results))
    _add_metrics(app, parts, results)
    app.router.add_route("*", "/configz", _configz(parts))
    if parts.has_profiling:
        _add_profiling(app, parts)
        app.router.add_route("*", "/debug/flags", debug_flags.list_flags)
        app.router.add_route("*", "/debug/flags/v", debug_flags.set_verbosity)
    if parts.gates.is_enabled("ComponentFlagz"):
        app.router.add_route("*", "/flagz", flagz(parts.flags).handle)
    if parts.gates.is_enabled("ComponentStatusz"):
        app.router.add_route("*", "/statusz", statusz(parts.about, _listed(app)).handle)
    app.router.add_routes(parts.extra_routes)
    app.on_response_prepare.append(_without_server_name)
    return app


def build_insecure_app(parts: WebParts) -> web.Application:
    """Return the application of the old port 10251: health, metrics, configuration and profiles, open to everybody."""
    app = web.Application(middlewares=[_recovering, _logging, _found], client_max_size=MOST_BODY_BYTES)
    app.router.add_route("*", "/healthz", Endpoint("healthz", parts.healthz, Results()).handle)
    app.router.add_route("*", "/metrics", _metrics(parts.registry, parts.reset_metrics))
    app.router.add_route("*", "/configz", _configz(parts))
    if parts.has_profiling:
        _add_profiling(app, parts)
    app.on_response_prepare.append(_without_server_name)
    return app


# --- pages ------------------------------------------------------------------------------------------------------------


def _add_health(app: web.Application, endpoint: Endpoint) -> None:
    app.router.add_route("*", f"/{endpoint.name}", endpoint.handle)
    app.router.add_route("*", f"/{endpoint.name}/{{check}}", endpoint.handle_one)


def _add_metrics(app: web.Application, parts: WebParts, results: Results) -> None:
    slis = CollectorRegistry()
    slis.register(results)
    app.router.add_route("*", "/metrics", _metrics(parts.registry, parts.reset_metrics))
    app.router.add_route("*", "/metrics/slis", _metrics(slis, results.reset))

    async def of_the_leader(request: web.Request) -> web.StreamResponse:
        # Two schedulers that both tell of all pods would count every pod twice.
        if not parts.is_leader():
            return web.Response()
        answer = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE})
        answer.headers["Cache-Control"] = NOT_CACHED
        answer.enable_compression()
        await answer.prepare(request)
        for chunk in pod_resources.lines(parts.pods()):
            await answer.write(chunk.encode())
            await asyncio.sleep(0)
        return answer

    app.router.add_route("*", "/metrics/resources", of_the_leader)


def _metrics(registry: CollectorRegistry, reset: Callable[[], None]) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        if request.method == "DELETE":
            reset()
            return plain("metrics reset\n")
        is_protobuf = protobuf.is_wanted(request.headers.get("Accept", ""))
        body = encoded(registry) if is_protobuf else exposition(registry)
        answer = web.Response(body=body, headers={"Content-Type": protobuf.CONTENT_TYPE if is_protobuf else CONTENT_TYPE})
        answer.enable_compression()
        return answer

    return handle


def _configz(parts: WebParts) -> Handler:
    async def handle(_: web.Request) -> web.StreamResponse:
        return configuration_answer({"componentconfig": dict(parts.configz())})

    return handle


def _add_profiling(app: web.Application, parts: WebParts) -> None:
    pages = ProfilingPages(has_contention=parts.has_contention_profiling)

    async def redirect(_: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"{PROFILES}/")

    app.router.add_route("*", PROFILES, redirect)
    app.router.add_route("*", f"{PROFILES}/", pages.index)
    app.router.add_route("*", f"{PROFILES}/{{profile}}", pages.page)


def _listed(app: web.Application) -> list[str]:
    """Return the first steps of the paths served so far, without the debugging ones."""
    firsts = {f"/{resource.canonical.split('/')[1]}" for resource in app.router.resources()}
    return sorted(firsts - {"/debug", "/statusz"})


# --- doors ------------------------------------------------------------------------------------------------------------


@web.middleware
async def _recovering(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException:
        raise
    except Exception:  # one page that breaks may not take the server down, nor show a traceback to a stranger
        log.exception("A page broke", method=request.method, path=request.path)
        return plain("Internal Server Error", 500)


@web.middleware
async def _logging(request: web.Request, handler: Handler) -> web.StreamResponse:
    if log.level < _UNLOGGED_UNDER:
        return await handler(request)
    began = time.perf_counter()
    status = 500
    try:
        answer = await handler(request)
        status = answer.status
        return answer
    except web.HTTPException as error:
        status = error.status
        raise
    finally:
        log.v(_UNLOGGED_UNDER).info(
            "HTTP",
            verb=request.method,
            URI=request.rel_url.raw_path_qs,
            latency=f"{(time.perf_counter() - began) * 1000:.3f}ms",
            userAgent=request.headers.get("User-Agent", ""),
            srcIP=source_address(request),
            resp=status,
        )


@web.middleware
async def _uncached(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        answer = await handler(request)
    except web.HTTPException as error:  # a redirection
        error.headers.setdefault("Cache-Control", NOT_CACHED)
        raise
    if not answer.prepared:  # one that was streamed has said so itself
        answer.headers.setdefault("Cache-Control", NOT_CACHED)
    return answer


@web.middleware
async def _found(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return plain("404 page not found", 404)


def _guarding(parts: WebParts) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in parts.open_paths:
            return await handler(request)
        user = ANONYMOUS
        if parts.authenticator is not None:
            try:
                user = await parts.authenticator.authenticate(request)
            except NotAuthentic as error:
                log.v(2).info("Unable to authenticate the request", err=error, path=request.path)
                return unauthorized(request)
        verb, path = request.method.lower(), request.path
        if parts.authorizer is None:
            return forbidden(request, user.name, verb, path)
        try:
            decision = await parts.authorizer.decide(user, verb, path)
        except SchedulerError as error:
            log.error("Authorization error", err=error, user=user.name, path=path)
            return plain(f'Internal Server Error: "{path}": {error}', 500)
        if decision.is_allowed:
            return await handler(request)
        # The reference answers 403 here, to system:anonymous; 401 says what would help.
        if user.is_anonymous:
            return unauthorized(request)
        log.v(4).info("Forbidden", URI=request.rel_url.raw_path_qs, user=user.name, reason=decision.reason)
        return forbidden(request, user.name, verb, path, decision.reason)

    return guard


async def _without_server_name(_: web.Request, answer: web.StreamResponse) -> None:
    answer.headers.pop("Server", None)
