"""Our HTTP face: health, metrics, configuration, flags, profiles; over TLS, to whom the cluster lets.

guard = await new_guard(authentication_flags, authorization_flags, token_reviewer=..., access_reviewer=...)
parts = WebParts(registry, gates, about, ..., authenticator=guard.authenticator, authorizer=guard.authorizer)
server = await serve(build_app(parts), serving_flags, guard)          await server.stop()
"""

from kubesched.web.application import build_app, build_insecure_app
from kubesched.web.authentication import Authenticator, User
from kubesched.web.authorization import Authorizer
from kubesched.web.decisions import decision_routes
from kubesched.web.guard import Guard, new_guard
from kubesched.web.health import PING, Check, handlers_check, leader_election_check, shutdown_check
from kubesched.web.page import open_paths, page_app, page_routes
from kubesched.web.page_contract import WHAT_IFS, NotReady, PageData, Versions
from kubesched.web.page_data import EnginePageData
from kubesched.web.parts import WebParts
from kubesched.web.review_cache import Reviewer
from kubesched.web.server import Server, check_supported, serve, serve_insecurely
from kubesched.web.throughput import Throughput
from kubesched.web.zpages import About

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
