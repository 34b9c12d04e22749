"""Serving certificates: an authority of our own and a certificate signed by it, made on the spot.

In: a directory and the names the server is reached by. Out: files that a TLS context and a kubeconfig point at. A
certificate that is still valid for these names is kept, so a kubeconfig written once goes on working.
"""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = timedelta(days=365)
_MARGIN = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Certificate:
    """Where the files are."""

    authority: Path
    chain: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """Return a TLS context that serves this certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.chain, self.key)
        return context


def authority_alone(name: str) -> str:
    """Return the certificate of an authority, as PEM, whose key nobody has: it vouches for nobody."""
    key = ec.generate_private_key(ec.SECP256R1())
    return _authority(_named(name), key).public_bytes(serialization.Encoding.PEM).decode()


def serving_certificate(directory: Path, hosts: list[str]) -> Certificate:
    """Return a certificate for `hosts`, made in `directory` unless a good one is there."""
    found = Certificate(directory / "ca.crt", directory / "apiserver.crt", directory / "apiserver.key")
    if not _is_good(found, hosts):
        _make(found, hosts)
    return found


def _is_good(found: Certificate, hosts: list[str]) -> bool:
    if not (found.authority.exists() and found.chain.exists() and found.key.exists()):
        return False
    try:
        certificate = x509.load_pem_x509_certificate(found.chain.read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        certificate.extensions.get_extension_for_class(x509.KeyUsage)  # those that we made before had none
    except (ValueError, x509.ExtensionNotFound):
        return False
    held = {str(name.value) for name in names}
    return set(hosts) <= held and certificate.not_valid_after_utc > datetime.now(UTC) + _MARGIN


def _make(found: Certificate, hosts: list[str]) -> None:
    found.authority.parent.mkdir(parents=True, exist_ok=True)
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = _named(f"kubesched {x509.random_serial_number():x}"[:64])
    authority = _authority(authority_name, authority_key)
    server = (
        _builder(_named("kube-apiserver"), authority_name, server_key.public_key())
        .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    found.authority.write_bytes(authority.public_bytes(pem))
    found.chain.write_bytes(server.public_bytes(pem) + authority.public_bytes(pem))
    found.key.touch(mode=0o600)
    found.key.write_bytes(server_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _authority(name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    return (
        _builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    # Python 3.13 refuses an authority that does not say what its key is for.
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
