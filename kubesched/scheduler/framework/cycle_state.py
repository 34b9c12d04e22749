"""The state of one attempt: values that a plugin writes at one extension point and reads at a later one.

A plugin writes under its own name in PreFilter or PreScore. States are stacked: the state of an attempt lies on the cached
state of the pod's class, and that on the state of the cached node answers. A read looks from top to bottom; a write stays on
top. So an attempt never changes what is cached.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

from kubesched.errors import SchedulerError
from kubesched.scheduler.cluster import Snapshot
from kubesched.scheduler.framework.equivalence_cache.counters import C, CounterTable, PodCounts


class StateMissing(SchedulerError):
    """An extension point ran without the earlier point that writes the value it reads."""


NODE_ALLOCATABLE = "kubesched/node-allocatable"
"""The key of a function from a node's name to the nodeAllocatableResourceClaimStatuses that the pod will have there: what it
uses beyond its requests."""


_NOBODY: frozenset[str] = frozenset()


class CycleState:
    """Values by key, and the plugins that answered SKIP in this attempt."""

    __slots__ = ("_base", "_values", "counters", "counts", "skip_filter", "skip_score")

    def __init__(self, base: CycleState | None = None, counters: CounterTable | None = None) -> None:
        self._base = base
        self._values: dict[str, Any] = {}
        self.counters = counters
        """The counters that classes share, if this is the state of a class. An attempt uses those of its class; without a class
        it counts for itself."""
        self.counts: dict[str, PodCounts] = {}
        """The counters, by the key that they are written under."""
        self.skip_filter: frozenset[str] = _NOBODY if base is None else base.skip_filter
        self.skip_score: frozenset[str] = _NOBODY if base is None else base.skip_score

    def write(self, key: str, value: Any) -> None:
        """Keep a value. If it is changed in place later, it must have a `clone` method."""
        self._values[key] = value

    def find(self, key: str) -> Any | None:
        """Return a value, or None if it was never written."""
        state: CycleState | None = self
        while state is not None:
            if key in state._values:
                return state._values[key]
            state = state._base
        return None

    def read(self, key: str) -> Any:
        """Return a value; raise StateMissing if it was never written."""
        value = self.find(key)
        if value is None:
            raise StateMissing(f'error reading "{key}" from cycleState: not found')
        return value

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """Return a value; make and keep it if it was never written."""
        value = self.find(key)
        if value is None:
            value = self._values[key] = make()
        return value

    def counted(self, key: str, declaration: Hashable, nodes: Snapshot, make: Callable[[], C]) -> C:
        """Return up-to-date counters for a declaration, and keep them under a key that begins with the plugin's name. `make`
        makes them if no class has made the same declaration."""
        shared = self.counters or (self._base.counters if self._base is not None else None)
        if shared is not None:
            counts = shared.find(declaration, nodes, make)
        else:
            counts = make()
            counts.refresh(nodes)
        self._values[key] = self.counts[key] = counts
        return counts

    def all_counts(self) -> Iterator[tuple[str, PodCounts]]:
        """Yield the counters of the pod and of its class, each with the name of its plugin."""
        for key, counts in self.counts.items():
            yield key.partition(".")[0], counts
        if self._base is not None:
            yield from self._base.all_counts()

    def clone(self) -> CycleState:
        """Return an independent copy, for a what-if."""
        copy = CycleState(self._base.clone() if self._base is not None else None)
        copy._values = {key: value.clone() if hasattr(value, "clone") else value for key, value in self._values.items()}
        copy.skip_filter, copy.skip_score = self.skip_filter, self.skip_score
        return copy
