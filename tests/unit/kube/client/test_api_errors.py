"""Refusals become the right exception with the server's words, and a line that says how to mend it."""

from __future__ import annotations

import json

import pytest

from kubesched import errors
from kubesched.kube.client.api_errors import advice, is_version_unknown, refusal

CASES = [
    (400, "BadRequest", errors.BadRequest),
    (401, "Unauthorized", errors.Unauthorized),
    (403, "Forbidden", errors.Forbidden),
    (404, "NotFound", errors.NotFound),
    (409, "Conflict", errors.Conflict),
    (409, "AlreadyExists", errors.AlreadyExists),
    (410, "Gone", errors.Gone),
    (410, "Expired", errors.Gone),
    (422, "Invalid", errors.Invalid),
    (429, "TooManyRequests", errors.TooManyRequests),
    (500, "InternalError", errors.ServerFault),
    (503, "ServiceUnavailable", errors.ServerFault),
    (418, "Teapot", errors.ApiError),
]


@pytest.mark.parametrize(("code", "reason", "kind"), CASES)
def test_a_status_becomes_its_exception(code: int, reason: str, kind: type) -> None:
    body = {"kind": "Status", "status": "Failure", "message": "no", "reason": reason, "details": {"name": "x"}}
    error = refusal(code, json.dumps(body).encode(), "GET /x")
    assert type(error) is kind
    assert (error.status, error.reason, error.message, error.details["name"]) == (code, reason, "no", "x")


@pytest.mark.parametrize("body", [b"", b"<html>bad\n gateway</html>", b'{"status": 3}', b"\xff\xfe"])
def test_a_body_that_is_no_status_still_says_what_was_asked(body: bytes) -> None:
    error = refusal(502, body, "GET /api/v1/pods")
    assert isinstance(error, errors.ServerFault)
    assert str(error).startswith("GET /api/v1/pods: the server answered 502")
    assert "\n" not in str(error)


@pytest.mark.parametrize(("header", "seconds"), [("3", 3.0), (None, None), ("Wed, 21 Oct 2015 07:28:00 GMT", None)])
def test_retry_after_is_read_when_it_is_seconds(header: str | None, seconds: float | None) -> None:
    assert refusal(429, b"", "GET /x", header).retry_after == seconds


def test_advice_names_the_mend() -> None:
    forbidden = refusal(403, b'{"status":"Failure","reason":"Forbidden","message":"cannot list pods"}', "GET /x")
    expired = refusal(401, b"", "GET /x")
    assert advice(forbidden) == (
        "cannot list pods: bind this user to the ClusterRole system:kube-scheduler, or grant the verb named here"
    )
    assert advice(expired).endswith("renew the token or client certificate")
    assert advice(errors.Unreachable("away")) == "away"
    plain = refusal(400, b"Client sent an HTTP request to an HTTPS server.\n", "GET /version")
    assert advice(plain).endswith("HTTP request to an HTTPS server: write https:// in the server's address")


def test_versions_too_old_and_too_new_are_both_unknown() -> None:
    body = b'{"status":"Failure","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}'
    assert is_version_unknown(refusal(504, body, "x"))
    assert is_version_unknown(refusal(410, b"", "x"))
    assert not is_version_unknown(refusal(504, b"", "x"))
