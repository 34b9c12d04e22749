"""Delegated access: the flags and the API server's reviewers put together into who asks and who may.

In: the authentication and authorization flags, reviewers made from their kubeconfigs (None where there is none), and a
way to look up what the cluster says about trust. Out: a `DelegatedAccess` for the application and for the listener.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubesched.errors import SchedulerError
from kubesched.server.web.access.authentication import Authenticator
from kubesched.server.web.access.authorization import Authorizer
from kubesched.server.web.access.client_certificates import AUTHENTICATION_CONFIG, Trust
from kubesched.server.web.access.review_cache import Reviewer
from kubesched.telemetry.logs import logger

if TYPE_CHECKING:
    from kubesched.server.options.options import Authentication, Authorization

log = logger(__name__)

Lookup = Callable[[], Awaitable[Mapping[str, str]]]
"""Reads the data of ConfigMap kube-system/extension-apiserver-authentication; raises `SchedulerError`."""


@dataclass(frozen=True, slots=True)
class DelegatedAccess:
    """Who asks, who may, and whom we trust to tell."""

    trust: Trust
    authenticator: Authenticator
    authorizer: Authorizer
    lookup: Lookup | None = None

    async def look_up(self, *, tolerates_failure: bool) -> None:
        """Learn from the cluster whom to trust, where the flags do not say."""
        if self.lookup is None:
            return
        try:
            self.trust.take_over(await self.lookup())
        except SchedulerError as error:
            if not tolerates_failure:
                raise
            log.warning(
                "Cannot look up the cluster's authentication configuration; callers with certificates that it would "
                "vouch for are strangers until it works",
                configmap="/".join(AUTHENTICATION_CONFIG),
                err=error,
            )


async def delegated_access(
    authentication: Authentication,
    authorization: Authorization,
    *,
    token_reviewer: Reviewer | None,
    access_reviewer: Reviewer | None,
    lookup: Lookup | None = None,
) -> DelegatedAccess:
    """Return the access that the flags describe, having looked up what they leave to the cluster.

    `token_reviewer` and `lookup` belong to --authentication-kubeconfig, `access_reviewer` to
    --authorization-kubeconfig. Raise `ConfigError` for files that cannot be read, and what the look-up raises unless
    its failure is tolerated.
    """
    trust = Trust(authentication.client_ca_file, authentication.requestheader_client_ca_file)
    access = DelegatedAccess(
        trust,
        Authenticator(authentication, token_reviewer, trust),
        Authorizer(authorization, access_reviewer),
        None if authentication.skip_lookup else lookup,
    )
    await access.look_up(tolerates_failure=authentication.tolerate_lookup_failure)
    return access
