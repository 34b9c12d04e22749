"""Outcomes of searches, remembered by the claims' shape and the nodes' group, and repaired when devices change hands.

A pod's filter asks for one code a row. The first pod of a shape searches every group once; after that, only groups that
reach a pool of which a device was taken or given back are searched again: usually the one node of the pod before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from kubesched.api.resource import DeviceClass, ResourceClaim
from kubesched.cluster import Ints, Objects, Snapshot
from kubesched.cluster.columns import Codes
from kubesched.cluster.device_claims import DeviceClaims
from kubesched.plugins.dynamic_resources import results
from kubesched.plugins.dynamic_resources.allocator import Allocation, Search, TookTooLong
from kubesched.plugins.dynamic_resources.features import Features
from kubesched.plugins.dynamic_resources.pools import Pools
from kubesched.plugins.dynamic_resources.shapes import AllocationError, ClaimShape, signature

UNKNOWN, FITS, NONE, INVALID_POOLS, ERROR = -1, 0, 1, 2, 3
_MOST_REMEMBERED = 512


class Outcomes:
    """What was found for claims of one shape, group by group."""

    def __init__(self, claims: Sequence[ResourceClaim], objects: Objects, position: int) -> None:
        self.shapes = tuple(ClaimShape(i, claim.spec, objects) for i, claim in enumerate(claims))
        self.position = position
        self.codes: Codes = np.zeros(0, dtype=np.int64)
        self.scores: Ints = np.zeros(0, dtype=np.int64)
        self.allocations: dict[int, Allocation] = {}
        self.errors: dict[int, AllocationError] = {}

    def grow(self, size: int) -> None:
        """Make room for groups that came since."""
        missing = size - len(self.codes)
        if missing > 0:
            self.codes = np.concatenate([self.codes, np.full(missing, UNKNOWN, dtype=np.int64)])
            self.scores = np.concatenate([self.scores, np.zeros(missing, dtype=np.int64)])


class OutcomeBook:
    """All that is remembered, until slices or classes change."""

    def __init__(self, objects: Objects, pools: Pools, book: DeviceClaims, features: Features,
                 deadline: Callable[[], Callable[[], bool] | None]) -> None:
        self._objects = objects
        self._pools = pools
        self._book = book
        self._features = features
        self._deadline = deadline
        self._valid_for: tuple[int, int] | None = None
        self._remembered: OrderedDict[bytes, Outcomes] = OrderedDict()

    def outcomes(self, claims: Sequence[ResourceClaim], nodes: Snapshot) -> tuple[Outcomes, Ints]:
        """Return what is found for these claims, and each row's group; a search that took too long is left unknown."""
        rows = self._pools.rows(nodes)
        self._book.refresh()
        valid_for = self._pools.epoch, self._objects.version(DeviceClass)
        if valid_for != self._valid_for:
            self._remembered.clear()
            self._valid_for = valid_for
        key = signature(claims)
        found = self._remembered.get(key)
        if found is None:
            found = self._remembered[key] = Outcomes(claims, self._objects, self._book.position)
            if len(self._remembered) > _MOST_REMEMBERED:
                self._remembered.popitem(last=False)
        else:
            self._remembered.move_to_end(key)
            self._forget_touched(found)
        found.grow(len(self._pools.groups))
        self._search(found, np.unique(rows[found.codes[rows] == UNKNOWN]))
        return found, rows

    def _forget_touched(self, found: Outcomes) -> None:
        touched = self._book.touched_since(found.position)
        found.position = self._book.position
        if touched is None:
            found.codes[:] = UNKNOWN
            return
        for pool in set(touched):
            for group in self._pools.groups_of_pool.get(pool, ()):
                if group < len(found.codes):
                    found.codes[group] = UNKNOWN

    def _search(self, found: Outcomes, groups: Ints) -> None:
        for number in groups.tolist():
            found.allocations.pop(number, None)
            found.errors.pop(number, None)
            group = self._pools.groups[number]
            try:
                allocation = Search(found.shapes, group, self._book, self._features, self._deadline()).run()
                if allocation is not None:
                    results.check(allocation)
            except AllocationError as error:
                found.codes[number], found.errors[number] = ERROR, error
                continue
            except TookTooLong:
                return  # this group and those after it stay unknown: the attempt is over, the next one starts anew
            if allocation is not None:
                found.codes[number] = FITS
                found.allocations[number] = allocation
                found.scores[number] = results.score(allocation, found.shapes)
            else:
                found.codes[number] = INVALID_POOLS if group.has_invalid else NONE
