"""Client certificates: which authorities are trusted, and what a caller's certificate says.

In: the authorities of the flags and of the cluster, and the TLS connection of a request. Out: the caller's names, and whether
an authority for clients, for proxies, or for both has signed them. The TLS library verifies the chain during the handshake;
here only its root is looked up. A certificate that no authority has signed ends the handshake (kube-scheduler accepts it and
answers 401).
"""

from __future__ import annotations

import hashlib
import json
import ssl
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from kubesched.errors import ConfigError
from kubesched.scheduler.config import unreadable
from kubesched.telemetry.logs import logger

log = logger(__name__)

AUTHENTICATION_CONFIG = ("kube-system", "extension-apiserver-authentication")
"""Namespace and name of the ConfigMap in which a cluster says whom to trust."""

_CANNOT_LOAD = {
    "client": "unable to load client CA provider",
    "proxy": "unable to create request header authentication config",
}
_MOST_CALLERS = 1024
_DER = 2  # what the ssl module calls the encoding, without a public name for it


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A verified client certificate."""

    name: str  # the common name
    organizations: tuple[str, ...]
    fingerprint: str
    is_of_client: bool
    is_of_proxy: bool


@dataclass(frozen=True, slots=True)
class ProxyHeaders:
    """The headers in which a proxy names the user, and the proxies that may: by common name, or all if none is listed."""

    username: tuple[str, ...]
    uid: tuple[str, ...]
    group: tuple[str, ...]
    extra_prefix: tuple[str, ...]
    allowed_names: tuple[str, ...]


class Trust:
    """The trusted authorities. `version` changes whenever they do."""

    def __init__(self, client_ca_file: str = "", proxy_ca_file: str = "") -> None:
        self._files = {"client": client_ca_file, "proxy": proxy_ca_file}
        self._marks: dict[str, object] = {}
        self._roots: dict[str, frozenset[bytes]] = {"client": frozenset(), "proxy": frozenset()}
        self._found: Mapping[str, str] = {}
        self._roles: OrderedDict[bytes, tuple[bool, bool]] = OrderedDict()
        self.version = 0
        self.refresh()

    @property
    def wants_certificates(self) -> bool:
        """Return whether callers are asked for a certificate."""
        return any(self._roots.values())

    @property
    def authorities(self) -> str:
        """Return all authorities as one text, for the TLS library."""
        return "".join(ssl.DER_cert_to_PEM_cert(root) for roots in self._roots.values() for root in sorted(roots))

    def refresh(self) -> None:
        """Read changed files again; raise `ConfigError` for one that cannot be read the first time."""
        for role, file in self._files.items():
            if not file:
                continue
            try:
                stat = Path(file).stat()
                mark = (stat.st_mtime_ns, stat.st_size)
                if self._marks.get(role) != mark:
                    self._put(role, certificates_in(Path(file).read_text(encoding="utf-8"), file))
                    self._marks[role] = mark
            except (OSError, ConfigError) as error:
                if role not in self._marks:
                    detail = unreadable(file, error) if isinstance(error, OSError) else error
                    raise ConfigError("", f"{_CANNOT_LOAD[role]}: {detail}") from error
                log.error("Cannot read authorities again; the old ones stay", err=error, file=file)

    def take_over(self, found: Mapping[str, str]) -> None:
        """Use what the cluster's ConfigMap says, where the flags say nothing."""
        if found == self._found:
            return
        for role, key in (("client", "client-ca-file"), ("proxy", "requestheader-client-ca-file")):
            if not self._files[role]:
                what = f"configmap {'/'.join(AUTHENTICATION_CONFIG)} {key}"
                self._put(role, certificates_in(found.get(key, ""), what))
        self._found = dict(found)

    def proxy_headers(self, given: ProxyHeaders) -> ProxyHeaders:
        """Return the headers to read: those of the ConfigMap, if its authority is in use."""
        if self._files["proxy"] or not self._found.get("requestheader-client-ca-file"):
            return given
        return replace(
            given,
            username=self._listed("requestheader-username-headers") or given.username,
            uid=self._listed("requestheader-uid-headers") or given.uid,
            group=self._listed("requestheader-group-headers") or given.group,
            extra_prefix=self._listed("requestheader-extra-headers-prefix") or given.extra_prefix,
            allowed_names=self._listed("requestheader-allowed-names"),
        )

    def roles_of(self, leaf: bytes, chain: Callable[[], list[bytes]]) -> tuple[bool, bool]:
        """Return whether a certificate is a client's, and whether it is a proxy's, by the root of its chain.

        A resumed TLS session has no chain; the result of the full handshake is kept for it, for the newest 1,024 certificates.
        """
        known = self._roles.get(leaf)
        if known is None:
            roots = chain()[-1:]
            known = any(root in self._roots["client"] for root in roots), any(root in self._roots["proxy"] for root in roots)
            if roots:
                self._roles[leaf] = known
                if len(self._roles) > _MOST_CALLERS:
                    self._roles.popitem(last=False)
        return known

    def _listed(self, key: str) -> tuple[str, ...]:
        """Return a list of the ConfigMap; empty if it is not one."""
        try:
            names = json.loads(self._found.get(key) or "[]")
            return tuple(str(name) for name in names)
        except (ValueError, TypeError) as error:
            log.error("Not a list of strings", err=error, configmap="/".join(AUTHENTICATION_CONFIG), key=key)
            return ()

    def _put(self, role: str, roots: frozenset[bytes]) -> None:
        """Replace the authorities of a role."""
        if roots != self._roots[role]:
            self._roots[role] = roots
            self._roles.clear()
            self.version += 1


def certificates_in(pem: str, what: str) -> frozenset[bytes]:
    """Return the certificates of a PEM text in DER; raise `ConfigError` if it has a text but no certificate."""
    if not pem.strip():
        return frozenset()
    try:
        found = x509.load_pem_x509_certificates(pem.encode())
    except ValueError as error:
        raise ConfigError("", f"{what}: data does not contain any valid RSA or ECDSA certificates") from error
    return frozenset(each.public_bytes(serialization.Encoding.DER) for each in found)


def certificate_of(request: web.BaseRequest, trust: Trust) -> ClientCertificate | None:
    """Return the certificate that a request's connection was opened with, or None."""
    transport = request.transport
    tls = transport.get_extra_info("ssl_object") if transport is not None else None
    if tls is None:
        return None
    leaf = tls.getpeercert(binary_form=True)
    if not leaf:
        return None
    is_of_client, is_of_proxy = trust.roles_of(leaf, lambda: _verified_chain(tls))
    subject = [pair for name in tls.getpeercert().get("subject", ()) for pair in name]
    return ClientCertificate(
        name=next((value for key, value in reversed(subject) if key == "commonName"), ""),
        organizations=tuple(value for key, value in subject if key == "organizationName"),
        fingerprint=hashlib.sha256(leaf).hexdigest(),
        is_of_client=is_of_client,
        is_of_proxy=is_of_proxy,
    )


def _verified_chain(tls: Any) -> list[bytes]:
    """Return the chain that the handshake verified, the leaf first; empty for a resumed session."""
    if hasattr(tls, "get_verified_chain"):
        return list(tls.get_verified_chain())
    # Before Python 3.13 only the object below has it.
    below = getattr(tls, "_sslobj", None)
    chain = below.get_verified_chain() if below is not None else None
    return [part.public_bytes(_DER) for part in chain or ()]
