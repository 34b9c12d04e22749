"""Turns: what is done about one thing is done one after the other, in the order in which it was asked for.

In: a key for each thing. Out: a block that begins when all blocks of that key before it have ended. Other keys do not wait. A
turn that is given up while it waits lets nobody pass who would have had to wait for the ones before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """The turns of all keys; a key takes room only while somebody has a turn."""

    def __init__(self) -> None:
        self._last: dict[str, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[None]:
        """Wait for one's turn."""
        before = self._last.get(key)
        mine = self._last[key] = asyncio.get_running_loop().create_future()

        def end(_: object = None) -> None:
            mine.set_result(None)
            if self._last.get(key) is mine:
                del self._last[key]

        try:
            if before is not None:
                await asyncio.wait([before])
            yield
        finally:
            if before is None or before.done():
                end()
            else:
                before.add_done_callback(end)
