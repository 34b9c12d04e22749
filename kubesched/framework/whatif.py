"""The same snapshot with some pods added or removed.

In: a snapshot, some of its rows, pods that come or go. Out: a view of those rows that filters take for the real thing.
The store is not touched: the columns that pods change are copied for these rows, everything else is shared.

Preemption asks "would the pod fit if these were gone" (framework/thinning takes many away at once), the filter pass
with nominated pods "would it still fit if those came" (framework/beside).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from kubesched.api.requests import HostPort, ports_conflict
from kubesched.cluster import CPU, MEMORY, Bools, ClusterTables, Ints, PodView, Snapshot
from kubesched.framework.nominated import NominatedAbove

Reader = Callable[[int], Ints]


class WhatIf(Snapshot):
    """Some rows of a snapshot, with pods of our own imagination. Positions are indices into these rows."""

    __slots__ = ("_added", "_arrived", "_count", "_non_zero", "_ports", "_removed", "_requested")

    def __init__(self, whole: ClusterTables, rows: Ints, count: Ints) -> None:
        super().__init__(whole, rows)
        self._count = count
        self._non_zero: dict[int, Ints] = {}
        self._requested: dict[int, Ints] = {}
        self._added: dict[int, dict[str, PodView]] = {}
        self._removed: set[str] = set()
        self._ports: dict[int, set[HostPort]] = {}
        self._arrived: NominatedAbove | None = None

    @staticmethod
    def of(nodes: Snapshot, rows: Ints | Sequence[int]) -> WhatIf:
        """Return a view of some rows that pods can be added to and removed from; what is already imagined stays."""
        view = nodes.take(rows)
        if isinstance(view, WhatIf):
            return view
        assert view.rows is not None
        return WhatIf(view.whole, view.rows, view.pod_count.copy())

    def take(self, rows: Ints | Sequence[int]) -> WhatIf:
        """Return some rows of this view, imagined pods included."""
        kept = np.asarray(rows, dtype=np.int64)
        view = WhatIf(self.whole, self._rows_at(kept), self._count[kept])
        self._imagine_on(view, kept)
        return view

    def _imagine_on(self, view: WhatIf, kept: Ints) -> None:
        """Let a view of some of these rows have what is imagined here."""
        view._non_zero = {resource: column[kept] for resource, column in self._non_zero.items()}
        view._requested = {resource: column[kept] for resource, column in self._requested.items()}
        view._removed = set(self._removed)
        if self._added or self._ports:
            for new, old in enumerate(kept.tolist()):
                if old in self._added:
                    view._added[new] = dict(self._added[old])
                if old in self._ports:
                    view._ports[new] = set(self._ports[old])
        view._arrived = self._arrived

    def add(self, pod: PodView, position: int) -> None:
        """Imagine that a pod came to a node."""
        if pod.uid in self._removed:
            self._removed.discard(pod.uid)
        else:
            self._added.setdefault(position, {})[pod.uid] = pod
        self._use(pod, position, 1)
        if position in self._ports:
            self._ports[position].update(pod.template.ports)

    def remove(self, pod: PodView, position: int) -> None:
        """Imagine that a pod left a node."""
        if pod.template.ports:
            # A set, not a count: where two pods hold one port, the reference takes it as free once either goes.
            self._ports_on(position).difference_update(pod.template.ports)
        if pod.uid in self._added.get(position, {}):
            del self._added[position][pod.uid]
        else:
            self._removed.add(pod.uid)
        self._use(pod, position, -1)

    def arrive(self, ahead: NominatedAbove) -> None:
        """Imagine that all pods nominated to these rows came, many rows in one step; once for a view."""
        rows = self.rows
        assert rows is not None and self._arrived is None
        for resource, column in ahead.usage.items():
            self._requested[resource] = self.requested(resource) + column[rows]
        self._non_zero[CPU] = self.non_zero_requested(CPU) + ahead.non_zero_cpu[rows]
        self._non_zero[MEMORY] = self.non_zero_requested(MEMORY) + ahead.non_zero_memory[rows]
        self._count = self._count + ahead.count[rows]
        self._arrived = ahead

    def _use(self, pod: PodView, position: int, sign: int) -> None:
        template = pod.template
        for resource, amount in template.usage:
            self._own(self._requested, resource, self.requested)[position] += sign * amount
        self._own(self._non_zero, CPU, self.non_zero_requested)[position] += sign * template.non_zero_cpu
        self._own(self._non_zero, MEMORY, self.non_zero_requested)[position] += sign * template.non_zero_memory
        self._count[position] += sign

    @staticmethod
    def _own(columns: dict[int, Ints], resource: int, read: Reader) -> Ints:
        """Return a column that is ours to write to."""
        column = columns.get(resource)
        if column is None:
            column = columns[resource] = read(resource).copy()
        return column

    def requested(self, resource: int) -> Ints:
        """Return what the pods ask for, imagined ones included."""
        column = self._requested.get(resource)
        return column if column is not None else super().requested(resource)

    def non_zero_requested(self, resource: int) -> Ints:
        """Return what the pods ask for, with the defaults for those that ask for nothing."""
        if resource > MEMORY:
            return self.requested(resource)
        column = self._non_zero.get(resource)
        return column if column is not None else super().non_zero_requested(resource)

    def requested_at(self, resource: int, row: int) -> int:
        """Return what the pods of one node ask for, imagined ones included."""
        return int(self.requested(resource)[row])

    def usage_at(self, resource: int, row: int) -> tuple[int, int]:
        """Return what one node offers, and what its pods ask for, imagined ones included."""
        return self.allocatable_at(resource, row), self.requested_at(resource, row)

    def non_zero_requested_at(self, resource: int, row: int) -> int:
        """Return the same with the defaults for pods that ask for nothing."""
        return int(self.non_zero_requested(resource)[row])

    def free_pods_at(self, row: int) -> int:
        """Return how many more pods one node takes."""
        return int(self.allowed_pods[row]) - int(self._count[row])

    @property
    def pod_count(self) -> Ints:
        """Return how many pods each node has."""
        return self._count

    def pods_on(self, row: int) -> Iterable[PodView]:
        """Return the pods of the node at a position."""
        for pod in super().pods_on(row):
            if pod.uid not in self._removed:
                yield pod
        yield from self._added.get(row, {}).values()
        if self._arrived is not None and self.rows is not None:
            yield from self._arrived.pods.get(int(self.rows[row]), ())

    def port_conflicts(self, ports: Iterable[HostPort]) -> Bools:
        """Return on which nodes one of these host ports is taken."""
        wanted = tuple(ports)
        taken = super().port_conflicts(wanted)
        for position in self._added.keys() | self._ports.keys() | self._changed_ports():
            held = self._ports_on(position)
            taken[position] = any(ports_conflict(w, h) for w in wanted for h in held)
        return taken

    def _changed_ports(self) -> set[int]:
        """Return the positions whose ports a change of many rows at once may have touched."""
        if self._arrived is None or not self._arrived.with_ports:
            return set()
        assert self.rows is not None
        return {at for at, row in enumerate(self.rows.tolist()) if row in self._arrived.with_ports}

    def _ports_on(self, position: int) -> set[HostPort]:
        held = self._ports.get(position)
        if held is None:
            held = self._ports[position] = {port for pod in self.pods_on(position) for port in pod.template.ports}
        return held
