"""Answers in gzip over real sockets: packed as kube-apiserver and proxies pack them, cut short, spoiled, huge once unpacked."""

from __future__ import annotations

import asyncio
import gzip
import logging
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from aiohttp import web
from client_fakes import FakeChance, bookmark, line, pod
from test_connection import Impatient, connected, serving
from test_reflector import PODS, Told

from kubesched.errors import SchedulerError
from kubesched.kube.client import transport
from kubesched.kube.client.connection import Connection
from kubesched.kube.client.informers import reflector as reflector_module
from kubesched.kube.client.informers.reflector import Reflector

LISTED = [line("ADDED", pod(f"p{at}", at + 1)) for at in range(1500)]
LINES = [*LISTED, bookmark(2000, ends_list=True), *(line("DELETED", pod(f"p{at}", 2001 + at)) for at in range(100))]
NEWS = [f"+p{at}:{at + 1}" for at in range(1500)] + ["synced Pod"] + [f"-p{at}:{at + 1}" for at in range(100)]

Write = Callable[[bytes], Awaitable[None]]


def a_member_each(lines: list[bytes]) -> bytes:
    """kube-apiserver 1.37: every flush ends a gzip member, and what comes later begins the next."""
    return b"".join(gzip.compress(each, 1) for each in lines)


def flushed_after_each(lines: list[bytes]) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return b"".join(packer.compress(each) + packer.flush(zlib.Z_SYNC_FLUSH) for each in lines) + packer.flush()


def never_flushed(lines: list[bytes]) -> bytes:
    return gzip.compress(b"".join(lines))


async def follow(connection: Connection, told: Told, n_news: int) -> None:
    """Follow pods until so much was heard."""
    task = asyncio.create_task(Reflector(connection, PODS, told, chance=FakeChance()).run())
    try:
        async with asyncio.timeout(20):
            while len(told.news) < n_news and not task.done():  # noqa: ASYNC110 - what we wait for has no event of its own
                await asyncio.sleep(0.005)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def streamed(request: web.Request, packed: bytes, size: int, **headers: str) -> web.StreamResponse:
    """Answer with a body in HTTP chunks of a size. The stream stays open."""
    response = web.StreamResponse(headers={key.replace("_", "-"): text for key, text in headers.items()})
    await response.prepare(request)
    for start in range(0, len(packed), size):
        await response.write(packed[start : start + size])
    await asyncio.sleep(60)
    return response


@pytest.mark.parametrize("size", [97, 4096, 1 << 20])
@pytest.mark.parametrize("pack", [a_member_each, flushed_after_each, never_flushed])
async def test_a_compressed_watch_is_followed_wherever_its_chunks_end(pack: Callable[[list[bytes]], bytes], size: int) -> None:
    packed = pack(LINES)

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.headers["Accept-Encoding"] == "gzip"
        return await streamed(request, packed, size, Content_Encoding="gzip")

    told = Told()
    async with serving(answer) as url, connected(url) as connection:
        await follow(connection, told, len(NEWS))
    assert told.news == NEWS


async def test_what_is_flushed_arrives_while_the_stream_is_silent() -> None:
    go_on = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Encoding": "gzip"})
        await response.prepare(request)
        await response.write(gzip.compress(b"".join(LINES[:1501]), 1))
        await go_on.wait()
        await response.write(gzip.compress(LINES[1501], 1))
        await asyncio.sleep(60)
        return response

    told = Told()
    async with serving(answer) as url, connected(url) as connection:
        following = asyncio.create_task(follow(connection, told, 1502))
        async with asyncio.timeout(20):
            while len(told.news) < 1501:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert told.news[-1] == "synced Pod"
        go_on.set()
        await following
    assert told.news == NEWS[:1502]


@pytest.mark.parametrize("pack", [a_member_each, flushed_after_each, never_flushed])
async def test_a_compressed_watch_that_is_cut_goes_on_from_its_last_whole_line(pack: Callable[[list[bytes]], bytes]) -> None:
    watches: list[str] = []
    first = pack(LINES)

    async def answer(request: web.Request) -> web.StreamResponse:
        watches.append(request.path_qs)
        if "sendInitialEvents" in request.path_qs:  # cut in the deletions; the bytes end in the right way, the gzip does not
            return web.Response(body=first[: len(first) - len(first) // 100], headers={"Content-Encoding": "gzip"})
        n_deleted = int(request.query["resourceVersion"]) - 2000
        assert 0 < n_deleted < 100
        return await streamed(request, pack(LINES[1501 + n_deleted :]), 4096, Content_Encoding="gzip")

    told = Told()
    async with serving(answer) as url, connected(url) as connection:
        await follow(connection, told, len(NEWS))
    assert told.news == NEWS
    assert len(watches) == 2


async def dropping_the_header(request: web.Request, body: bytes) -> web.StreamResponse:
    """As a proxy that passes compressed bytes on, and loses what says so."""
    packs = request.headers["Accept-Encoding"] == "gzip"
    return await streamed(request, a_member_each([body]) if packs else body, 4096)


async def spoiling_the_bytes(request: web.Request, body: bytes) -> web.StreamResponse:
    if request.headers["Accept-Encoding"] != "gzip":
        return await streamed(request, body, 4096)
    packed = bytearray(a_member_each([body]))
    packed[20:60] = b"\xff" * 40
    return await streamed(request, bytes(packed), 4096, Content_Encoding="gzip")


@pytest.mark.parametrize("spoil", [dropping_the_header, spoiling_the_bytes])
async def test_a_replica_behind_a_proxy_that_spoils_gzip_follows_after_one_pause(
    spoil: Callable[[web.Request, bytes], Awaitable[web.StreamResponse]], caplog: pytest.LogCaptureFixture
) -> None:
    clock, told = Impatient(), Told()

    async def answer(request: web.Request) -> web.StreamResponse:
        return await spoil(request, b"".join(LINES))

    async with serving(answer) as url, connected(url, clock=clock) as connection:
        with caplog.at_level(logging.WARNING):
            await follow(connection, told, len(NEWS))
    assert told.news == NEWS
    assert clock.slept == [0.8]
    [said] = [record.getMessage() for record in caplog.records if record.name.startswith("kubesched")]
    assert "gzip cannot be unpacked, or lacks its Content-Encoding; is there a proxy that changes answers?" in said


async def test_a_request_whose_answer_is_spoiled_gzip_is_sent_again_without_compression() -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers["Accept-Encoding"])
        return web.Response(body=gzip.compress(b'{"a":1}') if asked[-1] == "gzip" else b'{"a":1}')

    async with serving(answer) as url, connected(url, clock=Impatient()) as connection:
        assert await connection.request("GET", "/x") == b'{"a":1}'
        assert await connection.sibling("events").request("GET", "/x") == b'{"a":1}'
    assert asked == ["gzip", "identity", "identity"]


async def test_a_line_and_an_answer_that_are_huge_once_unpacked_take_little_memory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reflector_module, "LARGEST_LINE_BYTES", 4 << 20)
    monkeypatch.setattr(transport, "LARGEST_ANSWER_BYTES", 4 << 20)
    bomb = gzip.compress(bytes(256 << 20), 1)  # about one MiB
    clock, told = Impatient(), Told()
    n_watches = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal n_watches
        if "watch" not in request.query:
            return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})
        n_watches += 1
        packed = bomb if n_watches == 1 else a_member_each(LINES)
        return await streamed(request, packed, 1 << 20, Content_Encoding="gzip")

    async with serving(answer) as url, connected(url, clock=clock) as connection:
        tracemalloc.start()
        try:
            with pytest.raises(SchedulerError, match=r"GET /x: the answer of http://.* is larger than 4 MiB"):
                await connection.request("GET", "/x")
            _, peak_of_answer = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            with caplog.at_level(logging.WARNING):
                await follow(connection, told, len(NEWS))
            _, peak_of_line = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert "/api/v1/pods: a line of the watch is larger than 4 MiB" in caplog.text
    assert told.news == NEWS
    assert max(peak_of_answer, peak_of_line) < 32 << 20
