"""The application: all paths of the scheduler's port, behind one chain of middlewares.

    recover > log > no caching > authenticate > authorize > the page

In: `AppConfig`. Out: an aiohttp application for the secure port, or the small one for the plain port of old releases. Wrong
credentials get 401, and so do missing ones where they are needed; a known user without the right gets 403.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import CollectorRegistry

from kubesched.errors import SchedulerError
from kubesched.http import source_address
from kubesched.scheduler.cluster import PodView
from kubesched.scheduler.config import Gates
from kubesched.server.web import debug_flags, pod_resources
from kubesched.server.web.access.authentication import ANONYMOUS, Authenticator, NotAuthentic, User
from kubesched.server.web.access.authorization import Decision
from kubesched.server.web.health import PING, Check, Endpoint, Results
from kubesched.server.web.profiling.pages import ROOT as PROFILES
from kubesched.server.web.profiling.pages import ProfilingPages
from kubesched.server.web.responses import accepted, configuration_response, forbidden, plain, unauthorized
from kubesched.server.web.zpages import About, flagz, statusz
from kubesched.telemetry import protobuf
from kubesched.telemetry.exposing import CONTENT_TYPE, encoded, exposition
from kubesched.telemetry.logs import logger

log = logger(__name__)

MOST_BODY_BYTES = 1 << 16
USER = web.RequestKey("user", User)
"""Under it a request behind the doors has who asks."""
NOT_CACHED = "no-cache, private"
_UNLOGGED_UNDER = 3  # requests are logged from this verbosity on


class Deciding(Protocol):
    """Tells who may; an `Authorizer`, or what stands in for one."""

    async def decide(self, user: User, verb: str, path: str) -> Decision:
        """Return whether a user may."""
        ...


@dataclass(frozen=True, slots=True)
class AppConfig:
    """What is served, and to whom. Values and callables only, so the application does not know the engine."""

    registry: CollectorRegistry  # of /metrics
    gates: Gates
    about: About
    healthz: Sequence[Check] = (PING,)
    livez: Sequence[Check] = (PING,)
    readyz: Sequence[Check] = ()
    reset_metrics: Callable[[], None] = lambda: None
    pods: Callable[[], Iterable[PodView]] = lambda: ()  # of /metrics/resources
    is_leader: Callable[[], bool] = lambda: True  # /metrics/resources is empty on others
    configz: Callable[[], Mapping[str, Any]] = dict  # the effective configuration, as `config.effective` gives it
    flags: Mapping[str, str] = field(default_factory=dict)
    has_profiling: bool = True
    has_contention_profiling: bool = True
    authenticator: Authenticator | None = None  # None: everybody is anonymous
    authorizer: Deciding | None = None  # None: everything is refused
    extra_routes: Sequence[web.AbstractRouteDef] = ()  # the page, say; behind the same doors as all the rest
    open_paths: frozenset[str] = frozenset()  # those of them that are for everybody


def build_app(config: AppConfig) -> web.Application:
    """Return the application of the secure port."""
    app = web.Application(
        middlewares=[_recovering, _logging, _uncached, _guarding(config), _found], client_max_size=MOST_BODY_BYTES
    )
    results = Results()
    for name, checks in (("healthz", config.healthz), ("livez", config.livez), ("readyz", config.readyz)):
        endpoint = Endpoint(name, checks, results)
        app.router.add_route("*", f"/{name}", endpoint.handle)
        app.router.add_route("*", f"/{name}/{{check}}", endpoint.handle_one)
    _add_metrics(app, config, results)
    app.router.add_route("*", "/configz", _configz(config))
    if config.has_profiling:
        _add_profiling(app, config)
        app.router.add_route("*", "/debug/flags", debug_flags.list_flags)
        app.router.add_route("*", "/debug/flags/v", debug_flags.set_verbosity)
    if config.gates.is_enabled("ComponentFlagz"):
        app.router.add_route("*", "/flagz", flagz(config.flags).handle)
    if config.gates.is_enabled("ComponentStatusz"):
        app.router.add_route("*", "/statusz", statusz(config.about, _listed(app)).handle)
    app.router.add_routes(config.extra_routes)
    app.on_response_prepare.append(_without_server_name)
    return app


def build_insecure_app(config: AppConfig) -> web.Application:
    """Return the application of the old port 10251: health, metrics, configuration and profiles, open to everybody."""
    app = web.Application(middlewares=[_recovering, _logging, _found], client_max_size=MOST_BODY_BYTES)
    app.router.add_route("*", "/healthz", Endpoint("healthz", config.healthz, Results()).handle)
    app.router.add_route("*", "/metrics", _metrics(config.registry, config.reset_metrics))
    app.router.add_route("*", "/configz", _configz(config))
    if config.has_profiling:
        _add_profiling(app, config)
    app.on_response_prepare.append(_without_server_name)
    return app


# --- pages ------------------------------------------------------------------------------------------------------------


def _add_metrics(app: web.Application, config: AppConfig, results: Results) -> None:
    """Add the metrics of the scheduler, of health checks, and of pod resources."""
    slis = CollectorRegistry()
    slis.register(results)
    app.router.add_route("*", "/metrics", _metrics(config.registry, config.reset_metrics))
    app.router.add_route("*", "/metrics/slis", _metrics(slis, results.reset))

    async def of_the_leader(request: web.Request) -> web.StreamResponse:
        # Two schedulers that both report all pods would count every pod twice.
        if not config.is_leader():
            return web.Response()
        answer = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE})
        answer.headers["Cache-Control"] = NOT_CACHED
        answer.enable_compression()
        await answer.prepare(request)
        for chunk in pod_resources.lines(config.pods()):
            await answer.write(chunk.encode())
            await asyncio.sleep(0)
        return answer

    app.router.add_route("*", "/metrics/resources", of_the_leader)


def _metrics(registry: CollectorRegistry, reset: Callable[[], None]) -> Handler:
    """Return the handler of a metrics page; DELETE resets the metrics."""

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.method == "DELETE":
            reset()
            return plain("metrics reset\n")
        is_protobuf = is_protobuf_wanted(request.headers.get("Accept", ""))
        body = encoded(registry) if is_protobuf else exposition(registry)
        answer = web.Response(body=body, headers={"Content-Type": protobuf.CONTENT_TYPE if is_protobuf else CONTENT_TYPE})
        answer.enable_compression()
        return answer

    return handle


def is_protobuf_wanted(accept: str) -> bool:
    """Return whether an Accept header prefers protobuf to text."""
    for media, parameters in accepted(accept):
        if media == "application/vnd.google.protobuf" and parameters.get("proto") == "io.prometheus.client.MetricFamily":
            if parameters.get("encoding") == "delimited":
                return True
        elif media == "text/plain" and parameters.get("version", "0.0.4") == "0.0.4":
            return False
    return False


def _configz(config: AppConfig) -> Handler:
    """Return the handler of the effective configuration, in kube-scheduler's form."""

    async def handle(_: web.Request) -> web.StreamResponse:
        return configuration_response({"componentconfig": dict(config.configz())})

    return handle


def _add_profiling(app: web.Application, config: AppConfig) -> None:
    """Add the profiles."""
    pages = ProfilingPages(has_contention=config.has_contention_profiling)

    async def redirect(_: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"{PROFILES}/")

    app.router.add_route("*", PROFILES, redirect)
    app.router.add_route("*", f"{PROFILES}/", pages.index)
    app.router.add_route("*", f"{PROFILES}/{{profile}}", pages.page)


def _listed(app: web.Application) -> list[str]:
    """Return the first steps of the paths so far, for /statusz; debugging paths are left out, as in kube-scheduler."""
    firsts = {f"/{resource.canonical.split('/')[1]}" for resource in app.router.resources()}
    return sorted(firsts - {"/debug", "/statusz"})


# --- doors ------------------------------------------------------------------------------------------------------------


@web.middleware
async def _recovering(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer 500 if a page fails. The traceback goes to the log, never to the caller."""
    try:
        return await handler(request)
    except web.HTTPException:
        raise
    except Exception:  # one page that breaks may not take the server down, nor show a traceback to a stranger
        log.exception("A page broke", method=request.method, path=request.path)
        return plain("Internal Server Error", 500)


@web.middleware
async def _logging(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Log requests from verbosity 3 on."""
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
    """Forbid caching, unless the page says otherwise."""
    try:
        answer = await handler(request)
    except web.HTTPException as error:  # a redirection
        error.headers.setdefault("Cache-Control", NOT_CACHED)
        raise
    if not answer.prepared:  # a stream has set it itself
        answer.headers.setdefault("Cache-Control", NOT_CACHED)
    return answer


@web.middleware
async def _found(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer 404 as Go's server does."""
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return plain("404 page not found", 404)


def _reviewed(path: str) -> str:
    """Return the path that the caller must be allowed.

    Kubernetes' own role system:discovery lets every authenticated user get /api/*. It means the API server's discovery, and
    must not open our decisions. So these are asked about as data of the page: /ui/api/decisions.
    """
    return f"/ui{path}" if path.startswith("/api/") else path


def _guarding(config: AppConfig) -> Middleware:
    """Return the middleware that authenticates and authorizes. Open paths, the page's files, need neither."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in config.open_paths:
            return await handler(request)
        user = ANONYMOUS
        if config.authenticator is not None:
            try:
                user = await config.authenticator.authenticate(request)
            except NotAuthentic as error:
                log.v(2).info("Unable to authenticate the request", err=error, path=request.path)
                return unauthorized(request)
        verb, path = request.method.lower(), _reviewed(request.path)
        if config.authorizer is None:
            return forbidden(request, user.name, verb, path)
        try:
            decision = await config.authorizer.decide(user, verb, path)
        except SchedulerError as error:
            log.error("Authorization error", err=error, user=user.name, path=path)
            return plain(f'Internal Server Error: "{path}": {error}', 500)
        if decision.is_allowed:
            request[USER] = user
            return await handler(request)
        # The reference answers 403 here, to system:anonymous; 401 says what would help.
        if user.is_anonymous:
            return unauthorized(request)
        log.v(4).info("Forbidden", URI=request.rel_url.raw_path_qs, user=user.name, reason=decision.reason)
        return forbidden(request, user.name, verb, path, decision.reason)

    return guard


async def _without_server_name(_: web.Request, answer: web.StreamResponse) -> None:
    answer.headers.pop("Server", None)
