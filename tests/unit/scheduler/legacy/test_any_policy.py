"""Whatever is written in a policy, the answer is a scheduler or one line of complaint."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legacy_clusters import World

from kubesched.errors import ConfigError
from kubesched.scheduler.legacy import Policy, convert_policy, load_policy, profile_from_policy
from kubesched.scheduler.legacy.algorithms import PREDICATES, PRIORITIES

VERSIONS = ["1.3", "1.4", "1.6", "1.13", "1.17"]
SCALARS = st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats() | st.text(max_size=5)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=8
)
LABELS = st.lists(st.sampled_from(["zone", "disk", ""]), max_size=3)
POINT = st.fixed_dictionaries({"utilization": st.integers(-5, 120), "score": st.integers(-2, 12)})
POINTS = st.lists(POINT, max_size=3)
PREDICATE = st.fixed_dictionaries(
    {"name": st.sampled_from([*PREDICATES, "Mine", "x", ""])},
    optional={
        "argument": st.fixed_dictionaries(
            {},
            optional={
                "serviceAffinity": st.fixed_dictionaries({"labels": LABELS}),
                "labelsPresence": st.fixed_dictionaries({"labels": LABELS, "presence": st.booleans()}),
            },
        )
        | ANYTHING
    },
)
PRIORITY = st.fixed_dictionaries(
    {"name": st.sampled_from([*PRIORITIES, "Mine", "x"]), "weight": st.integers(-1, 9) | st.integers()},
    optional={
        "argument": st.fixed_dictionaries(
            {},
            optional={
                "serviceAntiAffinity": st.fixed_dictionaries({"label": st.text(max_size=4)}),
                "labelPreference": st.fixed_dictionaries({"label": st.text(max_size=4), "presence": st.booleans()}),
                "requestedToCapacityRatioArguments": st.fixed_dictionaries(
                    {"shape": POINTS},
                    optional={
                        "resources": st.lists(
                            st.fixed_dictionaries(
                                {"name": st.sampled_from(["cpu", "a.b/c", ""]), "weight": st.integers(-1, 5)}
                            ),
                            max_size=2,
                        )
                    },
                ),
            },
        )
    },
)
POLICIES = st.fixed_dictionaries(
    {"kind": st.just("Policy"), "apiVersion": st.just("v1")},
    optional={
        "predicates": st.none() | st.lists(PREDICATE, max_size=4) | ANYTHING,
        "priorities": st.none() | st.lists(PRIORITY, max_size=4) | ANYTHING,
        "extenders": ANYTHING,
        "hardPodAffinitySymmetricWeight": st.integers(-2, 120),
        "alwaysCheckAllPredicates": st.booleans(),
    },
)


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=120, deadline=None)
@given(document=POLICIES)
def test_a_policy_becomes_a_scheduler_or_a_complaint(version: str, document: dict[str, Any]) -> None:
    handle = World([]).handle
    try:
        policy = load_policy(json.dumps(document), version)
        algorithm = profile_from_policy(policy, handle, version)
    except ConfigError as error:
        assert str(error)
        return
    assert len(algorithm.profile.filters) <= max(1, 4 * len(algorithm.predicates))
    assert all(weight > 0 for _, weight in algorithm.profile.scorers)


@settings(max_examples=100, deadline=None)
@given(document=POLICIES)
def test_what_can_be_built_can_be_converted_or_is_told_why_not(document: dict[str, Any]) -> None:
    try:
        policy = load_policy(json.dumps(document))
        profile_from_policy(policy, World([]).handle)
    except ConfigError:
        return
    try:
        made = convert_policy(policy)
    except ConfigError as error:
        assert str(error)
        return
    assert made.document["profiles"][0]["plugins"]["multiPoint"] == {"disabled": [{"name": "*"}]}


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=40) | ANYTHING.map(lambda value: json.dumps(value)))
@pytest.mark.parametrize("version", ["1.6", "1.17"])
def test_any_text_is_read_or_refused(version: str, text: str) -> None:
    try:
        found = load_policy(text, version)
    except ConfigError:
        return
    assert version == "1.17" and isinstance(found, Policy)  # which takes a document that does not say what it is
