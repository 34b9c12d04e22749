"""The listener: idle strangers make way, half a head is cut off, and the log stays small."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from kubesched.embedded.http.certificates import serving_certificate
from kubesched.http import connections, listener
from kubesched.http.listener import Listener
from kubesched.telemetry.throttle import Throttle

ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextlib.asynccontextmanager
async def serving(
    most: int = 4, header_seconds: float = 30.0, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[int]:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/watch":
            stream = web.StreamResponse()
            await stream.prepare(request)
            await asyncio.sleep(60)
        return web.Response(text=f"read {len(await request.read())}")

    runner = web.ServerRunner(web.Server(answer, handler_cancellation=True), shutdown_timeout=0.1)
    await runner.setup()
    site = Listener(runner, host, 0, most=most, share=1.0, tls=tls, header_seconds=header_seconds, access_log=None)
    await site.start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


class Peer:
    """One connection of a stranger."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def __aenter__(self) -> Peer:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def ask(self, path: str = "/") -> str:
        self.writer.write(ASK.replace(b" / ", f" {path} ".encode()))
        async with asyncio.timeout(5):
            return (await self.reader.readline()).decode().strip()

    async def is_closed(self) -> bool:
        try:
            async with asyncio.timeout(5):
                return await self.reader.read(1 << 16) == b""
        except ConnectionError:
            return True


async def test_idle_connections_make_way_for_new_ones() -> None:
    async with serving(most=3) as port, contextlib.AsyncExitStack() as ends:
        idle = [await ends.enter_async_context(Peer(port)) for _ in range(30)]
        newcomer = await ends.enter_async_context(Peer(port))
        assert await newcomer.ask() == "HTTP/1.1 200 OK"
        assert await idle[0].is_closed(), "the one that was idle longest"
        assert await idle[-1].ask() == "HTTP/1.1 200 OK", "the youngest stays"


async def test_who_is_being_answered_stays_and_newcomers_are_sent_away(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(most=2) as port, contextlib.AsyncExitStack() as ends:
        watches = [await ends.enter_async_context(Peer(port)) for _ in range(2)]
        for watch in watches:
            assert await watch.ask("/watch") == "HTTP/1.1 200 OK"
        with caplog.at_level(logging.WARNING):
            for _ in range(20):
                newcomer = await ends.enter_async_context(Peer(port))
                assert await newcomer.is_closed()
        assert [record.getMessage() for record in caplog.records].count("Too many connections, all of them busy") == 1
        watches[0].writer.close()
        await asyncio.sleep(0.05)
        again = await ends.enter_async_context(Peer(port))
        assert await again.ask() == "HTTP/1.1 200 OK"


HEADS = [
    ("nothing at all", b"", b""),
    ("half a head", b"GET / HTTP/1.1\r\nHost: loc", b""),
    ("half a head after a whole request", ASK, b"GET / HTTP/1.1\r\n"),
]


@pytest.mark.parametrize(("case", "first", "then"), HEADS, ids=[case[0] for case in HEADS])
async def test_headers_have_a_time_limit(case: str, first: bytes, then: bytes) -> None:
    async with serving(header_seconds=0.1) as port, Peer(port) as peer:
        peer.writer.write(first)
        if then:
            assert b"200 OK" in await peer.reader.readuntil(b"read 0")
            await asyncio.sleep(0.2)  # an idle connection that has asked once may stay
            peer.writer.write(then)
        assert await peer.is_closed()


async def test_a_byte_now_and_then_does_not_stretch_the_limit() -> None:
    async with serving(header_seconds=0.2) as port, Peer(port) as peer:
        began = asyncio.get_running_loop().time()
        with contextlib.suppress(ConnectionError):
            for byte in ASK[:-2] * 10:
                peer.writer.write(bytes([byte]))
                await peer.writer.drain()
                await asyncio.sleep(0.02)
                if peer.reader.at_eof():
                    break
        assert await peer.is_closed()
        assert asyncio.get_running_loop().time() - began < 2.0


async def test_a_slow_body_is_not_a_slow_head() -> None:
    async with serving(header_seconds=0.1) as port, Peer(port) as peer:
        peer.writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\na")
        await asyncio.sleep(0.3)
        peer.writer.write(b"b")
        assert b"read 2" in await peer.reader.readuntil(b"read 2")


async def test_a_tls_handshake_that_never_comes_makes_way(tmp_path: Path) -> None:
    context = serving_certificate(tmp_path, ["127.0.0.1"]).context()
    async with serving(most=3, tls=context) as port, contextlib.AsyncExitStack() as ends:
        silent = [await ends.enter_async_context(Peer(port)) for _ in range(10)]
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        writer.write(ASK)
        assert b"200 OK" in await reader.readline()
        writer.close()
        assert await silent[0].is_closed()


async def test_a_malformed_head_is_refused_without_repeating_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with serving() as port:
            for _ in range(5):
                async with Peer(port) as peer:
                    peer.writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\x00token\r\n\r\n")
                    async with asyncio.timeout(5):
                        said = await peer.reader.read()
                    assert b" 400 Bad Request" in said
                    assert b"secret" not in said
    assert "secret" not in caplog.text
    assert "Traceback" not in caplog.text
    assert [record.getMessage() for record in caplog.records].count("A malformed HTTP request was refused") == 1


async def test_no_files_left_is_said_once_a_minute(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    n_tried = 0
    accept = loop.sock_accept

    async def fail(sock: object) -> object:
        nonlocal n_tried
        n_tried += 1
        if n_tried <= 5:
            raise OSError(errno.EMFILE, "Too many open files")
        return await accept(sock)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "sock_accept", fail)
    monkeypatch.setattr(listener, "PAUSE_SECONDS", 0.001)
    with caplog.at_level(logging.DEBUG):
        async with serving() as port, Peer(port) as peer:
            assert await peer.ask() == "HTTP/1.1 200 OK", "it goes on when there are files again"
    assert n_tried >= 6
    assert [record.getMessage() for record in caplog.records].count("Cannot accept connections") == 1


@pytest.fixture(autouse=True)
def _first_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, names in ((listener, ("_full", "_failed")), (connections, ("_malformed", "_broken"))):
        for name in names:
            monkeypatch.setattr(module, name, Throttle())


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
@pytest.mark.parametrize("peer", ["127.0.0.1", "::1"])
async def test_all_interfaces_are_those_of_both_families(host: str, peer: str) -> None:
    async with serving(host=host) as port:
        reader, writer = await asyncio.open_connection(peer, port)
        writer.write(ASK)
        async with asyncio.timeout(5):
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        writer.close()


async def test_without_ipv6_all_interfaces_are_those_of_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    async with serving(host="0.0.0.0") as port, Peer(port) as peer:
        assert await peer.ask() == "HTTP/1.1 200 OK"


async def test_where_ipv6_is_switched_off_all_interfaces_are_those_of_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> socket.socket:
        raise OSError(errno.EADDRNOTAVAIL, "cannot assign requested address")

    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: True)
    monkeypatch.setattr(socket, "create_server", refuse)
    async with serving(host="0.0.0.0") as port, Peer(port) as peer:
        assert await peer.ask() == "HTTP/1.1 200 OK"
