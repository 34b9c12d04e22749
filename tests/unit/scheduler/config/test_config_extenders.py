"""Extenders: what is read from the file, and the credentials that are looked at before anything starts."""

from __future__ import annotations

import base64
import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kubesched.errors import ConfigError
from kubesched.scheduler.config import Configuration, Duration, Gates, load
from kubesched.scheduler.config.types import Extender, ExtenderManagedResource, ExtenderTLSConfig
from kubesched.scheduler.plugins.args import IN_TREE_CATALOGUE
from kubesched.scheduler.plugins.node_resources_fit.plugin import NodeResourcesFitArgs


def loaded(*extenders: dict[str, Any], **document: Any) -> Configuration:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    text = json.dumps({**head, "extenders": list(extenders), **document})
    return load(text, gates=Gates.defaults(), registry=IN_TREE_CATALOGUE)


def error_of(*extenders: dict[str, Any], **document: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(*extenders, **document)
    return str(caught.value)


def test_every_field_arrives() -> None:
    given = {
        "urlPrefix": "https://x/y",
        "filterVerb": "f",
        "preemptVerb": "e",
        "prioritizeVerb": "p",
        "weight": 3,
        "bindVerb": "b",
        "enableHTTPS": True,
        "tlsConfig": {"insecure": True, "serverName": "s"},
        "httpTimeout": "90s",
        "nodeCacheCapable": True,
        "managedResources": [{"name": "a.com/b", "ignoredByScheduler": True}],
        "ignorable": True,
    }
    assert loaded(given).extenders == (
        Extender(
            url_prefix="https://x/y",
            filter_verb="f",
            preempt_verb="e",
            prioritize_verb="p",
            weight=3,
            bind_verb="b",
            enable_https=True,
            tls_config=ExtenderTLSConfig(insecure=True, server_name="s"),
            http_timeout=Duration.of(seconds=90),
            node_cache_capable=True,
            managed_resources=(ExtenderManagedResource("a.com/b", True),),
            ignorable=True,
        ),
    )


def test_the_timeout_defaults_to_five_seconds() -> None:
    assert loaded({"urlPrefix": "http://x"}).extenders[0].http_timeout == Duration.of(seconds=5)


def test_what_extenders_account_for_replaces_the_ignored_resources_of_every_profile() -> None:
    extender = {"managedResources": [{"name": "a.com/b", "ignoredByScheduler": True}, {"name": "a.com/c"}]}
    ours = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["z.com/z"]}}
    profiles = [{"schedulerName": "a"}, {"schedulerName": "b", "pluginConfig": [ours]}]
    for profile in loaded(extender, profiles=profiles).profiles:
        args = profile.args["NodeResourcesFit"]
        assert isinstance(args, NodeResourcesFitArgs)
        assert args.ignored_resources == ("a.com/b",)


def test_a_profile_without_the_fit_plugin_cannot_ignore_anything() -> None:
    extender = {"managedResources": [{"name": "a.com/b", "ignoredByScheduler": True}]}
    off = {"plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}}
    error = "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
    assert error_of(extender, profiles=[off]) == error


@pytest.fixture(scope="module")
def pair() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "extender")])
    start = datetime.datetime(2026, 1, 1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(start).not_valid_after(start + datetime.timedelta(days=1))
    certificate = builder.sign(key, hashes.SHA256())
    return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_good_credentials_pass(pair: tuple[bytes, bytes], tmp_path: Path) -> None:
    certificate, key = pair
    (tmp_path / "ca.crt").write_bytes(certificate)
    tls = {"caFile": str(tmp_path / "ca.crt"), "certData": b64(certificate), "keyData": b64(key)}
    assert loaded({"tlsConfig": tls}).extenders[0].tls_config is not None


BAD_TLS: list[tuple[str, dict[str, Any], str]] = [
    (
        "a CA and insecure",
        {"caData": b64(b"x"), "insecure": True},
        "specifying a root certificates file with the insecure flag is not allowed",
    ),
    ("a missing CA", {"caFile": "/nowhere/ca"}, "open /nowhere/ca: no such file or directory"),
    (
        "a CA that is none",
        {"caData": b64(b"hello")},
        "unable to load root certificates: unable to parse bytes as PEM block",
    ),
    (
        "a key instead of a CA",
        {"caData": b64(b"-----BEGIN PRIVATE KEY-----\nYQ==\n-----END PRIVATE KEY-----\n")},
        "unable to load root certificates: no valid certificate authority data seen",
    ),
    (
        "a certificate that is none",
        {"certData": b64(b"hello"), "keyData": b64(b"hello")},
        "tls: failed to find any PEM data in certificate input",
    ),
    (
        "a missing certificate",
        {"certFile": "/nowhere/crt", "keyFile": "/nowhere/key"},
        "open /nowhere/crt: no such file or directory",
    ),
]


@pytest.mark.parametrize(("tls", "error"), [case[1:] for case in BAD_TLS], ids=[case[0] for case in BAD_TLS])
def test_bad_credentials_are_found_before_the_start(tls: dict[str, Any], error: str) -> None:
    assert error_of({"tlsConfig": tls}) == f"couldn't build extenders: {error}"


def test_a_key_must_belong_to_its_certificate(pair: tuple[bytes, bytes]) -> None:
    stranger = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    tls = {"certData": b64(pair[0]), "keyData": b64(stranger)}
    assert error_of({"tlsConfig": tls}) == "couldn't build extenders: tls: private key does not match public key"
