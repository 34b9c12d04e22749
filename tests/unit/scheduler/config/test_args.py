"""Plugin arguments: defaults, bounds and errors that the golden families `config` and `config2` do not have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubesched.scheduler.config import Gates, Path
from kubesched.scheduler.config.documents.reading import read_json
from kubesched.scheduler.config.documents.wire import decode, encode
from kubesched.scheduler.plugins.args import IN_TREE_CATALOGUE

ARGS = {name: known.args for name, known in IN_TREE_CATALOGUE.items() if known.args is not None}

CPU_AND_MEMORY = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
SCORING = "StorageCapacityScoring=true"
NO_TIMEOUT = "DRASchedulerFilterTimeout=false"
NO_CONDITIONS = "DRADeviceBindingConditions=false"


def defaulted(plugin: str, args: dict[str, Any], gates: str = "") -> Any:
    decoded, strict = decode(ARGS[plugin], read_json(json.dumps(args)))
    assert strict == []
    return decoded.defaulted(Gates.parse(gates))


DEFAULTS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    (
        "DefaultPreemption",
        {"minCandidateNodesPercentage": 0},
        "",
        {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 100},
    ),
    (
        "InterPodAffinity",
        {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True},
        "",
        {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True},
    ),
    (
        "NodeAffinity",
        {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}},
        "",
        {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": None}}},
    ),
    (
        "NodeResourcesFit",
        {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "x.com/gpu"}]}, "ignoredResources": []},
        "",
        {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "x.com/gpu", "weight": 1}]}},
    ),
    ("NodeResourcesFit", {"scoringStrategy": {}}, "", {"scoringStrategy": {"resources": CPU_AND_MEMORY}}),
    ("VolumeBinding", {}, "StorageCapacityScoring=false", {"bindTimeoutSeconds": 600}),
    ("VolumeBinding", {"bindTimeoutSeconds": 0}, "StorageCapacityScoring=false", {"bindTimeoutSeconds": 0}),
    (
        "VolumeBinding",
        {},
        SCORING,
        {"bindTimeoutSeconds": 600, "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]},
    ),
    ("DynamicResources", {"filterTimeout": "0s"}, "", {"filterTimeout": "0s", "bindingTimeout": "10m0s"}),
    ("DynamicResources", {}, NO_TIMEOUT, {"filterTimeout": None, "bindingTimeout": "10m0s"}),
    ("DynamicResources", {}, NO_CONDITIONS, {"filterTimeout": "10s"}),
]


@pytest.mark.parametrize(("plugin", "args", "gates", "expected"), DEFAULTS)
def test_defaults(plugin: str, args: dict[str, Any], gates: str, expected: dict[str, Any]) -> None:
    found = defaulted(plugin, args, gates)
    assert encode(found) == expected


def spread(**constraint: Any) -> dict[str, Any]:
    given = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"} | constraint
    return {"defaultingType": "List", "defaultConstraints": [given]}


def required(**expression: Any) -> dict[str, Any]:
    selector = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def ratio(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return {"scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}}


EXPRESSION = "at.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"
NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
SHAPE = "at.scoringStrategy.requestedToCapacityRatio.shape"

INVALID: list[tuple[str, dict[str, Any], str, list[str]]] = [
    (
        "NodeAffinity",
        required(key="", operator="In"),
        "",
        [
            f'{EXPRESSION}.key: Invalid value: "": name part must be non-empty; name part {NAME_RULE}',
            f"{EXPRESSION}.values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ],
    ),
    (
        "NodeAffinity",
        required(key="a", operator="NotIn", values=[]),
        "",
        [f"{EXPRESSION}.values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"],
    ),
    (
        "NodeAffinity",
        required(key="a", operator="In", values=["ok", "-x"]),
        "",
        [f'{EXPRESSION}.values[1][a]: Invalid value: "-x": {VALUE_RULE}'],
    ),
    (
        "NodeAffinity",
        required(key="a", operator="Exists", values=["b"]),
        "",
        [f'{EXPRESSION}.values: Invalid value: ["b"]: values set must be empty for exists and does not exist'],
    ),
    (
        "NodeAffinity",
        required(key="a", operator="Gt", values=["x"]),
        "",
        [f"{EXPRESSION}.values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"],
    ),
    (
        "NodeAffinity",
        required(key="a", operator="Lt", values=["1", "2"]),
        "",
        [f"{EXPRESSION}.values: Invalid value: [\"1\",\"2\"]: for 'Gt', 'Lt' operators, exactly one value is required"],
    ),
    (
        "NodeAffinity",
        {
            "addedAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 0, "preference": {"matchFields": [{"operator": "Nonsense"}]}},
                    {"weight": 1, "preference": {"matchFields": [{"operator": "In", "values": ["a", "b"]}]}},
                    {"weight": 1, "preference": {"matchFields": [{"operator": "Exists"}]}},
                ]
            }
        },
        "",
        [
            "at.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[1].matchFields[0].values: "
            'Invalid value: ["a","b"]: must have one element',
            "at.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[2].matchFields[0].operator: "
            'Unsupported value: "Exists": supported values: "In", "NotIn"',
        ],
    ),
    (
        "NodeResourcesFit",
        {"ignoredResources": ["a b"], "ignoredResourceGroups": ["x/y/z"]},
        "",
        [
            f'at.ignoredResources[0]: Invalid value: "a b": name part {NAME_RULE}',
            "at.ignoredResourceGroups[0]: Invalid value: \"x/y/z\": resource group name can't contain '/'",
            f'at.ignoredResourceGroups[0]: Invalid value: "x/y/z": a valid label key {NAME_RULE} with an optional '
            "DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        ],
    ),
    (
        "NodeResourcesFit",
        {
            "scoringStrategy": {
                "type": "LeastAllocated",
                "resources": [{"name": "cpu", "weight": 101}],
                "requestedToCapacityRatio": {},
            }
        },
        "",
        [
            "at.scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
            "at.scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio",
        ],
    ),
    (
        "NodeResourcesFit",
        {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
        "",
        [
            "at.scoringStrategy.requestedToCapacityRatio: Required value: "
            "must be specified when type is RequestedToCapacityRatio"
        ],
    ),
    ("NodeResourcesFit", ratio(), "", [f"{SHAPE}: Required value: at least one point must be specified"]),
    (
        "NodeResourcesFit",
        ratio((50, 1), (50, 2), (40, 11), (-1, -1)),
        "",
        [
            f"{SHAPE}[1].utilization: Invalid value: 50: values must be sorted in increasing order",
            f"{SHAPE}[2].score: Invalid value: 11: not in valid range [0, 10]",
            f"{SHAPE}[3].utilization: Invalid value: -1: not in valid range [0, 100]",
            f"{SHAPE}[3].score: Invalid value: -1: not in valid range [0, 10]",
        ],
    ),
    (
        "PodTopologySpread",
        {**spread(), "defaultConstraints": spread()["defaultConstraints"] * 2},
        "",
        ['at.defaultConstraints[1]: Duplicate value: "{zone, DoNotSchedule}"'],
    ),
    (
        "VolumeBinding",
        {"shape": [{"utilization": 0, "score": 11}]},
        SCORING,
        ["at.shape[0].score: Invalid value: 11: not in valid range [0, 10]"],
    ),
    (
        "DynamicResources",
        {"filterTimeout": "-1ms", "bindingTimeout": "999ms"},
        "",
        [
            'at.filterTimeout: Invalid value: "-1ms": must be zero or positive',
            'at.bindingTimeout: Invalid value: "999ms": must be at least 1 second',
        ],
    ),
    (
        "DynamicResources",
        {"filterTimeout": "1s", "bindingTimeout": "1s"},
        f"{NO_TIMEOUT},{NO_CONDITIONS}",
        [
            "at.filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled",
            "at.bindingTimeout: Forbidden: DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled",
        ],
    ),
]


@pytest.mark.parametrize(("plugin", "args", "gates", "errors"), INVALID)
def test_rules(plugin: str, args: dict[str, Any], gates: str, errors: list[str]) -> None:
    found = defaulted(plugin, args, gates).validate(Path("at"), Gates.parse(gates))
    assert [str(error) for error in found] == errors


@pytest.mark.parametrize("plugin", ARGS)
def test_the_defaults_are_valid_and_the_kind_follows_the_plugins_name(plugin: str) -> None:
    assert defaulted(plugin, {}).validate(Path("at"), Gates.defaults()) == []
    assert ARGS[plugin].__name__ == f"{plugin}Args"
