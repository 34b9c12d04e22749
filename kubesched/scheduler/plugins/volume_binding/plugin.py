"""VolumeBinding: find, reserve and bind the volumes that a pod claims.

PreFilter sorts the pod's claims:

* bound: Filter refuses nodes that the volume's node affinity excludes.
* unbound, class with volumeBindingMode WaitForFirstConsumer ("delayed"): Filter finds for every node the smallest open volume
  that fits, or whether one can be provisioned there. Reserve promises the volumes of the chosen node. PreBind writes the
  promises and waits until the volume controller and the provisioner have done their part.
* unbound otherwise ("immediate"): the pod waits, because the volume controller binds these claims without the pod.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from kubesched.errors import ApiError, Unreachable
from kubesched.kube.api import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from kubesched.scheduler.cluster import Bools, ClaimCache, Ints, PodView, PromiseError, Snapshot, VolumeCache, class_of_claim
from kubesched.scheduler.config import (
    MAX_SHAPE_SCORE,
    Args,
    FieldError,
    Gates,
    Int64,
    Path,
    UtilizationShapePoint,
    invalid,
    validate_shape,
)
from kubesched.scheduler.framework import (
    ADD,
    ADMITTED_LATER,
    CSI_CAPACITY,
    CSI_DRIVER,
    CSI_NODE,
    NODE,
    PV,
    PVC,
    SKIP,
    STORAGE_CLASS,
    UPDATE,
    Action,
    CycleState,
    Handle,
    Input,
    Plugin,
    PreFilterAnswer,
    Reason,
    Rejections,
    Status,
    failed,
    on,
    unresolvable,
)
from kubesched.scheduler.plugins.node_volume_limits.csi_nodes import migrated_plugins
from kubesched.scheduler.plugins.shared.allocation import scores_of_shape
from kubesched.scheduler.plugins.shared.volumes import (
    WAIT_FOR_FIRST_CONSUMER,
    VolumeError,
    claim_not_found,
    claim_uses,
    is_fully_bound,
    names_claim,
    ownership_error,
)
from kubesched.scheduler.plugins.volume_binding.binding import Binder, Promises
from kubesched.scheduler.plugins.volume_binding.capacities import limit_bytes
from kubesched.scheduler.plugins.volume_binding.plan import Planner, VolumePlan, storage_scores

PREFER_ROOM = (UtilizationShapePoint(0, MAX_SHAPE_SCORE), UtilizationShapePoint(100, 0))


class VolumeBindingArgs(Args, frozen=True, rename="camel"):
    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None

    def defaulted(self, gates: Gates) -> VolumeBindingArgs:
        if self.shape or not gates.is_enabled("StorageCapacityScoring"):
            return self
        return msgspec.structs.replace(self, shape=PREFER_ROOM)

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        errors = []
        if self.bind_timeout_seconds < 0:
            detail = "invalid BindTimeoutSeconds, should not be a negative value"
            errors.append(invalid(path.child("bindTimeoutSeconds"), self.bind_timeout_seconds, detail))
        if gates.is_enabled("StorageCapacityScoring"):
            errors += validate_shape(self.shape or (), path.child("shape"))
        elif self.shape is not None:
            detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
            errors.append(invalid(path.child("shape"), self.shape, detail))
        return errors


AFFINITY = Reason("node(s) didn't match PersistentVolume's node affinity", resolvable=False)
NOTHING_TO_BIND = Reason("node(s) didn't find available persistent volumes to bind", resolvable=False)
NO_SPACE = Reason("node(s) did not have enough free storage", resolvable=False)
VOLUME_MISSING = Reason("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", resolvable=False)
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


@dataclass(slots=True)
class Claims:
    """A pod's claims in one attempt, the plan for them, and what was promised.

    A what-if shares this object with its attempt, because nothing in it depends on the pods of a node.
    """

    bound: list[PersistentVolumeClaim]
    delayed: list[PersistentVolumeClaim]
    plan: VolumePlan | None = None
    promises: dict[str, Promises] = field(default_factory=dict)
    all_bound: bool = False


class VolumeBinding(Plugin):
    Args = VolumeBindingArgs
    wakes_on = (
        on(STORAGE_CLASS, ADD | UPDATE, "class_may_help"),
        on(PVC, ADD | UPDATE, "claim_may_help"),
        on(PV, ADD | UPDATE),
        on(NODE, ADD | Action.NODE_LABELS, without_hints=ADD | ADMITTED_LATER),
        on(CSI_NODE, ADD | UPDATE, "csi_node_may_help"),
        on(CSI_DRIVER, UPDATE, "driver_may_help"),
        on(CSI_CAPACITY, ADD | UPDATE, "capacity_may_help"),
    )
    depends_on = (Input.POD_VOLUMES, Input.NODE)
    reasons: tuple[Reason, Reason, Reason, Reason] = (AFFINITY, NOTHING_TO_BIND, NO_SPACE, VOLUME_MISSING)
    heeds_capacity = True
    """Whether the CSIStorageCapacity objects of CSI drivers count."""

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.volumes = VolumeCache(handle.objects)
        self.claims = ClaimCache(handle.objects)
        self._planner = Planner(
            handle.objects, self.volumes, self.heeds_capacity, handle.gates.is_enabled("VolumeAttributesClass")
        )
        args = args or VolumeBindingArgs()
        self._binder = Binder(handle, self.volumes, self.claims, args.bind_timeout_seconds)
        # `_line` is the shape as a table: the score for each percentage from 0 to 100; None with the gate off.
        self._line: Ints | None = None
        self.needs = (("filter", "pre_filter", "not found"),)
        if handle.gates.is_enabled("StorageCapacityScoring"):
            self._line = scores_of_shape(args.shape or PREFER_ROOM)
            self.needs += (("score", "pre_filter", "not found"),)

    # Which nodes

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        """Sort the pod's claims into bound, delayed and immediate ones."""
        if not pod.pod.spec.volumes:
            return SKIP
        found = self._claims_of(pod)
        if isinstance(found, Status):
            return found
        # A claim with volumeName but without the annotation bind-completed is on its way and counts as immediate: the
        # pod waits for the volume controller.
        bound: list[PersistentVolumeClaim] = []
        delayed: list[PersistentVolumeClaim] = []
        immediate = False
        for claim in found:
            if is_fully_bound(claim):
                bound.append(claim)
                continue
            is_delayed = self._is_delayed(claim)
            if isinstance(is_delayed, Status):
                return is_delayed
            if is_delayed and not claim.spec.volume_name:
                delayed.append(claim)
            else:
                immediate = True
        if not found:
            return SKIP
        if immediate:
            return unresolvable(UNBOUND_IMMEDIATE)
        state.write(self.name, Claims(bound, delayed))
        return None

    def _claims_of(self, pod: PodView) -> list[PersistentVolumeClaim] | Status:
        """Return a pod's claims with the promises about them, or why one cannot be used by what the API says."""
        found = []
        # Checked in the API server's version (`stored`), used in the version with promises (`get`): another pod with the
        # claim may have got a node already, and then the claim is pinned to that node.
        for name, ephemeral in claim_uses(pod.pod):
            claim = self.claims.stored(name, pod.namespace)
            if claim is None:
                if ephemeral:
                    return unresolvable(f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"')
                return unresolvable(claim_not_found(name))
            if claim.status.phase == "Lost":
                return unresolvable(
                    f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
                )
            if claim.metadata.deletion_timestamp is not None:
                return unresolvable(f'persistentvolumeclaim "{name}" is being deleted')
            wrong = ownership_error(pod.pod, claim) if ephemeral else ""
            if wrong:
                return unresolvable(wrong)
            found.append(self.claims.get(name, pod.namespace) or claim)
        return found

    def _is_delayed(self, claim: PersistentVolumeClaim) -> bool | Status:
        """Return whether the claim's class waits for its first consumer, or an error for a class without a mode."""
        class_name = class_of_claim(claim)
        storage_class = self.handle.objects.get(StorageClass, class_name) if class_name else None
        if storage_class is None:
            return False
        if storage_class.volume_binding_mode is None:
            return failed(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        """Plan once for all rows of the cluster, then read the four columns of the plan for the rows of the view."""
        claims: Claims = state.read(self.name)
        # The plan is for all rows and does not depend on pods, so a second call in the attempt (nominated pods,
        # preemption) reads it again.
        if claims.plan is None:
            claims.plan = self._planner.plan(claims.bound, claims.delayed, nodes)
        plan, rows = claims.plan, nodes.rows
        found = (plan.out_of_reach, plan.cannot_bind, plan.no_space, plan.volume_missing)
        columns = [
            (column if rows is None else column[rows], reason)
            for column, reason in zip(found, self.reasons, strict=True)
            if np.count_nonzero(column)
        ]
        # `every`, not `first`: kube-scheduler reports all reasons of this plugin against a node.
        refused = Rejections.every(*columns) if columns else Rejections.none(nodes)
        if plan.errors:
            refused = Rejections(refused.bits, refused.reasons, plan.errors_in(rows))
            if refused.errors:
                self.handle.meter.volume_error("predicate")
        return refused

    # Which of them

    def pre_score(self, pod: PodView, nodes: Snapshot, feasible: Bools, state: CycleState) -> Status | None:
        """Skip unless the gate StorageCapacityScoring is on."""
        return SKIP if self._line is None else None

    def score(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Ints:
        """Score the share of the node's storage that the pod would use."""
        claims: Claims | None = state.find(self.name)
        if self._line is None or claims is None or claims.plan is None or not claims.delayed:
            return nodes.uniform(0)
        scores = storage_scores(claims.plan, self._line)
        return scores if nodes.rows is None else scores[nodes.rows]

    # Reserve and bind

    def reserve(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Promise the volumes that the plan has for the node, so that no other pod gets them."""
        claims: Claims | None = state.find(self.name)
        if claims is None:
            return None
        # Another pod with the same claims may have been bound between Filter and Reserve. Then there is nothing to
        # promise.
        row = claims.plan.nodes.row(node_name) if claims.plan is not None and claims.delayed else -1
        if claims.plan is None or row < 0 or self._are_bound_by_now(pod):
            claims.all_bound = True
            return None
        try:
            claims.promises[node_name] = self._binder.promise(claims.plan, row)
        except PromiseError as error:
            self.handle.meter.volume_error("assume")
            return failed(str(error))
        claims.all_bound = False
        return None

    def unreserve(self, pod: PodView, node_name: str, state: CycleState) -> None:
        """Take back the promises that were not written."""
        claims: Claims | None = state.find(self.name)
        promises = claims.promises.pop(node_name, None) if claims is not None else None
        if promises is not None:
            self._binder.take_back(promises)

    def pre_bind_pre_flight(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Skip if all claims are bound."""
        claims: Claims | None = state.find(self.name)
        if claims is None or claims.all_bound:
            return SKIP
        if node_name not in claims.promises:
            return failed(f'no pod volume found for node "{node_name}"')
        return None

    async def pre_bind(self, pod: PodView, node_name: str, state: CycleState) -> Status | None:
        """Write the promises and wait until all claims are bound."""
        ready = self.pre_bind_pre_flight(pod, node_name, state)
        if ready is not None:
            return None if ready is SKIP else ready
        promises: Promises = state.read(self.name).promises[node_name]
        # What was written stays on an error; Unreserve takes back the rest.
        try:
            await self._binder.write(promises)
            await self._binder.wait(promises, pod, node_name)
        except (VolumeError, ApiError, Unreachable) as error:
            self.handle.meter.volume_error("bind")
            return failed(str(error))
        return None

    def _are_bound_by_now(self, pod: PodView) -> bool:
        found = (self.claims.get(name, pod.namespace) for name, _ in claim_uses(pod.pod))
        return all(claim is not None and is_fully_bound(claim) for claim in found)

    # Queueing hints

    def class_may_help(self, pod: PodView, old: StorageClass | None, new: StorageClass) -> bool:
        """Return whether the class is new or its allowedTopologies changed."""
        return old is None or old.allowed_topologies != new.allowed_topologies

    def claim_may_help(self, pod: PodView, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
        """Return whether the pod names the claim."""
        return names_claim(pod.pod, new)

    def csi_node_may_help(self, pod: PodView, old: CSINode | None, new: CSINode) -> bool:
        """Return whether the CSINode is new or its migrated plugins changed."""
        return old is None or migrated_plugins(old) != migrated_plugins(new)

    def driver_may_help(self, pod: PodView, old: CSIDriver, new: CSIDriver) -> bool:
        """Return whether the driver stopped reporting storage capacity and the pod has an inline volume of it.

        Kept quirk: kube-scheduler does not look at the pod's claims here.
        """
        if not old.spec.storage_capacity or new.spec.storage_capacity:
            return False
        return any(volume.csi is not None and volume.csi.driver == new.metadata.name for volume in pod.pod.spec.volumes)

    def capacity_may_help(self, pod: PodView, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> bool:
        """Return whether there is more storage than before."""
        if old is None:
            return True
        before, after = limit_bytes(old), limit_bytes(new)
        return after is not None and (before is None or after > before)
