"""The backoff queue: pods that failed a moment ago and pause before they are tried again.

The pause doubles with every failure in a row, up to a limit, and ends on a whole second: pods of one second come back
together, in the order of the active queue. Pods that plugins refused may be popped early, when nobody else is there;
pods that came back through an error, and members of pod groups, keep a second heap and always sit their pause out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from kubesched.scheduler.queue.heap import Heap
from kubesched.scheduler.queue.queued import QueuedPod

NO_PAUSE = -math.inf


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long a pod pauses; `whole_seconds` is off only where popping from backoff is switched off."""

    initial_seconds: float = 1.0
    max_seconds: float = 10.0
    whole_seconds: bool = True

    def length(self, failures: int) -> float:
        """Return the pause after so many failures."""
        if failures <= 0 or self.max_seconds <= 0:
            return 0.0
        # Nobody fails a thousand times before the limit is reached; a larger exponent would not fit a float.
        pause = math.ldexp(self.initial_seconds, min(failures - 1, 1000))
        return min(pause, self.max_seconds)

    def expiry(self, entry: QueuedPod) -> float:
        """Return when an entry's pause ends; found once for each failure."""
        if entry.backoff_expiry is None:
            failures = entry.consecutive_errors or entry.unschedulable_count
            if not failures or self.max_seconds <= 0:
                return NO_PAUSE
            expiry = entry.timestamp + self.length(failures)
            entry.backoff_expiry = math.floor(expiry) if self.whole_seconds else expiry
        return entry.backoff_expiry

    def is_over(self, expiry: float, now: float) -> bool:
        """Return whether a pause has ended: the second in which it ends still belongs to it."""
        return expiry < (math.floor(now) if self.whole_seconds else now)


class BackoffQueue:
    """Pods that pause."""

    name = "backoff"
    __slots__ = ("_after_error", "_refused", "pauses")

    def __init__(self, pauses: Pauses) -> None:
        self.pauses = pauses
        self._refused = Heap()
        self._after_error = Heap()

    def __len__(self) -> int:
        return len(self._refused) + len(self._after_error)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._refused
        yield from self._after_error

    @property
    def n_refused(self) -> int:
        """Return how many pods could be popped early."""
        return len(self._refused)

    def is_pausing(self, entry: QueuedPod, now: float) -> bool:
        """Return whether an entry's pause has not ended."""
        return not self.pauses.is_over(self.pauses.expiry(entry), now)

    def add(self, entry: QueuedPod) -> None:
        """Take in an entry."""
        expiry = self.pauses.expiry(entry)
        if _may_be_early(entry):
            key = (expiry, entry.sort_key) if self.pauses.whole_seconds else (expiry,)
            self._refused.push(key, entry)
        else:
            self._after_error.push(expiry, entry)
        entry.sub_queue = self

    def remove(self, entry: QueuedPod) -> None:
        """Give an entry up."""
        (self._refused if _may_be_early(entry) else self._after_error).remove(entry)
        entry.sub_queue = None

    def pop(self) -> QueuedPod | None:
        """Take out the refused pod whose pause ends first, whether it has ended or not."""
        entry = self._refused.pop()
        if entry is not None:
            entry.sub_queue = None
        return entry

    def pop_over(self, now: float) -> Iterator[QueuedPod]:
        """Take out the entries whose pause has ended."""
        for heap in (self._refused, self._after_error):
            while (entry := heap.first()) is not None and not self.is_pausing(entry, now):
                heap.pop()
                entry.sub_queue = None
                yield entry

    def next_over(self) -> float | None:
        """Return the whole second at which the next pause is over, or None if nobody pauses."""
        ends = [self.pauses.expiry(entry) for heap in (self._refused, self._after_error) if (entry := heap.first()) is not None]
        return math.floor(min(ends)) + 1.0 if ends else None


def _may_be_early(entry: QueuedPod) -> bool:
    return not entry.sits_out and bool(entry.unschedulable_plugins or entry.pending_plugins)
