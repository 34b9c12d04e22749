"""Releases of Kubernetes: which can be emulated, and what differs between them that no feature gate switches.

In: a release, from `--emulated-version` or from what the API server says. Out: its `Behaviour`, a row of yes and no.
Each field of `Behaviour` is one difference that users can see; its number is the first release that has it, and the place
in the code that asks for it by name is the only one that knows how. What a gate switches is in `kubesched.config.gates`.
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
"""The program that each release was read and recorded from."""


def _since(major: int, minor: int) -> Any:
    return field(metadata={"since": (major, minor)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What a release does, field by field; the number is the release that began to."""

    prefilters_node_name: bool = _since(1, 37)
    """NodeName stands before NodeUnschedulable, and names its node at PreFilter; TaintToleration is at PreFilter too."""
    names_informers: bool = _since(1, 37)
    """Informers have the component's name, and so there are metrics of them."""
    has_pod_group_post_filter: bool = _since(1, 37)
    """Profiles have the extension point podGroupPostFilter."""
    judges_groups_whole: bool = _since(1, 37)
    """In a pod group's turn neither Permit nor PostFilter is asked about its members: PlacementFeasible says after each whether
    enough can have a place, and PodGroupPostFilter seeks a way out for all. Members have the priority of their group. The
    condition is PodGroupInitiallyScheduled."""
    tells_placement_found: bool = _since(1, 37)
    """PostFilter says on which node it found a placement, and nothing where it found no claim to give back."""
    keeps_order_of_unstarted: bool = _since(1, 37)
    """Pods of a node that have not started are spared in the order in which the node has them; before, in reverse."""
    wakes_refused_by_taints_alone: bool = _since(1, 37)
    """A node whose taints change wakes the pods that TaintToleration refused, and no others."""
    wakes_by_any_anti_term: bool = _since(1, 37)
    """A pod that goes or changes wakes pods with any anti-affinity term about it; before, all their terms had to be."""
    wakes_by_deleted_claims: bool = _since(1, 37)
    """A ResourceClaim that is deleted with its allocation wakes the pods that DynamicResources refused."""
    counts_gated_nominated: bool = _since(1, 37)
    """A pod that is nominated holds its place even while a gate keeps it out of the queue."""
    selects_known_namespaces: bool = _since(1, 37)
    """A namespaceSelector is applied to the labels of the namespace; before, also to no labels at all."""
    sums_resized_pods_whole: bool = _since(1, 37)
    """A pod under resize asks for the largest of its sums (spec, allocated, actual), not for the sum of the largest."""
    counts_image_volumes: bool = _since(1, 37)
    """What an image is worth to ImageLocality is shared with the images of volumes, and not among containers alone."""
    names_device_in_cel_errors: bool = _since(1, 37)
    """What a selector runs into at run time is told with the device that it was asked about."""
    speaks_newer_cel: bool = _since(1, 37)
    """Device selectors are read by a newer CEL. Errors there, and values before: `or` and `orValue` of what is no optional,
    `lists.range` of a negative number or past a million, the empty text sought before the first letter, a time zone's minutes
    past 59. The empty text is found at the end at the latest. Calls of `startsWith`,
    `endsWith`, `includes` and `matches(text, pattern)` cost something else."""
    has_device_overhead: bool = _since(1, 37)
    """What devices use up of their node is told as mapping and overhead; before, as resources."""
    counts_full_devices_in_all: bool = _since(1, 37)
    """Allocation mode All means also devices whose capacity is used up, so that it fails; before, it passed them over."""
    compares_all_distinct: bool = _since(1, 37)
    """distinctAttribute compares with every device picked; before, with the last one of each request."""
    ignores_distant_counters: bool = _since(1, 37)
    """A pool whose counters a node does not reach, and whose devices neither, is not in its way when it is broken."""
    refuses_unrepresentable_capacity: bool = _since(1, 37)
    """A capacity request that cannot be rounded to a device's range within 64 bits, or is negative, is an error."""

    @classmethod
    @cache
    def of(cls, version: Version) -> Behaviour:
        """Return what a release does."""
        return cls(**{known.name: version >= known.metadata["since"] for known in fields(cls)})


def nearest_recorded(minor: int) -> Version | None:
    """Return the release of 1.MINOR, or of those whose decisions are recorded the nearest; None for 0, who does not say."""
    return min(max((1, minor), OLDEST_RECORDED), NEWEST) if minor else None


def text_of(version: Version) -> str:
    """Return a version as people write it."""
    return f"{version[0]}.{version[1]}"
