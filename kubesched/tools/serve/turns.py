"""Whose question is answered next: callers take turns, however many questions each of them has waiting.

In: callers that want a place. Out: places, as they become free. A caller has at most so many places at once, and at most so
many questions that wait; one more is refused at once, so that neither memory nor anybody's waiting time grows with it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubesched.tools.serve.wire import EXHAUSTED, Refusal


class Turns:
    """Places that callers share."""

    def __init__(self, places: int, most_each: int, most_waiting: int, what: str = "questions") -> None:
        self._what = what
        self._free, self._most_each, self._most_waiting = places, most_each, most_waiting
        self._has: Counter[str] = Counter()
        """How many places each caller has; nobody is in it who has none."""
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """In the order in which callers get the next place; nobody is in it who waits for none."""

    @property
    def n_waiting(self) -> int:
        """Return how many questions wait."""
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def of(self, caller: str) -> AsyncIterator[None]:
        """Hold a place; raise `Refusal` if too many questions of this caller wait already."""
        if self._free and self._has[caller] < self._most_each and caller not in self._waiting:
            self._take(caller)
        else:
            await self._wait(caller)
        try:
            yield
        finally:
            self._give_back(caller)

    async def _wait(self, caller: str) -> None:
        n_waiting = len(self._waiting.get(caller, ()))
        if n_waiting >= self._most_waiting:
            raise Refusal(EXHAUSTED, f"{self._has[caller] + n_waiting} {self._what} of {caller} are under way already")
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._give_back(caller)
            else:
                self._forget(caller, place)
            raise

    def _take(self, caller: str) -> None:
        self._free -= 1
        self._has[caller] += 1

    def _give_back(self, caller: str) -> None:
        self._free += 1
        self._has[caller] -= 1
        if not self._has[caller]:
            del self._has[caller]
        for other in list(self._waiting):
            if not self._free:
                break
            if self._has.get(other, 0) < self._most_each:
                place = self._waiting[other][0]
                self._forget(other, place)
                if other in self._waiting:  # to the end: the others come first now
                    self._waiting[other] = self._waiting.pop(other)
                if not place.done():
                    self._take(other)
                    place.set_result(None)

    def _forget(self, caller: str, place: asyncio.Future[None]) -> None:
        queue = self._waiting.get(caller)
        if queue is not None and place in queue:
            queue.remove(place)
            if not queue:
                del self._waiting[caller]
