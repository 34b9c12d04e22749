"""The service and its processes: deadlines, memory, shares, sessions; each with a cluster that misbehaves on request."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from kubesched.errors import SchedulerError
from kubesched.tools.serve.http_face import routes
from kubesched.tools.serve.service import Limits, Service
from kubesched.tools.serve.solver_process import Answering
from kubesched.tools.serve.solvers import Nursery
from kubesched.tools.serve.wire import EXHAUSTED, INTERNAL, INVALID, LATE, NOT_FOUND, UNAVAILABLE, Refusal

MEBI = 1 << 20


class Toy:
    """Does what the body says; counts what it was asked."""

    def __init__(self, name: str = "live") -> None:
        self.name, self.revision = name, 0

    def answer(self, call: str, body: bytes) -> bytes:
        word, _, amount = body.decode().strip('"').partition(" ")
        if word == "sleep":
            time.sleep(float(amount))
        elif word == "spin":
            ends = time.thread_time() + float(amount)
            while time.thread_time() < ends:
                pass
        elif word == "eat":
            bytearray(int(amount) * MEBI)
        elif word == "die":
            os._exit(1)
        elif word == "break":
            raise ZeroDivisionError
        elif word == "refuse":
            raise SchedulerError("pod a: no")
        elif call == "change":
            self.revision += 1
        return json.dumps({"name": self.name, "call": call, "pid": os.getpid(), "revision": self.revision}).encode()


class Opening:
    def session(self, objects: bytes) -> Answering:
        if objects == b'"big"':
            bytearray(900 * MEBI)
        if objects == b'"bad"':
            raise Refusal(INVALID, "objects[0].kind: is missing")
        return Toy(objects.decode())

    async def follow(self, ready: Callable[[Answering], Awaitable[None]]) -> None:
        await ready(Toy())


@asynccontextmanager
async def serving(**limits: Any) -> AsyncIterator[Service]:
    given = {
        "most_seconds": 10.0,
        "fork_bytes": 256 * MEBI,
        "session_bytes": 256 * MEBI,
        "watch_every_seconds": 0.01,
        "quick_seconds": 9.0,
    }
    service = Service(Nursery(Opening()), Limits(**{**given, **limits}))
    running = asyncio.create_task(service.run())
    try:
        await until_ready(service)
        yield service
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await asyncio.to_thread(service.nursery.close)


async def until_ready(service: Service) -> None:
    deadline = time.monotonic() + 20
    while not service.is_ready:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def ask(service: Service, call: str, body: str, caller: str = "me", **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((await service.ask(caller, call, f'"{body}"'.encode(), **more)).body)
    return found


async def refusal(asked: Awaitable[Any]) -> tuple[str, str]:
    with pytest.raises(Refusal) as refused:
        await asked
    return refused.value.code, str(refused.value)


async def test_quick_questions_are_answered_where_the_cluster_is_and_others_in_forks() -> None:
    async with serving() as service:
        first, second = [await ask(service, "fits", "x") for _ in range(2)]
        assert first["pid"] == second["pid"] != os.getpid()
        forked = {(await ask(service, "place", "x"))["pid"] for _ in range(3)}
        assert len(forked) == 3 and first["pid"] not in forked
        long = await service.ask("me", "fits", b'"' + b"x" * (1 << 17) + b'"')
        assert json.loads(long.body)["pid"] not in {first["pid"], *forked}


@pytest.mark.parametrize("call", ["fits", "place"])
async def test_what_goes_wrong_costs_the_question_alone(call: str) -> None:
    async with serving() as service:
        pid = (await ask(service, "fits", "x"))["pid"]
        assert await refusal(ask(service, call, "break")) == (INTERNAL, "the question broke the solver; its log says how")
        assert await refusal(ask(service, call, "refuse")) == (INVALID, "pod a: no")
        assert (await ask(service, "fits", "x"))["pid"] == pid


async def test_a_fork_ends_at_its_deadline_and_takes_no_more_memory_than_it_is_granted() -> None:
    async with serving() as service:
        began = time.monotonic()
        assert await refusal(ask(service, "place", "sleep 30", seconds=0.3)) == (LATE, "not answered within 0.3 s")
        assert time.monotonic() - began < 3
        code, text = await refusal(ask(service, "place", "eat 900"))
        assert (code, text) == (EXHAUSTED, "the question takes more memory than it is granted")
        assert (await refusal(ask(service, "place", "die")))[0] == EXHAUSTED
        assert (await ask(service, "place", "eat 16"))["name"] == "live"


async def test_a_slow_caller_delays_nobody_else() -> None:
    async with serving(forks=4, forks_each=2, quick_seconds=0.02) as service:
        slow = [asyncio.create_task(ask(service, "place", "sleep 3", "slow")) for _ in range(10)]
        # Quick questions that are not quick: the second one is answered in a fork, as the caller is known by then.
        slow += [asyncio.create_task(ask(service, "fits", "spin 0.2", "slow")) for _ in range(10)]
        await asyncio.sleep(0.6)
        times = []
        for call in ["fits", "place"] * 5:
            began = time.monotonic()
            await ask(service, call, "x", "quick")
            times.append(time.monotonic() - began)
        assert sorted(times)[len(times) // 2] < 1.5 and max(times) < 6.0, times  # alone it would be 18 s
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)


async def test_a_caller_with_too_many_questions_is_told() -> None:
    async with serving(forks=1, forks_each=1, most_waiting=2) as service:
        waiting = [asyncio.create_task(ask(service, "place", "sleep 1")) for _ in range(3)]
        await asyncio.sleep(0.1)
        assert (await refusal(ask(service, "place", "x")))[0] == EXHAUSTED
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_follower_that_ends_is_started_again() -> None:
    async with serving() as service:
        code, _ = await refusal(ask(service, "fits", "die"))
        assert code == UNAVAILABLE
        await until_ready(service)
        assert (await ask(service, "fits", "x"))["name"] == "live"


async def test_sessions_belong_to_their_caller_and_expire() -> None:
    async with serving(sessions=3, sessions_each=2) as service:
        for name in ("a", "b"):
            await service.put_session("me", name, f'"{name}"'.encode(), 2.0)
        assert (await ask(service, "fits", "x", session="a"))["name"] == '"a"'
        assert (await ask(service, "place", "x", session="b"))["name"] == '"b"'
        assert json.loads((await service.change_session("me", "a", b'"x"')).body)["revision"] == 1
        assert (await ask(service, "place", "x", session="a"))["revision"] == 1
        assert (await refusal(ask(service, "fits", "x", "you", session="a")))[0] == NOT_FOUND
        assert "you have 2 sessions" in (await refusal(service.put_session("me", "c", b'"c"')))[1]
        await service.put_session("you", "a", b'"theirs"')
        assert "there are 3 sessions" in (await refusal(service.put_session("they", "a", b'"x"')))[1]
        service.drop_session("you", "a")
        assert (await refusal(ask(service, "fits", "x", "you", session="a")))[0] == NOT_FOUND
        await asyncio.sleep(3.5)
        code, text = await refusal(ask(service, "fits", "x", session="a"))
        assert (code, text) == (NOT_FOUND, "session a: it has expired, or was never begun by you")
        assert len(service.sessions) == 0


async def test_a_session_that_cannot_be_begun_leaves_the_old_one() -> None:
    async with serving() as service:
        await service.put_session("me", "a", b'"old"')
        assert await refusal(service.put_session("me", "a", b'"bad"')) == (INVALID, "objects[0].kind: is missing")
        code, text = await refusal(service.put_session("me", "a", b'"big"'))
        assert code == EXHAUSTED and "memory" in text
        assert (await refusal(service.put_session("me", "", b'"x"')))[0] == INVALID
        assert (await ask(service, "fits", "x", session="a"))["name"] == '"old"'
        assert (await refusal(ask(service, "fits", "die", session="a")))[0] == UNAVAILABLE
        assert (await refusal(ask(service, "fits", "x", session="a")))[0] == NOT_FOUND


async def test_a_watch_tells_when_the_answer_is_another_one() -> None:
    async with serving(watches_each=1) as service:
        await service.put_session("me", "a", b'"a"')
        watch = service.watch("me", b'"x"', "a")
        assert json.loads((await anext(watch)).body)["revision"] == 0
        assert (await refusal(anext(service.watch("me", b'"x"', "a"))))[0] == EXHAUSTED
        later = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0.1)
        assert not later.done()
        await service.change_session("me", "a", b'"x"')
        assert json.loads((await asyncio.wait_for(later, 5)).body)["revision"] == 1
        service.drop_session("me", "a")
        assert (await refusal(anext(watch)))[0] == NOT_FOUND


async def test_a_body_that_is_too_long_is_refused_unread() -> None:
    async with serving(most_bytes=1000) as service:
        assert (await refusal(service.ask("me", "fits", b"x" * 1001)))[0] == INVALID
        assert (await refusal(service.put_session("me", "a", b"x" * 1001)))[0] == INVALID


async def test_deltas_that_are_refused_are_no_answer() -> None:
    async with serving() as service:
        await service.put_session("me", "s", b'"mine"')
        assert await refusal(service.change_session("me", "s", b'"refuse"')) == (INVALID, "pod a: no")
        assert (await refusal(service.change_session("me", "s", b'"break"')))[0] == INTERNAL


async def test_a_watch_ends_with_its_connection_though_the_answer_stays_the_same() -> None:
    async with serving() as service:
        service.is_open = True
        app = web.Application()
        app.add_routes(routes(service))
        runner = web.AppRunner(app)  # as the port has it: a handler is not cancelled when its caller hangs up
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/watch"
        async with aiohttp.ClientSession() as client:
            async with client.post(url, json={}) as answer:
                await answer.content.readline()
                assert service._watches._has
                answer.close()
            async with client.post(url, data=b"x", headers={"Content-Type": "text/plain"}) as refused:
                assert refused.status == 400
        deadline = time.monotonic() + 5
        while service._watches._has:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        await runner.cleanup()
