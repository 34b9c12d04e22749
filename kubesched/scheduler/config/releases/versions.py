"""The releases that can be emulated, and what differs between them without a feature gate (`gates` has the others).

A release comes from `--emulated-version` or from the API server. Each field of `Behaviour` is one visible difference, with the
release that brought it. Only the code that reads the field knows what it means in detail; no other code compares versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

Version = tuple[int, int]

OLDEST_EMULATED: Version = (1, 33)
OLDEST_RECORDED: Version = (1, 36)
"""The oldest release whose decisions were recorded. Emulating an older one means this one with the older gates."""
NEWEST: Version = (1, 37)

RELEASES: Mapping[Version, str] = {(1, 36): "v1.36.4", (1, 37): "v1.37.0-rc.1"}
"""The version of kube-scheduler whose decisions were recorded for each release."""


def _since(major: int, minor: int) -> Any:
    return field(metadata={"since": (major, minor)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """The differences between releases; True from the release in `_since` on."""

    prefilters_node_name: bool = _since(1, 37)
    """NodeName comes before NodeUnschedulable, and names its node at PreFilter; TaintToleration is at PreFilter too."""
    names_informers: bool = _since(1, 37)
    """Informers have a name, so there are metrics for them."""
    has_pod_group_post_filter: bool = _since(1, 37)
    """Profiles have the extension point podGroupPostFilter."""
    judges_groups_whole: bool = _since(1, 37)
    """A pod group is judged as a whole: Permit and PostFilter are not called for its members. After each member
    PlacementFeasible says whether enough can still be placed, and PodGroupPostFilter looks for evictions for the whole group.
    Members are nominated to the nodes where they fit after the evictions; before, only members that fit at once were nominated.
    Members have the priority of their group. The condition is PodGroupInitiallyScheduled."""
    awaits_victims_of_groups: bool = _since(1, 37)
    """A pod group evicts nobody else while pods that were evicted for it are still terminating."""
    weighs_victims_by_group: bool = _since(1, 37)
    """When room is made for a pod group, pods of other groups count with the priority of their group; before, with their own if
    they may be evicted one by one. A group that is evicted as one is as old as its oldest pod, and all its pods are charged to
    disruption budgets; before, it was as old as the pod found first, and charged up to the first pod that violates a budget."""
    names_group_preemption: bool = _since(1, 37)
    """Messages about evictions for a pod group begin with `pod group preemption: `."""
    tells_placement_found: bool = _since(1, 37)
    """PostFilter's message names the node on which it found a placement, and is empty if there was no claim to release."""
    keeps_order_of_unstarted: bool = _since(1, 37)
    """Preemption spares pods that have not started in the order in which the node lists them; before, in reverse."""
    wakes_refused_by_taints_alone: bool = _since(1, 37)
    """A node whose taints change wakes the pods that TaintToleration refused, and no others."""
    wakes_by_any_anti_term: bool = _since(1, 37)
    """A pod that is deleted or changed wakes pods of which any anti-affinity term selects it; before, all terms had to."""
    wakes_by_deleted_claims: bool = _since(1, 37)
    """A ResourceClaim that is deleted with its allocation wakes the pods that DynamicResources refused."""
    names_target_pod: bool = _since(1, 37)
    """Metrics call pods without a node UnscheduledPod, and TargetPod where the waiting pod itself is what changed; before,
    both were called UnschedulablePod."""
    tells_scale_up: bool = _since(1, 37)
    """A pod that asks for more is an event of its own (UpdatePodScaleUp); before, a general update."""
    counts_gated_nominated: bool = _since(1, 37)
    """A nominated pod keeps its place even while a gate keeps it out of the queue."""
    selects_known_namespaces: bool = _since(1, 37)
    """A namespaceSelector is applied to the labels of the namespace; before, also to no labels at all."""
    sums_resized_pods_whole: bool = _since(1, 37)
    """A pod under resize requests the largest of its sums (spec, allocated, actual), not the sum of the largest parts."""
    counts_image_volumes: bool = _since(1, 37)
    """ImageLocality scales its score by the number of images, those of volumes too; before, of containers alone."""
    names_device_in_cel_errors: bool = _since(1, 37)
    """Runtime errors of a device selector name the device."""
    speaks_newer_cel: bool = _since(1, 37)
    """Device selectors use a newer CEL. These are errors now: `or` and `orValue` of a value that is not optional, `lists.range`
    of a negative number or of more than a million, `duration` of an int, a search for the empty string from a negative
    position. Searching for the empty string past the end finds the end. `startsWith`, `endsWith`, `includes` and
    `matches(text, pattern)` have other costs."""
    has_device_overhead: bool = _since(1, 37)
    """Resources of the node that devices use are written to the pod's status as mapping and overhead; before, as resources."""
    counts_full_devices_in_all: bool = _since(1, 37)
    """Allocation mode All includes devices whose capacity is used up, so that it fails; before, it skipped them."""
    compares_all_distinct: bool = _since(1, 37)
    """distinctAttribute compares with every device picked; before, with the last one of each request."""
    ignores_distant_counters: bool = _since(1, 37)
    """An invalid pool does not affect a node that can reach neither its devices nor its counters."""
    refuses_unrepresentable_capacity: bool = _since(1, 37)
    """A capacity request that cannot be rounded to a device's range within 64 bits, or is negative, is an error."""

    @classmethod
    @cache
    def of(cls, version: Version) -> Behaviour:
        """Return what a release does."""
        return cls(**{known.name: version >= known.metadata["since"] for known in fields(cls)})


def nearest_recorded(minor: int) -> Version | None:
    """Return the recorded release that is nearest to 1.MINOR; None for 0, an unknown release."""
    # An older API server is treated as the oldest release whose decisions we have recorded, a newer one as the newest.
    return min(max((1, minor), OLDEST_RECORDED), NEWEST) if minor else None


def text_of(version: Version) -> str:
    """Return a version as text, `1.36`."""
    return f"{version[0]}.{version[1]}"
