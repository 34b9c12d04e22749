"""Serving certificates: made here, or read from files.

In: the address that is served, or two files. Out: a certificate with its chain and its key, as PEM, and the names it is for. A
key that is made for memory is never written to a disk.
"""

from __future__ import annotations

import datetime
import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from kubesched.errors import ConfigError
from kubesched.http import PEM, Authority, key_pem
from kubesched.scheduler.config import read_file

HOST = "localhost"
VALID_DAYS = 365
KEY_BITS = 2048  # RSA, as kube-scheduler makes it
_UNSPECIFIED = ("0.0.0.0", "::", "")


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate with its authorities, and its key."""

    certificate: bytes
    key: bytes

    def load_into(self, context: ssl.SSLContext) -> None:
        """Load the pair into a TLS context; the TLS library reads only files."""
        with _as_file(self.certificate + self.key) as name:
            context.load_cert_chain(name)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names the certificate is for: its alternative names, or else its common name."""
        leaf = x509.load_pem_x509_certificate(self.certificate)
        try:
            listed = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            names = [
                *listed.get_values_for_type(x509.DNSName),
                *(str(address) for address in listed.get_values_for_type(x509.IPAddress)),
            ]
        except x509.ExtensionNotFound:
            names = []
        if not names:
            names = [str(part.value) for part in leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        return tuple(names)


def read_pair(cert_file: str, key_file: str) -> Pair:
    """Read a pair from files; raise `ConfigError` if they are missing, broken or do not belong together."""
    if not cert_file or not key_file:
        raise ConfigError("", "missing filename for serving cert")
    pair = Pair(read_file(cert_file).rstrip() + b"\n", read_file(key_file))
    for what, text in (("certificate", pair.certificate), ("key", pair.key)):
        if b"-----BEGIN " not in text:
            raise ConfigError("", f"tls: failed to find any PEM data in {what} input")
    try:
        pair.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError("", "tls: private key does not match public key") from error
        raise ConfigError("", f"unable to load server certificate {cert_file}, {key_file}: {error}") from error
    return pair


def kept_pair(directory: str, name: str, address: str, now: float) -> Pair:
    """Return the pair of this name in a directory; make it if it is not there."""
    folder = Path(directory)
    cert_file, key_file = folder / f"{name}.crt", folder / f"{name}.key"
    if cert_file.exists() and key_file.exists():
        return read_pair(str(cert_file), str(key_file))
    pair = self_signed(address, now)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        cert_file.write_bytes(pair.certificate)
        with os.fdopen(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(pair.key)
    except OSError as error:
        detail = f"{error.filename}: {(error.strerror or str(error)).lower()}"
        raise ConfigError("", f"error creating self-signed certificates: {detail}") from error
    return pair


def self_signed(address: str, now: float) -> Pair:
    """Make a certificate for localhost and the address, signed by an authority made for it alone."""
    issued = datetime.datetime.fromtimestamp(int(now), datetime.UTC) - datetime.timedelta(hours=1)
    expires = issued + datetime.timedelta(days=VALID_DAYS, hours=1)
    hosts = [HOST, "127.0.0.1"]
    if address not in (*_UNSPECIFIED, "127.0.0.1"):
        hosts.append(address)
    try:
        keys = [rsa.generate_private_key(65537, KEY_BITS) for _ in range(2)]
        authority = Authority.of(f"{HOST}-ca@{int(now)}", keys[0], issued, expires)
        leaf = authority.serving(f"{HOST}@{int(now)}", keys[1], hosts)
        chain = leaf.public_bytes(PEM) + authority.certificate().public_bytes(PEM)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ConfigError("", f"error creating self-signed certificates: {error}") from error
    return Pair(chain, key_pem(keys[1], serialization.PrivateFormat.TraditionalOpenSSL))


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Lend the content as a file that only this process can read, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("serving-certificate", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile(prefix="serving-certificate-") as file:
            file.write(content)
            file.flush()
            yield file.name
