"""Everything that this plugin writes: allocations and reservations in PreBind, and taking them back.

In: claims with the allocations that Reserve promised. Out: calls on the Writer port, and the books told what the API
accepted. A write that finds the claim changed is tried again on its newest version, a few times.
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
CALLED_OFF_SECONDS = 4.0  # the framework waits five
SUCCESS, FAILURE, TIMEOUT, ERROR = "success", "failure", "timeout", "error"
"""How metrics call the end of a wait for devices."""


class BindError(SchedulerError):
    """The claims of a pod could not be made ready; the text says which and why. The pod is tried again."""

    def __init__(self, text: str, ended: str = ERROR) -> None:
        super().__init__(text)
        self.ended = ended


class ClaimWriter:
    """Writes claims through a handle's writer."""

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
        """Write a claim's allocation, if it is ours to write, and its reservation for the pod, or for the pod's group; return
        the stored claim.

        Members of a group that share a promised allocation come here at the same time. One after another they write what
        is not written yet; one that fails gives up its own part of the promise only. One that is called off leaves the write
        to come to its end, and the promise stands until it is known what became of it: the device may be given by then.
        """
        write = asyncio.ensure_future(self._reserve(claim, allocation, pod, consumer))
        self._under_way.add(write)
        write.add_done_callback(self._written)
        try:
            return await asyncio.shield(write)
        except asyncio.CancelledError:
            await asyncio.wait([write], timeout=CALLED_OFF_SECONDS)  # mostly it ends, and can be taken back as a whole
            raise

    def _written(self, write: asyncio.Task[ResourceClaim]) -> None:
        self._under_way.discard(write)
        if not write.cancelled() and write.exception() is not None:
            log.debug("%s", write.exception())  # nobody may be there any more to hear it

    async def _reserve(
        self, claim: ResourceClaim, allocation: AllocationResult | None, pod: PodView, consumer: Consumer
    ) -> ResourceClaim:
        uid, writing = claim.metadata.uid, f"{pod.uid} (being written)"
        self._book.join(uid, writing)
        try:
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

    # The claim that stands in for extended resources

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create the special claim; what exists in memory only (its name, its uid) is left to the API."""
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
        """Write the special claim's allocation, and keep the devices booked until the cache knows the claim."""
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
        """Write into the pod's status which request of the special claim serves which container."""
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
        """Write into the pod's status what its devices use up of the node."""
        status = {"nodeAllocatableResourceClaimStatuses": [msgspec.to_builtins(each) for each in statuses]}
        await self._patch_status(pod, status, f"updating pod {pod.key} NodeAllocatableResourceClaimStatuses")

    async def _patch_status(self, pod: PodView, status: dict[str, Any], what: str) -> None:
        try:
            await self._handle.writer.patch_pod_status(pod, status)
        except (ApiError, Unreachable) as error:
            raise BindError(f"{what}: {error}") from error

    async def clear_uses(self, pod: PodView) -> None:
        """Take that back; failures are only logged."""
        try:
            await self._handle.writer.patch_pod_status(pod, {"nodeAllocatableResourceClaimStatuses": None})
        except SchedulerError as error:
            log.error("pod %s: cannot clear nodeAllocatableResourceClaimStatuses: %s", pod.key, error)

    # Waiting for devices

    async def wait_until_ready(self, claims: Sequence[ResourceClaim], pod: PodView, timeout_seconds: float) -> None:
        """Wait until all devices of these claims are ready; raise if one will not be in time."""
        started, ended = self._handle.clock.monotonic(), ERROR
        try:
            await self._poll(claims, started + timeout_seconds, timeout_seconds)
            ended = SUCCESS
        except BindError as error:
            ended = error.ended
            raise
        finally:
            self._report(claims, pod, ended, self._handle.clock.monotonic() - started)

    def _report(self, claims: Sequence[ResourceClaim], pod: PodView, ended: str, seconds: float) -> None:
        profile, meter = pod.pod.spec.scheduler_name, self._handle.meter
        for claim in claims:
            allocation = claim.status.allocation
            for result in allocation.devices.results if allocation is not None else ():
                meter.device_waited(profile, result.driver, ended, seconds)
                if result.binding_conditions:
                    meter.device_bound(profile, result.driver, ended)

    async def _poll(self, claims: Sequence[ResourceClaim], deadline: float, timeout_seconds: float) -> None:
        while True:
            found = [self._book.get(claim.metadata.name, claim.metadata.namespace) for claim in claims]
            waiting = False
            for claim in (claim for claim in found if claim is not None):
                broken = binding_failure(claim)
                if broken is not None:
                    raise BindError(broken, FAILURE)
                if not is_ready(claim):
                    waiting = True
                    if is_overdue(claim, self._handle.clock.now(), timeout_seconds):
                        raise BindError(f"device binding timeout: claim={claim.metadata.name}", TIMEOUT)
            if not waiting:
                return
            left = deadline - self._handle.clock.monotonic()
            if left <= 0:
                raise BindError("device binding timeout: context deadline exceeded", TIMEOUT)
            await self._handle.clock.sleep(min(CONDITION_POLL_SECONDS, left))

    # Giving back

    async def deallocate(self, *claims: ResourceClaim) -> None:
        """Clear claims' allocations, reservations and device reports; a failure is logged and tried again."""
        for claim in claims:
            empty = msgspec.structs.replace(claim, status=ResourceClaimStatus())
            try:
                self._accept(await self._handle.writer.update(empty, "status"))
            except SchedulerError as error:
                log.error("deallocate claim %s: %s", claim.key, error)

    async def unreserve(self, name: str, namespace: str, pod: PodView) -> None:
        """Take the pod's reservation of a claim back; failures are only logged, the API's controller cleans up."""
        try:
            for attempt in range(TRIES):
                if attempt:
                    await self._handle.clock.sleep(PAUSE_SECONDS)
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
        """Delete a special claim, its finalizer first. Failures are only logged: the claim is found again in the pod's next
        attempt."""
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
        """Know a claim as it was written, or as a conflict shows it: that may have our own write already, whose answer was
        lost, and whoever then gives up a promise must not take the device for free. Return False if it is gone from the
        cache, or newer there."""
        try:
            if stored is not None:
                self._book.assume(stored)
        except ClaimError as error:
            log.info("not in the cache as the API has it: %s", error)
            return False
        return True


def with_finalizer(claim: ResourceClaim) -> ResourceClaim:
    """Return a claim with the finalizer that protects its allocation."""
    if DELETE_PROTECTION_FINALIZER in claim.metadata.finalizers:
        return claim
    finalizers = (*claim.metadata.finalizers, DELETE_PROTECTION_FINALIZER)
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, finalizers=finalizers))
