"""What each release said to a policy that it would not take."""

from __future__ import annotations

import json
from typing import Any

import pytest
from legacy_clusters import World

from kubesched.errors import ConfigError
from kubesched.scheduler.legacy import Algorithm, Options, load_policy, profile_from_policy, profile_from_provider

MAX_INT = (1 << 63) - 1
FROM_POLICY = "couldn't create scheduler from policy: "


def build(version: str = "1.17", options: Options | None = None, **fields: Any) -> Algorithm:
    text = json.dumps({"kind": "Policy", "apiVersion": "v1", **fields})
    return profile_from_policy(load_policy(text, version), World([]).handle, version, options)


def refusal(version: str = "1.17", **fields: Any) -> str:
    with pytest.raises(ConfigError) as error:
        build(version, **fields)
    return str(error.value)


def priority(name: str, weight: int = 1, **argument: Any) -> dict[str, Any]:
    return {"name": name, "weight": weight, **({"argument": argument} if argument else {})}


RATIO = {"shape": [{"utilization": 0, "score": 0}]}


@pytest.mark.parametrize("weight", [0, -1])
def test_weights_are_positive(weight: int) -> None:
    text = "Priority EqualPriority should have a positive weight applied to it"
    assert refusal("1.6", priorities=[priority("EqualPriority", weight)]) == text
    assert refusal("1.13", priorities=[priority("EqualPriority", weight)]) == f"{FROM_POLICY}{text} or it has overflown"
    assert refusal(priorities=[priority("EqualPriority", weight)]) == f"{FROM_POLICY}{text} or it has overflown"


def test_a_weight_that_cannot_be_multiplied_has_overflown() -> None:
    for version in ("1.13", "1.17"):  # the same bound in both, although scores of 1.17 go up to 100
        assert "it has overflown" in refusal(version, priorities=[priority("EqualPriority", MAX_INT // 10)])
    assert build(priorities=[priority("EqualPriority", MAX_INT // 10 - 1)]).priorities == {}
    assert build("1.6", priorities=[priority("EqualPriority", MAX_INT // 10)]).priorities == {"EqualPriority": MAX_INT // 10}


def test_weights_whose_sum_overflows() -> None:
    several = [
        priority(name, MAX_INT // 250) for name in ("LeastRequestedPriority", "NodeAffinityPriority", "TaintTolerationPriority")
    ]
    assert refusal(priorities=several) == f"{FROM_POLICY}total priority of priority functions has overflown"
    large = [priority(entry["name"], MAX_INT // 25) for entry in several]
    assert refusal("1.13", priorities=large) == f"{FROM_POLICY}Total priority of priority functions has overflown"


def test_all_errors_are_told_together() -> None:
    text = refusal(priorities=[priority("A", 0), priority("B", -1)])
    line = "Priority {} should have a positive weight applied to it or it has overflown"
    assert text == f"{FROM_POLICY}[{line.format('A')}, {line.format('B')}]"


@pytest.mark.parametrize(
    ("priorities", "text"),
    [
        (
            [priority("one", 1, labelPreference={"label": "x"}), priority("two", 2, labelPreference={"label": "y"})],
            'LabelPreference  priority "two" has a different weight with "one"',
        ),
        (
            [priority("one", 1, serviceAntiAffinity={"label": "x"}), priority("two", 2, serviceAntiAffinity={"label": "y"})],
            'ServiceAntiAffinity  priority "two" has a different weight with "one"',
        ),
        (
            [
                priority("one", 1, requestedToCapacityRatioArguments=RATIO),
                priority("two", 1, requestedToCapacityRatioArguments=RATIO),
            ],
            'Priority "two" redeclares custom priority "RequestedToCapacityRatio", from:"one"',
        ),
    ],
)
def test_custom_priorities_of_1_17(priorities: list[dict[str, Any]], text: str) -> None:
    assert refusal(priorities=priorities) == FROM_POLICY + text
    assert build("1.13", priorities=priorities).priorities.keys() == {"one", "two"}


def test_an_argument_must_be_of_exactly_one_kind() -> None:
    assert refusal(priorities=[{"name": "A", "weight": 1, "argument": {}}]) == (
        f"{FROM_POLICY}No priority arguments set for priority A"
    )
    assert refusal("1.13", priorities=[{"name": "A", "weight": 1, "argument": {}}]) == (
        "Exactly 1 priority argument is required, numArgs: 0, Priority: A"
    )
    both = priority("A", 1, serviceAntiAffinity={"label": "x"}, labelPreference={"label": "x"})
    assert refusal(priorities=[both]) == "Exactly 1 priority argument is required, numArgs: 2, Priority: A"
    assert refusal(predicates=[{"name": "A", "argument": {}}]) == (
        "Exactly 1 predicate argument is required, numArgs: 0, Predicate: A"
    )
    two = {"serviceAffinity": {"labels": []}, "labelsPresence": {"labels": []}}
    assert refusal(predicates=[{"name": "A", "argument": two}]) == (
        "Exactly 1 predicate argument is required, numArgs: 2, Predicate: A"
    )


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("1.17", "CheckNodeCondition"),
        ("1.17", "CheckNodeMemoryPressure"),
        ("1.17", "PodToleratesNodeNoExecuteTaints"),
        ("1.17", "EvenPodsSpread"),
        ("1.13", "MaxCinderVolumeCount"),
        ("1.13", "CheckNodeCondition"),
        ("1.6", "CheckVolumeBinding"),
        ("1.4", "MaxAzureDiskVolumeCount"),
        ("1.3", "CheckNodeDiskPressure"),
    ],
)
def test_predicates_that_a_release_does_not_know(version: str, name: str) -> None:
    assert refusal(version, predicates=[{"name": name}]) == (f"Invalid configuration: Predicate type not found for {name}")


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("1.17", "ResourceLimitsPriority"),
        ("1.17", "EvenPodsSpreadPriority"),
        ("1.17", "Nonsense"),
        ("1.6", "RequestedToCapacityRatioPriority"),
        ("1.3", "MostRequestedPriority"),
        ("1.3", "NodePreferAvoidPodsPriority"),
    ],
)
def test_priorities_that_a_release_does_not_know(version: str, name: str) -> None:
    assert refusal(version, priorities=[priority(name)]) == f"Invalid configuration: Priority type not found for {name}"


def test_the_weight_of_required_affinity() -> None:
    text = "invalid hardPodAffinitySymmetricWeight: {}, must be in the range {}-100"
    assert refusal(hardPodAffinitySymmetricWeight=101) == FROM_POLICY + text.format(101, 1)
    assert refusal("1.13", hardPodAffinitySymmetricWeight=-1) == FROM_POLICY + text.format(-1, 1)
    zero = Options(hard_pod_affinity_symmetric_weight=0)
    assert build("1.6", zero).context.hard_pod_affinity_weight == 0
    with pytest.raises(ConfigError, match="must be in the range 1-100"):
        build("1.17", zero)
    with pytest.raises(ConfigError) as error:
        too_much = Options(hard_pod_affinity_symmetric_weight=101)
        profile_from_provider("DefaultProvider", World([]).handle, "1.6", too_much)
    assert str(error.value) == text.format(101, 0)


def extender(**fields: Any) -> dict[str, Any]:
    return {"urlPrefix": "http://x", **fields}


@pytest.mark.parametrize(
    ("version", "extenders", "text"),
    [
        ("1.6", [extender(weight=-1)], "Priority for extender http://x should have a non negative weight applied to it"),
        (
            "1.17",
            [extender(prioritizeVerb="p")],
            FROM_POLICY + "Priority for extender http://x should have a positive weight applied to it",
        ),
        (
            "1.17",
            [extender(bindVerb="b"), extender(bindVerb="b")],
            FROM_POLICY + "Only one extender can implement bind, found 2",
        ),
        ("1.17", [extender(managedResources=[{"name": "cpu"}])], FROM_POLICY + "cpu is an invalid extended resource name"),
        (
            "1.17",
            [extender(managedResources=[{"name": "a.b/c"}]), extender(managedResources=[{"name": "a.b/c"}])],
            FROM_POLICY + "Duplicate extender managed resource name a.b/c",
        ),
    ],
)
def test_extenders_that_are_refused(version: str, extenders: list[dict[str, Any]], text: str) -> None:
    assert refusal(version, extenders=extenders) == text


def test_extenders_that_are_taken() -> None:
    assert build("1.6", extenders=[extender(prioritizeVerb="p")]).extenders
    assert build(extenders=[extender(weight=-1)]).extenders
    misnamed = refusal(extenders=[extender(managedResources=[{"name": "a b"}])])
    assert "must consist of alphanumeric characters" in misnamed


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ([], "at least one point must be specified"),
        ([(10, 1), (10, 2)], "utilization values must be sorted. Utilization[0]==10 >= Utilization[1]==10"),
        ([(-1, 1)], "utilization values must not be less than 0. Utilization[0]==-1"),
        ([(101, 1)], "utilization values must not be greater than 100. Utilization[0]==101"),
        ([(0, -1)], "score values must not be less than 0. Score[0]==-10"),
        ([(0, 11)], "score valuses not be greater than 100. Score[0]==110"),
    ],
)
def test_shapes_that_are_refused(points: list[tuple[int, int]], text: str) -> None:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    found = refusal(priorities=[priority("A", 1, requestedToCapacityRatioArguments={"shape": shape})])
    assert found == f"invalid RequestedToCapacityRatioPriority arguments: {text}"


def test_predicates_that_run_as_one_plugin() -> None:
    framework = "error initializing the scheduling framework: "
    both = [{"name": "GeneralPredicates"}, {"name": "PodFitsResources"}]
    assert refusal(predicates=both) == f'{framework}plugin "NodeResourcesFit" already registered as "FilterPlugin"'
    assert build("1.13", predicates=both).predicates[-2:] == ("PodFitsResources", "PodToleratesNodeTaints")
    ports = build(predicates=[{"name": "GeneralPredicates"}, {"name": "PodFitsPorts"}])
    assert "PodFitsPorts" not in ports.predicates


def test_labels_that_must_be_there_and_must_not() -> None:
    found = refusal(
        predicates=[
            {"name": "A", "argument": {"labelsPresence": {"labels": ["x", "y"], "presence": True}}},
            {"name": "B", "argument": {"labelsPresence": {"labels": ["y"], "presence": False}}},
        ]
    )
    assert found == (
        'error initializing the scheduling framework: error initializing plugin "NodeLabel": detecting at '
        'least one label (e.g., "y") that exist in both the present([x y]) and absent([y]) label list'
    )


def test_unknown_providers() -> None:
    name = '"TalkintDataProvider"'
    for version, text in (
        ("1.17", f"couldn't create scheduler using provider {name}: provider {name} is not registered"),
        ("1.13", f"couldn't create scheduler using provider {name}: plugin {name} has not been registered"),
        ("1.6", f"plugin {name} has not been registered"),
    ):
        with pytest.raises(ConfigError) as error:
            profile_from_provider("TalkintDataProvider", World([]).handle, version)
        assert str(error.value) == text


def test_unknown_versions() -> None:
    with pytest.raises(ConfigError, match=r"legacy version '1\.9' is not known"):
        profile_from_provider("DefaultProvider", World([]).handle, "1.9")


def test_credentials_of_extenders_are_looked_at_before_the_weight_of_affinity() -> None:
    extender = {"urlPrefix": "https://x", "tlsConfig": {"Insecure": True, "CAFile": "ca.pem"}}
    assert refusal(extenders=[extender], hardPodAffinitySymmetricWeight=101) == (
        f"{FROM_POLICY}specifying a root certificates file with the insecure flag is not allowed"
    )
