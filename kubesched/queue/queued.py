"""A pod in the queue: what is to be placed, and what the queue remembers about it between attempts.

In: a pod view, when it came. Out: the same, with counters that grow with every attempt. An entry is in one place at a
time (active, backoff, waiting), or in flight; `place` says which. What most pods never have is kept in the class, so
that making an entry sets three attributes: thousands are made a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from kubesched.cluster import PodView

if TYPE_CHECKING:
    from kubesched.queue.hints import ProfileHints

NOBODY: frozenset[str] = frozenset()


class Place(Protocol):
    """Where entries are."""

    @property
    def name(self) -> str:
        """Return the place's name in metrics."""
        ...

    def add(self, entry: QueuedPod) -> None:
        """Take in an entry that is in no place."""
        ...

    def remove(self, entry: QueuedPod) -> None:
        """Give up an entry that is here."""
        ...


class QueuedPod:
    """One pod, its times and its counters. Times are seconds since the epoch."""

    profile: ProfileHints
    place: Place | None = None
    item: tuple[Any, ...] | None = None
    """The heap item that stands for this entry; items that are not it any more are leftovers."""
    sort_key: Any = None
    """What the sort plugin ordered the entry by when it last came to the active queue or to backoff."""
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    backoff_expiry: float | None = None
    initial_attempt: float | None = None
    unschedulable_plugins: frozenset[str] = NOBODY
    pending_plugins: frozenset[str] = NOBODY
    gating_plugin: str = ""
    sits_out: bool = False
    """Whether its pause is never cut short, also if plugins refused it."""
    was_flushed: bool = False
    flushed_at: float = 0.0

    def __init__(self, view: PodView, profile: ProfileHints, timestamp: float) -> None:
        self.view = view
        self.profile = profile
        self.timestamp = timestamp

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
