"""Nodes as columns: one row for each node, one array for each fact.

In: API nodes, and the usage of pods as amounts. Out: arrays over all nodes. A label key is a column of value numbers, and
taints are a column with one number for each distinct list of taints. So a plugin judges each distinct value once, and
indexing gives the answer for all rows. Example: of 5,000 nodes all have one of 3 lists of taints. TaintToleration compares
the pod with 3 lists and then takes `refused[taint_set]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kubesched.kube.api import Node, Taint, parse_int64, requests
from kubesched.kube.values import wrapped
from kubesched.scheduler.cluster.columns import Bools, Column, Ints, Table
from kubesched.scheduler.cluster.intern import Leases
from kubesched.scheduler.cluster.journal import ALLOCATABLE, NODE, SPEC
from kubesched.scheduler.cluster.pods import PodTemplate, ResourceName, Resources

ABSENT = -1
KNOWN_FEATURES = frozenset(
    {
        "RestartAllContainersOnContainerExits",
        "UserNamespacesHostNetworkSupport",
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "DRAOptionalNodeOperations",
    }
)
"""The features of a node that this version knows; others are ignored."""


class LabelColumn:
    """One label key over all nodes: `codes` has the number of each node's value, ABSENT if the node lacks the label.

    ABSENT is -1, so a table with one element for each value and a last one for "absent" can be indexed with `codes` directly.
    Example: the values are ssd (0) and hdd (1), `codes` is [0, 0, -1, 1], and the table [True, False, False] for `disk In
    (ssd)` gives [True, True, False, False].
    """

    __slots__ = ("_are_numbers", "_numbers", "_read", "codes", "values")

    def __init__(self, table: Table) -> None:
        self.codes: Column = table.column(np.int64, ABSENT)
        self.values: Leases[str] = Leases("")
        self._read: list[str] = []
        """The values that `_numbers` was computed from."""
        self._numbers: Ints = np.zeros(0, dtype=np.int64)
        self._are_numbers: Bools = np.zeros(0, dtype=np.bool_)

    def numbers(self) -> tuple[Ints, Bools]:
        """Return every value as an integer, and which values are integers. They are parsed only if a value changed."""
        if self._read != self.values.values:
            self._read = list(self.values.values)
            read = [parse_int64(value) for value in self._read]
            self._numbers = np.array([number or 0 for number in read], dtype=np.int64)
            self._are_numbers = np.array([number is not None for number in read])
        return self._numbers, self._are_numbers


@dataclass(slots=True)
class ImageState:
    """One image name: the size that its first holder reported, and the rows that hold it."""

    size: int
    rows: set[int] = field(default_factory=set)


class NodeColumns:
    """The table of nodes. A row's index is a node's number until a node is removed; then the last node takes its row."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self.table = Table()
        self.names: list[str] = []
        self.rows: dict[str, int] = {}
        self.objects: list[Node] = []
        self.offered: list[tuple[ResourceName, ...]] = []
        """Of each row the resources that the node offers."""
        self.allocatable: list[Column] = []
        self.requested: list[Column] = []
        self.non_zero_cpu = self.table.column(np.int64)
        self.non_zero_memory = self.table.column(np.int64)
        self.allowed_pods = self.table.column(np.int64)
        self.pod_count = self.table.column(np.int64)
        self.unschedulable = self.table.column(np.bool_, False)
        self.taint_set = self.table.column(np.int64)
        self.feature_set = self.table.column(np.int64)
        self.taint_sets: Leases[tuple[Taint, ...]] = Leases((), is_first=True)
        self.feature_sets: Leases[frozenset[str]] = Leases(frozenset(), is_first=True)
        self.labels: dict[str, LabelColumn] = {}
        self.images: dict[str, ImageState] = {}
        self.track_resources()

    def __len__(self) -> int:
        return self.table.n

    def track_resources(self) -> None:
        """Give every known resource its two columns."""
        while len(self.requested) < len(self.resources):
            self.allocatable.append(self.table.column(np.int64))
            self.requested.append(self.table.column(np.int64))

    def add(self, node: Node) -> int:
        """Append a node and return its row."""
        row = self.table.append()
        name = node.metadata.name
        self.names.append(name)
        self.rows[name] = row
        self.objects.append(node)
        self.offered.append(())
        self._write_allocatable(row, requests.node_allocatable(node))
        self._write_labels(row, {}, node.metadata.labels)
        self._write_rest(row, node)
        self._hold_images(row, node)
        return row

    def replace(self, row: int, node: Node) -> tuple[int, frozenset[str]]:
        """Write a changed node into its row; return the kinds of change that matter to a decision, and the labels that changed.

        A kubelet writes the status of its node every few minutes. Mostly nothing of it matters: then no kind is returned,
        nothing is written to the journal, and all cached answers hold.
        """
        old = self.objects[row]
        self.objects[row] = node
        what, labels = 0, frozenset[str]()
        if _offer(old) != _offer(node):
            for column in self.allocatable:
                column.data[row] = 0
            self._write_allocatable(row, requests.node_allocatable(node))
            what |= ALLOCATABLE
        before, after = old.metadata.labels, node.metadata.labels
        if before != after:
            self._write_labels(row, before, after)
            labels = frozenset(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
            what |= NODE
        if (old.spec != node.spec) or _features(old) != _features(node):
            self._write_rest(row, node)
            what |= NODE | SPEC if old.spec != node.spec else NODE
        if node_images(old) != node_images(node):
            self._drop_images(row, old)
            self._hold_images(row, node)
            what |= NODE
        return what, labels

    def remove(self, row: int) -> int:
        """Remove a row; the last row takes its place, and its former index is returned."""
        self._drop_images(row, self.objects[row])
        self.taint_sets.give_back(self.taint_set.data.item(row))
        self.feature_sets.give_back(self.feature_set.data.item(row))
        self._write_labels(row, self.objects[row].metadata.labels, {})
        del self.rows[self.names[row]]
        last = self.table.remove(row)
        if last != row:
            self.names[row] = self.names[last]
            self.objects[row] = self.objects[last]
            self.offered[row] = self.offered[last]
            self.rows[self.names[row]] = row
            for name in node_images(self.objects[row]):
                state = self.images.get(name)
                if state is not None and last in state.rows:
                    state.rows.remove(last)
                    state.rows.add(row)
        self.names.pop()
        self.objects.pop()
        self.offered.pop()
        return last

    def restore(self, node: Node, row: int) -> None:
        """Undo `remove`: write a node into the row that it had; the node that took the row gets the last one again."""
        last = self.add(node)
        if last == row:
            return
        for column in self.table.columns:
            column.data[[row, last]] = column.data[[last, row]]
        names, objects, offered = self.names, self.objects, self.offered
        names[row], names[last] = names[last], names[row]
        objects[row], objects[last] = objects[last], objects[row]
        offered[row], offered[last] = offered[last], offered[row]
        self.rows[self.names[row]], self.rows[self.names[last]] = row, last
        for new_row, old_row in ((last, row), (row, last)):
            for name in node_images(self.objects[new_row]):
                self.images[name].rows.discard(old_row)
        for new_row in (row, last):
            for name in node_images(self.objects[new_row]):
                self.images[name].rows.add(new_row)

    def use(self, row: int, template: PodTemplate, sign: int) -> None:
        """Add what a pod of a template uses to a row (+1), or subtract it (-1)."""
        requested = self.requested
        more = [(self.non_zero_cpu, template.non_zero_cpu), (self.non_zero_memory, template.non_zero_memory)]
        for rid, amount in template.usage:
            more.append((requested[rid], amount))
        for column, amount in more:
            try:
                column.cells[row] += sign * amount
            except ValueError:  # it does not fit: the upper bits are lost, as in the reference
                column.cells[row] = wrapped(column.cells[row] + sign * amount)
        self.pod_count.cells[row] += sign

    def codes(self, key: str) -> Ints | None:
        """Return the value numbers of a label key over all nodes, or None if no node has the key."""
        column = self.labels.get(key)
        return column.codes.live if column is not None else None

    def _write_labels(self, row: int, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Write a node's labels; a label that no node has any more has no column."""
        for key, value in after.items():
            if before.get(key) != value:
                column = self.labels.get(key)
                if column is None:
                    column = self.labels[key] = LabelColumn(self.table)
                old = column.codes.data.item(row)
                column.codes.data[row] = column.values.take(value)
                if old != ABSENT:
                    column.values.give_back(old)
        for key in before.keys() - after.keys():
            column = self.labels[key]
            column.values.give_back(column.codes.data.item(row))
            column.codes.data[row] = ABSENT
            if column.values.is_empty:
                del self.labels[key]
                self.table.columns.remove(column.codes)

    def _write_allocatable(self, row: int, offer: Mapping[str, int]) -> None:
        self.allowed_pods.data[row] = max(offer.get("pods", 0), -(1 << 62))  # less the pods that are there, it may not wrap
        self.offered[row] = tuple(self.resources.of(name) for name in offer if name != "pods")
        self.track_resources()
        for resource in self.offered[row]:
            self.allocatable[resource.number].data[row] = offer[resource.name]

    def _write_rest(self, row: int, node: Node) -> None:
        self.unschedulable.data[row] = node.spec.unschedulable
        before = self.taint_set.data.item(row)
        self.taint_set.data[row] = self.taint_sets.take(node.spec.taints)
        self.taint_sets.give_back(before)
        before = self.feature_set.data.item(row)
        self.feature_set.data[row] = self.feature_sets.take(_features(node))
        self.feature_sets.give_back(before)

    def _hold_images(self, row: int, node: Node) -> None:
        for name, size in node_images(node).items():
            state = self.images.get(name)
            if state is None:
                state = self.images[name] = ImageState(size)
            state.rows.add(row)

    def _drop_images(self, row: int, node: Node) -> None:
        for name in node_images(node):
            state = self.images.get(name)
            if state is not None:
                state.rows.discard(row)
                if not state.rows:
                    del self.images[name]


def _offer(node: Node) -> Mapping[str, object]:
    return node.status.allocatable


def _features(node: Node) -> frozenset[str]:
    return frozenset(node.status.declared_features) & KNOWN_FEATURES


def node_images(node: Node) -> dict[str, int]:
    """Return the size of each image of a node by its names."""
    held: dict[str, int] = {}
    for image in node.status.images:
        for name in image.names:
            held.setdefault(name, image.size_bytes)
    return held
