"""Promising volumes, writing the promises and waiting for them: VolumeBinding's Reserve and PreBind.

    Reserve    the assume caches get volume pv-1 with claimRef data-1, and claim data-2 with the annotation selected-node: n1
               -> other pods see pv-1 as taken                                 (`promise`; `take_back` undoes it)
    PreBind    both are written to the API                                     (`write`)
               the volume controller binds data-1 to pv-1, the provisioner makes a volume for data-2 on n1
               each second the claims are read, until all are bound            (`wait`)

If PreBind fails, what is not written is taken back. What is written stays, as kube-scheduler leaves it: the next attempt finds
it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from kubesched.errors import ApiError, Unreachable
from kubesched.kube.api import CSINode, Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, compile_node_selector
from kubesched.kube.values import BOUND_BY_CONTROLLER, SELECTED_NODE
from kubesched.scheduler.cluster import ClaimCache, PodView, PromiseError, VolumeCache
from kubesched.scheduler.framework import Handle
from kubesched.scheduler.plugins.node_volume_limits.csi_nodes import migrated_plugins
from kubesched.scheduler.plugins.shared import csi_translation as csi
from kubesched.scheduler.plugins.shared.volumes import VolumeError, is_fully_bound
from kubesched.scheduler.plugins.volume_binding.open_volumes import affinity_of, is_meant_for
from kubesched.scheduler.plugins.volume_binding.plan import VolumePlan

POLL_SECONDS = 1.0


@dataclass(slots=True)
class Binding:
    """A claim and the existing volume that it gets. `was_promised`: False if the volume named the claim already."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume
    was_promised: bool = False


@dataclass(slots=True)
class Promises:
    """The promises to one pod on one node: claims with existing volumes, and claims to provision."""

    bindings: list[Binding] = field(default_factory=list)
    provisions: list[PersistentVolumeClaim] = field(default_factory=list)


class Binder:
    """Promises, writes and waits; one for each plugin."""

    def __init__(self, handle: Handle, volumes: VolumeCache, claims: ClaimCache, timeout_seconds: float) -> None:
        self._handle = handle
        self._volumes = volumes
        self._claims = claims
        self._timeout_seconds = timeout_seconds

    # Reserve

    def promise(self, plan: VolumePlan, row: int) -> Promises:
        """Promise all volumes and claims of the plan for a row, or none; raise `PromiseError` if one changed meanwhile."""
        # All or none: Reserve must not leave promises behind when it fails, because Unreserve gets nothing to take back
        # then.
        made = Promises()
        try:
            for claim, volume in plan.bindings_on(row):
                # Equal, not identical: in a group, an earlier promise may have been taken back and made again.
                if self._volumes.get(volume.metadata.name) != volume:
                    raise PromiseError(
                        f'persistentvolume "{volume.metadata.name}" changed since it was chosen for '
                        f'persistentvolumeclaim "{claim.key}"'
                    )
                promised = given_to(volume, claim)
                if promised is not volume:
                    self._volumes.assume(promised)
                made.bindings.append(Binding(claim, promised, promised is not volume))
            for claim in plan.provisions_on(row):
                annotations = {**claim.metadata.annotations, SELECTED_NODE: plan.nodes.name(row)}
                pinned = replace(claim, metadata=replace(claim.metadata, annotations=annotations))
                self._claims.assume(pinned)
                made.provisions.append(pinned)
        except PromiseError:
            self.take_back(made)
            raise
        return made

    def take_back(self, promises: Promises) -> None:
        """Take back the promises."""
        for binding in promises.bindings:
            if binding.was_promised:
                self._volumes.restore(binding.volume)
        for claim in promises.provisions:
            self._claims.restore(claim)

    # PreBind

    async def write(self, promises: Promises) -> None:
        """Write the promises to the API, one by one. On an error, take back those that are not written, and raise it."""
        # Volumes before claims, as in kube-scheduler. The counts say what was written; only what comes after them may
        # be taken back, since the API server has the rest.
        n_bindings = n_provisions = 0
        try:
            for binding in promises.bindings:
                binding.volume = await self._handle.writer.update(binding.volume)
                n_bindings += 1
            for at, claim in enumerate(promises.provisions):
                promises.provisions[at] = await self._handle.writer.update(claim)
                n_provisions += 1
        except (ApiError, Unreachable):
            self.take_back(Promises(promises.bindings[n_bindings:], promises.provisions[n_provisions:]))
            raise

    async def wait(self, promises: Promises, pod: PodView, node_name: str) -> None:
        """Wait until all claims are bound; raise `VolumeError` if one cannot be bound any more, or is late."""
        clock = self._handle.clock
        deadline = clock.monotonic() + self._timeout_seconds
        while True:
            # The first look is after one second, and none comes after the deadline: both as in kube-scheduler's polling.
            left = deadline - clock.monotonic()
            if left < POLL_SECONDS:
                if left > 0:
                    await clock.sleep(left)
                raise VolumeError("binding volumes: context deadline exceeded")
            await clock.sleep(POLL_SECONDS)
            try:
                if self._are_bound(promises, pod, node_name):
                    return
            except VolumeError as error:
                raise VolumeError(f"binding volumes: {error}") from error

    def _are_bound(self, promises: Promises, pod: PodView, node_name: str) -> bool:
        """Return whether all claims are bound; raise `VolumeError` if one cannot be bound any more."""
        node = self._handle.node(node_name)
        if node is None:
            raise VolumeError(f'failed to get node "{node_name}": node "{node_name}" not found')
        if not self._handle.has_pod(pod.uid):
            raise VolumeError(f'pod does not exist any more: pod "{pod.name}" not found')
        return all(self._is_bound(binding, node) for binding in promises.bindings) and all(
            self._is_provisioned(claim, node) for claim in promises.provisions
        )

    def _is_bound(self, binding: Binding, node: Node) -> bool:
        """Return whether a claim is bound to its existing volume. An older version in the cache than the one that was written
        is not judged yet."""
        # `stored` is what the API server says, without promises: a promise would make the volume look bound already.
        name = binding.volume.metadata.name
        volume = self._volumes.stored(name)
        if volume is None:
            raise VolumeError(f"failed to check binding: {self._volumes.not_found(name)}")
        meta = binding.claim.metadata
        claim = self._claims.stored(meta.name, meta.namespace)
        if claim is None:
            raise VolumeError(f"failed to check binding: {self._claims.not_found(meta.name, meta.namespace)}")
        if _is_older(volume, binding.volume):
            return False
        # Checked again: the volume's node affinity or the labels of the node may have changed since Filter.
        self._check_affinity(volume, node)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise VolumeError(f'ClaimRef got reset for pv "{name}"')
        return is_fully_bound(claim)

    def _is_provisioned(self, written: PersistentVolumeClaim, node: Node) -> bool:
        """Return whether the claim's volume was provisioned and bound. If the provisioner gave up, it has removed the
        selected-node annotation."""
        meta = written.metadata
        claim = self._claims.stored(meta.name, meta.namespace)
        if claim is None:
            missing = self._claims.not_found(meta.name, meta.namespace)
            raise VolumeError(f"failed to check provisioning pvc: {missing}")
        if _is_older(claim, written):
            return False
        # Two texts, as in kube-scheduler: one for a claim without any annotation, one for another selected node or none.
        if not claim.metadata.annotations:
            raise VolumeError(f'selectedNode annotation reset for PVC "{meta.name}"')
        if claim.metadata.annotations.get(SELECTED_NODE, "") != node.metadata.name:
            raise VolumeError(f'provisioning failed for PVC "{meta.name}"')
        if claim.spec.volume_name:
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                return False
            self._check_affinity(volume, node)
        return is_fully_bound(claim)

    def _check_affinity(self, volume: PersistentVolume, node: Node) -> None:
        """Raise VolumeError if a volume does not reach the node; an in-tree volume is checked in its CSI form on nodes that
        migrated it."""
        selector = affinity_of(volume)
        # The same choice as `_misfits` in the plan, for one node: in-tree form, or CSI form where the node has migrated
        # the plugin.
        plugin = csi.in_tree_plugin(volume.spec) if volume.spec.csi is None else ""
        if plugin in csi.MIGRATED:
            csi_node = self._handle.objects.get(CSINode, node.metadata.name)
            if plugin in migrated_plugins(csi_node):
                try:
                    selector = csi.translated_affinity(volume)
                except csi.TranslationError as error:
                    raise VolumeError(f"could not translate pv: {error}") from error
        if selector is not None and not compile_node_selector(selector).matches("", node.metadata.labels):
            raise VolumeError(
                f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node.metadata.name}": '
                "no matching NodeSelectorTerms"
            )


def given_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return the volume with the claim in its claimRef; the same object if it is there already."""
    meta, ref, annotations = claim.metadata, volume.spec.claim_ref, volume.metadata.annotations
    if ref is not None and (ref.name, ref.namespace, ref.uid) == (meta.name, meta.namespace, meta.uid):
        return volume
    claim_ref = ObjectReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )
    # The annotation says that the scheduler made the binding, so the volume controller may undo it. A volume whose user
    # has put the claim into claimRef does not get it: that binding is the user's.
    if not is_meant_for(volume, claim) and BOUND_BY_CONTROLLER not in annotations:
        annotations = {**annotations, BOUND_BY_CONTROLLER: "yes"}
    metadata = replace(volume.metadata, annotations=annotations)
    return replace(volume, spec=replace(volume.spec, claim_ref=claim_ref), metadata=metadata)


def _is_older(
    stored: PersistentVolume | PersistentVolumeClaim,
    written: PersistentVolume | PersistentVolumeClaim,
) -> bool:
    found, wanted = stored.metadata.resource_version, written.metadata.resource_version
    return found.isdecimal() and wanted.isdecimal() and int(found) < int(wanted)
