"""Reading policy files: types, kinds, strictness, and what each release knew."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubesched.errors import ConfigError
from kubesched.scheduler.config import Duration
from kubesched.scheduler.legacy import load_policy
from kubesched.scheduler.legacy.policies.policy import (
    LabelPreference,
    LabelsPresence,
    Policy,
    PredicatePolicy,
    ServiceAffinity,
    ServiceAntiAffinity,
)

HEAD = {"kind": "Policy", "apiVersion": "v1"}


def text(**fields: Any) -> str:
    return json.dumps({**HEAD, **fields})


def test_every_field_is_read() -> None:
    policy = load_policy(
        text(
            predicates=[
                {"name": "HostName"},
                {"name": "A", "argument": {"serviceAffinity": {"labels": ["region"]}}},
                {"name": "B", "argument": {"labelsPresence": {"labels": ["x"], "presence": True}}},
            ],
            priorities=[
                {"name": "EqualPriority", "weight": 3},
                {"name": "C", "weight": 1, "argument": {"serviceAntiAffinity": {"label": "zone"}}},
                {"name": "D", "weight": 2, "argument": {"labelPreference": {"label": "x", "presence": False}}},
                {
                    "name": "E",
                    "weight": 4,
                    "argument": {
                        "requestedToCapacityRatioArguments": {
                            "shape": [{"utilization": 10, "score": 2}],
                            "resources": [{"name": "cpu", "weight": 3}],
                        }
                    },
                },
            ],
            hardPodAffinitySymmetricWeight=7,
            alwaysCheckAllPredicates=True,
        )
    )
    assert policy.predicates is not None and policy.priorities is not None
    assert [p.name for p in policy.predicates] == ["HostName", "A", "B"]
    arguments = [p.argument for p in policy.predicates]
    assert arguments[1] is not None and arguments[1].service_affinity == ServiceAffinity(("region",))
    assert arguments[2] is not None and arguments[2].labels_presence == LabelsPresence(("x",), True)
    assert [p.weight for p in policy.priorities] == [3, 1, 2, 4]
    given = [p.argument for p in policy.priorities]
    assert given[1] is not None and given[1].service_anti_affinity == ServiceAntiAffinity("zone")
    assert given[2] is not None and given[2].label_preference == LabelPreference("x", False)
    ratio = given[3].requested_to_capacity_ratio_arguments if given[3] else None
    assert ratio is not None and (ratio.shape[0].utilization, ratio.resources[0].weight) == (10, 3)
    assert policy.hard_pod_affinity_symmetric_weight == 7 and policy.always_check_all_predicates


@pytest.mark.parametrize("fields", [{}, {"predicates": None, "priorities": None}])
def test_absent_and_null_lists_are_not_empty_ones(fields: dict[str, Any]) -> None:
    policy = load_policy(text(**fields))
    assert policy.predicates is None and policy.priorities is None
    assert load_policy(text(predicates=[], priorities=[])) == Policy(predicates=(), priorities=())


def test_yaml_is_read_from_1_15_on() -> None:
    document = "apiVersion: v1\nkind: Policy\npredicates:\n- name: HostName\n"
    policy = load_policy(document)
    assert policy.predicates is not None and policy.predicates[0].name == "HostName"
    with pytest.raises(ConfigError, match="invalid configuration: couldn't get version/kind; json parse error"):
        load_policy(document, "1.13")


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        (text(nonsense=1), 'strict decoding error: unknown field "nonsense"'),
        (text(predicates=[{"name": "A", "weight": 1}]), 'strict decoding error: unknown field "predicates[0].weight"'),
        ('{"kind":"Policy","apiVersion":"v1","predicates":[],"predicates":[]}', 'duplicate field "predicates"'),
        ('{"kind":"Policy","predicates":[]}', 'strict decoding error: unknown field "predicates"'),
        ('{"predicates":[]}', 'strict decoding error: unknown field "predicates"'),
        ('{"Predicates":[{"name":"A"}]}', 'strict decoding error: unknown field "name"'),
        ('{"kind":"Deployment"}', 'no kind "Deployment" is registered for version "v1"'),
        ('{"kind":"Policy","apiVersion":"v2"}', 'no kind "Policy" is registered for version "v2"'),
        ('{"kind":"Deployment","apiVersion":"v1"}', 'no kind "Deployment" is registered for version "v1"'),
        (text(priorities=[{"name": "A", "weight": "2"}]), "cannot unmarshal string into Go struct field"),
        ("[]", "Object 'Kind' is missing in"),
        ("{", "json parse error: unexpected end of JSON input"),
    ],
)
def test_what_1_17_refuses(document: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_policy(document)
    assert str(error.value).startswith("invalid policy: ") and complaint in str(error.value)


KINDLESS = [
    ("nothing at all", "{}", Policy()),
    ("a version alone", '{"apiVersion":"v1","predicates":[]}', Policy(predicates=())),
    (
        "Go's names",
        '{"Predicates":[{"Name":"A"}],"AlwaysCheckAllPredicates":true}',
        Policy((PredicatePolicy("A"),), None, (), 0, True),
    ),
    ("a kind and Go's names", '{"kind":"Policy","Predicates":[]}', Policy(predicates=())),
]


@pytest.mark.parametrize(("what", "document", "policy"), KINDLESS, ids=[case[0] for case in KINDLESS])
def test_1_17_reads_a_policy_that_does_not_say_what_it_is(what: str, document: str, policy: Policy) -> None:
    """Without a version it is taken for the struct that the program has inside, under Go's names."""
    assert load_policy(document) == policy


@pytest.mark.parametrize("document", ['{"apiVersion":"v1"}', "{}"])
def test_before_1_17_a_policy_says_what_it_is(document: str) -> None:
    with pytest.raises(ConfigError, match="Object 'Kind' is missing in"):
        load_policy(document, "1.13")


def test_before_1_17_unknown_fields_are_ignored() -> None:
    assert load_policy(text(nonsense=1, predicates=[{"name": "A", "x": 1}]), "1.13").predicates is not None


def test_the_new_group_is_known_from_1_17_on() -> None:
    document = json.dumps({"kind": "Policy", "apiVersion": "kubescheduler.config.k8s.io/v1"})
    assert load_policy(document) == Policy()
    with pytest.raises(ConfigError, match="is registered for version"):
        load_policy(document, "1.13")


def test_fields_that_came_later_are_unknown_to_earlier_releases() -> None:
    document = text(
        hardPodAffinitySymmetricWeight=5,
        alwaysCheckAllPredicates=True,
        priorities=[
            {
                "name": "A",
                "weight": 1,
                "argument": {"requestedToCapacityRatioArguments": {"shape": [], "resources": [{"name": "cpu"}]}},
            }
        ],
        extenders=[
            {
                "urlPrefix": "http://x",
                "filterVerb": "f",
                "bindVerb": "b",
                "nodeCacheCapable": True,
                "managedResources": [{"name": "a.b/c"}],
                "ignorable": True,
                "preemptVerb": "p",
            }
        ],
    )
    old, newer, newest = (load_policy(document, version) for version in ("1.4", "1.13", "1.17"))
    assert (old.hard_pod_affinity_symmetric_weight, old.always_check_all_predicates) == (0, False)
    assert (newer.hard_pod_affinity_symmetric_weight, newer.always_check_all_predicates) == (5, True)
    extender = old.extenders[0]
    assert (extender.filter_verb, extender.bind_verb) == ("f", "")
    assert not extender.node_cache_capable and not extender.ignorable
    assert load_policy(document, "1.6").extenders[0].node_cache_capable
    assert newer.extenders[0].preempt_verb == "p" and newer.extenders[0].managed_resources
    ratios = [
        p.priorities[0].argument.requested_to_capacity_ratio_arguments  # type: ignore[index, union-attr]
        for p in (old, newer, newest)
    ]
    assert ratios[0] is None
    assert ratios[1] is not None and ratios[1].resources == ()
    assert ratios[2] is not None and ratios[2].resources != ()


def test_extenders_are_read_in_any_case_and_become_todays() -> None:
    document = text(
        extenders=[
            {
                "URLPrefix": "https://127.0.0.1:8099/scheduler",
                "FilterVerb": "filter",
                "BindVerb": "bind",
                "Weight": 5,
                "enableHTTPS": True,
                "HTTPTimeout": 3_500_000_000,
                "TLSConfig": {"Insecure": True, "CAFile": "/ca"},
                "managedResources": [{"Name": "a.b/c", "IgnoredByScheduler": True}],
            }
        ]
    )
    extender = load_policy(document).extenders[0].modern()
    assert (extender.url_prefix, extender.filter_verb, extender.bind_verb) == (
        "https://127.0.0.1:8099/scheduler",
        "filter",
        "bind",
    )
    assert extender.enable_https and extender.http_timeout == Duration.of(seconds=3.5)
    assert extender.tls_config is not None
    assert (extender.tls_config.insecure, extender.tls_config.ca_file) == (True, "/ca")
    assert extender.managed_resources[0].ignored_by_scheduler
    assert load_policy(document, "1.6").extenders[0].filter_verb == ""  # before 1.8 the keys had to be exact


def test_what_an_extender_says_beyond_its_fields_is_passed_over() -> None:
    document = text(
        extenders=[
            {
                "urlPrefix": "http://x",
                "comment": "ours",
                "tlsConfig": {"Insecure": True, "why": 1},
                "managedResources": [{"name": "example.com/gpu", "note": ""}],
            }
        ]
    )
    extender = load_policy(document).extenders[0].modern()
    assert (extender.url_prefix, extender.managed_resources[0].name) == ("http://x", "example.com/gpu")
    assert extender.tls_config is not None and extender.tls_config.insecure
