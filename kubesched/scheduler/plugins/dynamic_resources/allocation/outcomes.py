"""Outcomes of searches, remembered by the claims' shape and the nodes' group, and repaired when devices change hands.

A pod's filter asks for one verdict a row. The first pod of a shape searches every group once; after that, only groups
that reach a pool of which a device was taken or given back are searched again, usually the one node of the pod before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from kubesched.kube.api import DeviceClass, ResourceClaim
from kubesched.kube.cel import Allowance, NoAllowance
from kubesched.scheduler.cluster import Bools, ChangeLog, DeviceClaims, Ints, Objects, PoolId, Reader, Snapshot
from kubesched.scheduler.framework import Bits
from kubesched.scheduler.plugins.dynamic_resources.allocation import results
from kubesched.scheduler.plugins.dynamic_resources.allocation.allocator import Allocation, Search, TookTooLong
from kubesched.scheduler.plugins.dynamic_resources.allocation.pools import Pools
from kubesched.scheduler.plugins.dynamic_resources.allocation.shapes import AllocationError, ClaimShape, signature
from kubesched.scheduler.plugins.dynamic_resources.args import Features

NONE_BIT, INVALID_POOLS_BIT = 1, 2
_MOST_SOLUTIONS, _LEAST_SHAPES = 200_000, 8
"""Solutions that may be remembered, about half a kilobyte each; beyond it, shapes not asked for longest are dropped."""


class Outcomes:
    """What was found for claims of one shape, group by group."""

    def __init__(
        self, claims: Sequence[ResourceClaim], objects: Objects, touched: ChangeLog[PoolId], features: Features
    ) -> None:
        self.shapes = tuple(ClaimShape(i, claim.spec, objects, features) for i, claim in enumerate(claims))
        self.has_lists = any(way.parent for shape in self.shapes for ways in shape.requests for way in ways)
        self.touched = Reader(touched)
        self.allocations: dict[int, Allocation] = {}
        self.errors: dict[int, AllocationError] = {}
        self.unknown: set[int] = set()
        self.bits: Bits = np.zeros(0, dtype=np.uint64)
        """For every group the bit of what stands in the way; zero also where there is an error."""

    def scores(self, groups: Ints) -> tuple[Bools, Ints]:
        """Return which rows have a solution, and how much it is liked."""
        numbers, where = np.unique(groups, return_inverse=True)
        found = [self.allocations.get(group) for group in numbers.tolist()]
        liked = [results.score(each) if self.has_lists and each is not None else 0 for each in found]
        return np.array([each is not None for each in found], np.bool_)[where], np.array(liked, np.int64)[where]


class OutcomeBook:
    """All that is remembered, until slices or classes change."""

    def __init__(
        self,
        objects: Objects,
        pools: Pools,
        book: DeviceClaims,
        deadline: Callable[[], Callable[[], bool] | None],
    ) -> None:
        self._objects = objects
        self._pools = pools
        self._book = book
        self._deadline = deadline
        self._valid_for: tuple[int, int] | None = None
        self._remembered: OrderedDict[bytes, Outcomes] = OrderedDict()

    def outcomes(self, claims: Sequence[ResourceClaim], nodes: Snapshot) -> Outcomes:
        """Return what is found for these claims on the rows of the view; a search that took too long stays unknown."""
        self._pools.follow(nodes)
        self._book.refresh()
        valid_for = self._pools.epoch, self._objects.version(DeviceClass)
        if valid_for != self._valid_for:
            self._remembered.clear()
            self._valid_for = valid_for
        key = signature(claims)
        found = self._remembered.get(key)
        if found is None:
            found = self._remembered[key] = Outcomes(claims, self._objects, self._book.touched, self._pools.features)
            most = max(_LEAST_SHAPES, _MOST_SOLUTIONS // max(len(self._pools.groups), 1))
            while len(self._remembered) > most:
                self._remembered.popitem(last=False)
        else:
            self._remembered.move_to_end(key)
            self._forget_touched(found)
        self._bring_up_to_date(found, nodes)
        return found

    def _forget_touched(self, found: Outcomes) -> None:
        touched = found.touched.changed(self._book.touched)
        if touched is None:
            found.unknown.update(range(len(found.bits)))
            return
        for pool in set(touched):
            found.unknown.update(self._pools.groups_of_pool.get(pool, ()))

    def _bring_up_to_date(self, found: Outcomes, nodes: Snapshot) -> None:
        pools = self._pools
        if len(found.bits) < len(pools.groups):
            found.unknown.update(range(len(found.bits), len(pools.groups)))
            found.bits = np.append(found.bits, np.zeros(len(pools.groups) - len(found.bits), dtype=np.uint64))
        if found.unknown:
            here = pools.in_use if nodes.rows is None else set(pools.group_of_row[nodes.rows].tolist())
            self._search(found, sorted(found.unknown & here))

    def _search(self, found: Outcomes, groups: list[int]) -> None:
        allowance = Allowance()
        for number in groups:
            found.allocations.pop(number, None)
            found.errors.pop(number, None)
            found.bits[number] = 0
            group = self._pools.groups[number]
            try:
                allocation = Search(found.shapes, group, self._book, self._pools.features, self._deadline(), allowance).run()
                if allocation is not None:
                    results.check(allocation)
            except AllocationError as error:
                found.errors[number] = error
            except (TookTooLong, NoAllowance):
                return  # this group and those after it stay unknown: the next attempt starts anew
            else:
                if allocation is not None:
                    found.allocations[number] = allocation
                else:
                    found.bits[number] = INVALID_POOLS_BIT if group.has_invalid else NONE_BIT
            found.unknown.discard(number)
