"""DynamicResources: find, reserve and allocate the devices that a pod claims.

* PreEnqueue waits until all claims of the pod exist.
* PreFilter collects them. Some are allocated already; the others are pending.
* Filter refuses nodes that cannot reach the devices of an allocated claim. For the pending claims it searches devices on every
  node, for all claims together (`allocation/allocator`). Nodes that reach the same devices are one group with one search.
* Score prefers nodes where requests with alternatives (firstAvailable) get an early one.
* Reserve promises the devices that were found on the chosen node, so that no other pod gets them.
* PreBind writes the promise to the claims, and waits for devices with binding conditions.
* PostFilter, if no node fits, gives back an allocation of the pod that is on the wrong nodes.

A pod may also request an extended resource (`example.com/gpu: 1`) that a device class serves. It gets one more claim, the
*special claim*, with a request for each container (`extended`). Which resources devices serve depends on the node: a node may
offer some of them itself. So `served` numbers the cases: bit i is set where devices serve resource i of the pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import msgspec
import numpy as np

from kubesched.kube.api import AllocationResult, Pod, PodGroup, ResourceClaim, compile_node_selector
from kubesched.scheduler.cluster import Bools, DeviceClaims, DeviceClassMap, Ints, PodView, Snapshot
from kubesched.scheduler.framework import (
    ADD,
    ADMITTED_LATER,
    DELETE,
    DEVICE_CLASS,
    GROUP_TURN,
    NODE,
    NODE_ALLOCATABLE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    SKIP,
    UPDATE,
    Action,
    CycleState,
    Diagnosis,
    FailedGroup,
    GroupPostFiltered,
    GroupTrial,
    GroupTurn,
    Handle,
    Input,
    Plugin,
    PostFiltered,
    PreFilterAnswer,
    Profile,
    Reason,
    Rejections,
    Status,
    Wakeup,
    failed,
    on,
    unresolvable,
    unschedulable,
    workload_of,
)
from kubesched.scheduler.plugins.dynamic_resources import extended
from kubesched.scheduler.plugins.dynamic_resources.allocation import results
from kubesched.scheduler.plugins.dynamic_resources.allocation.offers import Offer, offers
from kubesched.scheduler.plugins.dynamic_resources.allocation.outcomes import OutcomeBook, Outcomes
from kubesched.scheduler.plugins.dynamic_resources.allocation.pools import Pools
from kubesched.scheduler.plugins.dynamic_resources.args import DynamicResourcesArgs, Features
from kubesched.scheduler.plugins.dynamic_resources.claims import (
    Allocated,
    PodClaims,
    can_be_deallocated,
    check_requests,
    claims_of,
    has_binding_conditions,
    is_reserved_for,
    is_unusable,
    shared_with_group,
)
from kubesched.scheduler.plugins.dynamic_resources.node_allocatable import ClaimStatus, NodeResources, Refusals
from kubesched.scheduler.plugins.dynamic_resources.writes import BindError, ClaimWriter, with_finalizer
from kubesched.scheduler.plugins.shared.normalizing import scale_to_best

CANNOT_ALLOCATE = Reason("cannot allocate all claims", resolvable=False)
INVALID_POOLS = Reason("invalid resource pools were encountered", resolvable=False)
NOT_AVAILABLE = Reason("resourceclaim not available on the node", resolvable=False)
CANNOT_FIT = Reason("cannot fit resource", resolvable=False)
STALE_CLAIM = Reason("cannot schedule extended resource claim", resolvable=False)

NOTHING_TO_DEALLOCATE = "no new claims to deallocate"
DEALLOCATED = "deallocation of ResourceClaim completed"
DELETED = "deletion of ResourceClaim completed"
GROUP_DEALLOCATED = "deallocation and deletion of ResourceClaims completed"
STILL_NOT = "still not schedulable"
DEFAULT_FILTER_TIMEOUT, DEFAULT_BINDING_TIMEOUT = 10.0, 600.0


class DynamicResources(Plugin):
    Args = DynamicResourcesArgs
    wakes_on = (
        on(
            NODE,
            ADD | Action.NODE_LABELS | Action.NODE_ALLOCATABLE,
            without_hints=ADD | Action.NODE_ALLOCATABLE | ADMITTED_LATER,
        ),
        on(RESOURCE_CLAIM, ADD | UPDATE, "claim_may_help"),
        on(POD, Action.POD_CLAIMS, "pod_got_claims"),
        on(DEVICE_CLASS, ADD | UPDATE),
        on(RESOURCE_SLICE, ADD | UPDATE),
    )
    needs = (
        ("filter", "pre_filter", "not found"),
        ("score", "pre_filter", "not found"),
    )
    depends_on = (Input.POD_RESOURCE_CLAIMS, Input.POD_DEVICES, Input.NODE)

    def __init__(self, args: DynamicResourcesArgs | None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._features = features = Features(handle.gates)
        self._has_placements = handle.gates.is_enabled("TopologyAwareWorkloadScheduling")
        self._filter_seconds = _seconds(args.filter_timeout if args is not None else None, DEFAULT_FILTER_TIMEOUT)
        self._binding_seconds = _seconds(args.binding_timeout if args is not None else None, DEFAULT_BINDING_TIMEOUT)
        self._book = handle.objects.shared(DeviceClaims)
        self._classes = handle.objects.shared(DeviceClassMap)
        self._pools = Pools(handle.objects, features)
        self._outcomes = OutcomeBook(handle.objects, self._pools, self._book, self._deadline)
        self._writer = ClaimWriter(handle, self._book, features.binding_conditions)
        self._errands: set[asyncio.Task[None]] = set()
        self._node_resources = NodeResources(self._pools, handle.gates)
        if features.node_allocatable:
            vars(self)["depends_on"] = (*self.depends_on, Input.PODS_ON_NODE)  # it compares with the free resources of nodes

    def offers(self, pod: PodView, nodes: Snapshot) -> list[Offer]:
        """Return for each request of a pod the nodes that have such devices, for `why`."""
        return offers(pod.pod, nodes, self.handle.objects, self._book, self._pools)

    def _deadline(self) -> Callable[[], bool] | None:
        if not self._features.filter_timeout or self._filter_seconds <= 0:
            return None
        clock, end = self.handle.clock, self.handle.clock.monotonic() + self._filter_seconds
        return lambda: clock.monotonic() > end

    def _wanted(self, pod: PodView) -> tuple[str, ...]:
        if not pod.template.resources.asks_for_scalars:
            return ()
        wanted: tuple[str, ...] = pod.template.remember((DynamicResources, "wanted"), lambda: extended.wanted_resources(pod))
        return wanted

    def _claims_of(self, pod: Pod) -> list[ResourceClaim] | str:
        return claims_of(pod, self._book, of_groups=self._features.group_claims)

    # Before the queue

    def pre_enqueue(self, pod: PodView) -> Status | None:
        """Gate a pod until all its claims exist."""
        if not pod.pod.spec.resource_claims:
            return None
        found = self._claims_of(pod.pod)
        return unresolvable(found) if isinstance(found, str) else None

    def wakeups(self) -> tuple[Wakeup, ...]:
        """Return the events that may help; deleted claims only since 1.37."""
        wakes: tuple[Wakeup, ...] = self.wakes_on
        if self._features.behaviour.wakes_by_deleted_claims:
            wakes += (on(RESOURCE_CLAIM, DELETE, "claim_may_help"),)
        if self._features.node_allocatable:
            wakes += (on(POD, DELETE),)  # any deleted pod frees resources of its node
        return wakes

    def claim_may_help(self, pod: PodView, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
        """Return whether a claim was deallocated, or the status of a claim of the pod changed."""
        if new is None:
            return old is not None and old.status.allocation is not None
        found = self._claims_of(pod.pod)
        if isinstance(found, str):
            return False
        # Any claim that gives devices back may help any pod that waits for devices; other changes only matter for the
        # pod's own claims.
        if old is not None and old.status.allocation is not None and new.status.allocation is None:
            return True
        if all(claim.metadata.uid != new.metadata.uid for claim in found):
            return False
        return old is None or old.status != new.status

    def pod_got_claims(self, pod: PodView, old: Pod | None, new: Pod) -> bool:
        """Return whether the waiting pod itself changed and all its claims exist now."""
        return new.metadata.uid == pod.uid and not isinstance(self._claims_of(new), str)

    # Which nodes

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        """Collect the pod's claims; refuse the pod if a claim cannot be used on any node."""
        # Written first: later points read it also after SKIP, where it says that there is nothing to do.
        state.write(self.name, PodClaims())
        wanted = self._wanted(pod) if self._features.extended_resources else ()
        if not pod.pod.spec.resource_claims and not wanted:
            return SKIP
        self._book.refresh()
        found = self._claims_of(pod.pod)
        if isinstance(found, str):
            return unresolvable(found)
        collected = PodClaims()
        # A special claim only if a device class serves one of the resources. A claim left from an earlier attempt of
        # this pod is taken up, and Filter refuses the pod with it (`is_stale`) until PostFilter has deleted it.
        if any(self._classes.find(resource) is not None for resource in wanted):
            collected.resources = wanted
            collected.special = self._book.made_for_pod(pod.uid) or extended.special_claim(
                pod.pod, results.new_uid(self.handle.random, pod.uid)
            )
        if not found and collected.special is None:
            return SKIP
        key = workload_of(pod) if self._features.group_claims else None
        if key is not None:
            collected.group = self.handle.objects.get(PodGroup, key.name, key.namespace)
            if collected.group is not None:
                collected.of_group = shared_with_group(pod.pod, collected.group)
        turn: GroupTurn | None = state.find(GROUP_TURN)
        for claim in found:
            refused = self._collect(claim, collected, turn)
            if refused is not None:
                return refused
        if collected.special is not None and self._book.promised(collected.special.metadata.uid) is not None:
            return unresolvable(f"resource claim {collected.special.key} is in the process of being allocated")
        state.write(self.name, collected)
        return None

    def _collect(self, claim: ResourceClaim, mine: PodClaims, turn: GroupTurn | None) -> Status | None:
        """Put a claim among the allocated or the pending ones; return a refusal of the pod if the claim cannot be used now."""
        allocation = claim.status.allocation
        promised = self._book.promised(claim.metadata.uid) if allocation is None else None
        if promised is not None:
            # A member of a group shares the promise to an earlier member of the same attempt. Other pods wait until it is
            # written, because a promise may be taken back.
            if turn is None or not self._book.is_promised_to(claim.metadata.uid, turn.uids):
                return unresolvable(f"resource claim {claim.key} is in the process of being allocated")
            allocation = promised.status.allocation
        # `where` is compiled once for the attempt. None: the devices can be used on every node.
        if allocation is not None:
            where = None
            if allocation.node_selector is not None:
                where = compile_node_selector(allocation.node_selector)
                if where.error is not None:
                    return failed(where.error)
            mine.allocated.append(Allocated(claim, allocation, where, is_shared=promised is not None))
            return None
        refused = check_requests(claim, self.handle.objects, self._features.prioritized_list)
        if refused is None:
            mine.pending.append(claim)
        return refused

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Refuse nodes that cannot reach the pod's devices, or have no free devices for its pending claims."""
        mine: PodClaims = state.read(self.name)
        if mine.is_empty:
            return Rejections.none(nodes)
        if mine.is_stale:
            return Rejections.where(np.ones(nodes.n, dtype=np.bool_), STALE_CLAIM)
        mine.nodes = nodes.everything()
        served = self._served(mine, nodes)
        refusals = Refusals(nodes.n, (CANNOT_ALLOCATE, INVALID_POOLS))  # the order of NONE_BIT and INVALID_POOLS_BIT
        self._refuse_unserved(mine, nodes, refusals)
        if self._features.node_allocatable:
            self._pools.follow(nodes)
            self._node_resources.refuse_shared(pod, mine, nodes, refusals)
        bits, errors = refusals.bits, dict[int, str]()
        # One pass for each set of resources that devices serve, because each set means another special claim: on nodes
        # that offer example.com/gpu themselves the pod's claims are searched without it, on the others with it. Mostly
        # there is one set.
        for kind in (0,) if served is None else np.unique(served).tolist():
            if kind and kind not in mine.variants:
                assert mine.special is not None
                resources = [name for bit, name in enumerate(mine.resources) if kind >> bit & 1]
                mine.variants[kind] = extended.make_variant(pod.pod, mine.special, resources, self._classes)
            claims = mine.to_allocate(kind)
            if claims:
                mine.found[kind] = found = self._outcomes.outcomes(claims, nodes)
                here = found.bits[self._pools.rows(nodes)]
                asked = bits == 0 if served is None else (bits == 0) & (served == kind)
                if found.errors or found.unknown:
                    self._collect_errors(found, claims, nodes, asked, errors)
                # Only where nothing has refused the row yet and the row is of this kind.
                np.copyto(bits, here, where=asked)
        if self._features.node_allocatable:
            self._node_resources.refuse_short(pod, mine, nodes, served, refusals, errors)
            state.write(NODE_ALLOCATABLE, lambda name: self._footprint(mine, name))
        for holder in mine.allocated:
            away = self._unavailable(holder, nodes)
            if away is not None:
                refusals.add(away & refusals.open, NOT_AVAILABLE)
        # A row is either refused or has an error, never both.
        for row in errors:
            bits[row] = 0
        return Rejections(bits, tuple(refusals.reasons), errors or None)

    def _footprint(self, mine: PodClaims, node_name: str) -> tuple[ClaimStatus, ...]:
        return mine.footprints.get((self._served_on(mine, node_name), self._pools.group_of(node_name)), ())

    def _served(self, mine: PodClaims, nodes: Snapshot) -> Ints | None:
        """Return `served` for every row: the extended resources that devices must serve there, as bits; None without such."""
        if mine.special is None:
            return None
        #     pod requests gpu (bit 0) and nic (bit 1), both have device classes
        #     n1 offers no gpu and no nic: 0b11      n2 offers gpu itself: 0b10      n3 offers both: 0
        served = np.zeros(nodes.n, dtype=np.int64)
        for bit, resource in enumerate(mine.resources):
            if self._classes.find(resource) is not None:
                served |= np.where(nodes.allocatable(nodes.resource(resource)) == 0, 1 << bit, 0)
        return served

    def _refuse_unserved(self, mine: PodClaims, nodes: Snapshot, refusals: Refusals) -> None:
        """Refuse nodes that neither list a resource of the pod nor have a device class for it."""
        for resource in mine.resources:
            if self._classes.find(resource) is None:
                # Kept quirk: a node that lists the resource with 0 is not refused here; NodeResourcesFit says
                # "Insufficient" about it.
                none = np.flatnonzero(nodes.allocatable(nodes.resource(resource)) == 0).tolist()
                unknown = np.zeros(nodes.n, dtype=np.bool_)
                unknown[[row for row in none if resource not in nodes.node(row).status.allocatable]] = True
                refusals.add(unknown, CANNOT_FIT)

    def _collect_errors(
        self, found: Outcomes, claims: list[ResourceClaim], nodes: Snapshot, asked: Bools, errors: dict[int, str]
    ) -> None:
        """Add the errors of the searches, and of those that ran out of time, by row."""
        groups = self._pools.rows(nodes)
        for row in np.flatnonzero(asked).tolist():
            group = int(groups[row])
            if group in found.errors:
                errors[row] = found.errors[group].message(claims)
            elif group in found.unknown:
                errors[row] = f"node {nodes.name(row)}: timed out trying to allocate devices"

    def _unavailable(self, holder: Allocated, nodes: Snapshot) -> Bools | None:
        """Return the nodes on which an allocated claim cannot be used; None for none. All nodes if its devices failed or are
        late."""
        if (
            self._features.binding_conditions
            and not holder.is_shared
            and is_unusable(holder.claim, self.handle.clock.now(), self._binding_seconds)
        ):
            return np.ones(nodes.n, dtype=np.bool_)
        return holder.away(nodes)

    def post_filter(
        self, pod: PodView, nodes: Snapshot, state: CycleState, diagnosis: Diagnosis, profile: Profile
    ) -> PostFiltered:
        """Deallocate one claim whose devices are on the wrong nodes; its update wakes the pod."""
        mine: PodClaims | None = state.find(self.name)
        if mine is None:
            return PostFiltered(failed("not found"))
        if mine.is_empty:
            return PostFiltered(self._unhelped(NOTHING_TO_DEALLOCATE), is_settled=True)
        # At most one claim in an attempt, as in kube-scheduler. Its update wakes the pod, which then tries again.
        unused = self._unused(mine, diagnosis, pod.uid)
        if unused is not None:
            return PostFiltered(unschedulable(DEALLOCATED), follow_up=partial(self._writer.deallocate, unused))
        left_behind = mine.special
        if left_behind is not None and left_behind.metadata.name != extended.SPECIAL_NAME:
            return PostFiltered(unschedulable(DELETED), follow_up=partial(self._writer.delete_quietly, left_behind))
        return PostFiltered(self._unhelped(STILL_NOT))

    def _unused(self, mine: PodClaims, diagnosis: Diagnosis, *uids: str) -> ResourceClaim | None:
        """Return a claim for which Filter refused a node (NOT_AVAILABLE) and that is reserved for these uids at most."""
        verdicts = diagnosis.verdicts
        if verdicts is None:
            return None
        # Only nodes that this plugin refused, and because of an allocation. `holder.is_shared` allocations are not in
        # the API, so there is nothing to give back.
        for name, reasons, rows in verdicts.refusals():
            if name == self.name and NOT_AVAILABLE in reasons:
                for holder in mine.allocated:
                    away = self._unavailable(holder, verdicts.nodes.take(rows)) if not holder.is_shared else None
                    if away is not None and away.any() and can_be_deallocated(holder.claim, *uids):
                        return holder.claim
        return None

    def pod_group_post_filter(self, failed: FailedGroup, trial: GroupTrial) -> GroupPostFiltered:
        """Do the same for each member of a group (since 1.37). While no member is scheduled, claims that are reserved for the
        group may be deallocated too."""
        group = failed.group
        if not self._features.behaviour.has_pod_group_post_filter or not isinstance(group, PodGroup):
            return GroupPostFiltered(unschedulable())
        # As in kube-scheduler, nothing is deallocated for a group with a topology constraint.
        if self._has_placements and group.spec.scheduling_constraints is not None:
            return GroupPostFiltered(unschedulable())
        # Claims reserved for the group are in use as soon as one member has a node.
        members = self.handle.groups.get(failed.key)
        is_idle = self._features.group_claims and (members is None or not members.n_scheduled)
        # By uid: members that share a claim would name it several times.
        unused: dict[str, ResourceClaim] = {}
        for pod in failed.members:
            mine: PodClaims | None = failed.states[pod.uid].find(self.name) if pod.uid in failed.states else None
            diagnosis = failed.diagnoses.get(pod.uid)
            if mine is not None and diagnosis is not None:
                found = self._unused(mine, diagnosis, pod.uid, *((group.metadata.uid,) if is_idle else ()))
                if found is not None:
                    unused[found.metadata.uid] = found
        follow_up = partial(self._writer.deallocate, *unused.values()) if unused else None
        return GroupPostFiltered(unschedulable(GROUP_DEALLOCATED), follow_up=follow_up)

    def _unhelped(self, why: str) -> Status:
        return unschedulable() if self._features.behaviour.tells_placement_found else unschedulable(why)

    # Which of them

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        """Prefer nodes where requests get an early alternative of their firstAvailable list."""
        mine: PodClaims | None = state.find(self.name)
        if mine is None or not mine.found:
            return nodes.uniform(0)
        held = sum(results.score_of_claim(holder.claim) for holder in mine.allocated)
        if not held and not any(found.has_lists for found in mine.found.values()):
            return nodes.uniform(0)
        scores = np.zeros(nodes.n, dtype=np.int64)
        groups = self._pools.rows(nodes)
        served = self._served(mine, nodes)
        # Rows of a kind read the solutions of that kind; `held` is the same everywhere and keeps the sum equal to
        # kube-scheduler's.
        for kind, found in mine.found.items():
            here, liked = found.scores(groups)
            if served is not None:
                here &= served == kind
            scores[here] = liked[here] + held
        return scores

    def normalize(self, scores: Ints, feasible: Bools, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        return scale_to_best(scores, feasible, nodes)

    # Reserve and bind

    def reserve(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Promise the devices that Filter found on the node."""
        mine: PodClaims | None = state.find(self.name)
        if mine is None or mine.is_empty:
            return None
        # A group member that uses an earlier member's promise adds itself to it, so that the promise outlives that
        # member.
        for holder in mine.allocated:
            if holder.is_shared:
                self._promise(holder.claim, holder.allocation, pod, mine)
        served = self._served_on(mine, node_name)
        claims = mine.to_allocate(served)
        if not claims:
            return None
        # The solution is the one that Filter found for the node's group. It is not searched again: between Filter and
        # Reserve no other pod is decided.
        if node_name not in mine.given:
            found = mine.found.get(served)
            allocation = found.allocations.get(self._pools.group_of(node_name)) if found is not None else None
            if found is None or allocation is None:
                return failed("claim allocation not found for node")
            new_id = partial(results.new_uid, self.handle.random, pod.uid)
            mine.given[node_name] = results.build(allocation, found.shapes, node_name, self._features, new_id)
        for claim, result in zip(claims, mine.given[node_name], strict=True):
            self._promise(claim, result, pod, mine)
        return None

    def _promise(self, claim: ResourceClaim, allocation: AllocationResult, pod: PodView, mine: PodClaims) -> None:
        mine.booked.append((claim, allocation))
        status = msgspec.structs.replace(claim.status, allocation=allocation)
        self._book.promise(msgspec.structs.replace(with_finalizer(claim), status=status), pod.uid)

    def _served_on(self, mine: PodClaims, node_name: str) -> int:
        if mine.special is None or mine.nodes is None:
            return 0
        node = mine.nodes.take(mine.nodes.rows_of([node_name]))
        served = self._served(mine, node)
        return int(served[0]) if served is not None and node.n else 0

    def unreserve(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Take the promises back, and undo in the API what was written of them."""
        mine: PodClaims | None = state.find(self.name)
        if mine is None:
            return
        # Promises first, so that the devices are free for the next pod at once; the writes follow in the background and
        # only help others to see the same.
        booked, mine.booked = mine.booked, []
        for claim, _ in booked:
            self._book.release(claim.metadata.uid, pod.uid)
        turn: GroupTurn | None = state.find(GROUP_TURN)
        if turn is not None and turn.is_rehearsal:
            return  # a rehearsal writes nothing
        for claim in (*(holder.claim for holder in mine.allocated), *(claim for claim, _ in booked)):
            latest = self._book.get(claim.metadata.name, claim.metadata.namespace)
            if latest is not None and latest.status.allocation is not None and is_reserved_for(latest, pod.uid):
                self._send(self._writer.unreserve(latest.metadata.name, latest.metadata.namespace, pod))
        if self._features.node_allocatable and pod.pod.status.node_allocatable_resource_claim_statuses:
            self._send(self._writer.clear_uses(pod))
        if mine.created is not None:
            self._send(self._writer.delete_quietly(mine.created))
            mine.created = None

    def _send(self, errand: Coroutine[Any, Any, None]) -> None:
        """Start a write in the running event loop. Without a loop (a simulation) nothing was written, so nothing is undone."""
        try:
            task = asyncio.get_running_loop().create_task(errand)
        except RuntimeError:
            errand.close()
            return
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    def pre_bind_pre_flight(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Skip a pod without claims."""
        mine: PodClaims | None = state.find(self.name)
        return SKIP if mine is None or mine.is_empty else None

    async def pre_bind(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Write allocations and reservations, then wait for binding conditions."""
        mine: PodClaims = state.read(self.name)
        try:
            # Kept order: claims, then the pod's status, then the wait. Drivers begin to prepare devices when they see
            # the allocation.
            written = await self._write(pod, node_name, mine)
            statuses = pod.pod.status.node_allocatable_resource_claim_statuses
            if self._features.node_allocatable and statuses:
                await self._writer.tell_uses(pod, statuses)
            if self._features.binding_conditions and any(map(has_binding_conditions, written)):
                note = f"waiting for binding conditions for device on node {node_name}"
                self.handle.recorder.event(pod, "Normal", "BindingConditionsPending", "Scheduling", note)
                await self._writer.wait_until_ready(written, pod, self._binding_seconds)
        except BindError as error:
            return failed(str(error))
        return None

    async def _write(self, pod: PodView, node_name: str, mine: PodClaims) -> list[ResourceClaim]:
        written = []
        for holder in mine.allocated:
            claim = holder.claim
            if holder.is_shared:
                continue  # Reserve has put it into `booked`
            consumer = mine.consumer(claim, pod)
            if not is_reserved_for(claim, consumer.uid):
                claim = await self._writer.reserve(claim, None, pod, consumer)
            written.append(claim)
        for claim, allocation in mine.booked:
            # The special claim must be created before it can be reserved: three writes (create, allocation and
            # reservation, pod status).
            if mine.special is None or claim.metadata.uid != mine.special.metadata.uid:
                written.append(await self._writer.reserve(claim, allocation, pod, mine.consumer(claim, pod)))
                continue
            mine.created = created = await self._writer.create(claim)
            mine.created = stored = await self._writer.reserve_special(created, claim.metadata.uid, allocation, pod)
            await self._writer.tell_pod(pod, stored, mine.variants[self._served_on(mine, node_name)].mappings)
            written.append(stored)
        return written


def _seconds(timeout: int | None, default: float) -> float:
    return timeout / 1e9 if timeout is not None else default
