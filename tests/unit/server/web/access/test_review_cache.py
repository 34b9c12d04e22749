"""Reviews: asked again when the server stumbles, remembered as long as they hold."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from kubesched.errors import Forbidden, SchedulerError, ServerFault, TooManyRequests, Unreachable
from kubesched.server.web.access.review_cache import ReviewCache, insist
from kubesched.testing import FakeClock

REVIEW = {"kind": "TokenReview", "spec": {}}


class Stumbling:
    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.n_asked = 0

    async def __call__(self, review: Mapping[str, Any]) -> Mapping[str, Any]:
        self.n_asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return {**review, "status": {"allowed": True}}


async def test_a_server_that_stumbles_is_asked_again() -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    ask = Stumbling(ServerFault(500, "", ""), Unreachable("away"), TooManyRequests(429, "", ""))
    assert await insist(ask, REVIEW, sleep) == {"allowed": True}
    assert ask.n_asked == 4
    for pause, base in zip(pauses, (0.5, 0.75, 1.125), strict=True):
        assert base <= pause <= base * 1.2


async def test_it_is_given_up_after_five_tries() -> None:
    async def sleep(seconds: float) -> None:
        pass

    ask = Stumbling(*(ServerFault(503, "", f"try {n}") for n in range(9)))
    with pytest.raises(ServerFault, match="try 4"):
        await insist(ask, REVIEW, sleep)
    assert ask.n_asked == 5


async def test_a_clear_no_is_not_asked_again() -> None:
    ask = Stumbling(Forbidden(403, "Forbidden", "not you"))
    with pytest.raises(Forbidden):
        await insist(ask, REVIEW)
    assert ask.n_asked == 1


async def test_answers_hold_for_their_time() -> None:
    clock, asked = FakeClock(1000.0), []

    async def ask() -> tuple[str, float]:
        asked.append(clock.now())
        return "yes", 10.0

    kept: ReviewCache[str] = ReviewCache(clock.now)
    for now in (0.0, 9.9, 10.0, 19.9, 20.0):
        clock.time = now
        assert await kept.get("q", ask) == "yes"
    assert asked == [0.0, 10.0, 20.0]


async def test_no_time_means_no_memory() -> None:
    asked = []

    async def ask() -> tuple[str, float]:
        asked.append(1)
        return "yes", 0.0

    kept: ReviewCache[str] = ReviewCache(FakeClock().now)
    await kept.get("q", ask)
    await kept.get("q", ask)
    assert len(asked) == 2


async def test_many_who_wait_ask_once_and_one_who_leaves_does_not_spoil_it() -> None:
    asked, answer = [], asyncio.Event()

    async def ask() -> tuple[str, float]:
        asked.append(1)
        await answer.wait()
        return "yes", 10.0

    kept: ReviewCache[str] = ReviewCache(FakeClock().now)
    waiting = [asyncio.ensure_future(kept.get("q", ask)) for _ in range(5)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    answer.set()
    assert await asyncio.gather(*waiting[1:]) == ["yes"] * 4
    assert len(asked) == 1


async def test_errors_are_not_remembered() -> None:
    errors: list[Exception] = [SchedulerError("away")]

    async def ask() -> tuple[str, float]:
        if errors:
            raise errors.pop()
        return "yes", 10.0

    kept: ReviewCache[str] = ReviewCache(FakeClock().now)
    with pytest.raises(SchedulerError):
        await kept.get("q", ask)
    assert await kept.get("q", ask) == "yes"


async def test_the_oldest_answers_make_room() -> None:
    asked: list[int] = []

    def ask_for(number: int) -> Any:
        async def ask() -> tuple[int, float]:
            asked.append(number)
            return number, 10.0

        return ask

    kept: ReviewCache[int] = ReviewCache(FakeClock().now, most=2)
    for number in (1, 2, 1, 3, 1, 2):
        assert await kept.get(number, ask_for(number)) == number
    assert asked == [1, 2, 3, 2]
