"""Resource claims with allocations that are not written yet, and the devices that are taken.

In: the cluster's ResourceClaims; newer versions of them that the API server accepted but the watch has not delivered (assumed);
and allocations for pods that are decided but not written (in flight). Out: each claim as it will be, and the taken devices.
Both are updated claim by claim: no decision looks at all claims. A log names the pools that changed, for caches of answers
about devices. This module never writes to the API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from typing import NamedTuple, TypeVar

from kubesched.errors import SchedulerError
from kubesched.kube.api import EXTENDED_RESOURCE_CLAIM_ANNOTATION, AllocationResult, ResourceClaim
from kubesched.kube.values import go_quote, quantity
from kubesched.scheduler.cluster.changelog import ChangeLog, Reader
from kubesched.scheduler.cluster.objects import ObjectChange, Objects

PoolId = tuple[str, str]
"""(driver, pool)"""

K = TypeVar("K")


class DeviceId(NamedTuple):
    """A device, by the names under which claims hold it."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class ClaimError(SchedulerError):
    """A version of a claim that is older than the known one, or of a claim that does not exist."""


class DeviceClaims:
    """Device claims and taken devices. One for each `Objects`, shared by all profiles (`Objects.shared`).

    A claim's allocation goes through three stages. The devices are counted in all of them:

      promised   a pod is decided; nothing is written          `promise` ... `release`
      assumed    the API server accepted the allocation        `assume`
      stored     the watch delivered it                        `refresh`

    While a claim is in flight, its promise counts and `_settle` does nothing. When it is released, the newest known version
    counts. So devices are never counted twice and never free in between.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._reader: Reader[ObjectChange] = Reader()
        self._assumed: dict[tuple[str, str], ResourceClaim] = {}
        self._in_flight: dict[str, tuple[ResourceClaim, set[str]]] = {}
        self._told_when_settled: dict[str, list[Callable[[], None]]] = {}
        self.freed: Callable[[ResourceClaim], None] = lambda claim: None
        """Called with a claim as it was before an assumed version took its devices away."""
        self._held: dict[str, AllocationResult] = {}
        self._for_pod: dict[str, ResourceClaim] = {}
        self.touched: ChangeLog[PoolId] = ChangeLog()
        """The pools with devices that were taken or freed."""
        self.exclusive: dict[DeviceId, int] = {}
        """Devices that one claim has for itself, with the number of claims that have them."""
        self.shares: dict[DeviceId, int] = {}
        """Devices that are shared, with the number of shares."""
        self.consumed: dict[DeviceId, dict[str, int]] = {}
        """The capacity that shares of a device take, in nano units."""
        self.refresh()

    # Claims

    def get(self, name: str, namespace: str) -> ResourceClaim | None:
        """Return the newest version of a claim: the stored one, or an assumed one that is newer."""
        stored = self._objects.get(ResourceClaim, name, namespace)
        if stored is None or not self._assumed:
            return stored
        assumed = self._assumed.get((namespace, name))
        return assumed if assumed is not None and not _is_newer(stored, assumed) else stored

    def made_for_pod(self, pod_uid: str) -> ResourceClaim | None:
        """Return the claim that was written for a pod's extended resources, if there is one."""
        self.refresh()
        found = self._for_pod.get(pod_uid)
        return self.get(found.metadata.name, found.metadata.namespace) if found is not None else None

    def assume(self, claim: ResourceClaim) -> None:
        """Take in a version that the API server accepted, before the watch delivers it. Raise if the claim is gone or has a
        newer version."""
        meta = claim.metadata
        latest = self.get(meta.name, meta.namespace)
        if latest is None:
            raise ClaimError(f"could not find ResourceClaim {go_quote(claim.key)}")
        if _number(claim) < _number(latest):
            raise ClaimError(
                f'ResourceClaim "{claim.key}" is out of sync (stored: {_number(latest)}, assume: {_number(claim)})'
            )
        self._assumed[meta.namespace, meta.name] = claim
        self._settle(claim)
        if latest.status.allocation is not None and not self.has_devices(claim):
            self.freed(latest)

    def before(self, old: ResourceClaim | None, new: ResourceClaim | None) -> ResourceClaim | None:
        """Return the version of a claim that was known before a change of the watch: the assumed version if the change is
        newer. If it is not, the stored version; but an assumed version without devices even then, as `freed` was called for
        it."""
        claim = new if new is not None else old
        assumed = self._assumed.get((claim.metadata.namespace, claim.metadata.name)) if claim is not None else None
        if assumed is None or (new is not None and not _is_newer(new, assumed) and assumed.status.allocation is not None):
            return old
        return assumed

    # Promises

    def promise(self, claim: ResourceClaim, pod_uid: str) -> None:
        """Count a claim's allocation for a pod before it is written. Pods of one group may share it."""
        known = self._in_flight.get(claim.metadata.uid)
        if known is not None:
            known[1].add(pod_uid)
            return
        self._in_flight[claim.metadata.uid] = claim, {pod_uid}
        self._hold(claim.metadata.uid, claim.status.allocation)

    def join(self, uid: str, holder: str) -> None:
        """Add a holder to a promise, if there is one: another pod, or a write that is under way."""
        if uid in self._in_flight:
            self._in_flight[uid][1].add(holder)

    def promised_to(self, pod_uid: str) -> Sequence[ResourceClaim]:
        """Return the claims promised to a pod and not yet written, with their allocations."""
        return [claim for claim, holders in self._in_flight.values() if pod_uid in holders] if self._in_flight else ()

    def release(self, uid: str, pod_uid: str | None = None) -> None:
        """Drop a promise, or one pod's part in it. The devices stay taken if the claim has them by now."""
        if uid not in self._in_flight:
            return
        claim, holders = self._in_flight[uid]
        holders.discard(pod_uid or "")
        if pod_uid is None or not holders:
            del self._in_flight[uid]
            self._settle(claim)
            for tell in self._told_when_settled.pop(uid, ()):
                tell()

    def when_settled(self, uid: str, tell: Callable[[], None]) -> bool:
        """Call `tell` when the last holder of a promise is gone; return False if there is no promise."""
        if uid not in self._in_flight:
            return False
        self._told_when_settled.setdefault(uid, []).append(tell)
        return True

    def has_devices(self, claim: ResourceClaim) -> bool:
        """Return whether a claim has devices, written or promised."""
        return claim.metadata.uid in self._held

    def promised(self, uid: str) -> ResourceClaim | None:
        """Return a claim with the promised allocation, if there is one."""
        known = self._in_flight.get(uid)
        return known[0] if known is not None else None

    def is_promised_to(self, uid: str, pod_uids: Set[str]) -> bool:
        """Return whether a claim is promised to one of these pods."""
        known = self._in_flight.get(uid)
        return known is not None and not known[1].isdisjoint(pod_uids)

    def in_flight(self) -> Iterator[ResourceClaim]:
        """Yield the claims whose allocations are booked and not yet written."""
        for claim, _ in self._in_flight.values():
            yield claim

    # Following along

    def refresh(self) -> None:
        """Take in the changes that the watch delivered since the last call."""
        changes = self._reader.changed(self._objects.log(ResourceClaim))
        if changes is None:
            self._recount()
            return
        for old, new in changes:
            if old is not None:
                self._forget(old, new)
            if new is not None:
                self._learn(new)

    def _recount(self) -> None:
        stored = {claim.metadata.uid: claim for claim in self._objects.all(ResourceClaim)}
        self._for_pod.clear()
        for uid in [uid for uid in self._held if uid not in stored and uid not in self._in_flight]:
            self._hold(uid, None)
        for key in [key for key in self._assumed if self._objects.get(ResourceClaim, key[1], key[0]) is None]:
            del self._assumed[key]
        for claim in stored.values():
            self._learn(claim)

    def _learn(self, claim: ResourceClaim) -> None:
        meta = claim.metadata
        assumed = self._assumed.get((meta.namespace, meta.name))
        if assumed is not None and _is_newer(claim, assumed):
            del self._assumed[meta.namespace, meta.name]
        owner = meta.controller() if meta.annotations else None
        if owner is not None and meta.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) == "true":
            self._for_pod[owner.uid] = claim
        self._settle(claim)

    def _forget(self, claim: ResourceClaim, successor: ResourceClaim | None) -> None:
        if successor is not None and successor.metadata.uid == claim.metadata.uid:
            return
        meta = claim.metadata
        if self._objects.get(ResourceClaim, meta.name, meta.namespace) is None:
            self._assumed.pop((meta.namespace, meta.name), None)
        owner = meta.controller()
        if owner is not None and self._for_pod.get(owner.uid) is not None and self._for_pod[owner.uid].metadata.uid == meta.uid:
            del self._for_pod[owner.uid]
        if meta.uid not in self._in_flight:
            self._hold(meta.uid, None)

    def _settle(self, claim: ResourceClaim) -> None:
        """Count the devices of a claim's newest version, unless a promise counts them already."""
        uid = claim.metadata.uid
        if uid not in self._in_flight:
            latest = self.get(claim.metadata.name, claim.metadata.namespace)
            same = latest is not None and latest.metadata.uid == uid
            self._hold(uid, latest.status.allocation if latest is not None and same else None)

    def _hold(self, uid: str, allocation: AllocationResult | None) -> None:
        before = self._held.get(uid)
        if before is allocation or before == allocation:
            return
        if before is not None:
            self._count(before, -1)
            del self._held[uid]
        if allocation is not None:
            self._count(allocation, 1)
            self._held[uid] = allocation

    def _count(self, allocation: AllocationResult, sign: int) -> None:
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            device = DeviceId(result.driver, result.pool, result.device)
            if result.share_id is None:
                _add(self.exclusive, device, sign)
            else:
                _add(self.shares, device, sign)
                consumed = self.consumed.setdefault(device, {})
                for name, amount in result.consumed_capacity.items():
                    _add(consumed, name, sign * quantity.parse(amount))
                if device not in self.shares:
                    del self.consumed[device]
            self.touched.append((result.driver, result.pool))


def _add(counts: dict[K, int], key: K, amount: int) -> None:
    total = counts.get(key, 0) + amount
    if total:
        counts[key] = total
    else:
        counts.pop(key, None)


def _number(claim: ResourceClaim) -> int:
    version = claim.metadata.resource_version
    return int(version) if version.isdecimal() else 0


def _is_newer(stored: ResourceClaim, assumed: ResourceClaim) -> bool:
    return _number(stored) > _number(assumed)
