"""What one attempt remembers between its extension points.

A plugin writes under its own name in PreFilter or PreScore and reads in the later points of the same attempt. States
stack: an attempt's state stands on what is remembered for the pod's whole class, reads fall through, writes stay on
top, so that answers remembered for a class are never changed by one pod's attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

from kubesched.errors import SchedulerError
from kubesched.scheduler.cluster import Snapshot
from kubesched.scheduler.framework.equivalence_cache.counters import C, CounterTable, PodCounts


class StateMissing(SchedulerError):
    """A point was run without the point before it that writes what it reads."""


NODE_ALLOCATABLE = "kubesched/node-allocatable"
"""Where a plugin leaves a function from a node's name to what the pod will use there beyond what it asks for: the
nodeAllocatableResourceClaimStatuses that the booked pod has in its status."""


_NOBODY: frozenset[str] = frozenset()


class CycleState:
    """Values by key, and which plugins asked to be left out of this attempt."""

    __slots__ = ("_base", "_values", "counters", "counts", "skip_filter", "skip_score")

    def __init__(self, base: CycleState | None = None, counters: CounterTable | None = None) -> None:
        self._base = base
        self._values: dict[str, Any] = {}
        self.counters = counters
        """Where counters are shared with others, if these are the values of a class of pods; an attempt shares those of its
        class, and without one counts for itself."""
        self.counts: dict[str, PodCounts] = {}
        """What was counted, by the key that it was written under."""
        self.skip_filter: frozenset[str] = _NOBODY if base is None else base.skip_filter
        self.skip_score: frozenset[str] = _NOBODY if base is None else base.skip_score

    def write(self, key: str, value: Any) -> None:
        """Keep a value; one that is changed in place later must have a `clone` method."""
        self._values[key] = value

    def find(self, key: str) -> Any | None:
        """Return a value, or None if nobody wrote it."""
        state: CycleState | None = self
        while state is not None:
            if key in state._values:
                return state._values[key]
            state = state._base
        return None

    def read(self, key: str) -> Any:
        """Return a value that must be there."""
        value = self.find(key)
        if value is None:
            raise StateMissing(f'error reading "{key}" from cycleState: not found')
        return value

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """Return a value, making and keeping it if nobody has."""
        value = self.find(key)
        if value is None:
            value = self._values[key] = make()
        return value

    def counted(self, key: str, declaration: Hashable, nodes: Snapshot, make: Callable[[], C]) -> C:
        """Return the counters of a declaration, as the pods are now, and keep them under a key that begins with the plugin's
        name. `make` makes them where nobody has declared the same before."""
        shared = self.counters or (self._base.counters if self._base is not None else None)
        if shared is not None:
            counts = shared.find(declaration, nodes, make)
        else:
            counts = make()
            counts.refresh(nodes)
        self._values[key] = self.counts[key] = counts
        return counts

    def all_counts(self) -> Iterator[tuple[str, PodCounts]]:
        """Yield everything that was counted, for the pod and for its class, each with the plugin's name."""
        for key, counts in self.counts.items():
            yield key.partition(".")[0], counts
        if self._base is not None:
            yield from self._base.all_counts()

    def clone(self) -> CycleState:
        """Return a copy for a what-if: changing it leaves this one as it is."""
        copy = CycleState(self._base.clone() if self._base is not None else None)
        copy._values = {key: value.clone() if hasattr(value, "clone") else value for key, value in self._values.items()}
        copy.skip_filter, copy.skip_score = self.skip_filter, self.skip_score
        return copy
