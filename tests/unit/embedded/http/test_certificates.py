"""The embedded API server's certificate: whom it convinces, and when another one is made."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kubesched.embedded.http.certificates import Certificate, serving_certificate


def shake_hands(found: Certificate, host: str, flags: ssl.VerifyFlags) -> None:
    """Let a client that trusts the authority talk to a server, in memory; raise what the client raises."""
    trusting = ssl.create_default_context(cafile=str(found.authority))
    trusting.verify_flags |= flags
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(to_client, to_server, server_hostname=host)
    server = found.context().wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_client_that_checks_by_the_letter_trusts_it(host: str, tmp_path: Path) -> None:
    found = serving_certificate(tmp_path, ["127.0.0.1", "localhost"])
    shake_hands(found, host, ssl.VERIFY_X509_STRICT)  # what Python asks for from 3.13 on


def test_a_good_one_is_kept_and_one_for_other_hosts_is_not(tmp_path: Path) -> None:
    first = serving_certificate(tmp_path, ["127.0.0.1"]).chain.read_bytes()
    assert serving_certificate(tmp_path, ["127.0.0.1"]).chain.read_bytes() == first
    assert serving_certificate(tmp_path, ["127.0.0.1", "example.com"]).chain.read_bytes() != first
