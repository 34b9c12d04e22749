"""Shared counters: what is left of a pool's counters, and what a search has taken of them so far.

Available is what the pool declares, less what its devices use that somebody holds, whether or not this node reaches
them. Every counter of the pool is compared on every pick: a pool that is already overdrawn gives no device that counts.
"""

from __future__ import annotations

from kubesched.scheduler.cluster import DeviceClaims, PoolId
from kubesched.scheduler.plugins.dynamic_resources.allocation.devices import Counters, DeviceView
from kubesched.scheduler.plugins.dynamic_resources.allocation.pools import Pool


class CounterBook:
    """The counters of all pools during one search."""

    def __init__(self, book: DeviceClaims) -> None:
        self._book = book
        self._left: dict[PoolId, Counters] = {}
        self._beside: dict[tuple[PoolId, str], list[frozenset[str]]] = {}
        """What the devices that use a counter set say about beside whom they may be used."""

    def fits(self, pool: Pool, device: DeviceView) -> bool:
        """Return whether a device can be taken without overdrawing any counter of its pool."""
        left = self._left_in(pool)
        return all(amount >= device.consumes.get(counter, 0) for counter, amount in left.items())

    def is_compatible(self, pool: Pool, device: DeviceView) -> bool:
        """Return whether a device shares a group with all that use its counter sets; one of no group goes with such only."""
        self._left_in(pool)
        for counter_set, groups in device.compatible.items():
            beside = self._beside.get((pool.id, counter_set), ())
            if beside and (not groups.intersection(*beside) if groups else any(beside)):
                return False
        return True

    def take(self, pool: Pool, device: DeviceView) -> None:
        """Use what a device needs."""
        left = self._left_in(pool)
        for counter_set, groups in device.compatible.items():
            self._beside.setdefault((pool.id, counter_set), []).append(groups)
        for counter, amount in device.consumes.items():
            left[counter] -= amount

    def give_back(self, pool: Pool, device: DeviceView) -> None:
        """Return what a device used."""
        left = self._left_in(pool)
        for counter_set in device.compatible:
            self._beside[pool.id, counter_set].pop()
        for counter, amount in device.consumes.items():
            left[counter] += amount

    def _left_in(self, pool: Pool) -> Counters:
        left = self._left.get(pool.id)
        if left is None:
            left = self._left[pool.id] = dict(pool.counters)
            for device in (*pool.devices, *pool.elsewhere):
                if device.compatible and (device.id in self._book.exclusive or device.id in self._book.shares):
                    self.take(pool, device)
        return left
