"""The snapshot: a read-only view of the store's columns, which a scheduling cycle works on.

In: the store's columns. Out: arrays over all nodes, or over some of them. `take(rows)` returns the same view with fewer rows,
so a plugin that answers for all nodes also answers for three of them, in the same code. Nothing is copied: when the store
changes, the snapshot changes. Its arrays refuse to be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from kubesched.kube.api import HostPort, Node, Taint
from kubesched.scheduler.cluster.columns import Array, Bools, Codes, Column, Ints
from kubesched.scheduler.cluster.nodes import ABSENT, ImageState, LabelColumn, NodeColumns
from kubesched.scheduler.cluster.pods import CPU, MEMORY, PodView, Templates
from kubesched.scheduler.cluster.pods_on_node import NOBODY, PodsOnNode

if TYPE_CHECKING:
    from kubesched.scheduler.cluster.journal import Journal
    from kubesched.scheduler.cluster.objects import Objects
    from kubesched.scheduler.cluster.slots import PodSlots
    from kubesched.scheduler.cluster.topology import VisitOrder


class ClusterTables:
    """What every view of the cluster shares: the store's tables, borrowed."""

    __slots__ = ("journal", "nodes", "objects", "on_node", "order", "slots", "structure", "templates")

    def __init__(
        self,
        nodes: NodeColumns,
        slots: PodSlots,
        objects: Objects,
        templates: Templates,
        journal: Journal,
        order: VisitOrder,
        on_node: Mapping[str, PodsOnNode],
        structure: int,
    ) -> None:
        self.nodes = nodes
        self.slots = slots
        self.objects = objects
        self.templates = templates
        self.journal = journal
        self.order = order
        self.on_node = on_node
        self.structure = structure


class Snapshot:
    """The cluster as arrays, with `n` rows of `total` nodes.

    `rows` None means all nodes. Otherwise row i of this view is row `rows[i]` of the whole cluster. Most methods take rows of
    the view; those that take or return rows of the whole cluster say so.
    """

    __slots__ = (
        "_nodes",
        "_on_node",
        "journal",
        "n",
        "objects",
        "order",
        "rows",
        "slots",
        "structure",
        "templates",
        "total",
        "whole",
    )

    def __init__(self, whole: ClusterTables, rows: Ints | None = None) -> None:
        self.whole = whole
        self._nodes = whole.nodes
        self._on_node = whole.on_node
        self.slots = whole.slots
        self.objects = whole.objects
        self.templates = whole.templates
        self.journal = whole.journal
        self.order = whole.order
        self.structure = whole.structure
        self.rows = rows
        self.total = len(whole.nodes)
        self.n = self.total if rows is None else len(rows)

    def take(self, rows: Ints | Sequence[int]) -> Snapshot:
        """Return the same view of some rows, in the order given; row i of it is row `rows[i]` of this one."""
        return Snapshot(self.whole, self._rows_at(rows))

    def _rows_at(self, rows: Ints | Sequence[int]) -> Ints:
        """Return rows of this view as rows of the whole cluster."""
        chosen = np.asarray(rows, dtype=np.int64)
        return chosen if self.rows is None else self.rows[chosen]

    def _column(self, column: Column) -> Array:
        return column.live if self.rows is None else column.data[self.rows]

    # Nodes

    @property
    def names(self) -> Sequence[str]:
        """Return the node names, row by row."""
        names = self._nodes.names
        return names if self.rows is None else [names[row] for row in self.rows.tolist()]

    def name(self, row: int) -> str:
        """Return the name of the node in a row."""
        return self._nodes.names[row if self.rows is None else self.rows.item(row)]

    def row(self, name: str) -> int:
        """Return the row of a node, or -1 if it is not here."""
        row = self._nodes.rows.get(name, -1)
        if self.rows is None or row < 0:
            return row
        found = np.flatnonzero(self.rows == row)
        return int(found[0]) if len(found) else -1

    def rows_of(self, names: Iterable[str]) -> Ints:
        """Return the rows of those of the named nodes that exist."""
        found = [row for row in map(self.row, names) if row >= 0]
        return np.array(sorted(found), dtype=np.int64)

    def node(self, row: int) -> Node:
        """Return the API object in a row."""
        return self._nodes.objects[self._at(row)]

    @property
    def node_objects(self) -> Sequence[Node]:
        """Return the API objects, row by row; borrowed."""
        objects = self._nodes.objects
        return objects if self.rows is None else [objects[row] for row in self.rows.tolist()]

    def pods_on(self, row: int) -> Iterable[PodView]:
        """Return the pods of the node in a row."""
        return self._on_node.get(self.name(row), NOBODY).pods

    def uniform(self, value: int) -> Ints:
        """Return a column with the same number on every node. It takes no memory, and `is_uniform` recognises it at once."""
        return _uniform(value, self.n)

    # Resources

    def resource(self, name: str) -> int:
        """Return the number of a resource, or -1 if neither a node nor a pod has named it."""
        return self.templates.resources.find(name)

    def allocatable(self, resource: int) -> Ints:
        """Return what the nodes offer of a resource: cpu in thousandths, the rest in whole units."""
        return self._amounts(self._nodes.allocatable, resource)

    def requested(self, resource: int) -> Ints:
        """Return what the pods on the nodes asked for."""
        return self._amounts(self._nodes.requested, resource)

    def _amounts(self, columns: Sequence[Column], resource: int) -> Ints:
        """Return a resource's column; zeros if no node and no pod names the resource."""
        if not 0 <= resource < len(columns):
            return np.zeros(self.n, dtype=np.int64)
        return columns[resource].live if self.rows is None else columns[resource].data[self.rows]

    def free(self, resource: int) -> Ints:
        """Return what is left of a resource; below zero where a node is overbooked."""
        left: Ints = self.allocatable(resource) - self.requested(resource)
        return left

    def non_zero_requested(self, resource: int) -> Ints:
        """Return what the pods asked for, where a container that asks for no cpu or memory counts as 100m and 200Mi;
        the same as `requested` for every other resource."""
        if resource == CPU:
            return self._column(self._nodes.non_zero_cpu)
        if resource == MEMORY:
            return self._column(self._nodes.non_zero_memory)
        return self.requested(resource)

    def allocatable_at(self, resource: int, row: int) -> int:
        """Return what one node offers of a resource."""
        return self._amount(self._nodes.allocatable, resource, row)

    def requested_at(self, resource: int, row: int) -> int:
        """Return what the pods of one node asked for."""
        return self._amount(self._nodes.requested, resource, row)

    def _amount(self, columns: Sequence[Column], resource: int, row: int) -> int:
        return columns[resource].cells[self._at(row)] if 0 <= resource < len(columns) else 0

    def usage_at(self, resource: int, row: int) -> tuple[int, int]:
        """Return what one node offers of a resource, and what its pods asked for."""
        nodes = self._nodes
        if not 0 <= resource < len(nodes.requested):
            return 0, 0
        row = self._at(row)
        return nodes.allocatable[resource].cells[row], nodes.requested[resource].cells[row]

    def non_zero_requested_at(self, resource: int, row: int) -> int:
        """Return what the pods of one node asked for, with the defaults for those that asked for nothing."""
        if resource == CPU:
            return self._nodes.non_zero_cpu.cells[self._at(row)]
        if resource == MEMORY:
            return self._nodes.non_zero_memory.cells[self._at(row)]
        return self.requested_at(resource, row)

    def free_pods_at(self, row: int) -> int:
        """Return how many more pods one node takes."""
        row = self._at(row)
        return self._nodes.allowed_pods.cells[row] - self._nodes.pod_count.cells[row]

    def _at(self, row: int) -> int:
        return row if self.rows is None else int(self.rows[row])

    @property
    def pod_count(self) -> Ints:
        """Return how many pods each node has."""
        return self._column(self._nodes.pod_count)

    @property
    def allowed_pods(self) -> Ints:
        """Return how many pods each node takes."""
        return self._column(self._nodes.allowed_pods)

    # Facts of the node object

    @property
    def is_unschedulable(self) -> Bools:
        """Return which nodes are cordoned."""
        return self._column(self._nodes.unschedulable)

    @property
    def taint_set(self) -> Codes:
        """Return the number of each node's list of taints, an index into `taint_sets`."""
        return self._column(self._nodes.taint_set)

    @property
    def taint_sets(self) -> Sequence[tuple[Taint, ...]]:
        """Return the distinct lists of taints."""
        return self._nodes.taint_sets.values

    @property
    def feature_set(self) -> Codes:
        """Return the number of each node's set of declared features, an index into `feature_sets`."""
        return self._column(self._nodes.feature_set)

    @property
    def feature_sets(self) -> Sequence[frozenset[str]]:
        """Return the distinct sets of declared features."""
        return self._nodes.feature_sets.values

    def label(self, key: str) -> LabelColumn | None:
        """Return what is known of a label key (its values by number), or None if no node has it."""
        return self._nodes.labels.get(key)

    @property
    def label_keys(self) -> tuple[str, ...]:
        """Return the label keys that any node has."""
        return tuple(self._nodes.labels)

    def n_values(self, key: str) -> int:
        """Return the number that follows those of a label's values."""
        column = self._nodes.labels.get(key)
        return len(column.values) if column is not None else 0

    def codes(self, key: str) -> Ints:
        """Return the number of each node's value for a label key, ABSENT where the node lacks it."""
        column = self._nodes.labels.get(key)
        if column is None:
            return np.full(self.n, ABSENT, dtype=np.int64)
        return self._column(column.codes)

    def code_at(self, key: str, row: int) -> int:
        """Return the number of a label's value on one node, given by its row in the whole cluster."""
        column = self._nodes.labels.get(key)
        return column.codes.cells[row] if column is not None else ABSENT

    def image(self, name: str) -> ImageState | None:
        """Return the size of an image and the nodes that have it (rows of the whole cluster), or None."""
        return self._nodes.images.get(name)

    def mask(self, rows: Iterable[int]) -> Bools:
        """Return a column that is true on the given rows of the whole cluster, as far as this view has them."""
        held = np.zeros(self.total, dtype=np.bool_)
        held[np.fromiter(rows, dtype=np.int64)] = True
        return held if self.rows is None else held[self.rows]

    # Placed pods

    def port_conflicts(self, ports: Iterable[HostPort]) -> Bools:
        """Return on which nodes one of these host ports is taken."""
        row = self.slots.row.data
        holders: set[int] = set().union(*(self.slots.holders(port) for port in ports))
        return self.mask(row[np.fromiter(holders, dtype=np.int64)])

    def pod_rows(self) -> Codes:
        """Return for every slot of the pod table the row of its node in the whole cluster."""
        return self.slots.row.live

    def pod_classes(self) -> Codes:
        """Return for every slot of the pod table the pod's label class; 0 where there is no pod."""
        return self.slots.class_id.live

    def pod_affinities(self) -> Codes:
        """Return for every slot of the pod table the pod's affinity group; 0 where there is none."""
        return self.slots.affinity_id.live

    def everything(self) -> Snapshot:
        """Return the view of all nodes that this one is part of."""
        if self.rows is None:
            return self
        return Snapshot(self.whole)  # also of a what-if, which is about some rows only: the whole is the real thing


@lru_cache(maxsize=256)
def _uniform(value: int, n: int) -> Ints:
    return np.broadcast_to(np.int64(value), n)


def is_uniform(column: Ints) -> bool:
    """Return whether a column is known to hold the same number on every node: one that `Snapshot.uniform` made."""
    return column.strides == (0,)
