"""Who is let in over gRPC: whoever may do the same over HTTP."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest

from kubesched.server.web import DelegatedAccess
from kubesched.tools.serve.descriptors import protocol
from kubesched.tools.serve.grpc_face import GrpcFace
from kubesched.tools.serve.service import Service


class Reviewed:
    """Knows everybody, lets nobody in, and keeps what they wanted."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def authenticate(self, request: Any) -> Any:
        return SimpleNamespace(name="eve")

    async def decide(self, user: Any, verb: str, path: str) -> Any:
        self.asked.append((verb, path))
        return SimpleNamespace(is_allowed=False, reason="")


class Context:
    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return ()

    def time_remaining(self) -> None:
        return None

    async def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise PermissionError(code.name, details)


@pytest.mark.parametrize(
    ("method", "verb", "path"),
    [
        ("Fits", "post", "/v1/fits"),
        ("PutSession", "put", "/v1/sessions/s"),
        ("ChangeSession", "patch", "/v1/sessions/s"),
        ("DeleteSession", "delete", "/v1/sessions/s"),
    ],
)
async def test_a_call_needs_the_verb_and_the_path_that_it_has_over_http(method: str, verb: str, path: str) -> None:
    reviewed = Reviewed()
    access = SimpleNamespace(authenticator=reviewed, authorizer=reviewed)
    face = GrpcFace(cast(Service, None), None, cast(DelegatedAccess, access))
    details = SimpleNamespace(method=f"/kubesched.v1.Solver/{method}", invocation_metadata=())
    (found,) = face.handlers()
    asked = protocol("solver").services["kubesched.v1.Solver"][method].request(session="s")
    with pytest.raises(PermissionError, match=f'PERMISSION_DENIED.*User "eve" cannot {verb} path'):
        await cast(Any, found.service(cast(Any, details))).unary_unary(asked, Context())
    assert reviewed.asked == [(verb, path)]
