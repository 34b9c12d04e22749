"""The volume predicates, as `plugins.legacy_volumes` has them, in the words of each release and under its gates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kubesched.cluster import Ints, PodView, Snapshot
from kubesched.framework import CycleState, Plugin, PreFilterAnswer, Reason, Rejections
from kubesched.framework.ports import Handle
from kubesched.legacy.context import LegacyContext
from kubesched.plugins._volumes import VolumeError, claim_not_found, direct_claim_names, find_claim
from kubesched.plugins.legacy_volume_counts import InTreeVolumeCount, VolumeCountArgs, VolumeCountPredicate
from kubesched.plugins.legacy_volumes import LEGACY_VOLUME_PREDICATES, CheckVolumeBinding
from kubesched.plugins.volume_binding.args import VolumeBindingArgs

COUNTED = "MaxVolumeCount"


@dataclass(frozen=True, slots=True)
class AttachedVolumes:
    """How many more volumes of the kind that the pod brings every node takes, and how many would be new to it."""

    KEY: ClassVar[str] = "legacy.attached volumes"

    free: Ints
    new: Ints


def volume_predicate(name: str, context: LegacyContext, handle: Handle) -> Plugin:
    """Return the volume predicate of that name as a release had it."""
    cls = LEGACY_VOLUME_PREDICATES[name]
    points: dict[str, Any] = {"name": name, "__doc__": cls.__doc__}
    if context.gates.balance_attached_node_volumes and issubclass(cls, InTreeVolumeCount):
        cls = type(cls.__name__, (_Noted, cls), points)
    if context.release.gives_one_reason:
        cls = type(cls.__name__, (_Terse, cls), points)
    if context.release.names_failures:
        failure = COUNTED if issubclass(cls, VolumeCountPredicate) else name
        cls = type(cls.__name__, (_Renamed, cls), {**points, "failure": failure})
    args: VolumeCountArgs | VolumeBindingArgs | None = None
    if issubclass(cls, VolumeCountPredicate):
        args = VolumeCountArgs(context.max_pd_volumes)
    elif issubclass(cls, CheckVolumeBinding) and context.bind_timeout_seconds is not None:
        args = VolumeBindingArgs(bind_timeout_seconds=context.bind_timeout_seconds)
    return cls(args, handle)


class _Terse(Plugin):
    """Give the first reason of a node only; a mixin."""

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        verdict = super().filter(pod, nodes, state)
        if verdict.bits is None:
            return verdict
        lowest = verdict.bits & (~verdict.bits + np.uint64(1))
        return Rejections(lowest, verdict.reasons, verdict.errors)


class _Renamed(Plugin):
    """Show the failure's short name for whatever reason there is; a mixin."""

    failure: ClassVar[str] = ""

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        verdict = super().filter(pod, nodes, state)
        reasons = tuple(Reason(self.failure, reason.resolvable) for reason in verdict.reasons)
        return Rejections(verdict.bits, reasons, verdict.errors)


class _Noted(InTreeVolumeCount):
    """Leave a note of the volumes for BalancedResourceAllocation; a mixin."""

    def filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> Rejections:
        verdict = super().filter(pod, nodes, state)
        wanted = state.find(self.name)
        volumes = wanted.wanted.get(self.plugin) if wanted is not None else None
        if volumes and nodes.rows is None:
            new = np.full(nodes.n, len(volumes), dtype=np.int64)
            for volume in volumes:
                for row in self.attachments.rows_with(volume.name):
                    new[row] -= 1
            held = self.attachments.count(self.plugin)
            limits = self.limits(self.plugin, nodes)
            state.write(AttachedVolumes.KEY, AttachedVolumes(limits - (0 if held is None else held), new))
        return verdict


class ClaimsExist(Plugin):
    """Before any node is looked at, the claims that a pod names must exist and not be on their way out (1.17)."""

    def pre_filter(self, pod: PodView, nodes: Snapshot, state: CycleState) -> PreFilterAnswer:
        for name in direct_claim_names(pod.pod):
            claim = find_claim(self.handle.objects, pod.namespace, name)
            if claim is None:
                raise VolumeError(claim_not_found(name))
            if claim.metadata.deletion_timestamp is not None:
                raise VolumeError(f'persistentvolumeclaim "{name}" is being deleted')
        return None
