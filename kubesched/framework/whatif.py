"""The same snapshot with some pods added or removed.

In: a snapshot, some of its rows, pods that come or go. Out: a view of those rows that filters take for the real thing.
The store is not touched: the columns that pods change are copied for these rows, everything else is shared.

Preemption asks "would the pod fit if these were gone", the filter pass with nominated pods "would it still fit if those
came": `filter_with_nominated` is that pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kubesched.api.requests import HostPort, ports_conflict
from kubesched.cluster import CPU, MEMORY, Bools, Ints, PodView, Snapshot
from kubesched.framework.ports import Nominations
from kubesched.framework.profile import Profile
from kubesched.framework.state import State
from kubesched.framework.verdicts import Verdicts


class WhatIf(Snapshot):
    """Some rows of a snapshot, with pods of our own imagination. Positions are indices into these rows."""

    __slots__ = ("_added", "_count", "_non_zero_cpu", "_non_zero_memory", "_ports", "_removed", "_requested")

    _added: dict[int, dict[str, PodView]]
    _removed: set[str]
    _requested: dict[int, Ints]
    _count: Ints
    _non_zero_cpu: Ints
    _non_zero_memory: Ints
    _ports: dict[int, set[HostPort]]

    @classmethod
    def of(cls, nodes: Snapshot, rows: Ints | Sequence[int]) -> WhatIf:
        """Return a view of some rows that pods can be added to and removed from."""
        base = nodes.take(rows)
        view = object.__new__(cls)
        base._share_with(view)
        view._count = base.pod_count.copy()
        view._non_zero_cpu = base.non_zero_requested(CPU).copy()
        view._non_zero_memory = base.non_zero_requested(MEMORY).copy()
        view._requested = {}
        view._added = {}
        view._removed = set()
        view._ports = {}
        return view

    def take(self, rows: Ints | Sequence[int]) -> Snapshot:
        """Return some rows of this view, imagined pods included."""
        kept = np.asarray(rows, dtype=np.int64)
        view = object.__new__(WhatIf)
        self._share_with(view)
        assert self.rows is not None
        view.rows = self.rows[kept]
        view.n = len(kept)
        view._count = self._count[kept]
        view._non_zero_cpu = self._non_zero_cpu[kept]
        view._non_zero_memory = self._non_zero_memory[kept]
        view._requested = {resource: column[kept] for resource, column in self._requested.items()}
        view._added = {new: dict(self._added[old]) for new, old in enumerate(kept.tolist()) if old in self._added}
        view._removed = set(self._removed)
        view._ports = {new: set(self._ports[old]) for new, old in enumerate(kept.tolist()) if old in self._ports}
        return view

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

    def _use(self, pod: PodView, position: int, sign: int) -> None:
        template = pod.template
        for resource, amount in template.usage:
            column = self._requested.get(resource)
            if column is None:
                column = self._requested[resource] = super().requested(resource).copy()
            column[position] += sign * amount
        self._non_zero_cpu[position] += sign * template.non_zero_cpu
        self._non_zero_memory[position] += sign * template.non_zero_memory
        self._count[position] += sign

    def requested(self, resource: int) -> Ints:
        """Return what the pods ask for, imagined ones included."""
        column = self._requested.get(resource)
        return column if column is not None else super().requested(resource)

    def non_zero_requested(self, resource: int) -> Ints:
        """Return what the pods ask for, with the defaults for those that ask for nothing."""
        if resource == CPU:
            return self._non_zero_cpu
        return self._non_zero_memory if resource == MEMORY else self.requested(resource)

    def requested_at(self, resource: int, row: int) -> int:
        """Return what the pods of one node ask for, imagined ones included."""
        return int(self.requested(resource)[row])

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

    def port_conflicts(self, ports: Iterable[HostPort]) -> Bools:
        """Return on which nodes one of these host ports is taken."""
        wanted = tuple(ports)
        taken = super().port_conflicts(wanted)
        for position in self._added.keys() | self._ports.keys():
            held = self._ports_on(position)
            taken[position] = any(ports_conflict(w, h) for w in wanted for h in held)
        return taken

    def _ports_on(self, position: int) -> set[HostPort]:
        held = self._ports.get(position)
        if held is None:
            held = self._ports[position] = {port for pod in self.pods_on(position) for port in pod.template.ports}
        return held


def filter_with_nominated(profile: Profile, pod: PodView, nodes: Snapshot, state: State, considered: Bools | None,
                          nominations: Nominations | None) -> Verdicts:
    """Run the filters; where pods of equal or higher priority are nominated to a node, the pod must fit with them too.

    Both passes must succeed: a nominated pod may be what another pod's affinity needs, and may never come.
    """
    verdicts = profile.filter(pod, nodes, state, considered)
    if nominations is None:
        return verdicts
    coming: dict[int, list[PodView]] = {}
    for node_name in nominations.nodes():
        row = nodes.row(node_name)
        if row >= 0 and (considered is None or considered[row]):
            ahead = [other for other in nominations.on_node(node_name)
                     if other.priority >= pod.priority and other.uid != pod.uid]
            if ahead:
                coming[row] = ahead
    if not coming:
        return verdicts
    if any(plugin.name not in state.skip_filter for plugin in profile.adjusting):
        for row, others in coming.items():
            _refuse_with(profile, pod, nodes, state, {row: others}, verdicts)
    else:
        _refuse_with(profile, pod, nodes, state, coming, verdicts)
    return verdicts


def _refuse_with(profile: Profile, pod: PodView, nodes: Snapshot, state: State, coming: dict[int, list[PodView]],
                 verdicts: Verdicts) -> None:
    """Refuse those nodes that would not do if the given pods came to them."""
    rows = np.array(list(coming), dtype=np.int64)
    imagined = WhatIf.of(nodes, rows)
    adjusts = len(coming) == 1
    state = state.clone() if adjusts else state
    for position, (row, others) in enumerate(coming.items()):
        whole_row = row if nodes.rows is None else int(nodes.rows[row])
        for other in others:
            imagined.add(other, position)
            if adjusts:
                profile.adjust(pod, other, whole_row, 1, nodes, state)
    verdicts.overrule(rows, profile.filter(pod, imagined, state))
