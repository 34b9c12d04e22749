"""Authentication: by client certificate, by a proxy's headers, by bearer token, or anonymous.

In: a request. Out: a `User`, or `NotAuthentic` for credentials that do not hold. The rule is kube-scheduler's: the first
method that succeeds wins. If none does and one failed, the request is refused. Without any credentials the user is
`system:anonymous`.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import web

from kubesched.errors import SchedulerError
from kubesched.server.web.access.client_certificates import ClientCertificate, ProxyHeaders, Trust, certificate_of
from kubesched.server.web.access.review_cache import Review, ReviewCache, Reviewer, insist
from kubesched.telemetry.logs import logger

if TYPE_CHECKING:
    from kubesched.server.options.options import Authentication

log = logger(__name__)

AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"


class NotAuthentic(SchedulerError):
    """Credentials that do not hold."""


@dataclass(frozen=True, slots=True)
class User:
    """The sender of a request."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_anonymous: bool = False  # no credentials were sent


ANONYMOUS = User("system:anonymous", groups=(UNAUTHENTICATED,), is_anonymous=True)


class Authenticator:
    """Finds out who sends a request."""

    def __init__(
        self,
        settings: Authentication,
        reviewer: Reviewer | None = None,
        trust: Trust | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
        certificate_of: Callable[[web.BaseRequest, Trust], ClientCertificate | None] = certificate_of,
    ) -> None:
        self._headers = ProxyHeaders(
            tuple(settings.requestheader_username_headers),
            tuple(settings.requestheader_uid_headers),
            tuple(settings.requestheader_group_headers),
            tuple(settings.requestheader_extra_headers_prefix),
            tuple(settings.requestheader_allowed_names),
        )
        self._cache_seconds = settings.token_webhook_cache_ttl.seconds
        self._reviewer = reviewer
        self._trust = trust or Trust()
        self._certificate_of = certificate_of
        self._tokens: ReviewCache[User | None] = ReviewCache(now)
        self._salt = secrets.token_bytes(32)

    async def authenticate(self, request: web.BaseRequest) -> User:
        """Return the user; raise `NotAuthentic` for credentials that do not hold."""
        failure: SchedulerError | None = None
        certificate = self._certificate_of(request, self._trust)
        if certificate is not None:
            try:
                user = self._proxied(request, certificate) or _certified(certificate)
                if user is not None:
                    return user
            except NotAuthentic as error:
                failure = error
        token = _bearer(request)
        if token and self._reviewer is not None:
            try:
                user = await self._owner(token, self._reviewer)
                if user is not None:
                    return user
                failure = NotAuthentic("invalid bearer token")
            except SchedulerError as error:
                log.error("Unable to authenticate the request", err=error)
                failure = error
        if failure is not None:
            raise NotAuthentic(str(failure)) from failure
        return ANONYMOUS

    def _proxied(self, request: web.BaseRequest, certificate: ClientCertificate) -> User | None:
        """Return the user that a trusted proxy names in its headers; None if it names none."""
        if not certificate.is_of_proxy:
            return None
        headers = self._trust.proxy_headers(self._headers)
        name = next((text for key in headers.username if (text := request.headers.get(key, ""))), "")
        if headers.allowed_names and certificate.name not in headers.allowed_names:
            if certificate.is_of_client:
                return None
            raise NotAuthentic(f"x509: subject with cn={certificate.name} is not in the allowed list")
        if not name:
            return None
        groups = [text for key in headers.group for text in request.headers.getall(key, [])]
        extra: dict[str, tuple[str, ...]] = {}
        for key in request.headers:
            for prefix in headers.extra_prefix:
                if key.lower().startswith(prefix.lower()):
                    extra[_unescaped(key[len(prefix) :].lower())] = tuple(request.headers.getall(key))
        uid = next((text for key in headers.uid if (text := request.headers.get(key, ""))), "")
        return User(name, uid, _with_authenticated(groups), extra)

    async def _owner(self, token: str, reviewer: Reviewer) -> User | None:
        """Return the owner of a token, by a TokenReview whose answer is cached."""
        # The key is a keyed hash, so a dump of the memory contains no token.
        question = hmac.new(self._salt, token.encode(), hashlib.sha256).digest()

        async def ask() -> tuple[User | None, float]:
            review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
            status = await insist(reviewer.create_token_review, review)
            return _reviewed(status), self._cache_seconds

        return await self._tokens.get(question, ask)


def _reviewed(status: Review) -> User | None:
    """Return the user in the status of a TokenReview, or None."""
    if not status.get("authenticated"):
        if status.get("error"):
            log.v(4).info("Token refused", reason=status["error"])
        return None
    owner: Mapping[str, Any] = status.get("user") or {}
    extra = {key: tuple(values) for key, values in (owner.get("extra") or {}).items()}
    return User(owner.get("username", ""), owner.get("uid", ""), _with_authenticated(owner.get("groups") or ()), extra)


def _certified(certificate: ClientCertificate) -> User | None:
    """Return the user that a client certificate names: its common name, with its organizations as groups."""
    if not certificate.is_of_client or not certificate.name:
        return None
    extra = {"authentication.kubernetes.io/credential-id": (f"X509SHA256={certificate.fingerprint}",)}
    return User(certificate.name, groups=_with_authenticated(certificate.organizations), extra=extra)


def _bearer(request: web.BaseRequest) -> str:
    """Return the token of an Authorization header, or an empty text."""
    scheme, _, token = request.headers.get("Authorization", "").strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _with_authenticated(groups: Sequence[str]) -> tuple[str, ...]:
    return tuple(groups) if AUTHENTICATED in groups or UNAUTHENTICATED in groups else (*groups, AUTHENTICATED)


def _unescaped(text: str) -> str:
    """Return a key with its percent escapes decoded, or as it is if they are wrong."""
    try:
        parts = text.split("%")
        return parts[0] + "".join(chr(int(part[:2], 16)) + part[2:] for part in parts[1:])
    except ValueError:
        return text
