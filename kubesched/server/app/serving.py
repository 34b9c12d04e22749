"""The scheduler's HTTP server: health, metrics and the page, with authentication and authorization of callers."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from kubesched.errors import ConfigError
from kubesched.kube.client import Connection, Reviews, connect, delegated_credentials
from kubesched.scheduler import config
from kubesched.scheduler.cluster import PodView
from kubesched.server import web
from kubesched.server.app.wiring import Face
from kubesched.telemetry.exposing import register

if TYPE_CHECKING:
    from kubesched.server.app.scheduler import Scheduler
    from kubesched.server.options.options import Authentication, Authorization

log = logging.getLogger(__name__)

_UNREVIEWED = {
    "authentication": "tokens mean nothing, and the cluster's client authorities are not looked up",
    "authorization": "all but the always allowed paths are forbidden",
}
_REVIEW_QPS = 200


async def serve(
    scheduler: Scheduler,
    connection: Connection,
    face: Face,
    ends: contextlib.AsyncExitStack,
    pods: Callable[[], Iterable[PodView]],
) -> None:
    """Start the HTTP server. Standbys serve too, so this comes before leader election."""
    access = await access_of(face.authentication, face.authorization, ends)
    old_release = scheduler.wiring.legacy
    what_if: Iterable[Any] = ()
    if face.what_if is not None and old_release is None:  # an old release has no configuration to plan with
        what_if = face.what_if(scheduler, connection.sibling("page"))
        scheduler.page_data.offers = web.WHAT_IFS
    late = web.leader_election_check(lambda: False)  # never late: the process ends when the lease is lost
    # A standby is healthy: kube-scheduler's check fails only if a leader has not renewed in time, and we end then.
    elects = scheduler.configuration.leader_election.leader_elect
    app = web.AppConfig(
        registry=register(scheduler.metrics, CollectorRegistry()),
        gates=scheduler.wiring.gates,
        about=web.About(time.time(), face.version, ".".join(map(str, scheduler.wiring.gates.emulated))),
        healthz=(late,) if elects else (web.PING,),
        # Not ready while stopping, and before the first lists are applied: a Service then sends nobody here.
        readyz=(
            *((late,) if elects else ()),
            web.shutdown_check(lambda: scheduler.is_stopping),
            web.handlers_check(lambda: scheduler.is_synced),
        ),
        reset_metrics=scheduler.metrics.reset,
        pods=pods,
        is_leader=lambda: scheduler.is_leader,
        configz=lambda: config.effective(scheduler.configuration) if old_release is None else old_release.document(),
        flags=face.flags,
        has_profiling=scheduler.configuration.enable_profiling,
        has_contention_profiling=scheduler.configuration.enable_contention_profiling,
        authenticator=access.authenticator,
        authorizer=access.authorizer,
        extra_routes=[*web.page_routes(scheduler.page_data), *scheduler.decision_routes, *what_if],
        open_paths=web.open_paths(),
    )
    server = await web.serve(web.build_app(app), face.serving, access)
    if server is not None:
        ends.push_async_callback(server.stop)
    host, port = old_release.insecure_address if old_release is not None else ("", 0)
    if port:
        old = await web.serve_insecurely(web.build_insecure_app(app), host, port)
        ends.push_async_callback(old.stop)


async def access_of(
    authentication: Authentication, authorization: Authorization, ends: contextlib.AsyncExitStack
) -> web.DelegatedAccess:
    """Return who asks and who may, as the flags say: the API servers that they name are asked."""
    # Two kubeconfigs, as kube-scheduler has two flags: one says who a caller is, the other what a caller may do.
    who = await _reviews("authentication", authentication.kubeconfig, ends)
    may = await _reviews("authorization", authorization.kubeconfig, ends)
    return await web.delegated_access(
        authentication,
        authorization,
        token_reviewer=who,
        access_reviewer=may,
        lookup=None if who is None else who.authentication_config,
    )


async def _reviews(task: str, kubeconfig: str, ends: contextlib.AsyncExitStack) -> Reviews | None:
    """Return a client for token or access reviews, from the kubeconfig of the delegated flags; None if there is none."""
    source = delegated_credentials(kubeconfig)
    if source is None:
        log.warning("no --%s-kubeconfig is given, and we run in no cluster: %s", task, _UNREVIEWED[task])
        return None
    try:
        connection = await connect(source, name=task, qps=_REVIEW_QPS, burst=2 * _REVIEW_QPS)
    except ConfigError as error:
        raise ConfigError("", f"failed to get delegated {task} kubeconfig: {error}") from error
    ends.push_async_callback(connection.close)
    return Reviews(connection)
