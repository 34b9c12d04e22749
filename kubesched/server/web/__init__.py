"""Our HTTP face: health, metrics, configuration, flags, profiles; over TLS, to whom the cluster lets.

guard = await new_guard(authentication_flags, authorization_flags, token_reviewer=..., access_reviewer=...)
parts = WebParts(registry, gates, about, ..., authenticator=guard.authenticator, authorizer=guard.authorizer)
server = await serve(build_app(parts), serving_flags, guard)          await server.stop()
"""

from kubesched.server.web.access.authentication import Authenticator, User
from kubesched.server.web.access.authorization import Authorizer
from kubesched.server.web.access.guard import Guard, new_guard
from kubesched.server.web.access.review_cache import Reviewer
from kubesched.server.web.application import build_app, build_insecure_app
from kubesched.server.web.health import PING, Check, handlers_check, leader_election_check, shutdown_check
from kubesched.server.web.page.contract import WHAT_IFS, NotReady, PageData, Versions
from kubesched.server.web.page.data import EnginePageData
from kubesched.server.web.page.decisions import decision_routes
from kubesched.server.web.page.page import open_paths, page_app, page_routes
from kubesched.server.web.page.throughput import Throughput
from kubesched.server.web.parts import WebParts
from kubesched.server.web.server import Server, check_supported, serve, serve_insecurely
from kubesched.server.web.zpages import About

__all__ = [
    "PING",
    "WHAT_IFS",
    "About",
    "Authenticator",
    "Authorizer",
    "Check",
    "EnginePageData",
    "Guard",
    "NotReady",
    "PageData",
    "Reviewer",
    "Server",
    "Throughput",
    "User",
    "Versions",
    "WebParts",
    "build_app",
    "build_insecure_app",
    "check_supported",
    "decision_routes",
    "handlers_check",
    "leader_election_check",
    "new_guard",
    "open_paths",
    "page_app",
    "page_routes",
    "serve",
    "serve_insecurely",
    "shutdown_check",
]
