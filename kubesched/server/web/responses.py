"""Responses that several pages use: texts as Go's server writes them, JSON, Status objects; and Accept headers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from kubesched.http import Origins

_PRETTY = ("curl/", "Wget/", "Mozilla/5.0")  # people look at these, so the reference indents for them
NO_SNIFF = {"X-Content-Type-Options": "nosniff"}
PAGE_HEADERS = {
    **NO_SNIFF,
    "Cache-Control": "no-cache, private",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}
"""What the page and its JSON go out with."""


def plain(text: str, status: int = 200) -> web.Response:
    """Return a text. An error ends with a newline, and browsers may not guess another type."""
    return web.Response(
        text=text if status < 400 else f"{text}\n",
        status=status,
        content_type="text/plain",
        charset="utf-8",
        headers=NO_SNIFF,
    )


def own_pages_only(host: str) -> Middleware:
    """Return a middleware that refuses requests of other web sites."""
    origins = Origins(host)

    @web.middleware
    async def refusing(request: web.Request, handler: Handler) -> web.StreamResponse:
        refused = origins.refusal(request.headers)
        return plain(refused, 403) if refused else await handler(request)

    return refusing


def json_response(request: web.BaseRequest, document: Mapping[str, Any], status: int = 200) -> web.Response:
    """Return a document as JSON, indented for curl and browsers, as kube-scheduler does."""
    if request.headers.get("User-Agent", "").startswith(_PRETTY):
        return _json(json.dumps(document, indent=2), status)
    return _json(f"{compact(document)}\n", status)


def configuration_response(document: Mapping[str, Any]) -> web.Response:
    """Return a document on one line, for every client."""
    return _json(compact(document), 200)


def compact(document: Mapping[str, Any]) -> str:
    """Return a document as JSON without spaces."""
    return json.dumps(document, separators=(",", ":"))


def _json(text: str, status: int) -> web.Response:
    headers = {"Content-Type": "application/json", **NO_SNIFF}
    return web.Response(body=text.encode(), status=status, headers=headers)


def refusal(
    request: web.BaseRequest, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None
) -> web.Response:
    """Return a Status for a request that is refused."""
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    if details is not None:
        status["details"] = dict(details)
    return json_response(request, {**status, "code": code}, code)


def unauthorized(request: web.BaseRequest) -> web.Response:
    """Return 401: the caller is not known, or the credentials are wrong."""
    return refusal(request, 401, "Unauthorized", "Unauthorized")


def forbidden(request: web.BaseRequest, user: str, verb: str, path: str, why: str = "") -> web.Response:
    """Return 403: the caller is known and may not do this."""
    message = f'forbidden: User "{user}" cannot {verb} path "{path}"'
    return refusal(request, 403, "Forbidden", f"{message}: {why}" if why else message, {})


def accepted(header: str) -> list[tuple[str, dict[str, str]]]:
    """Return the media types of an Accept header with their parameters, the most wanted first."""
    found = []
    for part in header.split(",") if header.strip() else ["text/plain"]:
        media, *rest = (piece.strip() for piece in part.split(";"))
        parameters = {}
        for piece in rest:
            key, _, text = piece.partition("=")
            parameters[key.strip()] = text.strip().strip('"')
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        if media and quality > 0:
            found.append((quality, media.lower(), parameters))
    found.sort(key=lambda entry: -entry[0])
    return [(media, parameters) for _, media, parameters in found]
