"""A heap that forgets lazily.

Pushing and popping cost O(log n) on keys computed once. Removing an entry in the middle only marks its item as left
over; left-over items are dropped when they come to the top, or all at once when they are the larger part.
Entries with equal keys come out in the order in which they went in: each is given a ticket, higher than any before, and
an item whose ticket its entry no longer holds is a left-over one.

Keys come from a sort plugin, so comparing them may raise. Pods then go in the order of their tickets until the heap is
empty again: out of order, but none is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from kubesched.scheduler.framework import blamed
from kubesched.scheduler.queue.queued import QueuedPod

_FEW = 64
_tickets = count(1)

log = logging.getLogger(__name__)


class Heap:
    """Queued pods by key, smallest first."""

    __slots__ = ("_is_level", "_items", "_live")

    def __init__(self) -> None:
        self._items: list[tuple[Any, int, QueuedPod]] = []
        self._live = 0
        self._is_level = False
        """Whether keys are left out, because they cannot be compared."""

    def __len__(self) -> int:
        return self._live

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield the entries in no particular order."""
        return (item[2] for item in self._items if item[2].ticket == item[1])

    def push(self, key: Any, entry: QueuedPod) -> None:
        """Add an entry that is in no heap."""
        entry.ticket = ticket = next(_tickets)
        item = (None if self._is_level else key, ticket, entry)
        self._live += 1
        try:
            heappush(self._items, item)
        except BaseException as error:  # a plugin's keys: see above
            self._level(error, item)

    def remove(self, entry: QueuedPod) -> None:
        """Remove an entry that is in this heap."""
        entry.ticket = 0
        self._live -= 1
        if len(self._items) > 2 * self._live + _FEW:
            self._items = [item for item in self._items if item[2].ticket == item[1]]
            try:
                heapify(self._items)
            except BaseException as error:  # as above
                self._level(error)

    def first(self) -> QueuedPod | None:
        """Return the smallest entry, or None."""
        while self._items:
            item = self._items[0]
            if item[2].ticket == item[1]:
                return item[2]
            self._pop_item()
        return None

    def pop(self) -> QueuedPod | None:
        """Take the smallest entry out, or return None."""
        while self._items:
            item = self._pop_item()
            entry = item[2]
            if entry.ticket == item[1]:
                entry.ticket = 0
                self._live -= 1
                return entry
        return None

    def _pop_item(self) -> tuple[Any, int, QueuedPod]:
        item = self._items[0]
        try:
            heappop(self._items)
        except BaseException as error:  # as above; whether the item was taken out already is heapq's secret
            self._level(error)
            self._items = [other for other in self._items if other[1] != item[1]]
        if not self._items:
            self._is_level = False
        return item

    def _level(self, error: BaseException, pushed: tuple[Any, int, QueuedPod] | None = None) -> None:
        """Go on without keys. Whatever a broken comparison left of the heap, each item is in it once at most."""
        broken = blamed(error, "", "QueueSort")
        log.error("the keys of the sort plugin cannot be compared, pods go in the order in which they came: %s", broken)
        left = {item[1]: item[2] for item in (*self._items, *((pushed,) if pushed is not None else ()))}
        self._items = [(None, ticket, entry) for ticket, entry in sorted(left.items())]
        self._is_level = True
