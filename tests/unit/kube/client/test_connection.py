"""The connection over real sockets on loopback: what is tried again, what is not, and how failures read."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import logging
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubesched.errors import (
    AnswerLost,
    ConfigError,
    Conflict,
    Gone,
    NotFound,
    SchedulerError,
    ServerFault,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from kubesched.kube.client.connection import Connection, Observers, connect
from kubesched.kube.client.credentials import AddressSource, Credentials
from kubesched.kube.client.timing import SystemClientClock
from kubesched.testing.fakes import FakeClock

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Impatient(SystemClientClock):
    """Real time, except that sleeping takes none and is written down."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


class Given:
    """A source of credentials that gives what it was given, one after the other."""

    def __init__(self, *credentials: Credentials) -> None:
        self.left = list(credentials)
        self.refusals: list[bool] = []

    async def load(self) -> Credentials:
        return self.left[0]

    async def renew(self, *, refused: bool) -> Credentials:
        self.refusals.append(refused)
        if len(self.left) > 1:
            self.left.pop(0)
        return self.left[0]


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls, reuse_address=True)
    await site.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(url: str, **options: Any) -> AsyncIterator[Connection]:
    connection = await connect(options.pop("source", AddressSource(url)), **options)
    try:
        yield connection
    finally:
        await connection.close()


def refused(code: int, reason: str, **headers: str) -> web.Response:
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": f"{reason} indeed"}
    return web.json_response(body, status=code, headers={key.replace("_", "-"): text for key, text in headers.items()})


async def test_requests_carry_our_name_and_ask_for_gzip() -> None:
    seen: list[web.Request] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(request)
        response = web.json_response({"path": request.path_qs, "body": (await request.read()).decode()})
        response.enable_compression()
        return response

    async with serving(answer) as url, connected(url, name="leader-election") as connection:
        body = await connection.request("PATCH", "/a%2Fb?x=%21", b"{}", "application/merge-patch+json")
        assert json.loads(body) == {"path": "/a%2Fb?x=%21", "body": "{}"}
        body = await connection.request("GET", "/a%2Fb?x=%21")
        assert json.loads(body) == {"path": "/a%2Fb?x=%21", "body": ""}
    for request in seen:
        agent = request.headers["User-Agent"]
        assert agent.startswith("kubesched/") and agent.endswith("/leader-election")
        assert request.headers["Host"] == url.removeprefix("http://")
    assert seen[0].headers["Content-Type"] == "application/merge-patch+json"
    assert "Accept-Encoding" not in seen[0].headers
    assert seen[1].headers["Accept-Encoding"] == "gzip"


async def test_connections_are_kept_between_requests() -> None:
    peers = set()

    async def answer(request: web.Request) -> web.StreamResponse:
        peers.add(request.transport.get_extra_info("peername"))  # type: ignore[union-attr]
        return web.Response(body=b"{}")

    async with serving(answer) as url, connected(url) as connection:
        sibling = connection.sibling("events")
        for _ in range(5):
            await connection.request("POST", "/x", b"{}")
            await sibling.request("GET", "/x")
    assert len(peers) == 2  # one for reading, one for writing


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("code", [429, 503])
async def test_retry_after_is_obeyed_ten_times_for_every_verb(method: str, code: int) -> None:
    n_asked = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal n_asked
        n_asked += 1
        return refused(code, "TooManyRequests" if code == 429 else "ServiceUnavailable", Retry_After="2")

    clock = Impatient()
    async with serving(answer) as url, connected(url, clock=clock) as connection:
        with pytest.raises((TooManyRequests, ServerFault), match="indeed"):
            await connection.request(method, "/x", b"{}" if method == "POST" else None)
    assert n_asked == 11
    assert clock.slept == [2.0] * 10


@pytest.mark.parametrize(("code", "reason"), [(500, "InternalError"), (429, "TooManyRequests"), (409, "Conflict")])
async def test_without_retry_after_the_refusal_is_the_callers(code: int, reason: str) -> None:
    n_asked = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal n_asked
        n_asked += 1
        return refused(code, reason)

    async with serving(answer) as url, connected(url) as connection:
        with pytest.raises((ServerFault, TooManyRequests, Conflict), match=f"{reason} indeed"):
            await connection.request("GET", "/x")
    assert n_asked == 1


@pytest.mark.parametrize(("method", "asked"), [("GET", 3), ("POST", 1), ("PATCH", 1)])
async def test_a_broken_connection_is_tried_again_for_reading_only(method: str, asked: int) -> None:
    n_asked = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal n_asked
        n_asked += 1
        if n_asked < 3:
            request.transport.abort()  # type: ignore[union-attr]
        return web.Response(body=b"done")

    clock = Impatient()
    async with serving(answer) as url, connected(url, clock=clock) as connection:
        if method == "GET":
            assert await connection.request(method, "/x") == b"done"
            assert clock.slept == [1.0, 1.0]
        else:
            with pytest.raises(AnswerLost, match=f"{method} /x: the connection to {url} broke before the answer"):
                await connection.request(method, "/x", b"{}")
    assert n_asked == asked


async def test_an_answer_cut_short_is_a_lost_answer() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"half")
        request.transport.close()  # type: ignore[union-attr]
        return response

    async with serving(answer) as url, connected(url) as connection:
        with pytest.raises(AnswerLost):
            await connection.request("POST", "/x", b"{}")


async def test_no_answer_in_time_is_a_lost_answer() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(5)
        return web.Response()

    async with serving(answer) as url, connected(url) as connection:
        hasty = connection.sibling("hasty", timeout=0.05)
        with pytest.raises(AnswerLost, match="GET /x: no answer in time"):
            await hasty.request("GET", "/x")


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_server_that_hangs_up_on_a_tls_greeting_is_asked_whether_it_speaks_https(method: str) -> None:
    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        linger = struct.pack("ii", 1, 0)  # closing resets the connection
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, connected(f"https://127.0.0.1:{port}") as connection:
        with pytest.raises(Unreachable, match="closed at once; is it an HTTPS server"):
            await connection.request(method, "/x", None if method == "GET" else b"{}")


async def test_a_server_that_is_not_there_is_named_with_where_the_address_comes_from() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with connected(f"http://127.0.0.1:{port}") as connection:
        with pytest.raises(Unreachable, match=rf"127.0.0.1:{port}: connection refused; .* comes from --master") as caught:
            await connection.request("POST", "/x", b"{}")
    assert not isinstance(caught.value, AnswerLost)
    async with connected("http://no-such-host.invalid") as connection:
        with pytest.raises(Unreachable, match=r"the name cannot be resolved .* check the address in --master"):
            await connection.request("GET", "/x")


async def test_keepalive_survives_a_restart_of_the_server() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"here")

    stack = AsyncExitStack()
    url = await stack.enter_async_context(serving(answer))
    async with connected(url) as connection:
        assert await connection.request("GET", "/x") == b"here"
        await stack.pop_all().aclose()
        with pytest.raises(Unreachable):
            await connection.request("POST", "/x", b"{}")
        async with serving(answer, port=int(url.rpartition(":")[2])):
            assert await connection.request("POST", "/x", b"{}") == b"here"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_client_that_is_closed_says_so_and_is_not_asked_again(method: str) -> None:
    connection = await connect(AddressSource("http://127.0.0.1:1"))
    await connection.close()
    with pytest.raises(SchedulerError, match="the client is closed") as caught:
        await connection.request(method, "/api/v1/pods")
    assert not isinstance(caught.value, Unreachable)


async def test_a_server_behind_a_path_is_asked_under_it() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(text=request.path)

    async with serving(answer) as url, connected(f"{url}/k8s/clusters/c1") as connection:
        assert await connection.request("GET", "/version") == b"/k8s/clusters/c1/version"
        assert await connection.request("POST", "/x", b"{}") == b"/k8s/clusters/c1/x"


async def test_a_token_with_a_line_break_cannot_smuggle_a_header() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        raise AssertionError("this must not arrive")

    async with serving(answer) as url:
        source = Given(Credentials(url, "kubeconfig k", "Bearer a\r\nX-Evil: 1"))
        async with connected(url, source=source) as connection:
            with pytest.raises(Unreachable, match="a credential from kubeconfig k has a line break in it"):
                await connection.request("POST", "/x", b"{}")


async def test_a_refused_token_is_renewed_once() -> None:
    tokens: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        tokens.append(request.headers["Authorization"])
        return web.Response(body=b"in") if tokens[-1] == "Bearer new" else refused(401, "Unauthorized")

    async with serving(answer) as url:
        old, new = (Credentials(url, "test", f"Bearer {token}") for token in ("old", "new"))
        source = Given(old, new)
        async with connected(url, source=source) as connection:
            assert await connection.request("POST", "/x", b"{}") == b"in"
        assert source.refusals == [True]
        tokens.clear()
        async with connected(url, source=Given(old)) as connection:
            with pytest.raises(Unauthorized):
                await connection.request("GET", "/x")
        assert tokens == ["Bearer old"]


async def test_credentials_that_cannot_be_renewed_leave_the_old_ones(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return refused(401, "Unauthorized")

    class Broken(Given):
        async def renew(self, *, refused: bool) -> Credentials:
            raise ConfigError("kubeconfig k", "there is no such file")

    async with (
        serving(answer) as url,
        connected(url, source=Broken(Credentials(url, "test", "Bearer a"))) as connection,
    ):
        with pytest.raises(Unauthorized):
            await connection.request("GET", "/x")
    assert "credentials could not be renewed, going on with the old ones: kubeconfig k: there is no such file" in caplog.text


async def test_a_client_that_is_stuck_does_not_hold_up_its_siblings() -> None:
    release = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/stuck":
            await release.wait()
        return web.Response(body=b"here")

    async with serving(answer) as url, connected(url, qps=-1) as connection:
        stuck = [asyncio.create_task(connection.request("GET", "/stuck")) for _ in range(300)]
        lease = connection.sibling("leader-election", timeout=5.0)
        assert await lease.request("GET", "/lease") == b"here"
        release.set()
        assert len(await asyncio.gather(*stuck)) == 300


async def test_credentials_are_looked_at_again_every_minute() -> None:
    tokens: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        tokens.append(request.headers["Authorization"])
        return web.Response()

    clock = FakeClock()
    async with serving(answer) as url:
        source = Given(Credentials(url, "test", "Bearer 1"), Credentials(url, "test", "Bearer 2"))
        async with connected(url, source=source, clock=clock) as connection:
            await connection.request("GET", "/x")
            clock.time += 59
            await connection.request("GET", "/x")
            clock.time += 2
            await connection.request("GET", "/x")
    assert tokens == ["Bearer 1", "Bearer 1", "Bearer 2"]


async def test_the_limiter_holds_requests_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response()

    caplog.set_level(logging.WARNING)
    clock = FakeClock()
    async with serving(answer) as url, connected(url, clock=clock, qps=1, burst=2) as connection:
        requests = asyncio.gather(*(connection.request("GET", "/x") for _ in range(4)))
        for _ in range(20):
            await asyncio.sleep(0.01)
            await clock.advance(0.25)
        await requests
    assert sorted(round(pause) for pause in clock.slept) == [1, 2]
    assert "client-side throttling holds throughput" in caplog.text


async def test_every_answer_is_observed() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/busy" and len(seen) < 8:
            return refused(429, "TooManyRequests", Retry_After="1")
        return refused(404, "NotFound") if request.path == "/none" else web.Response()

    seen: list[tuple[str, str]] = []

    observers = Observers(
        answer=lambda verb, code, seconds: seen.append((verb, code)),
        wait=lambda verb, seconds: seen.append((verb, f"waited {seconds:g}")),
        retry=lambda verb, code: seen.append((verb, f"again after {code}")),
    )
    async with serving(answer) as url, connected(url, observers=observers, clock=Impatient()) as connection:
        await connection.request("GET", "/x")
        with pytest.raises(NotFound):
            await connection.request("DELETE", "/none")
        await connection.request("PUT", "/busy", b"{}")
    assert seen == [
        ("GET", "waited 0"),
        ("GET", "200"),
        ("DELETE", "waited 0"),
        ("DELETE", "404"),
        ("PUT", "waited 0"),
        ("PUT", "429"),
        ("PUT", "again after 429"),
        ("PUT", "waited 0"),
        ("PUT", "200"),
    ]


async def test_a_stream_gives_what_has_arrived_and_maps_its_end() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/gone":
            return refused(410, "Expired")
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one\n")
        if request.path == "/cut":
            await asyncio.sleep(0.02)
            request.transport.abort()  # type: ignore[union-attr]
        return response

    async with serving(answer) as url, connected(url) as connection:
        async with connection.stream("/whole", 5.0) as stream:
            assert await stream.read() == b"one\n"
            assert await stream.read() == b""
        async with connection.stream("/cut", 5.0) as stream:
            assert await stream.read() == b"one\n"
            with pytest.raises(AnswerLost):
                await stream.read()
        with pytest.raises(Gone, match="Expired indeed"):
            async with connection.stream("/gone", 5.0):
                pass


# --- TLS --------------------------------------------------------------------------------------------------------------


def certificate(folder: Path, name: str, host: str = "127.0.0.1", issuer: Any = None, server: bool = True) -> Any:
    """Write NAME.crt and NAME.key, signed by `issuer` or by itself; return what signs others."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer_name, signer_key = issuer or (subject, key)
    now = datetime.datetime.now(datetime.UTC)
    try:
        alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        alternative = x509.DNSName(host)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .sign(signer_key, hashes.SHA256())
    )
    (folder / f"{name}.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return subject, key


def server_tls(folder: Path, name: str, client_ca: str = "") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(folder / f"{client_ca}.crt")
    return context


async def hello(request: web.Request) -> web.StreamResponse:
    peer = request.transport.get_extra_info("peercert") or {}  # type: ignore[union-attr]
    names = dict(part[0] for part in peer.get("subject", ()))
    return web.Response(text=names.get("commonName", "nobody"))


async def test_tls_trusts_its_authority_and_nobody_else(tmp_path: Path) -> None:
    ca = certificate(tmp_path, "ca")
    certificate(tmp_path, "other-ca")
    certificate(tmp_path, "server", issuer=ca)
    certificate(tmp_path, "elsewhere", host="api.local", issuer=ca)
    ca_file, other = str(tmp_path / "ca.crt"), str(tmp_path / "other-ca.crt")
    async with serving(hello, server_tls(tmp_path, "server")) as url:
        async with connected(url, source=Given(Credentials(url, "test", ca_file=ca_file))) as connection:
            assert await connection.request("GET", "/x") == b"nobody"
        async with connected(url, source=Given(Credentials(url, "test", ca_file=other, verify=False))) as connection:
            assert await connection.request("GET", "/x") == b"nobody"
        async with connected(url, source=Given(Credentials(url, "kubeconfig k", ca_file=other))) as connection:
            with pytest.raises(Unreachable, match=r"certificate is not trusted .* certificate-authority .* kubeconfig k"):
                await connection.request("GET", "/x")
        plain = url.replace("https", "http")
        async with connected(plain) as connection:
            with pytest.raises(Unreachable):
                await connection.request("POST", "/x", b"{}")
    async with serving(hello, server_tls(tmp_path, "elsewhere")) as url:
        named = Credentials(url, "test", ca_file=ca_file, tls_server_name="api.local")
        async with connected(url, source=Given(named)) as connection:
            assert await connection.request("GET", "/x") == b"nobody"


async def test_a_rotated_client_certificate_is_used_for_new_connections(tmp_path: Path) -> None:
    ca = certificate(tmp_path, "ca")
    certificate(tmp_path, "server", issuer=ca)
    certificate(tmp_path, "first", issuer=ca)
    certificate(tmp_path, "second", issuer=ca)
    for part in ("crt", "key"):
        (tmp_path / f"client.{part}").write_bytes((tmp_path / f"first.{part}").read_bytes())
    clock = FakeClock()
    async with serving(hello, server_tls(tmp_path, "server", client_ca="ca")) as url:
        files = {"cert_file": str(tmp_path / "client.crt"), "key_file": str(tmp_path / "client.key")}
        source = Given(Credentials(url, "test", ca_file=str(tmp_path / "ca.crt"), **files))
        async with connected(url, source=source, clock=clock) as connection:
            assert await connection.request("GET", "/x") == b"first"
            for part in ("crt", "key"):
                (tmp_path / f"client.{part}").write_bytes((tmp_path / f"second.{part}").read_bytes())
            assert await connection.request("GET", "/x") == b"first"
            (tmp_path / "client.key").write_bytes((tmp_path / "first.key").read_bytes())  # half of it is there
            clock.time += 61
            assert await connection.request("GET", "/x") == b"first"
            (tmp_path / "client.key").write_bytes((tmp_path / "second.key").read_bytes())
            clock.time += 61
            assert await connection.request("GET", "/x") == b"second"


async def test_certificates_that_are_none_are_named(tmp_path: Path) -> None:
    bad = tmp_path / "bad.crt"
    bad.write_text("not a certificate")
    with pytest.raises(ConfigError, match=r"kubeconfig k: certificates cannot be used .*bad.crt"):
        await connect(Given(Credentials("https://127.0.0.1:1", "kubeconfig k", ca_file=str(bad))))


async def test_a_proxy_is_used_and_named_when_it_is_away() -> None:
    asked: list[str] = []

    async def proxy(request: web.Request) -> web.StreamResponse:
        asked.append(str(request.url))
        return web.Response(body=b"through")

    async with serving(proxy) as url:
        source = Given(Credentials("http://api.example:80", "kubeconfig k", proxy=url))
        async with connected(url, source=source) as connection:
            assert await connection.request("GET", "/x") == b"through"
    assert asked == ["http://api.example/x"]
    source = Given(Credentials("http://api.example:80", "kubeconfig k", proxy="http://127.0.0.1:9"))
    async with connected("", source=source) as connection:
        with pytest.raises(Unreachable, match=r"the proxy http://127.0.0.1:9 cannot be reached .* proxy-url in kubeconfig k"):
            await connection.request("GET", "/x")


async def test_the_password_of_a_proxy_is_not_told() -> None:
    source = Given(Credentials("http://api.example:80", "kubeconfig k", proxy="http://me:secret@127.0.0.1:9"))
    async with connected("", source=source) as connection:
        with pytest.raises(Unreachable, match=r"the proxy http://127.0.0.1:9 cannot be reached"):
            await connection.request("GET", "/x")


async def test_reads_and_writes_follow_the_server_of_a_replaced_kubeconfig() -> None:
    asked: list[str] = []

    async def first(request: web.Request) -> web.StreamResponse:
        asked.append("first")
        return web.Response()

    async def second(request: web.Request) -> web.StreamResponse:
        asked.append("second")
        return web.Response()

    clock = FakeClock()
    async with serving(first) as url, serving(second) as other:
        source = Given(Credentials(url, "test"), Credentials(other, "test"))
        async with connected(url, source=source, clock=clock) as connection:
            for _ in range(2):
                await connection.request("GET", "/x")
                await connection.request("POST", "/x", b"{}")
                clock.time += 61
    assert asked == ["first", "first", "second", "second"]
