"""Profiles: measured on threads and loops made for the purpose, rendered in every form."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
import tracemalloc
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from web_fakes import client_for, new_parts

from kubesched.server.web import build_app
from kubesched.server.web.profiling import memory, rendering, sampling, stacks
from kubesched.server.web.profiling.stacks import Frame, Profile

OUTER, LEFT, RIGHT = Frame("m.outer", "m.py", 1), Frame("m.left", "m.py", 2), Frame("m.right<x>", "m.py", 3)


@pytest.fixture
def profile() -> Profile:
    made = Profile((("samples", "count"), ("cpu", "nanoseconds")), period=10_000_000, seconds=2.0, started=1000.0)
    made.add((OUTER, LEFT), 1, 3_000_000)
    made.add((OUTER, RIGHT), 2, 1_000_000)
    made.add((OUTER, LEFT), 1, 3_000_000)
    return made


def burn(stop: threading.Event) -> None:
    while not stop.is_set():
        sum(range(500))


@contextmanager
def running(target: object) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=target, args=(stop,), name="burner")  # type: ignore[arg-type]
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


# --- measuring --------------------------------------------------------------------------------------------------------


def test_processor_time_goes_to_who_uses_it() -> None:
    def rest(stop: threading.Event) -> None:
        stop.wait()

    with running(burn), running(rest):
        profile = sampling.sample_cpu(0.4, threading.Event())
    by_leaf: dict[str, int] = {}
    for stack, (_, nanoseconds) in profile.stacks.items():
        for name in {frame.function.rpartition(".")[2] for frame in stack}:
            by_leaf[name] = by_leaf.get(name, 0) + nanoseconds
    assert by_leaf["burn"] > 0.5 * profile.total
    assert by_leaf.get("rest", 0) < 0.05 * profile.total
    assert profile.total <= 0.4 * 2 * 1e9


def test_measuring_stops_when_nobody_wants_it_any_more() -> None:
    stop = threading.Event()
    stop.set()
    began = time.monotonic()
    sampling.sample_cpu(60.0, stop)
    sampling.sample_timeline(60.0, threading.get_ident(), stop)
    memory.profile_heap(60.0, stop)
    assert time.monotonic() - began < 10.0


async def test_what_holds_the_loop_up_is_named() -> None:
    loop, ident, stop = asyncio.get_running_loop(), threading.get_ident(), threading.Event()
    measuring = asyncio.ensure_future(asyncio.to_thread(sampling.sample_stalls, 0.5, loop, ident, stop))
    await asyncio.sleep(0.05)

    def hog() -> None:
        time.sleep(0.2)

    hog()
    profile = await measuring
    names = {frame.function for stack in profile.stacks for frame in stack}
    assert any(name.endswith("hog") for name in names)
    assert 0.05e9 < profile.total < 0.45e9


async def test_a_loop_that_answers_is_not_held_up() -> None:
    loop, ident = asyncio.get_running_loop(), threading.get_ident()
    profile = await asyncio.to_thread(sampling.sample_stalls, 0.2, loop, ident, threading.Event())
    assert profile.total < 0.15e9


def test_memory_held_is_shown_by_who_allocated_it() -> None:
    kept: list[bytes] = []

    def hoard(stop: threading.Event) -> None:
        while not tracemalloc.is_tracing() and not stop.wait(0.001):
            pass
        for _ in range(100):
            kept.append(bytes(10_000))
        stop.wait()

    with running(hoard):
        profile = memory.profile_heap(0.5, threading.Event())
    assert not tracemalloc.is_tracing()
    largest = max(profile.stacks.items(), key=lambda item: item[1][1])
    assert largest[1][1] > 900_000
    assert any("test_profiling.py" in frame.file for frame in largest[0])


def test_memory_is_traced_from_the_beginning_if_the_process_is() -> None:
    tracemalloc.start(8)
    try:
        kept = [bytes(10_000) for _ in range(100)]
        profile = memory.profile_heap(60.0, threading.Event())
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
    assert len(kept) == 100
    assert max(weights[1] for weights in profile.stacks.values()) > 900_000
    assert profile.seconds < 30.0


async def test_tasks_and_threads_are_named_with_what_they_wait_for() -> None:
    never = asyncio.Event()

    async def inner() -> None:
        await never.wait()

    async def outer() -> None:
        await inner()

    task = asyncio.create_task(outer(), name="the-one-who-waits")
    await asyncio.sleep(0)
    text = stacks.dump_tasks()
    task.cancel()
    block = text.split("task the-one-who-waits [waiting]:\n")[1].split("\n\n")[0]
    names = [line.strip().split(" ")[0].rpartition(".")[2] for line in block.splitlines()]
    assert names == ["wait", "inner", "outer"]
    assert "thread MainThread" in text
    assert stacks.profile_tasks().total >= 2


# --- rendering --------------------------------------------------------------------------------------------------------


def test_folded_stacks(profile: Profile) -> None:
    assert rendering.collapsed(profile) == "m.outer;m.left 6000000\nm.outer;m.right<x> 1000000\n"


def test_the_table_has_own_shares_and_all_shares(profile: Profile) -> None:
    rows = [line.split() for line in rendering.table(profile).splitlines()[3:]]
    assert rows == [
        ["6.0ms", "85.7%", "6.0ms", "85.7%", "m.left"],
        ["1.0ms", "14.3%", "1.0ms", "14.3%", "m.right<x>"],
        ["0.0ms", "0.0%", "7.0ms", "100.0%", "m.outer"],
    ]


def test_the_flame_graph_is_a_picture_whose_widths_are_shares(profile: Profile) -> None:
    picture = ElementTree.fromstring(rendering.flame_graph(profile, "CPU <time>"))
    space = "{http://www.w3.org/2000/svg}"
    widths = {}
    for group in picture.iter(f"{space}g"):
        title, box = group.find(f"{space}title"), group.find(f"{space}rect")
        assert title is not None
        assert box is not None
        widths[(title.text or "").split(":")[0]] = float(box.get("width", "0"))
    assert widths["all"] == pytest.approx(1200, abs=1)
    assert widths["m.left"] == pytest.approx(1200 * 6 / 7, abs=1)
    assert widths["m.right<x>"] == pytest.approx(1200 / 7, abs=1)


def test_an_empty_profile_can_be_shown() -> None:
    empty = Profile((("cpu", "nanoseconds"),))
    assert "nothing was seen" in rendering.flame_graph(empty, "CPU")
    assert rendering.collapsed(empty) == ""
    assert "total: 0.0ms" in rendering.table(empty)
    gzip.decompress(rendering.pprof(empty))


def read_message(data: bytes) -> list[tuple[int, int | bytes]]:
    """Return the fields of a protocol buffer."""
    fields: list[tuple[int, int | bytes]] = []
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            fields.append((tag >> 3, varint()))
        else:
            size = varint()
            fields.append((tag >> 3, data[at : at + size]))
            at += size
    return fields


def test_the_pprof_file_holds_names_lines_and_weights(profile: Profile) -> None:
    fields = read_message(gzip.decompress(rendering.pprof(profile)))
    strings = [value.decode() for number, value in fields if number == 6 and isinstance(value, bytes)]
    assert strings[0] == ""
    units = [dict(read_message(value)) for number, value in fields if number == 1 and isinstance(value, bytes)]
    named = [(strings[int(unit[1])], strings[int(unit[2])]) for unit in units]
    assert named == [("samples", "count"), ("cpu", "nanoseconds")]
    functions = {}
    for number, value in fields:
        if number == 5 and isinstance(value, bytes):
            function = dict(read_message(value))
            functions[function[1]] = strings[int(function[2])]
    locations = {}
    for number, value in fields:
        if number == 4 and isinstance(value, bytes):
            location = dict(read_message(value))
            assert isinstance(location[4], bytes)
            line = dict(read_message(location[4]))
            locations[location[1]] = (functions[line[1]], line[2])
    samples = []
    for number, value in fields:
        if number == 2 and isinstance(value, bytes):
            sample = dict(read_message(value))
            assert isinstance(sample[1], bytes)
            samples.append([locations[each] for each in sample[1]])
    assert samples == [[("m.left", 2), ("m.outer", 1)], [("m.right<x>", 3), ("m.outer", 1)]]
    assert (10, 2_000_000_000) in fields
    assert (12, 10_000_000) in fields


def test_a_timeline_opens_and_closes_every_call() -> None:
    seen = [(0.0, (OUTER, LEFT)), (0.5, (OUTER, RIGHT)), (1.0, ())]
    events = json.loads(rendering.trace_events(seen))["traceEvents"]
    assert [(event["ph"], event["name"], event["ts"]) for event in events] == [
        ("B", "m.outer", 0),
        ("B", "m.left", 0),
        ("E", "m.left", 500_000),
        ("B", "m.right<x>", 500_000),
        ("E", "m.right<x>", 1_000_000),
        ("E", "m.outer", 1_000_000),
    ]


# --- pages ------------------------------------------------------------------------------------------------------------

PAGES = [
    ("/debug/pprof/profile?seconds=0.05", {}, "application/octet-stream"),
    ("/debug/pprof/profile?seconds=0.05", {"Accept": "text/html"}, "image/svg+xml"),
    ("/debug/pprof/profile?seconds=0.05&debug=1", {}, "text/plain"),
    ("/debug/pprof/profile?seconds=0.05&format=collapsed", {}, "text/plain"),
    ("/debug/pprof/heap?seconds=0.05&format=text", {}, "text/plain"),
    ("/debug/pprof/block?seconds=0.05&format=svg", {}, "image/svg+xml"),
    ("/debug/pprof/goroutine", {}, "application/octet-stream"),
    ("/debug/pprof/goroutine?debug=2", {}, "text/plain"),
    ("/debug/pprof/trace?seconds=0.05", {}, "application/json"),
    ("/debug/pprof/cmdline", {}, "text/plain"),
    ("/debug/pprof/symbol", {}, "text/plain"),
    ("/debug/pprof/", {}, "text/html"),
]


@pytest.mark.parametrize(("path", "headers", "kind"), PAGES, ids=[f"{p[0]} {p[1]}" for p in PAGES])
async def test_pages(path: str, headers: dict[str, str], kind: str) -> None:
    async with client_for(build_app(new_parts())) as client:
        answer = await client.get(path, headers=headers)
        assert (answer.status, answer.content_type) == (200, kind)
        assert await answer.read() or "collapsed" in path  # a line a stack: on busy cores we may not have had our turn in 50 ms


async def test_the_index_leads_everywhere() -> None:
    async with client_for(build_app(new_parts())) as client:
        bare = await client.get("/debug/pprof", allow_redirects=False)
        assert (bare.status, bare.headers["Location"]) == (302, "/debug/pprof/")
        text = await (await client.get("/debug/pprof/")).text()
        for name in ("profile", "heap", "goroutine", "block", "trace", "cmdline", "symbol"):
            assert f'href="/debug/pprof/{name}' in text


BAD = [
    ("/debug/pprof/profile?seconds=x", 400),
    ("/debug/pprof/profile?seconds=-1", 400),
    ("/debug/pprof/profile?seconds=9999", 400),
    ("/debug/pprof/profile?format=pdf", 400),
    ("/debug/pprof/trace?seconds=0", 400),
    ("/debug/pprof/nothing", 404),
]


@pytest.mark.parametrize(("path", "status"), BAD)
async def test_bad_questions(path: str, status: int) -> None:
    async with client_for(build_app(new_parts())) as client:
        assert (await client.get(path)).status == status


async def test_one_at_a_time() -> None:
    async with client_for(build_app(new_parts())) as client:
        first = asyncio.ensure_future(client.get("/debug/pprof/profile?seconds=0.5"))
        await asyncio.sleep(0.1)
        second = await client.get("/debug/pprof/heap?seconds=0.1")
        assert (second.status, "already in use" in await second.text()) == (500, True)
        assert (await first).status == 200
        assert (await client.get("/debug/pprof/heap?seconds=0.05")).status == 200


async def test_profiling_can_be_off() -> None:
    async with client_for(build_app(new_parts(has_profiling=False))) as client:
        for path in ("/debug/pprof", "/debug/pprof/", "/debug/pprof/profile", "/debug/flags", "/debug/flags/v"):
            assert (await client.get(path)).status == 404, path
    async with client_for(build_app(new_parts(has_contention_profiling=False))) as client:
        assert (await client.get("/debug/pprof/block")).status == 404
        assert "block" not in await (await client.get("/debug/pprof/")).text()
