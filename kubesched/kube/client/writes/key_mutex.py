"""A mutex for every key, first come, first served: what is done about one thing is done one after the other.

In: a key for each thing. Out: a block that begins when all blocks of that key before it have ended. Other keys do not wait. Who
gives up while waiting lets nobody pass who would have had to wait for the ones before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class KeyMutex:
    """The mutexes of all keys; a key takes room only while somebody holds it or waits for it."""

    def __init__(self) -> None:
        self._last: dict[str, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncIterator[None]:
        """Hold a key, when everybody who asked before is through."""
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
