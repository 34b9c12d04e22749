"""The algorithm providers: which predicates and priorities run by default in each release, and which a policy may name.

DefaultProvider is the release's choice. ClusterAutoscalerProvider has MostRequestedPriority instead of LeastRequestedPriority,
so it packs pods. Feature gates add and remove names (`known_to`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubesched.scheduler.legacy.releases import LegacyGates, Release

DEFAULT_PROVIDER = "DefaultProvider"
CLUSTER_AUTOSCALER_PROVIDER = "ClusterAutoscalerProvider"

_TAINTED = ("CheckNodeCondition", "CheckNodeMemoryPressure", "CheckNodeDiskPressure", "CheckNodePIDPressure")
"""Predicates that taints replaced."""

_PREDICATES: Mapping[str, str] = {
    # name: how 1.3, 1.4, 1.6, 1.13 and 1.17 had it: d by default, r registered, m by default and always, - not at all
    "GeneralPredicates": "ddddd",
    "NoDiskConflict": "ddddd",
    "NoVolumeZoneConflict": "ddddd",
    "MaxEBSVolumeCount": "ddddd",
    "MaxGCEPDVolumeCount": "ddddd",
    "MaxAzureDiskVolumeCount": "--ddd",
    "MaxCSIVolumeCountPred": "---dd",
    "MaxCinderVolumeCount": "----r",
    "MatchInterPodAffinity": "rdddd",
    "PodToleratesNodeTaints": "ddddm",
    "CheckNodeMemoryPressure": "dddd-",
    "CheckNodeDiskPressure": "-ddd-",
    "CheckNodePIDPressure": "---d-",
    "CheckNodeCondition": "---m-",
    "CheckNodeUnschedulable": "----m",
    "CheckVolumeBinding": "---dd",
    "PodFitsPorts": "rrrrr",
    "PodFitsHostPorts": "rrrrr",
    "PodFitsResources": "rrrrr",
    "HostName": "rrrrr",
    "MatchNodeSelector": "rrrrr",
}
_PRIORITIES: Mapping[str, str] = {
    "LeastRequestedPriority": "ddddd",
    "BalancedResourceAllocation": "ddddd",
    "SelectorSpreadPriority": "ddddd",
    "NodeAffinityPriority": "ddddd",
    "TaintTolerationPriority": "ddddd",
    "InterPodAffinityPriority": "rdddd",
    "NodePreferAvoidPodsPriority": "-dddd",
    "ImageLocalityPriority": "rrrdd",
    "MostRequestedPriority": "-rrrr",
    "ServiceSpreadingPriority": "rrrrr",
    "EqualPriority": "rrrr-",
    "RequestedToCapacityRatioPriority": "---rr",
}
_COLUMNS = {3: 0, 4: 1, 6: 2, 13: 3, 17: 4}
_WEIGHTS = {"NodePreferAvoidPodsPriority": 10000}

_ORDER_1_17 = (
    "CheckNodeUnschedulable",
    "GeneralPredicates",
    "HostName",
    "PodFitsHostPorts",
    "PodFitsPorts",
    "MatchNodeSelector",
    "PodFitsResources",
    "NoDiskConflict",
    "PodToleratesNodeTaints",
    "CheckNodeLabelPresence",
    "CheckServiceAffinity",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxCSIVolumeCountPred",
    "MaxAzureDiskVolumeCount",
    "MaxCinderVolumeCount",
    "CheckVolumeBinding",
    "NoVolumeZoneConflict",
    "EvenPodsSpread",
    "MatchInterPodAffinity",
)
_ORDER_1_13 = (
    "CheckNodeCondition",
    *(name for name in _ORDER_1_17 if name not in ("MatchInterPodAffinity", "EvenPodsSpread", "MaxCinderVolumeCount")),
    "CheckNodeMemoryPressure",
    "CheckNodePIDPressure",
    "CheckNodeDiskPressure",
    "MatchInterPodAffinity",
)


@dataclass(slots=True)
class Names:
    """The names that a release knows, those that run by default, and those that always run."""

    predicates: set[str] = field(default_factory=set)
    default_predicates: set[str] = field(default_factory=set)
    mandatory_predicates: set[str] = field(default_factory=set)
    priorities: dict[str, int] = field(default_factory=dict)
    """By name, with the default weight."""
    default_priorities: set[str] = field(default_factory=set)


def known_to(release: Release, gates: LegacyGates) -> Names:
    """Return the names of a release with these feature gates."""
    column = _COLUMNS[release.minor]
    names = Names()
    for name, marks in _PREDICATES.items():
        _insert(names, name, marks[column])
    for name, marks in _PRIORITIES.items():
        if marks[column] != "-":
            names.priorities[name] = _WEIGHTS.get(name, 1)
        if marks[column] == "d":
            names.default_priorities.add(name)
    if gates.taint_nodes_by_condition and release.minor >= 8:
        for name in _TAINTED:
            for known in (names.predicates, names.default_predicates, names.mandatory_predicates):
                known.discard(name)
        for name in ("PodToleratesNodeTaints", "CheckNodeUnschedulable"):
            _insert(names, name, "m")
    if gates.even_pods_spread:
        _insert(names, "EvenPodsSpread", "d")
    for name, is_on in (
        ("EvenPodsSpreadPriority", gates.even_pods_spread),
        ("ResourceLimitsPriority", gates.resource_limits_priority_function),
    ):
        if is_on:
            names.priorities[name] = 1
            names.default_priorities.add(name)
    return names


def _insert(names: Names, name: str, mark: str) -> None:
    if mark in "rdm":
        names.predicates.add(name)
    if mark in "dm":
        names.default_predicates.add(name)
    if mark == "m":
        names.mandatory_predicates.add(name)


def providers_of(names: Names) -> dict[str, tuple[set[str], set[str]]]:
    """Return the predicates and priorities of each provider."""
    packing = names.default_priorities - {"LeastRequestedPriority"} | {"MostRequestedPriority"}
    providers = {DEFAULT_PROVIDER: (set(names.default_predicates), set(names.default_priorities))}
    if "MostRequestedPriority" in names.priorities:
        providers[CLUSTER_AUTOSCALER_PROVIDER] = (set(names.default_predicates), packing)
    return providers


def ordered(predicates: set[str], release: Release) -> list[str]:
    """Return predicates in the order in which they run: the release's order, then the others by name.

    Before 1.10 there was no order, and all predicates ran on every node. So the order does not matter, and a later one is used.
    """
    listed = _order(release)
    rank = {name: at for at, name in enumerate(listed)}
    return sorted(predicates, key=lambda name: (rank.get(name, len(rank)), name))


def is_listed(predicate: str, release: Release) -> bool:
    """Return whether a predicate is in a release's order; from 1.10 to 1.17 others never ran."""
    return predicate in _order(release) and predicate != "PodFitsPorts"


def _order(release: Release) -> tuple[str, ...]:
    return _ORDER_1_13 if release.minor < 17 else _ORDER_1_17
