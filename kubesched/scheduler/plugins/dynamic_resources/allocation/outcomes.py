"""The cached outcomes of searches, by the specs of the claims and the group of nodes.

The first pod with certain specs searches each group once. After that only those groups are searched again that reach a pool of
which a device was allocated or released: usually the one node of the pod before.

    10,000 nodes with own GPUs, 1,000 equal pods: 10,000 searches for the first pod, 1 for each of the others.
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
"""A bound for the cached solutions, half a kilobyte each. The specs that were used least recently go first."""


class Outcomes:
    """The outcomes for claims with certain specs, by group. A group in `unknown` must be searched again."""

    def __init__(
        self, claims: Sequence[ResourceClaim], objects: Objects, touched: ChangeLog[PoolId], features: Features
    ) -> None:
        self.shapes = tuple(ClaimShape(i, claim.spec, objects, features) for i, claim in enumerate(claims))
        # Without a firstAvailable list every solution scores 0, and Score is left out.
        self.has_lists = any(way.parent for shape in self.shapes for ways in shape.requests for way in ways)
        # What each group has is in one of these four: a solution, an error, a bit in `bits`, or `unknown`.
        self.touched = Reader(touched)
        self.allocations: dict[int, Allocation] = {}
        self.errors: dict[int, AllocationError] = {}
        self.unknown: set[int] = set()
        self.bits: Bits = np.zeros(0, dtype=np.uint64)
        """For each group the bit of the reason against it; 0 for a solution or an error."""

    def scores(self, groups: Ints) -> tuple[Bools, Ints]:
        """Return which rows have a solution, and its score."""
        # By group, then spread over the rows: equal groups have equal solutions.
        numbers, where = np.unique(groups, return_inverse=True)
        found = [self.allocations.get(group) for group in numbers.tolist()]
        liked = [results.score(each) if self.has_lists and each is not None else 0 for each in found]
        return np.array([each is not None for each in found], np.bool_)[where], np.array(liked, np.int64)[where]


class OutcomeBook:
    """All cached outcomes. They are dropped when slices or device classes change."""

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
        """Return the outcomes for these claims on the rows of the view; a search that takes too long stays unknown."""
        # The order matters: `follow` may start new groups (a new epoch), and `refresh` writes to `touched`, which is
        # read below.
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
            # A device that was allocated can only take solutions away, and one that was released can only add some.
            # Either way only groups that reach its pool are searched again. None: the log is too short, so all are.
            touched = found.touched.changed(self._book.touched)
            if touched is None:
                found.unknown.update(range(len(found.bits)))
            else:
                for pool in set(touched):
                    found.unknown.update(self._pools.groups_of_pool.get(pool, ()))
        n_groups = len(self._pools.groups)
        # Groups that are new since the last pod with these specs. Numbers of groups never change, so the older entries
        # stay.
        if len(found.bits) < n_groups:
            found.unknown.update(range(len(found.bits), n_groups))
            found.bits = np.append(found.bits, np.zeros(n_groups - len(found.bits), dtype=np.uint64))
        # Only groups with nodes in this view are searched; the others stay unknown until a view has them.
        if found.unknown:
            group_of_row = self._pools.group_of_row
            here = self._pools.in_use if nodes.rows is None else set(group_of_row[nodes.rows].tolist())
            self._search(found, sorted(found.unknown & here))
        return found

    def _search(self, found: Outcomes, groups: list[int]) -> None:
        """Search some groups. All searches of one call share an allowance of time for CEL; when it is used up, the rest stays
        unknown."""
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
                return  # this group and the later ones stay unknown until the next attempt
            else:
                if allocation is not None:
                    found.allocations[number] = allocation
                else:
                    found.bits[number] = INVALID_POOLS_BIT if group.has_invalid else NONE_BIT
            found.unknown.discard(number)
