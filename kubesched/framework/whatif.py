"""The same snapshot with some pods added or removed.

In: a snapshot, some of its rows, pods that come or go. Out: a view of those rows that filters take for the real thing.
The store is not touched: the columns that pods change are copied for these rows, everything else is shared.

Preemption asks "would the pod fit if these were gone", the filter pass with nominated pods "would it still fit if those
came": `filter_with_nominated` is that pass. Many rows are imagined at once as long as no answer for one row depends on
what is imagined on another; `Imagining` knows when that is so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from kubesched.api.requests import HostPort, ports_conflict
from kubesched.cluster import CPU, MEMORY, Bools, Ints, PodView, Snapshot
from kubesched.cluster.pods import PodTemplate
from kubesched.errors import PluginError
from kubesched.framework.nominated import Ahead, coming_to
from kubesched.framework.plugin import Plugin, Scope
from kubesched.framework.ports import Nominations
from kubesched.framework.profile import Profile
from kubesched.framework.state import State
from kubesched.framework.verdicts import Rejections, Verdicts

Reader = Callable[[int], Ints]


class WhatIf(Snapshot):
    """Some rows of a snapshot, with pods of our own imagination. Positions are indices into these rows."""

    __slots__ = ("_added", "_arrived", "_count", "_non_zero", "_ports", "_removed", "_requested")

    _added: dict[int, dict[str, PodView]]
    _arrived: Ahead | None
    _count: Ints
    _non_zero: dict[int, Ints]
    _ports: dict[int, set[HostPort]]
    _removed: set[str]
    _requested: dict[int, Ints]

    @classmethod
    def of(cls, nodes: Snapshot, rows: Ints | Sequence[int]) -> WhatIf:
        """Return a view of some rows that pods can be added to and removed from; what is already imagined stays."""
        view = nodes.take(rows)
        return view if isinstance(view, WhatIf) else cls._over(view)

    @classmethod
    def _over(cls, base: Snapshot) -> WhatIf:
        view = object.__new__(cls)
        base._share_with(view)
        view._count = base.pod_count.copy()
        view._non_zero, view._requested = {}, {}
        view._added, view._removed, view._ports = {}, set(), {}
        view._arrived = None
        return view

    def take(self, rows: Ints | Sequence[int]) -> WhatIf:
        """Return some rows of this view, imagined pods included."""
        kept = np.asarray(rows, dtype=np.int64)
        view = object.__new__(type(self))
        self._share_with(view)
        assert self.rows is not None
        view.rows = self.rows[kept]
        view.n = len(kept)
        view._count = self._count[kept]
        view._non_zero = {resource: column[kept] for resource, column in self._non_zero.items()}
        view._requested = {resource: column[kept] for resource, column in self._requested.items()}
        view._removed = set(self._removed)
        view._added, view._ports = {}, {}
        if self._added or self._ports:
            for new, old in enumerate(kept.tolist()):
                if old in self._added:
                    view._added[new] = dict(self._added[old])
                if old in self._ports:
                    view._ports[new] = set(self._ports[old])
        view._arrived = self._arrived
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

    def arrive(self, ahead: Ahead) -> None:
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


class Imagining:
    """What may be imagined on many rows at once for one pod, and the filters run over it.

    A filter that looks at one row only takes any number of rows. One that keeps counters over the cluster takes them
    too, as long as no pod that comes or goes moves its counters: then its answers stand as they are. Everything else is
    imagined row by row, each with counters of its own.
    """

    def __init__(self, profile: Profile, pod: PodView, state: State, known: Verdicts | None) -> None:
        self.profile = profile
        self.pod = pod
        self.state = state
        self.active = tuple(p for p in profile.filters if p.name not in state.skip_filter)
        self.counting = tuple(p for p in profile.adjusting if p.name not in state.skip_filter)
        alone = {Scope.ROW_NODE, Scope.ROW, Scope.NODES}
        watched = {p.name for p in self.counting if p.implements("is_moved_by")}
        self.by_row = any(p.filter_scope not in alone and p.name not in watched for p in self.active) or any(
            p.name not in watched for p in self.counting)
        """Whether every row must be imagined on its own."""
        self._known: dict[str, Rejections] = {}
        if known is not None and known.nodes.rows is None:
            for name, rejections in known.columns:
                self._known.setdefault(name, rejections)
        self._moved: dict[PodTemplate, bool] = {}

    @property
    def is_remembered(self) -> bool:
        """Return whether what is imagined on a row has the same answer for every pod of the class until the row, or
        who is nominated to it, changes."""
        return not self.counting and all(
            p.filter_scope < Scope.NODES and p.remembers(self.pod) for p in self.active)

    def is_moved_by(self, other: PodView, nodes: Snapshot) -> bool:
        """Return whether counters would change if a pod like this one came or went."""
        moved = self._moved.get(other.template)
        if moved is None:
            moved = self._moved[other.template] = any(
                plugin.is_moved_by(self.pod, other, nodes, self.state) for plugin in self.counting)
        return moved

    def filter(self, imagined: WhatIf, state: State | None = None) -> Verdicts:
        """Run the filters; without a state of its own, answers that no pod changes are taken from what is known."""
        verdicts = Verdicts(imagined)
        for plugin in self.active:
            verdicts.add(plugin.name, self._rejections(plugin, imagined, state))
            if verdicts.error is not None:
                name, text = verdicts.error
                raise PluginError(name, "Filter", f'running "{name}" filter plugin: {text}', self.pod.key)
        return verdicts

    def _rejections(self, plugin: Plugin, imagined: WhatIf, state: State | None) -> Rejections:
        stands = plugin.filter_scope in (Scope.ROW_NODE, Scope.NODES) or (
            state is None and plugin.filter_scope is Scope.DOMAINS)
        known = self._known.get(plugin.name) if stands else None
        if known is None or known.errors:
            return self.profile.filter_one(plugin, self.pod, imagined, state or self.state)
        if known.bits is None:
            return known
        assert imagined.rows is not None
        return Rejections(known.bits[imagined.rows], known.reasons)

    def fits(self, imagined: WhatIf) -> Bools:
        """Return which of many imagined rows do, given that they did with fewer pods on them: only what pods change is
        asked again."""
        fitting = np.ones(imagined.n, dtype=np.bool_)
        for plugin in self.active:
            if plugin.filter_scope is Scope.ROW:
                rejections = self.profile.filter_one(plugin, self.pod, imagined, self.state)
                if rejections.errors:
                    text = next(iter(rejections.errors.values()))
                    raise PluginError(plugin.name, "Filter", f'running "{plugin.name}" filter plugin: {text}',
                                      self.pod.key)
                if rejections.bits is not None:
                    fitting &= rejections.bits == 0
        return fitting


def filter_with_nominated(profile: Profile, pod: PodView, nodes: Snapshot, state: State, considered: Bools | None,
                          nominations: Nominations | None) -> Verdicts:
    """Run the filters; where pods of equal or higher priority are nominated to a node, the pod must fit with them too.

    Both passes must succeed: a nominated pod may be what another pod's affinity needs, and may never come.
    """
    verdicts = profile.filter(pod, nodes, state, considered)
    refuse_for_nominated(profile, pod, nodes, state, nominations, verdicts)
    return verdicts


def refuse_for_nominated(profile: Profile, pod: PodView, nodes: Snapshot, state: State,
                         nominations: Nominations | None, verdicts: Verdicts) -> None:
    """Refuse those nodes, of the considered ones, that would not do with the pods nominated to them."""
    if nominations is None:
        return
    coming = coming_to(nodes, nominations)
    if not coming:
        return
    ahead = coming.above(pod.priority)
    positions = ahead.rows if nodes.rows is None else np.flatnonzero(ahead.here[nodes.rows])
    if verdicts.considered is not None:
        positions = positions[verdicts.considered[positions]]
    if not len(positions):
        return
    imagining = Imagining(profile, pod, state, verdicts)
    alone = _rows_on_their_own(imagining, ahead, nodes, coming.row_of(pod.uid))
    if alone is not None:
        rows = positions if nodes.rows is None else nodes.rows[positions]
        apart = alone[rows]
        for position, row in zip(positions[apart].tolist(), rows[apart].tolist(), strict=True):
            others = [other for other in ahead.pods[row] if other.uid != pod.uid]
            if others:
                _refuse_with(profile, pod, nodes, state, position, row, others, verdicts)
        positions = positions[~apart]
        if not len(positions):
            return
    imagined = WhatIf.of(nodes, positions)
    imagined.arrive(ahead)
    verdicts.overrule(positions, imagining.filter(imagined))


def _rows_on_their_own(imagining: Imagining, ahead: Ahead, nodes: Snapshot, own_row: int) -> Bools | None:
    """Return the rows of the whole cluster that cannot be imagined together with others; None means no row."""
    if imagining.by_row:
        return np.ones(nodes.total, dtype=np.bool_)
    alone = np.zeros(nodes.total, dtype=np.bool_)
    if own_row >= 0:
        alone[own_row] = True
    if imagining.pod.template.ports and ahead.with_ports:
        alone[list(ahead.with_ports)] = True
    if imagining.counting:
        for row, pods in ahead.pods.items():
            if any(imagining.is_moved_by(other, nodes) for other in pods):
                alone[row] = True
    return alone if alone.any() else None


def _refuse_with(profile: Profile, pod: PodView, nodes: Snapshot, state: State, position: int, row: int,
                 others: Iterable[PodView], verdicts: Verdicts) -> None:
    """Refuse a node if it would not do with the given pods, which may move counters."""
    imagined = WhatIf.of(nodes, [position])
    state = state.clone()
    for other in others:
        imagined.add(other, 0)
        profile.adjust(pod, other, row, 1, nodes, state)
    verdicts.overrule(np.array([position], dtype=np.int64), profile.filter(pod, imagined, state))
