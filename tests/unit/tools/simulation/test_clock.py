"""Virtual time: what is left when the main coroutine has ended."""

from __future__ import annotations

import asyncio

from kubesched.tools.simulation.clock import run_virtually


def test_tasks_that_are_left_are_ended_however_many_turns_that_takes() -> None:
    ended: list[str] = []

    async def inner() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            ended.append("inner")

    async def outer() -> None:
        try:
            await asyncio.ensure_future(inner())
        finally:
            await asyncio.sleep(1)
            ended.append("outer")

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(outer())
        await asyncio.sleep(0.1)
        return task

    assert run_virtually(main()).cancelled() and ended == ["inner", "outer"]
