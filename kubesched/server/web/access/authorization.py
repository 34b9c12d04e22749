"""Authorization: the group system:masters, paths that are open to all, and what the API server allows.

In: a user, a verb, a path. Out: yes or no, with a reason. Without a reviewer everything else is refused. Paths are compared as
a whole, unless one ends in `*`: `/livez` does not cover `/livez/ping`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kubesched.errors import ConfigError
from kubesched.server.web.access.authentication import User
from kubesched.server.web.access.review_cache import ReviewCache, Reviewer, insist

if TYPE_CHECKING:
    from kubesched.server.options.options import Authorization

MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a request is allowed, and why not."""

    is_allowed: bool
    reason: str = ""


ALLOWED = Decision(True)


class Authorizer:
    """Decides what users may do."""

    def __init__(
        self,
        settings: Authorization,
        reviewer: Reviewer | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        paths = [path.removeprefix("/") for path in settings.always_allow_paths]
        for path in paths:
            if "*" in path[:-1]:
                raise ConfigError("", f'only trailing * allowed in "{path}"')
        self._paths = frozenset(path for path in paths if not path.endswith("*"))
        self._prefixes = tuple(path[:-1] for path in paths if path.endswith("*"))
        self._yes_seconds = settings.webhook_cache_authorized_ttl.seconds
        self._no_seconds = settings.webhook_cache_unauthorized_ttl.seconds
        self._reviewer = reviewer
        self._answers: ReviewCache[Decision] = ReviewCache(now)

    async def decide(self, user: User, verb: str, path: str) -> Decision:
        """Return whether a user may do this. Errors of the API server are raised."""
        if MASTERS in user.groups:
            return ALLOWED
        stripped = path.removeprefix("/")
        if stripped in self._paths or (self._prefixes and stripped.startswith(self._prefixes)):
            return ALLOWED
        if self._reviewer is None:
            return Decision(False)
        return await self._ask(self._reviewer, user, verb, path)

    async def _ask(self, reviewer: Reviewer, user: User, verb: str, path: str) -> Decision:
        """Return the API server's decision, by a SubjectAccessReview whose answer is cached."""
        spec: dict[str, Any] = {"user": user.name, "nonResourceAttributes": {"path": path, "verb": verb}}
        if user.groups:
            spec["groups"] = list(user.groups)
        if user.uid:
            spec["uid"] = user.uid
        if user.extra:
            spec["extra"] = {key: list(values) for key, values in user.extra.items()}

        async def ask() -> tuple[Decision, float]:
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
            status = await insist(reviewer.create_subject_access_review, review)
            # Allowed and denied at once is a contradiction that must not open a door.
            allowed = bool(status.get("allowed")) and not status.get("denied")
            decision = Decision(allowed, str(status.get("reason") or ""))
            return decision, self._yes_seconds if allowed else self._no_seconds

        return await self._answers.get(json.dumps(spec, sort_keys=True), ask)
