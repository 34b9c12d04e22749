"""What our HTTP face answers when it says no: the API's Status objects, and plain texts as Go's server writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

_PRETTY = ("curl/", "Wget/", "Mozilla/5.0")  # people look at these, so the reference indents for them
NO_SNIFF = {"X-Content-Type-Options": "nosniff"}


def plain(text: str, status: int = 200) -> web.Response:
    """Return a text; one that says no ends its line and may not be guessed to be anything else."""
    return web.Response(
        text=text if status < 400 else f"{text}\n", status=status, content_type="text/plain", charset="utf-8",
        headers=NO_SNIFF,
    )


def json_answer(request: web.BaseRequest, document: Mapping[str, Any], status: int = 200) -> web.Response:
    """Return a document, indented for people."""
    wants_indent = request.headers.get("User-Agent", "").startswith(_PRETTY)
    text = json.dumps(document, indent=2) if wants_indent else json.dumps(document, separators=(",", ":"))
    body = text if wants_indent else f"{text}\n"
    return web.Response(text=body, status=status, content_type="application/json", headers=NO_SNIFF)


def refusal(
    request: web.BaseRequest, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None
) -> web.Response:
    """Return the API's Status for a request that is refused."""
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
    return json_answer(request, {**status, "code": code}, code)


def unauthorized(request: web.BaseRequest) -> web.Response:
    """Return 401: we do not know who asks, or do not believe it."""
    return refusal(request, 401, "Unauthorized", "Unauthorized")


def forbidden(request: web.BaseRequest, user: str, verb: str, path: str, why: str = "") -> web.Response:
    """Return 403: we know who asks, and they may not."""
    message = f'forbidden: User "{user}" cannot {verb} path "{path}"'
    return refusal(request, 403, "Forbidden", f"{message}: {why}" if why else message, {})
