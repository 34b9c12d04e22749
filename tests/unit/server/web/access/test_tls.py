"""TLS: handshakes between two contexts in memory, without a network."""

from __future__ import annotations

import ssl
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from web_fakes import Authority, Files, serving_flags

from kubesched.errors import ConfigError
from kubesched.server.options.flags import CIPHER_SUITES, INSECURE_CIPHER_SUITES
from kubesched.server.options.options import Serving
from kubesched.server.web.access.certificates import Pair, read_pair, self_signed
from kubesched.server.web.access.client_certificates import Trust, _verified_chain
from kubesched.server.web.access.tls import ServingTls, _openssl_name

NOW = 1_750_000_000.0


@pytest.fixture(scope="module")
def made() -> Pair:
    return self_signed("10.1.2.3", NOW)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "ca")


def flags_for(files: Files, **changes: Any) -> Serving:
    return serving_flags(tls_cert_file=files.cert_file, tls_private_key_file=files.key_file, **changes)


def handshake(
    server_context: ssl.SSLContext, client_context: ssl.SSLContext, name: str | None = "localhost"
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Return both ends of a connection, or raise what either end raises."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context.wrap_bio(up, down, server_side=True)
    client = client_context.wrap_bio(down, up, server_hostname=name)
    done = {client: False, server: False}
    for _ in range(20):
        for end in done:
            if not done[end]:
                try:
                    end.do_handshake()
                    done[end] = True
                except ssl.SSLWantReadError:
                    pass
        if all(done.values()):
            return server, client
    raise AssertionError("the handshake did not end")


def caller(certificate: Files | None = None, **versions: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for name, version in versions.items():
        setattr(context, name, version)
    if certificate is not None:
        context.load_cert_chain(certificate.cert_file, certificate.key_file)
    return context


def served(tls: ServingTls, name: str | None = "localhost") -> str:
    """Return the common name of the certificate that a caller is shown."""
    _, client = handshake(tls.context, caller(), name)
    der = client.getpeercert(binary_form=True)
    assert der is not None
    subject = x509.load_der_x509_certificate(der).subject
    return str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


# --- self-signed ------------------------------------------------------------------------------------------------------


def test_a_self_made_certificate_says_what_the_references_says(made: Pair) -> None:
    leaf, ca = x509.load_pem_x509_certificates(made.certificate)
    assert leaf.subject.rfc4514_string() == "CN=localhost@1750000000"
    assert ca.subject.rfc4514_string() == leaf.issuer.rfc4514_string() == "CN=localhost-ca@1750000000"
    assert leaf.not_valid_before_utc.timestamp() == NOW - 3600
    assert leaf.not_valid_after_utc.timestamp() == NOW + 365 * 86400
    assert made.names == ("localhost", "127.0.0.1", "10.1.2.3")
    leaf.verify_directly_issued_by(ca)
    key = leaf.public_key()
    assert getattr(key, "key_size", 0) == 2048


def test_it_is_trusted_by_whoever_trusts_its_authority() -> None:
    fresh = self_signed("0.0.0.0", time.time())
    assert fresh.names == ("localhost", "127.0.0.1")
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    fresh.load_into(server)
    root = x509.load_pem_x509_certificates(fresh.certificate)[1]
    client.load_verify_locations(cadata=root.public_bytes(Encoding.PEM).decode())
    handshake(server, client, "localhost")
    with pytest.raises(ssl.SSLError):
        handshake(server, client, "elsewhere")


def test_a_directory_keeps_what_was_made(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    flags = serving_flags(cert_dir=str(folder))
    first = served(ServingTls(flags, now=lambda: NOW))
    assert first == "localhost@1750000000"
    assert (folder / "kube-scheduler.key").stat().st_mode & 0o777 == 0o600
    assert served(ServingTls(flags, now=lambda: NOW + 99)) == first


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="error creating self-signed certificates"):
        ServingTls(serving_flags(cert_dir=str(tmp_path / "file" / "certs")))


# --- files ------------------------------------------------------------------------------------------------------------


def test_files_are_served_and_read_again_when_they_change(authority: Authority) -> None:
    files = authority.issue("serving", "old")
    tls = ServingTls(flags_for(files))
    assert served(tls) == "old"
    authority.issue("serving", "new")
    assert served(tls) == "new"
    Path(files.cert_file).write_text("half a certificate", encoding="utf-8")
    assert served(tls) == "new"
    authority.issue("serving", "newer")
    assert served(tls) == "newer"


def test_files_that_do_not_work_are_an_error(authority: Authority, tmp_path: Path) -> None:
    files, other = authority.issue("a", "a"), authority.issue("b", "b")
    with pytest.raises(ConfigError, match="missing filename for serving cert"):
        ServingTls(serving_flags(tls_cert_file=files.cert_file))
    with pytest.raises(ConfigError, match=r"^open .*/absent: no such file or directory$"):
        read_pair(files.cert_file, str(tmp_path / "absent"))
    with pytest.raises(ConfigError, match=r"^tls: private key does not match public key$"):
        read_pair(files.cert_file, other.key_file)
    nonsense = tmp_path / "nonsense"
    nonsense.write_text("half a certificate")
    with pytest.raises(ConfigError, match=r"^tls: failed to find any PEM data in certificate input$"):
        read_pair(str(nonsense), files.key_file)
    with pytest.raises(ConfigError, match=r"^tls: failed to find any PEM data in key input$"):
        read_pair(files.cert_file, str(nonsense))
    with pytest.raises(ConfigError, match=r"^failed to load SNI cert and key: open .*/absent: no such file"):
        ServingTls(serving_flags(tls_sni_cert_key=(Files(str(tmp_path / "absent"), files.key_file),)))


NAMES = [
    ("a name given in a flag", "given.example", "given"),
    ("a name found in a certificate", "found.example", "found"),
    ("a given pattern", "x.wild.example", "wild"),
    ("a pattern covers one step only", "x.y.wild.example", "default"),
    ("a whole name before a pattern", "exact.wild.example", "exact"),
    ("given before found", "shared.example", "given"),
    ("case does not matter", "GIVEN.Example", "given"),
    ("nobody's name", "other.example", "default"),
    ("no name at all", None, "default"),
    ("names in a certificate do not count where the flag gives some", "inside.example", "default"),
]


@pytest.mark.parametrize(("case", "name", "expected"), NAMES, ids=[case[0] for case in NAMES])
def test_the_callers_name_picks_the_certificate(case: str, name: str | None, expected: str, authority: Authority) -> None:
    found = authority.issue("found", "found", dns=("found.example", "shared.example"))
    inside = authority.issue("given", "given", dns=("inside.example",))
    given = replace(inside, names=("given.example", "shared.example"))
    wild = replace(authority.issue("wild", "wild"), names=("*.wild.example",))
    exact = replace(authority.issue("exact", "exact"), names=("exact.wild.example",))
    flags = flags_for(authority.issue("default", "default"), tls_sni_cert_key=(found, wild, given, exact))
    assert served(ServingTls(flags), name) == expected


# --- versions, suites, curves -----------------------------------------------------------------------------------------


def test_versions_below_the_minimum_are_refused(authority: Authority) -> None:
    files = authority.issue("a", "a")
    old = caller(maximum_version=ssl.TLSVersion.TLSv1_2)
    handshake(ServingTls(flags_for(files)).context, old)
    with pytest.raises(ssl.SSLError):
        handshake(ServingTls(flags_for(files, tls_min_version="VersionTLS13")).context, old)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        ancient = caller(minimum_version=ssl.TLSVersion.TLSv1_1, maximum_version=ssl.TLSVersion.TLSv1_1)
        ancient.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError):
        handshake(ServingTls(flags_for(files)).context, ancient)
    server, _ = handshake(ServingTls(flags_for(files, tls_min_version="VersionTLS11")).context, ancient)
    assert server.version() == "TLSv1.1"


def test_only_the_suites_of_the_flag_are_offered(authority: Authority) -> None:
    files = authority.issue("a", "a")
    suites = ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256")
    tls = ServingTls(flags_for(files, tls_cipher_suites=suites))
    server, _ = handshake(tls.context, caller(maximum_version=ssl.TLSVersion.TLSv1_2))
    chosen = server.cipher()
    assert chosen is not None
    assert chosen[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
    other = caller(maximum_version=ssl.TLSVersion.TLSv1_2)
    other.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with pytest.raises(ssl.SSLError):
        handshake(tls.context, other)


def test_suites_of_the_newest_version_alone_leave_no_older_one(authority: Authority) -> None:
    tls = ServingTls(flags_for(authority.issue("a", "a"), tls_cipher_suites=("TLS_AES_128_GCM_SHA256",)))
    with pytest.raises(ssl.SSLError):
        handshake(tls.context, caller(maximum_version=ssl.TLSVersion.TLSv1_2))
    handshake(tls.context, caller())


def test_every_suite_is_known_or_refused(authority: Authority) -> None:
    files = authority.issue("a", "a")
    refused = []
    for suite in CIPHER_SUITES + INSECURE_CIPHER_SUITES:
        try:
            ServingTls(flags_for(files, tls_cipher_suites=(suite,)))
        except ConfigError as error:
            assert f"--tls-cipher-suites: {suite} is not available in" in str(error)
            refused.append(suite)
    assert all("RC4" in suite or "3DES" in suite for suite in refused)
    assert _openssl_name("TLS_RSA_WITH_AES_128_CBC_SHA") == "AES128-SHA"


def test_one_curve_can_be_asked_for(authority: Authority) -> None:
    files = authority.issue("a", "a")
    tls = ServingTls(flags_for(files, tls_curve_preferences=(24,)))
    handshake(tls.context, caller())
    other = caller()
    other.set_ecdh_curve("prime256v1")
    with pytest.raises(ssl.SSLError):
        handshake(tls.context, other)


@pytest.mark.parametrize(
    ("curves", "text"), [((23, 29), "can be told one curve only"), ((4588,), "curve 4588 is not available in")]
)
def test_curves_that_cannot_be_honoured_are_an_error(curves: tuple[int, ...], text: str, authority: Authority) -> None:
    with pytest.raises(ConfigError, match=text):
        ServingTls(flags_for(authority.issue("a", "a"), tls_curve_preferences=curves))


# --- callers ----------------------------------------------------------------------------------------------------------


def test_callers_are_asked_for_a_certificate_but_need_none(authority: Authority, tmp_path: Path) -> None:
    clients = Authority(tmp_path, "clients")
    trust = Trust(clients.file)
    tls = ServingTls(flags_for(authority.issue("a", "a")), trust)
    handshake(tls.context, caller())
    server, _ = handshake(tls.context, caller(clients.issue("admin", "admin", ["system:masters"])))
    assert server.getpeercert()["subject"][-1] == (("commonName", "admin"),)  # type: ignore[index]
    leaf = server.getpeercert(binary_form=True)
    assert leaf is not None
    assert trust.roles_of(leaf, lambda: _verified_chain(server)) == (True, False)


def test_authorities_learned_later_count_from_the_next_handshake_on(authority: Authority, tmp_path: Path) -> None:
    clients = Authority(tmp_path, "clients")
    trust = Trust()
    tls = ServingTls(flags_for(authority.issue("a", "a")), trust)
    certificate = clients.issue("admin", "admin")
    server, _ = handshake(tls.context, caller(certificate))
    assert not server.getpeercert(binary_form=True)
    trust.take_over({"client-ca-file": clients.pem})
    tls.refresh()
    server, _ = handshake(tls.context, caller(certificate))
    assert server.getpeercert(binary_form=True)


def test_a_certificate_that_nobody_vouches_for_ends_the_handshake(authority: Authority, tmp_path: Path) -> None:
    clients, strangers = Authority(tmp_path, "clients"), Authority(tmp_path, "strangers")
    tls = ServingTls(flags_for(authority.issue("a", "a")), Trust(clients.file))
    with pytest.raises(ssl.SSLError, match="certificate verify failed"):
        handshake(tls.context, caller(strangers.issue("x", "x")))
