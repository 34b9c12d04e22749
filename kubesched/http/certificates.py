"""Certificates that a server makes for itself: an authority made for it alone, and a serving certificate signed by that.

In: keys, names and times. Out: X.509 certificates. The servers decide which keys to use and where to keep the files.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PEM = serialization.Encoding.PEM
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority with its key."""

    name: x509.Name
    key: Key
    begins: datetime.datetime
    ends: datetime.datetime

    @classmethod
    def of(cls, common_name: str, key: Key, begins: datetime.datetime, ends: datetime.datetime) -> Authority:
        """Return an authority; what it signs is valid as long as itself."""
        return cls(_named(common_name), key, begins, ends)

    def certificate(self) -> x509.Certificate:
        """Return the authority's own certificate, signed by itself."""
        builder = self._builder(self.name, self.key, signs_certificates=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
        return builder.add_extension(identifier, critical=False).sign(self.key, hashes.SHA256())

    def serving(self, common_name: str, key: Key, hosts: Iterable[str]) -> x509.Certificate:
        """Return a certificate for a server that is reached by these names and addresses."""
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        return (
            self._builder(_named(common_name), key, signs_certificates=False)
            .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(identifier, critical=False)
            .sign(self.key, hashes.SHA256())
        )

    def _builder(self, subject: x509.Name, key: Key, *, signs_certificates: bool) -> x509.CertificateBuilder:
        usage = x509.KeyUsage(  # Python 3.13 refuses an authority that does not say what its key is for
            digital_signature=True,
            key_encipherment=True,
            key_cert_sign=signs_certificates,
            content_commitment=False,
            data_encipherment=False,
            key_agreement=False,
            crl_sign=False,
            encipher_only=False,
            decipher_only=False,
        )
        return (
            x509.CertificateBuilder(subject_name=subject, issuer_name=self.name, public_key=key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self.begins)
            .not_valid_after(self.ends)
            .add_extension(x509.BasicConstraints(ca=signs_certificates, path_length=None), critical=True)
            .add_extension(usage, critical=True)
        )


def key_pem(key: Key, form: serialization.PrivateFormat) -> bytes:
    """Return a private key as PEM, not encrypted."""
    return key.private_bytes(PEM, form, serialization.NoEncryption())


def _named(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
