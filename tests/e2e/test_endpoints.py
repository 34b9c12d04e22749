"""The endpoints over real TLS, with flags from a real command line and reviews by a real API server.

The embedded API server knows three tokens and what RBAC gives them; the scheduler's face asks it about every caller.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from control_planes import free_port
from prometheus_client import CollectorRegistry
from web_fakes import Authority, Files

from kubesched.embedded import ApiServer, ObjectStore
from kubesched.embedded.http.access import User
from kubesched.errors import ConfigError, NotFound
from kubesched.kube.client.access_reviews import Reviews
from kubesched.kube.client.connection import Connection, connect
from kubesched.kube.client.credentials import KubeconfigSource
from kubesched.scheduler.config import defaults, effective
from kubesched.scheduler.engine.assembly import registry_with
from kubesched.scheduler.framework.runtime.building import catalogue
from kubesched.server.options.options import Options, read_options
from kubesched.server.web import (
    PING,
    About,
    AppConfig,
    build_app,
    delegated_access,
    serve,
)
from kubesched.telemetry import Metrics, configure, logs
from kubesched.telemetry.exposing import register

TOKENS = {
    "scheduler": User("system:kube-scheduler", ("system:authenticated",)),
    "prometheus": User("prometheus", ("monitoring", "system:authenticated")),
    "guest": User("guest", ("system:authenticated",)),
    "root": User("root", ("system:masters", "system:authenticated")),
}


@dataclass
class Face:
    """A running face, and how to ask it."""

    port: int
    connection: Connection
    api: ApiServer

    async def ask(
        self,
        path: str,
        token: str = "",
        method: str = "GET",
        certificate: Files | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> tuple[int, str]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate is not None:
            context.load_cert_chain(certificate.cert_file, certificate.key_file)
        shown = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, f"https://127.0.0.1:{self.port}{path}", ssl=context, headers=shown, **more) as answer,
        ):
            return answer.status, await answer.text()


@asynccontextmanager
async def running(
    tmp_path: Path, *words: str, store: ObjectStore | None = None, is_silent: bool = False
) -> AsyncIterator[Face]:
    """Start an API server and a face by the words of a command line; a silent server does not say whom to trust."""
    store = store or ObjectStore()
    rbac = "rbac.authorization.k8s.io"
    rules = [{"nonResourceURLs": ["/metrics", "/metrics/*"], "verbs": ["get"]}]
    store.create(f"clusterroles.{rbac}", {"metadata": {"name": "scraping"}, "rules": rules})
    store.create(
        f"clusterrolebindings.{rbac}",
        {
            "metadata": {"name": "scraping"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "scraping"},
            "subjects": [{"apiGroup": rbac, "kind": "Group", "name": "monitoring"}],
        },
    )
    port = free_port()
    options = read_options(["--bind-address=127.0.0.1", f"--secure-port={port}", *words])
    assert isinstance(options, Options)
    async with ApiServer(store, tokens=TOKENS) as api:
        if is_silent:
            store.delete("configmaps", "extension-apiserver-authentication", "kube-system")
        connection = await connect(KubeconfigSource(str(kubeconfig_for(api, tmp_path))))
        try:
            async with face_for(options, connection, api, port) as face:
                yield face
        finally:
            await connection.close()


@asynccontextmanager
async def face_for(options: Options, connection: Connection, api: ApiServer, port: int) -> AsyncIterator[Face]:
    reviews = Reviews(connection)
    guard = await delegated_access(
        options.authentication,
        options.authorization,
        token_reviewer=reviews,
        access_reviewer=reviews,
        lookup=reviews.authentication_config,
    )
    metrics = Metrics()
    parts = AppConfig(
        registry=register(metrics, CollectorRegistry()),
        gates=options.gates,
        about=About(1_700_000_000.0, options.reported_version, "1.36"),
        livez=(PING,),
        reset_metrics=metrics.reset,
        configz=lambda: effective(defaults(gates=options.gates, registry=catalogue(registry_with()))),
        flags=options.parsed.shown,
        authenticator=guard.authenticator,
        authorizer=guard.authorizer,
    )
    server = await serve(build_app(parts), options.serving, guard)
    assert server is not None
    try:
        yield Face(port, connection, api)
    finally:
        await server.stop()


def kubeconfig_for(api: ApiServer, folder: Path) -> Path:
    file = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": api.url}}],
        "users": [{"name": "u", "user": {"token": "scheduler"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    file.write_text(json.dumps(document))
    return file


DOORS = [
    ("/healthz", "", 200),
    ("/livez", "", 200),
    ("/metrics", "", 401),
    ("/metrics", "wrong", 401),
    ("/metrics", "guest", 403),
    ("/metrics", "prometheus", 200),
    ("/metrics/resources", "prometheus", 200),
    ("/metrics/slis", "prometheus", 200),
    ("/configz", "prometheus", 403),
    ("/configz", "root", 200),
    ("/flagz", "root", 200),
    ("/statusz", "root", 200),
    ("/debug/pprof/", "root", 200),
    ("/debug/pprof/profile?seconds=0.1&format=svg", "root", 200),
    ("/nothing", "root", 404),
]


async def test_who_is_let_in_where(tmp_path: Path) -> None:
    async with running(tmp_path) as face:
        found = [(path, token, (await face.ask(path, token))[0]) for path, token, _ in DOORS]
        assert found == DOORS


async def test_certificates_say_who_a_caller_is(tmp_path: Path) -> None:
    clients, proxies = Authority(tmp_path, "clients"), Authority(tmp_path, "proxies")
    words = (
        f"--client-ca-file={clients.file}",
        f"--requestheader-client-ca-file={proxies.file}",
        "--requestheader-allowed-names=front",
    )
    admin = clients.issue("admin", "admin", ["system:masters"])
    guest = clients.issue("guest", "guest")
    front = proxies.issue("front", "front")
    impostor = proxies.issue("impostor", "impostor", ["system:masters"])
    async with running(tmp_path, *words) as face:
        assert (await face.ask("/configz", certificate=admin))[0] == 200
        status, text = await face.ask("/configz", certificate=guest)
        assert (status, json.loads(text)["message"].startswith('forbidden: User "guest" cannot get')) == (403, True)
        said = {"X-Remote-User": "carol", "X-Remote-Group": "monitoring"}
        assert (await face.ask("/metrics", certificate=front, headers=said))[0] == 200
        assert (await face.ask("/metrics", certificate=impostor, headers=said))[0] == 401
        assert (await face.ask("/metrics", certificate=guest, headers=said))[0] == 403
        stranger = Authority(tmp_path, "strangers").issue("x", "x", ["system:masters"])
        with pytest.raises(aiohttp.ClientError):
            await face.ask("/healthz", certificate=stranger)


async def test_the_cluster_says_whom_to_trust(tmp_path: Path) -> None:
    clients = Authority(tmp_path, "clients")
    store = ObjectStore()
    store.create(
        "configmaps",
        {"metadata": {"name": "extension-apiserver-authentication"}, "data": {"client-ca-file": clients.pem}},
        "kube-system",
    )
    admin = clients.issue("admin", "admin", ["system:masters"])
    async with running(tmp_path, store=store) as face:
        assert (await face.ask("/configz", certificate=admin))[0] == 200
    async with running(tmp_path, "--authentication-skip-lookup") as face:
        assert (await face.ask("/configz", certificate=admin))[0] == 401


async def test_a_cluster_that_says_nothing_is_tolerated_or_not(tmp_path: Path) -> None:
    async with running(tmp_path, is_silent=True) as face:
        assert (await face.ask("/healthz"))[0] == 200
    with pytest.raises(NotFound):
        async with running(tmp_path, "--authentication-tolerate-lookup-failure=false", is_silent=True):
            pass
    async with running(tmp_path, "--authentication-tolerate-lookup-failure=false") as face:
        assert (await face.ask("/healthz"))[0] == 200, "the embedded server says it, as a real one does"


async def test_a_renewed_certificate_is_served_without_a_restart(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "serving-ca")
    files = authority.issue("serving", "first")
    words = (f"--tls-cert-file={files.cert_file}", f"--tls-private-key-file={files.key_file}")

    async def served(port: int) -> bytes:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        try:
            found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            return found
        finally:
            writer.close()

    async with running(tmp_path, *words) as face:
        before = await served(face.port)
        assert await served(face.port) == before
        authority.issue("serving", "second")
        assert await served(face.port) != before


async def test_a_port_that_is_taken_is_said_in_one_line(tmp_path: Path) -> None:
    async with running(tmp_path) as face:
        words = ["--bind-address=127.0.0.1", f"--secure-port={face.port}"]
        options = read_options(words)
        assert isinstance(options, Options)
        text = f"failed to create listener: failed to listen on 127.0.0.1:{face.port}: address already in use"
        with pytest.raises(ConfigError, match=text):
            async with face_for(options, face.connection, face.api, face.port):
                pass


async def test_a_shared_port_can_be_had_twice(tmp_path: Path) -> None:
    async with running(tmp_path, "--permit-port-sharing", "--permit-address-sharing") as face:
        options = read_options(["--bind-address=127.0.0.1", f"--secure-port={face.port}", "--permit-port-sharing"])
        assert isinstance(options, Options)
        async with face_for(options, face.connection, face.api, face.port):
            assert (await face.ask("/healthz"))[0] == 200


async def test_serving_can_be_off_and_http2_cannot_be_limited(tmp_path: Path) -> None:
    off, streams, without = (
        read_options([word]) for word in ("--secure-port=0", "--http2-max-streams-per-connection=9", "--disable-http2-serving")
    )
    assert isinstance(off, Options)
    assert isinstance(streams, Options)
    assert isinstance(without, Options)
    guard = await delegated_access(off.authentication, off.authorization, token_reviewer=None, access_reviewer=None)
    parts = AppConfig(CollectorRegistry(), off.gates, About(0.0, "", ""))
    assert await serve(build_app(parts), off.serving, guard) is None
    with pytest.raises(ConfigError, match="--http2-max-streams-per-connection: this scheduler serves HTTP/1"):
        await serve(build_app(parts), streams.serving, guard)


def test_log_flags_of_a_command_line_take_effect(capfd: pytest.CaptureFixture[str]) -> None:
    words = [
        "--v=3",
        "--logging-format=json",
        "--feature-gates=LoggingAlphaOptions=true",
        "--log-json-split-stream",
        "--log-json-info-buffer-size=1Ki",
        "--log-flush-frequency=1h",
    ]
    options = read_options(words)
    plain = read_options([])
    assert isinstance(options, Options)
    assert isinstance(plain, Options)
    log = logs.logger("kubesched.e2e")
    try:
        configure(options.logs)
        log.v(3).info("Shown", n=1)
        log.v(4).info("Not shown")
        log.error("Bad", err=ValueError("why"))
        assert "Shown" not in capfd.readouterr().out
        logs.flush()
        captured = capfd.readouterr()
        assert json.loads(captured.out)["msg"] == "Shown"
    finally:
        configure(plain.logs)
        logs.set_verbosity(0)
