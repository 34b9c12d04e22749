"""Token and access reviews: ask the API server whose token a request has, and what its owner may do.

Our own HTTP server (metrics, page) uses them to check its callers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kubesched.errors import MalformedObject
from kubesched.kube.client.connection import Connection

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
AUTHENTICATION_CONFIG = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


class Reviews:
    """Creates reviews over one connection; raises `ApiError` or `Unreachable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def create_token_review(self, review: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create a TokenReview and return it with its status."""
        return await self._create(TOKEN_REVIEWS, review)

    async def create_subject_access_review(self, review: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create a SubjectAccessReview and return it with its status."""
        return await self._create(ACCESS_REVIEWS, review)

    async def authentication_config(self) -> Mapping[str, str]:
        """Return the data of the cluster's ConfigMap for extension API servers: which client certificates to trust."""
        found = _decode(await self._connection.request("GET", AUTHENTICATION_CONFIG), AUTHENTICATION_CONFIG)
        return {str(key): str(text) for key, text in (found.get("data") or {}).items()}

    async def _create(self, path: str, review: Mapping[str, Any]) -> Mapping[str, Any]:
        return _decode(await self._connection.request("POST", path, msgspec.json.encode(review)), path)


def _decode(body: bytes, path: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise MalformedObject(path, "", "", f"the answer is no object: {error}") from error
