"""Policies as configurations of today."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legacy_clusters import World, random_world

from kubesched.errors import ConfigError
from kubesched.scheduler import config
from kubesched.scheduler.framework.runtime.building import build_profile
from kubesched.scheduler.framework.runtime.registry import Registry as Plugins
from kubesched.scheduler.legacy import Conversion, Custom, Options, convert_policy, load_policy, profile_from_policy
from kubesched.scheduler.plugins import IN_TREE
from kubesched.scheduler.plugins.args import IN_TREE_CATALOGUE


def policy(**fields: Any) -> str:
    return json.dumps({"kind": "Policy", "apiVersion": "v1", **fields})


def convert(version: str = "1.17", options: Options | None = None, **fields: Any) -> Conversion:
    return convert_policy(load_policy(policy(**fields), version), version, options)


def plugins(conversion: Conversion, point: str) -> list[tuple[str, int]]:
    (profile,) = conversion.document["profiles"]
    entries = profile["plugins"].get(point, {}).get("enabled", [])
    return [(entry["name"], entry.get("weight", 0)) for entry in entries]


def args(conversion: Conversion) -> dict[str, Any]:
    (profile,) = conversion.document["profiles"]
    return {entry["name"]: entry["args"] for entry in profile.get("pluginConfig", ())}


def told(conversion: Conversion) -> list[str]:
    """Return of what it is said that it behaves otherwise."""
    return [text.split(":")[0] for text in conversion.differences]


def test_predicates_become_filters_in_their_order() -> None:
    made = convert(
        predicates=[{"name": "MatchInterPodAffinity"}, {"name": "GeneralPredicates"}],
        priorities=[],
        hardPodAffinitySymmetricWeight=20,
    )
    assert [name for name, _ in plugins(made, "filter")] == [
        "NodeUnschedulable",
        "NodeResourcesFit",
        "NodeName",
        "NodePorts",
        "NodeAffinity",
        "TaintToleration",
        "InterPodAffinity",
    ]
    assert plugins(made, "score") == []
    assert args(made) == {"InterPodAffinity": {"hardPodAffinityWeight": 20}}
    assert made.is_complete and told(made) == ["predicate GeneralPredicates", "predicate MatchInterPodAffinity"]


def test_priorities_become_scores_with_their_weights() -> None:
    made = convert(
        predicates=[],
        priorities=[
            {"name": "MostRequestedPriority", "weight": 3},
            {"name": "NodeAffinityPriority", "weight": 2},
            {"name": "EqualPriority", "weight": 9},
        ],
    )
    assert plugins(made, "score") == [("NodeResourcesFit", 3), ("NodeAffinity", 2)]
    assert args(made) == {"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}}
    assert made.is_complete and told(made) == ["priority MostRequestedPriority", "priority NodeAffinityPriority"]


def test_a_ratio_keeps_its_shape() -> None:
    shape = [{"utilization": 0, "score": 2}, {"utilization": 100, "score": 9}]
    made = convert(
        predicates=[],
        priorities=[
            {
                "name": "R",
                "weight": 2,
                "argument": {
                    "requestedToCapacityRatioArguments": {"shape": shape, "resources": [{"name": "cpu", "weight": 0}]}
                },
            }
        ],
    )
    assert args(made)["NodeResourcesFit"]["scoringStrategy"] == {
        "type": "RequestedToCapacityRatio",
        "requestedToCapacityRatio": {"shape": shape},
        "resources": [{"name": "cpu", "weight": 1}],
    }


def test_labels_become_an_added_affinity() -> None:
    made = convert(
        predicates=[
            {"name": "HasA", "argument": {"labelsPresence": {"labels": ["a"], "presence": True}}},
            {"name": "HasNoB", "argument": {"labelsPresence": {"labels": ["b"], "presence": False}}},
        ],
        priorities=[{"name": "Likes", "weight": 4, "argument": {"labelPreference": {"label": "c", "presence": True}}}],
    )
    assert args(made)["NodeAffinity"]["addedAffinity"] == {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "DoesNotExist"}]}
            ]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": [{"key": "c", "operator": "Exists"}]}}
        ],
    }
    assert plugins(made, "score") == [("NodeAffinity", 4)]
    assert told(made) == ["labelsPresence", "priority Likes"]


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"predicates": [{"name": "Svc", "argument": {"serviceAffinity": {"labels": ["z"]}}}]}, "predicate Svc: "),
        (
            {"priorities": [{"name": "Anti", "weight": 1, "argument": {"serviceAntiAffinity": {"label": "z"}}}]},
            "priority Anti: ",
        ),
        ({"priorities": [{"name": "NodePreferAvoidPodsPriority", "weight": 1}]}, "priority NodePreferAvoidPodsPriority: "),
        (
            {"priorities": [{"name": "LeastRequestedPriority", "weight": 1}, {"name": "MostRequestedPriority", "weight": 1}]},
            "priority MostRequestedPriority: NodeResourcesFit has one scoring strategy",
        ),
    ],
)
def test_what_has_no_equivalent(fields: dict[str, Any], what: str) -> None:
    made = convert(**{"predicates": [], "priorities": [], **fields})
    assert not made.is_complete and len(made.missing) == 1 and made.missing[0].startswith(what)


def test_names_from_outside_have_no_equivalent() -> None:
    custom = Custom()
    custom.register_fit_predicate("Mine", lambda pod, node: True)
    custom.register_priority("Ours", lambda pod, node: 1)
    made = convert("1.17", Options(custom=custom), predicates=[{"name": "Mine"}], priorities=[{"name": "Ours", "weight": 1}])
    assert [text.split(":")[0] for text in made.missing] == ["predicate Mine", "priority Ours"]


def test_the_defaults_of_an_absent_list_and_what_differs() -> None:
    made = convert("1.13")
    assert [text.split(":")[0] for text in made.missing] == ["priority NodePreferAvoidPodsPriority"]
    differing = {text.split(":")[0] for text in made.differences}
    assert differing >= {
        "predicate MaxEBSVolumeCount",
        "priority SelectorSpreadPriority",
        "priority BalancedResourceAllocation",
    }
    assert ("VolumeBinding", 0) in plugins(made, "reserve") and ("VolumeBinding", 0) in plugins(made, "preBind")
    pressure = convert("1.6", predicates=[{"name": "CheckNodeDiskPressure"}])
    assert plugins(pressure, "filter") == [("TaintToleration", 0)]
    assert "taints" in pressure.differences[0]


def test_spread_constraints_without_defaults_stay_without() -> None:
    gates = Options(feature_gates={"EvenPodsSpread": True})
    made = convert("1.17", gates, predicates=[{"name": "EvenPodsSpread"}], priorities=[])
    assert args(made) == {"PodTopologySpread": {"defaultingType": "List"}}


def test_extenders_and_options_come_along() -> None:
    given = {
        "urlPrefix": "http://x",
        "filterVerb": "f",
        "httpTimeout": 2_000_000_000,
        "enableHttps": True,
        "managedResources": [{"name": "a.b/c", "ignoredByScheduler": True}],
    }
    made = convert(
        "1.17",
        Options("mine", disable_preemption=True),
        predicates=[],
        priorities=[],
        extenders=[given],
        alwaysCheckAllPredicates=True,
    )
    (extender,) = made.document["extenders"]
    assert (extender["httpTimeout"], extender["enableHTTPS"]) == ("2s", True)
    assert made.document["profiles"][0]["schedulerName"] == "mine" and plugins(made, "postFilter") == []
    assert made.differences[0].startswith("alwaysCheckAllPredicates: ")


def test_a_policy_that_its_release_refuses_is_refused() -> None:
    for fields, text in (
        ({"priorities": [{"name": "EqualPriority", "weight": 0}]}, "should have a positive weight"),
        ({"predicates": [{"name": "Nonsense"}]}, "Predicate type not found for Nonsense"),
        ({"predicates": [{"name": "GeneralPredicates"}, {"name": "HostName"}]}, "already registered"),
        ({"hardPodAffinitySymmetricWeight": 101}, "must be in the range 1-100"),
    ):
        with pytest.raises(ConfigError, match=text):
            convert(**fields)


EXACT = [
    "PodFitsHostPorts",
    "PodFitsPorts",
    "HostName",
    "MatchNodeSelector",
    "NoDiskConflict",
    "CheckNodeUnschedulable",
    "PodToleratesNodeTaints",
]
ROOMY = {"cpu": "40", "memory": "40Gi", "pods": "50", "ephemeral-storage": "900Gi", "example.com/gpu": "30"}
ON_ROOMY_NODES = [*EXACT[2:], "PodFitsResources", "MatchInterPodAffinity", "CheckVolumeBinding"]


def both(world: World, **fields: Any) -> tuple[Any, Any]:
    """Return what the policy and what its conversion decide: feasible rows, and their totals."""
    parsed = load_policy(policy(**fields))
    decided = []
    for profile in (profile_from_policy(parsed, world.handle).profile, modern(world, convert_policy(parsed))):
        made = world.attempt(profile)
        rows = made.feasible.nonzero()[0].tolist() if made.feasible is not None else []
        decided.append((rows, made.scores.total[rows].tolist() if made.scores is not None and rows else []))
    return decided[0], decided[1]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), predicates=st.sets(st.sampled_from(EXACT)), weight=st.integers(1, 9))
def test_where_nothing_is_said_to_differ_nothing_does(seed: int, predicates: set[str], weight: int) -> None:
    fields: dict[str, Any] = {
        "predicates": [{"name": name} for name in sorted(predicates)],
        "priorities": [{"name": "TaintTolerationPriority", "weight": weight}],
    }
    assert told(convert(**fields)) == []
    old, new = both(random_world(seed), **fields)
    assert old == new


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    predicates=st.sets(st.sampled_from(ON_ROOMY_NODES)),
    strategy=st.sampled_from(["LeastRequestedPriority", "MostRequestedPriority"]),
    weight=st.integers(1, 9),
)
def test_on_nodes_with_room_the_same_is_decided(seed: int, predicates: set[str], strategy: str, weight: int) -> None:
    """Without overbooked nodes, and without what pods of today have more: overhead and sidecars."""
    drawn = random_world(seed)
    drawn.incoming["spec"].pop("overhead", None)
    drawn.incoming["spec"].pop("initContainers", None)
    for raw in drawn.nodes:
        raw["status"]["allocatable"] = ROOMY
    for raw in (*drawn.placed, drawn.incoming):
        raw["spec"].pop("affinity", None)
    old, new = both(
        World(drawn.objects, drawn.incoming),
        predicates=[{"name": name} for name in sorted(predicates)],
        priorities=[{"name": strategy, "weight": weight}, {"name": "NodeAffinityPriority", "weight": 2}],
    )
    assert old == new


def modern(world: World, conversion: Conversion) -> Any:
    gates = config.Gates.defaults()
    loaded = config.load(json.dumps(conversion.document), gates=gates, registry=IN_TREE_CATALOGUE)
    return build_profile(loaded.profiles[0], Plugins(*IN_TREE), world.handle)
