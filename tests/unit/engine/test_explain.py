"""An attempt, told."""

from __future__ import annotations

import pytest
from cycle_scene import Scene, pinned

from kubesched.engine.explain import Explanation, NodeScores, Refusal, explain
from kubesched.testing import node, pod, taint


def told(scene: Scene, wanted: object, top: int = 5) -> Explanation:
    return explain(scene.attempt(wanted, scores_single=True), top=top)  # type: ignore[arg-type]


def test_a_placed_pod_is_told_with_its_node_and_a_ranking() -> None:
    scene = Scene(node("a"), node("b"), node("c", cordoned=True), pod("x", on="a", requests={"cpu": "2"}))
    found = told(scene, pod("web", requests={"cpu": "1", "memory": "1Gi"}))
    assert (found.pod, found.node, found.message) == ("default/web", "b", "")
    assert (found.n_nodes, found.n_feasible, found.advice) == (3, 2, [])
    assert [ranked.node for ranked in found.ranking] == ["b", "a"]
    best = found.ranking[0]
    assert isinstance(best, NodeScores) and sum(best.by_plugin.values()) == best.total
    assert best.by_plugin["TaintToleration"] == 300
    assert found.refusals == [Refusal("NodeUnschedulable", "node(s) were unschedulable", 1, False, ("c",))]


def test_the_ranking_is_cut() -> None:
    scene = Scene(*(node(f"n{i}") for i in range(10)))
    assert len(told(scene, pod(), top=3).ranking) == 3


def test_refusals_are_counted_with_examples_the_most_frequent_first() -> None:
    scene = Scene(node("t", taints=[taint("gpu")]), *(node(f"n{i}", cpu="1") for i in range(5)))
    found = told(scene, pod(requests={"cpu": "2"}))
    assert found.refusals == [
        Refusal("NodeResourcesFit", "Insufficient cpu", 5, False, ("n0", "n1", "n2")),
        Refusal("TaintToleration", "node(s) had untolerated taint(s)", 1, False, ("t",)),
    ]


def test_nodes_that_did_not_come_into_question_are_told_too() -> None:
    found = told(Scene(node("a", cordoned=True), node("b"), node("c")), pod(affinity=pinned("a")))
    assert [(r.reason, r.count) for r in found.refusals] == [
        ("node(s) didn't satisfy plugin(s) [NodeAffinity]", 2), ("node(s) were unschedulable", 1)]


@pytest.mark.parametrize(("sentence", "asked", "advice"), [
    ("eviction would help", {"cpu": "3"}, [
        "closest is b: it would fit with 500m more cpu", "2 of 2 nodes short of resources could hold it if they were empty"]),
    ("nothing would", {"cpu": "6", "memory": "40Gi"}, [
        "closest is b: it would fit with 3500m more cpu and 8Gi more memory",
        "none of the 2 nodes short of resources could hold it even empty: ask for less, or add larger nodes"]),
])
def test_the_smallest_change_that_would_help_is_named(sentence: str, asked: dict[str, str], advice: list[str]) -> None:
    scene = Scene(node("a"), node("b"), pod("x", on="a", requests={"cpu": "2"}), pod("y", on="b", requests={"cpu": "1500m"}))
    assert told(scene, pod(requests=asked)).advice == advice, sentence


def test_nodes_with_room_that_something_else_keeps_the_pod_off_are_named_first() -> None:
    gpus = {"offers": {"example.com/gpu": "1"}}
    scene = Scene(node("a"), node("b", taints=[taint("gpu")], **gpus), node("c", taints=[taint("gpu")], **gpus),
                  node("d", cordoned=True, **gpus), node("e", taints=[taint("gpu")]))
    asked = pod(requests={"example.com/gpu": "1"})
    assert told(scene, asked).advice == [
        "2 nodes, b among them, have room for it; TaintToleration says: node(s) had untolerated taint(s)",
        "d has room for it; NodeUnschedulable says: node(s) were unschedulable",
        "closest is a: it would fit with 1 more example.com/gpu",
        "a could not hold it even empty: ask for less, or add larger nodes",
    ]
    full = Scene(node("only", pods=1, taints=[taint("gpu")]), pod("x", on="only"))
    assert told(full, pod()).advice == [], "there is no room for one more pod, whatever it asks for"


def test_a_refusal_before_filtering_is_told_for_all_nodes() -> None:
    conflict = pinned("a")
    terms = conflict["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    terms[0]["matchFields"].append({"key": "metadata.name", "operator": "In", "values": ["b"]})
    found = told(Scene(node("a"), node("b")), pod(affinity=conflict))
    assert found.refusals == [Refusal("NodeAffinity", "pod affinity terms conflict", 2, False, ())]
    assert found.message == "0/2 nodes are available: pod affinity terms conflict."
