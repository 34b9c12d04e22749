"""Who asks: tokens, certificates, proxies, nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from web_fakes import Authority, FakeReviewer, authentication_flags, request

from kubesched.errors import ConfigError, Forbidden
from kubesched.scheduler.config.documents.durations import Duration
from kubesched.server.web.access.authentication import ANONYMOUS, Authenticator, NotAuthentic, User
from kubesched.server.web.access.client_certificates import ClientCertificate, ProxyHeaders, Trust, certificates_in
from kubesched.testing import FakeClock
from kubesched.testing.fakes import settle

ALICE = {"username": "alice", "uid": "u1", "groups": ["devs"], "extra": {"k": ["v"]}}
ADMIN = ClientCertificate("admin", ("system:masters",), "abc", is_of_client=True, is_of_proxy=False)
PROXY = ClientCertificate("front", (), "def", is_of_client=False, is_of_proxy=True)
BOTH = replace(ADMIN, is_of_proxy=True)


def authenticator(
    reviewer: FakeReviewer | None = None,
    certificate: ClientCertificate | None = None,
    clock: FakeClock | None = None,
    **flags: Any,
) -> Authenticator:
    return Authenticator(
        authentication_flags(**flags),
        reviewer,
        now=(clock or FakeClock()).now,
        certificate_of=lambda request, trust: certificate,
    )


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_a_token_is_reviewed_and_its_owner_believed() -> None:
    reviewer = FakeReviewer({"good": ALICE})
    user = await authenticator(reviewer).authenticate(request(headers=bearer("good")))
    assert user == User("alice", "u1", ("devs", "system:authenticated"), {"k": ("v",)})
    assert reviewer.asked[0] == {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": "good"},
    }


async def test_a_wrong_token_is_refused() -> None:
    with pytest.raises(NotAuthentic):
        await authenticator(FakeReviewer()).authenticate(request(headers=bearer("bad")))


async def test_a_token_that_cannot_be_reviewed_is_refused() -> None:
    reviewer = FakeReviewer({"good": ALICE}, errors=[Forbidden(403, "Forbidden", "no right to review")])
    checked = authenticator(reviewer)
    with pytest.raises(NotAuthentic, match="no right to review"):
        await checked.authenticate(request(headers=bearer("good")))
    assert (await checked.authenticate(request(headers=bearer("good")))).name == "alice"


NOBODY: list[tuple[str, dict[str, str]]] = [
    ("nothing shown", {}),
    ("another scheme", {"Authorization": "Basic eDp5"}),
    ("an empty token", {"Authorization": "Bearer "}),
    ("headers of a proxy without its certificate", {"X-Remote-User": "root", "X-Remote-Group": "system:masters"}),
]


@pytest.mark.parametrize(("case", "headers"), NOBODY, ids=[case[0] for case in NOBODY])
async def test_nobody_in_particular(case: str, headers: Mapping[str, str]) -> None:
    assert await authenticator(FakeReviewer()).authenticate(request(headers=headers)) is ANONYMOUS


async def test_without_a_reviewer_tokens_say_nothing() -> None:
    assert await authenticator(None).authenticate(request(headers=bearer("good"))) is ANONYMOUS


async def test_answers_about_tokens_are_remembered_both_ways() -> None:
    reviewer, clock = FakeReviewer({"good": ALICE}), FakeClock()
    checked = authenticator(reviewer, clock=clock, token_webhook_cache_ttl=Duration.of(seconds=5))
    for _ in range(3):
        await checked.authenticate(request(headers=bearer("good")))
        with pytest.raises(NotAuthentic):
            await checked.authenticate(request(headers=bearer("bad")))
    assert len(reviewer.asked) == 2
    clock.time += 5.0
    await checked.authenticate(request(headers=bearer("good")))
    assert len(reviewer.asked) == 3


async def test_many_requests_with_one_token_are_one_review() -> None:
    reviewer = FakeReviewer({"good": ALICE}, gate=asyncio.Event())
    checked = authenticator(reviewer)
    waiting = [asyncio.ensure_future(checked.authenticate(request(headers=bearer("good")))) for _ in range(4)]
    await settle()
    assert reviewer.gate is not None
    reviewer.gate.set()
    assert {user.name for user in await asyncio.gather(*waiting)} == {"alice"}
    assert len(reviewer.asked) == 1


async def test_no_token_is_kept_in_memory() -> None:
    checked = authenticator(FakeReviewer({"good-secret": ALICE}))
    await checked.authenticate(request(headers=bearer("good-secret")))
    assert b"good-secret" not in repr(checked._tokens._kept).encode()
    assert len(checked._tokens._kept) == 1


async def test_a_client_certificate_is_a_name_and_groups() -> None:
    user = await authenticator(certificate=ADMIN).authenticate(request())
    assert user.name == "admin"
    assert user.groups == ("system:masters", "system:authenticated")
    assert user.extra == {"authentication.kubernetes.io/credential-id": ("X509SHA256=abc",)}


SAID = {
    "X-Remote-User": "carol",
    "X-Remote-Group": "devs",
    "X-Remote-Extra-Scopes%2fA": "s1",
    "X-Remote-Uid": "u7",
}


async def test_a_proxy_speaks_for_others() -> None:
    user = await authenticator(certificate=PROXY, requestheader_uid_headers=("X-Remote-Uid",)).authenticate(
        request(headers=SAID)
    )
    assert user == User("carol", "u7", ("devs", "system:authenticated"), {"scopes/a": ("s1",)})


async def test_a_proxy_that_is_not_on_the_list_is_refused() -> None:
    with pytest.raises(NotAuthentic, match="x509: subject with cn=front is not in the allowed list"):
        await authenticator(certificate=PROXY, requestheader_allowed_names=("other",)).authenticate(request(headers=SAID))
    allowed = authenticator(certificate=PROXY, requestheader_allowed_names=("other", "front"))
    assert (await allowed.authenticate(request(headers=SAID))).name == "carol"


async def test_one_authority_for_clients_and_proxies_does_not_make_clients_proxies() -> None:
    checked = authenticator(certificate=BOTH, requestheader_allowed_names=("front",))
    assert (await checked.authenticate(request(headers=SAID))).name == "admin"


async def test_a_proxy_that_names_nobody_may_bring_a_token() -> None:
    checked = authenticator(FakeReviewer({"good": ALICE}), certificate=PROXY)
    assert (await checked.authenticate(request(headers=bearer("good")))).name == "alice"
    assert await checked.authenticate(request()) is ANONYMOUS


async def test_a_client_cannot_speak_for_others() -> None:
    assert (await authenticator(certificate=ADMIN).authenticate(request(headers=SAID))).name == "admin"


# --- whom we trust ----------------------------------------------------------------------------------------------------

GIVEN = ProxyHeaders(("x-remote-user",), (), ("x-remote-group",), ("x-remote-extra-",), ())


def test_authorities_come_from_files_and_are_read_again(tmp_path: Path) -> None:
    first, second = Authority(tmp_path, "first"), Authority(tmp_path, "second")
    file = tmp_path / "ca.pem"
    file.write_text(first.pem)
    trust = Trust(str(file))
    version = trust.version
    assert trust.wants_certificates
    assert certificates_in(trust.authorities, "") == certificates_in(first.pem, "")
    trust.refresh()
    assert trust.version == version
    file.write_text(first.pem + second.pem)
    trust.refresh()
    assert trust.version > version
    assert len(certificates_in(trust.authorities, "")) == 2


def test_a_file_that_breaks_later_changes_nothing(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    trust = Trust(authority.file)
    Path(authority.file).write_text("nonsense", encoding="utf-8")
    trust.refresh()
    assert certificates_in(trust.authorities, "") == certificates_in(authority.pem, "")


@pytest.mark.parametrize("content", [None, "nonsense", "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----"])
def test_a_file_that_cannot_be_read_at_the_start_is_an_error(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match="unable to load client CA provider"):
        Trust(str(file))


def test_the_cluster_says_whom_to_trust_where_the_flags_do_not(tmp_path: Path) -> None:
    ours, theirs, proxies = (Authority(tmp_path, name) for name in ("ours", "theirs", "proxies"))
    found = {
        "client-ca-file": theirs.pem,
        "requestheader-client-ca-file": proxies.pem,
        "requestheader-username-headers": '["X-User"]',
        "requestheader-allowed-names": '["front"]',
        "requestheader-group-headers": "not a list",
    }
    trust = Trust()
    assert not trust.wants_certificates
    trust.take_over(found)
    assert certificates_in(trust.authorities, "") == certificates_in(theirs.pem + proxies.pem, "")
    headers = trust.proxy_headers(GIVEN)
    assert (headers.username, headers.allowed_names, headers.group) == (("X-User",), ("front",), ("x-remote-group",))
    own = Trust(ours.file, ours.file)
    own.take_over(found)
    assert certificates_in(own.authorities, "") == certificates_in(ours.pem, "")
    assert own.proxy_headers(GIVEN) is GIVEN


def test_a_broken_configmap_is_an_error_and_is_read_again_when_mended(tmp_path: Path) -> None:
    trust = Trust()
    with pytest.raises(ConfigError, match="configmap kube-system/extension-apiserver-authentication client-ca-file"):
        trust.take_over({"client-ca-file": "nonsense"})
    assert not trust.wants_certificates
    trust.take_over({"client-ca-file": Authority(tmp_path, "a").pem})
    assert trust.wants_certificates


def test_a_resumed_session_is_known_by_its_leaf(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    trust = Trust(authority.file)
    (root,) = certificates_in(authority.pem, "")
    assert trust.roles_of(b"stranger", list) == (False, False)
    assert trust.roles_of(b"leaf", lambda: [b"leaf", root]) == (True, False)
    assert trust.roles_of(b"leaf", list) == (True, False)
