"""The operation allocResourceClaims: allocate devices to claims before any pod uses them.

In: the cluster's nodes, slices, classes and claims. Out: an allocation for each claim that had none. An engine in memory
schedules one pod for each claim, and the allocation that it assumes is the result. So every device request that the scheduler
supports is allocated as the scheduler would do it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubesched.errors import SchedulerError
from kubesched.kube import api
from kubesched.kube.client import Connection, list_objects
from kubesched.scheduler import config
from kubesched.scheduler.cluster import DeviceClaims
from kubesched.scheduler.engine import Ports, assemble, default_configuration


async def read_cluster(connection: Connection) -> list[api.TopLevel]:
    """Return the objects that an allocation depends on."""
    found: list[api.TopLevel] = []
    for kind in (api.Node, api.DeviceClass, api.ResourceSlice, api.ResourceClaim):
        found += await list_objects(connection, kind)
    return found


def allocations(
    objects: Iterable[api.TopLevel], claims: Iterable[api.ResourceClaim], gates: config.Gates
) -> Iterator[tuple[api.ResourceClaim, api.AllocationResult]]:
    """Yield each claim without devices with its allocation; raise SchedulerError if no device is left for one."""
    engine = assemble(default_configuration(gates), gates, Ports())
    engine.bookings.hand_over = lambda binding: engine.queue.done(binding.booked.uid)
    engine.failures.writes = False
    for obj in objects:
        engine.intake.apply(obj.kind, None, obj)
    book = engine.handle.objects.shared(DeviceClaims)
    for claim in claims:
        if claim.status.allocation is not None:
            continue
        engine.intake.apply("Pod", None, _pod_for(claim))
        engine.step()
        promised = book.promised(claim.metadata.uid)
        if promised is None or promised.status.allocation is None:
            raise SchedulerError(f"allocResourceClaims: there is no device left for claim {claim.key}")
        yield claim, promised.status.allocation


def _pod_for(claim: api.ResourceClaim) -> api.Pod:
    meta = claim.metadata
    return api.Pod(
        metadata=api.ObjectMeta(name=f"for-{meta.name}", namespace=meta.namespace, uid=f"for-{meta.uid}"),
        spec=api.PodSpec(
            containers=(api.Container(name="c", image="none"),),
            resource_claims=(api.PodResourceClaim(name="d", resource_claim_name=meta.name),),
            scheduler_name="default-scheduler",
        ),
    )
