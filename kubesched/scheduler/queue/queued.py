"""A pod in the queue, with its counters and times. They stay with the pod from attempt to attempt.

An entry is in one sub-queue (active, backoff, unschedulable; see `sub_queue`) or in flight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from kubesched.scheduler.cluster import PodView

if TYPE_CHECKING:
    from kubesched.scheduler.queue.hints import ProfileHints

NOBODY: frozenset[str] = frozenset()


class SubQueue(Protocol):
    """A place in the queue where entries wait."""

    @property
    def name(self) -> str:
        """Return the sub-queue's name in metrics."""

    def add(self, entry: QueuedPod) -> None:
        """Take in an entry that is in no sub-queue."""

    def remove(self, entry: QueuedPod) -> None:
        """Take out an entry that is here."""


class QueuedPod:
    """One pod, its times and its counters. Times are seconds since the epoch."""

    __slots__ = (
        "attempts",
        "backoff_expiry",
        "consecutive_errors",
        "flushed_at",
        "gating_plugin",
        "has_unseen_nomination",
        "initial_attempt",
        "pending_plugins",
        "profile",
        "sits_out",
        "sort_key",
        "sub_queue",
        "ticket",
        "timestamp",
        "unschedulable_count",
        "unschedulable_plugins",
        "view",
        "was_flushed",
    )

    def __init__(self, view: PodView, profile: ProfileHints, timestamp: float) -> None:
        self.view = view
        self.profile = profile
        self.timestamp = timestamp
        self.sub_queue: SubQueue | None = None
        self.ticket = 0
        """Names the heap item of this entry; other items of it are left over (`heap.py`). 0 if it is in no heap."""
        self.sort_key: Any = None
        """The sort plugin's key, computed when the entry last entered the active queue or the backoff queue."""
        self.attempts = 0
        self.unschedulable_count = 0
        self.consecutive_errors = 0
        """Attempts in a row that ended with an error, not a refusal. They decide the backoff if there are any."""
        self.backoff_expiry: float | None = None
        self.initial_attempt: float | None = None
        self.unschedulable_plugins = NOBODY
        self.pending_plugins = NOBODY
        self.gating_plugin = ""
        self.sits_out = False
        """Whether it may not be popped before its backoff ends, even if plugins refused it."""
        self.was_flushed = False
        """Whether it left the unschedulable pods because it waited too long, without an event."""
        self.flushed_at = 0.0
        self.has_unseen_nomination = False
        """Whether the API server may hold another nominatedNodeName than the pod's newest version: our write has not come back
        by the watch, or had no answer. The next failed attempt writes it again."""

    def __repr__(self) -> str:
        return f"QueuedPod({self.view.key}, attempts={self.attempts})"

    @property
    def key(self) -> str:
        """Return the pod's namespace/name."""
        return self.view.key

    @property
    def rejectors(self) -> frozenset[str]:
        """Return the plugins that refused the pod: an event must concern one of them to help."""
        return self.unschedulable_plugins | self.pending_plugins

    @property
    def is_gated(self) -> bool:
        """Return whether a PreEnqueue plugin keeps the pod from being tried."""
        return self.gating_plugin != ""

    @property
    def waiting_since(self) -> float:
        """Return when the pod was last tried or flushed."""
        return max(self.timestamp, self.flushed_at)
