"""The active queue: pods that may be tried now, in the order of the first profile's sort plugin.

Pods that the sort puts level go in the order in which they came. Where all priorities are equal this is the plain FIFO
of the old write-ups.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.scheduler.queue.heap import Heap
from kubesched.scheduler.queue.queued import QueuedPod


class ActiveQueue:
    """Pods that are next."""

    name = "active"
    __slots__ = ("_heap",)

    def __init__(self) -> None:
        self._heap = Heap()

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._heap)

    def add(self, entry: QueuedPod) -> None:
        """Take in an entry."""
        self._heap.push(entry.sort_key, entry)
        entry.sub_queue = self

    def remove(self, entry: QueuedPod) -> None:
        """Give an entry up."""
        self._heap.remove(entry)
        entry.sub_queue = None

    def pop(self) -> QueuedPod | None:
        """Take out the entry that is first."""
        entry = self._heap.pop()
        if entry is not None:
            entry.sub_queue = None
        return entry
