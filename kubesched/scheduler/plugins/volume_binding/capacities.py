"""The free storage of CSI drivers (CSIStorageCapacity objects), by storage class and by the nodes that reach it.

    class fast: capacity c1 (zone a, 10Gi), capacity c2 (zone b, 2Gi)    rows 0 and 1 in zone a, row 2 in zone b
    pairs (row, object): (0, c1), (1, c1), (2, c2)                       a claim of 5Gi fits where limit >= 5Gi: rows 0 and 1

An object whose amount changes, as with every new volume, rewrites one number. New objects and changed labels make the class be
read again.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from kubesched.kube.api import CSIStorageCapacity, Quantity
from kubesched.kube.values import quantity
from kubesched.scheduler.cluster import Ints, ObjectChange, Objects, Reader
from kubesched.scheduler.plugins.volume_binding.rows_by_selector import RowsBySelector

NONE = -1
"""No capacity is enough; also the limit of an object without an amount."""


def limit_bytes(capacity: CSIStorageCapacity) -> int | None:
    """Return the size of the largest possible volume, None if the object does not say."""
    if capacity.maximum_volume_size is not None:
        return _bytes(capacity.maximum_volume_size, capacity, "maximumVolumeSize")
    return total_bytes(capacity)


def total_bytes(capacity: CSIStorageCapacity) -> int | None:
    """Return the free storage, None if the object does not say."""
    return _bytes(capacity.capacity, capacity, "capacity") if capacity.capacity is not None else None


def _bytes(amount: Quantity, capacity: CSIStorageCapacity, field: str) -> int:
    return quantity.value(quantity.parse_field(amount, f"csistoragecapacity {capacity.key}", field))


class ClassCapacities:
    """The capacities of one class."""

    def __init__(self) -> None:
        self._by_key: dict[str, CSIStorageCapacity] = {}
        self._read()

    def _read(self) -> None:
        self._stale = False
        self._epoch = -1
        self.objects = list(self._by_key.values())
        self._at = {capacity.key: at for at, capacity in enumerate(self.objects)}
        self._limits = np.array([_limit(capacity) for capacity in self.objects], dtype=np.int64)

    def put(self, capacity: CSIStorageCapacity) -> None:
        """Add a capacity or its new version."""
        old = self._by_key.get(capacity.key)
        self._by_key[capacity.key] = capacity
        # Only the amount changed, which happens with each volume that is provisioned: the pairs of objects and rows
        # stay.
        if self._stale or old is None or old.node_topology != capacity.node_topology:
            self._stale = True
            return
        at = self._at[capacity.key]
        self.objects = self.objects.copy()  # plans keep the list that they were made with
        self.objects[at] = capacity
        self._limits[at] = _limit(capacity)

    def drop(self, key: str) -> None:
        """Remove a capacity."""
        if self._by_key.pop(key, None) is not None:
            self._stale = True

    def enough(self, size_bytes: int, by_selector: RowsBySelector) -> Ints:
        """Return for every row the index in `objects` of a capacity that is enough, or NONE."""
        if self._stale:
            self._read()
        # Pairs are flat arrays, one entry for each (object, row): 3 objects that reach 2, 1 and 2 rows make 5 pairs. A
        # matrix of objects and rows would mostly be empty, as an object is for one zone or one node.
        if self._epoch != by_selector.epoch:
            self._epoch = by_selector.epoch
            rows = [by_selector.of_label_selector(capacity.node_topology) for capacity in self.objects]
            self._pair_object = np.repeat(np.arange(len(rows)), [len(part) for part in rows])
            self._pair_row = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
        found = np.full(by_selector.n, NONE, dtype=np.int64)
        limits = self._limits[self._pair_object]
        fits = (limits >= size_bytes) & (limits != NONE)
        # Of several capacities the first object wins: written in reverse order, it is written last.
        found[self._pair_row[fits][::-1]] = self._pair_object[fits][::-1]
        return found


def _limit(capacity: CSIStorageCapacity) -> int:
    limit = limit_bytes(capacity)
    return NONE if limit is None else limit


class StorageCapacities:
    """The capacities of all classes."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._reader: Reader[ObjectChange] = Reader()
        self._classes: defaultdict[str, ClassCapacities] = defaultdict(ClassCapacities)

    def of_class(self, class_name: str) -> ClassCapacities:
        """Return the current capacities of a class."""
        # `None`: the log is too short. Then all objects are put in again, as if they were new.
        changes = self._reader.changed(self._objects.log(CSIStorageCapacity))
        if changes is None:
            self._classes.clear()
            changes = [ObjectChange(None, capacity) for capacity in self._objects.all(CSIStorageCapacity)]
        for old, new in changes:
            if old is not None and (new is None or new.storage_class_name != old.storage_class_name):
                self._classes[old.storage_class_name].drop(old.key)
            if new is not None:
                self._classes[new.storage_class_name].put(new)
        return self._classes[class_name]
