"""What DynamicResources writes to the API: allocations and reservations in PreBind, and undoing them.

A write that conflicts is repeated a few times on the newest version of the claim. What the API accepts is told to the claim
book (`DeviceClaims`), which then drops the promise.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from kubesched.errors import ApiError, Conflict, NotFound, SchedulerError, Unreachable
from kubesched.kube.api import (
    DELETE_PROTECTION_FINALIZER,
    AllocationResult,
    ContainerExtendedResourceRequest,
    NodeAllocatableResourceClaimStatus,
    ResourceClaim,
    ResourceClaimStatus,
    format_time,
)
from kubesched.scheduler.cluster import ClaimError, DeviceClaims, PodView
from kubesched.scheduler.framework import Handle
from kubesched.scheduler.plugins.dynamic_resources.claims import (
    Consumer,
    binding_failure,
    consumer_of,
    is_overdue,
    is_ready,
    is_reserved_for,
)

log = logging.getLogger(__name__)

TRIES = 5
PAUSE_SECONDS = 0.01
CACHE_WAIT_SECONDS = 120.0
CACHE_POLL_SECONDS = 1.0
CONDITION_POLL_SECONDS = 5.0
CALLED_OFF_SECONDS = 4.0  # the framework waits five seconds for a plugin that is cancelled
SUCCESS, FAILURE, TIMEOUT, ERROR = "success", "failure", "timeout", "error"
"""The results of a wait for devices, as metrics name them."""


class BindError(SchedulerError):
    """PreBind failed; the text names the claim and the reason. The pod goes back to the queue."""

    def __init__(self, text: str, ended: str = ERROR) -> None:
        super().__init__(text)
        self.ended = ended


class ClaimWriter:
    """Writes claims through the handle's writer. `with_timestamp`: allocations get a time, for the binding timeout."""

    def __init__(self, handle: Handle, book: DeviceClaims, with_timestamp: bool) -> None:
        self._handle = handle
        self._book = book
        self._with_timestamp = with_timestamp
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._under_way: set[asyncio.Task[ResourceClaim]] = set()

    # Binding

    async def reserve(
        self, claim: ResourceClaim, allocation: AllocationResult | None, pod: PodView, consumer: Consumer
    ) -> ResourceClaim:
        """Write a claim's allocation (None: it is written already) and its reservation; return the stored claim.

        Members of a group that share a promised allocation call this at the same time. A lock for each claim makes them write
        one after the other; the later ones find the allocation and add only their reservation. If one fails, it releases
        only its own part of the promise.

        A cancelled call does not cancel the write: the API may have accepted it, so the promise must hold until that is known.
        """
        write = asyncio.ensure_future(self._reserve(claim, allocation, pod, consumer))
        self._under_way.add(write)
        write.add_done_callback(self._written)
        try:
            return await asyncio.shield(write)
        except asyncio.CancelledError:
            await asyncio.wait([write], timeout=CALLED_OFF_SECONDS)  # mostly it ends in time
            raise

    def _written(self, write: asyncio.Task[ResourceClaim]) -> None:
        self._under_way.discard(write)
        if not write.cancelled() and write.exception() is not None:
            log.debug("%s", write.exception())  # the caller may have been cancelled

    async def _reserve(
        self, claim: ResourceClaim, allocation: AllocationResult | None, pod: PodView, consumer: Consumer
    ) -> ResourceClaim:
        uid, writing = claim.metadata.uid, f"{pod.uid} (being written)"
        # The write holds a share of the promise in its own name. A pod that is cancelled releases only the pod's share,
        # so the devices stay taken until the API has answered.
        self._book.join(uid, writing)
        try:
            # Read inside the lock: an earlier member may have written the allocation while this one waited.
            async with self._locks.setdefault(uid, asyncio.Lock()):
                if allocation is not None:
                    latest = self._book.get(claim.metadata.name, claim.metadata.namespace)
                    claim = latest if latest is not None and latest.metadata.uid == uid else claim
                stored = await self._retry(claim, lambda current: self._reserve_once(current, allocation, consumer))
                self._book.release(uid, None if self._accept(stored) else pod.uid)
                return stored
        except BindError:
            self._book.release(uid, pod.uid)
            raise
        finally:
            self._book.release(uid, writing)

    async def _reserve_once(
        self, claim: ResourceClaim, allocation: AllocationResult | None, consumer: Consumer
    ) -> ResourceClaim:
        if claim.metadata.deletion_timestamp is not None:
            raise BindError(f"claim {claim.key} got deleted in the meantime")
        # All checks are repeated on each version of the claim, because a conflict means that somebody else wrote it.
        written = claim.status.allocation
        if allocation is not None and written is not None:
            if msgspec.structs.replace(written, allocation_timestamp=allocation.allocation_timestamp) != allocation:
                raise BindError(f"claim {claim.key} got allocated elsewhere in the meantime")
            allocation = None  # another member of the group was first
        if allocation is not None:
            if DELETE_PROTECTION_FINALIZER not in claim.metadata.finalizers:
                claim = await self._update(with_finalizer(claim), "", f"add finalizer to claim {claim.key}")
        elif claim.status.allocation is None:
            raise BindError(f"claim {claim.key} got deallocated elsewhere in the meantime")
        elif is_reserved_for(claim, consumer.uid):
            return claim  # another member has reserved it for the group
        given = allocation or claim.status.allocation
        assert given is not None
        if self._with_timestamp and given.allocation_timestamp is None:
            now = format_time(self._handle.clock.now())
            given = msgspec.structs.replace(given, allocation_timestamp=now)
        status = msgspec.structs.replace(claim.status, allocation=given, reserved_for=(*claim.status.reserved_for, consumer))
        what = "add allocation and reservation to" if allocation is not None else "add reservation to"
        return await self._update(msgspec.structs.replace(claim, status=status), "status", f"{what} claim {claim.key}")

    async def _update(self, claim: ResourceClaim, subresource: str, what: str) -> ResourceClaim:
        try:
            stored: ResourceClaim = await self._handle.writer.update(claim, subresource)
        except Conflict:
            raise
        except (ApiError, Unreachable) as error:
            raise BindError(f"{what}: {error}") from error
        return stored

    async def _retry(self, claim: ResourceClaim, write: Callable[[ResourceClaim], Awaitable[ResourceClaim]]) -> ResourceClaim:
        # A conflict brings the newest version along (`error.latest`); else the cache has it after a short pause. The
        # pause is a little random, so that two members do not collide again and again.
        for attempt in range(TRIES):
            if attempt:
                await self._handle.clock.sleep(PAUSE_SECONDS * (1 + self._handle.random.randrange(100) / 1000))
                latest = self._book.get(claim.metadata.name, claim.metadata.namespace)
                if latest is None or latest.metadata.uid != claim.metadata.uid:
                    raise BindError(
                        f"get updated claim {claim.key} after conflict: resourceclaims.resource.k8s.io "
                        f'"{claim.metadata.name}" not found'
                    )
                claim = latest
            try:
                return await write(claim)
            except Conflict as error:
                conflict = error
                self._accept(error.latest)
        raise BindError(f"add allocation and reservation to claim {claim.key}: {conflict}") from conflict

    # The special claim, for extended resources

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create the special claim. Its name and uid exist in memory only; the API gives it new ones."""
        # The generateName stays, so the API server makes a name like web-0-extended-resources-x7k2p.
        metadata = msgspec.structs.replace(claim.metadata, name="", uid="")
        wanted = msgspec.structs.replace(claim, metadata=metadata, status=ResourceClaimStatus())
        try:
            stored: ResourceClaim = await self._handle.writer.create(wanted)
        except (ApiError, Unreachable) as error:
            self._handle.meter.claim_created("failure")
            raise BindError(
                f"create claim for extended resources {claim.metadata.namespace}/{claim.metadata.generate_name}: {error}"
            ) from error
        self._handle.meter.claim_created("success")
        return stored

    async def reserve_special(
        self, created: ResourceClaim, booked_uid: str, allocation: AllocationResult, pod: PodView
    ) -> ResourceClaim:
        """Write the special claim's allocation. The promise under the old uid holds until the cache knows the new claim."""
        # The promise is under the uid that exists in memory only. It goes when the cache has the real claim, not
        # before: in between the devices must not look free.
        stored = await self._retry(created, lambda current: self._reserve_once(current, allocation, consumer_of(pod)))
        deadline = self._handle.clock.monotonic() + CACHE_WAIT_SECONDS
        while True:
            try:
                self._book.assume(stored)
                break
            except ClaimError as error:
                if self._handle.clock.monotonic() >= deadline:
                    log.warning("claim %s was written, but did not appear in the cache: %s", stored.key, error)
                    break
                await self._handle.clock.sleep(CACHE_POLL_SECONDS)
        self._book.release(booked_uid)
        return stored

    async def tell_pod(
        self, pod: PodView, claim: ResourceClaim, mappings: tuple[ContainerExtendedResourceRequest, ...]
    ) -> None:
        """Write to the pod's status which request of the special claim serves which container."""
        if not mappings:
            raise BindError(f"nil or empty request mappings, no update of pod {pod.key} ExtendedResourceClaimStatus")
        status = {
            "extendedResourceClaimStatus": {
                "requestMappings": [msgspec.to_builtins(mapping) for mapping in mappings],
                "resourceClaimName": claim.metadata.name,
            }
        }
        await self._patch_status(pod, status, f"update pod {pod.key} ExtendedResourceClaimStatus")

    async def tell_uses(self, pod: PodView, statuses: Sequence[NodeAllocatableResourceClaimStatus]) -> None:
        """Write to the pod's status what its devices use of the node."""
        status = {"nodeAllocatableResourceClaimStatuses": [msgspec.to_builtins(each) for each in statuses]}
        await self._patch_status(pod, status, f"updating pod {pod.key} NodeAllocatableResourceClaimStatuses")

    async def _patch_status(self, pod: PodView, status: dict[str, Any], what: str) -> None:
        try:
            await self._handle.writer.patch_pod_status(pod, status)
        except (ApiError, Unreachable) as error:
            raise BindError(f"{what}: {error}") from error

    async def clear_uses(self, pod: PodView) -> None:
        """Remove that from the pod's status; a failure is only logged."""
        try:
            await self._handle.writer.patch_pod_status(pod, {"nodeAllocatableResourceClaimStatuses": None})
        except SchedulerError as error:
            log.error("pod %s: cannot clear nodeAllocatableResourceClaimStatuses: %s", pod.key, error)

    # Waiting for devices

    async def wait_until_ready(self, claims: Sequence[ResourceClaim], pod: PodView, timeout_seconds: float) -> None:
        """Wait until all devices of these claims are ready; raise BindError if one fails or is late. Metrics get the result."""
        clock, meter, profile = self._handle.clock, self._handle.meter, pod.pod.spec.scheduler_name
        # `ended` stays ERROR if the wait is cancelled: metrics count that too.
        started, ended = clock.monotonic(), ERROR
        try:
            await self._poll(claims, started + timeout_seconds, timeout_seconds)
            ended = SUCCESS
        except BindError as error:
            ended = error.ended
            raise
        finally:
            for claim in claims:
                allocation = claim.status.allocation
                for result in allocation.devices.results if allocation is not None else ():
                    meter.device_waited(profile, result.driver, ended, clock.monotonic() - started)
                    if result.binding_conditions:
                        meter.device_bound(profile, result.driver, ended)

    async def _poll(self, claims: Sequence[ResourceClaim], deadline: float, timeout_seconds: float) -> None:
        """Read the claims every five seconds until all are ready. A claim that was deleted meanwhile is not waited for."""
        clock = self._handle.clock
        while True:
            is_waiting = False
            for claim in claims:
                # The cache, not the API: updates arrive by the watch. Kept order: a failed condition ends the wait
                # before a timeout does.
                latest = self._book.get(claim.metadata.name, claim.metadata.namespace)
                if latest is None:
                    continue
                broken = binding_failure(latest)
                if broken is not None:
                    raise BindError(broken, FAILURE)
                if not is_ready(latest):
                    is_waiting = True
                    if is_overdue(latest, clock.now(), timeout_seconds):
                        raise BindError(f"device binding timeout: claim={latest.metadata.name}", TIMEOUT)
            if not is_waiting:
                return
            left = deadline - clock.monotonic()
            if left <= 0:
                raise BindError("device binding timeout: context deadline exceeded", TIMEOUT)
            await clock.sleep(min(CONDITION_POLL_SECONDS, left))

    # Undo

    async def deallocate(self, *claims: ResourceClaim) -> None:
        """Clear the status of claims: allocation, reservations and device reports; a failure is only logged."""
        for claim in claims:
            empty = msgspec.structs.replace(claim, status=ResourceClaimStatus())
            try:
                self._accept(await self._handle.writer.update(empty, "status"))
            except SchedulerError as error:
                log.error("deallocate claim %s: %s", claim.key, error)

    async def unreserve(self, name: str, namespace: str, pod: PodView) -> None:
        """Remove the pod's reservation of a claim; a failure is only logged, because the claim controller cleans up."""
        try:
            for attempt in range(TRIES):
                if attempt:
                    await self._handle.clock.sleep(PAUSE_SECONDS)
                # Read from the cache in each try: a conflict says that it is behind, and it catches up meanwhile.
                claim = self._book.get(name, namespace)
                if claim is None or not is_reserved_for(claim, pod.uid):
                    return
                left = tuple(consumer for consumer in claim.status.reserved_for if consumer.uid != pod.uid)
                status = msgspec.structs.replace(claim.status, reserved_for=left)
                changed = msgspec.structs.replace(claim, status=status)
                try:
                    self._accept(await self._handle.writer.update(changed, "status"))
                    return
                except Conflict as error:
                    log.info("unreserve claim %s: %s", claim.key, error)
                    self._accept(error.latest)
        except SchedulerError as error:
            log.error("unreserve claim %s/%s for pod %s: %s", namespace, name, pod.key, error)

    async def delete_quietly(self, claim: ResourceClaim) -> None:
        """Delete a special claim, its finalizer first. A failure is only logged: the pod's next attempt finds the claim."""
        try:
            if DELETE_PROTECTION_FINALIZER in claim.metadata.finalizers:
                left = tuple(name for name in claim.metadata.finalizers if name != DELETE_PROTECTION_FINALIZER)
                metadata = msgspec.structs.replace(claim.metadata, finalizers=left)
                claim = await self._handle.writer.update(msgspec.structs.replace(claim, metadata=metadata))
            with suppress(NotFound):
                await self._handle.writer.delete(claim)
        except SchedulerError as error:
            log.error("delete claim %s: %s", claim.key, error)

    def _accept(self, stored: ResourceClaim | None) -> bool:
        """Put a claim into the cache, as it was written or as a conflict returns it; return False if the cache has a newer one.

        The version in a conflict may contain our own write, if its answer was lost. If the cache did not know that, the device
        would look free once the promise is released.
        """
        # ClaimError: the cache has a newer version by the watch already, or the claim is gone. Neither is a failure of
        # the write.
        try:
            if stored is not None:
                self._book.assume(stored)
        except ClaimError as error:
            log.info("not in the cache as the API has it: %s", error)
            return False
        return True


def with_finalizer(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim with the finalizer that protects allocated claims."""
    if DELETE_PROTECTION_FINALIZER in claim.metadata.finalizers:
        return claim
    finalizers = (*claim.metadata.finalizers, DELETE_PROTECTION_FINALIZER)
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, finalizers=finalizers))
