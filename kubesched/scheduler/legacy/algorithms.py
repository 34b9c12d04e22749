"""The built-in predicates and priorities, by name: tables from names to factories of plugins.

A predicate may be several plugins: GeneralPredicates is four of them in releases that give one reason, and one (`AllOf`) in the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubesched.scheduler.framework import Handle, Plugin
from kubesched.scheduler.legacy.predicates.base import AllOf, Predicate
from kubesched.scheduler.legacy.predicates.conditions import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
)
from kubesched.scheduler.legacy.predicates.node_facts import (
    CheckNodeUnschedulable,
    HostName,
    MatchNodeSelector,
    PodFitsHostPorts,
    PodFitsResources,
    PodToleratesNodeTaints,
)
from kubesched.scheduler.legacy.predicates.pods import EvenPodsSpread, MatchInterPodAffinity
from kubesched.scheduler.legacy.predicates.volumes import VOLUME_PREDICATES, volume_predicate
from kubesched.scheduler.legacy.priorities.node_contents import ImageLocalityPriority, ResourceLimitsPriority
from kubesched.scheduler.legacy.priorities.preferences import (
    EqualPriority,
    InterPodAffinityPriority,
    NodeAffinityPriority,
    NodePreferAvoidPodsPriority,
    TaintTolerationPriority,
)
from kubesched.scheduler.legacy.priorities.requested import (
    BalancedResourceAllocation,
    BalancedWithVolumes,
    LeastRequestedPriority,
    MostRequestedPriority,
    RequestedToCapacityRatioPriority,
)
from kubesched.scheduler.legacy.priorities.spreading import (
    EvenPodsSpreadPriority,
    SelectorSpreadPriority,
    ServiceSpreadingPriority,
)
from kubesched.scheduler.legacy.releases import LegacyContext

PredicateFactory = Callable[[LegacyContext, Handle], list[Plugin]]
PriorityFactory = Callable[[LegacyContext, Handle], Plugin]
GENERAL = (PodFitsResources, HostName, PodFitsHostPorts, MatchNodeSelector)


def _general(context: LegacyContext, handle: Handle) -> list[Plugin]:
    parts: list[Plugin] = [cls(context, handle) for cls in GENERAL]
    if context.release.gives_one_reason:
        return parts
    return [AllOf.under("GeneralPredicates", parts, handle)]


def _one(cls: type[Predicate]) -> PredicateFactory:
    return lambda context, handle: [cls(context, handle)]


def _volumes(name: str) -> PredicateFactory:
    return lambda context, handle: [volume_predicate(name, context, handle)]


def _balanced(context: LegacyContext, handle: Handle) -> Plugin:
    with_volumes = context.gates.balance_attached_node_volumes
    return (BalancedWithVolumes if with_volumes else BalancedResourceAllocation)(context, handle)


PREDICATES: Mapping[str, PredicateFactory] = {
    "GeneralPredicates": _general,
    "PodFitsPorts": _one(PodFitsHostPorts),
    **{
        cls.name: _one(cls)
        for cls in (
            *GENERAL,
            CheckNodeUnschedulable,
            PodToleratesNodeTaints,
            CheckNodeCondition,
            CheckNodeMemoryPressure,
            CheckNodeDiskPressure,
            CheckNodePIDPressure,
            MatchInterPodAffinity,
            EvenPodsSpread,
        )
    },
    **{name: _volumes(name) for name in VOLUME_PREDICATES},
}

PRIORITIES: Mapping[str, PriorityFactory] = {
    **{
        cls.name: cls
        for cls in (
            LeastRequestedPriority,
            MostRequestedPriority,
            RequestedToCapacityRatioPriority,
            SelectorSpreadPriority,
            ServiceSpreadingPriority,
            NodeAffinityPriority,
            TaintTolerationPriority,
            InterPodAffinityPriority,
            NodePreferAvoidPodsPriority,
            ImageLocalityPriority,
            ResourceLimitsPriority,
            EvenPodsSpreadPriority,
            EqualPriority,
        )
    },
    "BalancedResourceAllocation": _balanced,
}

VOLUME_COUNTS = tuple(name for name in VOLUME_PREDICATES if name.startswith("Max"))

FILTER_PLUGINS: Mapping[str, tuple[str, ...]] = {
    "GeneralPredicates": ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
    "PodFitsResources": ("NodeResourcesFit",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "HostName": ("NodeName",),
    "MatchNodeSelector": ("NodeAffinity",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "MaxEBSVolumeCount": ("EBSLimits",),
    "MaxGCEPDVolumeCount": ("GCEPDLimits",),
    "MaxAzureDiskVolumeCount": ("AzureDiskLimits",),
    "MaxCinderVolumeCount": ("CinderLimits",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "CheckNodeLabelPresence": ("NodeLabel",),
    "CheckServiceAffinity": ("ServiceAffinity",),
}
"""The plugins of 1.17 that predicates ran as. The same plugin twice at one point was an error."""

SCORE_PLUGINS: Mapping[str, str] = {
    "SelectorSpreadPriority": "DefaultPodTopologySpread",
    "TaintTolerationPriority": "TaintToleration",
    "NodeAffinityPriority": "NodeAffinity",
    "ImageLocalityPriority": "ImageLocality",
    "InterPodAffinityPriority": "InterPodAffinity",
    "NodePreferAvoidPodsPriority": "NodePreferAvoidPods",
    "MostRequestedPriority": "NodeResourcesMostAllocated",
    "LeastRequestedPriority": "NodeResourcesLeastAllocated",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
    "NodeLabel": "NodeLabel",
    "ServiceAffinity": "ServiceAffinity",
}
"""The plugins of 1.17 that priorities ran as. Other priorities were functions."""
