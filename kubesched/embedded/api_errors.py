"""The API's refusals, worded as kube-apiserver words them, and the Status object that carries one over HTTP.

In: the resource, the name and the reason. Out: an `ApiError` with the `details` that clients read. The functions are named
after those of apimachinery's `errors` package. They only build: the callers decide when a request is refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from kubesched import errors
from kubesched.embedded.schema.resources import Resource
from kubesched.embedded.validation.field import Cause
from kubesched.errors import ApiError

# What kube-apiserver's router refuses has details, if empty ones; clients (kubectl debug) read them without asking.
_ALWAYS_WITH_DETAILS = (404, 405)  # clients (kubectl debug) read details without checking that they are there


def not_found(resource: Resource, name: str) -> ApiError:
    """Return 404: the object is not there."""
    return errors.NotFound(404, "NotFound", f'{resource.qualified} "{name}" not found', details=_named(resource, name))


def path_not_found() -> ApiError:
    """Return 404 for a path under /api or /apis that names no resource."""
    return errors.NotFound(404, "NotFound", "the server could not find the requested resource")


def already_exists(resource: Resource, name: str) -> ApiError:
    """Return 409: the name is taken."""
    text = f'{resource.qualified} "{name}" already exists'
    return errors.AlreadyExists(409, "AlreadyExists", text, details=_named(resource, name))


def conflict(resource: Resource, name: str, why: str) -> ApiError:
    """Return 409: the object cannot be changed in this way now."""
    text = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return errors.Conflict(409, "Conflict", text, details=_named(resource, name))


def conflict_of_kind(resource: Resource, name: str, why: str) -> ApiError:
    """Return a conflict that names the kind and not the resource, as deletions do."""
    return conflict(dataclasses.replace(resource, group="", plural=resource.kind), name, why)


def modified(resource: Resource, name: str) -> ApiError:
    """Return 409 for a write that is based on an older resourceVersion; clients read again and retry."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def forbidden(resource: Resource, name: str, why: str, causes: Sequence[Cause] = ()) -> ApiError:
    """Return 403, as admission plugins refuse an object. Without a name the message speaks of the resource."""
    what = f'{resource.qualified} "{name}"' if name else resource.qualified
    details = _named(resource, name, causes)
    return errors.Forbidden(403, "Forbidden", f"{what} is forbidden: {why}", details=details)


def invalid(resource: Resource, name: str, causes: Sequence[Cause]) -> ApiError:
    """Return 422 with all causes: one is shown bare, several in brackets. The kind is written with its group."""
    texts = [str(cause) for cause in causes]
    joined = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details = _named(resource, name, causes) | {"kind": resource.kind}
    return errors.Invalid(422, "Invalid", f'{kind} "{name}" is invalid: {joined}', details=details)


def invalid_options(kind: str, causes: Sequence[Cause]) -> ApiError:
    """Return the refusal of a request whose parameters are wrong; the API takes them for an object of their own."""
    options = Resource("meta.k8s.io", "v1", "", kind, False)
    return invalid(options, "", causes)


def bad_request(text: str) -> ApiError:
    """Return 400."""
    return errors.BadRequest(400, "BadRequest", text)


class Undecoded(errors.BadRequest):
    """The refusal of a body that is not an object of the kind its path asks for."""

    def __init__(self, resource: Resource, why: str) -> None:
        text = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}'
        super().__init__(400, "BadRequest", text)


def unfit_patch(why: str) -> ApiError:
    """Return the refusal of a patch that leaves no object of the kind it was."""
    cause = {"reason": "FieldValueInvalid", "message": f"Invalid value: {why}", "field": "patch"}
    return errors.Invalid(422, "Invalid", f' "" is invalid: patch: Invalid value: {why}', details={"causes": [cause]})


def unauthorized() -> ApiError:
    """Return 401."""
    return errors.Unauthorized(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> ApiError:
    """Return 405."""
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def unsupported_media_type(found: str, accepted: Sequence[str]) -> ApiError:
    """Return 415 with the types that are read."""
    text = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return ApiError(415, "UnsupportedMediaType", text + (f" (found {found})" if found else ""))


def not_running(pod: str, what: str) -> ApiError:
    """Return the refusal of logs, exec and the like, which need a kubelet with real containers."""
    return bad_request(f"pod {pod}: no {what}: this cluster only pretends to run pods, there are no containers behind it")


def page_not_found() -> ApiError:
    """Return 404 for a path that nobody serves. kube-apiserver answers these in plain text, not with a Status."""
    return errors.NotFound(404, "", "404 page not found\n")


def not_acceptable(accepted: Sequence[str]) -> ApiError:
    """Return 406 with the types that can be written."""
    text = "only the following media types are accepted: " + ", ".join(accepted)
    return ApiError(406, "NotAcceptable", text)


def too_large_body(limit: int) -> ApiError:
    """Return 413."""
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def timed_out(seconds: float) -> ApiError:
    """Return 504 for a body that does not arrive."""
    return errors.ServerFault(504, "Timeout", f"Timeout: the body of the request did not arrive within {seconds:g} s")


def expired(text: str, continue_token: str = "") -> ApiError:
    """Return 410: the version is too old. With a continue token the client may go on, though not with the same list."""
    return errors.Gone(410, "Expired", text, details={"continue": continue_token} if continue_token else None)


def version_too_large(wanted: int, current: int) -> ApiError:
    """Return 504 for a version that is still to come; kube-apiserver waits three seconds for it, this server does not."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return errors.ServerFault(
        504,
        "Timeout",
        f"Too large resource version: {wanted}, current: {current}",
        retry_after=1.0,
        details={"causes": [cause], "retryAfterSeconds": 1},
    )


def internal(text: str) -> ApiError:
    """Return 500."""
    cause = {"message": text}
    return errors.ServerFault(500, "InternalError", f"Internal error occurred: {text}", details={"causes": [cause]})


def status_of(error: ApiError) -> dict[str, Any]:
    """Return an error as a Status object."""
    metadata: dict[str, Any] = {}
    details = dict(error.details)
    if "continue" in details:
        metadata["continue"] = details.pop("continue")
    if error.retry_after is not None:
        details.setdefault("retryAfterSeconds", int(error.retry_after))
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": metadata,
        "status": "Failure",
        "message": error.message,
        "reason": error.reason,
        "code": error.status,
    }
    if details or error.status in _ALWAYS_WITH_DETAILS:
        status["details"] = details
    return status


def _named(resource: Resource, name: str, causes: Sequence[Cause] = ()) -> dict[str, Any]:
    """Return the details that name an object. Their `kind` is the plural: that is a quirk of the API."""
    details: dict[str, Any] = {"name": name, "kind": resource.plural} if name else {"kind": resource.plural}
    if resource.group:
        details["group"] = resource.group
    if causes:
        details["causes"] = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    return details
