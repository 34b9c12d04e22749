"""Equal parts of pods are kept once.

A pod of 4.5 KB of JSON becomes 8 KB of Python objects, and most of them equal those of its siblings: the thousand replicas of
a Deployment have the same containers, tolerations and labels. The deduplicator puts the sibling's tuple in place of the pod's
own, so 1.9 KB a pod remain. It also makes later comparisons cheap: whether two pods have equal containers is then a comparison
of addresses. This is safe because the values are frozen: nobody changes what two pods share.
"""

from __future__ import annotations

from msgspec.structs import force_setattr

from kubesched.kube.api import Pod, PodCondition

_MOST_FAMILIES = 1 << 14


class Deduplicator:
    """Keeps the newest pod of each controller, to share with."""

    def __init__(self) -> None:
        self._siblings: dict[str, Pod] = {}

    def settle(self, pod: Pod, old: Pod | None) -> None:
        """Replace parts of a new pod by equal parts of its old version, or of a sibling. Call this before the pod is
        delivered."""
        owners = pod.metadata.owner_references
        family = owners[0].uid if owners else pod.metadata.namespace
        sibling = old or self._siblings.get(family)
        if sibling is None and len(self._siblings) > _MOST_FAMILIES:
            self._siblings.clear()  # controllers come and go; the living ones are soon here again
        self._siblings[family] = pod
        if sibling is None:
            return
        # Written out part by part: a loop over names took twice as long, and this runs for every pod of every list.
        meta, other_meta = pod.metadata, sibling.metadata
        if meta.namespace == other_meta.namespace:
            force_setattr(meta, "namespace", other_meta.namespace)
        if meta.labels == other_meta.labels:
            force_setattr(meta, "labels", other_meta.labels)
        if meta.annotations == other_meta.annotations:
            force_setattr(meta, "annotations", other_meta.annotations)
        if other_meta.owner_references and meta.owner_references == other_meta.owner_references:
            force_setattr(meta, "owner_references", other_meta.owner_references)
        spec, other = pod.spec, sibling.spec
        if spec.scheduler_name == other.scheduler_name:
            force_setattr(spec, "scheduler_name", other.scheduler_name)
        if spec.preemption_policy == other.preemption_policy:
            force_setattr(spec, "preemption_policy", other.preemption_policy)
        if spec.restart_policy == other.restart_policy:
            force_setattr(spec, "restart_policy", other.restart_policy)
        if spec.service_account_name == other.service_account_name:
            force_setattr(spec, "service_account_name", other.service_account_name)
        if spec.overhead == other.overhead:
            force_setattr(spec, "overhead", other.overhead)
        if spec.containers == other.containers:
            force_setattr(spec, "containers", other.containers)
        if other.init_containers and spec.init_containers == other.init_containers:
            force_setattr(spec, "init_containers", other.init_containers)
        if other.tolerations and spec.tolerations == other.tolerations:
            force_setattr(spec, "tolerations", other.tolerations)
        if other.affinity is not None and spec.affinity == other.affinity:
            force_setattr(spec, "affinity", other.affinity)
        constraints = other.topology_spread_constraints
        if constraints and spec.topology_spread_constraints == constraints:
            force_setattr(spec, "topology_spread_constraints", constraints)
        if other.volumes and spec.volumes == other.volumes:
            force_setattr(spec, "volumes", other.volumes)
        status, seen = pod.status, sibling.status
        if status.phase == seen.phase:
            force_setattr(status, "phase", seen.phase)
        if seen.container_statuses and status.container_statuses == seen.container_statuses:
            force_setattr(status, "container_statuses", seen.container_statuses)
        if seen.conditions:
            if status.conditions == seen.conditions:
                force_setattr(status, "conditions", seen.conditions)
            elif len(status.conditions) == len(seen.conditions):
                force_setattr(status, "conditions", tuple(map(_shared_condition, status.conditions, seen.conditions)))


def _shared_condition(mine: PodCondition, other: PodCondition) -> PodCondition:
    """Return a condition that shares what it can: mostly two of them differ only in their times."""
    if mine == other:
        return other
    if mine.type == other.type:
        force_setattr(mine, "type", other.type)
    if mine.status == other.status:
        force_setattr(mine, "status", other.status)
    return mine
