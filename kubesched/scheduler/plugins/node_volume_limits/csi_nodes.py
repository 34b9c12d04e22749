"""CSINode objects as columns: for each driver its limit and whether a node has it, for each in-tree plugin whether it is
migrated.

A changed object rewrites its row. When nodes are added or removed, everything is read again.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from kubesched.kube.api import CSINode
from kubesched.kube.values import MIGRATED_PLUGINS
from kubesched.scheduler.cluster import Bools, Ints, Journal, ObjectChange, Objects, Reader, Snapshot

NO_LIMIT = 1 << 62
"""The limit of a node that sets none."""


def migrated_plugins(csi_node: CSINode | None) -> frozenset[str]:
    """Return the in-tree plugins that a node has migrated to CSI drivers."""
    if csi_node is None:
        return frozenset()
    listed = csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "")
    return frozenset(listed.split(",")) if listed else frozenset()


def driver_limits(csi_node: CSINode) -> dict[str, int]:
    """Return the limit of each driver of a node, without drivers that set none."""
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


class CsiNodes:
    """The columns, over the rows of the whole cluster."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._reader: Reader[ObjectChange] = Reader()
        self._rows: tuple[Journal, int] | None = None
        self._size = 0
        self._limits: defaultdict[str, Ints] = defaultdict(lambda: np.full(self._size, NO_LIMIT, dtype=np.int64))
        self._installed: defaultdict[str, Bools] = defaultdict(self._nowhere)
        self._migrated: defaultdict[str, Bools] = defaultdict(self._nowhere)
        self.exists = self._nowhere()
        self.has_limits = self._nowhere()

    def _nowhere(self) -> Bools:
        return np.zeros(self._size, dtype=np.bool_)

    def follow(self, nodes: Snapshot) -> None:
        """Bring the columns up to date with the cluster of a view."""
        # Rows are numbers of nodes, so columns are valid for one journal and one structure (which nodes there are).
        # Other changes of nodes do not move them.
        rows, changes = (nodes.journal, nodes.structure), self._reader.changed(self._objects.log(CSINode))
        if changes is None or rows != self._rows:
            self._rows = rows
            self._size = nodes.total
            for columns in (self._limits, self._installed, self._migrated):
                columns.clear()
            self.exists, self.has_limits = self._nowhere(), self._nowhere()
            changes = [ObjectChange(None, csi_node) for csi_node in self._objects.all(CSINode)]
        whole = nodes.everything() if changes else nodes
        for old, new in changes:
            found = new if new is not None else old
            row = whole.row(found.metadata.name) if found is not None else -1
            if row >= 0:
                self._write(row, new)

    @property
    def has_any_limits(self) -> bool:
        """Return whether a driver has, or had, a limit on a node."""
        return bool(self._limits)

    def limits(self, driver: str) -> Ints | None:
        """Return the limit of a driver on each node, NO_LIMIT where none is set; None if it has none anywhere."""
        return self._limits.get(driver)

    def installed(self, driver: str) -> Bools:
        """Return which nodes have a driver."""
        return self._installed.get(driver, self._nowhere())

    def migrated(self, plugin: str) -> Bools:
        """Return which nodes have migrated an in-tree plugin."""
        return self._migrated.get(plugin, self._nowhere())

    def _write(self, row: int, csi_node: CSINode | None) -> None:
        """Write one row of all columns; None for a node without CSINode."""
        # A new version of a CSINode may lack a driver that the old one had, so the row is emptied in all columns first.
        for limit_column in self._limits.values():
            limit_column[row] = NO_LIMIT
        for column in (*self._installed.values(), *self._migrated.values()):
            column[row] = False
        self.exists[row] = csi_node is not None
        limits = driver_limits(csi_node) if csi_node is not None else {}
        self.has_limits[row] = bool(limits)
        for driver, limit in limits.items():
            self._limits[driver][row] = limit
        for entry in csi_node.spec.drivers if csi_node is not None else ():
            self._installed[entry.name][row] = True
        for plugin in migrated_plugins(csi_node):
            self._migrated[plugin][row] = True
