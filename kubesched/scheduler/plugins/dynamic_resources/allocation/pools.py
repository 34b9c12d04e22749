"""The pools of devices that each node reaches.

A driver publishes ResourceSlices; those with the same (driver, pool) are one pool. A slice names its node, selects nodes, or is
for all nodes, or each of its devices does that for itself. Nodes that reach the same slices in the same way are one *group*,
and everything is worked out once for each group.

    slice s1: node n1      slice s2: node n2      slice s3: nodes with zone=a      n1 and n3 are in zone a, n2 and n4 are not
    groups: {n1: s1 + s3}, {n2: s2}, {n3: s3}, {n4: nothing}

Of a pool only the newest generation counts. A pool with missing slices is incomplete, and one that contradicts itself (a device
name twice, an unknown counter) is invalid. Neither gives devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from kubesched.kube.api import DeviceTaintRule, ResourceSlice, compile_node_selector
from kubesched.kube.cel import FactBook
from kubesched.scheduler.cluster import (
    NODE,
    Bools,
    Change,
    DeviceId,
    Ints,
    ObjectChange,
    Objects,
    PoolId,
    Reader,
    Snapshot,
    match_node_selector,
)
from kubesched.scheduler.plugins.dynamic_resources.allocation.devices import Counters, DeviceView, SliceView, declared_counters
from kubesched.scheduler.plugins.dynamic_resources.args import Features

GroupKey = tuple[bytes, tuple[int, ...], tuple[str, ...]]
"""(bits of the ways by selector, ways that name the node, names of the node's own slices)"""

OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"
"""The feature of a node that accepts devices whose driver needs no calls on the node."""


@dataclass(frozen=True, slots=True)
class Pool:
    """One pool as a group of nodes sees it."""

    id: PoolId
    devices: tuple[DeviceView, ...] = ()
    elsewhere: tuple[DeviceView, ...] = ()
    """Devices of the pool that these nodes do not reach; they consume the same counters."""
    counters: Counters = field(default_factory=dict)
    is_incomplete: bool = False
    invalid: str = ""

    @property
    def is_usable(self) -> bool:
        """Return whether devices may be taken from the pool."""
        return not self.is_incomplete and not self.invalid

    def __str__(self) -> str:
        return f"{self.id[0]}/{self.id[1]}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device of a group, in the order of the search. `is_reachable`: False if it selects nodes itself, and not these."""

    device: DeviceView
    pool: Pool
    is_reachable: bool = True


class Group:
    """Nodes that reach the same devices in the same way."""

    def __init__(self, pools: Sequence[Pool], unreachable: Set[int], error: str | None, skips_operations: bool) -> None:
        self.skips_operations = skips_operations
        """Whether the nodes declare OPTIONAL_NODE_OPERATIONS."""
        self.pools = pools
        self.error = error
        self.has_invalid = any(pool.invalid for pool in pools)
        self.candidates = tuple(
            Candidate(device, pool, id(device) not in unreachable)
            for pool in pools
            if pool.is_usable
            for device in pool.devices
        )


@dataclass(slots=True)
class _Ways:
    """How rows reach slices that do not name one node. Each way has a number: way i leads to the slice, or device, `to[i]`.

    `columns` has for each way by selector the rows that take it, `named` the ways of devices that name a node, and `patterns`
    the bits of all columns for each row: rows with equal bits reach the same slices.
    """

    to: list[tuple[SliceView, DeviceView | None]] = field(default_factory=list)
    columns: list[tuple[int, Bools]] = field(default_factory=list)
    named: dict[str, list[int]] = field(default_factory=dict)
    patterns: Sequence[bytes] = ()


class Pools:
    """All pools and groups. `epoch` changes when all groups are new."""

    def __init__(self, objects: Objects, features: Features) -> None:
        self._objects = objects
        self.features = features
        self._facts = FactBook(lists=features.list_attributes, newer=features.behaviour.speaks_newer_cel)
        # Three readers of changes: versions tell cheaply that nothing changed, `_slices` has the slices that did,
        # `_journal` the nodes.
        self._versions: tuple[int, int] | None = None
        self._views: dict[str, SliceView] = {}
        self._slices: Reader[ObjectChange] = Reader()
        self._journal: Reader[Change] = Reader()
        self._rules: tuple[DeviceTaintRule, ...] = ()
        self._reset()
        self.epoch = 0
        self._nodes: Snapshot | None = None
        self.group_of_row: Ints = np.zeros(0, dtype=np.int64)
        self.in_use: Set[int] = frozenset()
        """The groups that have nodes. A group that was replaced stays in `groups` without nodes."""

    def _reset(self) -> None:
        # Numbers of groups are indexes into `groups` and stay valid until the next reset, because outcomes are cached
        # by them. So a group that is replaced is not removed; `_take_in_changes` asks for a reset when too many have no
        # nodes.
        self.groups: list[Group] = []
        self.groups_of_pool: dict[PoolId, list[int]] = {}
        self._by_key: dict[GroupKey, int] = {}
        # For `_forget_slice`: when a slice of one node changes, the keys that contain it go, and the next call makes a
        # new group.
        self._keys_of_slice: dict[str, list[GroupKey]] = {}
        self._pools: dict[PoolId, dict[tuple[str, ...], Pool | None]] = {}
        self._by_pool: dict[PoolId, list[SliceView]] = {}
        self._local: dict[str, list[SliceView]] = {}
        self._wide: list[SliceView] = []
        self._counters: dict[PoolId, list[SliceView]] = {}
        self._broken_elsewhere: dict[PoolId, Pool] = {}
        self._error: str | None = None
        self._has_skips = False
        self._journal.forget()
        self._ways = _Ways()
        self._regroup_nodes: set[str] = set()

    def rows(self, nodes: Snapshot) -> Ints:
        """Return the group of every row of the view."""
        self.follow(nodes)
        return self.group_of_row if nodes.rows is None else self.group_of_row[nodes.rows]

    def follow(self, nodes: Snapshot) -> None:
        """Follow the changes of slices and nodes; a changed `group_of_row` is a new array."""
        # First the slices, then the nodes. A change of one node's own slices touches that node alone; a change of a
        # slice for several nodes, or of a taint rule, resets all groups. Nodes matter when they come, go, or change
        # labels that a slice selects.
        versions = self._objects.version(ResourceSlice), self._objects.version(DeviceTaintRule)
        if versions != self._versions:
            if not self._take_in_changes():
                self._read_slices()
            self._versions = versions
        # `_regroup` makes a new array also for few rows: readers keep the old one with their cached answers, and see
        # the change by identity.
        changes = self._journal.changed(nodes.journal)
        if changes is None or any(change.what & NODE and self._regroups(change) for change in changes):
            self._find_ways(nodes.everything())
            self._regroup(np.zeros(nodes.total, dtype=np.int64), range(nodes.total), nodes.everything())
        elif self._regroup_nodes:
            rows = map(nodes.everything().row, self._regroup_nodes)
            self._regroup(self.group_of_row.copy(), [row for row in rows if row >= 0], nodes.everything())
        self._nodes = nodes

    def group_of(self, node_name: str) -> int:
        """Return the group of a node of the last view, or -1."""
        row = self._nodes.everything().row(node_name) if self._nodes is not None else -1
        return int(self.group_of_row[row]) if 0 <= row < len(self.group_of_row) else -1

    def published(self, key: DeviceId) -> DeviceView | None:
        """Return a published device, on whatever node."""
        slices = self._by_pool.get((key.driver, key.pool), ())
        return next((device for view in slices for device in view.devices if device.id == key), None)

    def _read_slices(self) -> None:
        """Read all slices again and start with no groups. Views of unchanged slices are reused, unless the taint rules
        changed."""
        rules = tuple(self._objects.all(DeviceTaintRule)) if self.features.taint_rules else ()
        # A view holds parsed quantities and compiled facts, which is most of the work. Taint rules are part of a
        # device's taints, so after a change of rules all views are made again.
        before = self._views if rules == self._rules else {}
        self._reset()
        self.epoch += 1
        self._views, self._rules = {}, rules
        for published in self._objects.all(ResourceSlice):
            view = before.get(published.metadata.name)
            if view is None or view.published is not published:
                view = SliceView(published, self._facts, rules)
            self._sort_in(view)
        for pool, slices in self._counters.items():
            found = self._pool(pool, slices)
            if found is not None and not found.is_usable:
                self._broken_elsewhere[pool] = found

    def _take_in_changes(self) -> bool:
        """Update the groups of the nodes whose own slices changed; return False if everything must be read again."""
        changes = self._slices.changed(self._objects.log(ResourceSlice))
        if self._versions is None or self.features.taint_rules:
            return False
        if len(self.groups) > 4 * len(self.group_of_row) + 1000:
            return False  # mostly groups without nodes
        # More changes than slices: to read everything costs less.
        if changes is None or len(changes) > len(self._views):
            return False
        for before, after in changes:
            some = after if after is not None else before
            assert some is not None
            old = self._views.get(some.metadata.name)
            view = SliceView(some, self._facts, ()) if after is not None else None
            # A pool may consist of several slices, and its state (complete, newest generation) depends on all of them.
            # So all slices of the pool must be on one node each, or the change may concern groups of other nodes.
            touched = [each for each in (old, view) if each is not None]
            beside = [each for mine in touched for each in self._by_pool.get(mine.pool, ())]
            if not all(each.is_of_one_node for each in (*touched, *beside)):
                return False
            for each in (*touched, *beside):
                self._forget_slice(each)
            if old is not None:
                del self._views[old.name]
                self._by_pool[old.pool].remove(old)
                self._local[old.spec.node_name or ""].remove(old)
            if view is not None:
                self._sort_in(view)
        return True

    def _forget_slice(self, view: SliceView) -> None:
        for key in self._keys_of_slice.pop(view.name, ()):
            self._by_key.pop(key, None)
        self._pools.pop(view.pool, None)
        self._regroup_nodes.add(view.spec.node_name or "")

    def _sort_in(self, view: SliceView) -> None:
        """Put a slice into the indexes: by pool, by node (`_local`) or for several nodes (`_wide`), and counters by pool."""
        spec, with_partitions = view.spec, self.features.partitionable_devices
        self._views[view.name] = view
        self._has_skips = self._has_skips or bool(spec.skip_node_operations)
        self._by_pool.setdefault(view.pool, []).append(view)
        if spec.shared_counters:
            self._counters.setdefault(view.pool, []).append(view)
            if not (with_partitions and self.features.behaviour.ignores_distant_counters):
                return
        # A slice with counters counts as reached too: if the slices with its devices are missing, the pool is incomplete.
        if spec.node_name:
            self._local.setdefault(spec.node_name, []).append(view)
        elif spec.all_nodes or spec.node_selector is not None or (spec.per_device_node_selection and with_partitions):
            self._wide.append(view)

    # Grouping

    def _regroups(self, change: Change) -> bool:
        """Return whether a changed node may belong to another group now: by its labels, or by its declared features."""
        if not change.labels:
            return self._has_skips
        return any(view.spec.node_selector is not None or view.spec.per_device_node_selection for view in self._wide)

    def _find_ways(self, nodes: Snapshot) -> None:
        """Set `_ways`."""
        self._error = None
        self._ways = ways = _Ways()
        #     wide slices: s3 selects zone=a; s4 has devices d1 (node n2) and d2 (zone=b)
        #     ways: 0 -> s3, 1 -> s4 by d1, 2 -> s4 by d2
        #     columns: for ways 0 and 2 the rows with that zone; named: n2 -> [1]
        for view in self._wide:
            for device in view.devices if view.spec.per_device_node_selection else (None,):
                if device is not None and device.place.node_name:
                    ways.named.setdefault(device.place.node_name, []).append(len(ways.to))
                else:
                    ways.columns.append((len(ways.to), self._column(view, device, nodes)))
                ways.to.append((view, device))
        # The bits of all columns are packed by row: 20 ways take 3 bytes for each row, and equal bytes mean the same ways. An
        # error of a selector concerns all nodes, so every pattern has a mark then: it must not lead to a group from before.
        columns = np.array([column for _, column in ways.columns], dtype=np.bool_).reshape(len(ways.columns), nodes.n)
        error_mark = b"!" if self._error else b""
        ways.patterns = [error_mark + bits.tobytes() for bits in np.packbits(columns, axis=0).T]

    def _regroup(self, group_of_row: Ints, rows: Sequence[int], nodes: Snapshot) -> None:
        """Set the groups of some rows in the column of all rows."""
        group_of_row[rows] = [self._group_for(row, nodes) for row in rows]
        self.group_of_row = group_of_row
        self._regroup_nodes.clear()
        self.in_use = set(np.unique(group_of_row).tolist())

    def _group_for(self, row: int, nodes: Snapshot) -> int:
        """Return the group of a row, a new one if no row with the same slices was seen. The key has everything that decides
        which devices a node reaches."""
        # Equal keys mean equal devices, in the same order. A cluster of 10,000 nodes with network-attached devices by
        # zone has a handful of groups; one with own GPUs on each node has 10,000, which is why groups of single nodes
        # are replaced one by one.
        name = nodes.name(row)
        ways, local = self._ways, self._local.get(name, ())
        own = tuple(ways.named.get(name, ()))
        # Nodes differ by this feature only if a slice wants it, so clusters without such slices do not get twice the
        # groups.
        skips = not self._has_skips or OPTIONAL_NODE_OPERATIONS in nodes.node(row).status.declared_features
        key: GroupKey = (ways.patterns[row] + (b"" if skips else b"-"), own, tuple(view.name for view in local))
        group = self._by_key.get(key)
        if group is None:
            reached = [ways.to[way] for way in (*own, *(way for way, column in ways.columns if column[row]))]
            group = self._by_key[key] = self._new_group(local, reached, skips)
            for view in local:
                self._keys_of_slice.setdefault(view.name, []).append(key)
        return group

    def _column(self, view: SliceView, device: DeviceView | None, nodes: Snapshot) -> Bools:
        """Return the rows that a slice or device reaches by its node selector. An invalid selector is an error of all
        groups."""
        # Neither field set means no node, as in kube-scheduler, which leaves such a slice out.
        place = device.place if device is not None else view.spec
        if place.all_nodes or place.node_selector is None:
            return np.full(nodes.n, bool(place.all_nodes), dtype=np.bool_)
        matcher = compile_node_selector(place.node_selector)
        if matcher.error is not None:
            what = f"device {device.id} in slice {view.name}" if device is not None else f"slice {view.name}"
            self._error = self._error or (
                f"gather pool information: failed to perform node selection for {what}: {matcher.error}"
            )
        return match_node_selector(matcher, nodes)

    def _new_group(
        self, local: Sequence[SliceView], reached: list[tuple[SliceView, DeviceView | None]], skips_operations: bool
    ) -> int:
        """Make a group from the slices of one node and the ways to other slices; return its number. Pools with devices that
        have binding conditions come last, the others are in the order of driver and name."""
        slices: dict[PoolId, dict[str, SliceView]] = {}
        for view in (*local, *(view for view, _ in reached)):
            slices.setdefault(view.pool, {})[view.name] = view
        # A slice with devices for several nodes is part of the pool as a whole. Its devices that these nodes do not reach stay
        # in the pool, because their names and counters count, but no request can get them.
        there = {id(device) for _, device in reached if device is not None}
        unreachable = {id(device) for view, way in reached if way is not None for device in view.devices} - there
        here = {view.spec.node_name for view in local}
        # Slices with counters reach every node that reaches a device of the pool. Kept quirk: 1.36 takes also those
        # that name another node; since 1.37 they are left out (`ignores_distant_counters`).
        for key, views in slices.items():
            for view in self._counters.get(key, ()):
                owner = view.spec.node_name
                if not (self.features.behaviour.ignores_distant_counters and owner and owner not in here):
                    views[view.name] = view
        found = []
        if not self.features.behaviour.ignores_distant_counters:
            found = [pool for key, pool in self._broken_elsewhere.items() if key not in slices]
        for key, views in slices.items():
            seen = self._pool(key, views.values())
            if seen is not None:
                found.append(seen)
        binding = self.features.binding_conditions
        # Kept order of kube-scheduler: devices that are ready at once are preferred to those that must be prepared
        # first. The order of pools decides which solution is found first.
        found.sort(key=lambda pool: (binding and any(d.binding_conditions for d in pool.devices), pool.id))
        index = len(self.groups)
        self.groups.append(Group(found, unreachable, self._error, skips_operations))
        for pool in found:
            if pool.devices:
                self.groups_of_pool.setdefault(pool.id, []).append(index)
        return index

    # Pools

    def _pool(self, key: PoolId, relevant: Iterable[SliceView]) -> Pool | None:
        """Return a pool as nodes that reach these slices see it; None if a newer generation is on its way."""
        seen = [view for view in relevant if not self._is_ignored(view)]
        if not seen:
            return None
        # While a driver publishes a new generation, old and new slices exist side by side. Only the newest that these
        # nodes reach counts.
        newest = max(view.spec.pool.generation for view in seen)
        kept = sorted((view for view in seen if view.spec.pool.generation == newest), key=lambda view: view.name)
        built, names = self._pools.setdefault(key, {}), tuple(view.name for view in kept)
        if names not in built:
            built[names] = self._build(key, newest, kept)
        return built[names]

    def _is_ignored(self, view: SliceView) -> bool:
        """Return whether a slice has compatibility groups while their gate is off; without it the pool is incomplete."""
        if self.features.compatibility_groups:
            return False
        return any(groups for device in view.devices for groups in device.compatible.values())

    def _build(self, key: PoolId, newest: int, kept: list[SliceView]) -> Pool | None:
        """Build a pool from the newest slices that a group reaches. It is incomplete if slices are missing, invalid if it
        contradicts itself, and None while a newer generation replaces it."""
        everything = self._by_pool[key]
        wanted = kept[0].spec.pool.resource_slice_count
        devices = tuple(device for view in kept for device in view.devices)
        # Fewer slices than `resourceSliceCount`: some are for other nodes, or not published yet. If a newer generation
        # exists for other nodes, this one is on its way out and gives nothing. If all slices of the generation exist
        # somewhere, the pool is complete.
        if len(kept) != wanted:
            if any(view.spec.pool.generation > newest for view in everything):
                return None
            if sum(view.spec.pool.generation == newest and not self._is_ignored(view) for view in everything) != wanted:
                return Pool(key, devices, is_incomplete=True)
        mine = set(kept)
        distant = [view for view in everything if view.spec.pool.generation == newest and view not in mine]
        elsewhere = tuple(device for view in distant for device in view.devices)
        counters: Counters = {}
        sets: set[str] = set()
        invalid = _duplicate(device.id.device for device in devices)
        # If the pool is not complete without them, counters in slices for other nodes count too.
        for view in (*kept, *(distant if len(kept) != wanted else ())):
            for declared in view.spec.shared_counters:
                if declared.name in sets:
                    invalid = invalid or f"duplicate counter set name {declared.name}"
                sets.add(declared.name)
            counters.update(declared_counters(view))
        for device in (*devices, *elsewhere) if self.features.partitionable_devices else ():
            missing = next((name for name in device.compatible if name not in sets), None)
            unknown = next((use for use in device.consumes if use not in counters), None)
            if missing is not None:
                invalid = invalid or f"counter set {missing} not found"
            if unknown is not None:
                invalid = invalid or f"counter {unknown[1]} not found in counter set {unknown[0]}"
        return Pool(key, devices, elsewhere, counters, invalid=invalid)


def _duplicate(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return f"duplicate device name {name}"
        seen.add(name)
    return ""
