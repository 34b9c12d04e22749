"""The tables of the releases, read back; order, gates, mandatory predicates, and what a profile is made of."""

from __future__ import annotations

import pytest
from legacy_clusters import World

from kubesched.errors import ConfigError
from kubesched.scheduler.legacy import Algorithm, Options, profile_from_provider
from kubesched.scheduler.legacy.predicates.base import AllOf

VOLUMES = {"NoDiskConflict", "NoVolumeZoneConflict", "MaxEBSVolumeCount", "MaxGCEPDVolumeCount"}
PREDICATES = {
    "1.3": {"GeneralPredicates", *VOLUMES, "PodToleratesNodeTaints", "CheckNodeMemoryPressure"},
    "1.4": {
        "GeneralPredicates",
        *VOLUMES,
        "PodToleratesNodeTaints",
        "CheckNodeMemoryPressure",
        "MatchInterPodAffinity",
        "CheckNodeDiskPressure",
    },
    "1.6": {
        "GeneralPredicates",
        *VOLUMES,
        "PodToleratesNodeTaints",
        "CheckNodeMemoryPressure",
        "MatchInterPodAffinity",
        "CheckNodeDiskPressure",
        "MaxAzureDiskVolumeCount",
    },
    "1.13": {
        "GeneralPredicates",
        *VOLUMES,
        "PodToleratesNodeTaints",
        "CheckNodeUnschedulable",
        "MatchInterPodAffinity",
        "MaxAzureDiskVolumeCount",
        "MaxCSIVolumeCountPred",
        "CheckVolumeBinding",
    },
}
PREDICATES["1.17"] = PREDICATES["1.13"]
SPREADING = {
    "LeastRequestedPriority",
    "BalancedResourceAllocation",
    "SelectorSpreadPriority",
    "NodeAffinityPriority",
    "TaintTolerationPriority",
}
PRIORITIES = {
    "1.3": SPREADING,
    "1.4": SPREADING | {"InterPodAffinityPriority", "NodePreferAvoidPodsPriority"},
    "1.6": SPREADING | {"InterPodAffinityPriority", "NodePreferAvoidPodsPriority"},
    "1.13": SPREADING | {"InterPodAffinityPriority", "NodePreferAvoidPodsPriority", "ImageLocalityPriority"},
    "1.17": SPREADING | {"InterPodAffinityPriority", "NodePreferAvoidPodsPriority", "ImageLocalityPriority"},
}


def provider(version: str, name: str = "DefaultProvider", **gates: bool) -> Algorithm:
    return profile_from_provider(name, World([]).handle, version, Options(feature_gates=gates))


@pytest.mark.parametrize("version", PREDICATES)
def test_the_default_provider(version: str) -> None:
    algorithm = provider(version)
    assert set(algorithm.predicates) == PREDICATES[version]
    assert algorithm.priorities == {
        name: 10000 if name == "NodePreferAvoidPodsPriority" else 1 for name in sorted(PRIORITIES[version])
    }
    assert algorithm.extenders == ()
    assert provider(version, "").predicates == algorithm.predicates


@pytest.mark.parametrize("version", ["1.4", "1.6", "1.13", "1.17"])
def test_the_cluster_autoscaler_provider_packs(version: str) -> None:
    plain, packing = provider(version), provider(version, "ClusterAutoscalerProvider")
    assert packing.predicates == plain.predicates
    assert packing.priorities.keys() == plain.priorities.keys() - {"LeastRequestedPriority"} | {"MostRequestedPriority"}


def test_1_3_had_no_cluster_autoscaler_provider() -> None:
    with pytest.raises(ConfigError, match="has not been registered"):
        provider("1.3", "ClusterAutoscalerProvider")


def test_the_order_of_1_17() -> None:
    filters = [plugin.name for plugin in provider("1.17").profile.filters]
    assert filters == [
        "CheckNodeUnschedulable",
        "PodFitsResources",
        "HostName",
        "PodFitsHostPorts",
        "MatchNodeSelector",
        "NoDiskConflict",
        "PodToleratesNodeTaints",
        "MaxEBSVolumeCount",
        "MaxGCEPDVolumeCount",
        "MaxCSIVolumeCountPred",
        "MaxAzureDiskVolumeCount",
        "CheckVolumeBinding",
        "NoVolumeZoneConflict",
        "MatchInterPodAffinity",
    ]


def test_the_order_of_1_13_without_taints_by_condition() -> None:
    filters = [plugin.name for plugin in provider("1.13", TaintNodesByCondition=False).profile.filters]
    assert filters == [
        "CheckNodeCondition",
        "GeneralPredicates",
        "NoDiskConflict",
        "PodToleratesNodeTaints",
        "MaxEBSVolumeCount",
        "MaxGCEPDVolumeCount",
        "MaxCSIVolumeCountPred",
        "MaxAzureDiskVolumeCount",
        "CheckVolumeBinding",
        "NoVolumeZoneConflict",
        "CheckNodeMemoryPressure",
        "CheckNodePIDPressure",
        "CheckNodeDiskPressure",
        "MatchInterPodAffinity",
    ]


@pytest.mark.parametrize("version", ["1.4", "1.6"])
def test_before_1_10_all_predicates_give_their_reasons(version: str) -> None:
    (only,) = provider(version).profile.filters
    assert isinstance(only, AllOf)
    assert {part.name for part in only.parts} == PREDICATES[version]


def test_gates_add_and_remove() -> None:
    spread = provider("1.17", EvenPodsSpread=True)
    assert spread.predicates[-2:] == ("EvenPodsSpread", "MatchInterPodAffinity")
    assert spread.priorities["EvenPodsSpreadPriority"] == 1
    assert provider("1.13", ResourceLimitsPriorityFunction=True).priorities["ResourceLimitsPriority"] == 1


@pytest.mark.parametrize(
    ("version", "gate", "value", "text"),
    [
        ("1.6", "TaintNodesByCondition", True, "does not exist in 1.6"),
        ("1.13", "EvenPodsSpread", True, "does not exist in 1.13"),
        ("1.17", "Nonsense", True, "does not exist in 1.17"),
        ("1.17", "TaintNodesByCondition", False, "locked to true"),
    ],
)
def test_gates_that_cannot_be_set(version: str, gate: str, value: bool, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        provider(version, **{gate: value})


def test_what_else_a_profile_has() -> None:
    old, new = provider("1.6").profile, provider("1.17").profile
    assert old.sorter is not None and old.sorter.name == "FirstInFirstOut" and not old.post_filters
    assert new.sorter is not None and new.sorter.name == "PrioritySort"
    assert [plugin.name for plugin in new.post_filters] == ["DefaultPreemption"]
    assert [plugin.name for plugin in new.binds] == ["DefaultBinder"]
    assert [plugin.name for plugin in new.reserves] == ["CheckVolumeBinding"]
    assert [plugin.name for plugin in new.pre_binds] == ["CheckVolumeBinding"]
    assert (old.percentage_of_nodes, provider("1.13").profile.percentage_of_nodes, new.percentage_of_nodes) == (100, 50, None)
    handle = World([]).handle
    options = Options("mine", disable_preemption=True, percentage_of_nodes_to_score=30)
    told = profile_from_provider("DefaultProvider", handle, options=options).profile
    assert (told.name, told.post_filters, told.percentage_of_nodes) == ("mine", (), 30)
