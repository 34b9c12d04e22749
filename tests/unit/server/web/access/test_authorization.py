"""Who may."""

from __future__ import annotations

from typing import Any

import pytest
from web_fakes import FakeReviewer, authorization_flags

from kubesched.errors import ConfigError, Forbidden
from kubesched.scheduler.config.documents.durations import Duration
from kubesched.server.web.access.authentication import ANONYMOUS, User
from kubesched.server.web.access.authorization import Authorizer
from kubesched.testing import FakeClock

ALICE = User("alice", "u1", ("devs", "system:authenticated"), {"k": ("v",)})
ROOT = User("root", groups=("system:masters",))

PATHS = [
    ("an allowed path", ("/healthz",), "/healthz", True),
    ("a path below it", ("/livez",), "/livez/ping", False),
    ("a path that begins alike", ("/livez",), "/livezz", False),
    ("all below", ("/livez/*",), "/livez/ping", True),
    ("all that begin so", ("/live*",), "/livez", True),
    ("but not others", ("/livez/*",), "/livez", False),
    ("everything", ("/*",), "/metrics", True),
    ("without the slash", ("healthz",), "/healthz", True),
    ("case counts", ("/healthz",), "/Healthz", False),
]


@pytest.mark.parametrize(("case", "allowed", "path", "expected"), PATHS, ids=[case[0] for case in PATHS])
async def test_always_allowed_paths(case: str, allowed: tuple[str, ...], path: str, expected: bool) -> None:
    decision = await Authorizer(authorization_flags(always_allow_paths=allowed)).decide(ANONYMOUS, "get", path)
    assert decision.is_allowed is expected


def test_a_star_in_the_middle_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r'only trailing \* allowed in "a\*b"'):
        Authorizer(authorization_flags(always_allow_paths=("/a*b",)))


async def test_masters_may_everything_and_nobody_is_asked() -> None:
    reviewer = FakeReviewer()
    assert (await Authorizer(authorization_flags(), reviewer).decide(ROOT, "delete", "/metrics")).is_allowed
    assert reviewer.asked == []


async def test_without_a_reviewer_everything_else_is_refused() -> None:
    assert not (await Authorizer(authorization_flags()).decide(ALICE, "get", "/metrics")).is_allowed


async def test_the_api_server_decides_about_the_rest() -> None:
    reviewer = FakeReviewer(rights=frozenset({("alice", "get", "/metrics")}))
    authorizer = Authorizer(authorization_flags(), reviewer)
    assert (await authorizer.decide(ALICE, "get", "/metrics")).is_allowed
    assert not (await authorizer.decide(ALICE, "delete", "/metrics")).is_allowed
    assert reviewer.asked[0] == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "alice",
            "groups": ["devs", "system:authenticated"],
            "uid": "u1",
            "extra": {"k": ["v"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        },
    }


async def test_yes_and_no_are_remembered_for_different_times() -> None:
    reviewer, clock = FakeReviewer(rights=frozenset({("alice", "get", "/metrics")})), FakeClock()
    flags = authorization_flags(
        webhook_cache_authorized_ttl=Duration.of(seconds=60), webhook_cache_unauthorized_ttl=Duration.of(seconds=5)
    )
    authorizer = Authorizer(flags, reviewer, now=clock.now)

    async def ask() -> int:
        await authorizer.decide(ALICE, "get", "/metrics")
        await authorizer.decide(ALICE, "get", "/configz")
        return len(reviewer.asked)

    assert await ask() == 2
    assert await ask() == 2
    clock.time += 5.0
    assert await ask() == 3
    clock.time += 60.0
    assert await ask() == 5


async def test_who_asks_is_part_of_the_question() -> None:
    reviewer = FakeReviewer()
    authorizer = Authorizer(authorization_flags(), reviewer)
    for user in (ALICE, User("alice", "u1", ("system:authenticated",)), User("bob")):
        await authorizer.decide(user, "get", "/metrics")
    assert len(reviewer.asked) == 3


class Contradicting(FakeReviewer):
    async def create_subject_access_review(self, review: Any) -> Any:
        return {"status": {"allowed": True, "denied": True, "reason": "both"}}


async def test_a_contradiction_opens_no_door() -> None:
    decision = await Authorizer(authorization_flags(), Contradicting()).decide(ALICE, "get", "/metrics")
    assert (decision.is_allowed, decision.reason) == (False, "both")


async def test_what_fails_goes_up_and_is_not_remembered() -> None:
    reviewer = FakeReviewer(rights=frozenset({("alice", "get", "/metrics")}), errors=[Forbidden(403, "", "no")])
    authorizer = Authorizer(authorization_flags(), reviewer)
    with pytest.raises(Forbidden):
        await authorizer.decide(ALICE, "get", "/metrics")
    assert (await authorizer.decide(ALICE, "get", "/metrics")).is_allowed
