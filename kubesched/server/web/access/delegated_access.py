"""Delegated access: authentication and authorization by the API server, as the flags describe.

In: the flags, reviewers for their kubeconfigs (None where there is none), and a function that reads which authorities the
cluster trusts. Out: a `DelegatedAccess` for the application and the listener.
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
    """Authentication, authorization, and the trusted authorities."""

    trust: Trust
    authenticator: Authenticator
    authorizer: Authorizer
    lookup: Lookup | None = None

    async def look_up(self, *, tolerates_failure: bool) -> None:
        """Read from the cluster which authorities to trust, where the flags do not say."""
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
    """Return the access that the flags describe, after reading what they leave to the cluster.

    `token_reviewer` and `lookup` belong to --authentication-kubeconfig, `access_reviewer` to --authorization-kubeconfig. Raise
    `ConfigError` for files that cannot be read, and the errors of the look-up unless they are tolerated.
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
