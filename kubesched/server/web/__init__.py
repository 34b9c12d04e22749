"""The HTTP server: health, metrics, configuration, flags, profiles, the page; over TLS, with the cluster's authorization.

access = await delegated_access(authentication_flags, authorization_flags, token_reviewer=..., access_reviewer=...)
app = build_app(AppConfig(registry, gates, about, ..., authenticator=access.authenticator, authorizer=access.authorizer))
server = await serve(app, serving_flags, access)          await server.stop()
"""

from kubesched.server.web.access.authentication import ANONYMOUS, Authenticator, NotAuthentic, User
from kubesched.server.web.access.authorization import Authorizer
from kubesched.server.web.access.certificates import Pair
from kubesched.server.web.access.delegated_access import DelegatedAccess, delegated_access
from kubesched.server.web.application import USER, AppConfig, build_app, build_insecure_app
from kubesched.server.web.health import PING, Check, handlers_check, leader_election_check, shutdown_check
from kubesched.server.web.page.data import WHAT_IFS, EnginePageData, NotReady, Versions
from kubesched.server.web.page.decisions import decision_routes
from kubesched.server.web.page.page import open_paths, page_app, page_routes
from kubesched.server.web.page.throughput import Throughput
from kubesched.server.web.server import Server, serve, serve_insecurely
from kubesched.server.web.serving import serve_config
from kubesched.server.web.zpages import About

__all__ = [
    "ANONYMOUS",
    "PING",
    "USER",
    "WHAT_IFS",
    "About",
    "AppConfig",
    "Authenticator",
    "Authorizer",
    "Check",
    "DelegatedAccess",
    "EnginePageData",
    "NotAuthentic",
    "NotReady",
    "Pair",
    "Server",
    "Throughput",
    "User",
    "Versions",
    "build_app",
    "build_insecure_app",
    "decision_routes",
    "delegated_access",
    "handlers_check",
    "leader_election_check",
    "open_paths",
    "page_app",
    "page_routes",
    "serve",
    "serve_config",
    "serve_insecurely",
    "shutdown_check",
]
