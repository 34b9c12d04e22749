"""Stand-ins for what the HTTP face is given: flags, reviewers, certificates."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from prometheus_client import CollectorRegistry

from kubesched.scheduler.config.releases.gates import Gates
from kubesched.server.options.options import Options, read_options
from kubesched.server.web import About, AppConfig
from kubesched.server.web.access.authorization import Authorizer
from kubesched.telemetry.exposing import register
from kubesched.telemetry.metrics import Metrics

GIVEN = read_options([])
assert isinstance(GIVEN, Options)
# What the command line gives by default, with changes.
authentication_flags = partial(replace, GIVEN.authentication)
authorization_flags = partial(replace, GIVEN.authorization)
serving_flags = partial(replace, GIVEN.serving, bind_address="127.0.0.1")


@dataclass(frozen=True)
class Files:
    cert_file: str
    key_file: str
    names: tuple[str, ...] = ()


@dataclass
class FakeReviewer:
    """Knows some tokens and some rights; counts how often it is asked. A list of errors is raised first."""

    tokens: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rights: frozenset[tuple[str, str, str]] = frozenset()
    errors: list[Exception] = field(default_factory=list)
    asked: list[Mapping[str, Any]] = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def create_token_review(self, review: Mapping[str, Any]) -> Mapping[str, Any]:
        await self._take(review)
        user = self.tokens.get(review["spec"]["token"])
        return {**review, "status": {"authenticated": True, "user": user} if user else {"error": "unknown"}}

    async def create_subject_access_review(self, review: Mapping[str, Any]) -> Mapping[str, Any]:
        await self._take(review)
        spec = review["spec"]
        wanted = (spec["user"], spec["nonResourceAttributes"]["verb"], spec["nonResourceAttributes"]["path"])
        return {**review, "status": {"allowed": wanted in self.rights}}

    async def _take(self, review: Mapping[str, Any]) -> None:
        self.asked.append(review)
        if self.gate is not None:
            await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)


def request(method: str = "GET", path: str = "/metrics", headers: Mapping[str, str] | None = None) -> web.Request:
    return make_mocked_request(method, path, headers=dict(headers or {}))


def new_parts(**changes: Any) -> AppConfig:
    """Return parts that let everybody in."""
    metrics = Metrics()
    values: dict[str, Any] = {
        "registry": register(metrics, CollectorRegistry()),
        "gates": Gates.defaults(),
        "about": About(started_at=1_700_000_000.0, binary_version="1.36.4", emulation_version="1.36"),
        "reset_metrics": metrics.reset,
        "authorizer": Authorizer(authorization_flags(always_allow_paths=("/*",))),
    }
    return AppConfig(**(values | changes))


def client_for(app: web.Application) -> TestClient[web.Request, web.Application]:
    return TestClient(TestServer(app))


# --- certificates -----------------------------------------------------------------------------------------------------


class Authority:
    """A certificate authority for a test; elliptic keys, because they are quick to make."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _name(name)
        self.certificate = self._sign(self._subject, self._key, ca=True)
        self.file = str(folder / f"{name}.pem")
        self.pem = self.certificate.public_bytes(serialization.Encoding.PEM).decode()
        Path(self.file).write_text(self.pem, encoding="utf-8")

    def issue(self, file: str, common_name: str, organizations: Iterable[str] = (), dns: Sequence[str] = ()) -> Files:
        """Write a certificate and its key; return where they are."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(_name(common_name, organizations), key, dns=dns)
        cert_file, key_file = self.folder / f"{file}.crt", self.folder / f"{file}.key"
        cert_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        key_file.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
        return Files(str(cert_file), str(key_file))

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, ca: bool = False, dns: Sequence[str] = ()
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if dns:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(d) for d in dns]), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _name(common_name: str, organizations: Iterable[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


Probe = Callable[[], str]
