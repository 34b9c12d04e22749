"""A pod in the queue: what is to be placed, and what the queue remembers about it between attempts.

In: a pod view, when it came. Out: the same, with counters that grow with every attempt. An entry is in one sub-queue at a
time (active, backoff, unschedulable), or in flight; `sub_queue` says which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from kubesched.scheduler.cluster import PodView

if TYPE_CHECKING:
    from kubesched.scheduler.queue.hints import ProfileHints

NOBODY: frozenset[str] = frozenset()


class SubQueue(Protocol):
    """Where entries are."""

    @property
    def name(self) -> str:
        """Return the sub-queue's name in metrics."""
        ...

    def add(self, entry: QueuedPod) -> None:
        """Take in an entry that is in no sub-queue."""
        ...

    def remove(self, entry: QueuedPod) -> None:
        """Give up an entry that is here."""
        ...


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
        """What tells the heap's item of this entry from left-over ones; 0 where it is in no heap."""
        self.sort_key: Any = None
        """What the sort plugin ordered the entry by when it last came to the active queue or to backoff."""
        self.attempts = 0
        self.unschedulable_count = 0
        self.consecutive_errors = 0
        self.backoff_expiry: float | None = None
        self.initial_attempt: float | None = None
        self.unschedulable_plugins = NOBODY
        self.pending_plugins = NOBODY
        self.gating_plugin = ""
        self.sits_out = False
        """Whether its pause is never cut short, also if plugins refused it."""
        self.was_flushed = False
        self.flushed_at = 0.0
        self.has_unseen_nomination = False
        """Whether the API may name another nominated node than the pod's newest version does: what was written has not been
        seen yet, or had no answer. The next failure says again what is so."""

    def __repr__(self) -> str:
        return f"QueuedPod({self.view.key}, attempts={self.attempts})"

    @property
    def key(self) -> str:
        """Return the pod's namespace/name."""
        return self.view.key

    @property
    def rejectors(self) -> frozenset[str]:
        """Return the plugins that stand between the pod and a node."""
        return self.unschedulable_plugins | self.pending_plugins

    @property
    def is_gated(self) -> bool:
        """Return whether a plugin keeps the pod from being tried at all."""
        return self.gating_plugin != ""

    @property
    def waiting_since(self) -> float:
        """Return when the pod was last looked at: tried, or flushed."""
        return max(self.timestamp, self.flushed_at)
