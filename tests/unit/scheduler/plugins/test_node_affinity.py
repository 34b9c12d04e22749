"""NodeAffinity."""

from __future__ import annotations

from typing import Any

import pytest
from plugin_bench import Bench

from kubesched.kube.api.pod import Pod
from kubesched.scheduler.plugins import NodeAffinity
from kubesched.testing import node, pod

REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
UNWANTED = ("UnschedulableAndUnresolvable", ["node(s) didn't match Pod's node affinity/selector"])
ENFORCED = ("UnschedulableAndUnresolvable", ["node(s) didn't match scheduler-enforced node affinity"])
SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
HDD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["hdd"]}]}
NODES = node("a", labels={"disk": "ssd"}), node("b", labels={"disk": "hdd"}), node("c")


def named(*groups: list[str], operator: str = "In") -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": values} for values in groups]}


def requiring(*terms: dict[str, Any], **fields: Any) -> Pod:
    return pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}, **fields)


def preferring(*wishes: tuple[int, dict[str, Any]]) -> Pod:
    given = [{"weight": weight, "preference": term} for weight, term in wishes]
    return pod(affinity={"nodeAffinity": {PREFERRED: given}})


@pytest.mark.parametrize(
    ("sentence", "wanted", "answer"),
    [
        ("a pod that asks for nothing", pod(), "Skip"),
        ("an empty selector is a selector", pod(node_selector={}), None),
        ("required terms", requiring(SSD), None),
        ("no terms at all narrow nothing", requiring(), None),
        ("names narrow", requiring(named(["a"])), ["a"]),
        ("names of all terms", requiring(named(["a"]), named(["b"])), ["a", "b"]),
        ("one term without a name", requiring(named(["a"]), SSD), None),
        ("names that need not exist", requiring(named(["gone"])), ["gone"]),
        ("two values narrow to both", requiring(named(["a", "b"])), ["a", "b"]),
        ("what is not a name does not narrow", requiring(named(["a"], operator="NotIn")), None),
        (
            "names that conflict",
            requiring(named(["a"], ["b"])),
            ("UnschedulableAndUnresolvable", ["pod affinity terms conflict"]),
        ),
        ("one of two terms that conflicts adds nothing", requiring(named(["a"], ["b"]), named(["c"])), ["c"]),
    ],
)
def test_what_is_known_before_looking_at_nodes(sentence: str, wanted: Pod, answer: Any) -> None:
    assert Bench(NodeAffinity, *NODES).pre_filter(wanted) == answer, sentence


@pytest.mark.parametrize(
    ("sentence", "wanted", "fits"),
    [
        ("a selector", pod(node_selector={"disk": "ssd"}), ["a"]),
        ("an empty selector", pod(node_selector={}), ["a", "b", "c"]),
        ("a required term", requiring(SSD), ["a"]),
        ("either term", requiring(SSD, HDD), ["a", "b"]),
        ("selector and term", requiring(SSD, HDD, node_selector={"disk": "hdd"}), ["b"]),
        ("no terms match no node", requiring(), []),
        ("an empty term matches no node", requiring({}), []),
        ("two names in one entry can never pass", requiring(named(["a", "b"])), []),
        ("a name", requiring(named(["b"])), ["b"]),
        ("a name that is not wanted", requiring(named(["b"], operator="NotIn")), ["a", "c"]),
        (
            "a value that is no label value never matches, not even turned round",
            requiring({"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["a b"]}]}),
            [],
        ),
    ],
)
def test_which_nodes_a_pod_may_go_to(sentence: str, wanted: Pod, fits: list[str]) -> None:
    bench = Bench(NodeAffinity, *NODES)
    assert bench.refusals(wanted) == {name: UNWANTED for name in ("a", "b", "c") if name not in fits}, sentence


def test_an_added_affinity_is_asked_first() -> None:
    added = {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": [SSD, HDD]}}}
    bench = Bench(NodeAffinity, *NODES, args=added)
    assert bench.pre_filter(pod()) is None
    assert bench.refusals(pod()) == {"c": ENFORCED}
    assert bench.refusals(pod(node_selector={"disk": "ssd"})) == {"b": UNWANTED, "c": ENFORCED}


def test_preferences_add_up_and_the_best_gets_100() -> None:
    bench = Bench(NodeAffinity, *NODES)
    wanted = preferring((3, SSD), (2, {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}))
    assert bench.scores(wanted, raw=True) == {"a": 5, "b": 2, "c": 0}
    assert bench.scores(wanted) == {"a": 100, "b": 40, "c": 0}
    assert bench.scores(wanted, among=["b", "c"]) == {"b": 100, "c": 0}


@pytest.mark.parametrize(
    ("sentence", "wanted", "answer"),
    [
        ("no preferences", pod(), "Skip"),
        ("required ones only", requiring(SSD), "Skip"),
        ("an empty list is a list", preferring(), None),
        (
            "a broken one without weight is dropped unread",
            preferring((0, {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["a b"]}]})),
            None,
        ),
    ],
)
def test_who_has_nothing_to_say_about_scores(sentence: str, wanted: Pod, answer: Any) -> None:
    assert Bench(NodeAffinity, *NODES).pre_score(wanted) == answer, sentence


def test_an_empty_list_scores_zero_everywhere() -> None:
    assert Bench(NodeAffinity, *NODES).scores(preferring()) == {"a": 0, "b": 0, "c": 0}


def test_a_broken_preference_is_an_error() -> None:
    code, _ = Bench(NodeAffinity, *NODES).pre_score(
        preferring((1, {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["a b"]}]}))
    )
    assert code == "Error"


def test_added_preferences_count_for_every_pod() -> None:
    bench = Bench(NodeAffinity, *NODES, args={"addedAffinity": {PREFERRED: [{"weight": 4, "preference": HDD}]}})
    assert bench.scores(pod(), raw=True) == {"a": 0, "b": 4, "c": 0}
    assert bench.scores(preferring((1, SSD)), raw=True) == {"a": 1, "b": 4, "c": 0}


def test_added_preferences_that_are_all_empty_still_score() -> None:
    bench = Bench(NodeAffinity, *NODES, args={"addedAffinity": {PREFERRED: [{"weight": 4, "preference": {}}]}})
    assert bench.pre_score(pod()) is None
    assert bench.scores(pod()) == {"a": 0, "b": 0, "c": 0}
