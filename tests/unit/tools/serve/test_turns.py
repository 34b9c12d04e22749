"""Whose question is next."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from kubesched.testing.fakes import settle
from kubesched.tools.serve.turns import Turns
from kubesched.tools.serve.wire import EXHAUSTED, Refusal


class Asking:
    """Callers that keep their place until they are told to go on."""

    def __init__(self, turns: Turns) -> None:
        self.turns, self.order, self.go = turns, list[str](), asyncio.Semaphore(0)
        self.tasks: list[asyncio.Task[None]] = []

    async def ask(self, *callers: str) -> None:
        for caller in callers:
            self.tasks.append(asyncio.create_task(self._ask(caller)))
            await settle()

    async def _ask(self, caller: str) -> None:
        async with self.turns.of(caller):
            self.order.append(caller)
            await self.go.acquire()

    async def finish(self) -> None:
        for _ in self.tasks:
            self.go.release()
        await asyncio.gather(*self.tasks)


async def test_a_caller_with_many_questions_does_not_keep_another_waiting() -> None:
    asking = Asking(Turns(1, 1, 100))
    await asking.ask(*["greedy"] * 20, "modest")
    await asking.finish()
    assert asking.order.index("modest") <= 2 and len(asking.order) == 21


async def test_a_caller_has_only_so_many_places_though_others_are_free() -> None:
    asking = Asking(Turns(4, 2, 100))
    await asking.ask("a", "a", "a", "a")
    assert asking.order == ["a", "a"]
    await asking.ask("b")
    assert asking.order == ["a", "a", "b"]
    await asking.finish()
    assert asking.order == ["a", "a", "b", "a", "a"]


async def test_one_question_too_many_is_refused_at_once() -> None:
    asking = Asking(Turns(1, 1, 2))
    await asking.ask("a", "a", "a")
    with pytest.raises(Refusal, match="3 questions of a are under way already") as refused:
        async with asking.turns.of("a"):
            pass
    assert refused.value.code == EXHAUSTED
    await asking.finish()


async def test_whoever_gives_up_leaves_nothing_behind() -> None:
    turns = Turns(1, 1, 10)
    async with AsyncExitStack() as held:
        await held.enter_async_context(turns.of("a"))
        waiting = [asyncio.create_task(_pass(turns, caller)) for caller in ("b", "b", "c")]
        await settle()
        for task in waiting[:2]:
            task.cancel()
        await settle()
        assert turns.n_waiting == 1
    await waiting[2]
    async with turns.of("b"):
        assert turns.n_waiting == 0


async def test_a_place_given_to_who_is_just_giving_up_goes_to_the_next() -> None:
    turns = Turns(1, 1, 10)
    async with turns.of("a"):
        first, second = (asyncio.create_task(_pass(turns, caller)) for caller in ("b", "c"))
        await settle()
    first.cancel()  # it has the place, and has not run yet
    await asyncio.wait_for(second, 1)


async def _pass(turns: Turns, caller: str) -> None:
    async with turns.of(caller):
        pass
