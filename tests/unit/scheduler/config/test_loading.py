"""Loading: every field with its default, and the errors that the golden families `config` and `config2` do not have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubesched.errors import ConfigError
from kubesched.scheduler.config import Configuration, Duration, Gates, Known, as_yaml, defaults, effective, load
from kubesched.scheduler.config.args import Args
from kubesched.scheduler.config.documents.wire import Int32, Raw
from kubesched.scheduler.config.types import KubeSchedulerConfiguration
from kubesched.scheduler.plugins.args import IN_TREE_CATALOGUE

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
INIT = "initializing profiles: creating profile for scheduler name default-scheduler: "


def loaded(document: dict[str, Any], gates: str = "") -> Configuration:
    return load(json.dumps({**HEAD, **document}), gates=Gates.parse(gates), registry=IN_TREE_CATALOGUE)


def error_of(document: dict[str, Any] | str, gates: str = "") -> str:
    text = document if isinstance(document, str) else json.dumps({**HEAD, **document})
    with pytest.raises(ConfigError) as caught:
        load(text, gates=Gates.parse(gates), registry=IN_TREE_CATALOGUE)
    return str(caught.value)


def profile(**fields: Any) -> dict[str, Any]:
    return {"profiles": [{"schedulerName": "default-scheduler", **fields}]}


def with_args(plugin: str, args: Any) -> dict[str, Any]:
    return profile(pluginConfig=[{"name": plugin, "args": args}])


# --- fields -----------------------------------------------------------------------------------------------------------

FIELDS: list[tuple[dict[str, Any], str, Any]] = [
    ({}, "parallelism", 16),
    ({"parallelism": 3}, "parallelism", 3),
    ({}, "enable_profiling", True),
    ({"enableProfiling": False}, "enable_profiling", False),
    ({}, "enable_contention_profiling", True),
    ({"enableProfiling": False}, "enable_contention_profiling", False),
    ({"enableContentionProfiling": False}, "enable_contention_profiling", False),
    ({"enableProfiling": False, "enableContentionProfiling": True}, "enable_contention_profiling", True),
    ({}, "percentage_of_nodes_to_score", 0),
    ({"percentageOfNodesToScore": 40}, "percentage_of_nodes_to_score", 40),
    ({"percentageOfNodesToScore": None}, "percentage_of_nodes_to_score", 0),
    ({}, "pod_initial_backoff_seconds", 1),
    ({"podInitialBackoffSeconds": 5}, "pod_initial_backoff_seconds", 5),
    ({}, "pod_max_backoff_seconds", 10),
    ({"podMaxBackoffSeconds": 1}, "pod_max_backoff_seconds", 1),
    ({}, "extenders", ()),
    ({}, "delay_cache_until_active", False),
    ({"delayCacheUntilActive": True}, "delay_cache_until_active", True),
    ({}, "leader_election.leader_elect", True),
    ({"leaderElection": {"leaderElect": False}}, "leader_election.leader_elect", False),
    ({"leaderElection": {"leaderElect": None}}, "leader_election.leader_elect", True),
    ({"leaderElection": None}, "leader_election.leader_elect", True),
    ({}, "leader_election.lease_duration", Duration.of(seconds=15)),
    ({"leaderElection": {"leaseDuration": "1m"}}, "leader_election.lease_duration", Duration.of(minutes=1)),
    ({"leaderElection": {"leaseDuration": "0"}}, "leader_election.lease_duration", Duration.of(seconds=15)),
    ({}, "leader_election.renew_deadline", Duration.of(seconds=10)),
    ({"leaderElection": {"renewDeadline": "9s"}}, "leader_election.renew_deadline", Duration.of(seconds=9)),
    ({}, "leader_election.retry_period", Duration.of(seconds=2)),
    ({"leaderElection": {"retryPeriod": "1s"}}, "leader_election.retry_period", Duration.of(seconds=1)),
    ({}, "leader_election.resource_lock", "leases"),
    ({}, "leader_election.resource_name", "kube-scheduler"),
    ({"leaderElection": {"resourceName": "mine"}}, "leader_election.resource_name", "mine"),
    ({}, "leader_election.resource_namespace", "kube-system"),
    ({"leaderElection": {"resourceNamespace": "ours"}}, "leader_election.resource_namespace", "ours"),
    ({}, "client_connection.kubeconfig", ""),
    ({"clientConnection": {"kubeconfig": "/etc/k"}}, "client_connection.kubeconfig", "/etc/k"),
    ({}, "client_connection.accept_content_types", ""),
    ({"clientConnection": {"acceptContentTypes": "a/b"}}, "client_connection.accept_content_types", "a/b"),
    ({}, "client_connection.content_type", "application/vnd.kubernetes.protobuf"),
    ({"clientConnection": {"contentType": "application/json"}}, "client_connection.content_type", "application/json"),
    ({}, "client_connection.qps", 50.0),
    ({"clientConnection": {"qps": 0}}, "client_connection.qps", 50.0),
    ({"clientConnection": {"qps": -1}}, "client_connection.qps", -1.0),
    ({}, "client_connection.burst", 100),
    ({"clientConnection": {"burst": 7}}, "client_connection.burst", 7),
]


@pytest.mark.parametrize(("document", "field", "expected"), FIELDS, ids=[f"{c[1]} of {c[0]}" for c in FIELDS])
def test_each_field_has_its_value_or_its_default(document: dict[str, Any], field: str, expected: Any) -> None:
    value: Any = loaded(document)
    for name in field.split("."):
        value = getattr(value, name)
    assert value == expected


INVALID: list[tuple[str, dict[str, Any], str]] = [
    (
        "all times",
        {"leaderElection": {"leaseDuration": "-1s", "renewDeadline": "-2s", "retryPeriod": "-3s"}},
        '[leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero, '
        'leaderElection.renewDeadline: Invalid value: "-2s": must be greater than zero, '
        'leaderElection.retryPeriod: Invalid value: "-3s": must be greater than zero]',
    ),
    (
        "lock",
        {"leaderElection": {"resourceLock": "endpoints"}},
        'leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
    ),
    (
        "removed plugin",
        profile(plugins={"filter": {"enabled": [{"name": "NodeName"}, {"name": "EBSLimits"}]}}),
        'profiles[0].plugins.filter.enabled[1]: Invalid value: "EBSLimits": was invalid in version "v1" '
        '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")',
    ),
    (
        "arguments of a removed plugin",
        with_args("GCEPDLimits", {}),
        'profiles[0].pluginConfig[0]: Invalid value: "GCEPDLimits": was invalid in version "v1" '
        '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")',
    ),
    (
        "different queue sort arguments",
        {
            "profiles": [
                {
                    "schedulerName": name,
                    "plugins": {"queueSort": {"enabled": [{"name": "PrioritySort"}]}},
                    "pluginConfig": [{"name": "PrioritySort", "args": {"x": number}}],
                }
                for number, name in enumerate(["a", "b"])
            ]
        },
        'profiles[1].pluginConfig.args: Invalid value: {"x":1}: queueSort must be the same for all profiles',
    ),
    (
        "managed resource of requests",
        {"extenders": [{"managedResources": [{"name": "requests.a.com/b"}]}]},
        'extenders[0].managedResources[0].name: Invalid value: "requests.a.com/b": is an invalid extended resource name',
    ),
    (
        "managed resource without a name",
        {"extenders": [{"managedResources": [{"name": "a.com/"}]}]},
        '[extenders[0].managedResources[0].name: Invalid value: "a.com/": name part must be non-empty, '
        'extenders[0].managedResources[0].name: Invalid value: "a.com/": name part must consist of alphanumeric '
        "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
        "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')]",
    ),
]


@pytest.mark.parametrize(("document", "error"), [case[1:] for case in INVALID], ids=[case[0] for case in INVALID])
def test_each_rule_has_its_error(document: dict[str, Any], error: str) -> None:
    assert error_of(document) == error


def test_leader_election_is_not_checked_when_it_is_off() -> None:
    election = {"leaderElect": False, "leaseDuration": "-1s", "resourceLock": "endpoints"}
    assert loaded({"leaderElection": election}).leader_election.resource_lock == "endpoints"


def test_errors_come_in_the_references_order() -> None:
    error = error_of(
        {
            "extenders": [{"prioritizeVerb": "p"}],
            "podMaxBackoffSeconds": 0,
            "percentageOfNodesToScore": -1,
            "profiles": [{"schedulerName": ""}],
            "parallelism": 0,
            "leaderElection": {"retryPeriod": "-1s"},
            "clientConnection": {"burst": -1},
        }
    )
    order = ["clientConnection", "leaderElection", "parallelism", "profiles[0]", "percentage", "podMax", "extenders"]
    places = [error.index(word) for word in order]
    assert places == sorted(places)


# --- decoding ---------------------------------------------------------------------------------------------------------

DECODING: list[tuple[str, str, str]] = [
    ("no kind", '{"apiVersion":"v1"}', "Object 'Kind' is missing in '{\"apiVersion\":\"v1\"}'"),
    ("no version", '{"kind":"X"}', "Object 'apiVersion' is missing in '{\"kind\":\"X\"}'"),
    ("no version in YAML", "kind: X\n", "Object 'apiVersion' is missing in 'kind: X\n'"),
    ("nothing", "", "Object 'Kind' is missing in ''"),
    (
        "two slashes",
        '{"apiVersion":"a/b/c","kind":"X"}',
        "unexpected GroupVersion string: a/b/c",
    ),
    (
        "a kind that is a number",
        '{"apiVersion":"v1","kind":5}',
        "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string",
    ),
    (
        "a list",
        "- a\n",
        "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type "
        'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
    ),
    (
        "broken JSON",
        '{"kind":',
        "couldn't get version/kind; json parse error: unexpected end of JSON input",
    ),
    (
        "another kind of the group",
        json.dumps({**HEAD, "kind": "NodeAffinityArgs"}),
        "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1, Kind=NodeAffinityArgs: ",
    ),
    (
        "a repeated YAML key",
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "leaderElection:\n  leaderElect: true\n  leaderElect: false\nfoo: 1\n",
        'strict decoding error: yaml: unmarshal errors:\n  line 5: key "leaderElect" already set in map, unknown field "foo"',
    ),
    (
        "a repeated JSON key",
        '{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration",'
        '"leaderElection":{"leaderElect":true,"leaderElect":false},"parallelism":1,"parallelism":2}',
        'strict decoding error: duplicate field "leaderElection.leaderElect", duplicate field "parallelism"',
    ),
    (
        "two kinds, of which the first is none",
        '{"apiVersion":"v1","Kind":[],"kind":"X"}',
        "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go struct field .kind of type string",
    ),
    (
        "a kind in capitals",
        '{"apiVersion":"kubescheduler.config.k8s.io/v1","Kind":"KubeSchedulerConfiguration"}',
        'strict decoding error: unknown field "Kind"',
    ),
]


@pytest.mark.parametrize(("text", "error"), [case[1:] for case in DECODING], ids=[case[0] for case in DECODING])
def test_a_document_is_refused_in_the_references_words(text: str, error: str) -> None:
    assert error_of(text) == error


WRONG_TYPES: list[tuple[dict[str, Any], str]] = [
    ({"parallelism": 1.5}, "number 1.5 into Go struct field KubeSchedulerConfiguration.parallelism of type int32"),
    (
        {"parallelism": 2**31},
        "number 2147483648 into Go struct field KubeSchedulerConfiguration.parallelism of type int32",
    ),
    (
        {"clientConnection": {"qps": 1e39}},
        "number 1e+39 into Go struct field ClientConnectionConfiguration.clientConnection.qps of type float32",
    ),
    (
        {"clientConnection": {"qps": 10**400}},
        f"number 1{'0' * 400} into Go struct field ClientConnectionConfiguration.clientConnection.qps of type float32",
    ),
    ({"parallelism": []}, "array into Go struct field KubeSchedulerConfiguration.parallelism of type int32"),
    ({"parallelism": {}}, "object into Go struct field KubeSchedulerConfiguration.parallelism of type int32"),
    ({"parallelism": True}, "bool into Go struct field KubeSchedulerConfiguration.parallelism of type int32"),
    (
        {"podMaxBackoffSeconds": "1"},
        "string into Go struct field KubeSchedulerConfiguration.podMaxBackoffSeconds of type int64",
    ),
    (
        {"enableProfiling": "no"},
        "string into Go struct field KubeSchedulerConfiguration.DebuggingConfiguration.enableProfiling of type bool",
    ),
    (
        {"leaderElection": "on"},
        "string into Go struct field KubeSchedulerConfiguration.leaderElection of type v1alpha1.LeaderElectionConfiguration",
    ),
    (
        {"leaderElection": {"resourceName": 5}},
        "number into Go struct field LeaderElectionConfiguration.leaderElection.resourceName of type string",
    ),
    (
        {"leaderElection": {"leaseDuration": 15}},
        "number into Go struct field LeaderElectionConfiguration.leaderElection.leaseDuration of type string",
    ),
    (
        {"clientConnection": {"qps": "fast"}},
        "string into Go struct field ClientConnectionConfiguration.clientConnection.qps of type float32",
    ),
    (
        {"profiles": {}},
        "object into Go struct field KubeSchedulerConfiguration.profiles of type []v1.KubeSchedulerProfile",
    ),
    (
        {"profiles": [{}, "x"]},
        "string into Go struct field KubeSchedulerConfiguration.profiles of type v1.KubeSchedulerProfile",
    ),
    (
        {"profiles": [{"plugins": {"score": {"enabled": [{"name": "x", "weight": "2"}]}}}]},
        "string into Go struct field Plugin.profiles.plugins.score.enabled.weight of type int32",
    ),
    (
        {"profiles": [{"plugins": []}]},
        "array into Go struct field KubeSchedulerProfile.profiles.plugins of type v1.Plugins",
    ),
    (
        {"extenders": [{"weight": "1"}]},
        "string into Go struct field Extender.extenders.weight of type int64",
    ),
    (
        {"extenders": [{"tlsConfig": {"caData": 1}}]},
        "number into Go struct field ExtenderTLSConfig.extenders.tlsConfig.caData of type []uint8",
    ),
]


@pytest.mark.parametrize(("document", "error"), WRONG_TYPES, ids=[str(case[0]) for case in WRONG_TYPES])
def test_a_wrong_type_is_refused_as_go_refuses_it(document: dict[str, Any], error: str) -> None:
    assert error_of(document) == f"json: cannot unmarshal {error}"


def test_a_duration_that_cannot_be_read_stops_everything_else() -> None:
    document = {"parallelism": "many", "extenders": [{"httpTimeout": "soon"}]}
    assert error_of(document) == 'time: invalid duration "soon"'
    assert error_of({"extenders": [{"httpTimeout": None}]}) == 'time: invalid duration ""'


BASE64 = [
    ("YQ", 0),
    ("YWJjYQ", 4),
    ("YQ=", 3),
    ("YQ=x", 2),
    ("YQ==YQ==", 4),
    ("YQ==\n", None),
    ("Y\nW\nJj", None),
    ("YWJ=", None),
    ("YWJ=x", 4),
    ("=", 0),
    ("Y=", 1),
    ("YW!j", 2),
    ("é", 0),
    ("", None),
]


@pytest.mark.parametrize(("text", "bad"), BASE64, ids=[repr(case[0]) for case in BASE64])
def test_base64_is_read_as_far_as_gos_decoder_gets(text: str, bad: int | None) -> None:
    document = {"extenders": [{"tlsConfig": {"certData": text}}]}
    if bad is None:
        loaded(document)
    else:
        assert error_of(document) == f"illegal base64 data at input byte {bad}"


def test_bytes_may_be_a_list_of_numbers() -> None:
    extender = loaded({"extenders": [{"tlsConfig": {"certData": [97, None, 255]}}]}).extenders[0]
    assert extender.tls_config is not None
    assert extender.tls_config.cert_data == b"a\x00\xff"
    assert error_of({"extenders": [{"tlsConfig": {"certData": [256]}}]}) == (
        "json: cannot unmarshal number 256 into Go struct field ExtenderTLSConfig.extenders.tlsConfig.certData of type uint8"
    )


def test_a_queue_sort_without_arguments_is_the_same_for_all() -> None:
    nameless = {"pluginConfig": [{"name": ""}]}
    loaded({"profiles": [{"schedulerName": "a"}, {"schedulerName": "b", **nameless}]})
    nameless["pluginConfig"][0]["args"] = {"x": 1}  # type: ignore[assignment]
    error = error_of({"profiles": [{"schedulerName": "a"}, {"schedulerName": "b", **nameless}]})
    assert error.startswith("profiles[1].pluginConfig.args: Invalid value: ")


def test_bad_base64_is_refused() -> None:
    assert error_of({"extenders": [{"tlsConfig": {"caData": "ab!d"}}]}) == "illegal base64 data at input byte 2"


def test_unknown_fields_are_reported_together_with_their_paths() -> None:
    document = {
        "a": 1,
        "profiles": [{"plugins": {"foo": {}, "score": {"enabled": [{"nam": "x"}]}}}],
        "extenders": [{"managedResources": [{"x": 1}]}],
    }
    assert error_of(document) == (
        'strict decoding error: unknown field "a", unknown field "profiles[0].plugins.foo", '
        'unknown field "profiles[0].plugins.score.enabled[0].nam", unknown field "extenders[0].managedResources[0].x"'
    )


ARGS: list[tuple[str, dict[str, Any], str]] = [
    (
        "strict problems of several plugins come together, after those of the document",
        {
            "foo": 1,
            **profile(
                pluginConfig=[
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"resources": [{"Name": "cpu"}]}, "x": 1}},
                    {"name": "InterPodAffinity", "args": {"y": 1}},
                ]
            ),
        },
        'strict decoding error: unknown field "foo", decoding .profiles[0].pluginConfig[0]: strict decoding error: '
        "decoding args for plugin NodeResourcesFit: strict decoding error: unknown field "
        '"scoringStrategy.resources[0].Name", unknown field "x", decoding .profiles[0].pluginConfig[1]: strict '
        'decoding error: decoding args for plugin InterPodAffinity: strict decoding error: unknown field "y"',
    ),
    (
        "a wrong type",
        with_args("InterPodAffinity", {"hardPodAffinityWeight": "5"}),
        "decoding .profiles[0].pluginConfig[0]: decoding args for plugin InterPodAffinity: json: cannot unmarshal "
        "string into Go struct field InterPodAffinityArgs.hardPodAffinityWeight of type int32",
    ),
    (
        "a wrong type deep inside",
        with_args("NodeResourcesFit", {"scoringStrategy": {"type": 5}}),
        "decoding .profiles[0].pluginConfig[0]: decoding args for plugin NodeResourcesFit: json: cannot unmarshal "
        "number into Go struct field ScoringStrategy.scoringStrategy.type of type v1.ScoringStrategyType",
    ),
    (
        "no object",
        with_args("InterPodAffinity", "text"),
        "decoding .profiles[0].pluginConfig[0]: decoding args for plugin InterPodAffinity: couldn't get version/kind; "
        "json parse error: json: cannot unmarshal string into Go value of type struct { APIVersion string "
        '"json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
    ),
    (
        "an older version",
        with_args("InterPodAffinity", {"apiVersion": "kubescheduler.config.k8s.io/v1beta2"}),
        "decoding .profiles[0].pluginConfig[0]: decoding args for plugin InterPodAffinity: no kind "
        '"InterPodAffinityArgs" is registered for version "kubescheduler.config.k8s.io/v1beta2" in scheme '
        '"pkg/scheduler/apis/config/scheme/scheme.go:29"',
    ),
]


@pytest.mark.parametrize(("document", "error"), [case[1:] for case in ARGS], ids=[case[0] for case in ARGS])
def test_plugin_arguments_are_refused_in_the_references_words(document: dict[str, Any], error: str) -> None:
    assert error_of(document) == error


# --- profiles ---------------------------------------------------------------------------------------------------------


def test_arguments_are_completed_for_every_plugin_that_takes_some() -> None:
    (only,) = loaded({}).profiles
    assert sorted(only.args) == [
        "DefaultPreemption",
        "DynamicResources",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
        "VolumeBinding",
    ]


def test_null_arguments_mean_the_defaults() -> None:
    given: list[dict[str, Any] | None] = [None, {}]
    for args in given:
        (only,) = loaded(with_args("DefaultPreemption", args)).profiles
        assert only.args == loaded({}).profiles[0].args


def test_arguments_of_a_plugin_that_is_not_used_are_checked_and_not_kept() -> None:
    off = {"multiPoint": {"disabled": [{"name": "InterPodAffinity"}]}}
    bad = [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}]
    assert "hardPodAffinityWeight: Invalid value: 101" in error_of(profile(plugins=off, pluginConfig=bad))
    good = [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 9}}]
    assert "InterPodAffinity" not in loaded(profile(plugins=off, pluginConfig=good)).profiles[0].args


def test_fit_arguments_are_checked_only_when_the_plugin_is_used() -> None:
    bad = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {}}}]
    assert error_of(profile(pluginConfig=bad)) == (
        f'{INIT}initializing plugin "NodeResourcesFit": scoringStrategy.type: Unsupported value: "": supported values: '
        '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
    )
    off = {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}
    assert "NodeResourcesFit" not in loaded(profile(plugins=off, pluginConfig=bad)).profiles[0].args


def test_arguments_of_a_plugin_without_a_type_travel_as_they_are() -> None:
    (only,) = loaded(with_args("ImageLocality", {"b": 1, "a": [True, None, 1.5]})).profiles
    args = only.args["ImageLocality"]
    assert isinstance(args, Raw)
    assert args.json() == '{"b":1,"a":[true,null,1.5]}'
    document = effective(loaded(with_args("ImageLocality", {"b": 1})))
    entries = {entry["name"]: entry["args"] for entry in document["profiles"][0]["pluginConfig"]}
    assert entries["ImageLocality"] == {"b": 1}


def test_several_profiles_stand_side_by_side() -> None:
    packing = {
        "schedulerName": "packing",
        "percentageOfNodesToScore": 30,
        "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit", "weight": 4}]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}],
    }
    plain, packed = loaded({"profiles": [{"schedulerName": "plain"}, packing]}).profiles
    assert len(plain.at("score")) == 9
    assert [(plugin.name, plugin.weight) for plugin in packed.at("score")] == [("NodeResourcesFit", 4)]
    assert packed.percentage_of_nodes_to_score == 30
    assert plain.percentage_of_nodes_to_score is None
    assert set(packed.plugin_names) <= set(plain.plugin_names)


def test_different_queue_sorts_through_multi_point_are_refused() -> None:
    class Empty(Args, frozen=True, rename="camel"):
        pass

    registry = {**IN_TREE_CATALOGUE, "Mine": Known(frozenset({"queue_sort"}), Empty)}
    other = {"multiPoint": {"enabled": [{"name": "Mine"}], "disabled": [{"name": "PrioritySort"}]}}
    document = {**HEAD, "profiles": [{"schedulerName": "a"}, {"schedulerName": "b", "plugins": other}]}
    with pytest.raises(ConfigError) as caught:
        load(json.dumps(document), gates=Gates.defaults(), registry=registry)
    assert str(caught.value) == (
        'initializing profiles: different queue sort plugins for profile "b": "Mine", first: "PrioritySort"'
    )


def test_an_outside_plugin_is_known_by_its_own_entry() -> None:
    class ExampleArgs(Args, frozen=True, rename="camel"):
        limit: Int32 = 7

    registry = {**IN_TREE_CATALOGUE, "Example": Known(frozenset({"filter"}), ExampleArgs)}
    document = {**HEAD, **profile(plugins={"filter": {"enabled": [{"name": "Example"}]}})}
    (only,) = load(json.dumps(document), gates=Gates.defaults(), registry=registry).profiles
    assert only.at("filter")[-1].name == "Example"
    assert only.args["Example"] == ExampleArgs(7)
    document["profiles"][0]["pluginConfig"] = [{"name": "Example", "args": {"limt": 3}}]
    with pytest.raises(ConfigError, match='unknown field "limt"'):
        load(json.dumps(document), gates=Gates.defaults(), registry=registry)


def test_the_write_ups_example_runs_after_the_default_filters() -> None:
    """The custom plugin of the seed notes: `example.com/example` under filter."""
    registry = {**IN_TREE_CATALOGUE, "example.com/example": Known(frozenset({"filter"}))}
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection:
  acceptContentTypes: ""
  burst: 100
  contentType: application/vnd.kubernetes.protobuf
  qps: 100
profiles:
- schedulerName: example-scheduler
  plugins: {filter: {enabled: [{name: example.com/example}]}}
"""
    configuration = load(text, gates=Gates.defaults(), registry=registry)
    (only,) = configuration.profiles
    assert only.scheduler_name == "example-scheduler"
    assert [plugin.name for plugin in only.at("filter")][-2:] == ["NodeDeclaredFeatures", "example.com/example"]
    assert len(only.at("filter")) == 15
    assert configuration.client_connection.qps == 100


# --- the way back -----------------------------------------------------------------------------------------------------


def test_what_is_printed_loads_back_to_the_same() -> None:
    configuration = loaded(
        {
            "clientConnection": {"qps": 0.1, "burst": 3},
            "extenders": [{"urlPrefix": "http://x", "httpTimeout": "90s", "tlsConfig": {"certData": "YQ=="}}],
            **profile(plugins={"score": {"enabled": [{"name": "ImageLocality", "weight": 3}]}}),
        }
    )
    document = effective(configuration)
    assert document["clientConnection"]["qps"] == 0.1
    assert document["extenders"][0]["tlsConfig"] == {"certData": "YQ=="}
    assert document["extenders"][0]["httpTimeout"] == "1m30s"
    assert load(as_yaml(document), gates=Gates.defaults(), registry=IN_TREE_CATALOGUE) == configuration


def test_a_file_is_read_and_a_missing_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    with pytest.raises(ConfigError) as caught:
        load(file, gates=Gates.defaults(), registry=IN_TREE_CATALOGUE)
    assert str(caught.value) == f"open {file}: no such file or directory"
    file.write_text(json.dumps({**HEAD, "parallelism": 2}))
    assert load(file, gates=Gates.defaults(), registry=IN_TREE_CATALOGUE).parallelism == 2


def test_flags_override_the_files_leader_election_and_are_validated_with_it() -> None:
    text = json.dumps({**HEAD, "leaderElection": {"leaderElect": False}})
    overrides = {"leader_elect": True, "lease_duration": Duration.of(seconds=5)}
    with pytest.raises(ConfigError, match="must be greater than `RenewDeadline`"):
        load(text, gates=Gates.defaults(), registry=IN_TREE_CATALOGUE, overrides=overrides)


def test_no_file_means_the_defaults() -> None:
    assert defaults(gates=Gates.defaults(), registry=IN_TREE_CATALOGUE) == loaded({})


def test_every_wire_field_appears_in_the_tables_above() -> None:
    """A field that nobody tests would be one that is parsed and forgotten."""
    tested = {name for case in FIELDS for name in case[0]} | {"profiles", "extenders"}
    assert set(KubeSchedulerConfiguration.__struct_encode_fields__) <= tested
