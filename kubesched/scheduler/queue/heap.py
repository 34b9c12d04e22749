"""A binary heap of queued pods, from which any entry can be removed without searching it.

Adding and popping cost O(log n). Removing only clears the entry's ticket; the item stays in the list as a left-over:

    add A, add B, remove A:   items [(key A, ticket 1, A), (key B, ticket 2, B)],  A.ticket 0, B.ticket 2
    first():                  ticket 1 is not A's ticket any more, so that item is dropped; B is first

Left-over items go when they reach the top, or all at once when they are the larger part of the list. Each item gets a higher
ticket than all before it, so entries with equal keys come out in the order in which they were added.

Keys come from a sort plugin, so comparing them may raise. Pods then go in the order of their tickets until the heap is
empty again: in the wrong order, but none is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from kubesched.scheduler.framework import blamed
from kubesched.scheduler.queue.queued import QueuedPod, SubQueue

_FEW = 64
_tickets = count(1)

log = logging.getLogger(__name__)


class Heap:
    """Queued pods, smallest key first. An entry is in one heap at a time and knows its sub-queue, by default this heap."""

    __slots__ = ("_has_no_keys", "_items", "_key", "_live", "_sub_queue", "name")

    def __init__(self, key: Callable[[QueuedPod], Any], name: str = "", sub_queue: SubQueue | None = None) -> None:
        self.name = name
        self._key = key
        self._sub_queue: SubQueue = sub_queue if sub_queue is not None else self
        self._items: list[tuple[Any, int, QueuedPod]] = []
        self._live = 0
        self._has_no_keys = False
        """Whether keys are left out because they cannot be compared."""

    def __len__(self) -> int:
        return self._live

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield the entries in no particular order."""
        return (item[2] for item in self._items if item[2].ticket == item[1])

    def add(self, entry: QueuedPod) -> None:
        """Add an entry that is in no heap."""
        entry.ticket = ticket = next(_tickets)
        entry.sub_queue = self._sub_queue
        item = (None if self._has_no_keys else self._key(entry), ticket, entry)
        self._live += 1
        try:
            heappush(self._items, item)
        except BaseException as error:  # a plugin's keys: see above
            self._drop_keys(error, item)

    def remove(self, entry: QueuedPod) -> None:
        """Remove an entry that is in this heap."""
        entry.ticket = 0
        entry.sub_queue = None
        self._live -= 1
        if len(self._items) > 2 * self._live + _FEW:
            self._items = [item for item in self._items if item[2].ticket == item[1]]
            try:
                heapify(self._items)
            except BaseException as error:  # as above
                self._drop_keys(error)

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
                entry.sub_queue = None
                self._live -= 1
                return entry
        return None

    def _pop_item(self) -> tuple[Any, int, QueuedPod]:
        item = self._items[0]
        try:
            heappop(self._items)
        except BaseException as error:  # as above; heapq does not tell whether it took the item out before it failed
            self._drop_keys(error)
            self._items = [other for other in self._items if other[1] != item[1]]
        if not self._items:
            self._has_no_keys = False
        return item

    def _drop_keys(self, error: BaseException, added: tuple[Any, int, QueuedPod] | None = None) -> None:
        """Go on without keys. A failed comparison may leave an item in the list twice; tickets tell them apart."""
        broken = blamed(error, "", "QueueSort")
        log.error("the keys of the sort plugin cannot be compared, pods go in the order in which they came: %s", broken)
        left = {item[1]: item[2] for item in (*self._items, *((added,) if added is not None else ()))}
        self._items = [(None, ticket, entry) for ticket, entry in sorted(left.items())]
        self._has_no_keys = True
