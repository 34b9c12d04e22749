"""Errors of the API server as our exceptions, and as one line for people.

An error is an HTTP status with a body, or a Status in a watch. The exception has the server's own message. `advice` adds what
to do about it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    ServerFault,
    TooManyRequests,
    Unauthorized,
)
from kubesched.kube.api import Status

_CLASSES: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}
_REASONS: dict[int, str] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_TOO_LARGE_VERSION = "ResourceVersionTooLarge"
_decoder = msgspec.json.Decoder(Status)
_LONGEST_FOREIGN_TEXT = 200
_PLAIN_TO_TLS = "HTTP request to an HTTPS server"


def refusal(code: int, body: bytes, what: str, retry_after: str | None = None) -> ApiError:
    """Return the exception for an answer with an error code; `what` names the request, for answers without words."""
    try:
        status = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = Status()
    if status.status != "Failure" and not status.reason:  # a proxy's page, or nothing: not the API's own words
        text = " ".join(body[:_LONGEST_FOREIGN_TEXT].decode(errors="replace").split())
        status = Status(message=f"{what}: the server answered {code}{': ' + text if text else ''}")
    return _error(code, status, _seconds(retry_after))


def refusal_of(status: Status, what: str) -> ApiError:
    """Return the exception for a Status object that arrived inside a watch."""
    if not status.message:
        status = msgspec.structs.replace(status, message=f"{what}: {status.code} {status.reason}".rstrip())
    return _error(status.code or 500, status, None)


def _error(code: int, status: Status, retry_after: float | None) -> ApiError:
    reason = status.reason or _REASONS.get(code, "Unknown")
    # By reason first: 409 stands for Conflict and for AlreadyExists, and 410 may come as Expired in a Status of another code.
    if reason == "AlreadyExists":
        kind: type[ApiError] = AlreadyExists
    elif reason == "Expired":
        kind = Gone
    else:
        kind = _CLASSES.get(code, ServerFault if code >= 500 else ApiError)
    details: dict[str, Any] = {}
    if status.details is not None:
        details = msgspec.to_builtins(status.details)
        if retry_after is None and status.details.retry_after_seconds:
            retry_after = float(status.details.retry_after_seconds)
    return kind(code, reason, status.message, retry_after, details)


def _seconds(text: str | None) -> float | None:
    # Retry-After may also be a date; API servers send seconds, and a date is no reason to fail.
    return float(text) if text is not None and text.isdecimal() else None


def is_version_unknown(error: ApiError) -> bool:
    """Return whether the server does not have the resource version we asked for: too old for it, or from its future."""
    if isinstance(error, Gone):
        return True
    return any(cause.get("reason") == _TOO_LARGE_VERSION for cause in error.details.get("causes", ()))


def advice(error: Exception) -> str:
    """Return the error in one line, and what to do about it where that is known."""
    text = " ".join(str(error).split())
    if isinstance(error, Unauthorized):
        return f"{text}: the API server does not accept these credentials; renew the token or client certificate"
    if isinstance(error, Forbidden):
        return f"{text}: bind this user to the ClusterRole system:kube-scheduler, or grant the verb named here"
    if isinstance(error, BadRequest) and _PLAIN_TO_TLS in text:
        return f"{text.rstrip('.')}: write https:// in the server's address"
    if isinstance(error, NotFound) and not error.details:
        return f"{text}: is this address a Kubernetes API server?"
    return text
