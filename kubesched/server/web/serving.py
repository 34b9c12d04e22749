"""A port that is served by the flags: behind doors, or on a loopback address to everybody on this machine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kubesched.errors import ConfigError
from kubesched.server.web.access.authentication import User
from kubesched.server.web.access.authorization import ALLOWED, Decision
from kubesched.server.web.access.delegated_access import DelegatedAccess
from kubesched.server.web.application import AppConfig, build_app
from kubesched.server.web.responses import own_pages_only
from kubesched.server.web.server import Server, serve

if TYPE_CHECKING:
    from kubesched.server.options.options import Serving


class _Everybody:
    """Lets everybody in: on a loopback address there is nobody to ask."""

    async def decide(self, user: User, verb: str, path: str) -> Decision:
        """Return yes."""
        return ALLOWED


async def serve_config(config: AppConfig, settings: Serving, access: DelegatedAccess | None) -> Server:
    """Serve an application. Without `access` it is plain HTTP, and pages of other web sites are refused."""
    if access is not None:
        config = replace(config, authenticator=access.authenticator, authorizer=access.authorizer)
        server = await serve(build_app(config), settings, access)
        if server is None:
            raise ConfigError("--secure-port", "0 serves nothing")
        return server
    app = build_app(replace(config, authorizer=_Everybody()))
    app.middlewares.append(own_pages_only(settings.bind_address))
    server = Server(app, settings.bind_address, settings.secure_port)
    await server.start()
    return server
