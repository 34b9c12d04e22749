"""A heap that forgets lazily.

Pushing and popping cost O(log n) on keys computed once. Removing an entry in the middle only marks its item as left
over; left-over items are dropped when they come to the top, or all at once when they are the larger part.
Entries with equal keys come out in the order in which they went in: each is given a ticket, higher than any before, and
an item whose ticket its entry no longer holds is a left-over one.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from kubesched.queue.queued import QueuedPod

_FEW = 64
_tickets = count(1)


class Heap:
    """Queued pods by key, smallest first."""

    __slots__ = ("_items", "_live")

    def __init__(self) -> None:
        self._items: list[tuple[Any, int, QueuedPod]] = []
        self._live = 0

    def __len__(self) -> int:
        return self._live

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield the entries in no particular order."""
        return (item[2] for item in self._items if item[2].ticket == item[1])

    def push(self, key: Any, entry: QueuedPod) -> None:
        """Add an entry that is in no heap."""
        entry.ticket = ticket = next(_tickets)
        heappush(self._items, (key, ticket, entry))
        self._live += 1

    def remove(self, entry: QueuedPod) -> None:
        """Remove an entry that is in this heap."""
        entry.ticket = 0
        self._live -= 1
        if len(self._items) > 2 * self._live + _FEW:
            self._items = [item for item in self._items if item[2].ticket == item[1]]
            heapify(self._items)

    def first(self) -> QueuedPod | None:
        """Return the smallest entry, or None."""
        items = self._items
        while items:
            item = items[0]
            if item[2].ticket == item[1]:
                return item[2]
            heappop(items)
        return None

    def pop(self) -> QueuedPod | None:
        """Take the smallest entry out, or return None."""
        items = self._items
        while items:
            item = heappop(items)
            entry = item[2]
            if entry.ticket == item[1]:
                entry.ticket = 0
                self._live -= 1
                return entry
        return None
