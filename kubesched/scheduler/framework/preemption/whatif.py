"""A snapshot with some pods added or removed.

In: a snapshot, some of its rows, the pods that come or go. Out: a view of these rows that filters read like a real one. The
store does not change: the view keeps the difference in resources and adds it whenever a column is read.

There are three ways to add and remove pods. The view is the same afterwards:

  one node         any pod comes or goes (`move`): numbers instead of columns, as preemption tries single nodes often
  listed pods      many nodes. All pods of lower priority are removed and then put back rank by rank
                   (framework/preemption/listed_pods): the cost is that of the filters, not of the pods
  nominated pods   many nodes, and all pods that are nominated to them come (`arrive`)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kubesched.kube.api import HostPort, ports_conflict
from kubesched.scheduler.cluster import CPU, MEMORY, Bools, ClusterTables, Codes, Ints, PodView, Snapshot
from kubesched.scheduler.framework.nominated import NominatedAbove
from kubesched.scheduler.framework.preemption.listed_pods import DEFAULTED_CPU, DEFAULTED_MEMORY, ListedPods, TemplateNumbers

Amount = int | Ints
"""What is added to a column: a number on a view of one node, elsewhere a column."""
_DEFAULTED = {CPU: DEFAULTED_CPU, MEMORY: DEFAULTED_MEMORY}


class WhatIf(Snapshot):
    """Some rows of a snapshot, with pods added or removed."""

    __slots__ = ("_added", "_arrived", "_count", "_ports", "_removed", "_requested", "listed")

    def __init__(self, whole: ClusterTables, rows: Ints, listed: ListedPods | None = None) -> None:
        super().__init__(whole, rows)
        self._requested: dict[int, Amount] = {}
        self._count: Amount = 0 if listed is None else -np.count_nonzero(listed.gone, axis=1)
        self._added: dict[str, PodView] = {}
        self._removed: set[str] = set()
        self._ports: set[HostPort] | None = None
        self._arrived: NominatedAbove | None = None
        self.listed = listed

    @staticmethod
    def of(nodes: Snapshot, rows: Ints | Sequence[int]) -> WhatIf:
        """Return a view of some rows. If `nodes` is a what-if, its changes stay."""
        return nodes.take(rows) if isinstance(nodes, WhatIf) else WhatIf(nodes.whole, nodes._rows_at(rows))

    @staticmethod
    def without(nodes: Snapshot, rows: Ints, slots: Codes, numbers: Codes, book: TemplateNumbers) -> WhatIf:
        """Return a view of some rows with all listed pods away. `slots` and `numbers` hold one line a row: the pods'
        slots in the table of placed pods and their templates' numbers; number 0 fills short lines up."""
        return WhatIf(nodes.whole, nodes._rows_at(rows), ListedPods(book, numbers, slots, numbers != 0))

    def take(self, rows: Ints | Sequence[int]) -> WhatIf:
        """Return some rows of this view, with its changes."""
        kept = np.asarray(rows, dtype=np.int64)
        view = WhatIf(self.whole, self._rows_at(kept), self.listed.take(kept) if self.listed is not None else None)
        view._requested = {resource: _amount_of(more, kept) for resource, more in self._requested.items()}
        view._count = _amount_of(self._count, kept)
        view._added, view._removed = dict(self._added), set(self._removed)
        view._ports = set(self._ports) if self._ports is not None else None
        view._arrived = self._arrived
        return view

    # Coming and going

    def move(self, pod: PodView, sign: int) -> None:
        """Add a pod (+1) or remove it (-1). Only on a view of one node."""
        template = pod.template
        if template.ports and sign < 0:
            # Kept quirk: a set, not a count. If two pods have one port, kube-scheduler takes it as free when either goes.
            self._ports = self._ports_on(0).difference(template.ports)
        elif self._ports is not None:
            self._ports |= set(template.ports)
        if sign > 0 and pod.uid in self._removed:
            self._removed.discard(pod.uid)
        elif sign > 0:
            self._added[pod.uid] = pod
        elif self._added.pop(pod.uid, None) is None:
            self._removed.add(pod.uid)
        for resource, amount in template.usage:
            self._requested[resource] = self._more(resource) + sign * amount
        self._requested[DEFAULTED_CPU] = self._more(DEFAULTED_CPU) + sign * template.non_zero_cpu
        self._requested[DEFAULTED_MEMORY] = self._more(DEFAULTED_MEMORY) + sign * template.non_zero_memory
        self._count += sign

    def arrive(self, ahead: NominatedAbove) -> None:
        """Add all pods that are nominated to these rows, in one step. Only once for a view."""
        rows = self.rows
        assert rows is not None and self._arrived is None
        for resource, column in ahead.usage.items():
            self._requested[resource] = self._more(resource) + column[rows]
        self._count = self._count + ahead.count[rows]
        self._arrived = ahead

    def move_listed(self, rank: int, here: Bools, sign: int) -> None:
        """Put the listed pods of one rank back (+1) on the rows where `here` is true, or remove them (-1)."""
        assert self.listed is not None
        numbers, book = self.listed.move(rank, here, sign), self.listed.book
        for resource, more in self._requested.items():
            self._requested[resource] = more + sign * book.usage[resource][numbers]
        self._count = self._count + sign * here

    # What pods use

    def _more(self, resource: int) -> Amount:
        """Return the difference to the real requests for a resource."""
        more = self._requested.get(resource)
        if more is None:
            more = 0
            if self.listed is not None:
                more = self._requested[resource] = -self.listed.away(self.listed.book.usage[resource])
        return more

    def requested(self, resource: int) -> Ints:
        """Return what the pods ask for, imagined ones included."""
        column: Ints = super().requested(resource) + self._more(resource)
        return column

    def non_zero_requested(self, resource: int) -> Ints:
        """Return what the pods ask for, with the defaults for those that ask for nothing."""
        if resource not in _DEFAULTED:
            return self.requested(resource)
        column: Ints = super().non_zero_requested(resource) + self._more(_DEFAULTED[resource])
        return column

    def requested_at(self, resource: int, row: int) -> int:
        """Return what the pods of one node ask for, imagined ones included."""
        return super().requested_at(resource, row) + _amount_at(self._more(resource), row)

    def usage_at(self, resource: int, row: int) -> tuple[int, int]:
        """Return what one node offers, and what its pods ask for, imagined ones included."""
        offered, used = super().usage_at(resource, row)
        return offered, used + _amount_at(self._more(resource), row)

    def non_zero_requested_at(self, resource: int, row: int) -> int:
        """Return the same with the defaults for pods that ask for nothing."""
        if resource not in _DEFAULTED:
            return self.requested_at(resource, row)
        return super().non_zero_requested_at(resource, row) + _amount_at(self._more(_DEFAULTED[resource]), row)

    def free_pods_at(self, row: int) -> int:
        """Return how many more pods one node takes."""
        return super().free_pods_at(row) - _amount_at(self._count, row)

    @property
    def pod_count(self) -> Ints:
        """Return how many pods each node has."""
        column: Ints = super().pod_count + self._count
        return column

    # Who is there

    def pods_on(self, row: int) -> Iterable[PodView]:
        """Return the pods of the node at a position."""
        away = self.listed.slots_away(row) if self.listed is not None else ()
        for pod in super().pods_on(row):
            if pod.uid not in self._removed and pod.slot not in away:
                yield pod
        yield from self._added.values()
        if self._arrived is not None:
            yield from self._arrived.pods.get(self._at(row), ())

    def port_conflicts(self, ports: Iterable[HostPort]) -> Bools:
        """Return on which nodes one of these host ports is taken."""
        wanted = tuple(ports)
        taken = super().port_conflicts(wanted)
        for position in self._with_other_ports(taken):
            held = self._ports_on(position)
            taken[position] = any(ports_conflict(w, h) for w in wanted for h in held)
        return taken

    def _with_other_ports(self, taken: Bools) -> set[int]:
        """Return the positions on which other ports may be held than are in truth."""
        others = set(np.flatnonzero(taken).tolist()) if self.listed is not None else set()
        if self._added or self._ports is not None:
            others.add(0)
        if self._arrived is not None and self._arrived.with_ports:
            assert self.rows is not None
            others |= {at for at, row in enumerate(self.rows.tolist()) if row in self._arrived.with_ports}
        return others

    def _ports_on(self, position: int) -> set[HostPort]:
        if self._ports is not None:
            return self._ports
        return {port for pod in self.pods_on(position) for port in pod.template.ports}


def _amount_of(more: Amount, kept: Ints) -> Amount:
    return more if isinstance(more, int) else more[kept]


def _amount_at(more: Amount, row: int) -> int:
    return more if isinstance(more, int) else int(more[row])
