"""The serving certificate of the embedded server, made when it starts and kept in a directory.

In: a directory, and the names by which the server is reached. Out: files for a TLS context and a kubeconfig. A certificate
that is still valid for these names is used again, so a kubeconfig that was written once goes on working.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kubesched.http import PEM, Authority, key_pem

_LIFETIME = timedelta(days=365)
_MARGIN = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files of a certificate."""

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
    """Return the certificate of an authority, as PEM. Its key is thrown away, so it never signs anything."""
    return _authority(name).certificate().public_bytes(PEM).decode()


def serving_certificate(directory: Path, hosts: list[str]) -> Certificate:
    """Return a certificate for `hosts`, made in `directory` unless a good one is there."""
    found = Certificate(directory / "ca.crt", directory / "apiserver.crt", directory / "apiserver.key")
    if not _is_good(found, hosts):
        _make(found, hosts)
    return found


def _is_good(found: Certificate, hosts: list[str]) -> bool:
    """Return whether the files are there, are for these hosts, and are valid for another week."""
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
    """Write a new authority, and a certificate that it signs. The authority's key is not kept."""
    found.authority.parent.mkdir(parents=True, exist_ok=True)
    authority, key = _authority(f"kubesched {x509.random_serial_number():x}"[:64]), _new_key()
    own = authority.certificate().public_bytes(PEM)
    found.authority.write_bytes(own)
    found.chain.write_bytes(authority.serving("kube-apiserver", key, hosts).public_bytes(PEM) + own)
    found.key.touch(mode=0o600)
    found.key.write_bytes(key_pem(key, serialization.PrivateFormat.PKCS8))


def _authority(name: str) -> Authority:
    now = datetime.now(UTC)
    return Authority.of(name, _new_key(), now - timedelta(minutes=5), now + _LIFETIME)


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())
