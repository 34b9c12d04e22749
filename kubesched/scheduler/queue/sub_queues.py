"""Where pods wait: during their backoff, or until an event. (The active queue is a plain heap.)"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from kubesched.scheduler.queue.heap import Heap
from kubesched.scheduler.queue.queued import QueuedPod

NO_PAUSE = -math.inf

SameTemplate = dict[QueuedPod, None]
"""Pods of one template, in the order in which they came."""


class BackoffQueue:
    """Pods whose attempt failed a moment ago.

    The backoff doubles with every failure in a row, up to a limit, and ends with a whole second:

        refused at 10.7 for the first time: backoff 1 s, expiry floor(11.7) = 11
        the second that begins at 11 still belongs to it, so the pod comes back at 12.0

    All pods of one second come back together, in the order of the active queue. Without whole seconds (popping from backoff
    is switched off) a pod comes back at its exact expiry.

    There are two heaps. If no pod is active, `pop` of the queue takes the first of `refused` before its time: its backoff only
    saves work, and there is none. Pods whose attempt broke are in `after_error` and always wait to the end, because the backoff
    protects what failed (the API server, an extender). So do members of pod groups.
    """

    name = "backoff"
    __slots__ = ("_initial_seconds", "_max_seconds", "after_error", "refused", "whole_seconds")

    def __init__(self, initial_seconds: float, max_seconds: float, *, whole_seconds: bool = True) -> None:
        self._initial_seconds, self._max_seconds = initial_seconds, max_seconds
        self.whole_seconds = whole_seconds
        self.refused = Heap(lambda entry: (self.expiry(entry), entry.sort_key if whole_seconds else 0), sub_queue=self)
        self.after_error = Heap(self.expiry, sub_queue=self)

    def __len__(self) -> int:
        return len(self.refused) + len(self.after_error)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self.refused
        yield from self.after_error

    def seconds_after(self, failures: int) -> float:
        """Return the backoff after so many failures."""
        if failures <= 0 or self._max_seconds <= 0:
            return 0.0
        # The limit is reached long before 1000 failures; a larger exponent would overflow a float.
        return min(math.ldexp(self._initial_seconds, min(failures - 1, 1000)), self._max_seconds)

    def expiry(self, entry: QueuedPod) -> float:
        """Return when an entry's backoff ends; computed once for each failure."""
        if entry.backoff_expiry is None:
            failures = entry.consecutive_errors or entry.unschedulable_count
            if not failures or self._max_seconds <= 0:
                return NO_PAUSE
            expiry = entry.timestamp + self.seconds_after(failures)
            entry.backoff_expiry = math.floor(expiry) if self.whole_seconds else expiry
        return entry.backoff_expiry

    def is_pausing(self, entry: QueuedPod, now: float) -> bool:
        """Return whether an entry's backoff has not ended."""
        return self.expiry(entry) >= (math.floor(now) if self.whole_seconds else now)

    def add(self, entry: QueuedPod) -> None:
        """Take in an entry."""
        (self.refused if _is_refused(entry) else self.after_error).add(entry)

    def remove(self, entry: QueuedPod) -> None:
        """Take an entry out."""
        (self.refused if _is_refused(entry) else self.after_error).remove(entry)

    def pop_over(self, now: float) -> Iterator[QueuedPod]:
        """Take out the entries whose backoff has ended."""
        for heap in (self.refused, self.after_error):
            while (entry := heap.first()) is not None and not self.is_pausing(entry, now):
                heap.pop()
                yield entry


def _is_refused(entry: QueuedPod) -> bool:
    return not entry.sits_out and bool(entry.unschedulable_plugins or entry.pending_plugins)


class UnschedulablePods:
    """Pods that no node takes, and pods that a PreEnqueue plugin gates, until an event may help them.

    They are indexed by the plugin that refused them, and below it by template:

        refused["default-scheduler", "NodeResourcesFit"] = {template of web: {web-1, web-2}, template of db: {db-0}}

    So an event visits only pods refused by a plugin that waits for such events, and a hint that reads nothing but the template
    is called once for web-1 and web-2. Gated pods are indexed by their gate alone, because no other event can help them.
    """

    name = "unschedulable"
    __slots__ = ("by_age", "gated", "n_gated", "refused")

    def __init__(self) -> None:
        self.by_age = Heap(attrgetter("waiting_since"), sub_queue=self)
        """All of them, the one that waits longest first."""
        self.refused: dict[tuple[str, str], dict[Any, SameTemplate]] = {}
        """(profile, plugin) -> template -> pods"""
        self.gated: dict[str, SameTemplate] = {}
        """plugin -> pods"""
        self.n_gated = 0

    def __len__(self) -> int:
        return len(self.by_age)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self.by_age)

    def add(self, entry: QueuedPod) -> None:
        """Take in an entry. Its rejectors, its gate and its pod must not change while it is here."""
        self.by_age.add(entry)
        if entry.gating_plugin:
            self.gated.setdefault(entry.gating_plugin, {})[entry] = None
            self.n_gated += 1
        else:
            profile, template = entry.profile.name, entry.view.template
            for plugin in entry.rejectors:
                self.refused.setdefault((profile, plugin), {}).setdefault(template, {})[entry] = None

    def remove(self, entry: QueuedPod) -> None:
        """Take an entry out; call this before its rejectors, its gate or its pod change."""
        self.by_age.remove(entry)
        if entry.gating_plugin:
            gated = self.gated[entry.gating_plugin]
            del gated[entry]
            if not gated:
                del self.gated[entry.gating_plugin]
            self.n_gated -= 1
            return
        profile, template = entry.profile.name, entry.view.template
        for plugin in entry.rejectors:
            templates = self.refused[profile, plugin]
            same = templates[template]
            del same[entry]
            if not same:
                del templates[template]
                if not templates:
                    del self.refused[profile, plugin]

    def pop_older(self, before: float) -> list[QueuedPod]:
        """Take out the entries that wait since before a moment, the oldest first."""
        found: list[QueuedPod] = []
        while (entry := self.by_age.first()) is not None and entry.waiting_since < before:
            found.append(entry)
            self.remove(entry)
        return found
