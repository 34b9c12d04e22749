"""Pods that say the same thing say it with the same value.

In: a pod just decoded, and the version before it if there is one. Out: the same pod, in which each of its big parts
that equals the one of a sibling (an earlier pod of the same controller) or of its own past is that very value. A pod
of 4.5 KB of JSON holds 8 KB of Python objects, most of them equal to those of thousands of others; shared, 2.4 KB are
its own, and asking whether two pods have equal containers becomes a comparison of addresses. Values are frozen, and
what is in them is never changed by anybody, so nobody can tell.
"""

from __future__ import annotations

from msgspec.structs import force_setattr

from kubesched.kube.api import ObjectMeta, Pod, PodSpec, PodStatus

_MOST_FAMILIES = 1 << 14


class Deduplicator:
    """Remembers one pod of each controller to share with."""

    def __init__(self) -> None:
        self._siblings: dict[str, Pod] = {}

    def settle(self, pod: Pod, old: Pod | None) -> None:
        """Replace parts of a pod by equal ones that are there already. To be called before anyone else sees the pod."""
        owners = pod.metadata.owner_references
        family = owners[0].uid if owners else pod.metadata.namespace
        sibling = old or self._siblings.get(family)
        if sibling is None and len(self._siblings) > _MOST_FAMILIES:
            self._siblings.clear()  # controllers come and go; the living ones are soon known again
        self._siblings[family] = pod
        if sibling is not None:
            _share_meta(pod.metadata, sibling.metadata)
            _share_spec(pod.spec, sibling.spec)
            _share_status(pod.status, sibling.status)


# Written out part by part: a loop over names took twice as long, and this runs for every pod of every list.


def _share_meta(mine: ObjectMeta, theirs: ObjectMeta) -> None:
    if mine.labels == theirs.labels:
        force_setattr(mine, "labels", theirs.labels)
    if mine.annotations == theirs.annotations:
        force_setattr(mine, "annotations", theirs.annotations)
    if theirs.owner_references and mine.owner_references == theirs.owner_references:
        force_setattr(mine, "owner_references", theirs.owner_references)


def _share_spec(mine: PodSpec, theirs: PodSpec) -> None:
    if mine.containers == theirs.containers:
        force_setattr(mine, "containers", theirs.containers)
    if theirs.init_containers and mine.init_containers == theirs.init_containers:
        force_setattr(mine, "init_containers", theirs.init_containers)
    if theirs.tolerations and mine.tolerations == theirs.tolerations:
        force_setattr(mine, "tolerations", theirs.tolerations)
    if theirs.affinity is not None and mine.affinity == theirs.affinity:
        force_setattr(mine, "affinity", theirs.affinity)
    constraints = theirs.topology_spread_constraints
    if constraints and mine.topology_spread_constraints == constraints:
        force_setattr(mine, "topology_spread_constraints", constraints)
    if theirs.volumes and mine.volumes == theirs.volumes:
        force_setattr(mine, "volumes", theirs.volumes)


def _share_status(mine: PodStatus, theirs: PodStatus) -> None:
    if theirs.container_statuses and mine.container_statuses == theirs.container_statuses:
        force_setattr(mine, "container_statuses", theirs.container_statuses)
    if theirs.conditions:
        if mine.conditions == theirs.conditions:
            force_setattr(mine, "conditions", theirs.conditions)
        elif len(mine.conditions) == len(theirs.conditions):  # mostly they differ in their times, and not in all of them
            shared = tuple([b if a == b else a for a, b in zip(mine.conditions, theirs.conditions, strict=True)])
            force_setattr(mine, "conditions", shared)
