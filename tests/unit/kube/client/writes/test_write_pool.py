"""The short way for writes reads every shape of answer, however it is cut, and trusts no connection too far."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubesched.kube.client.leases.fencing import LeaseLost
from kubesched.kube.client.writes import write_pool
from kubesched.kube.client.writes.write_pool import NotConnected, WritePool

REQUEST = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"
END = None  # in a script: close the connection


class Server:
    """Answers each request with the next script: pieces of bytes to send, or `END`."""

    def __init__(self, *scripts: list[Any]) -> None:
        self.scripts = list(scripts)
        self.n_connections = 0
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.n_connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readexactly(len(REQUEST))
                for piece in self.scripts.pop(0):
                    if piece is END:
                        writer.close()
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.001)
        writer.close()


@asynccontextmanager
async def at(*scripts: list[Any]) -> AsyncIterator[tuple[Server, WritePool]]:
    server = Server(*scripts)
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    pool = WritePool("127.0.0.1", server.port, None)
    try:
        yield server, pool
    finally:
        pool.close()
        listening.close()


def ok(body: bytes, *headers: bytes) -> bytes:
    lines = b"".join(header + b"\r\n" for header in (b"Content-Length: %d" % len(body), *headers))
    return b"HTTP/1.1 201 Created\r\n" + lines + b"\r\n" + body


ANSWERS = [
    ("a length", ok(b"hello"), b"hello"),
    ("no body", ok(b""), b""),
    ("no content", b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ("chunks", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n", b"hello"),
    ("a trailer", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n", b"hello"),
    ("continue first", b"HTTP/1.1 100 Continue\r\n\r\n" + ok(b"hello"), b"hello"),
]


@pytest.mark.parametrize("cut", [1, 7, 10_000])
@pytest.mark.parametrize(("answer", "body"), [case[1:] for case in ANSWERS], ids=[case[0] for case in ANSWERS])
async def test_answers_are_read_whole_however_they_are_cut(answer: bytes, body: bytes, cut: int) -> None:
    pieces = [answer[i : i + cut] for i in range(0, len(answer), cut)]
    async with at(pieces, [ok(b"next")]) as (server, pool):
        assert (await pool.send(REQUEST, 5.0)).body == body
        assert (await pool.send(REQUEST, 5.0)).body == b"next"
    assert server.n_connections == 1


async def test_an_answer_without_length_ends_with_the_connection() -> None:
    async with at([b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo", END], [ok(b"next")]) as (server, pool):
        assert (await pool.send(REQUEST, 5.0)).body == b"hello"
        assert (await pool.send(REQUEST, 5.0)).body == b"next"
    assert server.n_connections == 2


@pytest.mark.parametrize("last", [ok(b"bye", b"Connection: close"), b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nbye"])
async def test_a_connection_that_is_to_be_closed_is_not_used_again(last: bytes) -> None:
    async with at([last], [ok(b"next")]) as (server, pool):
        assert (await pool.send(REQUEST, 5.0)).body == b"bye"
        assert (await pool.send(REQUEST, 5.0)).body == b"next"
    assert server.n_connections == 2


BROKEN = [
    ("closed without a word", [END]),
    ("closed in the head", [b"HTTP/1.1 201 Cre", END]),
    ("closed in the body", [b"HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\nhal", END]),
    ("closed between chunks", [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n", END]),
    ("not HTTP", [b"SSH-2.0-OpenSSH_9.2\r\n\r\n"]),
    ("a size that is none", [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"]),
    ("two answers to one request", [ok(b"one") + ok(b"two")]),
    ("two answers in chunks", [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + ok(b"two")]),
    ("a head that never ends", [b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20_000]),
]


@pytest.mark.parametrize("script", [case[1] for case in BROKEN], ids=[case[0] for case in BROKEN])
async def test_a_broken_answer_is_a_connection_error_and_the_next_request_gets_a_new_connection(
    script: list[Any],
) -> None:
    async with at(script, [ok(b"next")]) as (server, pool):
        with pytest.raises(ConnectionError):
            await pool.send(REQUEST, 5.0)
        assert (await pool.send(REQUEST, 5.0)).body == b"next"
    assert server.n_connections == 2


async def test_an_idle_connection_that_speaks_or_closes_is_dropped() -> None:
    async with at([ok(b"one"), b"HTTP/1.1 408 Request Timeout\r\n\r\n"], [ok(b"two"), END], [ok(b"three")]) as (
        _,
        pool,
    ):
        for body in (b"one", b"two", b"three"):
            assert (await pool.send(REQUEST, 5.0)).body == body
            for _ in range(5000):
                if not pool._wires or body == b"three":
                    break
                await asyncio.sleep(0.001)  # until what the server said or did has arrived


async def test_a_connection_that_was_idle_for_long_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_pool, "LONGEST_IDLE_SECONDS", 0.01)
    async with at([ok(b"one")], [ok(b"two")]) as (server, pool):
        await pool.send(REQUEST, 5.0)
        await asyncio.sleep(0.03)
        await pool.send(REQUEST, 5.0)
    assert server.n_connections == 2


async def test_a_late_or_unwanted_answer_is_never_taken_for_anothers() -> None:
    async with at([b"HTTP/1.1 200 OK\r\n"], [b"HTTP/1.1 200 OK\r\n"], [ok(b"mine")]) as (server, pool):
        with pytest.raises(TimeoutError):
            await pool.send(REQUEST, 0.02)
        task = asyncio.create_task(pool.send(REQUEST, 5.0))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await pool.send(REQUEST, 5.0)).body == b"mine"
    assert server.n_connections == 3


async def test_what_is_forbidden_when_there_is_a_connection_is_not_sent() -> None:
    def forbid() -> None:
        raise LeaseLost("not any more")

    async with at([ok(b"next")]) as (_, pool):
        with pytest.raises(LeaseLost):
            await pool.send(REQUEST, 5.0, forbid)
        assert (await pool.send(REQUEST, 5.0)).body == b"next"


async def test_requests_at_the_same_time_have_connections_of_their_own() -> None:
    async with at(*[[ok(b"x")]] * 20) as (server, pool):
        await asyncio.gather(*(pool.send(REQUEST, 5.0) for _ in range(10)))
        await asyncio.gather(*(pool.send(REQUEST, 5.0) for _ in range(10)))
    assert server.n_connections == 10


async def test_a_retired_pool_ends_what_is_under_way_and_keeps_nothing() -> None:
    async with at([ok(b"one")], [b"HTTP/1.1 200 OK\r\n", b"Content-Length: 3\r\n\r\ntwo"]) as (_, pool):
        await pool.send(REQUEST, 5.0)
        task = asyncio.create_task(pool.send(REQUEST, 5.0))
        await asyncio.sleep(0)
        pool.retire()
        assert (await task).body == b"two"
        await asyncio.sleep(0.01)
        assert not pool._wires


async def test_headers_of_the_answer_can_be_asked_for() -> None:
    async with at([ok(b"", b"retry-after:  7 ", b"X: y")]) as (_, pool):
        reply = await pool.send(REQUEST, 5.0)
    assert (reply.status, reply.header("Retry-After"), reply.header("x"), reply.header("z")) == (201, "7", "y", None)


async def test_no_connection_says_why() -> None:
    with pytest.raises(NotConnected) as caught:
        await WritePool("127.0.0.1", 1, None).send(REQUEST, 5.0)
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)
